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
	"time"
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

// TestAbroad: a sitemap on another host is asked for as that host's robots.txt
// has it, which is asked for once, also where it is elsewhere.
func TestAbroad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maps = "Sitemap: http://maps/open\nSitemap: http://maps/shut/a\nSitemap: http://maps/shut/b\nSitemap: http://down/map\nSitemap: http://moved/map\n"
		w := &web{pages: map[string]string{"http://own/": "x", "http://own/robots.txt": maps, "http://own/named": "n",
			"http://maps/robots.txt": "User-agent: *\nDisallow: /shut\n", "http://maps/open": "<urlset><url><loc>http://own/named</loc></url></urlset>",
			"http://maps/shut/a": "<urlset/>", "http://maps/shut/b": "<urlset/>", "http://down/map": "<urlset/>", "http://moved/map": "<urlset/>",
			"http://moved/r": "User-agent: harvest\nDisallow: /\n"},
			status: map[string]int{"http://down/robots.txt": 503, "http://moved/robots.txt": 302},
			header: map[string]http.Header{"http://moved/robots.txt": {"Location": {"http://moved/r"}}}}
		f, k := openDB(t, filepath.Join(t.TempDir(), "crawl.db")), newKeeper()
		p := Plan{Agent: "harvest/1", Roots: []Root{{URL: "http://own/", Depth: -1, Hosts: 1, Sitemaps: true}}}
		visitOnce(t, f, p, w, k)
		const want = "http://down/robots.txt=503 http://maps/open http://maps/robots.txt http://moved/r http://moved/robots.txt=302 http://own/ http://own/named http://own/robots.txt"
		if got := w.asked(""); got != want {
			t.Errorf("asked for\n%s, want\n%s", got, want)
		}
		if got, want := k.names("http://own"), "/ /named"; got != want {
			t.Errorf("kept %s, want %s", got, want)
		}
	})
}

// TestTheirs: that a robots.txt was refused to strangers keeps nothing from the
// owner, neither in the same visit nor in the next.
func TestTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := &web{pages: map[string]string{"http://mine/": "m", "http://mine/b": "b"}}
		f, k := openDB(t, filepath.Join(t.TempDir(), "crawl.db")), newKeeper()
		p := Plan{Agent: "harvest/1", Queued: true,
			Public: func(ctx context.Context) context.Context { return context.WithValue(ctx, guardedKey{}, true) }}
		if err := f.Submit(ctx, "http://mine/"); err != nil {
			t.Fatal(err)
		}
		visitOnce(t, f, p, guarded{w}, k)
		if got := w.asked(""); got != "" {
			t.Errorf("for strangers: asked for %s", got)
		}
		if err := f.Add(ctx, "http://mine/b"); err != nil {
			t.Fatal(err)
		}
		visitOnce(t, f, p, guarded{w}, k)
		if got, want := k.names("http://mine"), "/b"; got != want {
			t.Errorf("for its owner, at once: kept %q, want %q; asked for %s", got, want, w.asked(""))
		}

		// The owner asks while a visit runs in which it was refused.
		w.pages["http://own/"], w.pages["http://own/a"], w.pages["http://too/b"] = "<a href=a>", "a", "b"
		if err := f.Submit(ctx, "http://too/"); err != nil {
			t.Fatal(err)
		}
		p.Queued, p.Roots = false, []Root{{URL: "http://own/", Depth: -1, Hosts: 1, Delay: time.Minute}}
		visitOnce(t, f, p, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.String() == "http://own/a" {
				if err := f.Add(ctx, "http://too/b"); err != nil {
					t.Error(err)
				}
			}
			return guarded{w}.RoundTrip(r)
		}), k)
		if got := k.names("http://too"); !strings.HasPrefix(got, "/b ") {
			t.Errorf("for its owner, in the same visit: kept %q, want /b; asked for %s", got, w.asked(""))
		}
	})
}
