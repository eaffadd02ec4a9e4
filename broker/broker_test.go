package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
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
	"unicode"

	"harvest/broker/provider"
	"harvest/fs"
	"harvest/gather/essence/jail"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// object is a summary as a Gatherer called web makes it.
func object(url, title, text string) *soif.Object {
	o := &soif.Object{Type: "FILE", URL: url}
	o.Add("Update-Time", []byte("1000000000"))
	o.Add("Time-to-Live", []byte("100000000000"))
	o.Add("Type", []byte("text"))
	o.Add("Title", []byte(title))
	o.Add("Gatherer-Name", []byte("web"))
	o.Add("Gatherer-Host", []byte("here"))
	o.Add("Full-Text", []byte(text))
	return o
}

func oid(url string) store.OID { return store.ID(url, "web@here") }

func update(o *soif.Object) store.Change {
	return store.Change{Op: soif.Update, OID: oid(o.URL), Body: o.Append(nil)}
}

// A world is what Brokers under test collect from: stores, and other trees.
type world struct {
	t      testing.TB
	stores map[string]*store.Store
	trees  map[string]iofs.FS
	down   map[string]error
}

func newWorld(t testing.TB) *world {
	return &world{t, make(map[string]*store.Store), make(map[string]iofs.FS), make(map[string]error)}
}

// gatherer makes a store that is collected from as path.
func (w *world) gatherer(path string) *store.Store {
	w.t.Helper()
	s, err := store.Open(w.t.TempDir(), testLog(w.t), store.Options{NoSync: true})
	must(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	w.stores[path] = s
	files := s.Files(func(parts ...string) uint64 { return fs.ID(append([]string{path}, parts...)...) }, nil, nil)
	w.trees[path] = fs.IO(ctx, fs.Static(fs.ID(path), files))
	return s
}

func (w *world) open(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
	if addr, err := provider.ParsePath(path); err == nil {
		return provider.New(ctx, addr), io.NopCloser(nil), nil
	}
	if err := w.down[path]; err != nil {
		return nil, nil, err
	}
	tree, ok := w.trees[path]
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", path, iofs.ErrNotExist)
	}
	return tree, io.NopCloser(nil), nil
}

// broker opens a Broker in dir that collects from sources.
func (w *world) broker(dir string, config string) *Broker {
	w.t.Helper()
	b, err := Open(dir, "b", testLog(w.t), Options{Open: w.open})
	must(w.t, err)
	w.t.Cleanup(func() { b.Close() })
	if config != "" {
		must(w.t, b.setConfig(ctx, config))
	}
	return b
}

func apply(t testing.TB, s *store.Store, changes ...store.Change) {
	t.Helper()
	_, err := s.Apply(ctx, changes)
	must(t, err)
}

// holds checks that registry, store and index hold exactly the objects with
// the URLs and texts given, byte for byte what want has.
func holds(t testing.TB, b *Broker, want map[string]*soif.Object) {
	t.Helper()
	var got, entered []string
	for e, err := range b.store.Scan(ctx, "", "") {
		must(t, err)
		got = append(got, e.OID.String())
	}
	must(t, b.registry.each(func(e entry) error {
		entered = append(entered, e.oid.String())
		return nil
	}))
	var wanted []string
	for url, o := range want {
		wanted = append(wanted, oid(url).String())
		body, _, err := b.store.Get(oid(url))
		if err != nil || !bytes.Equal(body, o.Append(nil)) {
			t.Errorf("%s: got %s, %v, want %s", url, body, err, o.Append(nil))
		}
	}
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("store: got %d objects %v, want %d %v", len(got), got, len(wanted), wanted)
	}
	if !slices.Equal(entered, wanted) {
		t.Errorf("registry: got %d objects %v, want %d", len(entered), entered, len(wanted))
	}
	if found := find(t, b, "not title : nothingatall"); !slices.Equal(found, wanted) {
		t.Errorf("index: got %d objects, want %d", len(found), len(wanted))
	}
}

// find gives the names of the objects a query finds, sorted.
func find(t testing.TB, b *Broker, text string) []string {
	t.Helper()
	q, err := query.Parse(text)
	must(t, err)
	a, err := b.answer(ctx, q, plain(), 1)
	must(t, err)
	var out []string
	for _, h := range a.hits {
		out = append(out, h.oid.String())
	}
	slices.Sort(out)
	return out
}

// finds checks that a query finds the objects of the URLs.
func finds(t testing.TB, b *Broker, text string, urls ...string) {
	t.Helper()
	var want []string
	for _, u := range urls {
		want = append(want, oid(u).String())
	}
	slices.Sort(want)
	if got := find(t, b, text); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v of %v", text, got, want, urls)
	}
}

func (b *Broker) lastEvents() string {
	h, _ := b.shown.events.File(1).Open(ctx, fs.Read)
	buf := make([]byte, keepEvents+1)
	n, _ := h.ReadAt(ctx, buf, 0)
	return string(buf[:n])
}

func (b *Broker) errText() string {
	h, _ := b.shown.err.Open(ctx, fs.Read)
	buf := make([]byte, 1<<16)
	n, _ := h.ReadAt(ctx, buf, 0)
	return string(buf[:n])
}

