package crawl

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"
)

// A siteMap is one sitemap to be read.
type siteMap struct {
	url  string
	root *Root  // what it names is as if this had linked to it
	by   string // the origin of the server that names it, or is taken to have it
}

// maxMaps bounds the sitemaps that are read of one server in a visit.
const maxMaps = 1000

// mapsOf are the sitemaps that a server's robots.txt names, or the one that it
// may have without a word. mu is held.
func (v *visit) mapsOf(s *host, rules *Robots) (all []siteMap) {
	root := v.mappedRoot(s)
	if root == nil {
		return nil
	}
	for _, u := range rules.Sitemaps {
		if isWeb(u) {
			all = append(all, siteMap{u, root, s.origin})
		}
	}
	if len(rules.Sitemaps) == 0 {
		all = []siteMap{{s.origin + "/sitemap.xml", root, s.origin}}
	}
	return all
}

// mappedRoot is a root that a server counts for and that goes by sitemaps, the
// first by its URL. mu is held.
func (v *visit) mappedRoot(s *host) (first *Root) {
	for r := range v.rootsOf(s) {
		if r.Sitemaps && !r.Leaf && (first == nil || r.URL < first.URL) {
			first = r
		}
	}
	return first
}

// distribute has each of some sitemaps read at the turn of the server that has
// it: they need not be of the server s that names them. mu is held; it is let go
// of meanwhile.
func (v *visit) distribute(s *host, all []siteMap) {
	others := v.localMaps(s, all)
	if len(others) == 0 {
		return
	}
	v.flying++ // settle takes it off
	v.mu.Unlock()
	// Only commit enters servers.
	v.out <- &Page{silent: true, taken: true, Outcome: Listed, maps: others}
	v.mu.Lock()
}

// localMaps keeps those sitemaps with a server that are of it, and returns the
// others. mu is held.
func (v *visit) localMaps(s *host, all []siteMap) (others []siteMap) {
	for _, m := range all {
		switch {
		case Origin(m.url) != s.origin:
			others = append(others, m)
		case s.mapped < maxMaps:
			s.mapped++
			s.maps = append(s.maps, m)
		}
	}
	return others
}

// adoptMaps gives sitemaps to the servers that have them, which commit has just
// entered. mu is held.
func (v *visit) adoptMaps(all []siteMap) {
	for _, m := range all {
		s := v.site(v.f.byOrigin[Origin(m.url)])
		v.localMaps(s, []siteMap{m})
		v.ready(s)
	}
}

// readMap reads a sitemap: what it names is as if its root had linked to it.
func (v *visit) readMap(ctx context.Context, s *host, m siteMap) {
	v.mu.Lock()
	st := s.standing
	v.mu.Unlock()
	if st != nil {
		if why, _ := st.barred(m.url); why != "" {
			v.f.lg.Info("sitemap", "url", m.url, "reason", why)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	if v.plan.Public != nil && !sameHost(s.origin, m.by) {
		ctx = v.plan.Public(ctx) // a site does not choose what is asked for in this network
	}
	req, err := v.request(ctx, m.url, m.root.URL)
	if err != nil {
		return
	}
	began := time.Now()
	resp, err := v.rt.RoundTrip(req)
	if err != nil {
		v.f.lg.Warn("sitemap", "url", m.url, "err", err)
		return
	}
	defer resp.Body.Close()
	v.answered(s, began, resp)
	if resp.StatusCode == http.StatusOK {
		v.takeMap(s, m, ParseSitemap(resp.Body, m.url))
	}
}

// takeMap goes through what a sitemap names.
func (v *visit) takeMap(s *host, m siteMap, named iter.Seq2[Mention, error]) {
	part := func() *Page {
		return &Page{Root: m.root.URL, root: m.root, silent: true, taken: true, Outcome: Listed}
	}
	p := part()
	send := func() {
		v.strip(p.links)
		v.mu.Lock()
		v.flying++
		v.mu.Unlock()
		v.out <- p
		p = part()
	}
	var more []siteMap
	for n, err := range named {
		switch {
		case errors.Is(err, ErrNotSitemap) && m.url == m.by+"/sitemap.xml":
		case err != nil:
			v.f.lg.Warn("sitemap", "url", m.url, "err", err)
		case n.Sitemap:
			if o := Origin(n.URL); isWeb(n.URL) && len(more) < maxMaps && (sameHost(o, s.origin) || sameHost(o, m.by)) {
				more = append(more, siteMap{n.URL, m.root, m.by})
			}
		default:
			if p.mention(n); len(p.links) >= scanStep {
				send()
			}
		}
	}
	if len(p.links) > 0 {
		send()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.distribute(s, more)
}
