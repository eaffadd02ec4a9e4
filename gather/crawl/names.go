package crawl

import (
	"context"
)

// enumerate runs the enumeration programs of roots, before anything is asked for:
// what they write are roots and documents as well. If one fails what is known
// stays, also what belongs to a root that it would have named.
func (v *visit) enumerate(ctx context.Context) error {
	for id, r := range v.roots {
		if len(r.Enumeration) == 0 {
			continue
		}
		if err := v.enumerateRoot(ctx, id, r); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) enumerateRoot(ctx context.Context, id uint64, r *Root) error {
	var docs []string
	flush := func() error {
		p := &Page{Root: r.URL, root: r, silent: true, Outcome: Listed, links: docs}
		docs = nil
		return v.commit(ctx, work{pages: []*Page{p}})
	}
	for e, err := range Enumerate(ctx, r.Enumeration, []string{r.URL}) {
		switch {
		case err != nil:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v.missing = true
			if v.plan.Unnamed != nil {
				v.plan.Unnamed(r.URL, err.Error())
			}
		case !e.Leaf:
			if err := v.subroot(r, &e); err != nil {
				return err
			}
		case !v.state.Queued:
			if docs = append(docs, e.URL); len(docs) >= scanStep {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if len(docs) > 0 {
		return flush()
	}
	return nil
}

// subroot makes a root of what an enumeration program has written.
func (v *visit) subroot(r *Root, e *Enumerated) error {
	if e.URL == r.URL || v.roots[RootID(e.URL)] != nil {
		return nil
	}
	sub := Root{URL: e.URL, Depth: e.Depth, URLs: e.URLs, Delay: e.Delay, Search: r.Search, Hosts: e.Hosts,
		HostFilter: e.HostFilter, URLFilter: e.URLFilter, Access: e.Access, Outside: r.Outside}
	if sub.Delay < 0 {
		sub.Delay = r.Delay
	}
	return v.root(sub)
}
