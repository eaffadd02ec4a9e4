package store

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"syscall"
)

// Get returns the encoded object, in memory of the caller's, and its entry. One
// that is not there wraps fs.ErrNotExist, one whose frame is damaged ErrDamaged.
func (s *Store) Get(oid OID) ([]byte, Entry, error) {
	r, b, err := s.read(oid)
	if err != nil {
		return nil, Entry{}, fmt.Errorf("object %s: %w", oid, err)
	}
	return bytes.Clone(b), r.Entry, nil
}

// Read returns the object as it was when the entry was made, also if it has
// changed since, as long as Compact has not removed that state: then the error
// wraps ESTALE.
func (s *Store) Read(e Entry) ([]byte, error) {
	b, err := s.body(e)
	if err == errMoved {
		var r row
		if r, b, err = s.read(e.OID); err == nil && r.Hash != e.Hash {
			err = syscall.ESTALE
		}
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", e.OID, err)
	}
	return bytes.Clone(b), nil
}

// read returns an object, which aliases what the cache holds, and its row.
func (s *Store) read(oid OID) (row, []byte, error) {
	for {
		r, ok, err := s.state(oid)
		if err != nil {
			return row{}, nil, err
		}
		if !ok || r.gone {
			return row{}, nil, iofs.ErrNotExist
		}
		b, err := s.body(r.Entry)
		if err != errMoved {
			return r, b, err
		}
		// Compact was faster; the index has the new place.
	}
}

// Stat returns the entry of an object.
func (s *Store) Stat(oid OID) (Entry, error) {
	r, ok, err := s.state(oid)
	if err == nil && (!ok || r.gone) {
		err = fmt.Errorf("object %s: %w", oid, iofs.ErrNotExist)
	}
	return r.Entry, err
}

// Entries calls yield with the entry of each of some objects that is there, and
// where in oids it stands, in the order of the index: many at once cost much less
// than one at a time. It ends early when yield returns false.
func (s *Store) Entries(ctx context.Context, oids []OID, yield func(i int, e *Entry) bool) error {
	order := make([]int, len(oids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(oids[a][:], oids[b][:]) })
	return s.view(func(v view) error {
		for n, i := range order {
			if n%forgetEvery == forgetEvery-1 {
				s.forget(v.obj.Tx())
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			r, ok, err := v.state(oids[i])
			if err != nil {
				return err
			}
			if ok && !r.gone && !yield(i, &r.Entry) {
				return nil
			}
		}
		return nil
	})
}

// state returns the latest state of an object, of a deleted one too.
func (s *Store) state(oid OID) (r row, ok bool, err error) {
	s.mu.RLock()
	for _, t := range [2]*table{s.active, s.entering} {
		if t == nil {
			continue
		}
		if found := t.rows[oid]; found != nil {
			r = *found
			s.mu.RUnlock()
			return r, true, nil
		}
	}
	lacks := s.filter.lacks(oid)
	s.mu.RUnlock()
	if lacks {
		return row{}, false, nil
	}
	err = s.view(func(v view) (err error) {
		r, ok, err = v.state(oid)
		return err
	})
	return r, ok, err
}

// Scan yields the objects whose OIDs begin with the hex digits of prefix and
// follow those of after, in order. An object that is there throughout is yielded
// once; those that come or go meanwhile may be there or not. It ends after the
// first error.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		at, err := scanStart(prefix, after)
		if err == nil {
			err = s.flush()
		}
		for err == nil {
			var some []Entry
			if some, err = s.someEntries(prefix, at); err != nil || len(some) == 0 {
				break
			}
			for _, e := range some {
				if !yield(e, nil) {
					return
				}
			}
			at = append(some[len(some)-1].OID[:], 0)
			err = ctx.Err()
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// scanStart returns the first key to look at.
func scanStart(prefix, after string) ([]byte, error) {
	if len(prefix) > 32 || !isHex(prefix) {
		return nil, fmt.Errorf("object name %.40q: not hex digits: %w", prefix, iofs.ErrInvalid)
	}
	if after > prefix {
		if len(after) > 32 || !isHex(after) {
			return nil, fmt.Errorf("object name %.40q: not hex digits: %w", after, iofs.ErrInvalid)
		}
		if len(after) == 32 {
			oid, _ := ParseOID(after)
			return append(oid[:], 0), nil
		}
		prefix = after
	}
	if len(prefix)%2 == 1 {
		prefix += "0"
	}
	return hex.DecodeString(prefix)
}

func (s *Store) someEntries(prefix string, at []byte) (some []Entry, err error) {
	var digits [32]byte
	s.looks.Add(chunk / 16)
	err = s.view(func(v view) error {
		c := v.obj.Cursor()
		for k, value := c.Seek(at); len(k) == len(OID{}) && len(some) < chunk; k, value = c.Next() {
			hex.Encode(digits[:], k)
			if string(digits[:len(prefix)]) != prefix {
				return nil
			}
			r, err := parseRow(OID(k), value)
			if err != nil {
				return err
			}
			some = append(some, r.Entry)
		}
		return nil
	})
	return some, err
}

// Count returns the number of objects.
func (s *Store) Count() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.totals.objects
}

// Vers returns a number that moves when the objects do whose OIDs begin with a
// prefix of two digits, or with "" any; with "url" when a URL comes or goes.
func (s *Store) Vers(prefix string) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch b, err := hex.DecodeString(prefix); {
	case prefix == "url":
		return s.totals.tree
	case err == nil && len(b) == 1:
		return s.totals.vers[b[0]]
	}
	return s.totals.seq
}