func TestCollect(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	dir := t.TempDir()
	b := w.broker(dir, "source path=gather/web every=10m\n")
	a1, a2, a3 := object("http://a/1", "one fuse", "plan"), object("http://a/2", "two", "fuse"), object("http://a/3", "three", "")
	apply(t, g, update(a1), update(a2), update(a3))
	must(t, b.Collect(ctx, "gather/web"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2, "http://a/3": a3})
	finds(t, b, "fuse", "http://a/1", "http://a/2")

	a2b := object("http://a/2", "two", "new words")
	apply(t, g, update(a2b), store.Change{Op: soif.Delete, OID: oid("http://a/1")},
		store.Change{Op: soif.Refresh, OID: oid("http://a/3"), Updated: time.Unix(1100000000, 0)})
	must(t, b.Collect(ctx, "gather/web"))
	a3.Set("Update-Time", []byte("1100000000"))
	holds(t, b, map[string]*soif.Object{"http://a/2": a2b, "http://a/3": a3})
	finds(t, b, "fuse")
	if !strings.Contains(b.lastEvents(), "updates=1 deletes=1 refreshes=1 bad=0") {
		t.Errorf("got events %s, want one of each in the last", b.lastEvents())
	}
	if c := g.Cursor().String(); b.sources["gather/web"].at.cursor != c {
		t.Errorf("got cursor %s, want %s", b.sources["gather/web"].at.cursor, c)
	}

	// Opened again it goes on from there, and collects what is new only.
	must(t, b.Close())
	b = w.broker(dir, "")
	a4 := object("http://a/4", "four", "fuse")
	apply(t, g, update(a4))
	must(t, b.Collect(ctx, "gather/web"))
	if !strings.Contains(b.lastEvents(), "updates=1 deletes=0 refreshes=0 bad=0") {
		t.Errorf("got events %s, want one update", b.lastEvents())
	}
	holds(t, b, map[string]*soif.Object{"http://a/2": a2b, "http://a/3": a3, "http://a/4": a4})
}

// A Broker that collects from a Broker has the same objects under the same names.
func TestCascade(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	a := object("http://a/1", "one", "")
	a.Set("Object-ID", []byte("00000000000000000000000000000001"))
	apply(t, g, store.Change{Op: soif.Update, OID: store.OID{15: 1}, Body: a.Append(nil)}, update(object("http://a/2", "two", "")))
	first := w.broker(t.TempDir(), "source path=gather/web\n")
	must(t, first.Collect(ctx, "gather/web"))
	w.trees["broker/first"] = fs.IO(ctx, first.Files())
	second := w.broker(t.TempDir(), "source path=broker/first\n")
	must(t, second.Collect(ctx, "broker/first"))
	d1, err := first.store.Digest("")
	must(t, err)
	d2, err := second.store.Digest("")
	must(t, err)
	if d0, err := g.Digest(""); err != nil || d1 != d0 || d2 != d1 {
		t.Errorf("got digests %v, %v, want %v, %v", d1, d2, d0, err)
	}
}

