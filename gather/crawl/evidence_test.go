package crawl

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
)

// TestEvidence: a document of a server that is missing goes when it was missing
// a day before, too; and not when it is back in between.
func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, "testdata/site.txtar", site)
		f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
		defer f.Close()
		p := Plan{Roots: []Root{{URL: site, Depth: 1}}, GoneAfter: 24 * time.Hour}
		visitOnce(t, f, p, w, k)
		all := k.names(site)
		w.status[site+"/a.html"], w.status[site+"/b/"] = 404, 302
		w.header[site+"/b/"] = http.Header{"Location": {"http://login.example/"}}
		for _, hours := range []int{0, 1, 22} {
			time.Sleep(time.Duration(hours) * time.Hour)
			visitOnce(t, f, p, w, k)
			if got := k.names(site); got != all {
				t.Errorf("after %d hours: got %s, want %s", hours, got, all)
			}
		}
		if got, want := k.last[site+"/a.html"], "failed 404 Not Found; kept until it has been so for 24h0m0s"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		delete(w.status, site+"/b/")
		delete(w.header, site+"/b/")
		visitOnce(t, f, p, w, k)
		w.status[site+"/b/"] = 410
		time.Sleep(2 * time.Hour)
		visitOnce(t, f, p, w, k)
		if got, want := k.names(site), strings.Replace(all, " /a.html", "", 1); got != want {
			t.Errorf("a day later: got %s, want %s", got, want)
		}
		verify(t, f)
	})
}

// TestGuard: a visit that would delete too much deletes nothing, says so, and
// does it when it is told to.
func TestGuard(t *testing.T) {
	w := &web{pages: map[string]string{site + "/robots.txt": "", site + "/": ""}, status: make(map[string]int)}
	for i := range 20 {
		w.pages[site+"/"] += fmt.Sprintf("<a href=%d>", i)
		w.pages[fmt.Sprint(site, "/", i)] = lorem(uint64(i), 30)
	}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: site, Depth: -1}}, MaxGone: Guard{Share: 0.25, Floor: 2}}
	visitOnce(t, f, p, w, k)
	for i := range 10 {
		w.status[fmt.Sprint(site, "/", i)] = 404
	}
	for range 2 {
		c := visitOnce(t, f, p, w, k)
		if len(k.kept) != 21 || c.Gone.Load() != 0 || c.Spared.Load() != 10 {
			t.Errorf("got %d kept, %d gone, %d spared, want 21, 0, 10", len(k.kept), c.Gone.Load(), c.Spared.Load())
		}
	}
	w.pages[site+"/robots.txt"] = "User-agent: *\nDisallow: /\n" // by mistake
	forgetRobots(f)
	if c := visitOnce(t, f, p, w, k); len(k.kept) != 21 || c.Spared.Load() != 21 {
		t.Errorf("all disallowed: got %d kept, %d spared, want 21, 21", len(k.kept), c.Spared.Load())
	}
	w.pages[site+"/robots.txt"] = ""
	forgetRobots(f)
	p.Delete = true
	if c := visitOnce(t, f, p, w, k); len(k.kept) != 11 || c.Gone.Load() != 10 || c.Spared.Load() != 0 {
		t.Errorf("told to: got %d kept, %d gone, want 11, 10", len(k.kept), c.Gone.Load())
	}
	p.Delete = false
	w.status[site+"/10"] = 404
	w.status[site+"/11"] = 404
	if c := visitOnce(t, f, p, w, k); len(k.kept) != 9 || c.Gone.Load() != 2 {
		t.Errorf("few: got %d kept, %d gone, want 9, 2", len(k.kept), c.Gone.Load())
	}
	verify(t, f)
	// What the plan itself keeps out is no mistake of a server's.
	p.Roots[0].Leaf = true
	if visitOnce(t, f, p, w, k); len(k.kept) != 1 {
		t.Errorf("a leaf: got %d kept, want 1", len(k.kept))
	}
	verify(t, f)
}

