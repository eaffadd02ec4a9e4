package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Options say what is wanted of a graph; the zero value of each is its default.
type Options struct {
	K      int           // members that must fail before the rest can be parted; 2
	Degree int           // neighbours that a member has at most; K+3
	Size   int           // bytes of the update for which it is designed; 16 KiB
	Edge   time.Duration // what an edge costs beside mean and worst spread, as each is a watch and a copy of the heads; 3 ms
	Seed   uint64        // of the search: the same net and options give the same graph
	Steps  int           // of the search; a million divided by the members
	Was    *Graph        // what is in use, if there is one
	Gain   float64       // what a graph must be better by to replace Was, as a part of Was' cost; 0.1
}

// usual is the size of an update, in bytes, if nothing else is said.
const usual = 16 << 10

func (o Options) filled(n int) Options {
	o.K = cmp.Or(o.K, 2)
	o.K = min(o.K, n-1)
	o.Degree = cmp.Or(o.Degree, o.K+3)
	o.Size = cmp.Or(o.Size, usual)
	o.Edge = cmp.Or(o.Edge, 3*time.Millisecond)
	o.Steps = cmp.Or(o.Steps, 1_000_000/max(n, 1))
	o.Gain = cmp.Or(o.Gain, 0.1)
	return o
}

// Design searches for a graph over all members of w. A group of K members or
// fewer is joined completely. It returns o.Was, not a copy, where that joins
// these members still as it should and nothing found is better by o.Gain; a new
// graph has the next epoch. Where links that are down leave no graph of K
// paths, the one returned has less K than was asked for, and the edges that
// are up.
//
// The search ends early when ctx does, with the best that was found; then the
// error is that of ctx beside a graph that holds. Other errors wrap ErrInvalid.
func Design(ctx context.Context, w *Net, o Options) (*Graph, error) {
	n := len(w.members)
	asked := o.K
	o = o.filled(n)
	if asked < 0 || o.Degree < o.K || n > 1 && o.Degree < 1 || n > 2 && o.Degree < 2 {
		return nil, fmt.Errorf("topology: k=%d degree=%d: %w", asked, o.Degree, ErrInvalid)
	}
	s := newSearch(w, o)
	err := s.run(ctx)
	return s.graph(), err
}

// ErrInvalid is the class of errors for options that no graph meets, and for
// text that tells none.
var ErrInvalid = errors.New("no such graph")

// A search is simulated annealing over graphs that are k-connected throughout.
type search struct {
	w      *Net
	o      Options
	a      *adjacency
	spread *spread
	r      *rand.Rand
	cost   float64
	best   [][2]int
	least  float64
}

func newSearch(w *Net, o Options) *search {
	n := len(w.members)
	s := &search{w: w, o: o, spread: newSpread(n), r: rand.New(rand.NewPCG(o.Seed, uint64(n)))}
	s.a = s.begin()
	s.cost, _ = s.price(math.Inf(1))
	s.keep()
	return s
}

// begin is the graph in use if that holds for these members, else one made anew.
func (s *search) begin() *adjacency {
	if s.holds(s.o.Was) {
		return s.o.Was.adjacency()
	}
	return harary(s.w.tour(), s.o.K)
}

// holds tells whether g may stay: same members, enough paths, no more
// neighbours than wanted.
func (s *search) holds(g *Graph) bool {
	if g == nil || !slices.Equal(g.Members, s.w.members) || g.Connectivity() < s.o.K {
		return false
	}
	a := g.adjacency()
	return !slices.ContainsFunc(a.near, func(near []int) bool { return len(near) > s.o.Degree })
}

// tour visits all members, from each to the nearest that is left.
func (w *Net) tour() []int {
	n := len(w.members)
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	var tour []int
	for len(left) > 0 {
		at := 0
		if len(tour) > 0 {
			last := tour[len(tour)-1]
			for i, m := range left {
				if w.rtt[last*n+m] < w.rtt[last*n+left[at]] {
					at = i
				}
			}
		}
		tour = append(tour, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return tour
}

// harary joins the members of a tour into a k-connected graph with the fewest
// edges (Harary, The maximum connectivity of a graph, 1962): each to the k/2
// next on either side, for an odd k to the one across too.
func harary(tour []int, k int) *adjacency {
	n := len(tour)
	a := newAdjacency(n)
	join := func(i, j int) {
		if i, j = tour[i%n], tour[j%n]; i != j && !a.joined(i, j) {
			a.join(i, j)
		}
	}
	for i := range n {
		for h := 1; h <= k/2; h++ {
			join(i, i+h)
		}
		if k%2 == 1 && i < (n+1)/2 {
			join(i, i+n/2)
		}
	}
	return a
}

// price is the cost of the graph as it is, or false if that is beyond most.
func (s *search) price(most float64) (float64, bool) {
	edges := s.o.Edge.Seconds() * float64(s.a.edges)
	ok := s.spread.of(s.w, s.a, float64(s.o.Size), most-edges)
	return s.spread.mean + s.spread.worst + edges, ok
}

func (s *search) keep() {
	s.least, s.best = s.cost, s.best[:0]
	for i, near := range s.a.near {
		for _, j := range near {
			if i < j {
				s.best = append(s.best, [2]int{i, j})
			}
		}
	}
}

// run lets the graph change. What makes it worse is taken with a chance that
// falls from one step to the next, so that it does not end in the first hollow.
func (s *search) run(ctx context.Context) error {
	if len(s.a.near) < 3 {
		return ctx.Err()
	}
	hot := 0.05 * s.cost
	if hot > 10 { // an edge that is down is among them, and tells nothing of the rest
		hot = 0.1
	}
	for step := range s.o.Steps {
		if step%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m, ok := s.draw()
		if !ok {
			continue
		}
		m.do(s.a)
		warm := hot * (1 - float64(step)/float64(s.o.Steps))
		if s.joins(m) {
			// Metropolis' rule, exp(-worse/warm) against a lot, with the lot drawn first.
			if now, ok := s.price(s.cost - warm*math.Log(1-s.r.Float64())); ok {
				if s.cost = now; now < s.least {
					s.keep()
				}
				continue
			}
		}
		m.undo(s.a)
	}
	return nil
}

// joins tells whether a graph that was k-connected before m is so still. If
// fewer than k members part it now, they part the ends of an edge that m took
// away, as nothing else became less.
func (s *search) joins(m move) bool {
	for _, e := range m.parted {
		if s.a.paths(e[0], e[1], s.o.K) < s.o.K {
			return false
		}
	}
	return true
}

// graph is the best that was found, or the one in use.
func (s *search) graph() *Graph {
	epoch := uint64(1)
	if was := s.o.Was; was != nil {
		if epoch = was.Epoch + 1; s.holds(was) {
			s.a = was.adjacency()
			if now, _ := s.price(math.Inf(1)); s.least > now*(1-s.o.Gain) {
				return was
			}
		}
	}
	g := &Graph{Epoch: epoch, K: s.o.K, Degree: s.o.Degree, Members: s.w.Members()}
	down := false
	for _, e := range s.best {
		l := s.w.link(e[0], e[1])
		if down = down || l.Down; !l.Down {
			g.Edges = append(g.Edges, Edge{s.w.members[e[0]], s.w.members[e[1]], l})
		}
	}
	sortEdges(g.Edges)
	if down {
		g.K = g.Connectivity()
	}
	return g
}
