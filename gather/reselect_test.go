package gather

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/gather/crawl"
	"harvest/gather/dup"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// stored lists what a store has, by URL.
func stored(t testing.TB, s *store.Store) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	if s == nil {
		return all
	}
	for e, err := range s.Scan(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := s.Get(e.OID)
		if err != nil {
			t.Fatal(err)
		}
		if o, _, err := soif.Parse(body, soif.Limits{}); err != nil || o.URL != e.URL {
			t.Fatalf("%s: got the object of %s, %v", e.URL, o.URL, err)
		}
		all[e.URL] = true
	}
	return all
}

// wanted is what the collection should be, by the naive model, and what else was
// stored.
func wanted(t testing.TB, g *Gatherer) (in, out map[string]bool) {
	t.Helper()
	var docs []candidate
	groups := make(map[copyKey][]candidate)
	from, known := make(map[uint32][]uint32), make(map[uint32]int)
	for l, err := range g.db.Links(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range l.To {
			from[uint32(l.From)] = append(from[uint32(l.From)], uint32(to))
			if to != l.From {
				known[uint32(to)]++
			}
		}
	}
	for d, err := range g.db.Documents(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		switch d.State {
		case crawl.Vanished, crawl.Barred, crawl.Away:
			continue
		}
		c := candidate{id: uint32(d.ID), server: uint32(d.Server), url: d.URL, stored: d.State == crawl.Stored,
			inbound: known[uint32(d.ID)], inlinks: d.InLinks, submitted: d.Submitted}
		docs = append(docs, c)
		left := func(r *rule) bool { return r.meets(&c) }
		may := !slices.ContainsFunc(g.conf.selection.out, left) && (len(g.conf.selection.rules) == 0 || slices.ContainsFunc(g.conf.selection.rules, left))
		if c.stored && d.MD5 != [16]byte{} && g.conf.drops(d.URL) && may {
			groups[keyOf(d.MD5, d.Size)] = append(groups[keyOf(d.MD5, d.Size)], c)
		}
	}
	copies := make(map[uint32]bool)
	for _, same := range groups {
		best := slices.MaxFunc(same, func(a, b candidate) int {
			if x, y := dup.ScoreOf(a.url, a.inbound, a.submitted).Sum(), dup.ScoreOf(b.url, b.inbound, b.submitted).Sum(); x != y {
				return x - y
			}
			return strings.Compare(b.url, a.url)
		})
		for _, c := range same {
			copies[c.id] = c.id != best.id
		}
	}
	says := naive(&g.conf.selection, docs, from, copies)
	in, out = make(map[string]bool), make(map[string]bool)
	for _, d := range docs {
		switch {
		case says[d.id].in():
			in[d.url] = true
		case d.stored:
			out[d.url] = true
		}
	}
	return in, out
}

// agree compares the stores with what they should be.
func agree(t testing.TB, g *Gatherer, when string) {
	t.Helper()
	pool, err := g.pool(false)
	if err != nil {
		t.Fatal(err)
	}
	in, out := wanted(t, g)
	for name, c := range map[string][2]map[string]bool{"collection": {stored(t, g.store), in}, "unselected": {stored(t, pool), out}} {
		for u := range c[0] {
			if !c[1][u] {
				t.Errorf("%s: %s is in the %s", when, u, name)
			}
		}
		for u := range c[1] {
			if !c[0][u] {
				t.Errorf("%s: %s is not in the %s", when, u, name)
			}
		}
	}
}

// A folder is files of few contents, which change at random.
type shifting struct {
	t    testing.TB
	r    *rand.Rand
	dir  string
	have map[string]bool
}

func (f *shifting) shift(n int) {
	for range n {
		name := fmt.Sprintf("%s/%s%s%d%s", f.dir, []string{"", "a/", "mirror/", "deep/er/"}[f.r.IntN(4)], strings.Repeat("x", f.r.IntN(2)), f.r.IntN(6), []string{".html", ".txt"}[f.r.IntN(2)])
		if f.have[name] && f.r.IntN(3) == 0 {
			if err := os.Remove(name); err != nil {
				f.t.Fatal(err)
			}
			delete(f.have, name)
			continue
		}
		write(f.t, name, strings.Repeat("words of this content ", 1+f.r.IntN(15)))
		f.have[name] = true
	}
	write(f.t, f.dir+"/always.txt", "always here")
}

