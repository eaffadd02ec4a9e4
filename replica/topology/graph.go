package topology

import (
	"cmp"
	"slices"
)

// A Graph says who floods to whom.
type Graph struct {
	Epoch   uint64   // later ones replace earlier ones
	K       int      // how many members must fail before the rest can be parted
	Degree  int      // neighbours that a member has at most
	Members []string // sorted
	Edges   []Edge   // sorted, each once
}

// An Edge joins two members, A before B.
type Edge struct {
	A, B string
	Link Link // as it was when the graph was made
}

func sortEdges(e []Edge) {
	slices.SortFunc(e, func(x, y Edge) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) })
}

// Neighbors are the members that one floods to and hears from, sorted.
func (g *Graph) Neighbors(member string) (out []string) {
	for _, e := range g.Edges {
		switch member {
		case e.A:
			out = append(out, e.B)
		case e.B:
			out = append(out, e.A)
		}
	}
	slices.Sort(out)
	return out
}

// Connectivity is how many members must fail before the rest can be parted; of
// a graph that cannot be parted by that, all but one.
func (g *Graph) Connectivity() int {
	a := g.adjacency()
	least := len(a.near) - 1
	for i := range a.near {
		for j := range i {
			if !a.joined(i, j) {
				least = min(least, a.paths(i, j, least))
			}
		}
	}
	return max(least, 0)
}

func (g *Graph) adjacency() *adjacency {
	a := newAdjacency(len(g.Members))
	for _, e := range g.Edges {
		i, there := slices.BinarySearch(g.Members, e.A)
		j, too := slices.BinarySearch(g.Members, e.B)
		if there && too && i != j && !a.joined(i, j) {
			a.join(i, j)
		}
	}
	return a
}

// An adjacency is a graph whose members are numbers, as the search changes it.
type adjacency struct {
	near  [][]int // the neighbours of each, in no order
	edges int

	// Of paths, kept for the next call.
	before, after []int // of each member the one before and after it on its path, or -1
	from          []int // of each side of a member the side that reached it, or -1
	queue         []int
}

func newAdjacency(n int) *adjacency {
	return &adjacency{near: make([][]int, n), before: make([]int, n), after: make([]int, n), from: make([]int, 2*n)}
}

func (a *adjacency) joined(i, j int) bool { return slices.Contains(a.near[i], j) }

func (a *adjacency) join(i, j int) {
	a.near[i], a.near[j] = append(a.near[i], j), append(a.near[j], i)
	a.edges++
}

func (a *adjacency) part(i, j int) {
	for _, way := range [][2]int{{i, j}, {j, i}} {
		near := a.near[way[0]]
		at := slices.Index(near, way[1])
		near[at] = near[len(near)-1]
		a.near[way[0]] = near[:len(near)-1]
	}
	a.edges--
}

// paths counts paths from s to t that have no other member in common, up to
// most (Menger: as many as must fail to part them). An edge between s and t
// is one of them.
func (a *adjacency) paths(s, t, most int) (n int) {
	for i := range a.before {
		a.before[i], a.after[i] = -1, -1
	}
	if a.joined(s, t) {
		n++
	}
	for n < most && a.augment(s, t) {
		n++
	}
	return n
}

// A member on a path has two sides: one is come to, 2v, the other is left from,
// 2v+1. A search that comes to one that is on a path already may go back along
// that path only, and leave from where it gets to.

// augment finds one path more, where paths that are there may be led another
// way: the shortest augmenting path of a flow in which a member carries one.
func (a *adjacency) augment(s, t int) bool {
	for i := range a.from {
		a.from[i] = -1
	}
	a.queue = append(a.queue[:0], 2*s+1)
	a.from[2*s+1], a.from[2*s] = 2*s+1, 2*s+1
	for at := 0; at < len(a.queue); at++ {
		side := a.queue[at]
		v := side / 2
		if side%2 == 0 {
			a.reach(2*a.before[v]+1, side)
			continue
		}
		if a.before[v] >= 0 {
			a.reach(side-1, side)
		}
		for _, u := range a.near[v] {
			if a.after[v] == u || a.before[u] == v || v == s && u == t {
				continue
			}
			if u == t {
				a.lead(s, t, side)
				return true
			}
			a.reach(2*u, side)
			if a.before[u] < 0 {
				a.reach(2*u+1, 2*u)
			}
		}
	}
	return false
}

func (a *adjacency) reach(side, from int) {
	if a.from[side] >= 0 {
		return
	}
	a.from[side] = from
	if side%2 == 1 || a.before[side/2] >= 0 {
		a.queue = append(a.queue, side)
	}
}

// lead changes the paths by the one found, which ends on a side of the last
// member before t.
func (a *adjacency) lead(s, t, side int) {
	var add [][2]int
	add = append(add, [2]int{side / 2, t})
	for side != 2*s+1 {
		from := a.from[side]
		v, u := from/2, side/2
		switch {
		case v == u:
		case side%2 == 0:
			add = append(add, [2]int{v, u})
		default: // back along the path from u to v
			if a.after[u] == v {
				a.after[u] = -1
			}
			a.before[v] = -1
		}
		side = from
	}
	for _, e := range add {
		if e[0] != s {
			a.after[e[0]] = e[1]
		}
		if e[1] != t {
			a.before[e[1]] = e[0]
		}
	}
}
