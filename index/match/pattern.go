package match

import (
	"regexp/syntax"
	"slices"
)

// A Pattern is a compiled one. It keeps what it learns of the texts it is run
// over, in bounded memory, and so is not safe for concurrent use; a Clone is
// as good and shares all that does not change.
type Pattern struct {
	expr string
	opt  Options // with Errors as it counts
	*compiled

	forward, backward *nfa // made when first needed
	whole             *dfa // the whole of a word
	ahead             *dfa // a match anywhere
	on                *dfa // a match from a place on
	behind, back      *dfa // the same, backwards
	close             *levenshtein
	closeKnown        bool
	scan              scan
}

// compiled is what clones share.
type compiled struct {
	tree     *syntax.Regexp
	graph    *graph
	class    *classes
	setOf    []int32 // by place: its set in class
	longest  int     // characters of the longest string it stands for; -1 without end
	multi    bool    // a match may hold a newline
	asserts  bool    // it holds ^, $, \b or the like
	literal  *Searcher
	literals []string
	required []string
	prefix   string
	pieces   []*Searcher // one of which every match holds
}

// Compile makes a pattern. The error tells what is wrong with expr or opt, or
// that the pattern is too large, and wraps iofs.ErrInvalid.
func Compile(expr string, opt Options) (*Pattern, error) {
	if opt.Line {
		opt.Lines = true
	}
	if opt.Best && opt.Errors == 0 {
		opt.Errors = MaxErrors
	}
	if opt.Errors < 0 || opt.Errors > MaxErrors {
		return nil, invalid(expr, "errors are 0 to 8")
	}
	if c := opt.Costs; c.Insert < 0 || c.Delete < 0 || c.Substitute < 0 || c.Transpose < 0 {
		return nil, invalid(expr, "a cost is below 0")
	}
	tree, err := parse(expr, opt)
	if err != nil {
		return nil, err
	}
	g, ok := newGraph(tree, opt.Lines)
	if !ok {
		return nil, invalid(expr, "is too large")
	}
	c := &compiled{tree: tree, graph: g}
	c.classify(opt)
	c.longest = g.longest()
	c.narrow(opt)
	return &Pattern{expr: expr, opt: opt, compiled: c}, nil
}

// classify parts the characters by the sets of the places.
func (c *compiled) classify(opt Options) {
	var sets [][]rune
	ids := map[string]int32{}
	c.setOf = make([]int32, len(c.graph.places))
	for p, place := range c.graph.places[1:] {
		id, ok := ids[string(place.set)]
		if !ok {
			id = int32(len(sets))
			ids[string(place.set)] = id
			sets = append(sets, place.set)
		}
		c.setOf[p+1] = id
	}
	c.asserts = slices.ContainsFunc(c.graph.edges, func(e edge) bool { return e.cond != 0 }) ||
		slices.ContainsFunc(c.graph.last, func(a arc) bool { return a.cond != 0 })
	c.class = newClasses(sets, opt.Word || opt.Line || c.asserts)
	for _, s := range c.class.sets[c.class.nl] {
		c.multi = c.multi || int(s) < len(sets)
	}
	c.multi = (c.multi || opt.Errors > 0) && !opt.Lines
}

// narrow finds what every match must hold.
func (c *compiled) narrow(opt Options) {
	a := analysis{!opt.Case}
	if opt.Errors > 0 {
		c.limit(a, opt)
		return
	}
	c.prefix, _ = a.prefix(c.tree)
	if text, ok := plainText(c.tree, !opt.Case); ok {
		c.literal = NewSearcher(text, !opt.Case)
	}
	clauses := a.of(c.tree).flat()
	for _, one := range clauses {
		if len(one) == 1 {
			c.literals = join(c.literals, one)
		}
	}
	c.literals = byLength(c.literals)
	c.require(choose(clauses), opt)
}

