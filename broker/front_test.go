package broker

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/fs"
	"harvest/gather/store"
)

// A fleet is a tree with Brokers as broker/NAME, which collect from and ask one
// another by that path, here or over a connection (far!broker/NAME).
type fleet struct {
	w       *world
	brokers map[string]*Broker
	slow    map[string]time.Duration
	gone    map[string]bool
}

func (f *fleet) open(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
	if t, ok := f.w.trees[path]; ok {
		return t, io.NopCloser(nil), nil
	}
	if f.gone[path] {
		return nil, nil, fmt.Errorf("%s: connection refused", path)
	}
	if d := f.slow[path]; d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	name, far := strings.CutPrefix(path, "far!")
	b := f.brokers[strings.TrimPrefix(name, "broker/")]
	if b == nil {
		return nil, nil, fmt.Errorf("%s: %w", path, iofs.ErrNotExist)
	}
	if !far {
		return fs.IO(ctx, b.Files()), io.NopCloser(nil), nil
	}
	c, end := dial9P(f.w.t, b.Files(), &fs.User{Name: "front", Local: true})
	return fs.IO(ctx, c.Root()), closer(func() error { end(); return nil }), nil
}

func (f *fleet) add(name, config string, objects ...store.Change) *Broker {
	f.w.t.Helper()
	if len(objects) > 0 {
		apply(f.w.t, f.w.gatherer("gather/"+name), objects...)
		config += "source path=gather/" + name + "\n"
	}
	b, err := Open(f.w.t.TempDir(), name, testLog(f.w.t), Options{Open: f.open})
	must(f.w.t, err)
	f.w.t.Cleanup(func() { b.Close() })
	f.brokers[name] = b
	must(f.w.t, b.setConfig(ctx, config))
	if len(objects) > 0 {
		must(f.w.t, b.Collect(ctx, "gather/"+name))
	}
	return b
}

func newFleet(t *testing.T) *fleet {
	return &fleet{w: newWorld(t), brokers: make(map[string]*Broker), slow: make(map[string]time.Duration), gone: make(map[string]bool)}
}

// about are objects of a host, of which each third is about pears.
func about(host string, n int) (list []store.Change) {
	for i := range n {
		title := fmt.Sprintf("Part %d of %s", i, host)
		if i%3 == 0 {
			title = "Pears, " + title
		}
		o := object(fmt.Sprintf("http://%s/%03d", host, i), title, fmt.Sprintf("The harvest at %s, number %d.", host, i))
		o.Add("Pages", fmt.Append(nil, (i*7+len(host))%100))
		list = append(list, update(o))
	}
	return list
}

// TestFront asks two back ends, of which one is a connection away, and gets what a
// Broker of all objects gives: the same hits, in each order, by page and at once.
func TestFront(t *testing.T) {
	f := newFleet(t)
	one, two := about("one", 40), about("two", 50)
	two = append(two, one[0]) // both have it
	f.add("one", "", one...)
	f.add("two", "", two...)
	all := f.add("all", "", slices.Concat(one, two[:50])...)
	front := f.add("front", "backend path=broker/one\nbackend path=far!broker/two\n")
	for _, text := range []string{"title : pears", "harvest and not pears", "url : one", "nothing"} {
		for _, rank := range []string{rankURL, "-pages", "pages", rankUpdated} {
			for _, limit := range []int{0, 7} {
				m := plain()
				m.rank, m.limit = rank, limit
				for page := 1; page <= 2; page++ {
					want, err := all.answer(ctx, parsed(t, text), m, page)
					must(t, err)
					got, err := front.answer(ctx, parsed(t, text), m, page)
					must(t, err)
					if limit == 0 && rank == rankURL && got.total != want.total {
						t.Errorf("%s: got %d hits, want %d", text, got.total, want.total)
					}
					if g, w := urls(t, got.shown(page, nil)), urls(t, want.shown(page, nil)); rank != rankUpdated && !slices.Equal(g, w) {
						t.Errorf("%s by %s, %d a page, page %d: got %v, want %v", text, rank, limit, page, g, w)
					} else if len(g) != len(w) {
						t.Errorf("%s by %s: got %d hits, want %d", text, rank, len(g), len(w))
					}
				}
			}
		}
	}
	d := front.Files()
	if got, want := strings.Count(read(t, d, "q/title : pears/soif"), "@FILE"), 14+17; got != want {
		t.Errorf("got %d objects in soif, want %d", got, want)
	}
	if got := read(t, d, "q/title : pears/001.soif"); !strings.Contains(got, "Pears, Part") {
		t.Errorf("got %q, want an object of a back end", got)
	}
	for file, want := range map[string]string{
		"hits": "\tPears, Part 0 of one\n", "summary": "\tTitle\tPears, Part 0 of one\n",
		"why": "attribute=title", "refine": "gatherer", "plan": "broker/one: 14 hits, 14 read", "status": "backends=2/2\n",
	} {
		if file == "refine" {
			continue // all have the same
		}
		if got := read(t, d, "q/title : pears/"+file); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to have %q", file, got, want)
		}
	}
	if got := read(t, d, "status"); !strings.Contains(got, "backend path=far!broker/two is=up") {
		t.Errorf("got status %s, want the back ends", got)
	}
}

