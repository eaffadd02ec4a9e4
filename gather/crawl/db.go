package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// A DB is the durable memory of a crawl: one bbolt file with the buckets
//
//	meta    name -> value: "format"; "seed" of the hashes; "visit" and its "counts"
//	server  ServerID -> a Server
//	robots  ServerID -> the text of its robots.txt
//	doc     DocID -> a Doc
//	seen    DocID/252 -> for each of these documents the hash of its URL, 0 when it is gone
//	own     ServerID, n/128 -> the documents of a server, in the order in which they were met
//	queue   ServerID, order -> flags, DocID: what is to be fetched out of that order
//	hand    DocID -> nothing: the documents of file trees that were asked for by their URL
//	link    DocID -> the documents it refers to
//	in      DocID/128 -> of each of these, how many documents refer to it
//	linked  ServerID/128 -> of each of these, how many servers refer to its documents, in how many links
//	tie     ServerID, ServerID/128 -> of each of these that refers to the first, in how many links
//	lost    DocID -> the server of one that was forgotten, while others refer to it
//	sum     MD5, DocID -> nothing: the documents stored
//	root    RootID -> how it is referred to in doc, how many documents it has
//	hosts   RootID, ServerID -> nothing: the servers that count for a root
//	gone    DocID -> outcome, reason: what the visit is to delete at its end
//
// crawl.6 has the records. Documents are numbered as they are met, so that
// entering them appends: to doc, to seen, and to the list of their server, which
// is its queue as well. How far the list has been dealt with by a visit is all
// that remains to be said, and each document knows the visit that dealt with it
// last: nothing is queued again for the next visit, and nothing is taken off.
//
// What is asked for all the time is in memory: the hashes of all URLs (known)
// and the servers. One goroutine writes at a time, in big transactions. One that
// deals with a page writes its record, the documents it led to, its links and
// the state of its server, after the Handler has the page: so there is nothing
// to repair after a crash, and at worst a document is fetched twice.
//
// For file trees only the root is in the queue. What their folders hold is
// compared with doc, folder by folder.
type DB struct {
	db    *bbolt.DB
	lg    *slog.Logger
	known known

	mu        sync.Mutex // guards what follows, and most of a visit
	visit     *visit     // the one that runs, or nil
	last      DocID      // the last number given
	servers   []Server   // by ServerID, from 1
	byOrigin  map[string]ServerID
	roots     map[uint64]*rooted
	rootIDs   []uint64 // by the number that stands for them in doc, from 1
	dirty     map[ServerID]struct{}
	deep      bool // the queue has entries
	uncounted bool // it is of the format before this one
}

// rooted is what is kept of a root.
type rooted struct {
	number int
	docs   int // that count for its limit
	hosts  map[ServerID]struct{}
	dirty  bool
}

// format is what a database says that it is. History: "harvest frontier 1",
// which was of other buckets and is converted; "harvest crawl 2", in which the
// links that lead to servers were not counted, and are when it is opened; this.
const (
	format  = "harvest crawl 3"
	format2 = "harvest crawl 2"
)

var (
	metaBucket   = []byte("meta")
	serverBucket = []byte("server")
	robotsBucket = []byte("robots")
	docBucket    = []byte("doc")
	seenBucket   = []byte("seen")
	ownBucket    = []byte("own")
	queueBucket  = []byte("queue")
	handBucket   = []byte("hand")
	linkBucket   = []byte("link")
	inBucket     = []byte("in")
	sumBucket    = []byte("sum")
	rootBucket   = []byte("root")
	hostsBucket  = []byte("hosts")
	goneBucket   = []byte("gone")
	linkedBucket = []byte("linked")
	tieBucket    = []byte("tie")
	lostBucket   = []byte("lost")
	noteBucket   = []byte("note")
)

