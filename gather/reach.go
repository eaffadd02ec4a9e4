package gather

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/fetch"
)

// A reachConfig is what the configuration says of how sources are reached.
type reachConfig struct {
	local     []fetch.Local
	proxy     string
	noCookies bool
}

// cachePrefix begins the proxy= of a cache of this process.
const cachePrefix = "cache/"

// setting reads proxy= and cookies=.
func (c *reachConfig) setting(e ndb.Entry, p ndb.Pair) error {
	if p.Key == "cookies" {
		yes, err := e.Bool(p)
		c.noCookies = !yes
		return err
	}
	c.proxy = p.Value
	if name, ok := strings.CutPrefix(p.Value, cachePrefix); ok {
		if name == "" || strings.Contains(name, "/") {
			return e.Errorf(p, "proxy: '%s' is not the name of a cache", p.Value)
		}
		return nil
	}
	if err := fetch.CheckProxy(p.Value); err != nil {
		return e.Errorf(p, "proxy: %w", err)
	}
	return nil
}

// mapping reads a line of local.
func (c *reachConfig) mapping(e ndb.Entry) (err error) {
	var l fetch.Local
	for _, p := range e.Pairs {
		switch p.Key {
		case "local":
			if p.Value != "" {
				return e.Errorf(p, "local: takes no value; write url=%s", p.Value)
			}
		case "url":
			if l.URL, err = crawl.Canonical(p.Value); err != nil {
				return e.Errorf(p, "local: %w", err)
			}
			if strings.HasPrefix(l.URL, "file:") || strings.Contains(l.URL, "?") {
				return e.Errorf(p, "local: '%s' is not the beginning of URLs of a server", p.Value)
			}
		case "path":
			if l.Path = filepath.Clean(p.Value); !filepath.IsAbs(p.Value) {
				return e.Errorf(p, "local: path '%s' does not begin with a slash", p.Value)
			}
		default:
			return e.Errorf(p, "local: unknown key '%s'; there are url and path", p.Key)
		}
	}
	switch {
	case l.URL == "":
		return e.Errorf(e.First(), "local: url=URL is missing")
	case l.Path == "":
		return e.Errorf(e.First(), "local: path=PATH is missing")
	case slices.ContainsFunc(c.local, func(o fetch.Local) bool { return o.URL == l.URL }):
		return e.Errorf(e.First(), "local: %s is already there", l.URL)
	}
	c.local = append(c.local, l)
	return nil
}

// A reach is what a Gatherer reaches its sources with: a transport for each
// visit, made as its configuration says, whose cookies and connections go with
// it.
type reach struct {
	g     *Gatherer
	proxy func(name string) (http.RoundTripper, error) // of this process; may be nil

	// mu guards what follows.
	mu    sync.Mutex
	now   *fetch.Transport
	local []fetch.Local
	past  map[string]fetch.Count // of the visits before, in this process
}

// RoundTrip answers a request, and tells of each URL that might be a file here
// whether it was.
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	if r.now == nil {
		r.now = fetch.New(fetch.Options{Cookies: true})
	}
	t, local := r.now, r.local
	r.mu.Unlock()
	resp, err := t.RoundTrip(req)
	if err != nil || len(local) == 0 {
		return resp, err
	}
	url := req.URL.String()
	if slices.ContainsFunc(local, func(l fetch.Local) bool { return strings.HasPrefix(url, l.URL) }) {
		r.g.lg.Info("reach", "url", url, "via", resp.Header.Get(fetch.Via))
	}
	return resp, nil
}

// begin makes the transport of a visit.
func (r *reach) begin(c *config) error {
	o := fetch.Options{
		Secrets: r.g.secrets.get(),
		Local:   c.reach.local,
		Cookies: !c.reach.noCookies,
		Proxy:   c.reach.proxy,
		Wrap:    r.g.wrap,
	}
	if name, ok := strings.CutPrefix(o.Proxy, cachePrefix); ok {
		if r.proxy == nil {
			return fmt.Errorf("proxy %s: no caches are in this process: %w", o.Proxy, iofs.ErrNotExist)
		}
		via, err := r.proxy(name)
		if err != nil {
			return fmt.Errorf("proxy %s: %w", o.Proxy, err)
		}
		o.Via, o.Proxy = via, "none"
	}
	r.end()
	t := fetch.New(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.local = t, o.Local
	return nil
}

// end lets go of the transport.
func (r *reach) end() {
	r.mu.Lock()
	t := r.now
	if t != nil {
		r.past = r.countsLocked()
	}
	r.now, r.local = nil, nil
	r.mu.Unlock()
	if t != nil {
		t.CloseIdleConnections()
	}
}

// counts are those of connections since the process began.
func (r *reach) counts() map[string]fetch.Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countsLocked()
}

func (r *reach) countsLocked() map[string]fetch.Count {
	all := make(map[string]fetch.Count, len(r.past))
	for scheme, n := range r.past {
		all[scheme] = n
	}
	if r.now == nil {
		return all
	}
	for scheme, n := range r.now.Stats() {
		p := all[scheme]
		all[scheme] = fetch.Count{Opened: p.Opened + n.Opened, Reused: p.Reused + n.Reused, Evicted: p.Evicted + n.Evicted}
	}
	return all
}

// connections are the lines of status about them.
func (g *Gatherer) connections() (lines [][]ndb.Pair) {
	if g.reach == nil {
		return nil
	}
	all := g.reach.counts()
	schemes := make([]string, 0, len(all))
	for s := range all {
		schemes = append(schemes, s)
	}
	slices.Sort(schemes)
	for _, s := range schemes {
		n := all[s]
		lines = append(lines, []ndb.Pair{ndb.Of("connections", s), ndb.Of("opened", n.Opened), ndb.Of("reused", n.Reused), ndb.Of("evicted", n.Evicted)})
	}
	return lines
}

var errSecret = errors.New("secrets can be written, not read")
