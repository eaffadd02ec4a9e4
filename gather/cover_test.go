package gather

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestCoverBest: on graphs small enough to try every choice, the cover saves at
// least 1-1/e of what the best one does. TestChoose compares it with the greedy
// choice that tries all.
func TestCoverBest(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	worst := 1.0
	for range 60 {
		docs, out := aWeb(r, 2+r.IntN(9))
		n, radius := 1+r.IntN(3), 1+r.IntN(3)
		g := newGraph(len(docs))
		node := make(map[uint32]uint32)
		for i, d := range docs {
			node[d.id] = uint32(i)
		}
		if err := joins(out)(t.Context(), g, func(id uint32) (uint32, bool) { n, ok := node[id]; return n, ok }); err != nil {
			t.Fatal(err)
		}
		var all []uint32
		for i := range docs {
			all = append(all, uint32(i))
		}
		picked, err := g.cover(t.Context(), all, n, radius)
		if err != nil || len(picked) != min(n, len(docs)) {
			t.Fatalf("got %v, %v, want %d nodes", picked, err, min(n, len(docs)))
		}
		saves := func(set uint) int {
			var some []candidate
			for i, d := range docs {
				if set>>i&1 == 1 {
					some = append(some, d)
				}
			}
			return len(docs)*(radius+1) - distances(docs, some, out, radius)
		}
		best, mine := 0, uint(0)
		for set := range uint(1) << len(docs) {
			if bits.OnesCount(set) <= n {
				best = max(best, saves(set))
			}
		}
		for _, u := range picked {
			mine |= 1 << u
		}
		share := float64(saves(mine)) / float64(best)
		worst = min(worst, share)
		if share < 1-1/math.E {
			t.Errorf("%d of %d nodes, radius %d: got %d saved, want 0.63 of %d at least", n, len(docs), radius, saves(mine), best)
		}
	}
	t.Logf("at worst %.3f of the best", worst)
}

// TestCoverChain: the definition by hand. Of a chain of seven pages, the first
// saves most with radius 2, then the fourth, which is three links on, and then the
// sixth: it is one link from the last, which is out of reach.
func TestCoverChain(t *testing.T) {
	g := newGraph(7)
	for i := range uint32(6) {
		g.link(i, []uint32{i + 1})
	}
	all := []uint32{0, 1, 2, 3, 4, 5, 6}
	got, err := g.cover(t.Context(), all, 3, 2)
	if want := []uint32{0, 3, 5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, _ := g.cover(t.Context(), all, 100, 2); len(got) != 7 {
		t.Errorf("got %v, want all of them", got)
	}
	if got, _ := g.cover(t.Context(), all[3:5], 100, 1); !slices.Equal(got, []uint32{3, 4}) {
		t.Errorf("got %v, want only what may be taken", got)
	}
}

// TestCoverSample: what samples pick of a larger graph, and the lazy greedy when
// it has lost patience, saves nearly what trying all does; the same each time.
func TestCoverSample(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const nodes, n = 3000, 60
	g := newGraph(nodes)
	var all []uint32
	for i := range uint32(nodes) {
		var to []uint32
		for range 10 {
			to = append(to, uint32(float64(nodes)*math.Pow(r.Float64(), 2)))
		}
		slices.Sort(to)
		g.link(i, slices.Compact(to))
		all = append(all, i)
	}
	total := func(picked []uint32) (sum int64) {
		c := newCovering(g, 2)
		for _, u := range picked {
			sum += c.try(u, true)
		}
		return sum
	}
	var greedy []uint32
	c := newCovering(g, 2)
	for range n {
		at, most := uint32(0), int64(-1)
		for _, u := range all {
			if s := c.try(u, false); s > most {
				at, most = u, s
			}
		}
		c.try(at, true)
		greedy = append(greedy, at)
	}
	want := total(greedy)
	lazy, err := g.cover(t.Context(), all, n, 2)
	if err != nil {
		t.Fatal(err)
	}
	sample := func() []uint32 {
		var left savings
		for _, u := range all {
			left = append(left, saving{math.MaxInt64, u, -1})
		}
		got, err := newCovering(g, 2).sample(t.Context(), left, nil, n)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := sample()
	if !slices.Equal(first, sample()) {
		t.Error("two samples differ")
	}
	for what, got := range map[string][]uint32{"lazy": lazy, "sample": first} {
		seen := slices.Compact(slices.Sorted(slices.Values(got)))
		if share := float64(total(got)) / float64(want); len(seen) != n || share < 0.95 {
			t.Errorf("%s: got %d nodes that save %.3f of what trying all does, want %d and 0.95", what, len(seen), share, n)
		} else {
			t.Logf("%s: %.4f", what, share)
		}
	}
}

// BenchmarkCover covers a web of 100,000 pages of 30 links with 1,000.
func BenchmarkCover(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const nodes = 100_000
	g := newGraph(nodes)
	all := make([]uint32, nodes)
	for i := range uint32(nodes) {
		to := make([]uint32, 30)
		for j := range to {
			to[j] = uint32(float64(nodes) * math.Pow(r.Float64(), 3)) // some are linked to much more than others
		}
		slices.Sort(to)
		g.link(i, slices.Compact(to))
		all[i] = i
	}
	for b.Loop() {
		if _, err := g.cover(b.Context(), all, 1000, 2); err != nil {
			b.Fatal(err)
		}
	}
}
