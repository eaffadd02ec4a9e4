package match

import (
	"fmt"
	iofs "io/fs"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Bounds of a compiled pattern.
const (
	maxExpr  = 1 << 16 // bytes of an expression
	maxPlace = 4096    // places, once counted repeats are written out
	maxEdge  = 1 << 19 // steps from place to place
)

// A cond is what must hold between two characters, a bit each.
type cond uint8

const (
	beginLine cond = 1 << iota
	endLine
	beginText
	endText
	wordEdge
	noWordEdge
)

// A place of the pattern is one character of a string it stands for, that is
// one literal character or class of the expression (Glushkov's positions).
// Place 0 stands before them all.
type place struct {
	set  []rune // pairs of first and last rune
	part int    // which exact part it belongs to; 0 none
}

// An arc leads to a place, if cond holds on the way.
type arc struct {
	to   int
	cond cond
}

type edge struct {
	from int
	arc
}

// A graph is a pattern as its places and the steps between them.
type graph struct {
	places []place
	edges  []edge
	last   []arc // where the pattern may end: "to" is the place it ends after
}

// A piece is a part of a graph under construction.
type piece struct {
	first, last []arc
	empty       []cond // ways to stand for nothing
}

func invalid(expr, why string) error {
	if len(expr) > 60 {
		expr = expr[:60] + "…"
	}
	return fmt.Errorf("pattern '%s': %s: %w", expr, why, iofs.ErrInvalid)
}

// tooLarge ends the construction of a graph; see newGraph.
type tooLarge struct{}

// newGraph makes the graph of an expression, simplified.
func newGraph(re *syntax.Regexp, lines bool) (g *graph, ok bool) {
	b := &graphBuilder{g: &graph{places: make([]place, 1)}, lines: lines}
	defer func() {
		if e := recover(); e != nil {
			if _, large := e.(tooLarge); !large {
				panic(e)
			}
			g, ok = nil, false
		}
	}()
	p := b.build(re)
	for _, a := range p.first {
		b.edge(0, a)
	}
	b.g.last = p.last
	for _, c := range p.empty {
		b.g.last = append(b.g.last, arc{0, c})
	}
	return b.g, true
}

type graphBuilder struct {
	g     *graph
	part  int // the exact part we are in
	parts int
	lines bool
}

func (b *graphBuilder) edge(from int, a arc) {
	if len(b.g.edges) >= maxEdge {
		panic(tooLarge{})
	}
	b.g.edges = append(b.g.edges, edge{from, a})
}

func (b *graphBuilder) place(set []rune) piece {
	if len(b.g.places) > maxPlace {
		panic(tooLarge{})
	}
	a := []arc{{len(b.g.places), 0}}
	b.g.places = append(b.g.places, place{set, b.part})
	return piece{first: a, last: a}
}

var nothing = []cond{0}

func (b *graphBuilder) build(re *syntax.Regexp) piece {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return piece{empty: nothing}
	case syntax.OpLiteral:
		return b.literal(re)
	case syntax.OpCharClass:
		return b.place(re.Rune)
	case syntax.OpAnyCharNotNL:
		return b.place([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpAnyChar:
		return b.place([]rune{0, unicode.MaxRune})
	case syntax.OpCapture:
		return b.capture(re)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return b.repeat(re)
	case syntax.OpConcat:
		p := piece{empty: nothing}
		for _, sub := range re.Sub {
			p = b.concat(p, b.build(sub))
		}
		return p
	case syntax.OpAlternate:
		var p piece
		for _, sub := range re.Sub {
			q := b.build(sub)
			p.first = join(p.first, q.first)
			p.last = join(p.last, q.last)
			p.empty = join(p.empty, q.empty)
		}
		return p
	}
	if c := b.assertion(re.Op); c != 0 {
		return piece{empty: []cond{c}}
	}
	return piece{} // OpNoMatch
}

// assertion is the condition of an empty-width operator. Where matches stay in
// lines, a text is its line.
func (b *graphBuilder) assertion(op syntax.Op) cond {
	switch op {
	case syntax.OpBeginLine:
		return beginLine
	case syntax.OpEndLine:
		return endLine
	case syntax.OpBeginText:
		if b.lines {
			return beginLine
		}
		return beginText
	case syntax.OpEndText:
		if b.lines {
			return endLine
		}
		return endText
	case syntax.OpWordBoundary:
		return wordEdge
	case syntax.OpNoWordBoundary:
		return noWordEdge
	}
	return 0
}

func (b *graphBuilder) literal(re *syntax.Regexp) piece {
	p := piece{empty: nothing}
	for _, r := range re.Rune {
		set := []rune{r, r}
		if re.Flags&syntax.FoldCase != 0 {
			set = fold(r)
		}
		p = b.concat(p, b.place(set))
	}
	return p
}

// exactName is the name of a group that must stand exactly.
const exactName = "exact"

func (b *graphBuilder) capture(re *syntax.Regexp) piece {
	if re.Name == exactName && b.part == 0 {
		b.parts++
		b.part = b.parts
		defer func() { b.part = 0 }()
	}
	return b.build(re.Sub[0])
}

func (b *graphBuilder) repeat(re *syntax.Regexp) piece {
	p := b.build(re.Sub[0])
	if re.Op != syntax.OpQuest {
		b.link(p.last, p.first)
	}
	if re.Op != syntax.OpPlus {
		p.empty = nothing
	}
	return p
}

func (b *graphBuilder) concat(p, q piece) piece {
	b.link(p.last, q.first)
	out := piece{first: p.first, last: q.last}
	for _, c := range p.empty {
		out.first = join(out.first, and(q.first, c))
	}
	for _, c := range q.empty {
		out.last = join(out.last, and(p.last, c))
	}
	for _, c := range p.empty {
		for _, d := range q.empty {
			out.empty = join(out.empty, []cond{c | d})
		}
	}
	return out
}

func (b *graphBuilder) link(from, to []arc) {
	for _, f := range from {
		for _, t := range to {
			b.edge(f.to, arc{t.to, f.cond | t.cond})
		}
	}
}

func and(arcs []arc, c cond) []arc {
	if c == 0 {
		return arcs
	}
	out := slices.Clone(arcs)
	for i := range out {
		out[i].cond |= c
	}
	return out
}

// join is the union of two lists, which it does not change. The lists of
// nested repeats name the same arcs, so it keeps them from growing.
func join[T comparable](a, b []T) []T {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clip(a)
	if len(b) <= 4 {
		for _, x := range b {
			if !slices.Contains(a, x) {
				out = append(out, x)
			}
		}
		return out
	}
	have := make(map[T]bool, len(a))
	for _, x := range a {
		have[x] = true
	}
	for _, x := range b {
		if !have[x] {
			out = append(out, x)
		}
	}
	return out
}

// Letters that simple folding makes cases of s and k.
const longS, kelvin = '\u017f', '\u212a'

// fold is the set of r in either case. The long s and the Kelvin sign are no
// cases of s and k, so that ASCII can be sought byte by byte; index.Words
// turns them to s and k where it is words that matter.
func fold(r rune) []rune {
	set := []rune{r, r}
	if r == longS || r == kelvin {
		return set
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f != longS && f != kelvin {
			set = append(set, f, f)
		}
	}
	return set
}
