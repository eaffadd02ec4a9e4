package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Bounds of the sitemaps that are read of one server in a visit. Those that name
// no document, or begin with the one that another begins with, may be made up for
// ever: so many of them in a row are a trap.
const (
	maxMaps   = 1000
	maxBarren = 200
)

// A mapsRead is what is known of a server's sitemaps.
type mapsRead struct {
	left   []string            // to be read
	named  int                 // by others
	firsts map[uint64]struct{} // hashes of the first document of each
	barren int                 // read in a row that named nothing
	full   bool                // no more is noted
	shut   bool                // no more is read
}

// readMap reads a sitemap: what it names is as if the root had linked to it.
func (v *visit) readMap(ctx context.Context, s *host, u string) {
	root := v.rootOf(s)
	if root == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	first := uint64(0)
	defer func() { v.mapRead(s, u, first) }()
	if !sameHost(Origin(u), s.origin) {
		if v.plan.Public != nil {
			ctx = v.plan.Public(ctx) // a site does not choose what is asked for in this network
		}
		if why := v.abroad(ctx, u); why != "" {
			v.f.lg.Info("sitemap", "url", u, "excluded", why)
			return
		}
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
			v.nameMap(s, m.URL)
		default:
			if first == 0 {
				first = v.f.known.hash(m.URL)
			}
			if p.mention(m); len(p.links) >= scanStep {
				send()
			}
		}
	}
	if len(p.links) > 0 {
		send()
	}
}

// maxAbroad is how many hosts' robots.txt are remembered for sitemaps alone.
const maxAbroad = 1024

// abroad returns why a sitemap may not be asked for that a robots.txt says is on
// another host: that host has a robots.txt, too. It is what is known of a server
// of ours, or asked for once a visit.
func (v *visit) abroad(ctx context.Context, u string) string {
	if !isWeb(u) {
		return ""
	}
	origin := Origin(u)
	v.mu.Lock()
	st := v.foreign[origin]
	var k Server
	if id := v.f.byOrigin[origin]; id != 0 {
		k = v.f.servers[id-1]
	}
	v.mu.Unlock()
	if st == nil {
		if k.Until.After(time.Now()) {
			st = v.stand(k.Robots, k.Until, v.f.robotsText(k.ID))
		} else {
			st = v.askAbroad(ctx, origin)
		}
		if ctx.Err() != nil {
			return ctx.Err().Error()
		}
		v.mu.Lock()
		if len(v.foreign) >= maxAbroad {
			clear(v.foreign)
		}
		v.foreign[origin] = st
		v.mu.Unlock()
	}
	why, _ := st.barred(u)
	return why
}

// askAbroad asks for the robots.txt of a host that is no server of ours.
func (v *visit) askAbroad(ctx context.Context, origin string) *standing {
	h := hop{url: origin + "/robots.txt"}
	for {
		v.c.Requests.Add(1)
		a, err := v.robotsAt(ctx, h, func(*http.Response) {})
		if err != nil {
			v.f.lg.Warn("robots", "server", origin, "err", err)
			return &standing{}
		}
		if h = a.next; h.n == 0 {
			return v.stand(a.status, time.Time{}, a.text)
		}
	}
}

// nameMap notes a sitemap that another one names.
func (v *visit) nameMap(s *host, u string) {
	why := ""
	v.mu.Lock()
	switch m := &s.maps; {
	case m.full || m.shut || !sameHost(Origin(u), s.origin):
	case m.named == maxMaps:
		m.full = true
		why = fmt.Sprintf("more than %d sitemaps: the rest is left out", maxMaps)
	default:
		m.named++
		m.left = append(m.left, u)
	}
	v.mu.Unlock()
	v.trapped(s, u, why)
}

// mapRead notes that a sitemap was read, and the hash of the first document that
// it names, 0 if there is none.
func (v *visit) mapRead(s *host, u string, first uint64) {
	why := ""
	v.mu.Lock()
	m := &s.maps
	if _, dup := m.firsts[first]; first == 0 || dup {
		m.barren++
	} else {
		if m.firsts == nil {
			m.firsts = make(map[uint64]struct{})
		}
		m.firsts[first] = struct{}{}
		m.barren /= 4 // as with pages
	}
	if m.barren >= maxBarren && !m.shut {
		m.left, m.shut = nil, true
		why = fmt.Sprintf("a trap: %d sitemaps in a row name nothing new", m.barren)
	}
	v.mu.Unlock()
	v.trapped(s, u, why)
}

// trapped tells of a trap, if there is a reason.
func (v *visit) trapped(s *host, u, why string) {
	if why == "" {
		return
	}
	v.f.lg.Warn("trap", "server", s.origin, "url", u, "reason", why)
	if v.plan.Trapped != nil {
		v.plan.Trapped(u, why)
	}
}

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
