package topology

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// world makes n members on a plane of 0.2 s, with uplinks of 1 to 100 Mbit/s;
// a tenth of the pairs goes a long way round.
func world(t testing.TB, n int, seed uint64) *Net {
	r := rand.New(rand.NewPCG(seed, 1))
	x, y, up := make([]float64, n), make([]float64, n), make([]float64, n)
	at := make(map[string]int)
	var names []string
	for i := range n {
		x[i], y[i], up[i] = 0.2*r.Float64(), 0.2*r.Float64(), 125e3*math.Pow(100, r.Float64())
		name := fmt.Sprintf("m%03d", i)
		at[name], names = i, append(names, name)
	}
	return must(NewNet(names, func(a, b string) (Link, bool) {
		i, j := at[a], at[b]
		rtt := 0.002 + math.Hypot(x[i]-x[j], y[i]-y[j])
		if (i*j+i+j)%10 == 0 {
			rtt *= 2.5
		}
		return Link{RTT: time.Duration(rtt * 1e9), Bandwidth: min(up[i], up[j])}, true
	}))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// parted looks for k-1 members without which the rest is in parts, by trying
// all of them.
func parted(g *Graph, k int) bool {
	n := len(g.Members)
	a := g.adjacency()
	var try func(from, left int, out []bool) bool
	try = func(from, left int, out []bool) bool {
		if left == 0 {
			return !whole(a, out)
		}
		for i := from; i < n; i++ {
			out[i] = true
			if try(i+1, left-1, out) {
				return true
			}
			out[i] = false
		}
		return false
	}
	return try(0, k-1, make([]bool, n))
}

func whole(a *adjacency, out []bool) bool {
	seen := slices.Clone(out)
	start := slices.Index(seen, false)
	stack := []int{start}
	seen[start] = true
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, u := range a.near[v] {
			if !seen[u] {
				seen[u] = true
				stack = append(stack, u)
			}
		}
	}
	return !slices.Contains(seen, false)
}

// TestConnectivity compares with trying all ways to take members out.
func TestConnectivity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	counts := make([]int, 8)
	for range 400 {
		n := 3 + r.IntN(6)
		g := &Graph{}
		for i := range n {
			g.Members = append(g.Members, fmt.Sprint(i))
		}
		for i := range n {
			for j := range i {
				if r.Float64() < 0.6 {
					g.Edges = append(g.Edges, Edge{A: fmt.Sprint(j), B: fmt.Sprint(i)})
				}
			}
		}
		want := 0
		for want < n-1 && !parted(g, want+1) {
			want++
		}
		if got := g.Connectivity(); got != want {
			t.Fatalf("got %d, want %d of\n%s", got, want, g)
		}
		counts[want]++
	}
	for k := range 5 {
		if counts[k] == 0 {
			t.Errorf("no graph had connectivity %d: %v", k, counts)
		}
	}
}

// TestDesign wants graphs that bear the loss of any k-1 members, in bounds, and
// better than random ones of as many edges.
func TestDesign(t *testing.T) {
	for _, c := range []struct{ n, k, degree int }{{1, 2, 5}, {2, 2, 5}, {3, 2, 5}, {4, 3, 3}, {7, 3, 4}, {10, 2, 5}, {12, 4, 6}, {25, 2, 5}, {15, 3, 6}} {
		w := world(t, c.n, uint64(c.n))
		o := Options{K: c.k, Degree: c.degree, Steps: 4000}
		g, err := Design(t.Context(), w, o)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		k := min(c.k, c.n-1)
		if g.K != k || g.Epoch != 1 || k > 0 && parted(g, k) {
			t.Errorf("%+v: got k %d, epoch %d, parted %v", c, g.K, g.Epoch, parted(g, k))
		}
		for _, m := range g.Members {
			if d := len(g.Neighbors(m)); d > c.degree {
				t.Errorf("%+v: %s has %d neighbours", c, m, d)
			}
		}
		if again := must(Design(t.Context(), w, o)); !reflect.DeepEqual(again, g) {
			t.Errorf("%+v: got another graph with the same seed", c)
		}
		if c.n >= 10 {
			better(t, w, g)
		}
	}
}

// better wants a graph better than each of some random ones of as many edges.
func better(t *testing.T, w *Net, g *Graph) {
	_, worst := w.Spread(g, 16<<10)
	r := rand.New(rand.NewPCG(9, uint64(len(g.Members))))
	for range 20 {
		a := harary(r.Perm(len(g.Members)), g.K)
		for a.edges < len(g.Edges) {
			if i, j := r.IntN(len(a.near)), r.IntN(len(a.near)); i != j && !a.joined(i, j) {
				a.join(i, j)
			}
		}
		s := newSpread(len(a.near))
		s.of(w, a, 16<<10, math.Inf(1))
		if seconds(s.worst) < worst {
			t.Errorf("%d members: got worst spread %s, a random graph %s", len(a.near), worst, seconds(s.worst))
		}
	}
}