// config makes one up.
func (f *shifting) config() string {
	selections := []string{"", "", "select allow=/a/\n", "select out allow=/mirror/\n", "select out allow=/mirror/\nselect allow=html\n",
		"select shortest=3\n", "select limit=5\n", "select shortest=2 allow=txt\nselect limit=4 order=shortest\n", "select cover=4\n"}
	return "root url=file://" + f.dir + "\n" + []string{"duplicates=drop\n", "duplicates=drop\n", ""}[f.r.IntN(3)] + selections[f.r.IntN(len(selections))]
}

// TestCollection: whatever documents become and whatever config says, after each
// visit and each selection both stores are what a naive model says of what is
// known; where a document alone tells whether it is selected, so they are before
// that.
func TestCollection(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := &shifting{t, rand.New(rand.NewPCG(seed, 0)), filepath.Join(t.TempDir(), "src"), make(map[string]bool)}
	f.shift(40)
	dir := t.TempDir()
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { g.Close() }()
	rounds := 15
	if n, err := strconv.Atoi(os.Getenv("HARVEST_TEST_ROUNDS")); err == nil {
		rounds = n
	} else {
		t.Log("HARVEST_TEST_ROUNDS=500 goes on for longer")
	}
	for round := range rounds {
		config := f.config()
		if err := g.setConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		when := fmt.Sprintf("round %d, selected by\n%s", round, config)
		if err := g.reselect(t.Context()); err != nil {
			t.Fatal(err)
		}
		agree(t, g, when)
		f.shift(f.r.IntN(20))
		v := g.newVisit(g.conf)
		if err := g.db.Visit(t.Context(), v.plan, g.rt, v, &v.counts); err != nil {
			t.Fatal(err)
		}
		if g.conf.selection.plain() {
			agree(t, g, "visit of "+when)
		}
		if err := g.reselect(t.Context()); err != nil {
			t.Fatal(err)
		}
		agree(t, g, "after "+when)
		if ok, err := g.isSettled(g.conf); !ok || err != nil {
			t.Errorf("%s: not settled, %v", when, err)
		}
		if f.r.IntN(4) == 0 {
			g.Close()
			if g, err = Open(dir, "test", slog.New(slog.DiscardHandler), Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatal(when)
		}
	}
}

// TestReselectMoves: a selection moves only differences, and both what it takes in
// and what it leaves out keep their bytes.
func TestReselectMoves(t *testing.T) {
	src := t.TempDir()
	for i := range 300 {
		write(t, fmt.Sprintf("%s/%03d.txt", src, i), fmt.Sprintf("Document %d of many\n", i))
	}
	r := run(t, t.TempDir(), "root url=file://"+src+"\n")
	r.must("run")
	r.settle()
	before := r.objects("")
	set := func(line string) {
		t.Helper()
		if err := r.setConfig(t.Context(), "root url=file://"+src+"\n"+line); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	seq := func() uint64 { return r.store.Cursor().Seq }
	at := seq()
	set("select out allow=/1[0-9][0-9]\n")
	if got := r.store.Count(); got != 200 || seq()-at != 100 || r.hidden() != 100 {
		t.Errorf("got %d objects, %d unselected, after %d changes, want 200, 100, 100", got, r.hidden(), seq()-at)
	}
	at = seq()
	set("select out allow=/1[0-9][1-9]\n")
	if got := r.store.Count(); got != 210 || seq()-at != 10 {
		t.Errorf("got %d objects after %d changes, want 210 after 10", got, seq()-at)
	}
	at = seq()
	set("select limit=300 order=shortest\n")
	if got := r.store.Count(); got != 300 || seq()-at != 90 {
		t.Errorf("got %d objects after %d changes, want 300 after 90", got, seq()-at)
	}
	for u, o := range r.objects("") {
		was := before[u]
		if !bytes.Equal(o.Append(nil), was.Append(nil)) {
			t.Errorf("%s: got\n%swant\n%s", u, o.Append(nil), was.Append(nil))
		}
	}
	if got := r.get("fetched"); got != "300" {
		t.Errorf("fetched: got %s: it was crawled to select", got)
	}
	if got := r.read("events"); strings.Count(got, "event=selected") != 3 || !strings.Contains(got, "event=selected in=0 out=100 objects=200 copies=0") {
		t.Errorf("events: got\n%s", got)
	}
}

// TestReselectEnds: one that is cut off is gone on with at the next start.
func TestReselectEnds(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	for i := range 600 {
		write(t, fmt.Sprintf("%s/%03d.txt", src, i), fmt.Sprintf("Document %d of many\n", i))
	}
	g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.setConfig(t.Context(), "root url=file://"+src+"\n"); err != nil {
		t.Fatal(err)
	}
	once(t, g)
	if err := g.setConfig(t.Context(), "root url=file://"+src+"\nselect limit=100\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.reselect(ctx) }()
	for seq := g.store.Cursor().Seq; g.hidden() == 0; {
		wait, stop := context.WithTimeout(t.Context(), 20*time.Second)
		if seq, err = g.store.Wait(wait, seq); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	cancel()
	err = <-done
	left := g.store.Count()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err == nil || left == 100 {
		t.Logf("it was done before it was cut off: %v, %d objects", err, left)
	}
	r := run(t, dir, "")
	r.settle()
	if got := r.store.Count(); got != 100 || r.hidden() != 500 {
		t.Errorf("got %d objects, %d unselected, want 100, 500 (%d when it was cut off)", got, r.hidden(), left)
	}
	agree(t, r.Gatherer, "after all")
}

// selectingChild visits and selects, over files that change, until it is killed.
func selectingChild(dir string) {
	seed, err := strconv.ParseUint(os.Getenv("HARVEST_TEST_SEED"), 10, 64)
	if err != nil {
		panic(err)
	}
	var t panicking
	f := &shifting{t, rand.New(rand.NewPCG(seed, 1)), filepath.Join(dir, "src"), make(map[string]bool)}
	f.look()
	g, err := Open(filepath.Join(dir, "g"), "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for fmt.Println("ready"); ; {
		if err := g.setConfig(ctx, f.config()); err != nil {
			t.Fatal(err)
		}
		if err := g.reselect(ctx); err != nil {
			t.Fatal(err)
		}
		f.shift(20)
		v := g.newVisit(g.conf)
		if err := g.db.Visit(ctx, v.plan, g.rt, v, &v.counts); err != nil {
			t.Fatal(err)
		}
		if err := g.reselect(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// panicking is a testing.TB outside of tests.
type panicking struct{ testing.TB }

func (panicking) Helper()          {}
func (panicking) Fatal(arg ...any) { panic(fmt.Sprint(arg...)) }

// look finds the files there are.
func (f *shifting) look() {
	filepath.WalkDir(f.dir, func(path string, e iofs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			f.have[path] = true
		}
		return nil
	})
}

// TestKillSelect kills a process that visits and selects at random moments. After
// each no object of a document that is stored is lost; it is in one of the
// stores, or in both; and a selection puts both in order, now or after more kills.
func TestKillSelect(t *testing.T) {
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("HARVEST_TEST_KILLS")); err == nil {
		kills = n
	} else {
		t.Log("HARVEST_TEST_KILLS=200 kills more often")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	f := &shifting{t, r, filepath.Join(dir, "src"), make(map[string]bool)}
	f.shift(60)
	both, unsettled := 0, 0
	// On a busy machine a process gets to little before it is killed: then later.
	for kill := 0; kill < kills || unsettled == 0 && kill < 8*kills; kill++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "HARVEST_TEST_SELECT="+dir, fmt.Sprintf("HARVEST_TEST_SEED=%d", r.Uint64()))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		time.AfterFunc(time.Duration(1+r.IntN(400*(1+kill/kills)))*time.Millisecond, func() { cmd.Process.Kill() })
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		g, err := Open(filepath.Join(dir, "g"), "test", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			t.Fatal(err)
		}
		pool, err := g.pool(false)
		if err != nil {
			t.Fatal(err)
		}
		here, there := stored(t, g.store), stored(t, pool)
		for d, err := range g.db.Documents(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if d.State == crawl.Stored && !here[d.URL] && !there[d.URL] {
				if _, err := os.Stat(strings.TrimPrefix(d.URL, "file://")); err == nil { // else it was about to be forgotten
					t.Errorf("kill %d: %s is lost", kill, d.URL)
				}
			}
			if here[d.URL] && there[d.URL] {
				both++
			}
		}
		was, err := g.db.Visited()
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := g.isSettled(g.conf); !ok {
			unsettled++
		} else if !was.Open { // else a batch may be in the store and not yet in the database
			agree(t, g, fmt.Sprintf("kill %d, settled", kill))
		}
		if r.IntN(2) == 0 {
			v := g.newVisit(g.conf) // what was cut off is gone on with
			if err := v.make(t.Context()); err != nil {
				t.Fatal(err)
			}
			agree(t, g, fmt.Sprintf("after kill %d", kill))
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d found unsettled, %d objects found in both stores", unsettled, both)
	if unsettled == 0 {
		t.Error("no kill came at a bad moment")
	}
}
