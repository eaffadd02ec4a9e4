package segment

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options say how much a store holds.
type Options struct {
	Disk    int64 // bytes of all files; 1 GiB if 0
	Segment int64 // bytes of a segment; 64 MiB if 0, and at most a 16th of Disk
	Log     *slog.Logger
}

// smallShare is the part of the disk, of 10, that new objects have: those nobody asked for
// again go from there, the others move on to the main queue.
const smallShare = 1

// A Store keeps objects. Its methods may be called at once from many goroutines.
type Store struct {
	dir   string
	opt   Options
	lock  *os.File
	salt  uint32
	index index
	seq   atomic.Uint64

	sealing sync.WaitGroup // segments that get their tables
	blocks  sync.Pool      // *[blockSize]byte, to check what is read

	// reclaiming is held while a segment is taken back.
	reclaiming sync.Mutex

	// mu guards what follows.
	mu     sync.Mutex
	queue  [2][]*segment // oldest first; the last of each may be written
	used   [2]int64      // bytes of the segments of a queue, and of the files of their records
	last   uint32        // number of the newest segment
	ghost  ghosts
	closed bool
}

// The queues of S3-FIFO.
const (
	small = iota
	main
)

// ErrGone is what has left the store meanwhile.
var ErrGone = fmt.Errorf("the object has left the cache: %w", iofs.ErrNotExist)

