package cache

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"harvest/cache/http1"
	"harvest/fs/ndb"
)

// prefetchURL fetches what is not kept, or not fresh, without a reader; it returns
// when it is here.
func (c *Cache) prefetchURL(ctx context.Context, url string) error {
	return c.order(ctx, url, nil, "prefetch")
}

// refreshURL asks the server whether what is kept is still good.
func (c *Cache) refreshURL(ctx context.Context, url string) error {
	return c.order(ctx, url, http1.Header{{Name: "Cache-Control", Value: "no-cache"}}, "refresh")
}

func (c *Cache) order(ctx context.Context, url string, h http1.Header, what string) error {
	l, err := parseURL(url)
	if err != nil {
		return err
	}
	q := &request{method: "GET", door: "tree", minor: 1, began: time.Now(), header: h}
	q.setLocation(l)
	a := c.answer(ctx, q)
	defer a.Close()
	if a.status >= 400 {
		return fmt.Errorf("%s: %d %s", q.url, a.status, a.reason)
	}
	n := int64(0)
	if a.body != nil {
		if n, err = io.Copy(io.Discard, a.body); err != nil {
			return fmt.Errorf("%s: %w", q.url, err)
		}
	}
	c.done(q, a, n, nil)
	c.event(what, ndb.Of("url", q.url), ndb.Of("bytes", n), ndb.Of("result", a.outcome.how))
	return nil
}

// resolveRelative reads a reference that begins with neither a scheme nor a slash.
func resolveRelative(base, ref string) (*location, error) {
	b, err := url.Parse(base)
	if err != nil {
		return nil, badURL(base, "not a url")
	}
	u, err := b.Parse(ref)
	if err != nil {
		return nil, badURL(ref, "not a url")
	}
	return parseURL(u.String())
}

// isSecretField reports fields that are told to nobody else.
func isSecretField(name string) bool {
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie", "authorization", "proxy-authorization", "cookie":
		return true
	}
	return false
}
