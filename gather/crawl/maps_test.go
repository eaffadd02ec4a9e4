package crawl

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMapsElsewhere: sitemaps that a robots.txt names on other servers are asked
// for as those servers want it: after their robots.txt, what that allows, and no
// faster than their delay; what they name counts for the root that led there.
func TestMapsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var robots strings.Builder
		w := &web{pages: map[string]string{site + "/": "x", site + "/late": "l",
			"http://maps/robots.txt": "User-agent: *\nDisallow: /no\nCrawl-delay: 3\n",
			"http://maps/no":         "<urlset><url><loc>" + site + "/hidden</loc></url></urlset>",
			"http://maps/index":      "<sitemapindex><sitemap><loc>http://maps/deep</loc></sitemap><sitemap><loc>" + site + "/own</loc></sitemap><sitemap><loc>http://third/x</loc></sitemap></sitemapindex>",
			"http://maps/deep":       "<urlset><url><loc>" + site + "/deep</loc></url><url><loc>http://maps/page</loc></url></urlset>",
			site + "/own":            "<urlset><url><loc>" + site + "/late</loc></url></urlset>"}}
		for _, u := range []string{"http://maps/no", "http://maps/index", "file:///etc/passwd"} {
			fmt.Fprintf(&robots, "Sitemap: %s\n", u)
		}
		for i := range 4 {
			u := fmt.Sprintf("http://maps/m%d", i)
			fmt.Fprintf(&robots, "Sitemap: %s\n", u)
			w.pages[u] = fmt.Sprintf("<urlset><url><loc>%s/p%d</loc></url></urlset>", site, i)
			w.pages[fmt.Sprintf("%s/p%d", site, i)] = "p"
		}
		w.pages[site+"/deep"], w.pages[site+"/robots.txt"] = "d", robots.String()
		f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
		p := Plan{Agent: "harvest/test", Roots: []Root{{URL: site + "/", Depth: -1, Sitemaps: true}}}
		visitOnce(t, f, p, w, k)
		if got, want := k.names(site), "/ /deep /late /p0 /p1 /p2 /p3"; got != want {
			t.Errorf("kept: got %s, want %s", got, want)
		}
		var last time.Time
		for i, h := range w.log {
			if !strings.HasPrefix(h.url, "http://maps/") {
				continue
			}
			if last.IsZero() != (h.url == "http://maps/robots.txt") {
				t.Errorf("request %d: %s is asked for before robots.txt, or that twice", i, h.url)
			}
			if d := h.at.Sub(last); d < 3*time.Second && !last.IsZero() && last != w.log[0].at {
				if strings.HasSuffix(h.url, "robots.txt") || d < time.Second { // the delay is known after robots.txt
					t.Errorf("%s: %v after the request before, want 3s", h.url, d)
				}
			}
			last = h.at
		}
		if got := w.asked("http://maps"); strings.Contains(got, "/no") || strings.Contains(got, "third") || !strings.Contains(got, "/deep") {
			t.Errorf("asked for %s", got)
		}
		verify(t, f)

		// It is no document's server, and may be met again.
		visitOnce(t, f, p, w, k)
		if got := w.asked("http://maps"); strings.Count(got, "/m") != 4 || strings.Contains(got, "robots.txt") {
			t.Errorf("again: asked for %s", got)
		}
	})
}

// TestWanted: what its owner asks for by its URL is had, whether strangers ask
// for it as well, before or after; also when they were refused a moment before.
func TestWanted(t *testing.T) {
	for _, first := range []string{"owner", "strangers"} {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			w := &web{pages: map[string]string{"http://secret/keys": "k", "http://secret/robots.txt": "User-agent: *\nDisallow: /x\n"}}
			path := filepath.Join(t.TempDir(), "crawl.db")
			f := openDB(t, path)
			p := Plan{Agent: "harvest/1", Queued: true,
				Public: func(ctx context.Context) context.Context { return context.WithValue(ctx, guardedKey{}, true) }}
			ask := map[string]func(){
				"owner": func() {
					if err := f.Add(ctx, "http://secret/keys"); err != nil {
						t.Fatal(err)
					}
				},
				"strangers": func() {
					if err := f.Submit(ctx, "http://secret/keys"); err != nil {
						t.Fatal(err)
					}
				}}
			second := map[string]string{"owner": "strangers", "strangers": "owner"}[first]
			ask[first]()
			visitOnce(t, f, p, guarded{w}, newKeeper())
			if got := w.asked("http://secret"); (got != "") != (first == "owner") {
				t.Errorf("%s first: asked for %q", first, got)
			}
			ask[second]()
			visitOnce(t, f, p, guarded{w}, newKeeper())
			if got := w.asked("http://secret"); !strings.Contains(got, "/keys") {
				t.Errorf("%s second: asked for %q", second, got)
			}
			f.Close()
			f = openDB(t, path)
			forgetRobots(f)
			p.Queued, p.Force = false, true
			if visitOnce(t, f, p, guarded{w}, newKeeper()); !strings.Contains(w.asked("http://secret"), "/keys") {
				t.Error("the next visit did not ask for it")
			}
		})
	}
}

