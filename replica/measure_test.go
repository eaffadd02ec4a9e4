package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ninep"
	"harvest/replica/topology"
)

// A group is replicas of one process that reach each other by 9P over links with a
// delay and a rate.
type group struct {
	t  *testing.T
	lg *slog.Logger

	mu      sync.Mutex // guards what follows
	members map[string]*Replica
	link    func(from, to string) (oneWay time.Duration, bytesPerSecond float64, up bool)
}

func newGroup(t *testing.T) *group {
	return &group{t: t, lg: slog.New(slog.NewTextHandler(io.Discard, nil)), members: make(map[string]*Replica),
		link: func(string, string) (time.Duration, float64, bool) { return 0, 8e6, true }}
}

// add opens a replica whose members are those that are named.
func (g *group) add(dir, name string, members ...string) *Replica {
	g.t.Helper()
	r, err := Open(filepath.Join(dir, name), name, g.lg, Options{Open: func(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
		return g.dial(ctx, name, path)
	}})
	must(g.t, err)
	var b strings.Builder
	b.WriteString("measure every=1h probe=1h\n")
	for _, m := range members {
		if m != name {
			b.WriteString("member path=" + m + "\n")
		}
	}
	r.links.steps = 2000
	must(g.t, r.setConfig(g.t.Context(), b.String()))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[name] = r
	return r
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func (g *group) dial(ctx context.Context, from, to string) (iofs.FS, io.Closer, error) {
	g.mu.Lock()
	r := g.members[to]
	delay, rate, up := g.link(from, to)
	g.mu.Unlock()
	if r == nil || !up {
		return nil, nil, fmt.Errorf("%s: %w", to, syscall.ECONNREFUSED)
	}
	here, a := net.Pipe()
	b, there := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { shape(b, a, delay, rate) })
	wg.Go(func() { shape(a, b, delay, rate) })
	wg.Go(func() {
		ninep.NewServer(g.lg, ninep.Limits{}).ServeConn(context.Background(), there, fs.Static(fs.RootPath, map[string]fs.Node{"r": r.Files()}), &fs.User{Name: from, Owner: true})
		there.Close()
	})
	c, err := ninep.NewClient(ctx, here, to, ninep.DialOptions{})
	if err != nil {
		here.Close()
		wg.Wait()
		return nil, nil, err
	}
	d, err := c.Root().Lookup(ctx, "r")
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return fs.IO(ctx, d.(fs.Dir)), closerFunc(func() error {
		err := c.Close()
		wg.Wait()
		return err
	}), nil
}

// shape copies, some bytes a second, each of them late.
func shape(to, from net.Conn, delay time.Duration, rate float64) {
	type packet struct {
		b   []byte
		due time.Time
	}
	queue := make(chan packet, 10_000)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer to.Close()
		for p := range queue {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.b); err != nil {
				for range queue {
				}
				return
			}
		}
	})
	defer close(queue)
	defer from.Close()
	free := time.Now()
	for {
		b := make([]byte, 4096)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(float64(n) / rate * 1e9))
		queue <- packet{b[:n], free.Add(delay)}
	}
}

func (g *group) close() {
	for _, r := range g.members {
		must(g.t, r.Close())
	}
}

// rounds has all measure, some times over: what one has comes to the others one round
// later.
func (g *group) rounds(n int, now bool, members ...*Replica) {
	for range n {
		var wg sync.WaitGroup
		for _, r := range members {
			wg.Go(func() { r.measureAll(g.t.Context(), now) })
		}
		wg.Wait()
	}
}

// linkOf is what one measured of another, as its own sheet says.
func linkOf(from, to *Replica) topology.Link {
	from.links.mu.Lock()
	defer from.links.mu.Unlock()
	if s := from.links.sheets[from.mirror.self]; s != nil {
		return s.links[to.mirror.self]
	}
	return topology.Link{}
}

