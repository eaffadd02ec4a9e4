package gather

import (
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// say talks to gatherd as printf … | nc does.
func say(t *testing.T, addr, lines string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, lines)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The config opens doors, changes who may come in, and closes them; two readers
// are served from one visit of the source.
func TestGatherd(t *testing.T) {
	r, src, _, _ := page(t)
	root := "root url=file://" + src + "\n"
	set := func(text string) error { return r.setConfig(t.Context(), root+text) }
	if err := set("gatherd listen=127.0.0.1:0\n"); err != nil {
		t.Fatal(err)
	}
	addr := r.get("gatherd")
	for range 2 {
		if got := say(t, addr, "HELLO me\nSEND-UPDATE 0\nQUIT\n"); !strings.Contains(got, "Title{7}:\tMachine") {
			t.Errorf("got %q, want the object", got)
		}
	}
	if got := r.get("gatherd-served"); got != "2" {
		t.Errorf("gatherd-served: got %s, want 2", got)
	}
	if err := set("gatherd listen=127.0.0.1:0 deny=127.0.0.1\n"); err != nil {
		t.Fatal(err)
	}
	if now := r.get("gatherd"); now != addr {
		t.Errorf("another rule, another door: got %s, want %s", now, addr)
	}
	if got := say(t, addr, "SEND-UPDATE 0\n"); !strings.HasPrefix(got, "403 - ") || strings.Contains(got, "@") {
		t.Errorf("refused: got %q, want 403", got)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := set("gatherd listen=" + taken.Addr().String() + "\n"); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: got %v, want an error", err)
	}
	if r.get("gatherd") != addr || !strings.Contains(r.config(), "deny=127.0.0.1") {
		t.Error("a config that was refused changed something")
	}
	// One that is taken at the start is told, and the Gatherer lives.
	dir := r.dir
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(root+"gatherd listen="+taken.Addr().String()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.end()
	r = run(t, dir, "")
	if got := r.get("gatherd-err"); !strings.Contains(got, "in use") {
		t.Errorf("gatherd-err: got %q, want in use", got)
	}
	if err := set(""); err != nil {
		t.Fatal(err)
	}
	if got := r.get("gatherd"); got != "" {
		t.Errorf("without a line: gatherd=%s", got)
	}
	taken.Close()
}

func TestExportConfig(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"gatherd listen=8500", ""},
		{"gatherd listen=tcp!*!8500 allow=.example.org allow=192.0.2.0/24 deny=all", ""},
		{"gatherd listen=[::1]:8500", ""},
		{"gatherd listen=8500\ngatherd listen=127.0.0.1:8500", "line 2, column 1: gatherd: 127.0.0.1:8500 is there twice"},
		{"gatherd", "listen=ADDRESS is missing"},
		{"gatherd=8500", "write listen=8500"},
		{"gatherd listen=x", "neither a port nor"},
		{"gatherd listen=99999", "neither a port nor"},
		{"gatherd listen=:80", "is not HOST:PORT"},
		{"gatherd listen=80 allow=a..b", "line 1, column 19: gatherd: 'a..b' is neither"},
		{"gatherd listen=80 port=9", "unknown key 'port'"},
		{"warc=yes", ""},
		{"warc=64M", ""},
		{"warc=maybe", "neither yes nor no nor a size"},
		{"warc=1", "neither yes nor no nor a size"},
		{"replay=/x", ""},
		{"replay=x", "no absolute path"},
	} {
		_, err := parseConfig(c.text)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.err)
		}
	}
}

// What was fetched is kept in WARC files, and gathered again from them without
// the server.
func TestArchiveReplay(t *testing.T) {
	asked := new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		switch req.URL.Path {
		case "/":
			fmt.Fprint(w, `<title>Root</title><a href="/one">1</a> <a href="/two">2</a>`)
		case "/one", "/two":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<title>Page %s</title><p>Words of it.", req.URL.Path[1:])
		default:
			http.NotFound(w, req)
		}
	}))
	defer srv.Close()
	root := "root url=" + srv.URL + "/ delay=0s\n"
	r := run(t, t.TempDir(), root+"warc=yes\n")
	r.gathered()
	if got := r.get("objects"); got != "3" {
		t.Fatalf("gathered %s objects, want 3", got)
	}
	names := strings.Fields(r.names("warc"))
	if len(names) != 1 || !strings.HasSuffix(names[0], ".warc.gz") {
		t.Fatalf("warc/: got %q, want one file that is closed", names)
	}
	kept := t.TempDir()
	if err := os.WriteFile(filepath.Join(kept, names[0]), []byte(r.read("warc/"+names[0])), 0o644); err != nil {
		t.Fatal(err)
	}
	was := asked.Load()
	again := run(t, t.TempDir(), root+"replay="+kept+"\n")
	again.gathered()
	if got := again.get("objects"); got != "3" {
		t.Errorf("from the archive: got %s objects, want 3\n%s", got, again.read("events"))
	}
	if got := asked.Load(); got != was {
		t.Errorf("the server was asked %d times", got-was)
	}
	for _, p := range []string{"/", "/one", "/two"} {
		a, b := r.attr(objectName(r.oid(srv.URL+p)), "MD5"), again.attr(objectName(again.oid(srv.URL+p)), "MD5")
		if a != b || a == "" {
			t.Errorf("%s: MD5 %q from the archive, %q from the web", p, b, a)
		}
	}
	if err := again.setConfig(t.Context(), root+"replay=/does/not/exist\n"); err != nil {
		t.Fatal(err)
	}
	again.must("run")
	again.settle()
	if got := again.get("state"); got != "failing" {
		t.Errorf("an archive that is not there: got state %s, want failing", got)
	}
	r.rm("warc/" + names[0])
	if got := r.names("warc"); got != "" {
		t.Errorf("warc/: got %s, want nothing", got)
	}
}