// A plain directory, as cp -r leaves it, has since/0 and nothing else.
func TestCollectDirectory(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/since", 0o777))
	w.trees["/copy"] = os.DirFS(dir)
	copyOf := func(s *store.Store) {
		var buf bytes.Buffer
		must(t, s.WriteSince(ctx, &buf, store.Cursor{}))
		must(t, os.WriteFile(dir+"/since/0", buf.Bytes(), 0o666))
	}
	g := w.gatherer("gather/web")
	a1, a2 := object("http://a/1", "one", ""), object("http://a/2", "two", "")
	apply(t, g, update(a1), update(a2))
	copyOf(g)
	b := w.broker(t.TempDir(), "source path=/copy\n")
	must(t, b.Collect(ctx, "/copy"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
	a2 = object("http://a/2", "two again", "")
	apply(t, g, update(a2), store.Change{Op: soif.Delete, OID: oid("http://a/1")})
	copyOf(g)
	must(t, b.Collect(ctx, "/copy"))
	holds(t, b, map[string]*soif.Object{"http://a/2": a2})
}

// A source that lost its history is read from the start, and what it no
// longer has goes; what another source gave stays.
func TestOtherEpoch(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	other := w.gatherer("gather/other")
	a1, a2, o1 := object("http://a/1", "one", ""), object("http://a/2", "two", ""), object("http://o/1", "other", "")
	apply(t, g, update(a1), update(a2))
	apply(t, other, update(o1))
	b := w.broker(t.TempDir(), "source path=gather/web\nsource path=gather/other\n")
	must(t, b.Collect(ctx, "gather/web"))
	must(t, b.Collect(ctx, "gather/other"))
	g = w.gatherer("gather/web")
	apply(t, g, update(a2))
	must(t, b.Collect(ctx, "gather/web"))
	holds(t, b, map[string]*soif.Object{"http://a/2": a2, "http://o/1": o1})
	if !strings.Contains(b.lastEvents(), "event=restart source=gather/web") {
		t.Errorf("got events %s, want a restart", b.lastEvents())
	}
}

// An object that came from a second source is not deleted by the first.
func TestTwoSources(t *testing.T) {
	w := newWorld(t)
	g1, g2 := w.gatherer("one"), w.gatherer("two")
	a := object("http://a/1", "one", "")
	apply(t, g1, update(a))
	apply(t, g2, update(a))
	b := w.broker(t.TempDir(), "source path=one\nsource path=two\n")
	must(t, b.Collect(ctx, "one"))
	must(t, b.Collect(ctx, "two"))
	apply(t, g1, store.Change{Op: soif.Delete, OID: oid("http://a/1")})
	must(t, b.Collect(ctx, "one"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a})
	apply(t, g2, store.Change{Op: soif.Delete, OID: oid("http://a/1")})
	must(t, b.Collect(ctx, "two"))
	holds(t, b, nil)
}

// stream is a tree with one stream in since/0.
func stream(t testing.TB, text string) iofs.FS {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/since", 0o777))
	must(t, os.WriteFile(dir+"/since/0", []byte(text), 0o666))
	return os.DirFS(dir)
}

func TestBadObjects(t *testing.T) {
	w := newWorld(t)
	a1, a2 := object("http://a/1", "one", ""), object("http://a/2", "two", "")
	text := "@UPDATE {\n" + string(a1.Append(nil)) + "@FILE { http://a/bad\nTitle{x}:\toops\n}\n" + string(a2.Append(nil)) +
		"@FILE { -\nTitle{2}:\tno\n}\n}\n@CURSOR { -\nCursor{1}:\t7\n}\n"
	w.trees["bad"] = stream(t, text)
	b := w.broker(t.TempDir(), "source path=bad\n")
	must(t, b.Collect(ctx, "bad"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
	if b.sources["bad"].at.cursor != "7" {
		t.Errorf("got cursor %s, want 7", b.sources["bad"].at.cursor)
	}
	line := strings.Count(text[:strings.Index(text, "Title{x}")], "\n") + 1
	if want := fmt.Sprintf("event=bad source=bad line=%d", line); !strings.Contains(b.lastEvents(), want) {
		t.Errorf("got events %s, want %s", b.lastEvents(), want)
	}
	if !strings.Contains(b.errText(), "source bad: ") || !strings.Contains(b.errText(), "without a URL") {
		t.Errorf("got err %q, want the last bad object of source bad", b.errText())
	}
	// Nothing was swept for want of the objects that could not be read.
	w.trees["bad"] = stream(t, "@UPDATE {\n@FILE { x\nTitle{x}:\toops\n}\n}\n@CURSOR { -\nCursor{1}:\t7\n}\n")
	must(t, b.Collect(ctx, "bad"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
	w.trees["bad"] = stream(t, "@CURSOR { -\nCursor{1}:\t7\n}\n")
	must(t, b.Collect(ctx, "bad"))
	holds(t, b, nil)
	if b.errText() != "" {
		t.Errorf("got err %q after a good collection, want nothing", b.errText())
	}
}

// The cursor stays where it was when a stream is cut anywhere; what came is
// kept, and the next whole stream makes it good.
func TestCutStream(t *testing.T) {
	w := newWorld(t)
	a1, a2 := object("http://a/1", "one", ""), object("http://a/2", "two", "")
	text := "@UPDATE {\n" + string(a1.Append(nil)) + string(a2.Append(nil)) + "}\n@CURSOR { -\nCursor{1}:\t7\n}\n"
	b := w.broker(t.TempDir(), "source path=cut\n")
	for n := 0; n < len(text)-2; n += 7 {
		w.trees["cut"] = stream(t, text[:n])
		if err := b.Collect(ctx, "cut"); err == nil {
			t.Fatalf("cut at %d: got no error", n)
		}
		if c := b.sources["cut"].at.cursor; c != "0" {
			t.Fatalf("cut at %d: got cursor %s, want 0", n, c)
		}
	}
	w.trees["cut"] = stream(t, text)
	must(t, b.Collect(ctx, "cut"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
}

// A source that is away is tried less and less often, and taken up again
// when it is back.
func TestBackOff(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	b := w.broker(t.TempDir(), "source path=gather/web every=1h\n")
	gone := errors.New("no route to host")
	w.down["gather/web"] = gone
	var waits []time.Duration
	for range 14 {
		begin := time.Now()
		if err := b.Collect(ctx, "gather/web"); !errors.Is(err, gone) {
			t.Fatalf("got %v, want %v", err, gone)
		}
		waits = append(waits, b.sources["gather/web"].next.Sub(begin).Round(5*time.Second))
	}
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600, 3600}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(waits, want) {
		t.Errorf("got waits %v, want %v", waits, want)
	}
	if !strings.Contains(b.status(), "is=failing") || !strings.Contains(b.status(), "failed=14 err='no route to host'") {
		t.Errorf("got status %s, want a failing source", b.status())
	}
	delete(w.down, "gather/web")
	apply(t, g, update(object("http://a/1", "one", "")))
	must(t, b.Collect(ctx, "gather/web"))
	if b.sources["gather/web"].fails != 0 || b.errText() != "" {
		t.Errorf("got %d fails and err %q, want none", b.sources["gather/web"].fails, b.errText())
	}
}

func TestDue(t *testing.T) {
	w := newWorld(t)
	w.gatherer("a")
	w.gatherer("b")
	b := w.broker(t.TempDir(), "source path=a every=1h\nsource path=b every=3h\ngc every=2h\n")
	now := time.Now()
	sorted := func(at time.Duration) string {
		paths, gc, wait := b.due(now.Add(at))
		slices.Sort(paths)
		for _, p := range paths { // as collect does
			b.sources[p].cancel, b.sources[p].asked = nil, false
		}
		b.gcRuns = false
		return fmt.Sprint(paths, gc, wait.Round(time.Minute))
	}
	for _, tt := range []struct {
		at   time.Duration
		want string
	}{
		{0, "[a b] false 1h0m0s"}, // new ones are due at once
		{30 * time.Minute, "[] false 30m0s"},
		{time.Hour, "[a] false 1h0m0s"},
		{2*time.Hour + time.Second, "[a] true 1h0m0s"},
		{3*time.Hour + 2*time.Second, "[a b] false 1h0m0s"},
	} {
		if got := sorted(tt.at); got != tt.want {
			t.Errorf("at %v: got %s, want %s", tt.at, got, tt.want)
		}
	}
	must(t, b.stop(true))
	if got := sorted(9 * time.Hour); got != "[] false 1h0m0s" {
		t.Errorf("stopped: got %s, want nothing due", got)
	}
	must(t, b.ask("b"))
	if got := sorted(9 * time.Hour); got != "[b] false 1h0m0s" {
		t.Errorf("asked for: got %s, want b", got)
	}
}

func TestGC(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	kept, short, silent := object("http://a/1", "kept", ""), object("http://a/2", "short", ""), object("http://a/3", "silent", "")
	short.Set("Time-to-Live", []byte("3600"))
	silent.Del("Time-to-Live")
	apply(t, g, update(kept), update(short), update(silent))
	b := w.broker(t.TempDir(), "source path=gather/web\nttl=1000h\n")
	must(t, b.Collect(ctx, "gather/web"))
	if e, err := b.store.Stat(oid("http://a/3")); err != nil || e.TTL != 1000*time.Hour {
		t.Errorf("got lifetime %v, %v, want the config's 1000h", e.TTL, err)
	}
	must(t, b.gc(ctx)) // all were updated in 2001
	holds(t, b, map[string]*soif.Object{"http://a/1": kept})

	// What no source gave goes from the store, what is not stored from the registry.
	apply(t, b.store, update(object("http://orphan/", "orphan", "")))
	must(t, b.registry.begin(1, []store.OID{{1}, {2}}))
	must(t, b.registry.settle(1, []store.OID{{1}, {2}}, func(store.OID) (bool, error) { return true, nil }))
	must(t, b.gc(ctx))
	holds(t, b, map[string]*soif.Object{"http://a/1": kept})
	if !strings.Contains(b.lastEvents(), "event=gc expired=0 orphans=1 stale=2") {
		t.Errorf("got events %s, want an orphan and two stale entries", b.lastEvents())
	}

	// A refresh of what expired here brings it back.
	apply(t, g, store.Change{Op: soif.Refresh, OID: oid("http://a/2"), Updated: time.Now()})
	must(t, b.Collect(ctx, "gather/web"))
	finds(t, b, "short", "http://a/2")
	if !strings.Contains(b.lastEvents(), "updates=1 deletes=0 refreshes=0 bad=0") {
		t.Errorf("got events %s, want an update in place of the refresh", b.lastEvents())
	}
}

// What a crash left between registry and store is settled by what the store has.
func TestSettleAtOpen(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	b := w.broker(dir, "source path=gather/web\n")
	stored, not := object("http://a/1", "one", ""), object("http://a/2", "two", "")
	must(t, b.registry.begin(b.sources["gather/web"].at.id, []store.OID{oid(stored.URL), oid(not.URL)}))
	apply(t, b.store, update(stored))
	must(t, b.Close())
	b = w.broker(dir, "")
	must(t, b.catchUp(ctx))
	holds(t, b, map[string]*soif.Object{stored.URL: stored})
	must(t, b.gc(ctx))
	holds(t, b, map[string]*soif.Object{stored.URL: stored})
}

func TestDeleteAndReindex(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	a1, a2 := object("http://a/1", "one", ""), object("http://a/2", "two", "")
	apply(t, g, update(a1), update(a2))
	dir := t.TempDir()
	b := w.broker(dir, "source path=gather/web\n")
	must(t, b.Collect(ctx, "gather/web"))
	none := strings.Repeat("0", 32)
	if err := b.delete(ctx, []string{oid("http://a/1").String(), none}); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, iofs.ErrNotExist)
	}
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
	must(t, b.delete(ctx, []string{oid("http://a/1").String()}))
	holds(t, b, map[string]*soif.Object{"http://a/2": a2})
	must(t, b.restart("gather/web"))
	b.sources["gather/web"].asked = false
	must(t, b.Collect(ctx, "gather/web"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})

	must(t, b.askReindex())
	must(t, b.catchUp(ctx))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})

	// So does gc, if the index has lost something.
	must(t, b.index.Apply(ctx, nil, []index.ID{index.ID(oid("http://a/1"))}, b.index.Mark()))
	must(t, b.gc(ctx))
	must(t, b.catchUp(ctx))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})

	// One that fails is opened again.
	b.index.Close()
	apply(t, b.store, update(a1), store.Change{Op: soif.Refresh, OID: oid("http://a/2"), Updated: time.Unix(1, 0)})
	if err := b.catchUp(ctx); !errors.Is(err, iofs.ErrClosed) {
		t.Errorf("got %v, want %v", err, iofs.ErrClosed)
	}
	if !strings.Contains(b.errText(), "index: ") {
		t.Errorf("got err %q, want the index's trouble", b.errText())
	}
	must(t, b.catchUp(ctx))
	if got := b.errText(); got != "" {
		t.Errorf("got err %q, want nothing", got)
	}
	a2.Set("Update-Time", []byte("1"))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})

	// An index that is damaged or gone comes back from the store.
	must(t, b.Close())
	must(t, os.WriteFile(filepath.Join(b.indexDir(b.index.number), "MANIFEST"), []byte("x"), 0o666))
	b = w.broker(dir, "")
	must(t, b.catchUp(ctx))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
	must(t, b.Close())
	must(t, os.RemoveAll(filepath.Join(dir, "index")))
	b = w.broker(dir, "")
	must(t, b.catchUp(ctx))
	holds(t, b, map[string]*soif.Object{"http://a/1": a1, "http://a/2": a2})
}

