package crawl

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A web is a RoundTripper over pages in memory, with a server's log.
type web struct {
	mu     sync.Mutex
	pages  map[string]string // by URL
	status map[string]int    // of those that are not 200
	header map[string]http.Header
	fail   map[string]error
	log    []hit
	took   time.Duration // by an answer
}

type hit struct {
	at     time.Time
	url    string
	status int
	header http.Header
}

func newWeb(t testing.TB, file, origin string) *web {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &web{pages: make(map[string]string), status: make(map[string]int), header: make(map[string]http.Header), fail: make(map[string]error)}
	for part := range strings.SplitSeq("\n"+string(b), "\n-- ") {
		if name, text, ok := strings.Cut(part, " --\n"); ok && !strings.Contains(name, "\n") {
			w.pages[origin+name] = text
		}
	}
	return w
}

func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.took > 0 {
		select {
		case <-time.After(w.took):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	u := req.URL.String()
	h := http.Header{"Content-Type": {"text/html"}}
	maps.Copy(h, w.header[u])
	text, ok := w.pages[u]
	code := w.status[u]
	switch {
	case code != 0:
	case !ok:
		code = 404
	case h.Get("Etag") != "" && h.Get("Etag") == req.Header.Get("If-None-Match"):
		code, text = 304, ""
	default:
		code = 200
	}
	w.log = append(w.log, hit{time.Now(), u, code, req.Header})
	if err := w.fail[u]; err != nil {
		return nil, err
	}
	return &http.Response{Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Header: h,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req}, nil
}

// asked returns what was asked for, sorted, and forgets it.
func (w *web) asked(origin string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, h := range w.log {
		if h.status == 200 {
			all = append(all, strings.TrimPrefix(h.url, origin))
		} else {
			all = append(all, fmt.Sprintf("%s=%d", strings.TrimPrefix(h.url, origin), h.status))
		}
	}
	w.log = nil
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A keeper is a Handler that keeps pages as a store would.
type keeper struct {
	mu   sync.Mutex
	kept map[string]string
	last map[string]string // outcome of each page of the last visit, with the reason
	due  []string
	fail error
}

func newKeeper() *keeper {
	return &keeper{kept: make(map[string]string), last: make(map[string]string)}
}

func (k *keeper) Handle(_ context.Context, p *Page) {
	var all bytes.Buffer
	all.Write(p.Head)
	if p.Rest != nil {
		if _, err := all.ReadFrom(p.Rest); err != nil {
			p.Outcome, p.Why = Failed, err.Error()
			return
		}
	}
	if strings.Contains(all.String(), "PANIC") {
		panic("as the page says")
	}
	p.Result = all.String()
}

// A summer is a keeper that says what the MD5 of a page is.
type summer struct{ *keeper }

func newSummer() summer { return summer{newKeeper()} }

func (s summer) Handle(ctx context.Context, p *Page) {
	s.keeper.Handle(ctx, p)
	if text, ok := p.Result.(string); ok {
		p.MD5 = md5.Sum([]byte(text))
	}
}

func (k *keeper) Commit(_ context.Context, pages []*Page) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	for _, p := range pages {
		k.last[p.URL] = strings.TrimSpace(p.Outcome.String() + " " + p.Why)
		switch {
		case p.Outcome == Fetched:
			k.kept[p.URL] = p.Result.(string)
		case p.Outcome == Gone || p.Outcome == Excluded || p.Outcome == Moved:
			if _, ok := k.kept[p.URL]; ok != p.Stored {
				return fmt.Errorf("%s: stored %t, kept %t", p.URL, p.Stored, ok)
			}
			delete(k.kept, p.URL)
		case p.Outcome == Unchanged && p.Due:
			k.due = append(k.due, p.URL)
		}
	}
	return nil
}

// names returns what is kept, sorted.
func (k *keeper) names(origin string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for u := range k.kept {
		all = append(all, strings.TrimPrefix(u, origin))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func openDB(t testing.TB, path string) *DB {
	t.Helper()
	f, err := OpenDB(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// forgetRobots has every robots.txt asked for again.
func forgetRobots(f *DB) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.servers {
		f.change(ServerID(i + 1)).Until = time.Time{}
	}
}

func visitOnce(t testing.TB, f *DB, p Plan, rt http.RoundTripper, k *keeper) *Counts {
	t.Helper()
	c := new(Counts)
	k.last = make(map[string]string)
	if p.Agent == "" {
		p.Agent = "harvest/test"
	}
	if err := f.Visit(t.Context(), p, rt, k, c); err != nil {
		t.Fatal(err)
	}
	if n := c.Queued.Load(); n != 0 {
		t.Errorf("got %d queued after the visit", n)
	}
	return c
}

const site = "http://site"

func TestSite(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	w.status[site+"/moved"] = 301
	w.header[site+"/moved"] = http.Header{"Location": {"/deep/er/d.html#x"}}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: -1}}}
	c := visitOnce(t, f, p, w, k)
	const all = "/ /a.html /b/ /c.html /deep/er/d.html /deep/er/e.html /f.html /frame.html /gone.html /private/open.html"
	if got := k.names(site); got != all {
		t.Errorf("kept:\ngot  %s\nwant %s", got, all)
	}
	const asked = "/ /a.html /b/ /c.html /deep/er/=404 /deep/er/d.html /deep/er/e.html /f.html /frame.html /gone.html /missing.html=404 /moved=301 /noindex.html /private/open.html /robots.txt"
	if got := w.asked(site); got != asked {
		t.Errorf("asked for:\ngot  %s\nwant %s", got, asked)
	}
	for u, want := range map[string]string{
		"/private/secret.html": "excluded robots.txt: Disallow: /private/",
		"/search?q=1":          "excluded robots.txt: Disallow: /search",
		"/noindex.html":        "excluded the page says noindex",
		"/missing.html":        "failed 404 Not Found",
		"/moved":               "moved to http://site/deep/er/d.html",
	} {
		if got := k.last[site+u]; got != want {
			t.Errorf("%s: got %q, want %q", u, got, want)
		}
	}
	if c.Fetched.Load() != 10 || c.Excluded.Load() != 3 || c.Failed.Load() != 2 {
		t.Errorf("got fetched %d, excluded %d, failed %d, want 10, 3, 2", c.Fetched.Load(), c.Excluded.Load(), c.Failed.Load())
	}

	// A second visit asks for what it knows, and once for what is still there.
	for u := range w.pages {
		w.header[u] = http.Header{"Etag": {`"1"`}}
	}
	delete(w.pages, site+"/gone.html")
	w.status[site+"/a.html"] = 500
	w.fail[site+"/c.html"] = errors.New("connection reset")
	visitOnce(t, f, p, w, k)
	if got, want := k.names(site), strings.Replace(all, " /gone.html", "", 1); got != want {
		t.Errorf("kept after a second visit:\ngot  %s\nwant %s", got, want)
	}
	if got := k.last[site+"/a.html"]; got != "failed 500 Internal Server Error" {
		t.Errorf("a.html: got %q", got)
	}
	w.asked(site)
	delete(w.status, site+"/a.html")
	delete(w.fail, site+"/c.html")
	c = visitOnce(t, f, p, w, k) // all but those that failed have validators
	if c.Fetched.Load() != 2 || c.Unchanged.Load() != 7 {
		t.Errorf("a third visit: got fetched %d, unchanged %d, want 2, 7", c.Fetched.Load(), c.Unchanged.Load())
	}
	w.asked(site)
	c = visitOnce(t, f, p, w, k)
	if c.Fetched.Load() != 0 || c.Unchanged.Load() != 9 {
		t.Errorf("a fourth visit: got fetched %d, unchanged %d, want 0, 9", c.Fetched.Load(), c.Unchanged.Load())
	}
	if got := strings.Count(w.asked(site), "=304"); got != 9 {
		t.Errorf("a fourth visit: got %d answers 304, want 9", got)
	}

	// Everything anew.
	p.Force = true
	if c = visitOnce(t, f, p, w, k); c.Fetched.Load() != 9 {
		t.Errorf("forced: got fetched %d, want 9", c.Fetched.Load())
	}
	p.Force = false

	// What is forbidden since is dropped; so is what the roots no longer cover.
	w.pages[site+"/robots.txt"] += "\nUser-agent: harvest\nDisallow: /deep\nDisallow: /private/s\n"
	forgetRobots(f)
	p.Exclude = func(u string, _ bool) string {
		if strings.HasSuffix(u, "frame.html") {
			return "no frames"
		}
		return ""
	}
	visitOnce(t, f, p, w, k)
	if got, want := k.names(site), "/ /a.html /b/ /c.html /f.html /private/open.html"; got != want {
		t.Errorf("kept after new rules:\ngot  %s\nwant %s", got, want)
	}
	p.Roots = []Root{{URL: site + "/a.html", Leaf: true}}
	visitOnce(t, f, p, w, k)
	if got, want := k.names(site), "/a.html"; got != want {
		t.Errorf("kept after new roots: got %s, want %s", got, want)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		root Root
		want string
	}{
		{Root{Depth: 0}, "/"},
		{Root{Depth: 1}, "/ /a.html /b/ /frame.html /private/open.html"},
		{Root{Depth: 2}, "/ /a.html /b/ /c.html /deep/er/d.html /frame.html /private/open.html"},
		{Root{Depth: -1, Leaf: true}, "/"},
		{Root{Depth: -1, URLs: 3}, "/ /a.html /b/"},
	} {
		w := newWeb(t, "testdata/site.txtar", site)
		k := newKeeper()
		c.root.URL = site
		visitOnce(t, openDB(t, filepath.Join(t.TempDir(), "f.db")), Plan{Roots: []Root{c.root}}, w, k)
		if got := k.names(site); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.root, got, c.want)
		}
	}
}