// Stats returns figures as of now.
func (s *Store) Stats() (Stats, error) {
	s.mu.RLock()
	st := Stats{
		Objects: s.totals.objects, Bytes: s.totals.bytes, Dead: s.totals.dead,
		Segments: int64(len(s.segs)), Tombstones: s.totals.tombs,
		Seq: s.totals.seq, Epoch: s.epoch,
	}
	s.mu.RUnlock()
	st.Pending = int64(s.pending())
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return st, err
	}
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, iofs.ErrNotExist) {
			continue // Compact removed it
		}
		if err != nil {
			return st, err
		}
		st.Disk += info.Size()
	}
	return st, nil
}

// errMoved says that a segment is gone because Compact has moved its objects.
var errMoved = errors.New("object has moved")

// body returns the object of an entry. It aliases what the cache holds.
func (s *Store) body(e Entry) ([]byte, error) {
	f, err := s.frame(e.at)
	if err != nil {
		return nil, err
	}
	slot := int(e.at.slot)
	if slot >= len(f.metas) || f.metas[slot].oid != e.OID || f.metas[slot].seq != cmp.Or(e.atSeq, e.Seq) {
		return nil, fmt.Errorf("segment %08x: offset %d: another object is there: %w", e.at.seg, e.at.off, ErrDamaged)
	}
	return f.object(slot), nil
}

// frame returns the unpacked frame at a place.
func (s *Store) frame(at loc) (*frame, error) {
	key := place{at.seg, at.off}
	if f := s.frames.get(key); f != nil {
		return f, nil
	}
	seg := s.segment(at.seg)
	if seg == nil {
		return nil, errMoved
	}
	defer seg.release()
	f, err := s.unpacked(seg, int64(at.off))
	if err != nil {
		return nil, err
	}
	s.frames.put(key, f)
	return f, nil
}

func (s *Store) unpacked(seg *segment, off int64) (*frame, error) {
	f, err := seg.read(off)
	if err != nil {
		return nil, err
	}
	if err := f.unpack(s.dec); err != nil {
		return nil, seg.at(off, err)
	}
	f.packed = nil
	return f, nil
}

// segment returns an open segment, held for the caller, or nil when Compact has
// removed it.
func (s *Store) segment(id uint32) *segment {
	s.mu.RLock()
	seg := s.segs[id]
	s.mu.RUnlock()
	if seg == nil || !seg.hold() {
		return nil
	}
	return seg
}

// A frameCache keeps the frames last read, since neighbours are often read
// together: up to cacheBytes of them, objects larger than a few frames never.
type frameCache struct {
	mu    sync.Mutex
	size  int
	order list.List // of *cachedFrame, the last used first
	at    map[place]*list.Element
}

type cachedFrame struct {
	key place
	f   *frame
}

const cacheBytes = 4 << 20

func (c *frameCache) get(key place) *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedFrame).f
}

func (c *frameCache) put(key place, f *frame) {
	if len(f.raw) > cacheBytes/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = make(map[place]*list.Element)
	}
	if c.at[key] != nil {
		return
	}
	c.at[key] = c.order.PushFront(&cachedFrame{key, f})
	c.size += len(f.raw)
	for c.size > cacheBytes {
		e := c.order.Back()
		old := c.order.Remove(e).(*cachedFrame)
		delete(c.at, old.key)
		c.size -= len(old.f.raw)
	}
}
