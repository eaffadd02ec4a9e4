package crawl

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A disk is a RoundTripper over folders in memory, as gather/fetch answers for
// those on a disk: a listing, or a file with its ETag.
type disk struct {
	web
	files map[string]string // by path; "/x/ -> l" is a link x
	bad   map[string]int    // status of folders and files
}

func newDisk(paths ...string) *disk {
	d := &disk{files: make(map[string]string), bad: make(map[string]int)}
	for _, p := range paths {
		d.files[p] = "1"
	}
	return d
}

func (d *disk) RoundTrip(req *http.Request) (*http.Response, error) {
	p := req.URL.EscapedPath()
	d.mu.Lock()
	defer d.mu.Unlock()
	reply := func(code int, body string, header ...string) (*http.Response, error) {
		d.log = append(d.log, hit{url: p, status: code})
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Header: h, Request: req,
			Body: readCloser{strings.NewReader(body)}, ContentLength: int64(len(body))}, nil
	}
	if code := d.bad[p]; code != 0 {
		return reply(code, "")
	}
	if text, ok := d.files[p]; ok {
		if tag := `"` + text + `"`; req.Header.Get("If-None-Match") == tag {
			return reply(304, "", "ETag", tag)
		}
		return reply(200, text, "ETag", `"`+text+`"`)
	}
	lines := make(map[string]string)
	for name, text := range d.files {
		rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p, "/")+"/")
		if !ok {
			continue
		}
		if sub, _, deep := strings.Cut(rest, "/"); deep {
			lines[sub+"/"] = "d\t0\t-\t-\t" + sub + "/\n"
		} else if to, ok := strings.CutPrefix(text, "->"); ok {
			lines[rest] = "l\t" + fmt.Sprint(len(to)) + "\t-\t-\t" + rest + "\n"
		} else {
			lines[rest] = fmt.Sprintf("f\t%d\t-\t%q\t%s\n", len(text), text, rest)
		}
	}
	switch {
	case len(lines) == 0 && p != "/t/" && p != "/t":
		return reply(404, "")
	case !strings.HasSuffix(p, "/"):
		return reply(301, "", "Location", p+"/")
	}
	var body strings.Builder
	var names []string
	for n := range lines {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		body.WriteString(lines[n])
	}
	return reply(200, body.String(), "Content-Type", listingType)
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func TestTree(t *testing.T) {
	const root = "file:///t"
	d := newDisk("/t/a", "/t/b/c", "/t/b/d/e", "/t/b.x", "/t/b0", "/t/f%20g", "/t/z/y/x/w")
	d.files["/t/link"] = "->/etc/passwd"
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: root, Depth: -1}}}
	c := visitOnce(t, f, p, d, k)
	if got, want := k.names(root), "/a /b.x /b/c /b/d/e /b0 /f%20g /z/y/x/w"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	if c.Fetched.Load() != 7 || c.Excluded.Load() != 1 || c.Found.Load() != 8 {
		t.Errorf("got found %d, fetched %d, excluded %d, want 8, 7, 1", c.Found.Load(), c.Fetched.Load(), c.Excluded.Load())
	}
	d.asked("")

	// Unchanged files are not asked for, changed and new ones are, and those
	// that are gone from a folder that could be listed are gone.
	d.files["/t/a"] = "2"
	d.files["/t/new"] = "1"
	delete(d.files, "/t/b.x")
	delete(d.files, "/t/z/y/x/w")
	c = visitOnce(t, f, p, d, k)
	if got, want := k.names(root), "/a /b/c /b/d/e /b0 /f%20g /new"; got != want {
		t.Errorf("kept after changes: got %s, want %s", got, want)
	}
	if got, want := d.asked(""), "/t/ /t/a /t/b/ /t/b/d/ /t/new /t=301"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	if c.Gone.Load() != 2 || c.Unchanged.Load() != 4 || c.Fetched.Load() != 2 {
		t.Errorf("got gone %d, unchanged %d, fetched %d, want 2, 4, 2", c.Gone.Load(), c.Unchanged.Load(), c.Fetched.Load())
	}

	// A folder that cannot be listed keeps what it holds; so does a root that
	// is away, or has become empty, as a disk that is not mounted.
	d.bad["/t/b/"] = 403
	visitOnce(t, f, p, d, k)
	if got, want := k.last[root+"/b/"], "failed 403 Forbidden"; got != want {
		t.Errorf("a closed folder: got %q, want %q", got, want)
	}
	delete(d.bad, "/t/b/")
	d.bad["/t"] = 404
	visitOnce(t, f, p, d, k)
	delete(d.bad, "/t")
	saved := d.files
	d.files = map[string]string{}
	visitOnce(t, f, p, d, k)
	if got, want := k.last[root+"/"], "failed the root is empty: nothing is deleted"; got != want {
		t.Errorf("an empty root: got %q, want %q", got, want)
	}
	d.files = saved
	if got, want := k.names(root), "/a /b/c /b/d/e /b0 /f%20g /new"; got != want {
		t.Errorf("kept through trouble: got %s, want %s", got, want)
	}

	// A file that becomes a folder, and the other way round.
	delete(d.files, "/t/a")
	d.files["/t/a/inside"] = "1"
	delete(d.files, "/t/b/d/e")
	d.files["/t/b/d"] = "1"
	visitOnce(t, f, p, d, k)
	if got, want := k.names(root), "/a/inside /b/c /b/d /b0 /f%20g /new"; got != want {
		t.Errorf("kept after file became folder: got %s, want %s", got, want)
	}

	// Limits and rules; what they keep out is dropped.
	p.Roots[0].Depth = 1
	visitOnce(t, f, p, d, k)
	if got, want := k.names(root), "/b0 /f%20g /new"; got != want {
		t.Errorf("kept at depth 1: got %s, want %s", got, want)
	}
	p.Roots[0].Depth = -1
	p.Exclude = func(u string, folder bool) string {
		if strings.Contains(u, "/b") {
			return "no b"
		}
		return ""
	}
	d.asked("")
	visitOnce(t, f, p, d, k)
	if got, want := k.names(root), "/a/inside /f%20g /new"; got != want {
		t.Errorf("kept with a rule: got %s, want %s", got, want)
	}
	if got := d.asked(""); strings.Contains(got, "/t/b") {
		t.Errorf("asked for %s, though /t/b is kept out", got)
	}

	// Another way to handle them fetches all of them anew.
	p.Print = 7
	if c = visitOnce(t, f, p, d, k); c.Fetched.Load() != 3 {
		t.Errorf("another print: got fetched %d, want 3", c.Fetched.Load())
	}
	// The root is no more: nothing is.
	p.Roots = nil
	visitOnce(t, f, p, d, k)
	if got := k.names(root); got != "" {
		t.Errorf("kept without a root: got %s", got)
	}
}