// TestWantedMeanwhile: strangers are refused a server's robots.txt while the owner
// asks for a document of it, in one visit.
func TestWantedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{"http://secret/a": "a", "http://secret/b": "b", "http://own/": "<a href=a>"}, took: time.Second}
		f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
		if err := f.Submit(t.Context(), "http://secret/a"); err != nil {
			t.Fatal(err)
		}
		n := 0
		h := hooked{w, func(u string) {
			if n++; n == 2 { // own's robots.txt is there, and secret's was refused
				if err := f.Add(context.Background(), "http://secret/b"); err != nil {
					t.Error(err)
				}
			}
		}}
		p := Plan{Roots: []Root{{URL: "http://own/", Depth: -1}}, Public: func(ctx context.Context) context.Context { return context.WithValue(ctx, guardedKey{}, true) }}
		visitOnce(t, f, p, refusing{h}, newKeeper())
		if got := w.asked(""); !strings.Contains(got, "http://secret/b") || strings.Contains(got, "http://secret/a") {
			t.Errorf("asked for %s", got)
		}
	})
}

// TestFoundOnce: what an enumeration names is found once.
func TestFoundOnce(t *testing.T) {
	w := &web{pages: map[string]string{site + "/": "x", site + "/one": "1", site + "/two": "2"}}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: -1, Enumeration: []string{"/bin/sh", "-c", "echo " + site + "/one; echo " + site + "/two", "x"}}}}
	for n := range 2 {
		if c := visitOnce(t, f, p, w, k); c.Found.Load() != 3 || c.Fetched.Load()+c.Unchanged.Load() != 3 {
			t.Errorf("visit %d: found %d, fetched %d, unchanged %d, want 3 found and had", n+1, c.Found.Load(), c.Fetched.Load(), c.Unchanged.Load())
		}
	}
	verify(t, f)
}

// TestHideLine: a URL that is refused shows no password, whatever stands in it.
func TestHideLine(t *testing.T) {
	for u, want := range map[string]string{
		"http://u:pass word@[bad/":  "http://...@[bad/",
		`http:\\u:pa'ss "w" @x/`:    `http:\\...@x/`,
		"http:u:pass\tword@x/":      "http:...@x/",
		"http://x/a b":              "http://x/a b",
		"me@example.org":            "me@example.org",
		"http://u:p@x/ http://v:q@": "http://...@",
	} {
		if got := HideLine(u); got != want {
			t.Errorf("%s: got %s, want %s", u, got, want)
		}
		if _, err := Canonical(u); err != nil && strings.Contains(err.Error(), "word") {
			t.Errorf("%s: got %v", u, err)
		}
	}
}

// BenchmarkCounted decides about links to servers of no root, when there are many
// roots.
func BenchmarkCounted(b *testing.B) {
	f := openDB(b, filepath.Join(b.TempDir(), "f.db"))
	p := Plan{}
	for i := range 10000 {
		p.Roots = append(p.Roots, Root{URL: fmt.Sprintf("http://h%d/", i), Depth: -1})
	}
	v, err := newVisit(f, p, nil, nil, new(Counts))
	if err != nil {
		b.Fatal(err)
	}
	f.mu.Lock()
	v.welcome()
	f.server("http://elsewhere")
	f.mu.Unlock()
	r := &recorder{visit: v}
	for b.Loop() {
		if c, _ := r.counted(v.roots[RootID("http://h0/")], "http://elsewhere/x"); c != noServer {
			b.Fatal(c)
		}
	}
}
