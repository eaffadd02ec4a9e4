package gather

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// pour writes a file of a Gatherer as cp does, in parts of some bytes.
func pour(t testing.TB, g *Gatherer, name, text string, part int) error {
	t.Helper()
	n, err := g.Files().Lookup(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.(fs.File).Open(t.Context(), fs.Write|fs.Trunc)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var errs []error
	for off := 0; off < len(text); off += part {
		_, err := h.WriteAt(t.Context(), []byte(text[off:min(len(text), off+part)]), int64(off))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, h.Flush(t.Context()))...)
}

// TestSubmit: what strangers ask for is counted and fetched, line by line
// whatever the writes; what is refused is named.
func TestSubmit(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprintf(w, "A page called %s, and more", r.URL.Path)
	}))
	defer s.Close()
	g, err := Open(t.TempDir(), "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.setConfig(t.Context(), "deny=^/private\n"); err != nil {
		t.Fatal(err)
	}
	err = pour(t, g, "submit", "http://a.test/x\n# a comment\n\nhttp://a.test/y\nhttp://A.test:80/x#again", 7)
	if err != nil {
		t.Fatal(err)
	}
	for u, want := range map[string]int{"http://a.test/x": 2, "http://a.test/y": 1} {
		d, err := g.db.Lookup(u)
		if err != nil || !d.Queued() {
			t.Fatalf("%s: got %v, queued %t, want it queued", u, err, d.Queued())
		}
		if d.Submitted != want {
			t.Errorf("%s: got %d submissions, want %d", u, d.Submitted, want)
		}
	}
	if !g.want.queue {
		t.Error("nothing is to be fetched")
	}
	err = pour(t, g, "submit", "http://b.test/1\nfile:///etc/passwd\nnonsense\nhttp://b.test/private/x\nhttp://b.test/2\n", 1000)
	if err == nil || !strings.Contains(err.Error(), "3 of 5 refused") {
		t.Errorf("got %v, want three refused", err)
	}
	r := &runner{Gatherer: g, t: t}
	told := r.read("err")
	for _, want := range []string{"file:///etc/passwd: not of a server", "nonsense: bad url", "http://b.test/private/x: deny"} {
		if !strings.Contains(told, want) {
			t.Errorf("err: got\n%swant %s", told, want)
		}
	}
	queue := r.read("queue")
	for u, want := range map[string]bool{"http://b.test/1": true, "http://b.test/2": true, "http://b.test/private/x": false, "file:///etc/passwd": false} {
		if got := strings.Contains(queue, u+"\n"); got != want {
			t.Errorf("queue: %s is there: %t, want %t", u, got, want)
		}
	}
	if err := pour(t, g, "submit", "http://c.test/"+strings.Repeat("x", 10_000), 1000); err == nil {
		t.Error("a line without an end is taken")
	}
	bad := "http://me:geheim@[x/" + strings.Repeat("y", 300)
	for _, file := range []string{"submit", "explain", "ctl"} {
		line := bad
		if file == "ctl" {
			line = "fetch " + bad
		}
		if err := pour(t, g, file, line+"\n", 1000); err == nil {
			t.Errorf("%s: %s is taken", file, line)
		}
	}
	if told := r.read("err"); strings.Contains(told, "geheim") || strings.Count(told, "...@[x/") < 3 {
		t.Errorf("err: got\n%swant no password", told)
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests were made without a visit", asked.Load())
	}
}