// TestMeasure wants rates within 20 % and round trips no less than they are, and that
// they follow a link that becomes slower.
func TestMeasure(t *testing.T) {
	g := newGroup(t)
	defer g.close()
	rate, delay := 5e6, 20*time.Millisecond
	g.link = func(string, string) (time.Duration, float64, bool) { return delay, rate, true }
	dir := t.TempDir()
	a, b := g.add(dir, "a", "b"), g.add(dir, "b", "a")
	look := func(want float64) {
		t.Helper()
		l := linkOf(a, b)
		if l.RTT < 2*delay || l.RTT > 4*delay || math.Abs(l.Bandwidth-want) > 0.2*want {
			t.Errorf("got %s, %.0f bytes a second, want %s, %.0f", l.RTT, l.Bandwidth, 2*delay, want)
		}
	}
	g.rounds(1, true, a)
	look(5e6)
	g.mu.Lock()
	rate = 1.25e6
	g.mu.Unlock()
	g.rounds(2, true, a)
	look(1.25e6)
	if linkOf(b, a) != (topology.Link{}) {
		t.Error("got a link that was not measured")
	}
	text := string(readFile(t, a, "bandwidth"))
	if !strings.Contains(text, "link to="+b.mirror.self.String()+" path=b rtt=") || !strings.HasPrefix(text, "measured key=") {
		t.Errorf("got bandwidth %q", text)
	}
}

func readFile(t *testing.T, r *Replica, name string) []byte {
	t.Helper()
	b, err := iofs.ReadFile(fs.IO(t.Context(), r.Files()), name)
	must(t, err)
	return b
}

// TestGraph has seven measure each other: all take the graph that the master makes,
// and another when one is gone, also without that master, and after a restart.
func TestGraph(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	g := newGroup(t)
	defer g.close()
	dir := t.TempDir()
	down := ""
	g.link = func(from, to string) (time.Duration, float64, bool) {
		d := time.Millisecond
		if (from[0]-'a')/4 != (to[0]-'a')/4 {
			d = 5 * time.Millisecond
		}
		return d, 8e6, from != down && to != down
	}
	var all []*Replica
	for _, n := range names {
		all = append(all, g.add(dir, n, names...))
	}
	graph := g.agreed(all)
	if graph.Connectivity() < 2 || len(graph.Members) != 7 || len(graph.Edges) >= 21 {
		t.Errorf("got connectivity %d, %d members, %d edges", graph.Connectivity(), len(graph.Members), len(graph.Edges))
	}
	master := slices.IndexFunc(all, func(r *Replica) bool { return r.mirror.self.String() == graph.Members[0] })
	g.mu.Lock()
	down = names[master]
	g.mu.Unlock()
	rest := slices.Delete(slices.Clone(all), master, master+1)
	for _, r := range rest { // its sheet is from before
		r.links.mu.Lock()
		r.links.sheets[all[master].mirror.self].heard = time.Now().Add(-24 * time.Hour)
		r.links.mu.Unlock()
	}
	again := g.agreed(rest)
	if len(again.Members) != 6 || again.Epoch <= graph.Epoch || again.Connectivity() < 2 {
		t.Errorf("got %d members, epoch %d after %d, connectivity %d", len(again.Members), again.Epoch, graph.Epoch, again.Connectivity())
	}
	name, text := rest[0].name, rest[0].links.graphText()
	must(t, rest[0].Close())
	if r := g.add(dir, name, names...); r.links.graphText() != text {
		t.Errorf("got %q after a restart, want %q", r.links.graphText(), text)
	}
}

// agreed has all measure until they have the same graph: what one has come to know
// comes to the others a round later.
func (g *group) agreed(all []*Replica) *topology.Graph {
	g.t.Helper()
	for round := 0; ; round++ {
		g.rounds(1, false, all...)
		text := all[0].links.graphText()
		same := !slices.ContainsFunc(all, func(r *Replica) bool { return r.links.graphText() != text })
		_, graph, err := parseGraph(text)
		if same && err == nil && len(graph.Members) == len(all) {
			return graph
		}
		if round == 20 {
			g.t.Fatalf("got no common graph after %d rounds; %s has\n%s", round, all[0].name, text)
		}
	}
}

