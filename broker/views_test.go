package broker

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// running runs a Broker until the test ends.
func running(t *testing.T, b *Broker) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { b.Run(t.Context()) })
	t.Cleanup(wg.Wait)
}

// viewOf gives the URLs of a view, in the order of results.
func viewOf(t testing.TB, b *Broker, name string) (urls []string) {
	t.Helper()
	for _, file := range list(t, b.Files(), "views/"+name+"/results") {
		o, _, err := soif.Parse([]byte(read(t, b.Files(), "views/"+name+"/results/"+file)), soif.Limits{})
		must(t, err)
		urls = append(urls, o.URL)
	}
	slices.Sort(urls)
	return urls
}

// What is collected joins views by itself, what changes or goes leaves them, and
// a Broker collects from a view as from any service.
func TestViewFollowsCollection(t *testing.T) {
	b, g := someBroker(t)
	running(t, b)
	mkdir(t, b.Files(), "views/fuse")
	must(t, write(b.Files(), "views/fuse/query", "fuse and not wire"))
	n := len(viewOf(t, b, "fuse"))
	apply(t, g, update(object("http://new/1", "A new one", "about fuse")), update(object("http://new/2", "Another", "fuse wire")))
	collected := func() error { return b.ask("") }
	told := func(what string) func() bool {
		return func() bool { return strings.Contains(read(t, b.Files(), "views/fuse/events"), what) }
	}
	await(t, b.Files(), "views/fuse/events.wait", collected, told("event=joined oid="+oid("http://new/1").String()))
	if got := viewOf(t, b, "fuse"); len(got) != n+1 || slices.Contains(got, "http://new/2") {
		t.Errorf("got %v, want one more than %d", got, n)
	}
	if got := read(t, b.Files(), "views/fuse/hits"); !strings.HasPrefix(got, "1\t1.000\t"+oid("http://new/1").String()) {
		t.Errorf("got %q, want the newest first", got)
	}

	w := newWorld(t)
	w.trees["view"] = fs.IO(ctx, walk(t, b.Files(), "views/fuse").(fs.Dir))
	c := w.broker(t.TempDir(), "source path=view")
	must(t, c.Collect(ctx, "view"))
	if got := c.store.Count(); got != int64(n+1) {
		t.Errorf("got %d objects from the view, want %d", got, n+1)
	}

	apply(t, g, update(object("http://new/1", "A new one", "about nothing")), update(object("http://new/2", "Another", "fuse mount")))
	await(t, b.Files(), "views/fuse/events.wait", collected, told("event=left oid="+oid("http://new/1").String()))
	if got := viewOf(t, b, "fuse"); slices.Contains(got, "http://new/1") || !slices.Contains(got, "http://new/2") {
		t.Errorf("got %v, want 2 and not 1", got)
	}
	must(t, c.Collect(ctx, "view"))
	for url, want := range map[string]error{"http://new/1": iofs.ErrNotExist, "http://new/2": nil} {
		if _, err := c.store.Stat(oid(url)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", url, err, want)
		}
	}
	if last := c.lastEvents(); strings.Contains(last, "event=restart") {
		t.Errorf("the view was read from the start: %s", last)
	}
}