// TestSubmitRate: a flood is refused, and may go on when time has passed.
func TestSubmitRate(t *testing.T) {
	var b bucket
	now := time.Unix(1e9, 0)
	for i := range submitBurst {
		if !b.take(1, now) {
			t.Fatalf("refused after %d", i)
		}
	}
	if b.take(1, now) {
		t.Error("one more is taken")
	}
	now = now.Add(time.Second)
	if !b.take(submitRate, now) || b.take(1, now) {
		t.Errorf("after a second: want %d taken and no more", submitRate)
	}
	if now = now.Add(time.Hour); !b.take(submitBurst, now) || b.take(1, now) {
		t.Errorf("after an hour: want %d taken and no more", submitBurst)
	}
	g, err := Open(t.TempDir(), "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.submits = bucket{left: 2, at: time.Now().Add(time.Hour)}
	if err := pour(t, g, "submit", "http://a.test/1\nhttp://a.test/2\nhttp://a.test/3\n", 1000); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("got %v, want busy", err)
	}
}

// web serves pages by path, each with its own text.
func web(t *testing.T, pages map[string]string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestExplain: what decided is told, whatever it was.
func TestExplain(t *testing.T) {
	const copy = "<title>The same</title><p>These words stand in several places."
	s := web(t, map[string]string{
		"/":                   "<title>Home</title><a href=a.html>a</a><a href=mirror/a.html>b</a><a href=long/way/to/b.html>c</a><a href=no/x.html>d</a><a href=gone.html>e</a>",
		"/a.html":             copy,
		"/mirror/a.html":      copy,
		"/long/way/to/b.html": "<title>B</title>",
		"/no/x.html":          "<title>X</title>",
	})
	r := run(t, t.TempDir(), "root url="+s.URL+"/ delay=0s\ndeny=^/no/\nselect shortest=2\nselect out allow=zzz\n")
	r.must("run")
	r.settle()
	explain := func(u string) string {
		t.Helper()
		if err := pour(t, r.Gatherer, "explain", u+"\n", 4096); err != nil {
			t.Fatal(err)
		}
		return r.read("explain")
	}
	for path, want := range map[string][]string{
		"/":                   {"url=" + s.URL + "/\n", "state=stored depth=0 status=200", "place=selected selected=yes by=shortest=2"},
		"/a.html":             {"copies=2 md5=", " kept=this\n", "place=selected selected=yes"},
		"/mirror/a.html":      {"kept=" + s.URL + "/a.html score=", "for=path=248>241", "place=unselected selected=no by='a copy'"},
		"/long/way/to/b.html": {"place=unselected selected=no by='not picked by shortest=2'"},
		"/no/x.html":          {"excluded=deny=^/no/", "state="},
		"/gone.html":          {"status=404"},
		"/never.html":         {"state=unknown"},
	} {
		got := explain(s.URL + path)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got\n%swant %s", path, got, w)
			}
		}
	}
	if err := pour(t, r.Gatherer, "explain", s.URL+"/\n"+s.URL+"/x\n", 4096); err == nil || !strings.Contains(r.read("err"), "one URL at a time") {
		t.Errorf("explain of two: got %v, err says %s", err, r.read("err"))
	}
	if err := pour(t, r.Gatherer, "explain", "what?\n", 4096); err == nil || !strings.Contains(r.read("err"), "explain: bad url") {
		t.Errorf("got %v, err has %q, want it refused there", err, r.read("err"))
	}
	if got, want := r.read("selected"), s.URL+"/\tshortest=2\n"+s.URL+"/a.html\tshortest=2\n"; got != want {
		t.Errorf("selected: got\n%swant\n%s", got, want)
	}
	if got, want := r.read("duplicates"), s.URL+"/mirror/a.html\t"+s.URL+"/a.html\t"; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 || strings.Count(got, "\t") != 4 {
		t.Errorf("duplicates: got\n%swant it to begin\n%s", got, want)
	}
	if got := r.get("unselected"); got != "2" || r.get("copies") != "1" || r.get("objects") != "2" {
		t.Errorf("status: got\n%s", r.read("status"))
	}
	if got, want := names(r.objects(s.URL)), "/ /a.html"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSubmitScore: who is submitted may win over a copy, though it is not fetched
