package gather

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// An object is stored before its document is recorded, so that none is lost. A
// process that is killed in between leaves objects of documents of which nothing
// is known, or nothing good. The visit is taken up, and finds most of them again;
// an object whose document has gone since would stay until its time is up. So a
// visit that was cut off by the end of a process looks for such when it ends.

// orphans deletes what no document stands for. What may only have been out of
// reach stays, and so does everything when it is more than a visit may delete.
func (v *visit) orphans(ctx context.Context) error {
	g := v.g
	if !g.sel.cut.Load() || v.plan.Queued {
		return nil
	}
	var m move
	pool, err := g.pool(false)
	for _, s := range []*store.Store{g.store, pool} {
		if s == nil || err != nil {
			continue
		}
		for e, serr := range s.Scan(ctx, "", "") {
			var is bool
			if err = serr; err == nil {
				is, err = v.isOrphan(&e)
			}
			if err != nil {
				break
			}
			if is {
				gone := store.Change{Op: soif.Delete, OID: e.OID, URL: e.URL}
				m.in, m.end = append(m.in, gone), append(m.end, gone)
			}
		}
	}
	if err != nil {
		return err
	}
	if n := len(m.in); n > v.plan.MaxGone.Floor && v.plan.MaxGone.Share > 0 && !v.plan.Delete &&
		float64(n) > v.plan.MaxGone.Share*float64(g.store.Count()+g.hidden()) {
		g.journal.event("spared", ndb.Of("documents", n), ndb.Of("reason", "nothing is known of them; 'delete' to ctl deletes them"))
		return nil
	}
	if err := lock(ctx, g.sel.placed); err != nil {
		return err
	}
	defer func() { <-g.sel.placed }()
	if err := g.carry(ctx, &m); err != nil {
		return err
	}
	for _, c := range m.in {
		g.journal.event("gone", ndb.Of("url", c.URL), ndb.Of("reason", "no document stands for it"))
	}
	g.sel.cut.Store(false)
	return nil
}

// isOrphan reports whether an object has no document, after a visit.
func (v *visit) isOrphan(e *store.Entry) (bool, error) {
	d, err := v.g.db.Lookup(e.URL)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		c, member, err := v.g.containerOf(e.URL)
		if err != nil {
			return false, err
		}
		if member {
			return c.State == crawl.Vanished || c.State == crawl.Barred || c.State == crawl.Away, nil
		}
		if v.counts.Failed.Load() > 0 {
			return false, nil // it may be in what could not be read
		}
		made, err := v.g.manual.isMade(e.OID)
		return !made, err
	case err != nil:
		return false, err
	}
	return d.State == crawl.Vanished || d.State == crawl.Barred || d.State == crawl.Away, nil
}

// isMade reports whether people have made an object, or written about it.
func (m *manual) isMade(oid store.OID) (yes bool, err error) {
	if m.n.Load() == 0 {
		return false, nil
	}
	return yes, m.db.View(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("made")).Cursor().Seek(oid[:])
		yes = bytes.HasPrefix(k, oid[:])
		return nil
	})
}