var buckets = [][]byte{metaBucket, serverBucket, robotsBucket, docBucket, seenBucket, ownBucket, queueBucket, handBucket,
	linkBucket, inBucket, sumBucket, rootBucket, hostsBucket, goneBucket, linkedBucket, tieBucket, lostBucket, noteBucket}

// errRecord is what a damaged record is told by.
var errRecord = errors.New("damaged record")

// OpenDB opens the database kept in a file, or begins one: with what is in a
// frontier.db beside it, which is of the format before this and then removed.
func OpenDB(path string, lg *slog.Logger) (_ *DB, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f := &DB{lg: lg}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	f.db, err = bbolt.Open(path, 0o644, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	whole, err := f.begin()
	if err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, err
	}
	old := filepath.Join(filepath.Dir(path), "frontier.db")
	_, there := os.Stat(old)
	if there == nil && !whole {
		if err := f.convert(old); err != nil {
			return nil, fmt.Errorf("converting frontier.db: %w", err)
		}
	}
	if f.uncounted {
		if err := f.countLinks(); err != nil {
			return nil, fmt.Errorf("counting links: %w", err)
		}
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	if there == nil {
		return f, os.Remove(old)
	}
	return f, nil
}

// begin makes the buckets of a new database. It is whole once it has said what
// it is, which is the last thing done to a new one: what a conversion that was
// cut off has left is thrown away.
func (f *DB) begin() (whole bool, err error) {
	return whole, f.db.Update(func(tx *bbolt.Tx) error {
		if m := tx.Bucket(metaBucket); m != nil {
			if have := m.Get([]byte("format")); string(have) == format || string(have) == format2 {
				whole = true
				_, err := tx.CreateBucketIfNotExists(noteBucket) // one may be older
				return err
			} else if have != nil {
				return fmt.Errorf("format '%s', not '%s'", clip(string(have)), format)
			}
		}
		for _, name := range buckets {
			if tx.Bucket(name) != nil {
				if err := tx.DeleteBucket(name); err != nil {
					return err
				}
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put([]byte("seed"), binary.BigEndian.AppendUint64(nil, rand.Uint64()))
	})
}

func (f *DB) finish() error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		m := tx.Bucket(metaBucket)
		if string(m.Get([]byte("format"))) == format {
			return nil
		}
		return m.Put([]byte("format"), []byte(format))
	})
}

// load reads what is in memory; also to begin again after a transaction that
// failed.
func (f *DB) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known.free()
	f.last, f.servers, f.byOrigin = 0, nil, make(map[string]ServerID)
	f.roots, f.rootIDs, f.dirty = make(map[uint64]*rooted), nil, make(map[ServerID]struct{})
	return f.db.View(func(tx *bbolt.Tx) error {
		seed := tx.Bucket(metaBucket).Get([]byte("seed"))
		if len(seed) != 8 {
			return fmt.Errorf("seed: %w", errRecord)
		}
		f.known.seed = binary.BigEndian.Uint64(seed)
		f.uncounted = string(tx.Bucket(metaBucket).Get([]byte("format"))) == format2
		k, _ := tx.Bucket(queueBucket).Cursor().First()
		f.deep = k != nil
		return errors.Join(f.loadServers(tx), f.loadRoots(tx), f.loadSeen(tx))
	})
}

func (f *DB) loadServers(tx *bbolt.Tx) error {
	return tx.Bucket(serverBucket).ForEach(func(k, v []byte) error {
		s, err := decodeServer(v)
		if err == nil && (len(k) != 4 || binary.BigEndian.Uint32(k) != uint32(len(f.servers)+1)) {
			err = errRecord
		}
		if err != nil {
			return fmt.Errorf("server %d: %w", len(f.servers)+1, err)
		}
		s.ID = ServerID(len(f.servers) + 1)
		f.servers = append(f.servers, s)
		f.byOrigin[s.Origin] = s.ID
		return nil
	})
}

