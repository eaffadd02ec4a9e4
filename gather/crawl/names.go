package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"
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

// readMap reads a sitemap: what it names is as if the root had linked to it.
func (v *visit) readMap(ctx context.Context, s *host, u string) {
	root := v.rootOf(s)
	if root == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	if v.plan.Public != nil && !sameHost(Origin(u), s.origin) {
		ctx = v.plan.Public(ctx) // a site does not choose what is asked for in this network
	}
	req, err := v.request(ctx, u, root.URL)
	if err != nil {
		return
	}
	began := time.Now()
	resp, err := v.rt.RoundTrip(req)
	if err != nil {
		v.f.lg.Warn("sitemap", "url", u, "err", err)
		return
	}
	defer resp.Body.Close()
	v.answered(s, began, resp)
	if resp.StatusCode != http.StatusOK {
		return
	}
	part := func() *Page { return &Page{Root: root.URL, root: root, silent: true, taken: true, Outcome: Listed} }
	p := part()
	send := func() {
		v.strip(p.links)
		v.mu.Lock()
		v.flying++
		v.mu.Unlock()
		v.out <- p
		p = part()
	}
	for m, err := range ParseSitemap(resp.Body, u) {
		switch {
		case errors.Is(err, ErrNotSitemap) && u == s.origin+"/sitemap.xml":
		case err != nil:
			v.f.lg.Warn("sitemap", "url", u, "err", err)
		case m.Sitemap:
			v.mu.Lock()
			if s.mapped++; s.mapped < maxMaps && sameHost(Origin(m.URL), s.origin) {
				s.maps = append(s.maps, m.URL)
			}
			v.mu.Unlock()
		default:
			if p.mention(m); len(p.links) >= scanStep {
				send()
			}
		}
	}
	if len(p.links) > 0 {
		send()
	}
}

// maxMaps bounds the sitemaps that are read of one server in a visit.
const maxMaps = 1000

// rootOf is a root that a server counts for, the first by its URL.
func (v *visit) rootOf(s *host) (first *Root) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for r := range v.rootsOf(s) {
		if r.Sitemaps && !r.Leaf && (first == nil || r.URL < first.URL) {
			first = r
		}
	}
	return first
}