// A part of an index that is damaged is found by the query that needs it; the
// index is made anew then.
func TestDamagedPostings(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	apply(t, g, update(object("http://a/1", "one", "shared")), update(object("http://a/2", "two", "shared")))
	dir := t.TempDir()
	b := w.broker(dir, "source path=g\n")
	must(t, b.Collect(ctx, "g"))
	_, err := walk(t, b.Files(), "query").(fs.Maker).Mkdir(ctx, "x", 0o777)
	must(t, err)
	must(t, write(b.Files(), "query/x/ctl", "query shared\n"))
	must(t, b.Close())
	spoilPostings(t, dir)
	b = w.broker(dir, "")
	q, err := query.Parse("shared")
	must(t, err)
	for range 2 {
		if _, err := b.answer(ctx, q, plain(), 1); !errors.Is(err, index.ErrCorrupt) {
			t.Fatalf("got %v, want %v", err, index.ErrCorrupt)
		}
	}
	if got := b.lastEvents(); strings.Count(got, "event=damaged err=") != 1 {
		t.Errorf("got events %s, want the damage named once", got)
	}
	must(t, b.catchUp(ctx))
	finds(t, b, "shared", "http://a/1", "http://a/2")

	// A session that could not be asked again is asked when that is done, or
	// the next time.
	if got := read(t, b.Files(), "query/x/status"); !strings.HasPrefix(got, "query=shared\nhits=0\n") || !strings.Contains(got, "\ncut=") {
		t.Errorf("got status %s, want no hits and why", got)
	}
	b.queries.askAgain(ctx)
	if got := read(t, b.Files(), "query/x/status"); !strings.HasPrefix(got, "query=shared\nhits=2\n") {
		t.Errorf("got status %s, want two hits", got)
	}
	must(t, b.Close())
	b = w.broker(dir, "")
	if got := read(t, b.Files(), "query/x/status"); !strings.HasPrefix(got, "query=shared\nhits=2\n") {
		t.Errorf("got status %s, want two hits", got)
	}
}

