package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"go.etcd.io/bbolt"
)

// # The whole collection
//
// Since frames hold whole objects and zstd frames can follow one another, the
// compressed collection is the bodies of all frames as they lie on disk: nothing
// is packed when it is asked for. Only a frame some of whose objects are dead is
// packed again without them; Compact is what keeps such frames few.

// A Snapshot is the collection at one moment. It stays as it is whatever becomes
// of the store, at the cost of disk space when Compact has removed segments it
// needs. It must be closed. Its methods may be called concurrently.
type Snapshot struct {
	s      *Store
	segs   map[uint32]*segment
	frames []frameInfo
	starts []int64 // where each frame's objects start in the stream, and the end
	cursor Cursor

	packedAt []int64 // where each frame starts in the compressed stream, and the end
	dirty    bool    // some have dead objects, which makes packedAt wrong

	packs map[int][]byte // packed forms of those, once settle has made them
}

// Snapshot returns the collection as it is now. It costs a pass over the frames,
// not the objects: some 90 bytes of memory for each 32 KiB.
func (s *Store) Snapshot() (*Snapshot, error) {
	// No segment is removed while the lock is held: Compact does it under it.
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return nil, err
	}
	sn := &Snapshot{s: s, segs: make(map[uint32]*segment), starts: []int64{0}, packedAt: []int64{0}}
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := bucketsOf(tx)
		if b.frame == nil {
			return nil
		}
		t, _, epoch := b.totals()
		sn.cursor = Cursor{epoch, t.seq}
		return sn.load(b)
	})
	if err != nil {
		sn.Close()
		return nil, err
	}
	return sn, nil
}

func (sn *Snapshot) load(b buckets) error {
	size, packed := int64(0), int64(0)
	c := b.frame.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		f, err := parseFrameInfo(k, v)
		if err != nil {
			return err
		}
		if f.live == 0 {
			continue
		}
		if sn.segs[f.seg] == nil {
			seg := sn.s.segment(f.seg)
			if seg == nil {
				return fmt.Errorf("segment %08x is gone: %w", f.seg, ErrDamaged)
			}
			sn.segs[f.seg] = seg
		}
		size += f.live
		sn.frames = append(sn.frames, f)
		sn.starts = append(sn.starts, size)
		packed += int64(f.length - frameHeader - f.meta)
		sn.packedAt = append(sn.packedAt, packed)
		sn.dirty = sn.dirty || f.dead != nil
	}
	return nil
}

// Close lets go of the files. Calls that are under way have to end first.
func (sn *Snapshot) Close() error {
	var err error
	for _, seg := range sn.segs {
		err = errors.Join(err, seg.release())
	}
	sn.segs = nil
	return err
}

// Size returns the length of the stream of SOIF.
func (sn *Snapshot) Size() int64 { return sn.starts[len(sn.frames)] }

// Cursor returns the cursor of the snapshot: after it there are no changes yet.
func (sn *Snapshot) Cursor() Cursor { return sn.cursor }

// ReadAt reads the stream of SOIF, as io.ReaderAt says.
func (sn *Snapshot) ReadAt(p []byte, off int64) (n int, err error) {
	i := sort.Search(len(sn.frames), func(i int) bool { return sn.starts[i+1] > off })
	for ; n < len(p) && i < len(sn.frames); i++ {
		live, err := sn.live(&sn.frames[i])
		if err != nil {
			return n, err
		}
		n += copy(p[n:], live[off+int64(n)-sn.starts[i]:])
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// live returns the objects of a frame that are not dead.
func (sn *Snapshot) live(info *frameInfo) ([]byte, error) {
	f, err := sn.frame(info)
	if err != nil || info.dead == nil {
		return f.raw, err
	}
	live := make([]byte, 0, info.live)
	for slot := range f.metas {
		if !info.isDead(slot) {
			live = append(live, f.object(slot)...)
		}
	}
	if int64(len(live)) != info.live {
		return nil, sn.segs[info.seg].at(int64(info.off), fmt.Errorf("%d bytes for %d: %w", len(live), info.live, ErrDamaged))
	}
	return live, nil
}

func (sn *Snapshot) frame(info *frameInfo) (*frame, error) {
	key := place{info.seg, info.off}
	if f := sn.s.frames.get(key); f != nil {
		return f, nil
	}
	f, err := sn.s.unpacked(sn.segs[info.seg], int64(info.off))
	if err != nil {
		return new(frame), err
	}
	sn.s.frames.put(key, f)
	return f, nil
}

// Write writes the stream of SOIF.
func (sn *Snapshot) Write(ctx context.Context, w io.Writer) error {
	for i := range sn.frames {
		if err := ctx.Err(); err != nil {
			return err
		}
		live, err := sn.live(&sn.frames[i])
		if err != nil {
			return err
		}
		if _, err := w.Write(live); err != nil {
			return err
		}
	}
	return nil
}

// WriteZstd writes the stream of SOIF in zstd frames: those on disk, each checked
// before it is copied for the first time, and those with dead objects packed
// again without them.
func (sn *Snapshot) WriteZstd(ctx context.Context, w io.Writer) error {
	for i := range sn.frames {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := sn.writePacked(w, i); err != nil {
			return err
		}
	}
	sn.s.checked.bound(len(sn.frames))
	return nil
}

func (sn *Snapshot) writePacked(w io.Writer, i int) error {
	info := &sn.frames[i]
	at := place{info.seg, info.off}
	if info.dead == nil && sn.s.checked.has(at) {
		head := frameHeader + info.meta
		return writeFile(w, sn.segs[info.seg].f, int64(info.off)+int64(head), int64(info.length-head))
	}
	b, err := sn.packed(info)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil || info.dead != nil {
		return err
	}
	sn.s.checked.add(at)
	return nil
}

func (sn *Snapshot) packed(info *frameInfo) ([]byte, error) {
	if info.dead != nil {
		return sn.repack(info)
	}
	f, err := sn.segs[info.seg].read(int64(info.off))
	if err != nil {
		return nil, err
	}
	return f.packed, nil
}

// Ready returns the length of the compressed stream if all of it is on disk as it
// will be written, -1 if some has to be packed first.
func (sn *Snapshot) Ready() int64 {
	if sn.dirty {
		return -1
	}
	return sn.packedAt[len(sn.frames)]
}

// ReadZstdAt reads the stream that WriteZstd writes, as io.ReaderAt says, as long
// as it is Ready.
func (sn *Snapshot) ReadZstdAt(p []byte, off int64) (n int, err error) {
	i := sort.Search(len(sn.frames), func(i int) bool { return sn.packedAt[i+1] > off })
	for ; n < len(p) && i < len(sn.frames); i++ {
		at := off + int64(n) - sn.packedAt[i]
		m := int(min(int64(len(p)-n), sn.packedAt[i+1]-sn.packedAt[i]-at))
		if err := sn.readPacked(i, p[n:n+m], at); err != nil {
			return n, err
		}
		n += m
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (s *Store) withSnapshot(f func(sn *Snapshot) error) error {
	sn, err := s.Snapshot()
	if err != nil {
		return err
	}
	return errors.Join(f(sn), sn.Close())
}
