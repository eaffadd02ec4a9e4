package index

import (
	"fmt"
	iofs "io/fs"
	"slices"

	"harvest/index/query"
)

// A Matcher decides on the text of documents whether a query matches them, as
// exactly as an engine must. It looks for the bytes of words first and cuts
// text into words only where that does not decide, each value at most once.
// A Matcher is not safe for concurrent use; a Clone is as good.
type Matcher struct {
	q       query.Node
	opt     Options
	numbers bool // words of digits alone count

	root   check
	leaves []*inValues // the ones that are not under a not, for Lines
	fields []value
	some   tokens // of a stretch
	a      analyzer
	buf    []byte
}

// Compile makes a Matcher of a query. Of opt it takes Weight, Case, Errors,
// Costs, Stop and Stem. What the fewest errors are that find anything (Best)
// cannot be told from one document: such a word matches with as many as are
// ever tried, so an engine puts a number in first. An error wraps
// iofs.ErrInvalid.
func Compile(q query.Node, opt Options) (*Matcher, error) {
	m := &Matcher{q: q, opt: opt, numbers: true}
	root, err := m.compile(q, scope{positive: true})
	if err != nil {
		return nil, err
	}
	m.root = root
	return m, nil
}

// WithoutNumbers makes the Matcher pass over words of digits alone, as an
// index does with Settings.NoNumbers.
func (m *Matcher) WithoutNumbers() { m.numbers = false }

// Clone gives a Matcher for another goroutine.
func (m *Matcher) Clone() *Matcher {
	c, err := Compile(m.q, m.opt)
	if err != nil {
		panic(err) // it compiled before
	}
	c.numbers = m.numbers
	return c
}

// Match tells whether a document matches. It keeps nothing of fields.
func (m *Matcher) Match(fields []Field) bool {
	m.open(fields)
	ok := m.root.check(m)
	m.release()
	return ok
}

// open takes the values of a document.
func (m *Matcher) open(fields []Field) {
	m.fields = slices.Grow(m.fields[:0], len(fields))[:len(fields)]
	for i := range fields {
		v := &m.fields[i]
		v.text, v.known = fields[i].Text, 0
		if v.field != fields[i].Name || v.name == "" {
			v.field = fields[i].Name
			v.name = Attr(v.field)
			v.weighs = m.opt.Weigh(v.name) > 0
		}
	}
}

// release lets go of the text, and of memory that few documents need.
func (m *Matcher) release() {
	for i := range m.fields {
		v := &m.fields[i]
		if v.text = ""; cap(v.all.parts) > manyWords {
			v.all = tokens{}
		}
		for j := range v.odd {
			if cap(v.odd[j].parts) > manyWords {
				v.odd[j] = tokens{}
			}
		}
	}
}

// manyWords is of how many words of a value the memory is kept for the next.
const manyWords = 1 << 14

// A check is a part of a query, compiled.
type check interface {
	check(m *Matcher) bool
	cost() int // which to try first
}

type (
	always struct{}
	anyOf  struct{ deciders }
	allOf  struct{ deciders }
	not    struct{ of check }
	has    struct{ attr string }

	// inValues is a leaf in one of the values it looks at.
	inValues struct {
		attr string // "": all that weigh something
		leaf leaf
	}
)

func (always) check(*Matcher) bool { return true }
func (always) cost() int           { return 0 }

func (a anyOf) check(m *Matcher) bool {
	for i := range a.deciders {
		if a.deciders[i].check.check(m) {
			a.decided(i)
			return true
		}
	}
	return false
}

func (a allOf) check(m *Matcher) bool {
	for i := range a.deciders {
		if !a.deciders[i].check.check(m) {
			a.decided(i)
			return false
		}
	}
	return true
}

// Deciders are checks of which one decides on a document. Those that cost
// least are tried first, of these the ones that have decided most: of common
// words and rare ones a common one mostly stands near the beginning.
type deciders []decider

type decider struct {
	check
	price int // its cost
	won   int // documents
}

func (d deciders) decided(i int) {
	d[i].won++
	for ; i > 0 && d[i].won > d[i-1].won && d[i].price == d[i-1].price; i-- {
		d[i], d[i-1] = d[i-1], d[i]
	}
}

func (d deciders) cost() (cost int) {
	for i := range d {
		cost += d[i].price
	}
	return cost
}

func (n not) check(m *Matcher) bool { return !n.of.check(m) }
func (n not) cost() int             { return n.of.cost() }

func (h has) check(m *Matcher) bool {
	return slices.ContainsFunc(m.fields, func(v value) bool { return v.name == h.attr })
}
func (h has) cost() int { return 0 }