// What fails in the index when one walks to a query or an object stands in err,
// until it is mended; that a walk was given up does not.
func TestDamagedWalk(t *testing.T) {
	dir := t.TempDir()
	b, _ := full(t, dir, "", 20)
	must(t, b.Close())
	spoilPostings(t, dir)
	b, err := Open(dir, "b", testLog(t), Options{})
	must(t, err)
	defer b.Close()
	d := b.Files()
	similar := "similar/" + oid("http://a/0008").String()
	for _, path := range []string{"q/common", similar} {
		dir, name, _ := strings.Cut(path, "/")
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := walk(t, d, dir).(fs.Dir).Lookup(done, name); err == nil || read(t, d, "err") != "" {
			t.Errorf("%s, given up: got %v, err %q, want an error and nothing in err", path, err, read(t, d, "err"))
		}
		if _, err := fs.Walk(ctx, d, path); !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", path, err, index.ErrCorrupt)
		}
		if got := read(t, d, "err"); !strings.HasPrefix(got, dir+": ") || !strings.Contains(got, ": postings: ") || strings.Count(got, "\n\t"+name+"\n") != 1 {
			t.Errorf("%s: got err %q, want the damage and the name", path, got)
		}
		must(t, b.catchUp(ctx))
		walk(t, d, path)
		if got := read(t, d, "err"); got != "" {
			t.Errorf("%s: got err %q after it was mended, want nothing", path, got)
		}
		must(t, b.Close())
		spoilPostings(t, b.dir)
		b, err = Open(b.dir, "b", testLog(t), Options{})
		must(t, err)
		defer b.Close()
		d = b.Files()
	}
}