func TestTreeURLs(t *testing.T) {
	d := newDisk()
	for i := range 100 {
		d.files[fmt.Sprintf("/t/%02d", i)] = "1"
	}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: "file:///t", Depth: -1, URLs: 10}}}
	for range 3 {
		visitOnce(t, f, p, d, k)
		if len(k.kept) != 10 || k.kept["file:///t/09"] == "" {
			t.Errorf("got %d kept, want the first 10", len(k.kept))
		}
	}
}

// TestDue: what has not changed for long is handed on as such, once.
func TestDue(t *testing.T) {
	d := newDisk("/t/a", "/t/b")
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: "file:///t", Depth: -1}}, Refresh: time.Hour}
	visitOnce(t, f, p, d, k)
	visitOnce(t, f, p, d, k)
	if len(k.due) != 0 {
		t.Errorf("got %s due at once", k.due)
	}
	p.Refresh = time.Nanosecond
	visitOnce(t, f, p, d, k)
	if len(k.due) != 2 {
		t.Errorf("got %s due, want both", k.due)
	}
	p.Refresh, p.Life = time.Hour, time.Nanosecond
	if c := visitOnce(t, f, p, d, k); c.Fetched.Load() != 2 {
		t.Errorf("past their life: got fetched %d, want 2", c.Fetched.Load())
	}
}

// TestTreeForeign: only those who are trusted with it may answer with a listing.
func TestTreeForeign(t *testing.T) {
	w := newWeb(t, "testdata/site.txtar", site)
	w.pages[site+"/a.html"] = "f\t1\t-\t-\tx\n"
	w.header[site+"/a.html"] = http.Header{"Content-Type": {listingType}}
	k := newKeeper()
	visitOnce(t, openDB(t, filepath.Join(t.TempDir(), "f.db")), Plan{Roots: []Root{{URL: site, Depth: 1}}}, w, k)
	if got := k.last[site+"/a.html"]; got != "fetched" {
		t.Errorf("got %q, want it fetched as a page", got)
	}
	if strings.Contains(w.asked(site), "/x") {
		t.Error("a web server's listing was followed")
	}
}