// TestWas keeps what is in use while it is about as good, and lets go of it
// when it is not, or does not join the members.
func TestWas(t *testing.T) {
	w := world(t, 10, 1)
	first := must(Design(t.Context(), w, Options{}))
	if again := must(Design(t.Context(), w, Options{Was: first, Seed: 77})); again != first {
		t.Errorf("got a graph of epoch %d for what nothing is much better than", again.Epoch)
	}
	grown := must(Design(t.Context(), world(t, 11, 1), Options{Was: first}))
	if grown.Epoch != 2 || len(grown.Members) != 11 || grown.Connectivity() < 2 {
		t.Errorf("got epoch %d and %d members with one more", grown.Epoch, len(grown.Members))
	}
	slow := first.Edges[0]
	worse := must(NewNet(first.Members, func(a, b string) (Link, bool) {
		i, _ := slices.BinarySearch(w.members, a)
		j, _ := slices.BinarySearch(w.members, b)
		if l := w.link(i, j); a != slow.A && b != slow.A {
			return l, true
		}
		return Link{RTT: 3 * time.Second, Bandwidth: 1000}, true
	}))
	adapted := must(Design(t.Context(), worse, Options{Was: first}))
	if n := len(adapted.Neighbors(slow.A)); adapted.Epoch != 2 || n > len(first.Neighbors(slow.A)) {
		t.Errorf("got epoch %d with %d neighbours of a member that became slow", adapted.Epoch, n)
	}
}

// TestDown leaves links out that are down, and says what is left of k.
func TestDown(t *testing.T) {
	w := world(t, 8, 2)
	cut := func(down func(i, j int) bool) *Net {
		return must(NewNet(w.Members(), func(a, b string) (Link, bool) {
			i, _ := slices.BinarySearch(w.members, a)
			j, _ := slices.BinarySearch(w.members, b)
			l := w.link(i, j)
			l.Down = down(min(i, j), max(i, j))
			return l, true
		}))
	}
	g := must(Design(t.Context(), cut(func(i, j int) bool { return i < 4 && j >= 4 && j-i != 4 }), Options{}))
	if g.K != 2 || g.Connectivity() < 2 {
		t.Errorf("got k %d, connectivity %d where four links join the halves", g.K, g.Connectivity())
	}
	g = must(Design(t.Context(), cut(func(i, j int) bool { return i < 4 && j >= 4 && (i != 0 || j != 4) }), Options{}))
	if g.K != 1 || g.Connectivity() != 1 {
		t.Errorf("got k %d, connectivity %d where one link joins the halves", g.K, g.Connectivity())
	}
	for _, e := range g.Edges {
		if e.Link.Down {
			t.Errorf("got the edge of %s and %s, which is down", e.A, e.B)
		}
	}
	if mean, worst := w.Spread(&Graph{Members: w.Members()}, 1); mean != math.MaxInt64 || worst != math.MaxInt64 {
		t.Errorf("got spread %s, %s without an edge", mean, worst)
	}
}