// Open opens the store in dir, which is made if it is absent, and which no other
// process may have open.
func Open(dir string, opt Options) (*Store, error) {
	if opt.Disk <= 0 {
		opt.Disk = 1 << 30
	}
	if opt.Segment <= 0 {
		opt.Segment = 64 << 20
	}
	opt.Segment = max(min(opt.Segment, opt.Disk/16), 64<<10)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(dir, "body"), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: another process has this cache open: %w", dir, err)
	}
	s := &Store{dir: dir, opt: opt, lock: lock}
	if s.salt, err = saltOf(lock); err == nil {
		err = s.load()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close seals what is being written and lets go of all files. What is open of
// objects stays readable.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.sealing.Wait()
	s.mu.Lock()
	all := append(append([]*segment(nil), s.queue[small]...), s.queue[main]...)
	s.mu.Unlock()
	var errs []error
	for _, g := range all {
		if !g.sealed {
			errs = append(errs, s.seal(g))
		}
		g.release()
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// MaxInline is the largest body that is kept in a segment, in bytes. Larger ones
// are written to a Body.
func (s *Store) MaxInline() int64 { return min(s.opt.Segment/4, 8<<20) }

// Put keeps an object: what its owner knows of it, and its body of at most MaxInline
// bytes. What is there under its key stays, until it is removed or leaves.
func (s *Store) Put(key Key, meta, body []byte, came time.Time) (Ref, error) {
	if len(meta) > maxMeta || int64(len(body)) > s.MaxInline() {
		return Ref{}, fmt.Errorf("an object of %d and %d bytes: %w", len(meta), len(body), syscall.EFBIG)
	}
	r := record{kind: kindInline, key: key, seq: s.seq.Add(1), came: came.Unix(), meta: len(meta), body: int64(len(body))}
	return s.put(&r, r.appendHead(nil, s.salt, meta, appendSums(nil, body)), body)
}

// put appends a new record and lets it be found.
func (s *Store) put(r *record, head, body []byte) (Ref, error) {
	if err := s.room(r); err != nil {
		return Ref{}, err
	}
	s.mu.Lock()
	to := small
	if s.ghost.take(r.key) {
		to = main // it went too soon
	}
	s.mu.Unlock()
	g, at, err := s.write(to, r, head, body)
	if err != nil {
		return Ref{}, err
	}
	defer g.writers.Done()
	s.index.add(entry{key: r.key, seq: r.seq, seg: g.id, at: uint32(at / align), came: uint32(r.came), checked: r.kind == kindInline, file: r.kind == kindFile})
	return Ref{r.key, r.seq}, nil
}

// Remove takes out what is there of a key up to a reference, or all if the number
// in it is 0. It lasts.
func (s *Store) Remove(ref Ref) error {
	if ref.seq == 0 {
		ref.seq = s.seq.Add(1)
	}
	n := 0
	for _, e := range s.index.find(nil, ref.key) {
		if e.seq <= ref.seq {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	r := record{kind: kindGone, key: ref.key, seq: ref.seq, came: time.Now().Unix()}
	if err := s.room(&r); err != nil {
		return err
	}
	if err := s.gone(r); err != nil {
		return err
	}
	for _, e := range s.index.find(nil, ref.key) {
		if e.seq <= ref.seq {
			s.drop(e)
		}
	}
	return nil
}

// RemoveAll takes out all there is of a key. It lasts.
func (s *Store) RemoveAll(k Key) error { return s.Remove(Ref{key: k}) }

// Forget takes out one object and leaves others of its key. A start may find it
// again: it is for what something newer stands for.
func (s *Store) Forget(ref Ref) { s.drop(entry{key: ref.key, seq: ref.seq}) }

// Refresh keeps an object anew with other meta, in place of what it was, and
// returns what it is found by from then on.
func (s *Store) Refresh(ref Ref, meta []byte, came time.Time) (Ref, error) {
	to, err := s.Copy(ref, meta, came)
	if err == nil {
		s.Forget(ref)
	}
	return to, err
}

// Copy keeps the body of an object with other meta as one more of its key.
func (s *Store) Copy(ref Ref, meta []byte, came time.Time) (Ref, error) {
	o, err := s.Open(ref)
	if err != nil {
		return Ref{}, err
	}
	defer o.Close()
	if o.f != o.g.f {
		return s.link(o, meta, came)
	}
	body := make([]byte, o.Size)
	if n, err := o.ReadAt(body, 0); int64(n) < o.Size {
		return Ref{}, err
	}
	return s.Put(ref.key, meta, body, came)
}

// link keeps an object anew whose body is in a file of its own: under another name.
func (s *Store) link(o *Object, meta []byte, came time.Time) (Ref, error) {
	if len(meta) > maxMeta {
		return Ref{}, errFull
	}
	r := record{kind: kindFile, key: o.ref.key, seq: s.seq.Add(1), came: came.Unix(), meta: len(meta), body: o.Size}
	if err := os.Link(s.bodyPath(o.ref.seq), s.bodyPath(r.seq)); err != nil {
		return Ref{}, err
	}
	ref, err := s.put(&r, r.appendHead(nil, s.salt, meta, o.sums), nil)
	if err != nil {
		return Ref{}, errors.Join(err, removeFile(s.bodyPath(r.seq)))
	}
	return ref, nil
}

// Resize changes how many bytes all files may have. What is too much goes with what
// is written next.
func (s *Store) Resize(disk int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.Disk = max(disk, 16*s.opt.Segment)
}

// gone writes that what there is of a key up to a number is gone, from all segments
// there are.
func (s *Store) gone(r record) error {
	s.mu.Lock()
	r.body = int64(s.last)
	s.mu.Unlock()
	g, _, err := s.write(small, &r, r.appendHead(nil, s.salt, nil, nil), nil)
	if err == nil {
		g.writers.Done()
	}
	return err
}

// saltOf is the salt in the file that is locked, made if there is none.
func saltOf(f *os.File) (uint32, error) {
	var b [4]byte
	_, err := f.ReadAt(b[:], 0)
	if err == io.EOF {
		rand.Read(b[:])
		_, err = f.WriteAt(b[:], 0)
	}
	return binary.LittleEndian.Uint32(b[:]), err
}

// drop takes an entry out of the index, and its file away if it has one.
func (s *Store) drop(e entry) {
	file := false
	s.index.change(e.key, e.seq, func(e *entry) bool {
		file = e.file
		return false
	})
	if file {
		s.removeBody(e.seq)
	}
}

// Use counts that an object answered.
func (s *Store) Use(ref Ref) {
	s.index.change(ref.key, ref.seq, func(e *entry) bool {
		if e.uses < maxUses {
			e.uses++
		}
		return true
	})
}

// A Ref is an object in the store, which may have left since.
type Ref struct {
	key Key
	seq uint64
}

// Find returns the objects of a key, newest first.
func (s *Store) Find(key Key) []Ref {
	var some [4]entry
	found := s.index.find(some[:0], key)
	all := make([]Ref, len(found))
	for i, e := range found {
		j := i
		for j > 0 && all[j-1].seq < e.seq {
			all[j] = all[j-1]
			j--
		}
		all[j] = Ref{key, e.seq}
	}
	return all
}

// Has reports whether there is an object of a key.
func (s *Store) Has(k Key) bool { return s.index.has(k) }

// Stats are what a store holds.
type Stats struct {
	Objects     int
	Index       int64 // bytes of the index in memory
	Disk        int64 // bytes of all files
	Small, Main int   // segments
}

// Stats returns what the store holds.
func (s *Store) Stats() Stats {
	var st Stats
	st.Objects, st.Index = s.index.stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Index += int64(4 * len(s.ghost.slot))
	st.Disk = s.used[small] + s.used[main]
	st.Small, st.Main = len(s.queue[small]), len(s.queue[main])
	return st
}
