package crawl

import (
	"context"
	"encoding/binary"
	"iter"
	"time"

	"go.etcd.io/bbolt"
)

// A Server is what is known of a server.
type Server struct {
	ID     ServerID
	Origin string
	Robots int       // status of its robots.txt: 200, 404, ...; 0 when it could not be had
	Until  time.Time // robots.txt is asked for again after this
	Next   time.Time // no request before this
	Delay  time.Duration

	Address   string    // of the machine, as the last connection had it, or ""
	Documents int       // known of it
	Failures  int       // in a row: it could not be reached, or was busy
	Trouble   time.Time // when the last of them was
	Why       string    // it is left alone, or ""

	own    uint32   // entries in its list of documents
	listed uint32   // ... once they are written
	visit  uint64   // that dealt with
	done   uint32   // so many of them, from the first
	closed []string // the shapes of its URLs that are traps
}

const serverVersion = 1

func (s *Server) append(b []byte) []byte {
	next := s.Next
	if !next.IsZero() {
		next = next.Add(time.Second - time.Nanosecond) // rounded up: rather late than early
	}
	b = appendString(append(b, serverVersion), s.Origin)
	for _, n := range []uint64{uint64(s.Robots), unix(s.Until), unix(next), uint64(s.Delay), uint64(s.Documents), uint64(s.Failures),
		unix(s.Trouble), uint64(s.own), s.visit, uint64(s.done), uint64(len(s.closed))} {
		b = binary.AppendUvarint(b, n)
	}
	for _, t := range append([]string{s.Address, s.Why}, s.closed...) {
		b = appendString(b, t)
	}
	return b
}

func decodeServer(b []byte) (s Server, err error) {
	if len(b) == 0 || b[0] != serverVersion {
		return s, errRecord
	}
	r := &reader{b: b[1:]}
	s.Origin = r.string()
	s.Robots, s.Until, s.Next, s.Delay = int(r.uint()), fromUnix(r.uint()), fromUnix(r.uint()), time.Duration(r.uint())
	s.Documents, s.Failures, s.Trouble = int(r.uint()), int(r.uint()), fromUnix(r.uint())
	s.own, s.visit, s.done = uint32(r.uint()), r.uint(), uint32(r.uint())
	closed := r.uint()
	s.Address, s.Why = r.string(), r.string()
	for range min(closed, maxClosed) {
		s.closed = append(s.closed, r.string())
	}
	s.listed = s.own
	if r.bad || len(r.b) != 0 || closed > maxClosed {
		return Server{}, errRecord
	}
	return s, nil
}

// server returns the number of a server, which it gives to one that is new. mu
// is held.
func (f *DB) server(origin string) ServerID {
	id := f.byOrigin[origin]
	if id == 0 {
		f.servers = append(f.servers, Server{ID: ServerID(len(f.servers) + 1), Origin: origin})
		id = ServerID(len(f.servers))
		f.byOrigin[origin] = id
		f.dirty[id] = struct{}{}
	}
	return id
}

// change returns a server, to be changed and written with the next transaction.
// mu is held.
func (f *DB) change(id ServerID) *Server {
	f.dirty[id] = struct{}{}
	return &f.servers[id-1]
}

// putServers writes the servers that have changed.
func (f *DB) putServers(tx *bbolt.Tx) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := tx.Bucket(serverBucket)
	for id := range f.dirty {
		if err := b.Put(docKey(DocID(id)), f.servers[id-1].append(nil)); err != nil {
			return err
		}
	}
	clear(f.dirty)
	return nil
}

// Servers yields the servers known, in the order of their IDs.
func (f *DB) Servers(ctx context.Context) iter.Seq2[Server, error] {
	return func(yield func(Server, error) bool) {
		var part [scanStep]Server
		for n := 0; ; {
			f.mu.Lock()
			got := copy(part[:], f.servers[n:])
			f.mu.Unlock()
			for i := range got {
				if ctx.Err() != nil {
					yield(Server{}, ctx.Err())
					return
				}
				if !yield(part[i], nil) {
					return
				}
			}
			if n += got; got < len(part) {
				return
			}
		}
	}
}

// Server returns a server by its ID; the zero Server when there is none.
func (f *DB) Server(id ServerID) Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == 0 || int(id) > len(f.servers) {
		return Server{}
	}
	return f.servers[id-1]
}