func TestDesignRefuses(t *testing.T) {
	w := world(t, 10, 1)
	for _, o := range []Options{{K: -1}, {K: 4, Degree: 3}, {K: 1, Degree: 1}} {
		if _, err := Design(t.Context(), w, o); err == nil || !strings.Contains(err.Error(), "k=") {
			t.Errorf("%+v: got %v, want it refused", o, err)
		}
	}
	if _, err := NewNet([]string{"a", "b", "a"}, nil); err == nil {
		t.Error("got a net with one name twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g, err := Design(ctx, w, Options{}); err == nil || g.Connectivity() < 2 {
		t.Errorf("got %v, want an error and a graph that holds", err)
	}
}

// TestGuess takes a link that was not measured for half as good as the others.
func TestGuess(t *testing.T) {
	w := must(NewNet([]string{"a", "b", "c"}, func(from, to string) (Link, bool) {
		switch from + to {
		case "ab":
			return Link{RTT: 10 * time.Millisecond, Bandwidth: 2000}, true
		case "ba":
			return Link{RTT: 30 * time.Millisecond, Bandwidth: 4000}, true
		}
		return Link{}, false
	}))
	if got, want := w.link(0, 1), (Link{RTT: 30 * time.Millisecond, Bandwidth: 2000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := w.link(2, 1), (Link{RTT: 60 * time.Millisecond, Bandwidth: 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDiffers tells what is noise from what asks for another graph.
func TestDiffers(t *testing.T) {
	net := func(rtt time.Duration, bandwidth float64, down bool, members ...string) *Net {
		return must(NewNet(members, func(from, to string) (Link, bool) { return Link{rtt, bandwidth, down}, true }))
	}
	w := net(20*time.Millisecond, 1e6, false, "a", "b")
	for _, c := range []struct {
		o              *Net
		joins, differs bool
	}{
		{net(21*time.Millisecond, 1.1e6, false, "a", "b"), true, false},
		{net(60*time.Millisecond, 1e6, false, "a", "b"), true, true},
		{net(20*time.Millisecond, 1e5, false, "a", "b"), true, true},
		{net(20*time.Millisecond, 1e6, true, "a", "b"), false, true},
		{net(20*time.Millisecond, 1e6, false, "a", "c"), false, false},
	} {
		if j, d := w.Joins(c.o), w.Differs(c.o); j != c.joins || d != c.differs {
			t.Errorf("%+v: got %v, %v, want %v, %v", c.o, j, d, c.joins, c.differs)
		}
	}
	if fast := net(time.Millisecond, 1e9, false, "a", "b"); fast.Differs(net(3*time.Millisecond, 1e8, false, "a", "b")) {
		t.Error("got a millisecond or two for a difference")
	}
}

func TestText(t *testing.T) {
	g := must(Design(t.Context(), world(t, 9, 4), Options{Steps: 500}))
	for i := range g.Edges { // text has whole bytes a second
		g.Edges[i].Link.Bandwidth = math.Round(g.Edges[i].Link.Bandwidth)
	}
	got, err := Parse(g.String())
	if err != nil || !reflect.DeepEqual(got, g) {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, g)
	}
	const head = "topology epoch=1 k=2 degree=5\nmember name=a\nmember name=b\n"
	for _, c := range []struct{ text, want string }{
		{"", "no such graph"},
		{"member name=a\n", "line 1, column 1"},
		{head + "topology epoch=2\n", "line 4, column 1"},
		{head + "edge a=a b=c\n", "a and c"},
		{head + "edge a=a b=a\n", "a and a"},
		{head + "edge a=a b=b\nedge a=b b=a\n", "joined once"},
		{head + "member name=a\n", "named twice"},
		{head + "edge a=a b=b rtt=long\n", "line 4, column 14"},
		{head + "edge a=a b=b bandwidth=NaN\n", "line 4, column 14"},
		{head + "node a=a\n", "line 4, column 1"},
		{"topology epoch=-1\n", "line 1, column 10"},
	} {
		if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("topology epoch=1 k=2 degree=5\nmember name=a\nmember name=b\nedge a=a b=b rtt=1ms bandwidth=1000\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(g.String())
		if err != nil || again.String() != g.String() {
			t.Errorf("got %v\n%s\nwant\n%s", err, again, g)
		}
		if len(g.Members) < 30 {
			g.Connectivity()
		}
	})
}

// course is a transfer over a link: packets through a bucket of some bytes,
// in flights that double from one round trip to the next.
func course(rate float64, rtt time.Duration, bucket, total int) *Transfer {
	t := new(Transfer)
	now := time.Unix(1000, 0)
	free, window := now, 14_600
	for sent := 0; sent < total; {
		flight := min(window, total-sent)
		arrived := now
		for n := 0; n < flight; n += 1460 {
			size := min(1460, flight-n)
			if bucket >= size {
				bucket -= size
			} else {
				if free.Before(now) {
					free = now
				}
				free = free.Add(time.Duration(float64(size) / rate * 1e9))
			}
			if arrived = now; free.After(arrived) {
				arrived = free
			}
			t.Add(size, arrived.Add(rtt/2))
		}
		sent += flight
		if now = now.Add(rtt); arrived.After(now) {
			now = arrived
		}
		window *= 2
	}
	return t
}

// TestRate wants the rate of a link from a transfer of 256 KiB within 20 %.
func TestRate(t *testing.T) {
	for _, mbit := range []float64{1, 5, 20, 50} {
		for _, rtt := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
			want := mbit * 125e3
			got, ok := course(want, rtt, 32<<10, 1<<20).Rate()
			if !ok || math.Abs(got-want) > 0.2*want {
				t.Errorf("%g Mbit/s, %s: got %.0f, %v, want %.0f", mbit, rtt, got, ok, want)
			}
		}
	}
	if _, ok := course(1e6, time.Millisecond, 0, 1000).Rate(); ok {
		t.Error("got a rate from 1000 bytes")
	}
}

func TestMeter(t *testing.T) {
	var m Meter
	if _, _, ok := m.Link(); ok {
		t.Error("got a link before anything was measured")
	}
	for i := range 40 {
		m.RTT(time.Duration(10+i%5) * time.Millisecond)
	}
	for _, rate := range []float64{1e6, 1e6, 1e6, 9e6, 1e3} {
		m.Transfer(course(rate, time.Millisecond, 0, 1<<18))
	}
	l, _, ok := m.Link()
	if !ok || l.RTT != 10*time.Millisecond || math.Abs(l.Bandwidth-1e6) > 1e5 || l.Down {
		t.Errorf("got %+v, %v", l, ok)
	}
	if m.Down(); !must2(m.Link()).Down {
		t.Error("got a link that is up after it was down")
	}
	if m.RTT(50 * time.Millisecond); must2(m.Link()).Down {
		t.Error("got a link that is down after an answer")
	}
}

func must2(l Link, _ time.Time, _ bool) Link { return l }

func BenchmarkDesign(b *testing.B) {
	for _, n := range []int{10, 50, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := world(b, n, 7)
			for b.Loop() {
				g := must(Design(b.Context(), w, Options{}))
				mean, worst := w.Spread(g, 2<<10)
				b.ReportMetric(mean.Seconds()*1e3, "ms-mean")
				b.ReportMetric(worst.Seconds()*1e3, "ms-worst")
				b.ReportMetric(float64(len(g.Edges)), "edges")
			}
		})
	}
}
