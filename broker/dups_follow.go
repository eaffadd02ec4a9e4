package broker

import (
	"context"
	"errors"

	"harvest/broker/near"
	"harvest/gather/dup"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index/segfile"
)

// awaited tells whether who waits for a change is to wait for the duplicates too.
func (d *dups) awaited(seq uint64) bool {
	d.mu.RLock()
	failed := d.failed
	d.mu.RUnlock()
	return !failed && d.behind(seq)
}

// behind tells whether a change is not looked at yet, though it will be.
func (d *dups) behind(seq uint64) bool {
	at, err := d.mark()
	return err == nil && at.Seq < seq
}

// due tells whether there is anything to do for follow.
func (d *dups) due(seq uint64) bool {
	d.mu.RLock()
	untidy := d.untidy
	d.mu.RUnlock()
	return untidy || d.behind(seq)
}

// follow brings the duplicates to the state of the store at the call or later.
// Called with following held. What goes wrong is told, and tried again with the
// next change: objects are found without it.
func (d *dups) follow(ctx context.Context) {
	err := d.catchUp(ctx)
	if errors.Is(err, store.ErrCursor) || errors.Is(err, segfile.ErrCorrupt) {
		d.b.lg.Warn("duplicates are found anew", "err", err)
		if err = d.anew(); err == nil {
			err = d.catchUp(ctx)
		}
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.b.lg.Error("duplicates", "err", err)
		err = errors.Join(err, d.reopen())
	}
	d.mu.Lock()
	was := d.failed
	d.failed = err != nil
	d.mu.Unlock()
	if err != nil || was {
		d.b.shown.complain("duplicates", "", err)
	}
}

// reopen opens the index again after it has failed, as it may not be what it
// was.
func (d *dups) reopen() error {
	d.now().Close()
	return d.open()
}

// How many changes are taken at a time, first and at most, and of how many the
// groups are kept up one by one rather than read as a whole.
const (
	dupsFirst = 4 << 10
	dupsMost  = 64 << 10
	dupsFew   = 1 << 10
)

func (d *dups) catchUp(ctx context.Context) error {
	for n, more := dupsFirst, true; more; n = min(2*n, dupsMost) {
		var err error
		if more, err = d.take(ctx, n); err != nil {
			return err
		}
	}
	x := d.now()
	for more := true; more; {
		var err error
		if more, err = x.Merge(ctx); err != nil {
			return err
		}
	}
	d.mu.Lock()
	stale := d.stale
	d.untidy = false
	d.mu.Unlock()
	if stale {
		return d.regroup(ctx)
	}
	return nil
}

// take takes the next changes, at most so many, and says whether there were
// more. An object that was changed before the one it stops at and refreshed after
// is told the next time as refreshed only: so all are taken for changed but those
// that one who went to the end has taken.
func (d *dups) take(ctx context.Context, most int) (more bool, err error) {
	after, err := d.mark()
	if err != nil {
		return false, err
	}
	until, last := d.b.store.Cursor().Seq, after
	var puts []store.OID
	var gone []near.ID
	for rec, err := range d.b.store.Changes(ctx, after) {
		if err != nil {
			return false, err
		}
		if len(puts)+len(gone) == most {
			more = true
			break
		}
		last.Seq = rec.Entry.Seq
		switch rec.Op {
		case soif.Delete:
			gone = append(gone, near.ID(rec.Entry.OID))
		case soif.Refresh:
			if rec.Entry.Body > d.taken() {
				puts = append(puts, rec.Entry.OID)
			}
		case soif.Update:
			puts = append(puts, rec.Entry.OID)
		}
	}
	if !more { // from the start no deletions are told, and one may have been the last
		last.Seq = max(last.Seq, until)
	}
	if last.Seq == after.Seq {
		d.tookAll(until)
		return false, nil
	}
	last.Epoch = d.b.store.Cursor().Epoch
	docs, err := d.read(ctx, puts)
	if err != nil {
		return false, err
	}
	if err := d.now().Apply(docs, gone, last.String()); err != nil {
		return false, err
	}
	if !more {
		d.tookAll(until)
	}
	return more, d.group(ctx, docs, gone)
}

