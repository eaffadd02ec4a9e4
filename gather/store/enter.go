package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// enter puts a table into the index.
func (s *Store) enter(t *table) error {
	s.mu.RLock()
	f := s.filter // only who enters adds to it
	s.mu.RUnlock()
	fresh := 0
	err := s.updateIndex(func(b buckets, tx *bbolt.Tx) error {
		e := entering{b: b, filter: f, forget: func() { s.forget(tx) }, dead: slices.Clone(t.dead)}
		if err := e.rows(t); err != nil {
			return err
		}
		fresh = e.fresh
		for _, step := range []func() error{e.log, e.names, e.expiries, func() error { return e.frames(t) }} {
			e.forget()
			if err := step(); err != nil {
				return err
			}
		}
		for _, m := range t.times {
			if err := b.time.Put(number(uint64(m.second)), number(m.before)); err != nil {
				return err
			}
		}
		return b.putTotals(&t.meta, t.end, s.epoch)
	})
	return errors.Join(err, s.know(t, fresh))
}

// entering collects what a table changes in each bucket, so that each is changed
// in the order of its keys.
type entering struct {
	b              buckets
	filter         *filter
	forget         func()
	fresh          int // rows of which the index had nothing
	dead           []corpse
	logDel         []uint64
	logPut         []logEntry
	expDel, expPut [][]byte
	urlDel, urlPut []nameEntry
}

type logEntry struct {
	seq uint64
	oid OID
}

type nameEntry struct {
	key string
	oid OID
}

// forgetEvery is how many look-ups are made between two calls of forget. Each may
// have the kernel map 64 KB.
const forgetEvery = 128

func (e *entering) rows(t *table) error {
	oids := make([]OID, 0, len(t.rows))
	for oid := range t.rows {
		oids = append(oids, oid)
	}
	slices.SortFunc(oids, func(a, b OID) int { return bytes.Compare(a[:], b[:]) })
	for i, oid := range oids {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		var old row
		var ok bool
		if !e.filter.lacks(oid) {
			var err error
			if old, ok, err = e.b.state(oid); err != nil {
				return err
			}
		}
		if !ok {
			e.fresh++
		}
		if err := e.row(t.rows[oid], old, ok); err != nil {
			return err
		}
	}
	return nil
}

// row enters one row in the place of an old one, if there was one.
func (e *entering) row(r *row, old row, had bool) error {
	if had && old.Seq >= r.Seq {
		return nil // what is here is later, as when a segment is read a second time
	}
	if had {
		e.logDel = append(e.logDel, old.Seq)
	}
	hadObject := had && !old.gone
	if hadObject {
		e.dead = append(e.dead, corpse{old.at, old.Size})
		if !old.Expires().IsZero() {
			e.expDel = append(e.expDel, expiryKey(&old))
		}
		if r.gone || r.URL != old.URL {
			e.urlDel = append(e.urlDel, nameEntry{urlKey(old.URL), r.OID})
		}
	}
	e.logPut = append(e.logPut, logEntry{r.Seq, r.OID})
	if r.gone {
		if hadObject {
			if err := e.b.obj.Delete(r.OID[:]); err != nil {
				return err
			}
		}
		return e.b.tomb.Put(r.OID[:], appendTomb(nil, r))
	}
	if had && old.gone {
		if err := e.b.tomb.Delete(r.OID[:]); err != nil {
			return err
		}
	}
	if !r.Expires().IsZero() {
		e.expPut = append(e.expPut, expiryKey(r))
	}
	if !hadObject || r.URL != old.URL {
		e.urlPut = append(e.urlPut, nameEntry{urlKey(r.URL), r.OID})
	}
	return e.b.obj.Put(r.OID[:], r.append(nil))
}

