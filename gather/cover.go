package gather

import (
	"container/heap"
	"context"
	"math/rand/v2"
)

// # A cover of the graph
//
// Pinkerton remarks (dissertation, 4.1.2) that "if the graph were known ahead of
// time, more intelligent schemes could be used. For instance, for a particular
// index size, an algorithm could use the link table to determine the optimal set
// of pages that minimizes the connectivity to all pages known". We take that as:
// choose n pages S of those that may be taken so that the sum, over all pages
// known, of the links one has to follow from the nearest page of S is least. A
// page that is farther than radius links, or cannot be reached, counts as
// radius+1 away.
//
// That is a k-median on a directed graph, with distances cut off: finding the
// least is NP-hard. But what n pages save, of the distances that an empty S has,
// is a submodular function that only grows with S, for which taking the page that
// saves most, again and again, saves at least 1-1/e = 0.63 of what the best n
// could (Nemhauser, Wolsey, Fisher, Mathematical Programming 14, 1978). Since a page
// never saves more later than it would now, most need not be tried again at each
// step (Minoux, 1978: the lazy greedy): a page is tried only when what it saved
// when it was tried last, or at first a bound made of the numbers of links, is
// more than anything known of the others. The result is that of trying all. Where
// many pages save nearly the same, as in webs without a shape, even that tries most
// of them at most steps. When each has been tried four times on average, the rest
// are picked from samples, which saves 1-1/e-1/20 at least, on average (Mirzasoleiman
// and others, AAAI 2015: the stochastic greedy).
//
// Memory: 4 bytes a link and some 70 a page, while a cover is computed.

// A graph is the links between nodes, which are numbered from 0.
type graph struct {
	at []uint32 // where a node's targets begin
	n  []uint32 // how many they are
	to []uint32
}

func newGraph(nodes int) *graph {
	return &graph{at: make([]uint32, nodes), n: make([]uint32, nodes)}
}

// link adds the targets of a node, once for each.
func (g *graph) link(from uint32, to []uint32) {
	g.at[from], g.n[from] = uint32(len(g.to)), uint32(len(to))
	g.to = append(g.to, to...)
}

func (g *graph) out(node uint32) []uint32 { return g.to[g.at[node]:][:g.n[node]] }

// cover picks up to n of some nodes, the one that saves most first; of those that
// save the same, the lowest, until samples do. They are distinct.
func (g *graph) cover(ctx context.Context, nodes []uint32, n, radius int) ([]uint32, error) {
	c := newCovering(g, radius)
	q := make(savings, 0, len(nodes))
	most := g.bounds(radius)
	for _, u := range nodes {
		q = append(q, saving{most[u], u, -1})
	}
	heap.Init(&q)
	var got []uint32
	left := patience*len(q) + 1000
	for len(q) > 0 && len(got) < n && left > 0 {
		if left--; left%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if top := &q[0]; top.step != len(got) { // what it saves now is not known
			top.saves, top.step = c.try(top.node, false), len(got)
			heap.Fix(&q, 0)
			continue
		}
		got = append(got, q[0].node)
		c.try(q[0].node, true)
		heap.Pop(&q)
	}
	return c.sample(ctx, q, got, n)
}

// patience is how often, on average, a page is tried before samples must do.
const patience = 4

// sample picks the rest of n, each the best of a sample of those that are left;
// the samples together have three times as many as there are, e^-3 being 1/20.
func (c *covering) sample(ctx context.Context, left savings, got []uint32, n int) ([]uint32, error) {
	if len(left) == 0 || len(got) >= n {
		return got, nil
	}
	r := rand.New(rand.NewPCG(uint64(n), uint64(len(left)))) // the same for the same
	size := 3*len(left)/(n-len(got)) + 1
	for ; len(got) < n && len(left) > 0; left = left[:len(left)-1] {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at, most := -1, int64(-1)
		for range size {
			i := r.IntN(len(left))
			s := &left[i]
			if s.saves <= most {
				continue // it saves no more than it did
			}
			if s.saves = c.try(s.node, false); s.saves > most {
				at, most = i, s.saves
			}
		}
		got = append(got, left[at].node)
		c.try(left[at].node, true)
		left[at] = left[len(left)-1]
	}
	return got, nil
}

// bounds returns for each node more than it can save: as if no two ways from it
// led to the same node.
func (g *graph) bounds(radius int) []int64 {
	nodes := len(g.at)
	reach, next := make([]int64, nodes), make([]int64, nodes)
	total := make([]int64, nodes)
	for i := range reach {
		reach[i], total[i] = 1, int64(radius)+1
	}
	for d := 1; d <= radius; d++ {
		for i := range next {
			next[i] = 0
			for _, v := range g.out(uint32(i)) {
				next[i] += reach[v]
			}
			next[i] = min(next[i], int64(nodes))
			total[i] += next[i] * int64(radius+1-d)
		}
		reach, next = next, reach
	}
	return total
}

// A covering is how far all nodes are from those picked.
type covering struct {
	g      *graph
	radius int
	far    []uint8  // by node; radius+1 is out of reach
	met    []uint32 // by node: the last try that met it
	tries  uint32
	front  []uint32
	next   []uint32
}

func newCovering(g *graph, radius int) *covering {
	c := &covering{g: g, radius: radius, far: make([]uint8, len(g.at)), met: make([]uint32, len(g.at))}
	for i := range c.far {
		c.far[i] = uint8(radius + 1)
	}
	return c
}

// try returns what a node saves, and with pick picks it. Where it comes to a node
// that is as near to one picked before it need not go on: so is all behind that.
func (c *covering) try(node uint32, pick bool) (saves int64) {
	c.tries++
	c.front = append(c.front[:0], node)
	c.met[node] = c.tries
	for d := 0; d <= c.radius && len(c.front) > 0; d++ {
		c.next = c.next[:0]
		for _, u := range c.front {
			if int(c.far[u]) <= d {
				continue
			}
			saves += int64(int(c.far[u]) - d)
			if pick {
				c.far[u] = uint8(d)
			}
			if d == c.radius {
				continue
			}
			for _, v := range c.g.out(u) {
				if c.met[v] != c.tries {
					c.met[v] = c.tries
					c.next = append(c.next, v)
				}
			}
		}
		c.front, c.next = c.next, c.front
	}
	return saves
}

// A saving is what a node saved when so many were picked, or, at step -1, a bound.
type saving struct {
	saves int64
	node  uint32
	step  int
}

// savings is a heap, the greatest on top.
type savings []saving

func (s savings) Len() int { return len(s) }
func (s savings) Less(i, j int) bool {
	return s[i].saves > s[j].saves || s[i].saves == s[j].saves && s[i].node < s[j].node
}
func (s savings) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *savings) Push(x any)   { *s = append(*s, x.(saving)) }
func (s *savings) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}