// urls are those of a page, in its order.
func urls(t testing.TB, p page) (list []string) {
	t.Helper()
	var text strings.Builder
	must(t, p.writeHits(ctx, &text))
	for line := range strings.Lines(text.String()) {
		list = append(list, strings.Split(line, "\t")[4])
	}
	return list
}

// TestFrontPartial names a back end that is slow and one that is away, and does not
// wait again for either until it has been heard of.
func TestFrontPartial(t *testing.T) {
	f := newFleet(t)
	f.add("one", "", about("one", 9)...)
	f.add("two", "", about("two", 9)...)
	f.gone["broker/two"], f.slow["broker/three"] = true, time.Minute
	front := f.add("front", "backend path=broker/one\nbackend path=broker/two\nbackend path=broker/three timeout=50ms\n")
	for i := range backendFails + 2 {
		begin := time.Now()
		a, err := front.answer(ctx, parsed(t, "title : pears"), plain(), 1)
		must(t, err)
		text := lines(a.all().pairs())
		for _, want := range []string{"hits=3\n", "backends=1/3\n", "broker/two: ", "connection refused", "broker/three: "} {
			if !strings.Contains(text, want) {
				t.Errorf("got %s, want %q", text, want)
			}
		}
		want := "late after 50ms"
		if i >= backendFails {
			want = "broker/three: down since "
			if took := time.Since(begin); took > 40*time.Millisecond {
				t.Logf("took %s with a back end down", took) // a loaded machine; what counts is the text
			}
		}
		if !strings.Contains(text, want) {
			t.Errorf("query %d: got %s, want %q", i, text, want)
		}
	}
	var summary strings.Builder
	a, err := front.answer(ctx, parsed(t, "title : pears"), plain(), 1)
	must(t, err)
	must(t, a.all().writeSummary(ctx, &summary))
	if !strings.Contains(summary.String(), "…\tmissing\tbroker/two: down since") {
		t.Errorf("got %s, want who is missing", summary.String())
	}
	delete(f.gone, "broker/two")
	k := front.front.all["broker/two"]
	k.mu.Lock()
	k.probe = time.Now()
	k.mu.Unlock()
	if k.down() == nil {
		t.Fatal("up before it was tried")
	}
	front.front.asking.Wait()
	if err := k.down(); err != nil {
		t.Errorf("got %v after a good try, want it to be up", err)
	}
	f.gone["broker/two"], f.gone["broker/one"] = true, true
	front.front.use(nil)
	must(t, front.setConfig(ctx, "backend path=broker/one\nbackend path=broker/two\n"))
	if _, err := front.answer(ctx, parsed(t, "pears"), plain(), 1); err == nil || !strings.Contains(err.Error(), "no back end answers: broker/one: broker/one: connection refused") {
		t.Errorf("got %v, want that nobody answers", err)
	}
}

// TestFrontLoop has front ends that ask one another, and one that asks itself: each
// answers with what there is, once.
func TestFrontLoop(t *testing.T) {
	f := newFleet(t)
	a := f.add("a", "backend path=broker/b\nbackend path=broker/a\n", about("one", 9)...)
	f.add("b", "backend path=far!broker/a\n", about("two", 9)...)
	got, err := a.answer(ctx, parsed(t, "title : pears"), plain(), 1)
	must(t, err)
	if got.total != 6 || len(got.hits) != 6 {
		t.Errorf("got %d hits, want 6: %s", got.total, lines(got.all().pairs()))
	}
	text := lines(got.all().pairs())
	for _, want := range []string{"missing='broker/a: ", "a loop of front ends", "missing='broker/b: far!broker/a: "} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
	if k := a.front.all["broker/a"]; k.fails != 0 {
		t.Errorf("got %d fails, want a loop not to count as one", k.fails)
	}
}

// TestFrontBroken reads no nonsense from a back end.
func TestFrontBroken(t *testing.T) {
	for text, want := range map[string]string{
		"1\t2":                  "a line of 2 columns, want 6",
		"1\tx\toid\tt\tu\tt":    `score "x"`,
		"1\tNaN\toid\tt\tu\tt":  `score "NaN"`,
		"1\t1.5\tshort\tt\tu\t": `object name "short"`,
	} {
		if _, err := parseHit(text, 0); err == nil || !strings.Contains(strings.ToLower(err.Error()), want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	var r reply
	if err := r.status("hits=-3\n"); err == nil {
		t.Error("took -3 hits")
	}
	for _, config := range []string{"backend", "backend path=x timeout=0s", "backend path=x limit=0", "backend path=x weight=0", "backend path=x colour=red", "backend path=x\nbackend path=x"} {
		if _, err := parseConfig(config); err == nil {
			t.Errorf("%s: taken", config)
		}
	}
}

func FuzzFarAnswer(f *testing.F) {
	f.Add("hits=3\nmore=yes\ncut='x'\nmissing='a: b'\n", "1\t2.5\t3fa90c12de45ab673fa90c12de45ab67\tHTML\thttp://a/\tA title")
	f.Fuzz(func(t *testing.T, status, line string) {
		var r reply
		if r.status(status) == nil && r.total < 0 {
			t.Errorf("got %d hits", r.total)
		}
		if h, err := parseHit(line, 0); err == nil && h.score != h.score {
			t.Error("a score that is no number")
		}
		if n := sums([]string{line}, 2, 2); len(n) > 1+strings.Count(line, "\n") {
			t.Errorf("got %d sums of %q", len(n), line)
		}
	})
}
