package segment

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// An Object is open to be read; what leaves the store meanwhile stays readable until
// Close.
type Object struct {
	Meta []byte
	Size int64 // of the body, in bytes
	Came time.Time

	s     *Store
	ref   Ref
	g     *segment // holds the body, or nil
	f     *os.File // of the segment, or its own
	at    int64    // of the body in f
	sums  []byte
	whole bool         // the body was checked
	seen  atomic.Int64 // bytes from its beginning that were checked
}

// Open opens an object. One that has left since it was found is ErrGone; so is one
// that turns out damaged, which leaves then.
func (s *Store) Open(ref Ref) (*Object, error) {
	for range 8 { // it may be moved between the two looks
		var e entry
		s.index.change(ref.key, ref.seq, func(x *entry) bool {
			e = *x
			return true
		})
		if e.seq == 0 {
			return nil, ErrGone
		}
		g := s.holdSegment(e.seg)
		if g == nil {
			continue
		}
		o, err := s.open(g, e)
		if err == nil {
			return o, nil
		}
		g.release()
		if !errors.Is(err, errTorn) && !errors.Is(err, iofs.ErrNotExist) {
			return nil, err
		}
		s.opt.Log.Warn("cache: an object is damaged, and dropped", "segment", g.path, "at", int64(e.at)*align, "err", err)
		s.drop(e)
		return nil, ErrGone
	}
	return nil, ErrGone
}

// holdSegment holds a segment of a number, nil if it was taken back.
func (s *Store) holdSegment(id uint32) *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queue {
		// Numbers rise along a queue.
		lo, hi := 0, len(q)
		for lo < hi {
			if mid := (lo + hi) / 2; q[mid].id < id {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo < len(q) && q[lo].id == id && q[lo].hold() {
			return q[lo]
		}
	}
	return nil
}

func (s *Store) open(g *segment, e entry) (*Object, error) {
	at := int64(e.at) * align
	b := make([]byte, 4<<10)
	n, err := g.f.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return nil, err
	}
	b = b[:n]
	r, err := parseFixed(b)
	if err != nil {
		return nil, err
	}
	if r.key != e.key || r.seq != e.seq {
		return nil, errTorn
	}
	if size := r.bodyAt(); size <= int64(len(b)) {
		b = b[:size]
	} else {
		b = append(b, make([]byte, size-int64(len(b)))...)
		if _, err := g.f.ReadAt(b[n:], at+int64(n)); err == io.EOF {
			return nil, errTorn
		} else if err != nil {
			return nil, err
		}
	}
	if err := r.checkHead(b, s.salt); err != nil {
		return nil, err
	}
	meta := headSize + r.meta
	o := &Object{Meta: b[headSize:meta:meta], Size: r.body, Came: time.Unix(r.came, 0), s: s, ref: Ref{e.key, e.seq}, g: g, f: g.f, at: at + r.bodyAt(), sums: b[meta:], whole: e.checked}
	if r.kind == kindInline {
		return o, o.check()
	}
	if o.f, err = os.Open(s.bodyPath(e.seq)); err != nil {
		return nil, err
	}
	o.at = 0
	return o, nil
}

// check checks the body, once in the life of the process for one in a segment.
func (o *Object) check() error {
	if o.whole {
		return nil
	}
	if err := checkBody(o.f, o.at, o.Size, o.sums); err != nil {
		return err
	}
	o.whole = true
	o.s.index.change(o.ref.key, o.ref.seq, func(e *entry) bool {
		e.checked = true
		return true
	})
	return nil
}

// ReadAt reads from the body. Of a body in a file of its own the blocks it reads of
// are checked, until it was read from its beginning to its end once in the life of
// the process; a damaged one is an error, and the object leaves the store.
func (o *Object) ReadAt(p []byte, off int64) (int, error) {
	if off >= o.Size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), o.Size-off)]
	if o.whole {
		n, err := o.f.ReadAt(p, o.at+off)
		if err == nil && off+int64(n) == o.Size {
			err = io.EOF
		}
		return n, err
	}
	done := 0
	buf, _ := o.s.blocks.Get().(*[blockSize]byte)
	if buf == nil {
		buf = new([blockSize]byte)
	}
	defer o.s.blocks.Put(buf)
	for done < len(p) {
		i := (off + int64(done)) / blockSize
		block := buf[:min(blockSize, o.Size-i*blockSize)]
		_, err := o.f.ReadAt(block, i*blockSize)
		if err == nil {
			err = checkBlock(o.sums, int(i), block)
		}
		if err != nil {
			o.s.drop(entry{key: o.ref.key, seq: o.ref.seq})
			return done, fmt.Errorf("%s: %w", o.f.Name(), err)
		}
		o.saw(i*blockSize, int64(len(block)))
		done += copy(p[done:], block[off+int64(done)-i*blockSize:])
	}
	if off+int64(done) == o.Size {
		return done, io.EOF
	}
	return done, nil
}