// TestSummarizeKept: a changed table takes effect on what is kept and on files, the
// server is not asked, and what is not kept stays as it was.
func TestSummarizeKept(t *testing.T) {
	asked, mute := new(atomic.Int64), new(atomic.Bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1); mute.Load() && req.URL.Path == "/unkept" {
			panic(http.ErrAbortHandler) // there is nothing to keep
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>Page %s</title><p>Words of %[1]s. <a href=/one>1</a><p>The tail of it.", req.URL.Path)
	}))
	defer srv.Close()
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "near.html"), []byte("<title>Near</title><p>A file.<p>The tail of it."), 0o644); err != nil {
		t.Fatal(err)
	}
	leaf := "leaf url=" + srv.URL + "/unkept delay=0s\nroot url=file://" + files + "/\n"
	r := run(t, t.TempDir(), leaf)
	if err := r.types.setFrom("options", "* fulltext=no\ninclude default\n", true); err != nil {
		t.Fatal(err)
	}
	r.gathered() // before anything is kept
	mute.Store(true)
	if err := r.setConfig(t.Context(), leaf+"root url="+srv.URL+"/ delay=0s deny=unkept\nwarc=yes\n"); err != nil {
		t.Fatal(err)
	}
	r.gathered()
	keywords := func(url string) string { return r.attr(objectName(r.oid(url)), "Keywords") }
	urls := []string{srv.URL + "/", srv.URL + "/one", "file://" + files + "/near.html", srv.URL + "/unkept"}
	for _, u := range urls {
		if keywords(u) == "" {
			t.Fatalf("%s: got no keywords", u)
		}
	}
	before := asked.Load()
	for i, u := range urls {
		text := r.read("as/text/" + r.oid(u).String())
		if got, want := strings.Contains(text, "The tail of it"), i != 3; got != want { // a summary has only the beginning
			t.Errorf("as/text of %s: got %q, want all of it %v", u, text, want)
		}
	}
	if got := asked.Load() - before; got != 0 {
		t.Errorf("as/text asked the server %d times", got)
	}
	if err := r.types.setFrom("options", "HTML keywords=no\n* fulltext=no\ninclude default\n", true); err != nil {
		t.Fatal(err)
	}
	was := asked.Load()
	r.must("summarize")
	r.settle()
	if got := asked.Load() - was; got != 0 {
		t.Errorf("the server was asked %d times", got)
	}
	for i, u := range urls {
		if got, want := keywords(u) != "", i == 3; got != want {
			t.Errorf("%s: got keywords %v, want %v\n%s", u, got, want, r.read("events"))
		}
	}
	if got := r.get("objects"); got != "4" {
		t.Errorf("got %s objects, want 4", got)
	}
	r.gathered() // and the web is asked again
	if got := asked.Load() - was; got == 0 {
		t.Error("the server is not asked any more")
	}
}

// After a visit status tells of each stage, and whoever reads meanwhile has the
// collection of one moment.
func TestStages(t *testing.T) {
	src := t.TempDir()
	const pages = 200
	for i := range pages {
		if err := os.WriteFile(filepath.Join(src, fmt.Sprint(i, ".html")), fmt.Appendf(nil, "<title>Page %d</title><p>%s", i, strings.Repeat("word ", i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, t.TempDir(), "root url=file://"+src)
	r.gathered()
	for _, want := range []string{"stage-merge", "stage-validate", "stage-expire", "stage-index", "stage-compress", "stage-statistics", "invalid", "bytes", "disk"} {
		if r.get(want) == "" {
			t.Errorf("status has no %s:\n%s", want, r.read("status"))
		}
	}
	if got := r.get("stage-validate"); !strings.HasPrefix(got, "200 in ") {
		t.Errorf("stage-validate: got %s, want 200", got)
	}
	// 200 objects, all changed at once, again and again, and readers.
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := r.start(wish{run: true, force: true}); err != nil {
				done <- err
				return
			}
			r.settle()
		}
	}()
	for range 20 {
		whole, err := iofs.ReadFile(r.io(), "since/0")
		if err != nil {
			t.Fatal(err)
		}
		u := soif.NewUpdateReader(strings.NewReader(string(whole)), soif.Limits{})
		seen := make(map[string]bool)
		var c soif.Change
		for err = u.Next(&c); err == nil; err = u.Next(&c) {
			seen[c.Object.URL] = true
		}
		if err != io.EOF || len(seen) != pages {
			t.Errorf("read during the stages: %d objects, %v; want %d", len(seen), err, pages)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// An object without an Update-Time, which Brokers refuse, is counted and named.
func TestInvalid(t *testing.T) {
	r, _, _, _ := page(t)
	o := soif.Object{Type: "FILE", URL: "http://h/x"}
	o.Add("Title", []byte("no time"))
	if err := r.keep(t.Context(), []store.Change{{Op: soif.Update, OID: r.oid(o.URL), URL: o.URL, Body: o.Append(nil)}}); err != nil {
		t.Fatal(err)
	}
	r.gathered()
	if r.get("invalid") != "1" || !strings.Contains(r.read("events"), "event=invalid url=http://h/x") {
		t.Errorf("got invalid=%s and events %s, want one", r.get("invalid"), r.read("events"))
	}
	r.gathered()
	if got := r.get("invalid"); got != "0" {
		t.Errorf("after another visit: got invalid=%s, want 0", got)
	}
}
