package crawl

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/fs/ndb"
)

// TestSitemaps: documents that only a sitemap or a feed names are gathered, and
// one that is not due is asked for when they say that it has changed.
func TestSitemaps(t *testing.T) {
	const index = `<sitemapindex><sitemap><loc>http://site/one.xml</loc></sitemap><sitemap><loc>http://other/x.xml</loc></sitemap></sitemapindex>`
	one := func(date string) string {
		return `<urlset><url><loc>http://site/mapped</loc><lastmod>` + date + `</lastmod></url><url><loc>http://site/private/x</loc></url>
			<url><loc>http://other/mapped</loc></url></urlset>`
	}
	w := &web{pages: map[string]string{site + "/robots.txt": "User-agent: *\nDisallow: /private\nSitemap: http://site/index.xml\n",
		site + "/index.xml": index, site + "/one.xml": one("2020-01-01"), site + "/mapped": "mapped", site + "/fed": "fed",
		site + "/":     `<link rel=alternate type="application/rss+xml" href=feed>`,
		site + "/feed": `<rss version="2.0"><channel><item><link>http://site/fed?utm_source=x</link></item></channel></rss>`}}
	w.header = map[string]http.Header{site + "/feed": {"Content-Type": {"application/rss+xml"}}}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: -1, Sitemaps: true, Feeds: true}}, Strip: []string{"utm_source"},
		Revisit: func(d *Doc) time.Time { return d.Checked.Add(time.Hour) }}
	visitOnce(t, f, p, w, k)
	if got, want := k.names(site), "/ /fed /feed /mapped"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	if got, want := w.asked(site), "/ /fed /feed /index.xml /mapped /one.xml /robots.txt"; got != want {
		t.Errorf("asked for: got %s, want %s", got, want)
	}
	visitOnce(t, f, p, w, k)
	if got, want := w.asked(site), "/ /index.xml /one.xml"; got != want {
		t.Errorf("none due: asked for %s, want %s", got, want)
	}
	w.pages[site+"/one.xml"] = one(time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339))
	visitOnce(t, f, p, w, k)
	if got := w.asked(site); got != "/ /index.xml /one.xml" { // a date that is to come says nothing
		t.Errorf("a date to come: asked for %s", got)
	}
	d, err := f.Lookup(site + "/mapped")
	if err != nil {
		t.Fatal(err)
	}
	d.Checked = time.Now().Add(-30 * time.Minute)
	if err := f.update(func(b *batch) error { return b.put(&d) }); err != nil {
		t.Fatal(err)
	}
	w.pages[site+"/one.xml"] = one(time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339))
	visitOnce(t, f, p, w, k)
	if got, want := w.asked(site), "/ /index.xml /mapped /one.xml"; got != want {
		t.Errorf("one has changed: asked for %s, want %s", got, want)
	}
	verify(t, f)
}