// for a stranger, being of a private address.
func TestSubmitScore(t *testing.T) {
	const same = "<title>The same</title><p>These words stand in several places."
	s := web(t, map[string]string{"/": "<a href=a.html>a</a><a href=mirror/a.html>b</a>", "/a.html": same, "/mirror/a.html": same})
	r := run(t, t.TempDir(), "root url="+s.URL+"/ delay=0s\n")
	r.must("run")
	r.settle()
	if got, want := names(r.objects(s.URL)), "/ /a.html"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if err := pour(t, r.Gatherer, "submit", s.URL+"/mirror/a.html\n", 4096); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if got, want := names(r.objects(s.URL)), "/ /mirror/a.html"; got != want {
		t.Errorf("after a submission: got %s, want %s\n%s", got, want, r.read("events"))
	}
	if got := r.read("duplicates"); !strings.Contains(got, "submitted=20>0") {
		t.Errorf("duplicates: got %q", got)
	}
}

// TestLinked: links are told, and count, between servers too: for what is
// selected, for who wins among copies, and in top25.
func TestLinked(t *testing.T) {
	const same = "<title>The same</title><p>These words stand in several places."
	pages := map[string]string{"/x/original.html": same, "/short.html": same, "/other.html": "<title>Other</title>"}
	s := web(t, pages)
	var roots strings.Builder
	var linking []string
	for i := range 4 {
		body := fmt.Sprintf("<title>Linking %d</title><a href=%s/x/original.html>it</a><a href=/own.html>own</a>", i, s.URL)
		if i == 0 {
			body += "<a href=" + s.URL + "/other.html>o</a>"
		}
		l := web(t, map[string]string{"/": body, "/own.html": fmt.Sprintf("<title>Own %d</title>", i)})
		linking = append(linking, l.URL)
		fmt.Fprintf(&roots, "root url=%s/ delay=0s\n", l.URL)
	}
	pages["/"] = "<title>Home</title><a href=x/original.html>a</a><a href=short.html>b</a><a href=other.html>c</a>"
	fmt.Fprintf(&roots, "root url=%s/ delay=0s\n", s.URL)
	r := run(t, t.TempDir(), roots.String())
	for range 2 { // once to know all, and once to have all links
		r.must("refresh")
		r.settle()
	}
	rows := make(map[string]bool)
	for l := range strings.Lines(r.read("links")) {
		rows[strings.TrimSuffix(l, "\n")] = true
	}
	for _, want := range []string{s.URL + "/\t" + s.URL + "/short.html", linking[1] + "/\t" + s.URL + "/x/original.html", linking[2] + "/\t" + linking[2] + "/own.html"} {
		if !rows[want] {
			t.Errorf("links: got\n%swant %s", r.read("links"), want)
		}
	}
	if got, want := r.read("top25"), s.URL+"\t4\t5\n"; got != want {
		t.Errorf("top25: got %q, want %q", got, want)
	}
	// 5 inbound links are worth 7+15, the path 2 less than 247.
	if got, want := r.read("duplicates"), fmt.Sprintf("%s/short.html\t%[1]s/x/original.html\t", s.URL); !strings.HasPrefix(got, want) || !strings.Contains(got, "inbound=22>10") {
		t.Errorf("duplicates: got %q, want %q and why", got, want)
	}
	agree(t, r.Gatherer, "copies")
	if err := r.setConfig(t.Context(), roots.String()+"select inlinks=4\n"); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if got, want := names(r.objects(s.URL)), "/x/original.html"; got != want {
		t.Errorf("linked by four: got %s, want %s", got, want)
	}
	agree(t, r.Gatherer, "linked by four")
	if err := r.setConfig(t.Context(), roots.String()+"select limit=2 order=inlinks\n"); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if got, want := names(r.objects(s.URL)), "/other.html /x/original.html"; got != want {
		t.Errorf("the two most linked: got %s, want %s", got, want)
	}
	agree(t, r.Gatherer, "the two most linked")
}
