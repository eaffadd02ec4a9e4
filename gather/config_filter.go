package gather

import (
	"context"
	"fmt"
	"path/filepath"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// rootRules are the filters of a root as its line has them, in order: patterns,
// and files of patterns, which are read anew for each visit.
type rootRules struct{ url, host []filterRule }

type filterRule struct {
	allow   bool
	pattern string
	file    string // in place of these
	line    int    // of the text, where the file is named
	col     int
}

// add reads one of allow=, deny=, urlfilter=, allowhost=, denyhost= and
// hostfilter=.
func (r *rootRules) add(root *crawl.Root, e ndb.Entry, p ndb.Pair) error {
	to, filter := &r.url, &root.URLFilter
	switch p.Key {
	case "allowhost", "denyhost", "hostfilter":
		to, filter = &r.host, &root.HostFilter
	}
	x := filterRule{allow: p.Key == "allow" || p.Key == "allowhost", pattern: p.Value, line: e.Line, col: p.Col}
	if p.Key == "urlfilter" || p.Key == "hostfilter" {
		if x.file = p.Value; !filepath.IsAbs(x.file) {
			return e.Errorf(p, "%s: '%s' does not begin with a slash", p.Key, p.Value)
		}
		*to = append(*to, x)
		return nil
	}
	if *filter == nil {
		*filter = new(crawl.Filter)
	}
	if err := (*filter).Add(x.allow, x.pattern, p.Key+"="+x.pattern); err != nil {
		return e.Errorf(p, "%s: %v", p.Key, err)
	}
	*to = append(*to, x)
	return nil
}

// filtered returns the roots with their filters, files and all. An error says
// where in the text the file is named.
func (c *config) filtered() ([]crawl.Root, error) {
	roots := append([]crawl.Root(nil), c.roots...)
	for i := range roots {
		if err := c.rules[i].filter(&roots[i]); err != nil {
			return nil, err
		}
	}
	return roots, nil
}

func (r *rootRules) filter(root *crawl.Root) (err error) {
	if root.URLFilter, err = joined(r.url, root.URLFilter, "allow", "deny"); err != nil {
		return err
	}
	root.HostFilter, err = joined(r.host, root.HostFilter, "allowhost", "denyhost")
	return err
}

// maxListed is the number of roots that programs may name.
const maxListed = 100_000

// sources returns the roots for a visit: those that lines name, and those that
// programs do. A program that fails is an error, for nobody knows then what else
// it would have named; told hears of lines that are none.
func (c *config) sources(ctx context.Context, told func(program, why string)) ([]crawl.Root, error) {
	roots, err := c.filtered()
	if err != nil || len(c.lists) == 0 {
		return roots, err
	}
	known := make(map[string]bool, len(roots))
	for _, r := range roots {
		known[r.URL] = true
	}
	for _, l := range c.lists {
		r := l.root
		if err := l.rules.filter(&r); err != nil {
			return nil, err
		}
		for e, err := range crawl.Enumerate(ctx, l.program, nil) {
			switch {
			case err != nil && e.Line > 0:
				told(l.program[0], err.Error())
				continue
			case err != nil:
				return nil, err
			case known[e.URL]:
				continue
			case len(roots) >= maxListed+len(c.roots):
				return nil, fmt.Errorf("%s: more than %d URLs", l.program[0], maxListed)
			}
			known[e.URL] = true
			roots = append(roots, listed(r, &e))
		}
	}
	return roots, nil
}

// listed makes a root of what a program names: as the program's line says, or
// like r when it says no more than a URL.
func listed(r crawl.Root, e *crawl.Enumerated) crawl.Root {
	r.URL = e.URL
	if !e.Leaf && !r.Leaf {
		r.URLs, r.URLFilter, r.Hosts, r.HostFilter = e.URLs, e.URLFilter, e.Hosts, e.HostFilter
		r.Access, r.Delay, r.Depth, r.Enumeration = e.Access, e.Delay, e.Depth, e.Program
	}
	return r
}

// joined makes one filter of rules; without files it is the one there is.
func joined(rules []filterRule, is *crawl.Filter, allow, deny string) (*crawl.Filter, error) {
	files := false
	for _, r := range rules {
		files = files || r.file != ""
	}
	if !files {
		return is, nil
	}
	f := new(crawl.Filter)
	for _, r := range rules {
		key := deny
		if r.allow {
			key = allow
		}
		if r.file == "" {
			if err := f.Add(r.allow, r.pattern, key+"="+r.pattern); err != nil {
				return nil, err
			}
			continue
		}
		g, err := crawl.ReadFilter(r.file)
		if err != nil {
			return nil, ndb.Entry{Line: r.line}.Errorf(ndb.Pair{Col: r.col}, "%w", err)
		}
		f.Join(g)
	}
	return f, nil
}

// pattern reads a line of patterns for all roots.
func (c *config) pattern(e ndb.Entry) error {
	for _, p := range e.Pairs {
		if p.Key != "allow" && p.Key != "deny" {
			return e.Errorf(p, "%s: unknown key '%s'; a line has patterns only", e.First().Key, p.Key)
		}
		if err := c.filter.Add(p.Key == "allow", p.Value, p.Key+"="+p.Value); err != nil {
			return e.Errorf(p, "%s: %v", p.Key, err)
		}
	}
	return nil
}

// exclude is crawl.Plan.Exclude. A folder is kept out, with all that is in it,
// by a deny that comes before every allow and is not about how URLs end.
func (c *config) exclude(url string, folder bool) string {
	path := crawl.FilterPath(url)
	if folder {
		return c.filter.Closes(path)
	}
	if ok, why := c.filter.Admits(path); !ok {
		return why
	}
	return ""
}