// limit is narrow for a pattern with errors.
func (c *compiled) limit(a analysis, opt Options) {
	costs := opt.Costs.within(opt.Errors)
	least := min(costs.Insert, costs.Delete, costs.Substitute, costs.Transpose)
	parts := a.parts(c.tree, false, nil)
	for _, p := range parts {
		if p.exact {
			c.literals = join(c.literals, []string{p.text})
		}
	}
	c.literals = byLength(c.literals)
	errors := 0
	if least <= opt.Errors {
		errors = opt.Errors / least
	}
	c.require(pieces(parts, errors, costs.Transpose < never), opt)
}

func (c *compiled) require(required clause, opt Options) {
	c.required = required
	for _, s := range required {
		c.pieces = append(c.pieces, NewSearcher(s, !opt.Case))
	}
}

// longest is the length of the longest way through the graph, -1 if it has
// none.
func (g *graph) longest() int {
	next := make([][]int, len(g.places))
	for _, e := range g.edges {
		if e.to == e.from {
			return -1
		}
		next[e.from] = append(next[e.from], e.to)
	}
	const open, done = 1, 2
	mark := make([]byte, len(g.places))
	long := make([]int, len(g.places))
	stack := []int{0}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		if mark[p] == open || mark[p] == done {
			stack = stack[:len(stack)-1]
			if mark[p] == open {
				mark[p] = done
				for _, q := range next[p] {
					long[p] = max(long[p], long[q]+1)
				}
			}
			continue
		}
		mark[p] = open
		for _, q := range next[p] {
			switch mark[q] {
			case open:
				return -1
			case 0:
				stack = append(stack, q)
			}
		}
	}
	return long[0]
}

// Clone gives a pattern for another goroutine.
func (p *Pattern) Clone() *Pattern {
	return &Pattern{expr: p.expr, opt: p.opt, compiled: p.compiled}
}

// Limit gives the pattern with another cost allowed, 0 to MaxErrors, and
// without Best.
func (p *Pattern) Limit(errors int) (*Pattern, error) {
	opt := p.opt
	opt.Errors, opt.Best = errors, false
	return Compile(p.expr, opt)
}

// String is the expression.
func (p *Pattern) String() string { return p.expr }

// Errors is the cost allowed.
func (p *Pattern) Errors() int { return p.opt.Errors }

// Best tells whether the least cost that matches anything is asked for.
func (p *Pattern) Best() bool { return p.opt.Best }

// Literals are strings each match holds, all of them, longest first; in lower
// case unless Options.Case. A text that lacks one, whatever the case, does not
// match.
func (p *Pattern) Literals() []string { return p.literals }

// Required are strings of which each match holds one, in lower case unless
// Options.Case; none if no such are known.
func (p *Pattern) Required() []string { return p.required }

// Prefix is what each word begins with that Match accepts, in lower case
// unless Options.Case.
func (p *Pattern) Prefix() string { return p.prefix }

func (p *Pattern) newNFA(back bool) *nfa {
	n := &p.forward
	if back {
		n = &p.backward
	}
	if *n == nil {
		*n = newNFA(p.graph, p.class, p.setOf, p.opt, back)
	}
	return *n
}

// Match tells the least cost at which the whole of word matches.
func (p *Pattern) Match(word []byte) (cost int, ok bool) {
	if l := p.levenshtein(); l != nil {
		return l.match(word)
	}
	if p.whole == nil {
		opt := p.opt
		opt.Word, opt.Line, opt.Lines = false, false, false
		n := newNFA(p.graph, p.class, p.setOf, opt, false)
		p.whole = newDFA(n, false, false)
	}
	d := p.whole
	state := d.start(edge0)
	for at := 0; at < len(word); {
		if state, at = d.read(state, word, at); state == dead {
			return 0, false
		}
	}
	cost = d.cost(state, edge0)
	return max(cost, 0), cost >= 0
}

// MatchString is Match.
func (p *Pattern) MatchString(word string) (cost int, ok bool) { return p.Match(bytesOf(word)) }

func (p *Pattern) levenshtein() *levenshtein {
	if !p.closeKnown {
		p.close, p.closeKnown = newLevenshtein(p), true
	}
	return p.close
}
