package gather

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/essence"
	"harvest/gather/essence/jail"
	"harvest/gather/fetch"
	"harvest/gather/soif"
)

func TestMain(m *testing.M) {
	jail.Main(essence.Inside()...)
	if dir := os.Getenv("HARVEST_TEST_GATHER"); dir != "" {
		child(dir)
		return
	}
	if dir := os.Getenv("HARVEST_TEST_SELECT"); dir != "" {
		selectingChild(dir)
		return
	}
	os.Exit(m.Run())
}

// A runner is a Gatherer that runs for the length of a test.
type runner struct {
	*Gatherer
	t   testing.TB
	end func()
}

func run(t testing.TB, dir, config string) *runner {
	t.Helper()
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{Version: "1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if config != "" {
		if err := g.setConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	r := &runner{g, t, sync.OnceFunc(func() {
		cancel()
		<-done
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(r.end)
	return r
}

// do writes a line to ctl.
func (r *runner) do(line string) error {
	n, err := r.Files().Lookup(r.t.Context(), "ctl")
	if err != nil {
		r.t.Fatal(err)
	}
	return n.(*fs.CtlFile).Do(r.t.Context(), line+"\n")
}

func (r *runner) must(line string) {
	r.t.Helper()
	if err := r.do(line); err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
}

func (r *runner) read(name string) string {
	r.t.Helper()
	b, err := iofs.ReadFile(fs.IO(r.t.Context(), r.Files()), name)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return string(b)
}

// get reads one value of status.
func (r *runner) get(key string) string {
	r.t.Helper()
	entries, err := ndb.Parse(r.read("status"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if v, ok := e.Get(key); ok {
			return v
		}
	}
	return ""
}

// settle waits until the Gatherer is idle again, by its events.
func (r *runner) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	for r.get("state") == "running" {
		n, err := r.Files().Lookup(ctx, "events.wait")
		if err != nil {
			r.t.Fatal(err)
		}
		h, err := n.(fs.File).Open(ctx, fs.Read)
		if err != nil {
			r.t.Fatal(err)
		}
		if r.get("state") == "running" { // and so an event is to come
			wait, cancel := context.WithTimeout(ctx, time.Second)
			h.ReadAt(wait, make([]byte, 4096), 0)
			cancel()
		}
		h.Close()
		if ctx.Err() != nil {
			r.t.Fatalf("still running:\n%s", r.read("status"))
		}
	}
}

// objects decodes all that is kept, by URL without a prefix.
func (r *runner) objects(prefix string) map[string]soif.Object {
	r.t.Helper()
	var b bytes.Buffer
	sn, err := r.store.Snapshot()
	if err == nil {
		err = errors.Join(sn.Write(r.t.Context(), &b), sn.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	all := make(map[string]soif.Object)
	d := soif.NewDecoder(&b, soif.Limits{})
	for {
		var o soif.Object
		err := d.Next(&o)
		if err == io.EOF {
			return all
		}
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		all[strings.TrimPrefix(o.URL, prefix)] = o.Clone()
	}
}

func names(all map[string]soif.Object) string {
	var s []string
	for u := range all {
		s = append(s, u)
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	write(t, src+"/a.txt", "Title of a\n\nSome text about rivers and hills.\n")
	write(t, src+"/sub/b c%.html", "<title>B</title><p>Another text, which tells of nothing at all but goes on for some time.")
	write(t, src+"/x.bin", "\x00\x01\x02")
	if err := os.Symlink("/etc/passwd", src+"/link"); err != nil {
		t.Fatal(err)
	}
	r := run(t, filepath.Join(dir, "g"), "root url=file://"+src+"\n")
	r.must("run")
	r.settle()
	all := r.objects("file://" + src)
	if got, want := names(all), "/a.txt /sub/b%20c%25.html /x.bin"; got != want {
		t.Fatalf("got %s, want %s\n%s", got, want, r.read("events"))
	}
	o := all["/a.txt"]
	for name, want := range map[string]string{
		"Type": "Text", "Title": "Title of a", "File-Size": "46", "Time-to-Live": "15552000", "Refresh-Rate": "2592000",
		"Gatherer-Name": "test", "Gatherer-Version": "1.0", "Gatherer-Host": r.host, "MD5": "9bc1e75f4b6baa1b8d9b9c6e7ec5f2aa",
		"Full-Text": "Title of a\n\nSome text about rivers and hills.",
	} {
		if name == "MD5" {
			want = fmt.Sprintf("%x", r.mustDoc("file://"+src+"/a.txt"))
		}
		if got := o.Text(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for key, want := range map[string]string{"state": "idle", "found": "4", "fetched": "3", "excluded": "1", "failed": "0", "queued": "0", "objects": "3", "visit": "1"} {
		if got := r.get(key); got != want {
			t.Errorf("status %s: got %q, want %q", key, got, want)
		}
	}

	// What changes, changes; what goes, goes; the rest is not looked at.
	write(t, src+"/a.txt", "Another title\n")
	if err := os.Remove(src + "/x.bin"); err != nil {
		t.Fatal(err)
	}
	before := r.store.Cursor().Seq
	r.must("run")
	r.settle()
	all = r.objects("file://" + src)
	if got, want := names(all), "/a.txt /sub/b%20c%25.html"; got != want {
		t.Errorf("after changes: got %s, want %s", got, want)
	}
	if o := all["/a.txt"]; o.Text("Title") != "Another title" {
		t.Errorf("Title: got %q", o.Text("Title"))
	}
	if n := r.store.Cursor().Seq - before; n != 2 {
		t.Errorf("got %d changes, want 2", n)
	}
	if got := r.get("unchanged"); got != "1" {
		t.Errorf("unchanged: got %s, want 1", got)
	}

	// Without full text they are all made anew; the config is in force at once.
	if err := r.setConfig(t.Context(), "root url=file://"+src+"\nfulltext=no\n"); err != nil {
		t.Fatal(err)
	}
	r.must("run")
	r.settle()
	for u, o := range r.objects("file://" + src) {
		if _, ok := o.Get("Full-Text"); ok {
			t.Errorf("%s has Full-Text", u)
		}
	}

	// The tables.
	docs := r.read("documents")
	lines := strings.Split(docs, "\n")
	slices.Sort(lines)
	if line := lines[1]; !strings.HasPrefix(line, "file://"+src+"/a.txt\tstored\t200\t14\t") || strings.Count(line, "\t") != 13 {
		t.Errorf("documents: got %q", line)
	}
	if got := r.read("queue"); got != "" {
		t.Errorf("queue: got %q, want nothing", got)
	}

	r.must("forget file://" + src + "/a.txt")
	if err := r.do("forget file://" + src + "/a.txt"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("forgotten twice: got %v, want that it does not exist", err)
	}
	if got, want := names(r.objects("file://"+src)), "/sub/b%20c%25.html"; got != want {
		t.Errorf("after forget: got %s, want %s", got, want)
	}
	r.must("fetch file://" + src + "/a.txt")
	r.settle()
	if got, want := names(r.objects("file://"+src)), "/a.txt /sub/b%20c%25.html"; got != want {
		t.Errorf("after fetch: got %s, want %s", got, want)
	}
	r.must("refresh")
	r.settle()
	if got := r.get("fetched"); got != "2" {
		t.Errorf("refreshed: got %s, want 2", got)
	}
	r.must("compact")
}

func (r *runner) mustDoc(url string) [16]byte {
	r.t.Helper()
	d, err := r.db.Lookup(url)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.MD5
}

// A site is a web server over a file of pages, with a log.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string
	log   []string
	block chan struct{} // a request of /slow waits for it
}

func serve(t testing.TB, file string) *site {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{pages: make(map[string]string), block: make(chan struct{})}
	for part := range strings.SplitSeq("\n"+string(b), "\n-- ") {
		if name, text, ok := strings.Cut(part, " --\n"); ok && !strings.Contains(name, "\n") {
			s.pages[name] = text
		}
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		select {
		case <-s.block:
		case <-r.Context().Done():
		}
	}
	s.mu.Lock()
	text, ok := s.pages[r.URL.Path]
	s.log = append(s.log, r.URL.Path+" "+r.Header.Get("User-Agent"))
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(text))
}

func TestSite(t *testing.T) {
	s := serve(t, "crawl/testdata/site.txtar")
	r := run(t, t.TempDir(), "root url="+s.URL+" delay=0s\nuser-agent=test/2 from=me@here\n")
	r.must("run")
	r.settle()
	all := r.objects(s.URL)
	if got, want := names(all), "/ /a.html /b/ /c.html /deep/er/d.html /deep/er/e.html /f.html /frame.html /gone.html /private/open.html"; got != want {
		t.Errorf("got %s, want %s\n%s", got, want, r.read("events"))
	}
	if o := all["/"]; o.Text("Title") != "Home" || o.Text("Last-Modification-Time") != "1000000000" {
		t.Errorf("/: got %s", o.Append(nil))
	}
	for _, l := range s.log {
		if strings.HasPrefix(l, "/private/secret") || strings.HasPrefix(l, "/search") || !strings.HasSuffix(l, " test/2") {
			t.Errorf("the server saw %q", l)
		}
	}
	if got := r.read("hosts"); !strings.HasPrefix(got, s.URL+"\t200\t") {
		t.Errorf("hosts: got %q", got)
	}
	// The config is read at each visit: what it denies now goes.
	if err := r.setConfig(t.Context(), "root url="+s.URL+" delay=0s\ndeny=^/deep\ngone=0s\n"); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	delete(s.pages, "/gone.html")
	s.mu.Unlock()
	r.must("run")
	r.settle()
	if got, want := names(r.objects(s.URL)), "/ /a.html /b/ /c.html /f.html /frame.html /private/open.html"; got != want {
		t.Errorf("later: got %s, want %s\n%s", got, want, r.read("events"))
	}
	if got := r.get("fetched"); got != "0" {
		t.Errorf("fetched: got %s, want 0: no page has changed", got)
	}
}

// TestVerbs: stop, pause and resume, at work and at rest, over restarts.
func TestVerbs(t *testing.T) {
	s := serve(t, "crawl/testdata/site.txtar")
	s.pages["/"] = "<a href=slow><a href=a.html>"
	s.pages["/slow"] = "<title>Slow</title>"
	dir := t.TempDir()
	r := run(t, dir, "root url="+s.URL+" delay=0s depth=1\n")
	if err := r.do("resume"); err == nil {
		t.Error("resume: want it refused at rest")
	}
	if err := r.do("runn"); err == nil {
		t.Error("runn: want it refused")
	}
	if got := r.read("err"); !strings.Contains(got, "runn") {
		t.Errorf("err: got %q", got)
	}
	r.must("run")
	r.must("pause") // returns when the visit has ended
	if got := r.get("state"); got != "paused" {
		t.Errorf("state: got %s, want paused", got)
	}
	if err := r.do("run"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("run while paused: got %v, want busy", err)
	}
	if err := r.do("fetch " + s.URL); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("fetch while paused: got %v, want busy", err)
	}
	r.end()
	r = run(t, dir, "")
	if got := r.get("state"); got != "paused" {
		t.Errorf("state after a restart: got %s, want paused", got)
	}
	close(s.block)
	r.must("resume")
	r.settle()
	if got, want := names(r.objects(s.URL)), "/ /a.html /slow"; got != want && r.get("visit") != "0" {
		t.Errorf("after resume: got %s, want %s\n%s", got, want, r.read("events"))
	}
	r.must("stop")
	if got := r.get("state"); got != "stopped" {
		t.Errorf("state: got %s, want stopped", got)
	}
	r.must("run")
	r.settle()
	if got, want := names(r.objects(s.URL)), "/ /a.html /slow"; got != want {
		t.Errorf("after run: got %s, want %s\n%s", got, want, r.read("events"))
	}
}

// TestEvery: visits come by themselves, and the time to the next is kept over a
// restart.
func TestEvery(t *testing.T) {
	src := t.TempDir()
	write(t, src+"/a.txt", "a\n")
	dir := t.TempDir()
	r := run(t, dir, "root url=file://"+src+"\nevery=1h\n")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := r.store.Wait(ctx, 0); err != nil {
		t.Fatalf("no visit was made: %v\n%s", err, r.read("status"))
	}
	r.settle()
	was, err := r.db.Visited()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.get("next"), was.Ended.Add(time.Hour).UTC().Format(time.RFC3339); !strings.HasPrefix(got, strings.TrimSuffix(want, "Z")) {
		t.Errorf("next: got %s, want %s", got, want)
	}
	r.end()
	r = run(t, dir, "")
	if v, wait, err := r.next(time.Now()); v != nil || wait > time.Hour || wait < 50*time.Minute || err != nil {
		t.Errorf("after a restart: got a visit %t, wait %v, %v, want none for an hour", v != nil, wait, err)
	}
}

func TestGatherers(t *testing.T) {
	dir := t.TempDir()
	lg := slog.New(slog.DiscardHandler)
	open := func() (*fs.Services[*Gatherer], func()) {
		a, err := OpenAll(dir, lg, Options{Version: "1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		return a, func() {
			cancel()
			<-done
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s := serve(t, "crawl/testdata/site.txtar")
	s.pages["/"] = "<a href=slow>"
	a, end := open()
	d := a.Files()
	for _, name := range []string{"web", "docs"} {
		if _, err := d.(fs.Maker).Mkdir(t.Context(), name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.(fs.Maker).Mkdir(t.Context(), "web", 0o755); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("mkdir twice: got %v, want that it exists", err)
	}
	for _, bad := range []string{"", ".x", "a/b", "a b", strings.Repeat("x", 65)} {
		if _, err := d.(fs.Maker).Mkdir(t.Context(), bad, 0o755); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("mkdir %q: got %v, want invalid", bad, err)
		}
	}
	g, err := a.Get("web")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.run(t.Context(), nil); err == nil {
		t.Error("run without a root: want it refused")
	}
	if err := g.setConfig(t.Context(), "root url="+s.URL+" delay=0s\n"); err != nil {
		t.Fatal(err)
	}
	if err := g.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	rm := d.(fs.Remover)
	if err := rm.Remove(t.Context(), "web"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("rmdir of one that runs: got %v, want busy", err)
	}
	if err := rm.Remove(t.Context(), "docs"); err != nil {
		t.Errorf("rmdir: %v", err)
	}
	if err := rm.Remove(t.Context(), "docs"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("rmdir twice: got %v, want that it does not exist", err)
	}
	end()
	a, end = open()
	defer end()
	listed := ""
	for e, err := range a.Files().List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed += e.Name + " "
	}
	if listed != "web " {
		t.Errorf("after a restart: got %s, want web", listed)
	}
	if g, err = a.Get("web"); err != nil {
		t.Fatal(err)
	}
	close(s.block)
	if err := g.stop(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Files().(fs.Remover).Remove(t.Context(), "web"); err != nil {
		t.Errorf("rmdir of one that is stopped: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestLong: a file is hashed to its end whatever its length; a page that is
// longer than what is read of one has the size its server told, if it did.
func TestLong(t *testing.T) {
	text := strings.Repeat("all of it ", 700)
	src := t.TempDir()
	write(t, src+"/long.txt", text)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/told":
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		case "/chunked":
			w.(http.Flusher).Flush()
		default:
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, text)
	}))
	defer s.Close()
	for _, head := range []int{1000, 1 << 20} { // the limit comes after what is held at once, and before
		g, err := Open(t.TempDir(), "test", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := g.setConfig(t.Context(), "root url=file://"+src+"\nleaf delay=0s url="+s.URL+"/told\nleaf delay=0s url="+s.URL+"/chunked\nleaf delay=0s url="+s.URL+"/none\n"); err != nil {
			t.Fatal(err)
		}
		v := g.newVisit(g.conf)
		v.plan.Limits = crawl.Limits{Head: head, Body: 5000}
		if err := g.db.Visit(t.Context(), v.plan, g.rt, v, &v.counts); err != nil {
			t.Fatal(err)
		}
		size, sum := strconv.Itoa(len(text)), fmt.Sprintf("%x", md5.Sum([]byte(text)))
		objects := (&runner{Gatherer: g, t: t}).objects("")
		var table bytes.Buffer
		w := bufio.NewWriter(&table)
		if err := errors.Join(g.writeDocuments(t.Context(), w), w.Flush()); err != nil {
			t.Fatal(err)
		}
		const cut = "the first 5000 bytes of the document"
		for _, c := range []struct{ url, status, size, fileSize, md5, limit string }{
			{"file://" + src + "/long.txt", "200", size, size, sum, ""},
			{s.URL + "/told", "200", size, size, "", cut},
			{s.URL + "/chunked", "200", "-", "", "", cut},
			{s.URL + "/none", "404", "-", "", "", ""},
		} {
			_, line, _ := strings.Cut(table.String(), c.url+"\t")
			if f := strings.Split(line, "\t"); len(f) < 3 || f[1] != c.status || f[2] != c.size {
				t.Errorf("documents: %s: got %.40q, want status %s, size %s", c.url, f, c.status, c.size)
			}
			o, kept := objects[c.url]
			if kept != (c.status == "200") {
				t.Errorf("%s: kept is %t", c.url, kept)
			}
			if o.Text("File-Size") != c.fileSize || o.Text("MD5") != c.md5 || !strings.HasSuffix(o.Text("Summary-Limit"), c.limit) {
				t.Errorf("%s: got File-Size %q, MD5 %q, want %q, %q, limit %q in\n%.900s", c.url, o.Text("File-Size"), o.Text("MD5"), c.fileSize, c.md5, c.limit, o.Append(nil))
			}
		}
	}
}

// TestCounts: what a visit has done is told after a restart too, when it ended
// and when it was cut off.
func TestCounts(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/a.txt", "a text\n")
	r := run(t, dir, "root url=file://"+src+"\n")
	told := func() string {
		var lines []string
		for _, key := range []string{"visit", "found", "queued", "fetched", "requests", "bytes-in", "bytes-out"} {
			lines = append(lines, key+"="+r.get(key))
		}
		return strings.Join(lines, " ")
	}
	again := func(want string) {
		t.Helper()
		before := told()
		r.end()
		r = run(t, dir, "")
		if got := told(); got != before || !strings.HasPrefix(got, want) || r.get("rate") == "0.0" || r.get("bytes-in-rate") == "0" {
			t.Errorf("after a restart: got %s, want %s, which begins with %s\n%s", got, before, want, r.read("status"))
		}
	}
	r.must("run")
	r.settle()
	again("visit=1 found=1 queued=0 fetched=1 requests=1 bytes-in=7 bytes-out=")

	asked := make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- true
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	defer r.end()
	if err := r.setConfig(t.Context(), "leaf delay=0s url="+s.URL+"/slow\nleaf url=file://"+src+"/b.txt\n"); err != nil {
		t.Fatal(err)
	}
	write(t, src+"/b.txt", "b text\n")
	r.must("run")
	<-asked
	for r.get("fetched") != "1" { // the other is on its way
		if r.get("state") != "running" {
			t.Fatalf("it ended:\n%s", r.read("status"))
		}
	}
	r.must("stop")
	again("visit=2 ")
}

// TestBroken: a Gatherer that cannot be opened stops no other, says why, and is
// left as it is.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	lg := slog.New(slog.DiscardHandler)
	a, err := OpenAll(dir, lg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs", "web"} {
		if _, err := a.Files().(fs.Maker).Mkdir(t.Context(), name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	const junk = "not a database"
	write(t, dir+"/docs/crawl.db", junk)
	if a, err = OpenAll(dir, lg, Options{}); err != nil {
		t.Fatalf("one is broken: %v", err)
	}
	defer a.Close()
	if _, err := a.Get("web"); err != nil {
		t.Errorf("the other: %v", err)
	}
	d := a.Files()
	io := fs.IO(t.Context(), d)
	for name, want := range map[string]string{"docs/status": "state=failing\nerr=", "docs/err": "open: "} {
		b, err := iofs.ReadFile(io, name)
		if err != nil || !strings.HasPrefix(string(b), want) || !strings.Contains(string(b), "crawl.db") {
			t.Errorf("%s: got %q, %v, want %q and a reason", name, b, err, want)
		}
	}
	if err := d.(fs.Remover).Remove(t.Context(), "docs"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("rmdir: got %v, want not empty", err)
	}
	if _, err := d.(fs.Maker).Mkdir(t.Context(), "docs", 0o755); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("mkdir: got %v, want that it exists", err)
	}
	if b, err := os.ReadFile(dir + "/docs/crawl.db"); string(b) != junk {
		t.Errorf("crawl.db: got %q, %v, want it left alone", b, err)
	}
	n, err := d.Lookup(t.Context(), "docs")
	if err != nil {
		t.Fatal(err)
	}
	fstest.Dir(t, n.(fs.Dir), fstest.Options{})
}

// TestRmdir: what holds objects goes only when it was stopped.
func TestRmdir(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/a.txt", "a text\n")
	a, err := OpenAll(dir, slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := a.Files()
	mkdir := func() error {
		_, err := d.(fs.Maker).Mkdir(t.Context(), "docs", 0o755)
		return err
	}
	rmdir := func() error { return d.(fs.Remover).Remove(t.Context(), "docs") }
	if err := mkdir(); err != nil {
		t.Fatal(err)
	}
	g, err := a.Get("docs")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.setConfig(t.Context(), "root url=file://"+src+"\n"); err != nil {
		t.Fatal(err)
	}
	once(t, g)
	for _, verb := range []func(context.Context, []string) error{nil, g.pause} {
		if verb != nil {
			if err := verb(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := rmdir(); !errors.Is(err, syscall.ENOTEMPTY) {
			t.Fatalf("rmdir of one with objects: got %v, want not empty", err)
		}
	}
	if n := g.store.Count(); n != 1 {
		t.Errorf("after rmdir was refused: got %d objects, want 1", n)
	}
	if err := g.stop(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	if err := rmdir(); err != nil {
		t.Errorf("rmdir of one that is stopped: %v", err)
	}
	if err := mkdir(); err != nil {
		t.Errorf("mkdir after rmdir: %v", err)
	}
}

// TestHostile: no file stops a run.
func TestHostile(t *testing.T) {
	src := filepath.Join(t.TempDir(), "it's \u00fc 100%?")
	r := rand.New(rand.NewPCG(1, 1))
	junk := make([]byte, 1<<16)
	for i := range junk {
		junk[i] = byte(r.Uint32())
	}
	for _, suffix := range []string{".html", ".md", ".1", ".txt", ".c", ".gz", ".tar", ".tgz", ".py", ".png", ""} {
		write(t, src+"/junk"+suffix, string(junk))
		write(t, src+"/gz"+suffix, "\x1f\x8b\x08"+string(junk))
		write(t, src+"/empty"+suffix, "")
		write(t, src+"/open"+suffix, strings.Repeat("<a <![ <!-- .SH \" ```` /* (", 10000))
	}
	write(t, src+"/"+strings.Repeat("n", 250), "x")
	write(t, src+"/\xff\xfe\n\t%41\\?#", "x")
	if err := syscall.Mkfifo(src+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	g := run(t, t.TempDir(), ndb.Format(ndb.Of("root", ""), ndb.Of("url", "file://"+fetch.Escape(src)))+"\n")
	g.must("run")
	g.settle()
	// Counted from the events, since status is of the last run alone, and one follows
	// by itself if "open" was fetched before "open.gz", which it is dropped for.
	events := g.read("events")
	if got, want := strings.Count(events, " event=done "), 46; got != want || strings.Contains(events, " event=failed ") {
		t.Errorf("got %d done, want %d and none failed\n%s", got, want, events)
	}
	g.objects("")
}

// child gathers in a process of its own until it is killed. It writes a line
// for each object that the store has acknowledged.
func child(dir string) {
	lg := slog.New(slog.NewTextHandler(os.Stderr, nil))
	g, err := Open(dir, "test", lg, Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() { // ends with the process
		seq := uint64(0)
		for {
			next, err := g.store.Wait(context.Background(), seq)
			if err != nil {
				return
			}
			seq = next
			fmt.Println("seq", seq)
		}
	}()
	if err := g.run(context.Background(), nil); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			g.mu.Lock()
			state, ended := g.state(), g.ended
			g.mu.Unlock()
			if state != "running" {
				break
			}
			if ended != nil {
				<-ended
			}
		}
		cancel()
	}()
	g.Run(ctx)
	g.Close()
	fmt.Println("end")
}

// TestKill kills a gathering process at random moments, and sees after each
// that nothing the store acknowledged is gone, and at last that the run came to
// its end with every document.
func TestKill(t *testing.T) {
	src := t.TempDir()
	files, slower := 400, 60 // more files and more patience make more kills
	if n, err := strconv.Atoi(os.Getenv("HARVEST_TEST_KILLS")); err == nil {
		files, slower = 100*n, 5
	} else {
		t.Log("HARVEST_TEST_KILLS=50 kills some fifty times and more")
	}
	for i := range files {
		write(t, fmt.Sprintf("%s/%02d/%d.html", src, i%20, i), fmt.Sprintf("<title>Page %d</title><p>%s", i, strings.Repeat("word ", i%200)))
	}
	s := serve(t, "crawl/testdata/site.txtar")
	dir := t.TempDir()
	write(t, dir+"/config", "root url=file://"+src+"\nroot url="+s.URL+" delay=0s\n")
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	kills, acked := 0, uint64(0)
	for ended := false; !ended; {
		if kills > 2000 {
			t.Fatal("the run does not come to its end")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "HARVEST_TEST_GATHER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(1+r.IntN(50+slower*kills))*time.Millisecond, func() { cmd.Process.Kill() })
		for sc := bufio.NewScanner(out); sc.Scan(); {
			var n uint64
			switch _, err := fmt.Sscanf(sc.Text(), "seq %d", &n); {
			case err == nil:
				acked = max(acked, n)
			case sc.Text() == "end":
				ended = true
			default:
				t.Fatal(sc.Text())
			}
		}
		cmd.Wait()
		if !ended {
			kills++
		}
		check(t, dir, acked)
	}
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if got, want := g.store.Count(), int64(files+10); got != want {
		t.Errorf("got %d objects at the end, want %d", got, want)
	}
	seq := g.store.Cursor().Seq
	t.Logf("%d kills, %d objects, %d made twice", kills, g.store.Count(), seq-uint64(g.store.Count()))
	if kills == 0 {
		t.Error("the child was never killed")
	}
	if twice := seq - uint64(g.store.Count()); twice > uint64(kills*1024) {
		t.Errorf("got %d objects made twice in %d kills", twice, kills)
	}
}

// check opens what a killed process left: the store has all it acknowledged,
// and every document that is off the queue has its object.
func check(t *testing.T, dir string, acked uint64) {
	t.Helper()
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if got := g.store.Cursor().Seq; got < acked {
		t.Fatalf("the store is at %d, but %d was acknowledged", got, acked)
	}
	for d, err := range g.db.Documents(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if d.State.String() != "stored" {
			continue
		}
		b, _, err := g.store.Get(g.oid(d.URL))
		if err != nil {
			t.Fatalf("%s is known to be stored: %v", d.URL, err)
		}
		if o, _, err := soif.Parse(b, soif.Limits{}); err != nil || o.URL != d.URL {
			t.Fatalf("%s: got the object of %s, %v", d.URL, o.URL, err)
		}
	}
}
