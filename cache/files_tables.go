package cache

import (
	"context"
	"io"
	"strings"
	"time"

	"harvest/cache/segment"
	"harvest/fs"
	"harvest/fs/ndb"
)

func (c *Cache) tableNodes() map[string]fs.Node {
	return map[string]fs.Node{
		"dns":       fs.Stream(c.id("dns"), 0, c.writeNames),
		"neighbors": fs.Text(c.id("neighbors"), c.neighborLines),
	}
}

// neighborLines is a line about each neighbour.
func (c *Cache) neighborLines() string {
	var b strings.Builder
	for _, r := range c.near.rows() {
		b.WriteString(ndb.Format(
			ndb.Of("name", r.Name), ndb.Of("kind", r.Kind), ndb.Of("addr", r.Addr), ndb.Of("state", r.State), ndb.Of("rtt", r.RTT.Round(time.Microsecond)), ndb.Of("heard", r.Heard),
			ndb.Of("asked", r.Asked), ndb.Of("hits", r.Hits), ndb.Of("misses", r.Misses), ndb.Of("denied", r.Denied), ndb.Of("late", r.Late),
			ndb.Of("fetched", r.Fetched), ndb.Of("failed", r.Failed), ndb.Of("falsehits", r.FalseHits), ndb.Of("bytes", r.Bytes), ndb.Of("weight", r.Weight)) + "\n")
	}
	return b.String()
}

// writeNames writes a line about each name that was looked up.
func (c *Cache) writeNames(_ context.Context, w io.Writer) error {
	now := time.Now()
	for e := range c.dns.All() {
		pairs := []ndb.Pair{ndb.Of("name", e.Name), ndb.Of("expires", e.Expires), ndb.Of("stale", !e.Expires.IsZero() && now.After(e.Expires)), ndb.Of("hits", e.Hits)}
		for _, a := range e.Addrs {
			pairs = append(pairs, ndb.Of("addr", a))
		}
		if e.Err != nil {
			pairs = append(pairs, ndb.Of("err", e.Err))
		}
		if _, err := io.WriteString(w, ndb.Format(pairs...)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeObjects writes a line about each response that is kept.
func (c *Cache) writeObjects(ctx context.Context, w io.Writer) error {
	var failed error
	err := c.names.each(func(k segment.Key, url []byte) bool {
		for _, v := range c.peek(k) {
			if _, failed = io.WriteString(w, c.objectLine(v)+"\n"); failed != nil {
				return false
			}
		}
		failed = ctx.Err()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// peek is what is kept of a URL; looking at it changes nothing.
func (c *Cache) peek(k segment.Key) []*variant {
	if vs, ok := c.mem.peek(k); ok {
		return vs
	}
	var vs []*variant
	for _, ref := range c.store.Find(k) {
		o, err := c.store.Open(ref)
		if err != nil {
			continue
		}
		v, err := newVariant(ref, o.Meta, o.Size, nil, false, c.conf.Load().rules, nil)
		if o.Close(); err == nil {
			vs = append(vs, v)
		}
	}
	return vs
}

func (c *Cache) objectLine(v *variant) string {
	now := time.Now()
	p, _ := v.response()
	life, from := c.conf.Load().rules.Lifetime(p)
	left := time.Duration(v.until - now.UnixNano()).Truncate(time.Second)
	where := "disk"
	if v.inside {
		where = "memory"
	}
	pairs := []ndb.Pair{
		ndb.Of("url", p.URL), ndb.Of("status", p.Status), ndb.Of("size", v.size), ndb.Of("age", p.Age(now).Truncate(time.Second)),
		ndb.Of("fresh", left), ndb.Of("life", life.Truncate(time.Second)), ndb.Of("by", from), ndb.Of("hits", v.hits.Load()), ndb.Of("in", where),
	}
	for _, f := range p.Selecting {
		pairs = append(pairs, ndb.Of("vary", f.Name+": "+f.Value))
	}
	return ndb.Format(pairs...)
}
