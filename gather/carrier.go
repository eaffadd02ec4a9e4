package gather

import (
	"context"
	"errors"
	iofs "io/fs"

	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// carryOut moves what is not where it belongs.
func (g *Gatherer) carryOut(ctx context.Context, c *config, h *choice) (in, out int, err error) {
	k := &carrier{g: g, h: h}
	if c.selection.all() {
		err = k.copies(ctx, c)
	} else {
		err = k.all(ctx)
	}
	if err == nil {
		err = k.flush(ctx)
	}
	return k.in, k.out, err
}

// A carrier moves objects, some at a time.
type carrier struct {
	g       *Gatherer
	h       *choice
	due     []due
	in, out int
}

// A due is an object and where it belongs.
type due struct {
	oid store.OID
	in  bool
}

// maxDue bounds what is moved at once.
const maxDue = 128

// all looks at every document.
func (k *carrier) all(ctx context.Context) error {
	k.g.sel.total.Store(k.g.sel.done.Swap(0))
	for d, err := range k.g.db.Documents(ctx, "") {
		if err != nil {
			return err
		}
		k.g.sel.done.Add(1)
		if v := k.h.get(uint32(d.ID)); v != unstored && d.State == crawl.Stored {
			if err := k.add(ctx, d.URL, v.in()); err != nil {
				return err
			}
		}
	}
	return nil
}

// copies looks at documents that have copies, and at what was left out: where
// everything but copies is selected nothing else can be out of place.
func (k *carrier) copies(ctx context.Context, c *config) error {
	if k.h.count[copied] > 0 {
		for ids, err := range k.g.db.Copies(ctx) {
			if err != nil {
				return err
			}
			gr := group{k.g, c, ids}
			var lost []string
			err = gr.each(func(r *rival) bool {
				if k.h.get(r.id) == copied {
					lost = append(lost, r.url)
				}
				return true
			})
			for _, u := range lost {
				if err == nil {
					err = k.add(ctx, u, false)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	pool, err := k.g.pool(false)
	if pool == nil {
		return err
	}
	for e, err := range pool.Scan(ctx, "", "") {
		if err != nil {
			return err
		}
		d, err := k.g.db.Lookup(e.URL)
		switch {
		case errors.Is(err, iofs.ErrNotExist):
		case err != nil:
			return err
		case d.State == crawl.Stored && k.h.get(uint32(d.ID)) != copied:
			if err := k.add(ctx, e.URL, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// add has an object put where it belongs, unless it plainly is there.
func (k *carrier) add(ctx context.Context, url string, in bool) error {
	oid := k.g.oid(url)
	if in {
		pool, err := k.g.pool(false)
		if err != nil {
			return err
		}
		if there, err := holds(pool, oid); !there {
			return err
		}
	} else if here, err := holds(k.g.store, oid); !here {
		return err
	}
	k.due = append(k.due, due{oid, in})
	if len(k.due) < maxDue {
		return nil
	}
	return k.flush(ctx)
}

// flush moves what is due and still where it was.
func (k *carrier) flush(ctx context.Context) error {
	if len(k.due) == 0 {
		return nil
	}
	if err := lock(ctx, k.g.sel.placed); err != nil {
		return err
	}
	defer func() { <-k.g.sel.placed }()
	pool, err := k.g.pool(false)
	if err != nil {
		return err
	}
	var m move
	for _, d := range k.due {
		if err := k.move(&m, pool, d); err != nil {
			return err
		}
	}
	k.due = k.due[:0]
	if err := k.g.carry(ctx, &m); err != nil {
		return err
	}
	return k.g.carryAll(ctx, &m)
}

func (k *carrier) move(m *move, pool *store.Store, d due) error {
	here, err := holds(k.g.store, d.oid)
	switch {
	case err != nil:
	case !d.in && here:
		var there bool
		if there, err = holds(pool, d.oid); there { // in both: it was leaving, or something hand-made stays
			m.in = append(m.in, store.Change{Op: soif.Delete, OID: d.oid})
		} else if err == nil {
			_, err = m.leave(k.g.store, d.oid)
			k.out++
		}
	case d.in && here: // in both, after a kill
		m.end = append(m.end, store.Change{Op: soif.Delete, OID: d.oid})
	case d.in:
		var was bool
		if was, err = m.take(pool, d.oid); was {
			k.in++
		}
	}
	return err
}