// saw notes a block that was right. When all were, the body is not checked again
// by those who open it from now on.
func (o *Object) saw(at, n int64) {
	if !o.seen.CompareAndSwap(at, at+n) || at+n != o.Size {
		return
	}
	o.s.index.change(o.ref.key, o.ref.seq, func(e *entry) bool {
		e.checked = true
		return true
	})
}

// File is the file that has the body, and where in it. What is read of it has been
// checked if ok.
func (o *Object) File() (f *os.File, at int64, ok bool) { return o.f, o.at, o.whole }

// Ref is what the object is found by.
func (o *Object) Ref() Ref { return o.ref }

// Close lets go of the object.
func (o *Object) Close() error {
	var err error
	if o.f != o.g.f {
		err = o.f.Close()
	}
	o.g.release()
	return err
}

func (s *Store) bodyPath(seq uint64) string {
	return filepath.Join(s.dir, "body", fmt.Sprintf("%016x", seq))
}

// removeBody removes the file of a record, if it has one.
func (s *Store) removeBody(seq uint64) {
	if err := removeFile(s.bodyPath(seq)); err != nil {
		s.opt.Log.Error("cache: a file stays that no object has", "err", err)
	}
}

// A Body is a body too large for a segment that is being written to a file of its own.
type Body struct {
	s    *Store
	seq  uint64
	f    *os.File
	size int64
	sums []byte
	part []byte // of the last block, which has no sum yet
	gone int64  // bytes that were discarded
}

// Create begins a body. It has to be ended by PutBody or Drop.
func (s *Store) Create() (*Body, error) {
	seq := s.seq.Add(1)
	f, err := os.OpenFile(s.bodyPath(seq), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &Body{s: s, seq: seq, f: f, part: make([]byte, 0, blockSize)}, nil
}

// Write appends to the body.
func (b *Body) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	b.size += int64(n)
	for p = p[:n]; len(p) > 0; {
		k := min(len(p), blockSize-len(b.part))
		b.part = append(b.part, p[:k]...)
		p = p[k:]
		if len(b.part) == blockSize {
			b.sums = appendSums(b.sums, b.part)
			b.part = b.part[:0]
		}
	}
	return n, err
}

// ReadAt reads what was written.
func (b *Body) ReadAt(p []byte, off int64) (int, error) { return b.f.ReadAt(p, off) }

// Size is how much was written, in bytes.
func (b *Body) Size() int64 { return b.size }

// Drop removes a body that is not wanted.
func (b *Body) Drop() error {
	err := b.f.Close()
	return errors.Join(err, removeFile(b.s.bodyPath(b.seq)))
}

// PutBody keeps an object whose body was written to b.
func (s *Store) PutBody(key Key, meta []byte, b *Body, came time.Time) (Ref, error) {
	b.sums = appendSums(b.sums, b.part)
	r := record{kind: kindFile, key: key, seq: b.seq, came: came.Unix(), meta: len(meta), body: b.size}
	if err := b.f.Close(); err != nil || len(meta) > maxMeta {
		return Ref{}, errors.Join(err, removeFile(s.bodyPath(b.seq)), errFull)
	}
	ref, err := s.put(&r, r.appendHead(nil, s.salt, meta, b.sums), nil)
	if err != nil {
		return Ref{}, errors.Join(err, removeFile(s.bodyPath(b.seq)))
	}
	return ref, nil
}

// Discard gives the disk back what is before an offset of a body that is being
// written and will be dropped: it cannot be read any more.
func (b *Body) Discard(off int64) {
	if off &^= blockSize - 1; off > b.gone {
		punch(b.f, b.gone, off-b.gone)
		b.gone = off
	}
}
