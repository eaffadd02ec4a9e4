package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"go.etcd.io/bbolt"
)

// end is what a visit does when it has dealt with all: it drops the documents
// that no root covers any more and those that are gone from the folders of
// trees, and deletes what it has found to be deleted, if it may.
func (v *visit) end(ctx context.Context) error {
	if err := v.sweep(ctx); err != nil {
		return err
	}
	return v.execute(ctx)
}

// sweep looks at the documents that this visit has not dealt with.
func (v *visit) sweep(ctx context.Context) error {
	if v.state.Queued && len(v.walked) == 0 {
		return nil
	}
	docs := make(map[uint64]int)
	stored := 0
	var drop []*Page
	err := v.f.scan(ctx, docBucket, nil, func(_ *bbolt.Tx, k, val []byte) error {
		v.mu.Lock()
		d, err := v.f.decode(k, val)
		v.mu.Unlock()
		if err != nil {
			return nil // damaged: when it is met again it is as good as new
		}
		if d.State == Stored {
			stored++
		}
		r := v.roots[d.Root]
		if r != nil && d.State != Vanished && d.State != Heard && (d.URL != r.URL || polite(d.URL)) {
			docs[d.Root]++
		}
		if p := v.swept(&d, r); p != nil {
			drop = append(drop, p)
		}
		return nil
	}, func() bool { return len(drop) < maxBatch || v.flush(ctx, &drop) })
	if err == nil && len(drop) > 0 {
		v.flush(ctx, &drop)
	}
	if err != nil || v.failed != nil {
		return errors.Join(err, v.failed)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.roots {
		if k := v.f.roots[id]; !v.state.Queued && k.docs != docs[id] {
			k.docs, k.dirty = docs[id], true // what was counted as it went, exactly
		}
	}
	return nil
}

func (v *visit) flush(ctx context.Context, pages *[]*Page) bool {
	v.failed = v.commit(ctx, work{pages: *pages})
	*pages = nil
	return v.failed == nil
}

// swept returns what becomes of a document that the visit has not dealt with,
// nil when it stays.
func (v *visit) swept(d *Doc, r *Root) *Page {
	if d.Root == 0 || d.Visit >= v.state.Number || d.State == Heard {
		return nil
	}
	p := &Page{URL: d.URL, Depth: d.Depth, Stored: d.State == Stored, doc: *d}
	p.root = r
	if r != nil {
		p.Root = r.URL
	}
	if !v.state.Queued {
		p.Outcome, p.unkept, p.final = Excluded, true, true
		if p.Why = v.excluded(d.URL, r, d.Depth); r == nil && !v.missing {
			p.Why = "no root covers it"
		}
		if p.Why != "" {
			return p
		}
	}
	if r == nil || polite(d.URL) || d.URL == r.URL || v.found.has(d.ID) || !v.walkedOver(d) {
		return nil
	}
	p.Outcome, p.Why, p.unkept, p.final = Gone, "", false, false
	if !p.Stored {
		p.unkept, p.final = true, true
	}
	return p
}

// walkedOver reports whether the folder of a document, and all above it, were
// listed by this visit.
func (v *visit) walkedOver(d *Doc) bool {
	within := func(folders []string) bool {
		for _, f := range folders {
			if strings.HasPrefix(d.URL, f) {
				return true
			}
		}
		return false
	}
	return within(v.walked[d.Root]) && !within(v.closedIn[d.Root])
}

// execute deletes what was found to be deleted, unless that is more than may be.
func (v *visit) execute(ctx context.Context) error {
	if v.gone == 0 {
		return nil
	}
	if g := v.plan.MaxGone; g.Share > 0 && !v.plan.Delete && v.gone > g.Floor {
		stored, err := v.stored()
		if err != nil {
			return err
		}
		if float64(v.gone) > g.Share*float64(stored) {
			v.c.Spared.Add(int64(v.gone))
			v.f.lg.Warn("nothing is deleted", "would", v.gone, "stored", stored, "share", g.Share)
			return v.spare()
		}
	}
	for {
		pages, err := v.condemned()
		if err != nil || len(pages) == 0 {
			return err
		}
		if err := v.commit(ctx, work{pages: pages}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// stored counts the documents stored.
func (v *visit) stored() (n int, err error) {
	err = v.f.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(docBucket).Cursor()
		for k, val := c.First(); k != nil; k, val = c.Next() {
			if len(val) > 1 && State(val[1]) == Stored {
				n++
			}
		}
		return nil
	})
	return n, errors.Join(err, forget(v.f.db))
}

// spare lets the documents be that were found to be deleted. What they say of
// the reason stays.
func (v *visit) spare() error {
	return v.f.update(func(b *batch) error {
		return errors.Join(b.tx.DeleteBucket(goneBucket), anew(b.tx, goneBucket))
	})
}

// condemned returns the pages of some of the documents to be deleted.
func (v *visit) condemned() (pages []*Page, err error) {
	var lost [][]byte
	err = v.f.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(goneBucket).Cursor()
		for k, val := c.First(); k != nil && len(pages) < maxBatch; k, val = c.Next() {
			var d Doc
			ok := len(k) == 4 && len(val) > 0 && val[0] < byte(len(outcomes))
			if ok {
				d, ok = v.f.read(tx, DocID(binary.BigEndian.Uint32(k)))
			}
			if !ok {
				lost = append(lost, append([]byte(nil), k...))
				continue
			}
			p := v.page(d)
			p.Outcome, p.Why, p.final = Outcome(val[0]), string(val[1:]), true
			if to, ok := strings.CutPrefix(p.Why, "to "); ok && p.Outcome == Moved {
				p.links = []string{to}
			}
			pages = append(pages, p)
		}
		return nil
	})
	if err == nil && len(lost) > 0 {
		err = v.f.update(func(b *batch) error {
			for _, k := range lost {
				if err := b.tx.Bucket(goneBucket).Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return pages, err
}