// spoilPostings changes the first of the one segment there is.
func spoilPostings(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/index/*/segment-*")
	must(t, err)
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("?"), int64(len("harvest index 2\n")))
	must(t, errors.Join(err, f.Close()))
}

// An object that the disk has lost is named, and does not keep the others
// from being found.
func TestDamagedObject(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("g")
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 3 { // each fills a frame
		text := make([]byte, 60_000)
		for j := range text {
			text[j] = "abcdefghijklmnop "[rng.IntN(17)]
		}
		apply(t, g, update(object(fmt.Sprintf("http://a/%d", i), "damage", string(text))))
	}
	dir := t.TempDir()
	b := w.broker(dir, "source path=g\n")
	must(t, b.Collect(ctx, "g"))
	must(t, b.Close())
	files, err := filepath.Glob(dir + "/store/*.seg")
	must(t, err)
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	must(t, err)
	st, err := f.Stat()
	must(t, err)
	_, err = f.WriteAt([]byte("harvest"), st.Size()/2)
	must(t, errors.Join(err, f.Close(), os.RemoveAll(dir+"/index")))
	b = w.broker(dir, "")
	must(t, b.catchUp(ctx))
	if n := len(find(t, b, "title : damage")); n != 2 {
		t.Errorf("got %d objects, want the two that are whole", n)
	}
	if got := b.lastEvents(); strings.Count(got, "event=damaged oid=") != 1 {
		t.Errorf("got events %s, want one object named", got)
	}
	if must(t, b.checkIndex()); b.reindex {
		t.Errorf("got the index made anew for want of an object that cannot be read")
	}
}

// Stop ends what is being read; start takes it up again at once.
func TestStop(t *testing.T) {
	reading := make(chan struct{})
	b, err := Open(t.TempDir(), "b", testLog(t), Options{Open: func(ctx context.Context, _ string) (iofs.FS, io.Closer, error) {
		close(reading)
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}})
	must(t, err)
	defer b.Close()
	must(t, b.setConfig(ctx, "source path=slow every=1h\n"))
	done := make(chan error)
	go func() { done <- b.Collect(ctx, "slow") }()
	<-reading
	if err := b.Collect(ctx, "slow"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("got %v, want %v", err, syscall.EBUSY)
	}
	must(t, b.stop(true))
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if got := b.status(); !strings.HasPrefix(got, "state=stopped\n") || !strings.Contains(got, "is=stopped") || b.errText() != "" {
		t.Errorf("got status %s and err %q, want it stopped, not failing", got, b.errText())
	}
	if paths, _, _ := b.due(time.Now()); paths != nil {
		t.Errorf("stopped: got %v due", paths)
	}
	must(t, b.stop(false))
	if paths, _, _ := b.due(time.Now()); len(paths) != 1 {
		t.Errorf("started: got %v due, want slow", paths)
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"source path=gather/web every=10m\nsource path=tcp!h!5640/gather/x\nttl=4320h\ngc every=1h\nweight title=8 other=0.5\n", ""},
		{"# nothing\n", ""},
		{"sauce path=x\n", "line 1, column 1: unknown key 'sauce'; there are source, ttl, gc, weight, index, external, stopwords, limits, backend, route, log, access and duplicates"},
		{"index engine=ranked positions=no numbers=no memory=64M stem=english\nstopwords='the Über' common=0\n", ""},
		{"index engine=block grain=medium\n", ""},
		{"index\n", "line 1, column 1: index: written as index engine=ranked|block …"},
		{"index engine=nebula\n", "line 1, column 7: index: engine=nebula is not one of ranked, block, scan"},
		{"index engine=block grain=huge\n", "line 1, column 20: index: grain=huge is not one of tiny, small, medium"},
		{"index grain=tiny\n", "line 1, column 7: index: grain is the block engine's; write engine=block"},
		{"index engine=block positions=no\n", "line 1, column 20: index: positions are the ranked engine's"},
		{"index positions=some\n", "line 1, column 7: positions: some is not yes or no"},
		{"index memory=1M\n", "line 1, column 7: index: memory=1M is less than 8M"},
		{"index memory=x\n", "line 1, column 7: memory: x is not a size such as 512, 64K or 2G"},
		{"index stem=klingon\n", "line 1, column 7: index: stem=klingon: neither no nor one of " + strings.Join(index.Languages(), " ")},
		{"index numbers=no numbers=no\n", "line 1, column 18: index: repeated key 'numbers'"},
		{"index size=3\n", "line 1, column 7: index: unknown key 'size'"},
		{"index engine=block\nindex engine=ranked\n", "line 2, column 1: index: already in line 1"},
		{"stopwords=the common=101\n", "line 1, column 15: stopwords: common=101 is not a number from 0 (none) to 100"},
		{"stopwords=the colour=1\n", "line 1, column 15: stopwords: unknown or repeated key 'colour'"},
		{"\nsource path=x evry=10m\n", "line 2, column 15: source: unknown or repeated key 'evry'"},
		{"source path=x every=10\n", "line 1, column 15: every: 10 is not a duration such as 30s or 720h"},
		{"source path=x every=1ms\n", "line 1, column 15: every: 1ms is less than a second"},
		{"source every=10m\n", "line 1, column 1: source: path=PATH is missing"},
		{"source=gather/web\n", "line 1, column 1: source: path=PATH is missing"},
		{"source path=x\nsource every=1m path=x\n", "line 2, column 17: source: x is there already"},
		{"source path=x path=y\n", "line 1, column 15: source: unknown or repeated key 'path'"},
		{"ttl=1h\nttl=2h\n", "line 2, column 1: ttl: already in line 1"},
		{"ttl=0s\n", "line 1, column 1: ttl: 0 would keep nothing"},
		{"gc\n", "line 1, column 1: gc: every=DURATION is missing"},
		{"gc every=1h x\n", "line 1, column 13: gc: unknown or repeated key 'x'"},
		{"weight title=x\n", "line 1, column 8: weight: title=x is not a number from 0 to 1000"},
		{"weight title=NaN\n", "line 1, column 8: weight: title=NaN is not a number from 0 to 1000"},
		{"weight\n", "line 1, column 1: weight: written as weight ATTRIBUTE=NUMBER …"},
		{"ttl='1h\n", "line 1, column 1: quote is not closed"},
	} {
		c, err := parseConfig(tt.text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
		if err == nil && strings.Contains(tt.text, "common") && (!c.stop["uber"] || len(c.stop) != 2 || c.common != 0 ||
			c.index != indexConfig{indexFiles{engine: "ranked", numbers: false}, 64 << 20, "english"}) {
			t.Errorf("%q: got %+v", tt.text, c)
		}
		if err == nil && tt.want == "" && strings.Contains(tt.text, "title=8") &&
			(len(c.sources) != 2 || c.weight("title") != 8 || c.weight("body") != 0.5 || c.weight("md5") != 0) {
			t.Errorf("%q: got %+v", tt.text, c)
		}
	}
}

// words is the naive scan's own idea of a word: the test's objects are ASCII.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func scan(q query.Node, attr string, o *soif.Object) bool {
	phrase := func(text string) bool {
		ws := words(text)
		for _, a := range o.Attrs {
			name := strings.ToLower(a.Name)
			if attr != "" && attr != name || attr == "" && defaultConfig().weight(name) == 0 {
				continue
			}
			have := words(string(a.Value))
			for i := 0; i+len(ws) <= len(have); i++ {
				if slices.Equal(have[i:i+len(ws)], ws) {
					return true
				}
			}
		}
		return false
	}
	switch q := q.(type) {
	case query.And:
		return !slices.ContainsFunc(q, func(n query.Node) bool { return !scan(n, attr, o) })
	case query.Or:
		return slices.ContainsFunc(q, func(n query.Node) bool { return scan(n, attr, o) })
	case query.Bag:
		return scan(query.Or(q), attr, o)
	case query.Not:
		return !scan(q.Node, attr, o)
	case query.Attr:
		return scan(q.Value, q.Name, o)
	case query.Word:
		return phrase(q.Text)
	case query.Phrase:
		return phrase(q.Text)
	}
	panic(fmt.Sprintf("%T", q))
}

// Queries over collected objects find what a scan of the objects finds.
func TestQueriesAgainstScan(t *testing.T) {
	seed := uint64(time.Now().UnixNano() & math.MaxInt32)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	vocabulary := strings.Fields("the of plan fuse mount kernel 9 labs Bell user_data net/http text web here")
	text := func(n int) string {
		var out []string
		for range rng.IntN(n + 1) {
			out = append(out, vocabulary[min(rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)))])
		}
		return strings.Join(out, " ")
	}
	w := newWorld(t)
	g := w.gatherer("gather/web")
	objects := make(map[string]*soif.Object)
	b := w.broker(t.TempDir(), "source path=gather/web\n")
	for range 3 {
		var changes []store.Change
		for range 150 {
			url := fmt.Sprintf("http://a/%d", rng.IntN(300))
			if objects[url] != nil && rng.IntN(4) == 0 {
				delete(objects, url)
				changes = append(changes, store.Change{Op: soif.Delete, OID: oid(url)})
				continue
			}
			objects[url] = object(url, text(4), text(30))
			changes = append(changes, update(objects[url]))
		}
		apply(t, g, changes...)
		must(t, b.Collect(ctx, "gather/web"))
	}
	for _, config := range []string{"", "index positions=no\n", "index engine=block\n", "index engine=block grain=small\n", "index engine=block grain=medium\n"} {
		must(t, b.setConfig(ctx, "source path=gather/web\n"+config))
		must(t, b.catchUp(ctx))
		if b.index.files != b.config.index.files {
			t.Fatalf("got index %+v, want %+v", b.index.files, b.config.index.files)
		}
		for _, q := range []string{
			"plan", "plan fuse", "plan and fuse", "plan or fuse", "not plan", `"plan fuse"`, "title : plan", "title : (plan or mount) not kernel",
			"net/http", "user_data", "type : text", "text", "gatherer-name : web", "web", `"bell labs" or "the of the"`, "not title : (the or of) mount",
		} {
			n, err := query.Parse(q)
			must(t, err)
			var want []string
			for url, o := range objects {
				if scan(n, "", o) {
					want = append(want, url)
				}
			}
			finds(t, b, q, want...)
		}
		if t.Failed() {
			t.Fatalf("with %q", config)
		}
	}
	if len(objects) < 100 {
		t.Errorf("got %d objects, too few to tell", len(objects))
	}
}

func TestMain(m *testing.M) {
	jail.Main()
	if dir := os.Getenv("BROKER_CHILD"); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child changes a Gatherer and collects from it until it is killed.
func child(dir string) {
	lg := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	b, g, err := killed(dir, lg)
	for n := 0; err == nil; n++ {
		var changes []store.Change
		for i := range 40 {
			url := fmt.Sprintf("http://a/%d", (n*31+i*7)%500)
			if i%5 == 4 {
				changes = append(changes, store.Change{Op: soif.Delete, OID: oid(url)})
			} else {
				changes = append(changes, update(object(url, fmt.Sprint("title", n), fmt.Sprint("text", i))))
			}
		}
		if _, err = g.Apply(ctx, changes); err == nil {
			err = b.Collect(ctx, "gather/web")
		}
		if n%2 == 1 && err == nil { // another index, or it again
			config := []string{"index engine=block\n", "index positions=no\n", ""}[n/2%3]
			if err = b.setConfig(ctx, "source path=gather/web\n"+config); err == nil {
				err = b.catchUp(ctx)
			}
		}
		if n%7 == 6 && err == nil {
			err = b.gc(ctx)
		}
		fmt.Println(n)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// killed opens what the child of TestKill works on.
func killed(dir string, lg *slog.Logger) (*Broker, *store.Store, error) {
	g, err := store.Open(filepath.Join(dir, "gather"), lg, store.Options{})
	if err != nil {
		return nil, nil, err
	}
	files := g.Files(func(parts ...string) uint64 { return fs.ID(append([]string{"g"}, parts...)...) }, nil, nil)
	tree := fs.IO(ctx, fs.Static(2, files))
	b, err := Open(filepath.Join(dir, "broker"), "b", lg, Options{Open: func(context.Context, string) (iofs.FS, io.Closer, error) {
		return tree, io.NopCloser(nil), nil
	}})
	if err == nil {
		err = b.setConfig(ctx, "source path=gather/web\n")
	}
	return b, g, err
}

// TestKill kills a process that gathers and collects. After each time, without
// collecting anew, registry, store and index agree; after a collection they
// agree with the source.
func TestKill(t *testing.T) {
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("KILLS")); err == nil {
		kills = n
	}
	t.Logf("KILLS=%d", kills)
	dir := t.TempDir()
	for kill := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BROKER_CHILD="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		for range kill%3 + 1 {
			var n int
			if _, err := fmt.Fscan(out, &n); err != nil {
				t.Fatal(err)
			}
		}
		for range kill * 7919 % 50000 { // some part of the next collection
			os.Getppid()
		}
		must(t, cmd.Process.Kill())
		cmd.Wait()

		b, g, err := killed(dir, testLog(t))
		must(t, err)
		must(t, b.catchUp(ctx))
		holds(t, b, contents(t, b.store))
		must(t, b.Collect(ctx, "gather/web"))
		holds(t, b, contents(t, g))
		must(t, b.Close())
		must(t, g.Close())
		if t.Failed() {
			t.Fatalf("after kill %d", kill)
		}
	}
}

// contents are the objects of a store.
func contents(t testing.TB, s *store.Store) map[string]*soif.Object {
	t.Helper()
	out := make(map[string]*soif.Object)
	for e, err := range s.Scan(ctx, "", "") {
		must(t, err)
		body, _, err := s.Get(e.OID)
		must(t, err)
		o, _, err := soif.Parse(body, soif.Limits{})
		must(t, err)
		out[o.URL] = &o
	}
	return maps.Clone(out)
}

// Whatever writers of config do at the same time, what is on disk is in force.
func TestConfigAgreesWithDisk(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	b := w.broker(dir, "ttl=1h\n")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 10 {
				if err := b.setConfig(ctx, fmt.Sprintf("source path=g%d every=%dm\n", i, n+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(dir + "/config")
	must(t, err)
	if got := b.configText(); got != string(text) || len(b.sources) != 1 {
		t.Errorf("got %q in force with %d sources, want %q as on disk", got, len(b.sources), text)
	}
}

// A config that cannot be put in force, or written, changes nothing.
func TestConfigAllOrNothing(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	const old = "ttl=1h\n"
	b := w.broker(dir, old)
	unchanged := func(what string) {
		t.Helper()
		if err := b.setConfig(ctx, "source path=g\n"); err == nil {
			t.Errorf("%s: got no error", what)
		}
		text, _ := os.ReadFile(dir + "/config")
		if got := b.configText(); got != old || string(text) != old || len(b.sources) != 0 {
			t.Errorf("%s: got %q in force with %d sources, %q on disk, want %q", what, got, len(b.sources), text, old)
		}
	}
	must(t, os.Mkdir(dir+"/config.new", 0o777))
	unchanged("not to be written")
	must(t, os.Remove(dir+"/config.new"))
	must(t, b.registry.Close())
	unchanged("the registry fails")
	if _, err := os.Stat(dir + "/config.new"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("config.new: got %v, want %v", err, iofs.ErrNotExist)
	}
}