// TestOrder: with a delay one document is fetched at a time, near ones first or
// those behind the newest link.
func TestOrder(t *testing.T) {
	for search, want := range map[Search]string{
		Breadth: "/robots.txt / /a /b /a1 /a2 /b1 /a11",
		Depth:   "/robots.txt / /a /a1 /a11 /a2 /b /b1",
	} {
		synctest.Test(t, func(t *testing.T) {
			link := func(to ...string) string {
				s := ""
				for _, l := range to {
					s += "<a href=/" + l + ">"
				}
				return s
			}
			w := &web{pages: map[string]string{
				site + "/": link("a", "b"), site + "/a": link("a1", "a2"), site + "/a1": link("a11"),
				site + "/b": link("b1"), site + "/a2": "", site + "/a11": "", site + "/b1": "", site + "/robots.txt": "",
			}}
			k := newKeeper()
			f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
			defer f.Close()
			visitOnce(t, f, Plan{Roots: []Root{{URL: site, Depth: -1, Delay: time.Second, Search: search}}}, w, k)
			var got []string
			for _, h := range w.log {
				got = append(got, strings.TrimPrefix(h.url, site))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("search %d: got %s, want %s", search, got, want)
			}
		})
	}
}

// TestPace measures, in a time that is not the clock's, what lies between two
// requests to a server.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name, robots string
		delay, want  time.Duration
		took         time.Duration
	}{
		{"default", "", -1, time.Second, 0},
		{"root", "", 3 * time.Second, 3 * time.Second, 0},
		{"robots", "User-agent: *\nCrawl-delay: 7\n", time.Second, 7 * time.Second, 0},
		{"robots over none", "User-agent: *\nCrawl-delay: 2\n", 0, 2 * time.Second, 0},
		{"an hour", "User-agent: *\nCrawl-delay: 3600\n", 0, time.Hour, 0},
		{"slow", "", time.Second, 30 * time.Second, 5 * time.Second}, /* the answer, and five times as long */
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb(t, "testdata/site.txtar", site)
				w.pages[site+"/robots.txt"] = c.robots
				w.took = c.took
				f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
				defer f.Close()
				p := Plan{Roots: []Root{{URL: site, Depth: 1, Delay: c.delay}}}
				visitOnce(t, f, p, w, newKeeper())
				visitOnce(t, f, p, w, newKeeper()) // the pace goes on from one visit to the next
				if len(w.log) < 15 {
					t.Fatalf("got %d requests", len(w.log))
				}
				for i := 2; i < len(w.log); i++ { // the delay is known with the second
					got := w.log[i].at.Sub(w.log[i-1].at)
					if got < c.want || got > c.want+c.want/100+time.Second {
						t.Errorf("request %d, %s, came %v after the one before, want %v", i, w.log[i].url, got, c.want)
					}
				}
			})
		})
	}
}

