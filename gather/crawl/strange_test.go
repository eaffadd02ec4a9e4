package crawl

import (
	"context"
	"fmt"
	iofs "io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

type guardedKey struct{}

// A guarded web refuses what is asked under the mark of strangers.
type guarded struct{ *web }

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(guardedKey{}) != nil {
		return nil, fmt.Errorf("address 10.0.0.1 is not public: %w", iofs.ErrPermission)
	}
	return g.web.RoundTrip(req)
}

// TestStrange: what only strangers ask for is asked of no private address, in no
// visit, its robots.txt neither; and they cannot have a server left alone, or a
// document that is known fail.
func TestStrange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := &web{pages: map[string]string{"http://own/": "<a href=a>a</a>", "http://own/a": "a", "http://own/b": "b",
			"http://secret/": "s", "http://secret/keys": "k", "http://mine/": "m"}}
		f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
		p := Plan{Roots: []Root{{URL: "http://own/", Depth: -1, Hosts: 1}}, Agent: "harvest/1",
			Public: func(ctx context.Context) context.Context { return context.WithValue(ctx, guardedKey{}, true) }}
		k := newKeeper()
		visitOnce(t, f, p, guarded{w}, k)
		w.asked("")

		urls := []string{"http://secret/keys", "http://own/a"}
		for n := range 2 * silentMost {
			urls = append(urls, fmt.Sprintf("http://own/x%d", n))
		}
		if err := f.Submit(ctx, urls...); err != nil {
			t.Fatal(err)
		}
		p.Queued = true
		visitOnce(t, f, p, guarded{w}, k)
		if got, want := w.asked(""), "http://own/a"; got != want {
			t.Errorf("when submitted: asked for %s, want %s", got, want)
		}
		p.Queued = false
		for _, force := range []bool{false, true} {
			p.Force = force
			visitOnce(t, f, p, guarded{w}, k)
			if got := w.asked(""); strings.Contains(got, "secret") || strings.Contains(got, "/x") || !strings.Contains(got, "http://own/a") {
				t.Errorf("visit, force %t: asked for %s", force, got)
			}
		}
		for s, err := range f.Servers(ctx) {
			if err != nil || s.Why != "" || s.Origin == "http://own" && s.Failures != 0 {
				t.Errorf("%s: left alone: %q, %d failures, %v", s.Origin, s.Why, s.Failures, err)
			}
		}

		// What is asked for by the owner is had, now and later.
		if err := f.Add(ctx, "http://mine/"); err != nil {
			t.Fatal(err)
		}
		visitOnce(t, f, p, guarded{w}, k)
		p.Force = true
		visitOnce(t, f, p, guarded{w}, k)
		if got := w.asked(""); strings.Count(got+" ", "http://mine/ ") != 2 {
			t.Errorf("by hand: asked for %s", got)
		}

		// Nor has a root of strangers its robots.txt asked for.
		p.Roots = append(p.Roots, Root{URL: "http://secret/", Depth: -1, Hosts: 1, Outside: true})
		visitOnce(t, f, p, guarded{w}, k)
		if got := w.asked(""); strings.Contains(got, "secret") {
			t.Errorf("a root from outside: asked for %s", got)
		}
	})
}

// TestElsewhere: a site does not have private addresses asked for a sitemap or a
// robots.txt that is to be elsewhere.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{"http://own/": "x", "http://own/robots.txt": "Sitemap: http://inner/map\nSitemap: http://own/map"},
			status: map[string]int{"http://b/robots.txt": 301},
			header: map[string]http.Header{"http://b/robots.txt": {"Location": {"http://inner/r"}}}}
		w.pages["http://b/"] = "y"
		f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
		p := Plan{Roots: []Root{{URL: "http://own/", Depth: -1, Hosts: 1, Sitemaps: true}, {URL: "http://b/", Depth: -1, Hosts: 1}},
			Public: func(ctx context.Context) context.Context { return context.WithValue(ctx, guardedKey{}, true) }}
		visitOnce(t, f, p, guarded{w}, newKeeper())
		if got := w.asked(""); strings.Contains(got, "inner") || !strings.Contains(got, "http://own/map") {
			t.Errorf("asked for %s", got)
		}
	})
}