// taken is the last change that take is sure to have looked at.
func (d *dups) taken() uint64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.whole
}

func (d *dups) tookAll(until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.whole = until
}

// read makes docs of objects. One that cannot be read is no duplicate.
func (d *dups) read(ctx context.Context, oids []store.OID) (docs []near.Doc, err error) {
	docs = make([]near.Doc, 0, len(oids))
	var k dup.Sketcher
	var bad error
	err = d.b.store.Bodies(ctx, oids, func(i int, body []byte, err error) bool {
		var o soif.Object
		if err == nil {
			o, _, err = soif.Parse(body, soif.Limits{})
		}
		switch {
		case err == nil:
			docs = append(docs, d.doc(&k, oids[i], &o))
		case unreadable(err):
			docs = append(docs, d.doc(&k, oids[i], nil))
		default:
			bad = err
			return false
		}
		return ctx.Err() == nil
	})
	return docs, errors.Join(err, bad, ctx.Err())
}

// doc is an object as the duplicates see it; nil is one that cannot be read.
func (d *dups) doc(k *dup.Sketcher, oid store.OID, o *soif.Object) near.Doc {
	if o == nil {
		return near.Doc{ID: near.ID(oid)}
	}
	return near.Doc{ID: near.ID(oid), Bytes: bytesOf(o), Sketch: d.sketch(k, o)}
}

// A sketching takes objects as they are read for the index, which spares reading
// them once more. It is for who feeds from where the duplicates are. What goes
// wrong ends it, and is left for follow, which begins where the duplicates are then.
type sketching struct {
	d     *dups
	k     dup.Sketcher
	epoch uint32
	docs  []near.Doc
	gone  []near.ID // is taken with the first of docs: what is gone comes to no harm by that
	lost  bool      // something has gone wrong
}

// sketchesFrom is a sketching that goes on from a change, or nil if the duplicates
// are elsewhere.
func (d *dups) sketchesFrom(after store.Cursor) *sketching {
	d.mu.RLock()
	failed := d.failed
	d.mu.RUnlock()
	if at, err := d.mark(); failed || err != nil || at.Seq != after.Seq {
		return nil
	}
	return &sketching{d: d, epoch: d.b.store.Cursor().Epoch}
}

// add adds an object; nil is one that cannot be read.
func (s *sketching) add(oid store.OID, o *soif.Object) {
	if s != nil && !s.lost {
		s.docs = append(s.docs, s.d.doc(&s.k, oid, o))
	}
}

// drop takes an object out.
func (s *sketching) drop(oid store.OID) {
	if s != nil {
		s.gone = append(s.gone, near.ID(oid))
	}
}

// reached says that all up to a change was added.
func (s *sketching) reached(ctx context.Context, seq uint64) {
	if s != nil && len(s.docs) >= dupsMost {
		s.apply(ctx, seq)
	}
}

// end says that no more is added, and whether that was to the end.
func (s *sketching) end(ctx context.Context, seq uint64, more bool) {
	if s == nil {
		return
	}
	s.apply(ctx, seq)
	if !s.lost && !more {
		s.d.tookAll(seq)
	}
}

func (s *sketching) apply(ctx context.Context, seq uint64) {
	if s.lost {
		return
	}
	err := s.d.now().Apply(s.docs, s.gone, store.Cursor{Epoch: s.epoch, Seq: seq}.String())
	if err == nil {
		s.d.mu.Lock()
		s.d.untidy = true
		s.d.mu.Unlock()
		err = s.d.group(ctx, s.docs, s.gone)
	}
	if err != nil {
		s.d.b.lg.Warn("duplicates", "err", err)
		s.lost = true
	}
	s.docs, s.gone = s.docs[:0], nil
}