// TestBusy: a server that asks to be left alone is.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, "testdata/site.txtar", site)
		f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
		defer f.Close()
		p := Plan{Roots: []Root{{URL: site + "/a.html", Leaf: true, Delay: time.Second}}}
		w.status[site+"/a.html"] = 429
		w.header[site+"/a.html"] = http.Header{"Retry-After": {"120"}}
		visitOnce(t, f, p, w, k)
		if got, want := k.last[site+"/a.html"], "failed the server is busy: 429"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(w.log) != 5 { // robots.txt and four tries
			t.Fatalf("got %d requests, want 5", len(w.log))
		}
		for i := 2; i < 5; i++ {
			if got := w.log[i].at.Sub(w.log[i-1].at); got < 2*time.Minute || got > 3*time.Minute {
				t.Errorf("try %d came after %v, want 2m", i, got)
			}
		}
		// Longer than a visit waits: left to a later one, which comes too early, and one that does not.
		w.log = nil
		w.status[site+"/a.html"] = 503
		w.header[site+"/a.html"] = http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
		start := time.Now()
		c := new(Counts)
		p.Agent = "harvest/test"
		for range 2 {
			if err := f.Visit(t.Context(), p, w, k, c); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.log) != 1 || time.Since(start) > 5*time.Minute {
			t.Errorf("got %d requests in %v, want 1, at once", len(w.log), time.Since(start))
		}
		delete(w.status, site+"/a.html")
		time.Sleep(time.Hour)
		visitOnce(t, f, p, w, k)
		if got := k.last[site+"/a.html"]; got != "fetched" {
			t.Errorf("an hour later: got %q, want fetched", got)
		}
	})
}

