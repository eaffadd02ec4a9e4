package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/soif"
)

// Compact gives back the space of what was replaced and deleted, joins small
// frames, and forgets deletions past Options.Horizon. The store serves reads and
// changes meanwhile. Interrupted, by ctx or a crash, it leaves a store that is
// right and some space to be won the next time.
//
// Segments with few dead objects are left as they are. One with a damaged frame
// is too, and named in the error.
func (s *Store) Compact(ctx context.Context) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	defer s.stir()
	var limit uint32
	_, err := s.submit(ctx, &request{do: func() (err error) {
		limit, err = s.beforeCompact()
		return err
	}})
	if err != nil {
		return err
	}
	var failed error
	damaged := make(map[uint32]bool)
	for {
		all, err := s.survey(limit)
		if err != nil {
			return err
		}
		c := &compaction{s: s, moved: make(map[uint32]bool)}
		if !c.choose(all, damaged) {
			return failed
		}
		err = c.run(ctx)
		if c.bad != 0 {
			damaged[c.bad] = true
			failed = errors.Join(failed, err)
		} else if err != nil {
			return err
		}
	}
}

// beforeCompact is done by the leader, while there are no changes. All frames of
// the segments before the one it returns are in the index, and stay the same but
// for what dies.
func (s *Store) beforeCompact() (limit uint32, err error) {
	if s.log.size > s.log.start() {
		if err := s.roll(); err != nil {
			return 0, err
		}
	}
	return s.log.id, s.forgetDeletions(time.Now().Add(-s.opt.Horizon))
}

// forgetDeletions removes tombstones from before a time, and sets the number
// below which cursors are refused from then on.
func (s *Store) forgetDeletions(before time.Time) error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return err
	}
	var old []row
	err := s.db.View(func(tx *bbolt.Tx) error {
		return bucketsOf(tx).tomb.ForEach(func(k, v []byte) error {
			r, err := parseTomb(OID(k), v)
			if err == nil && r.Updated.Before(before) {
				old = append(old, r)
			}
			return err
		})
	})
	for err == nil && len(old) > 0 {
		some := old[:min(len(old), s.opt.Pending)]
		old = old[len(some):]
		err = s.forgetSome(some)
	}
	return err
}