func TestBadListing(t *testing.T) {
	for _, line := range []string{"f\t1\t-\t-\n", "f\tx\t-\t-\ta\n", "f\t1\t-\t-\t../a\n", "f\t1\t-\t-\ta/b\n", "f\t1\t-\t-\ta?b\n", "\n"} {
		v := &visit{}
		resp := &http.Response{Body: readCloser{strings.NewReader(line)}}
		if e, err := v.list(t.Context(), folder{}, nil, true, resp); err == nil {
			t.Errorf("%q: got %v, want an error", line, e)
		}
	}
}

func TestFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f := openDB(t, path)
	d := Doc{URL: "http://s/", State: Stored, Root: 1 << 63, Depth: 3, Hops: 2, Visit: 9, Checked: time.Unix(1e9, 0).UTC(),
		Handed: time.Unix(2e9, 0).UTC(), Size: 1 << 40, Status: 200, Fails: 1, Print: 1<<64 - 1, MD5: [16]byte{1, 15: 2}, ETag: `"x"`,
		Modified: "then", Why: "because", queued: []byte("key")}
	d.Server, d.Parent, d.Submitted, d.Missing = 7, 1<<32-1, 3, time.Unix(1e9, 0).UTC()
	d.Life, d.Refresh = 0, time.Hour
	b := d.append(nil, 5, "/x")
	got, root, err := decodeDoc(b)
	d.URL, d.Root = "/x", 0
	if err != nil || fmt.Sprint(got) != fmt.Sprint(d) || root != 5 {
		t.Errorf("got %+v, %d, %v, want %+v, 5", got, root, err, d)
	}
	for i := range b {
		if _, _, err := decodeDoc(b[:i]); err == nil {
			t.Errorf("a record cut at %d decodes", i)
		}
	}
	f.Close()
	if err := os.WriteFile(path+".x", []byte("not a frontier, but a text that is long enough"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDB(path+".x", f.lg); err == nil {
		t.Error("a text opens as a frontier")
	}
}

func FuzzDoc(f *testing.F) {
	f.Add((&Doc{State: Stored, ETag: "x"}).append(nil, 1, "/x"))
	f.Add((&Doc{State: New}).append(nil, 1, "/x"))
	f.Add((&Doc{State: Stored, Life: time.Hour}).append(nil, 1, "/x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, root, err := decodeDoc(b)
		if err != nil {
			return
		}
		again, root2, err := decodeDoc(d.append(nil, root, d.URL))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(d) || root != root2 {
			t.Errorf("got %+v, %v, want %+v", again, err, d)
		}
	})
}

// BenchmarkRescan looks at a tree of unchanged files; the listing is made in
// memory.
func BenchmarkRescan(b *testing.B) {
	const files = 10_000
	d := newDisk()
	for i := range files {
		d.files[fmt.Sprintf("/t/%03d/%d", i%100, i)] = "1"
	}
	// The listings are made beforehand: it is the crawl that is measured.
	listings := make(map[string]string)
	for i := range 101 {
		u := "file:///t/"
		if i < 100 {
			u = fmt.Sprintf("file:///t/%03d/", i)
		}
		req, _ := http.NewRequestWithContext(b.Context(), "GET", u, nil)
		resp, err := d.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		var s strings.Builder
		resp.Body.(readCloser).WriteTo(&s)
		listings[u] = s.String()
	}
	rt := roundTrip(func(req *http.Request) (*http.Response, error) {
		u := req.URL.String()
		if u == "file:///t" {
			u += "/"
		}
		if text, ok := listings[u]; ok {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {listingType}}, Body: readCloser{strings.NewReader(text)}}, nil
		}
		return d.RoundTrip(req)
	})
	f, k := openDB(b, filepath.Join(b.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: "file:///t", Depth: -1}}, Agent: "x"}
	visitOnce(b, f, p, rt, k)
	for b.Loop() {
		c := new(Counts)
		if err := f.Visit(context.Background(), p, rt, k, c); err != nil {
			b.Fatal(err)
		}
		if c.Unchanged.Load() != files {
			b.Fatalf("got unchanged %d, want %d", c.Unchanged.Load(), files)
		}
	}
	b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}