// TestNoRobots: a robots.txt that is not there allows, one that cannot be had
// forbids, and deletes nothing.
func TestNoRobots(t *testing.T) {
	for _, c := range []struct {
		status int
		err    error
		want   string
	}{
		{404, nil, "fetched"}, {403, nil, "fetched"}, {410, nil, "fetched"},
		{500, nil, "failed robots.txt cannot be had: 500"}, {503, nil, "failed robots.txt cannot be had: 503"},
		{429, nil, "failed robots.txt cannot be had: 429"}, {0, errors.New("no route"), "failed robots.txt cannot be had"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb(t, "testdata/site.txtar", site)
			f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
			defer f.Close()
			p := Plan{Roots: []Root{{URL: site + "/a.html", Leaf: true}}}
			visitOnce(t, f, p, w, k)
			w.status[site+"/robots.txt"], w.fail[site+"/robots.txt"] = c.status, c.err
			time.Sleep(25 * time.Hour)
			visitOnce(t, f, p, w, k)
			got := k.last[site+"/a.html"]
			if got == "unchanged" {
				got = "fetched"
			}
			if got != c.want && !(c.want == "fetched" && got != "") || k.names(site) != "/a.html" {
				t.Errorf("%d %v: got %q, keeping %q, want %q", c.status, c.err, got, k.names(site), c.want)
			}
			asked := len(w.log)
			delete(w.status, site+"/robots.txt")
			delete(w.fail, site+"/robots.txt")
			visitOnce(t, f, p, w, k)                 // at once: what was learnt still holds
			if strings.HasPrefix(c.want, "failed") { // but not where everything is wanted anew
				p.Force = true
				visitOnce(t, f, p, w, k)
				if got := k.last[site+"/a.html"]; got != "fetched" || w.log[len(w.log)-2].url != site+"/robots.txt" {
					t.Errorf("%d: forced: got %q, want robots.txt asked for again", c.status, got)
				}
				return
			}
			for _, h := range w.log[asked:] {
				if strings.HasSuffix(h.url, "/robots.txt") {
					t.Errorf("%d: robots.txt was asked for again at once", c.status)
				}
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	to := func(from, loc string) {
		w.status[site+from] = 302
		w.header[site+from] = http.Header{"Location": {loc}}
	}
	w.pages[site+"/"] = `<a href=loop><a href=out><a href=chain0><a href=none><a href=secure>`
	w.pages["https://site/secure"] = `<a href=more>`
	w.pages["https://site/more"] = ``
	to("/loop", "/loop")
	to("/out", "http://other/")
	to("/none", "")
	to("/secure", "https://site/secure")
	for i := range 20 {
		to(fmt.Sprintf("/chain%d", i), fmt.Sprintf("chain%d", i+1))
	}
	k := newKeeper()
	visitOnce(t, openDB(t, filepath.Join(t.TempDir(), "f.db")), Plan{Roots: []Root{{URL: site, Depth: -1}}}, w, k)
	for u, want := range map[string]string{
		"/loop": "failed redirected to itself", "/out": "excluded redirected to another host: http://other/", "/none": "failed redirected to nowhere",
		"/chain9": "moved to http://site/chain10", "/chain10": "failed more than 10 redirects", "/secure": "moved to https://site/secure",
	} {
		if got := k.last[site+u]; got != want {
			t.Errorf("%s: got %q, want %q", u, got, want)
		}
	}
	if got, want := k.names(""), "http://site/ https://site/more https://site/secure"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
}

// TestStop: a visit that is cut off, by its context or a keeper that fails, is
// taken up where it stopped, and nothing is fetched twice that was kept.
func TestStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	w := &web{pages: map[string]string{site + "/robots.txt": ""}}
	all := ""
	for i := range 300 {
		all += fmt.Sprintf("<a href=%d>", i)
		w.pages[fmt.Sprint(site, "/", i)] = fmt.Sprint("page ", i)
	}
	w.pages[site+"/"] = all
	p := Plan{Roots: []Root{{URL: site, Depth: -1}}, Agent: "harvest/test"}
	f, k := openDB(t, path), newKeeper()
	visits, wasted := 0, 0
	for ; visits < 100; visits++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		n, had := 0, len(k.kept)
		rt := roundTrip(func(r *http.Request) (*http.Response, error) {
			w.mu.Lock()
			if n++; n == 40 && visits%2 == 0 {
				cancel(errors.New("enough"))
			}
			w.mu.Unlock()
			return w.RoundTrip(r)
		})
		k.fail = nil
		if visits%4 == 1 {
			k.fail = errors.New("disk full")
		}
		err := f.Visit(ctx, p, rt, k, new(Counts))
		cancel(nil)
		if k.fail != nil {
			if !errors.Is(err, k.fail) || len(k.kept) != had {
				t.Fatalf("visit %d: got %v, want %v", visits, err, k.fail)
			}
		} else {
			wasted += n - (len(k.kept) - had)
		}
		if s, _ := f.Visited(); s.Open != (err != nil) {
			t.Fatalf("visit %d: ended with %v, but open is %t", visits, err, s.Open)
		}
		if err == nil {
			break
		}
		if visits%3 == 0 {
			f.Close()
			f = openDB(t, path)
		}
	}
	if len(k.kept) != 301 {
		t.Errorf("got %d kept, want 301", len(k.kept))
	}
	if visits < 2 {
		t.Errorf("got %d visits, want some to be cut off", visits)
	}
	t.Logf("%d visits, %d requests for nothing", visits+1, wasted)
	if wasted > 1+8*(visits+1) { // robots.txt, and those that were cut off themselves
		t.Errorf("got %d requests for nothing in %d visits", wasted, visits+1)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPanic(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	w.pages[site+"/a.html"] = "PANIC"
	k := newKeeper()
	visitOnce(t, openDB(t, filepath.Join(t.TempDir(), "f.db")), Plan{Roots: []Root{{URL: site, Depth: 1}}}, w, k)
	if got, want := k.last[site+"/a.html"], "failed panic: as the page says"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(k.kept) != 4 {
		t.Errorf("got %d kept, want the 4 others", len(k.kept))
	}
}

// TestBody: what does not fit in memory is streamed, and what passes the limit
// is cut and says so.
func TestBody(t *testing.T) {
	text := strings.Repeat("x", 5000)
	for _, c := range []struct {
		body int64
		want int
		cut  bool
	}{{10000, 5000, false}, {5000, 5000, false}, {4999, 4999, true}, {100, 100, true}} {
		w := &web{pages: map[string]string{site + "/robots.txt": "", site + "/x": text}}
		h := &cutter{keeper: newKeeper()}
		f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
		p := Plan{Roots: []Root{{URL: site + "/x", Leaf: true}}, Limits: Limits{Head: 1000, Body: c.body}}
		if err := f.Visit(t.Context(), p, w, h, new(Counts)); err != nil {
			t.Fatal(err)
		}
		if got := len(h.kept[site+"/x"]); got != c.want || h.cut != c.cut {
			t.Errorf("body %d: got %d bytes, cut %t, want %d, %t", c.body, got, h.cut, c.want, c.cut)
		}
	}
}

// TestBodyTime: what has been read of a document when its time is over is all
// that is read, and it is cut only if there was more.
func TestBodyTime(t *testing.T) {
	for text, cut := range map[string]bool{"more": true, "": false} {
		b := &body{r: strings.NewReader(text), left: 100, until: time.Now().Add(-time.Second), n: new(atomic.Int64)}
		if n, err := b.Read(make([]byte, 10)); n != 0 || err != io.EOF || b.cut != cut {
			t.Errorf("%q left: got %d, %v, cut %t, want 0, EOF, %t", text, n, err, b.cut, cut)
		}
	}
}

type cutter struct {
	*keeper
	cut bool
}

func (c *cutter) Handle(ctx context.Context, p *Page) {
	c.keeper.Handle(ctx, p)
	c.cut = p.Cut()
}

// TestAdd: URLs asked for by hand are fetched whatever is known of them, no
// links followed, and stay.
func TestAdd(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: 0}}}
	visitOnce(t, f, p, w, k)
	for range 2 {
		if err := f.Add(t.Context(), site+"/c.html", site+"/private/secret.html"); err != nil {
			t.Fatal(err)
		}
	}
	q := p
	q.Queued = true
	w.asked(site)
	visitOnce(t, f, q, w, k)
	if got, want := w.asked(site), "/c.html"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	visitOnce(t, f, p, w, k)
	if got, want := k.names(site), "/ /c.html"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	if err := f.Forget(t.Context(), site+"/c.html"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lookup(site + "/c.html"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("forgotten: got %v, want that it does not exist", err)
	}
	if err := f.Forget(t.Context(), site+"/c.html"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("forgotten twice: got %v, want that it does not exist", err)
	}
}
