package gather

import (
	"context"
	"strings"

	"harvest/gather/crawl"
)

// redundant reports whether a document is so beside another that is known, and
// why.
func (v *visit) redundant(url string) string {
	dir, name := splitName(url)
	for other, why := range v.tables.Redundant(name) {
		if !v.g.db.Knows(dir + other) {
			continue
		}
		if d, err := v.g.db.Lookup(dir + other); err == nil && present(d.State) {
			return why + ": " + other + " is there"
		}
	}
	return ""
}

// present reports whether there is a document, as far as is known.
func present(s crawl.State) bool { return s == crawl.Stored || s == crawl.New }

// splitName takes the last part off a URL that has no query.
func splitName(url string) (dir, name string) {
	if strings.ContainsAny(url, "?#") {
		return url, ""
	}
	i := strings.LastIndexByte(url, '/') + 1
	return url[:i], url[i:]
}

// twins has what is redundant beside a document that has come leave the
// collection, and what it had made redundant come back when it has gone.
func (v *visit) twins(p *crawl.Page) {
	dir, name := splitName(p.URL)
	for other, why := range v.tables.Dropped(name) {
		d, err := v.g.db.Lookup(dir + other)
		if err != nil {
			continue
		}
		came := p.Outcome == crawl.Fetched && d.State == crawl.Stored
		went := p.Outcome != crawl.Fetched && p.Outcome != crawl.Unchanged && d.State == crawl.Barred && strings.HasPrefix(d.Why, why)
		if (came || went) && len(v.anew) < maxListed {
			v.anew = append(v.anew, d.URL)
		}
	}
}

// again has the documents fetched anew that a visit has found out about too late.
func (v *visit) again(ctx context.Context) error {
	if err := v.g.db.Add(ctx, v.anew...); err != nil {
		return err
	}
	v.g.mu.Lock()
	defer v.g.mu.Unlock()
	v.g.want.queue = v.g.want.queue || v.g.held == ""
	v.g.poke()
	return nil
}
