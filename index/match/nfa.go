package match

import "math/bits"

// An nfa runs a graph with errors. What it has reached after some text is a
// state: for each cost from 0 to k a row of bits, bit p set if place p was the
// last one passed at that cost or less. After the rows of places follow, if
// characters may be swapped, as many rows of swaps: bit q set if the character
// just read stands for one after q, and the next must stand for q.
//
// A step takes time linear in the words of the state, but for the places that
// lead elsewhere than to the next, each of which it looks at by itself.
type nfa struct {
	k     int // the greatest cost
	w     int // words of a row
	rows  int // of a state
	cost  Costs
	class *classes
	mask  [][]uint64 // by class: the places it can stand for
	soft  []uint64   // places that errors may touch
	gap   []uint64   // places after which characters may be inserted

	back    bool // it reads text backwards
	context bool // what is allowed depends on the kinds of neighbours
	word    bool
	line    bool // a match is a line
	lines   bool // no match holds a newline
	edges   []edge
	last    []arc
	ways    [1 << 6]*ways // by cond; made when needed
	none    *ways         // what is allowed where nothing depends on context
	tmp     []uint64
	swap    [][]uint64 // by class: the places before one it can stand for
}

// ways are the steps allowed where certain conds hold.
type ways struct {
	next  []uint64 // places that lead to the one after
	far   []uint64 // places that lead elsewhere, too
	steps [][]uint64
	last  []uint64 // places after which the pattern may end
}

const never = 1 << 20 // a cost beyond all

// newNFA makes the nfa of g, which reads text backwards if back is set.
func newNFA(g *graph, class *classes, setOf []int32, opt Options, back bool) *nfa {
	n := &nfa{k: opt.Errors, w: len(g.places)/64 + 1, class: class, back: back,
		word: opt.Word, line: opt.Line, lines: opt.Lines}
	n.cost = opt.Costs.within(n.k)
	n.rows = n.k + 1
	if n.cost.Transpose <= n.k {
		n.rows *= 2
	}
	n.edges, n.last = g.edges, g.last
	if back {
		n.edges, n.last = reversed(g)
	}
	n.context = n.word || n.line
	for _, e := range n.edges {
		n.context = n.context || e.cond != 0
	}
	for _, a := range n.last {
		n.context = n.context || a.cond != 0
	}
	n.masks(setOf)
	n.parts(g)
	n.tmp = make([]uint64, n.rows*n.w)
	n.swap = make([][]uint64, class.len())
	return n
}

// within is c with its defaults, and never for what costs more than k.
func (c Costs) within(k int) Costs {
	for _, p := range []*int{&c.Insert, &c.Delete, &c.Substitute, &c.Transpose} {
		if *p == 0 {
			*p = 1
		}
		if *p > k {
			*p = never
		}
	}
	return c
}

func reversed(g *graph) (edges []edge, last []arc) {
	for _, e := range g.edges {
		if e.from == 0 {
			last = append(last, e.arc)
		} else {
			edges = append(edges, edge{e.to, arc{e.from, e.cond}})
		}
	}
	for _, a := range g.last {
		if a.to == 0 {
			last = append(last, a)
		} else {
			edges = append(edges, edge{0, a})
		}
	}
	return edges, last
}

func (n *nfa) masks(setOf []int32) {
	n.mask = make([][]uint64, n.class.len())
	bySet := map[int32][]uint64{}
	for p, s := range setOf {
		if p == 0 {
			continue
		}
		if bySet[s] == nil {
			bySet[s] = make([]uint64, n.w)
		}
		put(bySet[s], p)
	}
	for c := range n.mask {
		n.mask[c] = make([]uint64, n.w)
		for _, s := range n.class.sets[c] {
			for i, x := range bySet[s] {
				n.mask[c][i] |= x
			}
		}
	}
}

// parts finds the places errors may touch. Nothing is inserted after a place
// all ways from which stay in its exact part.
func (n *nfa) parts(g *graph) {
	n.soft, n.gap = make([]uint64, n.w), make([]uint64, n.w)
	for p, place := range g.places {
		if place.part == 0 {
			put(n.gap, p)
			if p > 0 {
				put(n.soft, p)
			}
		}
	}
	for _, e := range n.edges {
		if g.places[e.to].part != g.places[e.from].part {
			put(n.gap, e.from)
		}
	}
	for _, a := range n.last {
		put(n.gap, a.to)
	}
}

func put(set []uint64, i int)      { set[i>>6] |= 1 << (i & 63) }
func has(set []uint64, i int) bool { return set[i>>6]>>(i&63)&1 != 0 }

// way is the ways between two kinds, before and after in reading order.
func (n *nfa) way(before, after kind) *ways {
	if !n.context {
		if n.none == nil {
			n.none = n.newWays(0)
		}
		return n.none
	}
	if n.back {
		before, after = after, before
	}
	c := conds(before, after)
	if n.ways[c] == nil {
		n.ways[c] = n.newWays(c)
	}
	return n.ways[c]
}