// TestAlias: a page that is a copy of the one it names as its original is not
// kept twice, nor is one that a redirect leads from.
func TestAlias(t *testing.T) {
	const same = `<link rel=canonical href=/a>the same text`
	w := &web{pages: map[string]string{site + "/robots.txt": "", site + "/": `<a href=/a><a href=/a?sid=1><a href=/r><a href=/b>`,
		site + "/a": same, site + "/a?sid=1": same, site + "/b": `<link rel=canonical href=/a>but another text`},
		status: map[string]int{site + "/r": 301}, header: map[string]http.Header{site + "/r": {"Location": {"/a"}}}}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newSummer()
	p := Plan{Roots: []Root{{URL: site, Depth: -1}}, Agent: "x"}
	for range 2 { // in the first, copies may come before their original
		if err := f.Visit(t.Context(), p, w, k, new(Counts)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := k.names(site), "/ /a /b"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	to, err := f.Lookup(site + "/a")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"/a?sid=1", "/r"} {
		d, err := f.Lookup(site + u)
		if err != nil || !d.Alias() {
			t.Errorf("%s: got %+v, %v, want an alias", u, d, err)
		}
		if out, err := f.Out(d.ID); err != nil || len(out) != 1 || out[0] != to.ID {
			t.Errorf("%s: leads to %v, %v, want %d", u, out, err, to.ID)
		}
	}
	verify(t, f)
}

// oldDB writes a frontier.db as it was.
func oldDB(t *testing.T, path string) {
	db, err := bbolt.Open(path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	record := func(state State, root uint64, size int64, md5 [16]byte, texts ...string) []byte {
		b := []byte{1, byte(state)}
		for _, n := range []uint64{root, 2, 0, 5, 1e9, 1e9 + 1, uint64(size), 200, 0, 77} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(b, md5[:]...)
		for _, s := range texts {
			b = appendString(b, s)
		}
		return b
	}
	root := RootID(site + "/")
	host := binary.BigEndian.AppendUint64(nil, 1)
	for _, n := range []uint64{200, uint64(time.Now().Add(time.Hour).Unix()), 0, uint64(3 * time.Second)} {
		host = binary.BigEndian.AppendUint64(host, n)
	}
	state := Visited{Number: 5, Ended: time.Unix(1e9, 0)}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, kv := range [][3]string{
			{"meta", "format", oldFormat},
			{"meta", "visit", string(state.append(nil))},
			{"doc", site + "/", string(record(Stored, root, 10, [16]byte{1}, `"e"`, "", "", ""))},
			{"doc", site + "/new", string(record(New, root, 0, [16]byte{}, "", "", "", "key"))},
			{"doc", site + "/hand", string(record(Stored, 0, 10, [16]byte{2}, `"h"`, "", "", "key"))},
			{"doc", site + "/gone", string(record(Vanished, root, 10, [16]byte{}, "", "", "404 Not Found", ""))},
			{"doc", "file:///t/hand", string(record(Stored, 0, 1, [16]byte{3}, `"1"`, "", "", ""))},
			{"doc", "file:///t/bad", "\x01"},
			{"queue", site + "\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", "\x00" + site + "/new"},
			{"queue", site + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02", "\x03" + site + "/hand"},
			{"host", site, string(host) + "User-agent: *\nDisallow: /no\n"},
		} {
			b, err := tx.CreateBucketIfNotExists([]byte(kv[0]))
			if err != nil {
				return err
			}
			if err := b.Put([]byte(kv[1]), []byte(kv[2])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestConvert: what a frontier.db knows is known to the database that takes its
// place, also when making that was cut off.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	old, path := filepath.Join(dir, "frontier.db"), filepath.Join(dir, "crawl.db")
	oldDB(t, old)
	f := &DB{}
	var err error
	if f.db, err = bbolt.Open(path, 0o644, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.begin(); err != nil { // and then the process was killed
		t.Fatal(err)
	}
	f.db.Close()
	f = openDB(t, path)
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("frontier.db: %v, want it removed", err)
	}
	d, err := f.Lookup(site + "/")
	if err != nil || d.State != Stored || d.ETag != `"e"` || d.MD5 != [16]byte{1} || d.Print != 77 || d.Handed.Unix() != 1e9+1 || d.Root != RootID(site+"/") {
		t.Errorf("got %+v, %v", d, err)
	}
	if s, err := f.Visited(); err != nil || s.Number != 5 {
		t.Errorf("got %+v, %v", s, err)
	}
	if s := f.Server(1); s.Origin != site || s.Robots != 200 || s.Delay != 3*time.Second || !strings.Contains(f.robotsText(1), "Disallow: /no") {
		t.Errorf("got %+v", s)
	}
	if same, err := f.Same([16]byte{3}); err != nil || len(same) != 1 {
		t.Errorf("got %v, %v", same, err)
	}
	verify(t, f)
	w := &web{pages: map[string]string{site + "/": "<a href=no>", site + "/new": "new", site + "/hand": "hand"},
		header: map[string]http.Header{site + "/": {"Etag": {`"e"`}}}}
	k := newKeeper()
	k.kept[site+"/"], k.kept[site+"/hand"], k.kept["file:///t/hand"] = "", "", ""
	visitOnce(t, f, Plan{Roots: []Root{{URL: site, Depth: -1}}, Print: 77}, w, k)
	if got, want := w.asked(site), "/=304 /hand /new file:///t/hand=404"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	verify(t, f)
}

// TestListingServer: what a server lists that is no web server is not asked for
// when it is what it was, and is gone when it is not listed.
func TestListingServer(t *testing.T) {
	const root = "ftp://files/pub/"
	w := &web{pages: make(map[string]string), header: make(map[string]http.Header)}
	list := func(dir, text string) {
		w.pages[root+dir] = text
		w.header[root+dir] = http.Header{"Content-Type": {listingType}}
	}
	file := func(name, tag string) {
		w.pages[root+name] = "text of " + name
		w.header[root+name] = http.Header{"Etag": {tag}, "Content-Type": {"text/plain"}}
	}
	list("", "f\t1\t-\tA\ta.txt\nf\t1\t-\tB\tb.txt\nd\t0\t-\t-\tsub/\nl\t0\t-\t-\tlink\n")
	list("sub/", "f\t1\t-\tC\tc.txt\nd\t0\t-\t-\tdeep/\n")
	list("sub/deep/", "f\t1\t-\tD\td.txt\n")
	for name, tag := range map[string]string{"a.txt": "A", "b.txt": "B", "sub/c.txt": "C", "sub/deep/d.txt": "D"} {
		file(name, tag)
	}
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: root, Depth: -1}}}
	visitOnce(t, f, p, w, k)
	if got, want := k.names(root), "a.txt b.txt sub/c.txt sub/deep/d.txt"; got != want {
		t.Fatalf("kept: got %s, want %s", got, want)
	}
	verify(t, f)
	w.asked(root)
	file("b.txt", "B2")
	list("", "f\t1\t-\tA\ta.txt\nf\t1\t-\tB2\tb.txt\nd\t0\t-\t-\tsub/\n")
	c := visitOnce(t, f, p, w, k)
	if got, want := w.asked(root), " b.txt sub/ sub/deep/"; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if c.Unchanged.Load() != 3 || c.Fetched.Load() != 1 {
		t.Errorf("got %d unchanged, %d fetched, want 3, 1", c.Unchanged.Load(), c.Fetched.Load())
	}
	list("", "f\t1\t-\tB2\tb.txt\n") // without sub and all in it, and a.txt
	all := maps.Clone(w.pages)
	delete(w.pages, root+"sub/")
	delete(w.pages, root+"sub/deep/")
	visitOnce(t, f, p, w, k)
	w.pages = all
	if got, want := k.names(root), "b.txt"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	verify(t, f)
	list("", "f\t1\t-\tB2\tb.txt\nd\t0\t-\t-\tsub/\n")
	visitOnce(t, f, p, w, k)
	if got, want := k.names(root), "b.txt sub/c.txt sub/deep/d.txt"; got != want {
		t.Errorf("kept when it is back: got %s, want %s", got, want)
	}
	verify(t, f)
}