// What is done by hand outlives changes of the object and of the query, and the
// process.
func TestViewByHand(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	g := w.gatherer("g")
	for i := range 6 {
		apply(t, g, update(object(fmt.Sprintf("http://s/%d/index.html", i), fmt.Sprintf("Part %d", i), []string{"even", "odd"}[i%2])))
	}
	b := w.broker(dir, "source path=g")
	must(t, b.Collect(ctx, "g"))
	mkdir(t, b.Files(), "views/v")
	must(t, write(b.Files(), "views/v/query", "even"))
	names := list(t, b.Files(), "views/v/results")
	if len(names) != 3 || len(slices.Compact(slices.Clone(names))) != 3 || !strings.HasSuffix(names[0], "-index.html.soif") {
		t.Fatalf("got %v, want three that are called index.html", names)
	}
	url := func(i int) string { return fmt.Sprintf("http://s/%d/index.html", i) }
	must(t, walk(t, b.Files(), "views/v/results").(fs.Remover).Remove(ctx, viewName(oid(url(0)), url(0))))
	must(t, write(b.Files(), "views/v/ctl", "add "+oid(url(1)).String()))
	results := walk(t, b.Files(), "views/v/results").(fs.Linker)
	object3 := "objects/" + oid(url(3)).String()[:2] + "/" + oid(url(3)).String() + ".soif"
	if err := results.Link(ctx, "other.soif", walk(t, b.Files(), object3)); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("got %v, want that it keeps its name", err)
	}
	must(t, results.Link(ctx, filepath.Base(object3), walk(t, b.Files(), object3)))
	read(t, b.Files(), "views/v/results/"+filepath.Base(object3))
	want := []string{url(1), url(2), url(3), url(4)}
	check := func(when string) {
		t.Helper()
		if got := viewOf(t, b, "v"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	check("by hand")
	must(t, write(b.Files(), "views/v/query", "even or nothing"))
	check("another query")
	apply(t, g, update(object(url(0), "Part 0", "even more")))
	must(t, b.Collect(ctx, "g"))
	must(t, b.views.follow(ctx))
	check("the object changed")
	must(t, b.Close())
	b = w.broker(dir, "")
	must(t, b.views.follow(ctx))
	check("another process")
	if got := read(t, b.Files(), "views/v/edits"); strings.Count(got, "add\t") != 2 || strings.Count(got, "remove\t") != 1 {
		t.Errorf("edits: got %q", got)
	}
	must(t, write(b.Files(), "views/v/ctl", "leave "+oid(url(0)).String()+" "+oid(url(1)).String()))
	want = []string{url(0), url(2), url(3), url(4)}
	check("left to the query")
}

// A config that has words found otherwise has the views filled anew, and so has
// an index that was lost.
func TestViewsFilledAnew(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	g := w.gatherer("g")
	apply(t, g, update(object("http://a/", "Fuses", "text")), update(object("http://b/", "Fuse", "text")))
	b := w.broker(dir, "source path=g")
	must(t, b.Collect(ctx, "g"))
	mkdir(t, b.Files(), "views/v")
	must(t, write(b.Files(), "views/v/query", "fuse"))
	if got := viewOf(t, b, "v"); !slices.Equal(got, []string{"http://b/"}) {
		t.Errorf("got %v", got)
	}
	must(t, b.setConfig(ctx, "source path=g\nindex stem=english\n"))
	must(t, b.views.follow(ctx))
	if got := viewOf(t, b, "v"); !slices.Equal(got, []string{"http://a/", "http://b/"}) {
		t.Errorf("with stems: got %v", got)
	}
	must(t, b.Close())
	must(t, os.RemoveAll(filepath.Join(dir, "index")))
	b = w.broker(dir, "")
	must(t, b.views.follow(ctx)) // the index is behind: nothing is lost meanwhile
	if got := viewOf(t, b, "v"); len(got) != 2 {
		t.Errorf("without an index: got %v", got)
	}
	apply(t, g, update(object("http://c/", "Fused", "text")))
	must(t, b.Collect(ctx, "g"))
	must(t, b.views.follow(ctx))
	if got := viewOf(t, b, "v"); len(got) != 3 {
		t.Errorf("with one again: got %v", got)
	}
	if got := read(t, b.Files(), "views/v/status"); !strings.HasPrefix(got, "state=idle\n") {
		t.Errorf("got %s", got)
	}
}

func TestViewsRefuse(t *testing.T) {
	b, _ := someBroker(t)
	mkdir(t, b.Files(), "views/v")
	d := b.Files()
	views := walk(t, d, "views")
	for _, name := range []string{"", ".x", "-x", "a b", strings.Repeat("x", 65)} {
		if _, err := views.(fs.Maker).Mkdir(ctx, name, 0o755); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("mkdir %q: got %v", name, err)
		}
	}
	if _, err := views.(fs.Maker).Mkdir(ctx, "v", 0o755); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	other := fs.WithUser(ctx, &fs.User{Name: "other"})
	if err := views.(fs.Remover).Remove(other, "v"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("got %v, want that another may not", err)
	}
	mkdir(t, b.Files(), "views/v/w")
	if err := views.(fs.Remover).Remove(ctx, "v"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("got %v, want that w is in it", err)
	}
	for _, cursor := range []string{"x", "00000000.1", "0.1", fmt.Sprintf("%08x.99", b.views.set.Epoch())} {
		if _, err := walk(t, d, "views/v/since").(fs.Dir).Lookup(ctx, cursor); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("since/%s: got %v", cursor, err)
		}
	}
	if got := list(t, d, "views/v"); !slices.Contains(got, "w") || !slices.IsSorted(got) {
		t.Errorf("got %v, want the view with its files", got)
	}
}

// BenchmarkViews is what an object costs that is new where 10,000 views are,
// from the store to their events.
func BenchmarkViews(b *testing.B) {
	dir := b.TempDir()
	br, err := Open(dir, "b", testLog(b), Options{})
	must(b, err)
	defer br.Close()
	for i := range 10_000 {
		name := fmt.Sprintf("v%d", i)
		_, err := br.views.make(name, "")
		must(b, err)
		must(b, br.views.setQuery(ctx, name, fmt.Sprintf("title : word%d and text : word%d", i%1000, i/10)))
	}
	n := 0
	for b.Loop() {
		var changes []store.Change
		for range 1000 {
			n++
			var text strings.Builder
			for i := range 300 {
				fmt.Fprintf(&text, "word%d ", (n*7+i*i*31)%5000)
			}
			changes = append(changes, update(object(fmt.Sprintf("http://s/%d", n), fmt.Sprintf("word%d word%d", n%1000, n*3%1000), text.String())))
		}
		_, err := br.store.Apply(ctx, changes)
		must(b, err)
		must(b, br.follow(ctx))
		begin := time.Now()
		must(b, br.views.follow(ctx))
		b.ReportMetric(float64(time.Since(begin).Microseconds())/1000, "µs/object")
	}
}