// TestEnumeration: a program names the documents of a root, in place of links;
// when it fails nothing is lost.
func TestEnumeration(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "names")
	write := func(text string) {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("read url; echo ${url}a.html; echo ${url}named; echo http://sub/ 10 /dev/null 1 /dev/null HTTP 0 1 /bin/false\n")
	w := newWeb(t, "testdata/site.txtar", site)
	w.pages[site+"/named"] = "named"
	w.pages["http://sub/"], w.pages["http://sub/x"] = "<a href=x><a href=http://site/b/>", "<a href=y>"
	f, k := openDB(t, filepath.Join(dir, "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: -1, Enumeration: []string{script}}}}
	const all = "http://site/ http://site/a.html http://site/named http://sub/ http://sub/x"
	if c := visitOnce(t, f, p, w, k); c.Found.Load() != c.Fetched.Load()+c.Excluded.Load()+c.Failed.Load() || c.Fetched.Load() != 5 {
		t.Errorf("found %d, fetched %d, excluded %d, failed %d: what was named counts once", c.Found.Load(), c.Fetched.Load(), c.Excluded.Load(), c.Failed.Load())
	}
	if got := k.names(""); got != all {
		t.Errorf("kept: got %s, want %s", got, all)
	}
	write("exit 1\n")
	if c := visitOnce(t, f, p, w, k); c.Found.Load() != 3 {
		t.Errorf("found %d, want the 3 of the root itself", c.Found.Load())
	}
	if got := k.names(""); got != all {
		t.Errorf("kept when the program fails: got %s, want %s", got, all)
	}
	write("exit 0\n")
	visitOnce(t, f, p, w, k)
	if got, want := k.names(""), "http://site/ http://site/a.html http://site/named"; got != want {
		t.Errorf("kept when it names no root: got %s, want %s", got, want)
	}
	verify(t, f)
}

// TestTrapEnds: a calendar without an end is left, with a reason, and is not
// walked into again by the next visit.
func TestTrapEnds(t *testing.T) {
	requests := 0
	rt := roundTrip(func(r *http.Request) (*http.Response, error) {
		requests++
		n := 0
		fmt.Sscanf(r.URL.Path, "/cal/%d", &n)
		text := fmt.Sprintf("<a href=/cal/%d>next</a><a href=/cal/%d?view=week>week</a> what there is on day %d: nothing is on, nothing at all, come back", n+1, n, n)
		code := 200
		if r.URL.Path == "/robots.txt" {
			code, text = 404, ""
		}
		return &http.Response{Status: fmt.Sprint(code), StatusCode: code, Header: http.Header{"Content-Type": {"text/html"}},
			Body: readCloser{strings.NewReader(text)}, ContentLength: int64(len(text)), Request: r}, nil
	})
	path := filepath.Join(t.TempDir(), "f.db")
	f, k := openDB(t, path), newKeeper()
	var told []string
	p := Plan{Roots: []Root{{URL: site + "/cal/0", Depth: -1}}, Trapped: func(_, why string) { told = append(told, why) }, Limits: Limits{Servers: 1}}
	visitOnce(t, f, p, rt, k)
	if requests > 500 || len(told) == 0 {
		t.Fatalf("got %d requests, told %q, want it to end by 500 and say why", requests, told)
	}
	t.Logf("%d requests: %s", requests, told)
	f.Close()
	f = openDB(t, path)
	first := requests
	visitOnce(t, f, p, rt, k)
	if again := requests - first; again > first+5 {
		t.Errorf("got %d requests at the next visit, want no more than %d", again, first)
	}
	lines, err := f.Explain(p, site+"/cal/999")
	if err != nil || !strings.Contains(text(lines), "excluded='a trap: ") {
		t.Errorf("explained: %s, %v", text(lines), err)
	}
	verify(t, f)
}

func text(lines [][]ndb.Pair) string {
	var s []string
	for _, l := range lines {
		s = append(s, ndb.Format(l...))
	}
	slices.Sort(s)
	return strings.Join(s, "; ")
}

// TestExplain: what decides about a URL is told.
func TestExplain(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Agent: "harvest/test", Roots: []Root{{URL: site, Depth: 1}}, Exclude: func(u string, _ bool) string {
		if strings.HasSuffix(u, "f.html") {
			return "no f"
		}
		return ""
	}}
	visitOnce(t, f, p, w, k)
	for u, want := range map[string]string{
		site + "/private/secret.html": "excluded='robots.txt: Disallow: /private/'",
		site + "/private/open.html":   "rule='Allow: /private/open.html'",
		site + "/f.html":              "excluded='no f'",
		"http://other/":               "excluded='no root covers it'",
		site + "/a.html":              "from=http://site/ depth=0",
	} {
		lines, err := f.Explain(p, u)
		if err != nil || !strings.Contains(text(lines), want) {
			t.Errorf("%s: got %s, %v, want %s", u, text(lines), err, want)
		}
	}
}

// TestSitemapTrap: sitemaps that name nothing new come to an end, of which is
// told; others are read, many as they are.
func TestSitemapTrap(t *testing.T) {
	const site, good, same = "http://site", "http://good", "http://same"
	var all strings.Builder
	for i := range 300 {
		fmt.Fprintf(&all, "<sitemap><loc>/map%d.xml</loc></sitemap>", i)
	}
	w := &web{pages: map[string]string{}}
	for _, origin := range []string{site, good, same} {
		w.pages[origin+"/sitemap.xml"] = "<sitemapindex>" + all.String() + "</sitemapindex>"
		w.pages[origin+"/"] = "<p>home"
		for i := range 300 {
			page := fmt.Sprintf("/page%d.html", i)
			switch origin {
			case site:
				w.pages[fmt.Sprintf("%s/map%d.xml", origin, i)] = fmt.Sprintf("<sitemapindex><sitemap><loc>/map%d-0.xml</loc></sitemap></sitemapindex>", i)
				continue
			case same:
				page = "/page.html"
			}
			w.pages[fmt.Sprintf("%s/map%d.xml", origin, i)] = "<urlset><url><loc>" + page + "</loc></url></urlset>"
			w.pages[origin+page] = "<p>" + strings.Repeat(string(rune('a'+i%26))+string(rune('a'+i/26))+" ", 20)
		}
	}
	told := make(map[string]string)
	p := Plan{Trapped: func(url, why string) { told[Origin(url)] += why }}
	for _, origin := range []string{site, good, same} {
		p.Roots = append(p.Roots, Root{URL: origin + "/", Depth: -1, Sitemaps: true})
	}
	k := newKeeper()
	visitOnce(t, openDB(t, filepath.Join(t.TempDir(), "crawl.db")), p, w, k)
	asked := w.asked("")
	for origin, want := range map[string]int{site: maxBarren, good: 301, same: 2 + maxBarren} {
		if got := strings.Count(asked, origin+"/map") + strings.Count(asked, origin+"/sitemap"); got < want-2 || got > want+2 {
			t.Errorf("%s: got %d sitemaps read, want %d", origin, got, want)
		}
	}
	const want = "a trap: 200 sitemaps in a row name nothing new"
	if told[site] != want || told[same] != want || told[good] != "" {
		t.Errorf("got told %q, want %q of %s and %s", told, want, site, same)
	}
	if n := strings.Count(strings.ReplaceAll(k.names(good), same+"/page", ""), "page"); n != 300 {
		t.Errorf("%s: got %d pages, want 300", good, n)
	}
}