func (f *DB) loadRoots(tx *bbolt.Tx) error {
	err := tx.Bucket(rootBucket).ForEach(func(k, v []byte) error {
		n, used := binary.Uvarint(v)
		docs, used2 := binary.Uvarint(v[max(used, 0):])
		if len(k) != 8 || used <= 0 || used2 <= 0 || n == 0 || n > 1<<20 {
			return fmt.Errorf("root: %w", errRecord)
		}
		id := binary.BigEndian.Uint64(k)
		f.roots[id] = &rooted{number: int(n), docs: int(docs), hosts: make(map[ServerID]struct{})}
		for len(f.rootIDs) < int(n) {
			f.rootIDs = append(f.rootIDs, 0)
		}
		f.rootIDs[n-1] = id
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(hostsBucket).ForEach(func(k, _ []byte) error {
		if len(k) != 12 {
			return fmt.Errorf("hosts: %w", errRecord)
		}
		if r := f.roots[binary.BigEndian.Uint64(k)]; r != nil {
			r.hosts[ServerID(binary.BigEndian.Uint32(k[8:]))] = struct{}{}
		}
		return nil
	})
}

// seenStep is how many hashes are in one record: two of them fill a page.
const seenStep = 252

func (f *DB) loadSeen(tx *bbolt.Tx) error {
	c := tx.Bucket(seenBucket).Cursor()
	if k, _ := c.Last(); len(k) == 4 {
		n := (int(binary.BigEndian.Uint32(k)) + 1) * seenStep
		if int64(n) < tx.Size() { // else the key is not to be believed
			f.known.reserve(n)
		}
	}
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) != 4 || len(v)%8 != 0 || len(v) > 8*seenStep {
			return fmt.Errorf("seen: %w", errRecord)
		}
		first := DocID(binary.BigEndian.Uint32(k))*seenStep + 1
		for i := 0; i < len(v); i += 8 {
			if h := binary.BigEndian.Uint64(v[i:]); h != 0 {
				f.known.set(h, first+DocID(i/8))
			}
		}
		if k[3] == 0 { // now and then
			forgetIn(tx)
		}
		f.last = max(f.last, first+DocID(len(v)/8)-1)
	}
	return nil
}

// Close closes the database, once no visit runs and nobody reads.
func (f *DB) Close() error {
	f.known.free()
	if f.db == nil {
		return nil
	}
	return f.db.Close()
}

// A Visited is what is known of the last visit.
type Visited struct {
	Number  uint64
	Open    bool // it was cut off, or runs
	Queued  bool // it takes only what is queued
	Force   bool
	Started time.Time
	Ended   time.Time // of the last that came to its end
	Whole   time.Time // of the last that came to its end and was of everything

	seeded bool
}

func (s *Visited) append(b []byte) []byte {
	var set uint64
	for i, on := range []bool{s.Open, s.Queued, s.Force, s.seeded} {
		if on {
			set |= 1 << i
		}
	}
	for _, n := range []uint64{s.Number, set, unix(s.Started), unix(s.Ended), unix(s.Whole)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func getVisited(tx *bbolt.Tx) (s Visited) {
	b := tx.Bucket(metaBucket).Get([]byte("visit"))
	switch len(b) {
	case 40:
	case 32: // when all visits counted for the schedule
		b = append(append([]byte(nil), b...), b[24:]...)
	default:
		return s
	}
	set := binary.BigEndian.Uint64(b[8:])
	return Visited{
		Number: binary.BigEndian.Uint64(b),
		Open:   set&1 != 0, Queued: set&2 != 0, Force: set&4 != 0, seeded: set&8 != 0,
		Started: fromUnix(binary.BigEndian.Uint64(b[16:])),
		Ended:   fromUnix(binary.BigEndian.Uint64(b[24:])),
		Whole:   fromUnix(binary.BigEndian.Uint64(b[32:])),
	}
}

func putVisited(tx *bbolt.Tx, s *Visited) error {
	return tx.Bucket(metaBucket).Put([]byte("visit"), s.append(nil))
}

// Visited tells of the last visit.
func (f *DB) Visited() (s Visited, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		s = getVisited(tx)
		return nil
	})
	return s, err
}