// TestIsolated attends to all members when none of its neighbors can be read.
func TestIsolated(t *testing.T) {
	g := newGroup(t)
	defer g.close()
	names := []string{"a", "b", "c", "d", "e"}
	dir := t.TempDir()
	var all []*Replica
	for _, n := range names {
		all = append(all, g.add(dir, n, names...))
	}
	graph := g.agreed(all)
	at := slices.IndexFunc(all, func(r *Replica) bool { return len(graph.Neighbors(r.mirror.self.String())) < 4 })
	r := all[at]
	near := graph.Neighbors(r.mirror.self.String())
	for _, m := range r.sorted() {
		must(t, m.sync(t.Context()))
	}
	for _, m := range r.sorted() {
		if ok, _ := m.neighbor(); ok != slices.Contains(near, m.id.String()) {
			t.Errorf("%s: got neighbor %v", m.path, ok)
		}
	}
	for _, m := range r.sorted() {
		if slices.Contains(near, m.id.String()) {
			m.note(syscall.ECONNRESET)
		}
	}
	for _, m := range r.sorted() {
		if ok, _ := m.neighbor(); !ok {
			t.Errorf("%s: got no neighbor while the others are gone", m.path)
		}
	}
}

// TestForged takes no sheet and no graph that is not signed by its writer, nor a graph
// of one who is not master, nor an older one again.
func TestForged(t *testing.T) {
	g := newGroup(t)
	defer g.close()
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	all := []*Replica{g.add(dir, "a", names...), g.add(dir, "b", names...), g.add(dir, "c", names...)}
	text := g.agreed(all).String()
	slices.SortFunc(all, func(x, y *Replica) int { return compareWriters(x.mirror.self, y.mirror.self) })
	master, other, third := all[0], all[1], all[2]
	now := time.Now().Add(time.Hour)

	must(t, third.links.takeSheets(other.links.text(), time.Now()))
	was := third.links.text()
	for what, forged := range map[string]string{
		"changed":   strings.Replace(other.links.text(), "rtt=", "rtt=1", 1),
		"no key":    "measured at=2026-01-01T00:00:00Z sig=00\n",
		"a line":    signText("measured", other.mirror.key, now, "link to=xyz\n"),
		"unended":   signText("measured", other.mirror.key, now, "link to="),
		"down=who":  signText("measured", other.mirror.key, now, "link to="+master.mirror.self.String()+" down=who\n"),
		"as graph":  signText("graph", other.mirror.key, now, ""),
		"too fast":  signText("measured", other.mirror.key, now, "link to="+master.mirror.self.String()+" bandwidth=NaN\n"),
		"too large": signText("measured", other.mirror.key, now, strings.Repeat("#\n", maxSheet)),
	} {
		if err := third.links.takeSheets(forged, now); err == nil {
			t.Errorf("%s: was taken", what)
		}
	}
	if third.links.text() != was {
		t.Error("a forged sheet is shown")
	}

	graph := third.links.graphText()
	other2 := signText("graph", other.mirror.key, now, text)
	old := signText("graph", master.mirror.key, now.Add(-48*time.Hour), text)
	for _, quiet := range []string{other2, old} {
		if err := third.takeGraph(quiet, now); err != nil || third.links.graphText() != graph {
			t.Errorf("got %v, want it left alone:\n%s", err, quiet)
		}
	}
	if err := third.takeGraph(strings.Replace(graph, "epoch=", "epoch=1", 1), now); err == nil || third.links.graphText() != graph {
		t.Errorf("got %v, want it called a lie", err)
	}
	if err := third.takeGraph(signText("graph", master.mirror.key, now, text), time.Now()); err != nil || third.links.graphText() == graph {
		t.Errorf("got %v, want a newer one taken", err)
	}
}

func FuzzSheets(f *testing.F) {
	key := testKey(1)
	f.Add(signText("measured", key, time.Unix(1e9, 0), "link to=0102030405060708 path=a rtt=1ms bandwidth=1000\n"))
	f.Add("measured key=00\nmeasured at=\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := newLinks()
		l.takeSheets(text, time.Unix(2e9, 0))
		again := newLinks()
		if err := again.takeSheets(l.text(), time.Unix(2e9, 0)); err != nil || again.text() != l.text() {
			t.Errorf("got %v, %q, want %q", err, again.text(), l.text())
		}
		all, err := cutSheets(text)
		if err == nil && strings.Join(all, "") != text {
			t.Errorf("got %q, want %q cut", all, text)
		}
		parseGraph(text)
		// What is signed is read whatever it says.
		s := signText("measured", key, time.Unix(1e9, 0), text)
		if sh, err := parseSheet(s); err == nil && sh.body != text {
			t.Errorf("got %q, want %q", sh.body, text)
		}
	})
}