func (f *inValues) check(m *Matcher) bool {
	for i := range m.fields {
		if v := &m.fields[i]; f.looks(v) && f.leaf.in(m, v) {
			return true
		}
	}
	return false
}

func (f *inValues) cost() int { return f.leaf.cost() }

func (f *inValues) looks(v *value) bool {
	if f.attr == "" {
		return v.weighs
	}
	return v.name == f.attr
}

// A scope is where in a query a node stands.
type scope struct {
	attr     string
	positive bool
}

func bad(q query.Node, why string) error {
	if q == nil {
		return fmt.Errorf("query: %s: %w", why, iofs.ErrInvalid)
	}
	return fmt.Errorf("query '%s': %s: %w", q, why, iofs.ErrInvalid)
}

func (m *Matcher) compile(q query.Node, s scope) (check, error) {
	switch q := q.(type) {
	case nil:
		return nil, bad(nil, "is empty")
	case query.All:
		if s.attr != "" {
			return has{s.attr}, nil
		}
		return always{}, nil
	case query.And:
		list, err := m.list(q, s)
		return allOf{list}, err
	case query.Or:
		list, err := m.list(q, s)
		return anyOf{list}, err
	case query.Bag:
		list, err := m.list(m.unstopped(q), s)
		return anyOf{list}, err
	case query.Not:
		s.positive = !s.positive
		of, err := m.compile(q.Node, s)
		return not{of}, err
	case query.Attr:
		if s.attr != "" {
			return nil, bad(q, "an attribute within another")
		}
		s.attr = Attr(q.Name)
		return m.compile(q.Value, s)
	}
	leaf, err := m.leaf(q, s)
	if err != nil {
		return nil, err
	}
	f := &inValues{s.attr, leaf}
	if s.positive {
		m.leaves = append(m.leaves, f)
	}
	return f, nil
}

// list compiles nodes, the ones that cost least first.
func (m *Matcher) list(nodes []query.Node, s scope) (deciders, error) {
	var list deciders
	for _, n := range nodes {
		c, err := m.compile(n, s)
		if err != nil {
			return nil, err
		}
		list = append(list, decider{check: c, price: c.cost()})
	}
	slices.SortStableFunc(list, func(a, b decider) int { return a.price - b.price })
	return list, nil
}

// unstopped is a bag without its stop words, unless that leaves nothing.
func (m *Matcher) unstopped(b query.Bag) query.Bag {
	if m.opt.Stop == nil {
		return b
	}
	kept := slices.DeleteFunc(slices.Clone(b), func(n query.Node) bool {
		w, ok := n.(query.Word)
		if !ok {
			return false
		}
		words, single := queryWord(w.Text)
		return (single || len(words) == 1 && words[0].prefix) && m.opt.Stop(words[0].folded)
	})
	if len(kept) == 0 {
		return b
	}
	return kept
}

// What leaves cost, about: a search for bytes, words to be cut, patterns to be
// tried on each.
const (
	costBytes   = 1
	costText    = 4
	costWords   = 16
	costPattern = 64
)

// A leaf is something to be found in a value.
type leaf interface {
	in(m *Matcher, v *value) bool
	spans(m *Matcher, v *value, dst []span) []span // where, in order
	cost() int
}

// A span is where a leaf stands: from word to word, from byte to byte.
type span struct {
	first, last int
	start, end  int
	errors      int
}

// leaf compiles what is no And, Or, Not or Attr.
func (m *Matcher) leaf(q query.Node, s scope) (leaf, error) {
	switch q := q.(type) {
	case query.Compare:
		switch q.Op {
		case "=", "<", "<=", ">", ">=":
		default:
			return nil, bad(q, "no such comparison")
		}
		if s.attr == "" {
			return nil, bad(q, "a comparison outside an attribute")
		}
		return comparison{newCompare(q.Op, q.Value)}, nil
	case query.Range:
		if s.attr == "" {
			return nil, bad(q, "a range outside an attribute")
		}
		if q.Low == "" && q.High == "" {
			return nil, bad(q, "a range without ends")
		}
		return comparison{newRange(q.Low, q.High)}, nil
	case query.Near:
		return m.near(q)
	case query.Regexp:
		if q.Text {
			return m.textRegexp(q)
		}
	case query.Fuzzy:
		if q.Phrase {
			return m.textFuzzy(q)
		}
	}
	return m.word(q, false)
}

// A comparison looks at whole values.
type comparison struct{ keys keyRange }

func (c comparison) in(m *Matcher, v *value) (ok bool) {
	ok, m.buf = c.keys.match(m.buf, v.text)
	return ok
}
func (comparison) spans(_ *Matcher, _ *value, dst []span) []span { return dst }
func (comparison) cost() int                                     { return costBytes }
