package store

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// # What is kept ready
//
// The zstd frames of the segments are the compressed collection, so zstd is
// ready by itself. Those who know only gzip, as the programs of the first
// Harvest do, are served from a copy: a gzip member for each frame, made when
// one is asked for first and from then on only of frames that are new or have
// changed. The copy is a file without a name, which a crash cannot leave behind.

// A FileWriter can be given part of a file. A connection can take that without
// a copy through the process.
type FileWriter interface {
	io.Writer
	WriteFile(f *os.File, off, n int64) error
}

// writeFile writes part of a file to any writer.
func writeFile(w io.Writer, f *os.File, off, n int64) error {
	if fw, ok := w.(FileWriter); ok {
		return fw.WriteFile(f, off, n)
	}
	_, err := io.Copy(w, io.NewSectionReader(f, off, n))
	return err
}

// checked remembers which frames were read and found whole since the store was
// opened: those go from the file to the reader without being looked at again.
type checked struct {
	mu sync.Mutex
	at map[place]struct{}
}

func (c *checked) has(p place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.at[p]
	return ok
}

func (c *checked) add(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = make(map[place]struct{})
	}
	c.at[p] = struct{}{}
}

// bound forgets all when most is of frames that are no more: n are. They are
// looked at once again.
func (c *checked) bound(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.at) > 2*n+1024 {
		c.at = nil
	}
}

// A gzipCopy is the collection in gzip members.
type gzipCopy struct {
	mu   sync.Mutex
	file *segment // only its file and its users; nil before it is asked for
	size int64
	dead int64 // bytes of members that are needed no more
	at   map[place]gzipMember
}

// A gzipMember is the member of a frame. A frame only ever loses objects, so
// the bytes that are alive tell whether it is still the same.
type gzipMember struct{ off, n, live int64 }

// An extent is a part of a file.
type extent struct{ off, n int64 }

// members returns where the members of a snapshot's frames are, those that
// follow one another as one, and the file, held for the caller.
func (c *gzipCopy) members(ctx context.Context, sn *Snapshot) (file *segment, all []extent, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil || c.dead > c.size/2+1<<20 {
		if err := c.begin(sn.s.dir); err != nil {
			return nil, nil, err
		}
	}
	c.bound(sn)
	for i := range sn.frames {
		m, err := c.member(ctx, sn, &sn.frames[i])
		if err != nil {
			return nil, nil, err
		}
		if n := len(all); n > 0 && all[n-1].off+all[n-1].n == m.off {
			all[n-1].n += m.n
			continue
		}
		all = append(all, extent{m.off, m.n})
	}
	c.file.hold() // it is ours, so it is open
	return c.file, all, nil
}

// begin makes a new, empty copy. Who reads the old one has it to its end.
func (c *gzipCopy) begin(dir string) error {
	f, err := os.CreateTemp(dir, "gzip-*.tmp")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return err
	}
	c.close()
	c.file = &segment{f: f}
	c.file.users.Store(1)
	c.size, c.dead, c.at = 0, 0, make(map[place]gzipMember)
	return nil
}

func (c *gzipCopy) close() {
	if c.file != nil {
		c.file.release() // nothing of it is to stay
	}
	c.file = nil
}

// member returns that of a frame, made if it is not there.
func (c *gzipCopy) member(ctx context.Context, sn *Snapshot, info *frameInfo) (gzipMember, error) {
	key := place{info.seg, info.off}
	old, ok := c.at[key]
	if ok && old.live == info.live {
		return old, nil
	}
	if err := ctx.Err(); err != nil {
		return old, err
	}
	live, err := sn.live(info)
	if err != nil {
		return old, err
	}
	b, err := gzipped(live)
	if err != nil {
		return old, err
	}
	if _, err := c.file.f.WriteAt(b, c.size); err != nil {
		return old, err
	}
	m := gzipMember{c.size, int64(len(b)), info.live}
	c.size += m.n
	if ok {
		c.dead += old.n
	}
	c.at[key] = m
	return m, nil
}

// bound forgets the members of frames that the snapshot does not have, when they
// are many: they were compacted away.
func (c *gzipCopy) bound(sn *Snapshot) {
	if len(c.at) <= 2*len(sn.frames)+1024 {
		return
	}
	for p, m := range c.at {
		if sn.segs[p.seg] == nil {
			c.dead += m.n
			delete(c.at, p)
		}
	}
}

func gzipped(b []byte) ([]byte, error) { return gzippedAt(gzip.DefaultCompression, b) }

func gzippedAt(level int, b []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

// WriteGzip writes the stream of SOIF in gzip members.
func (sn *Snapshot) WriteGzip(ctx context.Context, w io.Writer) error {
	file, all, err := sn.s.gzip.members(ctx, sn)
	if err != nil {
		return err
	}
	defer file.release()
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeFile(w, file.f, e.off, e.n); err != nil {
			return err
		}
	}
	return nil
}

// Sync returns when all changes made until now are in the index.
func (s *Store) Sync() error { return s.flush() }

// Prepare makes ready what readers of all of the collection are sent, and
// returns the length of its zstd form. A gzip copy is made only once there was a
// reader who wanted one.
func (s *Store) Prepare(ctx context.Context) (n int64, err error) {
	err = s.withSnapshot(func(sn *Snapshot) error {
		n = sn.packedAt[len(sn.frames)]
		if !s.gzip.wanted() {
			return nil
		}
		file, _, err := s.gzip.members(ctx, sn)
		if err == nil {
			err = file.release()
		}
		return err
	})
	return n, err
}

func (c *gzipCopy) wanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file != nil
}

// WriteSinceGzip is WriteSince in gzip members; from 0 they are kept ready.
func (s *Store) WriteSinceGzip(ctx context.Context, w io.Writer, after Cursor) error {
	if after.Seq == 0 {
		return s.withSnapshot(func(sn *Snapshot) error {
			head, tail, err := sn.framing()
			if err != nil {
				return err
			}
			if err := writeGzip(w, head); err != nil {
				return err
			}
			if err := sn.WriteGzip(ctx, w); err != nil {
				return err
			}
			return writeGzip(w, tail)
		})
	}
	z := gzip.NewWriter(w)
	if err := s.WriteSince(ctx, z, after); err != nil {
		return err // not closed: the stream shall not look whole
	}
	return z.Close()
}

func writeGzip(w io.Writer, b []byte) error {
	b, err := storedGzip(b)
	if err != nil {
		return err
	}
	return write(w, b)
}