func (n *nfa) newWays(c cond) *ways {
	w := &ways{next: make([]uint64, n.w), far: make([]uint64, n.w), last: make([]uint64, n.w)}
	w.steps = make([][]uint64, n.w*64)
	for _, e := range n.edges {
		switch {
		case e.cond&^c != 0:
		case e.to == e.from+1:
			put(w.next, e.from)
		default:
			if w.steps[e.from] == nil {
				put(w.far, e.from)
				w.steps[e.from] = make([]uint64, n.w)
			}
			put(w.steps[e.from], e.to)
		}
	}
	for _, a := range n.last {
		if a.cond&^c == 0 {
			put(w.last, a.to)
		}
	}
	return w
}

// follow adds to dst the places that those of src lead to.
func (w *ways) follow(dst, src []uint64) {
	var carry uint64
	for i, x := range src {
		s := x & w.next[i]
		dst[i] |= s<<1 | carry
		carry = s >> 63
		for x &= w.far[i]; x != 0; x &= x - 1 {
			for j, y := range w.steps[i<<6|bits.TrailingZeros64(x)] {
				dst[j] |= y
			}
		}
	}
}

// row is row j of a state.
func (n *nfa) row(s []uint64, j int) []uint64 { return s[j*n.w : (j+1)*n.w : (j+1)*n.w] }

// begins tells whether a match may begin (end, for one that reads backwards)
// between two kinds, before and after in reading order.
func (n *nfa) begins(before kind) bool {
	return !(n.word && before.ofWord() || n.line && before < newline)
}

// ends tells the same of its end.
func (n *nfa) ends(after kind) bool { return n.begins(after) }

// inject lets a match begin.
func (n *nfa) inject(s []uint64) {
	for j := 0; j <= n.k; j++ {
		s[j*n.w] |= 1
	}
}

// close adds what is reached by leaving characters of the pattern out.
func (n *nfa) close(s []uint64, w *ways) {
	del := n.cost.Delete
	for j := del; j <= n.k; j++ {
		row := n.row(s, j)
		before := n.row(s, j-del)
		tmp := n.tmp[:n.w]
		clear(tmp)
		w.follow(tmp, before)
		for i := range row {
			row[i] |= tmp[i] & n.soft[i]
		}
	}
	n.widen(s)
}

// widen makes each row hold the ones of lower cost.
func (n *nfa) widen(s []uint64) {
	for i := n.w; i < (n.k+1)*n.w; i++ {
		s[i] |= s[i-n.w]
	}
}

// step reads a character of class c: dst is what is reached from src, which
// must be closed. prev is the class of the character before.
func (n *nfa) step(dst, src []uint64, w *ways, prev, c int) {
	clear(dst)
	if n.lines && c == n.class.nl {
		return
	}
	next := n.tmp[:(n.k+1)*n.w]
	clear(next)
	mask := n.mask[c]
	for j := 0; j <= n.k; j++ {
		w.follow(n.row(next, j), n.row(src, j))
		row, f := n.row(dst, j), n.row(next, j)
		for i := range row {
			row[i] = f[i] & mask[i]
		}
		if from := j - n.cost.Substitute; from >= 0 {
			f := n.row(next, from)
			for i := range row {
				row[i] |= f[i] & n.soft[i]
			}
		}
		if from := j - n.cost.Insert; from >= 0 {
			f := n.row(src, from)
			for i := range row {
				row[i] |= f[i] & n.gap[i]
			}
		}
	}
	if n.rows > n.k+1 {
		n.swaps(dst, src, next, w, prev, c)
	}
	n.widen(dst)
}

// swaps ends the swaps under way in src and begins new ones.
func (n *nfa) swaps(dst, src, next []uint64, w *ways, prev, c int) {
	tmp := n.tmp[(n.k+1)*n.w:]
	first, landed := tmp[:n.w], tmp[n.w:2*n.w]
	begin := n.before(w, c)
	for j := n.cost.Transpose; j <= n.k; j++ {
		from := n.row(src, n.k+1+j)
		clear(landed)
		some := false
		for i := range from {
			first[i] = from[i] & n.mask[c][i]
			some = some || first[i] != 0
		}
		if some {
			w.follow(landed, first)
			row := n.row(dst, j)
			for i := range row {
				row[i] |= landed[i] & n.mask[prev][i] & n.soft[i]
			}
		}
		row, f := n.row(dst, n.k+1+j), n.row(next, j-n.cost.Transpose)
		for i := range row {
			row[i] = f[i] & n.soft[i] & begin[i]
		}
	}
}

// before is the places that lead to one that class c can stand for.
func (n *nfa) before(w *ways, c int) []uint64 {
	if n.swap[c] != nil {
		return n.swap[c]
	}
	set := make([]uint64, n.w)
	for _, e := range n.edges {
		if has(n.mask[c], e.to) && has(n.soft, e.to) {
			put(set, e.from)
		}
	}
	n.swap[c] = set
	return set
}

// accept is the least cost at which the pattern may end here; -1 for none. s
// is closed.
func (n *nfa) accept(s []uint64, w *ways) int {
	for j := 0; j <= n.k; j++ {
		for i, x := range n.row(s, j) {
			if x&w.last[i] != 0 {
				return j
			}
		}
	}
	return -1
}
