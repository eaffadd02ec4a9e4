package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"harvest/index"
	"harvest/index/query"
)

// A model is what an engine should hold, and says by the plainest means what
// it should find: it goes through all documents. It is also the Source.
type model struct {
	mu        sync.Mutex // a search under way asks for text while documents change
	docs      map[index.ID]*document
	noNumbers bool
}

// A document is one as it was put, its values cut into words.
type document struct {
	index.Doc
	values []value
	length int // words that have places
}

type value struct {
	attr   string
	text   string
	words  []word
	places []word // those of words that have a place: the one at 3 is places[3]
}

// A word of a value or a query, as index.Words says.
type word struct {
	text  string // folded
	plain string // the same in the case that it is written
	pos   int
	whole bool
	cjk   bool
	start int
	end   int
}

func newModel() *model { return &model{docs: make(map[index.ID]*document)} }

func cut(text string) (out []word) {
	index.Words(text, func(w *index.Word) bool {
		out = append(out, word{string(w.Text), unaccented(text[w.Start:w.End]), w.Pos, w.Whole, w.CJK, w.Start, w.End})
		return true
	})
	return out
}

func (m *model) put(d index.Doc) {
	doc := &document{Doc: d}
	for _, f := range d.Fields {
		v := value{attr: index.Attr(f.Name), text: f.Text, words: cut(f.Text)}
		if m.noNumbers {
			for i := range v.words {
				v.words[i].forgetNumber()
			}
		}
		v.places = slices.DeleteFunc(slices.Clone(v.words), func(w word) bool { return w.whole })
		doc.length += len(v.places)
		doc.values = append(doc.values, v)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[d.ID] = doc
}

func (m *model) remove(id index.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.docs, id)
}

// Text makes the model a Source. It gives the last first, since any order is allowed.
func (m *model) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	for i := len(ids) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.mu.Lock()
		d := m.docs[ids[i]]
		m.mu.Unlock()
		if d != nil && !yield(i, d.Fields) {
			return nil
		}
	}
	return nil
}

// forgetNumber leaves of a number only the place.
func (w *word) forgetNumber() {
	if strings.Trim(w.text, "0123456789_.,:;'") == "" {
		w.text, w.plain = "", ""
	}
}

// sorted are the documents by ID.
func (m *model) sorted() []*document {
	return slices.SortedFunc(maps.Values(m.docs), func(a, b *document) int { return slices.Compare(a.ID[:], b.ID[:]) })
}

// find gives the documents that q matches, by ID.
func (m *model) find(q query.Node, opt index.Options) (out []*document) {
	e := &evaluator{m, opt, make(map[leafKey]finder)}
	for _, d := range m.sorted() {
		if e.match(q, "", d) {
			out = append(out, d)
		}
	}
	return out
}

// An evaluator has the finders of a query's leaves.
type evaluator struct {
	*model
	opt     index.Options
	finders map[leafKey]finder
}

type leafKey struct {
	form string
	attr string
}

// looks tells whether a query within attr, or none, looks into an attribute.
func (e *evaluator) looks(attr, into string) bool {
	return attr == into || attr == "" && e.opt.Weigh(into) > 0
}

func (e *evaluator) match(q query.Node, attr string, d *document) bool {
	any := func(nodes []query.Node) bool {
		return slices.ContainsFunc(nodes, func(n query.Node) bool { return e.match(n, attr, d) })
	}
	switch q := q.(type) {
	case query.All:
		return attr == "" || slices.ContainsFunc(d.values, func(v value) bool { return v.attr == attr })
	case query.Attr:
		return e.match(q.Value, index.Attr(q.Name), d)
	case query.Not:
		return !e.match(q.Node, attr, d)
	case query.And:
		return !slices.ContainsFunc(q, func(n query.Node) bool { return !e.match(n, attr, d) })
	case query.Or:
		return any(q)
	case query.Bag:
		return any(e.members(q))
	case query.Compare, query.Range:
		return slices.ContainsFunc(d.values, func(v value) bool { return v.attr == attr && satisfies(v.text, q) })
	}
	f := e.finder(q, attr)
	return slices.ContainsFunc(d.values, func(v value) bool { return e.looks(attr, v.attr) && len(f(&v)) > 0 })
}

// members are the nodes of a bag that count: without its stop words, unless
// it has no others.
func (e *evaluator) members(b query.Bag) []query.Node {
	if e.opt.Stop == nil {
		return b
	}
	kept := slices.DeleteFunc(slices.Clone(b), func(n query.Node) bool {
		w, ok := n.(query.Word)
		ws := cut(w.Text)
		return ok && len(ws) == 1 && e.opt.Stop(ws[0].text)
	})
	if len(kept) == 0 {
		return b
	}
	return kept
}

// all tells whether a document has all members of a bag.
func (e *evaluator) all(b query.Bag, d *document) bool {
	return e.match(query.And(e.members(b)), "", d)
}

// A finder gives the places where a leaf of the query stands in a value.
type finder func(v *value) []span

// A span is the places of a leaf's first and last word.
type span struct{ first, last int }

// nowhere is the place of what has none: a compound, a piece of a line.
var nowhere = span{-1, -1}

// finder is that of a leaf, or of an operand of a near.
func (e *evaluator) finder(q query.Node, attr string) finder {
	k := leafKey{fmt.Sprintf("%T %s", q, q), attr}
	f := e.finders[k]
	if f == nil {
		f = e.newFinder(q, attr)
		e.finders[k] = f
	}
	return f
}

func (e *evaluator) newFinder(q query.Node, attr string) finder {
	switch q := q.(type) {
	case query.Word:
		return e.word(q.Text)
	case query.Phrase:
		return e.phrase(q.Text)
	case query.Wild, query.Regexp, query.Fuzzy:
		return e.pattern(q, attr)
	case query.Near:
		return e.near(q, attr)
	case query.Or:
		return e.either(q, attr)
	}
	panic("query " + q.String())
}

// lines are those of a text as a Scanner cuts it.
func lines(text string) (out []string) {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, len(text)+2)
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}