func (e *entering) log() error {
	slices.Sort(e.logDel)
	for _, seq := range e.logDel {
		if err := e.b.log.Delete(number(seq)); err != nil {
			return err
		}
	}
	slices.SortFunc(e.logPut, func(a, b logEntry) int { return cmp.Compare(a.seq, b.seq) })
	for _, l := range e.logPut {
		if err := e.b.log.Put(number(l.seq), l.oid[:]); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) names() error {
	byKey := func(a, b nameEntry) int { return cmp.Compare(a.key, b.key) }
	slices.SortFunc(e.urlDel, byKey)
	for i, n := range e.urlDel {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		if err := deleteName(e.b.url, n.key, n.oid); err != nil {
			return err
		}
	}
	slices.SortFunc(e.urlPut, byKey)
	for i, n := range e.urlPut {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		if err := putName(e.b.url, n.key, n.oid); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) expiries() error {
	slices.SortFunc(e.expDel, bytes.Compare)
	for _, k := range e.expDel {
		if err := e.b.expiry.Delete(k); err != nil {
			return err
		}
	}
	slices.SortFunc(e.expPut, bytes.Compare)
	for _, k := range e.expPut {
		if err := e.b.expiry.Put(k, nil); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) frames(t *table) error {
	for i := range t.frames {
		if err := e.b.frame.Put(t.frames[i].key(), t.frames[i].append(nil)); err != nil {
			return err
		}
	}
	return e.b.bury(e.dead)
}

// bury marks objects dead in their frames.
func (b buckets) bury(dead []corpse) error {
	return b.mark(dead, (*frameInfo).kill)
}

// mark does something to objects in their frames, each of which is read and
// written once.
func (b buckets) mark(objects []corpse, do func(f *frameInfo, slot uint32, size int64)) error {
	slices.SortFunc(objects, func(x, y corpse) int {
		return cmp.Or(cmp.Compare(x.seg, y.seg), cmp.Compare(x.off, y.off))
	})
	for len(objects) > 0 {
		at := frameInfo{seg: objects[0].seg, off: objects[0].off}
		v := b.frame.Get(at.key())
		if v == nil {
			return fmt.Errorf("index without frame %08x %d: %w", at.seg, at.off, ErrDamaged)
		}
		f, err := parseFrameInfo(at.key(), v)
		if err != nil {
			return err
		}
		for len(objects) > 0 && objects[0].seg == f.seg && objects[0].off == f.off {
			do(&f, objects[0].slot, objects[0].size)
			objects = objects[1:]
		}
		if err := b.frame.Put(f.key(), f.append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// flush enters all changes made so far into the index. Readers in the order of
// keys call it first; single look-ups need not.
func (s *Store) flush() error {
	s.mu.RLock()
	idle := s.active.n == 0 && s.entering == nil
	s.mu.RUnlock()
	if idle {
		return nil
	}
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	return s.flushLocked()
}

// flushLocked is flush for who holds indexMu. A table that could not be entered
// stays, is still read, and is tried again the next time.
func (s *Store) flushLocked() error {
	for range 2 {
		s.mu.Lock()
		if s.entering == nil && s.active.n > 0 {
			s.active.meta, s.active.end = s.totals, s.end
			s.entering, s.active = s.active, newTable()
		}
		t := s.entering
		s.mu.Unlock()
		if t == nil {
			return nil
		}
		if err := s.enter(t); err != nil {
			return err
		}
		s.digests.changed(t)
		s.mu.Lock()
		s.entering = nil
		s.mu.Unlock()
	}
	return nil
}

// runIndex enters what is pending when there is enough of it, or soon after
// changes cease. It ends when the store is closed, which waits for it.
func (s *Store) runIndex() {
	defer close(s.indexDone)
	idle := time.NewTimer(time.Hour)
	for {
		enough := false
		select {
		case <-s.closing:
			idle.Stop()
			return
		case <-s.dirty:
			idle.Reset(idleFlush)
			s.mu.RLock()
			enough = s.active.n >= s.opt.Pending
			s.mu.RUnlock()
			if !enough {
				continue
			}
		case <-idle.C:
		}
		if err := s.rest(enough); err != nil {
			s.lg.Warn("store index", "dir", s.dir, "err", err, slog.Int("pending", s.pending()))
			idle.Reset(retryFlush)
		}
	}
}

// rest enters what is pending, and unless there is more to come sees it to the
// disk.
func (s *Store) rest(more bool) error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if err := s.flushLocked(); err != nil || more {
		return err
	}
	return s.settle()
}

const (
	idleFlush  = 500 * time.Millisecond
	retryFlush = 5 * time.Second
)

func (s *Store) pending() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.active.n
	if s.entering != nil {
		n += s.entering.n
	}
	return n
}