func (s *Store) forgetSome(some []row) error {
	err := s.updateIndex(func(b buckets, _ *bbolt.Tx) error {
		floor := getNumber(b.meta, "floor")
		for _, r := range some {
			floor = max(floor, r.Seq)
			if err := errors.Join(b.tomb.Delete(r.OID[:]), b.log.Delete(number(r.Seq))); err != nil {
				return err
			}
		}
		return errors.Join(
			putNumber(b.meta, "floor", floor),
			putNumber(b.meta, "tombstones", getNumber(b.meta, "tombstones")-uint64(len(some))))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.tombs -= int64(len(some))
	return nil
}

// A survey is what the index says of a segment.
type survey struct {
	seg       *segment
	frames    []frameInfo
	dirty     int // frames with dead objects
	raw, live int64
	oldest    uint64 // least number in a dirty frame
}

// survey returns the segments before a number.
func (s *Store) survey(limit uint32) ([]*survey, error) {
	s.mu.RLock()
	segs := maps.Clone(s.segs)
	s.mu.RUnlock()
	by := make(map[uint32]*survey)
	err := s.view(func(v view) error {
		return v.frame.ForEach(func(k, value []byte) error {
			f, err := parseFrameInfo(k, value)
			if err != nil || segs[f.seg] == nil || f.seg >= limit {
				return err
			}
			u := by[f.seg]
			if u == nil {
				u = &survey{seg: segs[f.seg], oldest: math.MaxUint64}
				by[f.seg] = u
			}
			u.add(f)
			return nil
		})
	})
	all := slices.Collect(maps.Values(by))
	slices.SortFunc(all, func(a, b *survey) int { return cmp.Compare(a.seg.id, b.seg.id) })
	return all, err
}

func (u *survey) add(f frameInfo) {
	u.frames = append(u.frames, f)
	u.raw += f.raw
	u.live += f.live
	if f.dead != nil {
		u.dirty++
		u.oldest = min(u.oldest, f.base)
	}
}

// worth reports whether rewriting a segment gives anything: an eighth of its
// bytes, a sixteenth of its frames ready to be sent, or frames four times larger.
func (u *survey) worth(frameSize int) bool {
	n := int64(len(u.frames))
	return (u.raw-u.live)*8 > u.raw || int64(u.dirty)*16 > n || n > 16 && u.raw/n < int64(frameSize/4)
}

// A compaction writes one segment in the place of some.
type compaction struct {
	s       *Store
	from    []*survey
	outside uint64 // least number in a dirty frame that stays
	bad     uint32 // the segment with a damaged frame, or 0

	out    *segment
	metas  []meta
	olds   []loc
	raw    []byte
	frames []frameInfo
	moves  []move
	moved  map[uint32]bool
	dead   int64
}

// A move is an object's way from one frame to another.
type move struct {
	oid      OID
	seq      uint64
	from, to loc
	size     int64
}

// choose takes segments worth rewriting, as many as make one new segment.
func (c *compaction) choose(all []*survey, damaged map[uint32]bool) bool {
	live := int64(0)
	c.outside = math.MaxUint64
	for _, u := range all {
		if !damaged[u.seg.id] && u.worth(c.s.opt.Frame) && (len(c.from) == 0 || live+u.live <= 2*c.s.opt.Segment) {
			live += u.live
			c.from = append(c.from, u)
			continue
		}
		c.outside = min(c.outside, u.oldest)
	}
	return len(c.from) > 0
}

func (c *compaction) run(ctx context.Context) error {
	var ids []uint32
	for _, u := range c.from {
		ids = append(ids, u.seg.id)
		if !u.seg.hold() {
			return errMoved
		}
		defer u.seg.release()
	}
	out, err := createSegment(c.s.dir, c.s.takeNumber(), kindCompacted, c.s.epoch, ids)
	if err != nil {
		return err
	}
	c.out = out
	if err := c.fill(ctx); err != nil {
		return errors.Join(err, out.release(), os.Remove(out.path))
	}
	if len(c.frames) > 0 {
		c.s.mu.Lock()
		c.s.segs[out.id] = out
		c.s.mu.Unlock()
		if err := c.install(ctx); err != nil {
			return err
		}
	}
	return c.remove()
}

// fill writes the new segment and gives it its name.
func (c *compaction) fill(ctx context.Context) error {
	for _, u := range c.from {
		for i := range u.frames {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.take(u.seg, &u.frames[i]); err != nil {
				if errors.Is(err, ErrDamaged) {
					c.bad = u.seg.id
				}
				return err
			}
		}
	}
	if err := c.emit(); err != nil {
		return err
	}
	if len(c.frames) == 0 {
		return os.Remove(c.out.path)
	}
	if err := c.out.f.Sync(); err != nil {
		return err
	}
	path := filepath.Join(c.s.dir, segName(c.out.id))
	if err := os.Rename(c.out.path, path); err != nil {
		return err
	}
	c.out.path = path
	return syncDir(c.s.dir)
}

// take copies what is alive in a frame. One that is full and all alive goes as
// it is packed.
func (c *compaction) take(seg *segment, info *frameInfo) error {
	f, err := seg.read(int64(info.off))
	if err != nil {
		return err
	}
	deletions := slices.ContainsFunc(f.metas, func(m meta) bool { return m.op == soif.Delete })
	if info.dead == nil && !deletions && info.raw >= int64(c.s.opt.Frame/2) {
		if err := c.emit(); err != nil {
			return err
		}
		olds := make([]loc, len(f.metas))
		for slot := range olds {
			olds[slot] = loc{seg.id, info.off, uint32(slot)}
		}
		return c.append(f.metas, olds, f.rawLen, f.packed)
	}
	if err := f.unpack(c.s.dec); err != nil {
		return seg.at(int64(info.off), err)
	}
	for slot, m := range f.metas {
		keep := !info.isDead(slot)
		if m.op == soif.Delete {
			if keep, err = c.needed(m); err != nil {
				return err
			}
		}
		if !keep {
			continue
		}
		if len(c.metas) > 0 && (len(c.raw)+m.size > c.s.opt.Frame || len(c.metas) == maxCount) {
			if err := c.emit(); err != nil {
				return err
			}
		}
		c.metas = append(c.metas, m)
		c.olds = append(c.olds, loc{seg.id, info.off, uint32(slot)})
		c.raw = append(c.raw, f.object(slot)...)
	}
	return nil
}

// needed reports whether a deletion has to be kept: while it is remembered, and
// while an older state of the object may be in a segment that stays, which an
// index made anew would bring back.
func (c *compaction) needed(m meta) (bool, error) {
	r, ok, err := c.s.state(m.oid)
	if err != nil {
		return false, err
	}
	if ok {
		return r.gone && r.Seq == m.seq, nil
	}
	return m.seq > c.outside, nil
}

// emit writes what has been taken as one frame.
func (c *compaction) emit() error {
	if len(c.metas) == 0 {
		return nil
	}
	var packed []byte
	if len(c.raw) > 0 {
		packed = c.s.enc.EncodeAll(c.raw, nil)
	}
	err := c.append(c.metas, c.olds, len(c.raw), packed)
	c.metas, c.olds, c.raw = c.metas[:0], c.olds[:0], c.raw[:0]
	return err
}

// append writes one frame and notes its objects' ways.
func (c *compaction) append(metas []meta, olds []loc, rawLen int, packed []byte) error {
	base := metas[0].seq
	for slot, m := range metas {
		base = min(base, m.seq)
		if m.op != soif.Delete {
			to := loc{c.out.id, uint32(c.out.size), uint32(slot)}
			c.moves = append(c.moves, move{m.oid, m.seq, olds[slot], to, int64(m.size)})
		}
	}
	b := appendFrame(nil, metas, rawLen, packed, base, time.Now().Unix(), true)
	if _, err := c.out.f.WriteAt(b, c.out.size); err != nil {
		return err
	}
	f := frameInfo{seg: c.out.id, off: uint32(c.out.size), length: len(b), meta: len(b) - frameHeader - len(packed),
		raw: int64(rawLen), live: int64(rawLen), count: len(metas), base: base}
	c.frames = append(c.frames, f)
	c.out.size += int64(len(b))
	return nil
}

// install tells the index of the new segment: first that it is there, with all
// its objects dead, then of some objects a time that they live there now and not
// in their old place. After each of these transactions the index is right. The
// objects go in the order of their OIDs, so that each page is written once.
func (c *compaction) install(ctx context.Context) error {
	err := c.update(func(b buckets) error {
		for _, f := range c.frames {
			if f.raw > 0 {
				f.killAll()
				c.dead -= f.raw
			}
			if err := b.frame.Put(f.key(), f.append(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(c.moves, func(a, b move) int { return bytes.Compare(a.oid[:], b.oid[:]) })
	for err == nil && len(c.moves) > 0 {
		some := c.moves[:min(len(c.moves), c.s.opt.Pending)]
		c.moves = c.moves[len(some):]
		if err = ctx.Err(); err == nil {
			err = c.update(func(b buckets) error { return c.shift(b, some) })
		}
	}
	return err
}

// update changes the index and the count of dead bytes, which c.dead is to be
// taken off.
func (c *compaction) update(do func(b buckets) error) error {
	s := c.s
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	c.dead = 0
	err := s.updateIndex(func(b buckets, _ *bbolt.Tx) error {
		if err := do(b); err != nil {
			return err
		}
		return putNumber(b.meta, "dead", uint64(int64(getNumber(b.meta, "dead"))-c.dead))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.dead -= c.dead
	if s.entering != nil {
		s.entering.meta.dead -= c.dead
	}
	return nil
}

// shift moves those objects that are still where they were found.
func (c *compaction) shift(b buckets, some []move) error {
	var from, to []corpse
	for _, m := range some {
		r, ok, err := b.state(m.oid)
		if err != nil {
			return err
		}
		if !ok || r.gone || r.at != m.from || r.Seq != m.seq {
			continue
		}
		r.at = m.to
		if err := b.obj.Put(m.oid[:], r.append(nil)); err != nil {
			return err
		}
		from, to = append(from, corpse{m.from, m.size}), append(to, corpse{m.to, m.size})
	}
	return errors.Join(b.mark(from, (*frameInfo).kill), b.mark(to, (*frameInfo).revive))
}

// remove forgets the old segments. Who is reading one keeps it until then.
func (c *compaction) remove() error {
	err := c.update(func(b buckets) error {
		for _, u := range c.from {
			for i := range u.frames {
				f, err := parseFrameInfo(u.frames[i].key(), b.frame.Get(u.frames[i].key()))
				if err != nil {
					return err
				}
				if f.live > 0 {
					return fmt.Errorf("segment %08x: offset %d: still in use: %w", f.seg, f.off, ErrDamaged)
				}
				c.dead += f.raw
				if err := b.frame.Delete(f.key()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, u := range c.from {
		c.s.mu.Lock()
		delete(c.s.segs, u.seg.id)
		c.s.mu.Unlock()
		err = errors.Join(err, os.Remove(u.seg.path), u.seg.release())
	}
	if strings.HasSuffix(c.out.path, ".tmp") { // nothing was alive
		err = errors.Join(err, c.out.release())
	}
	return err
}