// putCounts keeps what a visit has done, and how long that took.
func putCounts(tx *bbolt.Tx, c *Counts, took time.Duration) error {
	b := binary.AppendVarint(nil, int64(took))
	for _, n := range c.all() {
		b = binary.AppendVarint(b, n.Load())
	}
	return tx.Bucket(metaBucket).Put([]byte("counts"), b)
}

// Counted fills in what the last visit had done when it ended or was cut off,
// and tells how long that took. Where nothing is known c is left alone.
func (f *DB) Counted(c *Counts) (took time.Duration, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket).Get([]byte("counts"))
		all := c.all()
		var n []int64
		for len(b) > 0 && len(n) <= len(all) {
			v, used := binary.Varint(b)
			if used <= 0 {
				return nil // damaged: as good as none
			}
			n, b = append(n, v), b[used:]
		}
		if len(n) != 1+len(all) {
			return nil
		}
		took = time.Duration(n[0])
		for i, v := range n[1:] {
			all[i].Store(v)
		}
		return nil
	})
	return took, err
}

// scanStep is how many records one transaction of a scan reads.
const scanStep = 500

// scan calls do with the pairs of a bucket from a key on, in their order, in
// short transactions, between which it may yield what it made of them. do
// returns false to end a transaction early, and all when then says so.
func (f *DB) scan(ctx context.Context, bucket, from []byte, do func(tx *bbolt.Tx, k, v []byte) error, then func() bool) error {
	for more := true; more; {
		err := f.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucket).Cursor()
			k, v := c.Seek(from)
			for n := 0; k != nil && n < scanStep; k, v = c.Next() {
				if err := do(tx, k, v); err != nil {
					return err
				}
				n++
			}
			more = k != nil
			from = append(from[:0:0], k...)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if !then() {
			return nil
		}
		if err := forget(f.db); err != nil {
			return err
		}
	}
	return nil
}

// scanned yields what of makes of the pairs of a bucket from a key on.
func scanned[T any](ctx context.Context, f *DB, bucket, from []byte, of func(tx *bbolt.Tx, k, v []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		type item struct {
			v   T
			err error
		}
		part := make([]item, 0, scanStep)
		done := false
		err := f.scan(ctx, bucket, from, func(tx *bbolt.Tx, k, v []byte) error {
			t, err := of(tx, k, v)
			part = append(part, item{t, err})
			return nil
		}, func() bool {
			for _, i := range part {
				if !yield(i.v, i.err) {
					done = true
					return false
				}
			}
			part = part[:0]
			return true
		})
		if err != nil && !done {
			var none T
			yield(none, err)
		}
	}
}

// root returns what is kept of a root, from now on. mu is held.
func (f *DB) root(id uint64) *rooted {
	r := f.roots[id]
	if r == nil {
		f.rootIDs = append(f.rootIDs, id)
		r = &rooted{number: len(f.rootIDs), hosts: make(map[ServerID]struct{}), dirty: true}
		f.roots[id] = r
	}
	return r
}

// putRoots writes the roots that have changed.
func (f *DB) putRoots(tx *bbolt.Tx) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, r := range f.roots {
		if !r.dirty {
			continue
		}
		key := binary.BigEndian.AppendUint64(nil, id)
		v := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(r.number)), uint64(max(r.docs, 0)))
		if err := tx.Bucket(rootBucket).Put(key, v); err != nil {
			return err
		}
		for s := range maps.Keys(r.hosts) {
			if err := tx.Bucket(hostsBucket).Put(binary.BigEndian.AppendUint32(key[:8:8], uint32(s)), nil); err != nil {
				return err
			}
		}
		r.dirty = false
	}
	return nil
}

func unix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.Unix())
}

func fromUnix(n uint64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(int64(n), 0).UTC()
}
