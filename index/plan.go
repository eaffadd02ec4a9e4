package index

import (
	"bytes"
	"fmt"
	iofs "io/fs"
	"slices"

	"harvest/index/query"
)

// An op is what a node of the plan does.
type op uint8

const (
	opAnd op = iota
	opOr
	opNot
	opAll
	opLeaf // words: scores
	opKeys // a range of the values of an attribute
	opText // decided on the text alone
)

// A node is a node of the query, ready to run over any part.
type node struct {
	op   op
	kids []*node
	leaf *clause

	attr string     // of opKeys
	keys keyRange   // its kind 0: all documents with the attribute
	text query.Node // of opText
}

// A clause is a leaf of the query: a word, phrase, near or pattern of the query, with the attribute it
// is asked of. What comes twice is one leaf.
type clause struct {
	node   query.Node
	attr   string // "" for any that has a weight
	not    bool   // under a not: matches, does not score
	vague  bool   // documents of its iter may fail to match
	op     operand
	idf    float64
	boost  float64
	extra  bool   // scores, and matches nothing
	why    string // it is there, if it is extra
	scored bool   // by an iter of the current part
}

func (l *clause) factor(weight float64) float64 { return weight * l.idf * (bm25K1 + 1) * l.boost }

// form is the leaf as the query has it.
func (l *clause) form() string {
	if l.attr != "" {
		return query.Attr{Name: l.attr, Value: l.node}.String()
	}
	return l.node.String()
}

// An operand is what has places in documents: *elem, *phraseOp, *nearOp, *orOp.
type operand interface {
	// fields appends the fields of part i it may stand in.
	fields(dst []int, i int) []int

	// idf is the rarity of it among all documents, docs in how many it stands
	// at most.
	idf(all *census) float64
	docs(all int) int
}

// An elem is one word, or the words of a pattern, of which any will do.
type elem struct {
	word  []byte     // folded; of a pattern nothing
	pat   *expansion // nil for one word
	n     int        // documents with it; of a stem the sum over its words, of a pattern those of the most frequent
	most  int        // those of a pattern's most frequent word in the part at hand
	terms int        // words it stands for
	lists [][]list   // by part, by field
	have  []uint32   // by part, of one word: documents with it
}

type phraseOp struct {
	words  []*elem
	offset []uint32
	length uint32
}

type nearOp struct {
	ops      []operand
	distance uint32
	ordered  bool
}

type orOp struct{ ops []operand }

func (e *elem) fields(dst []int, i int) []int {
	for j := range e.lists[i] {
		if f := e.lists[i][j].field; j == 0 || f != dst[len(dst)-1] {
			dst = append(dst, f)
		}
	}
	return dst
}

// in are the lists of a field.
func (e *elem) in(i, field int) []list {
	lists := e.lists[i]
	if len(lists) > 16 {
		n, _ := slices.BinarySearchFunc(lists, field, func(l list, f int) int { return l.field - f })
		lists = lists[n:]
	}
	for len(lists) > 0 && lists[0].field < field {
		lists = lists[1:]
	}
	n := 0
	for n < len(lists) && lists[n].field == field {
		n++
	}
	return lists[:n]
}

func (e *elem) docs(all int) int        { return min(e.n, all) }
func (e *elem) idf(all *census) float64 { return all.idf(e) }

func (p *phraseOp) fields(dst []int, i int) []int { return p.words[0].fields(dst, i) }

func (p *phraseOp) idf(all *census) (sum float64) {
	for _, e := range p.words {
		sum += e.idf(all)
	}
	return sum
}

func (p *phraseOp) docs(all int) int {
	for _, e := range p.words {
		all = min(all, e.n)
	}
	return all
}

func (n *nearOp) fields(dst []int, i int) []int { return n.ops[0].fields(dst, i) }

func (n *nearOp) idf(all *census) (sum float64) {
	for _, o := range n.ops {
		sum += o.idf(all)
	}
	return sum
}

func (n *nearOp) docs(all int) int {
	for _, o := range n.ops {
		all = min(all, o.docs(all))
	}
	return all
}

func (o *orOp) fields(dst []int, i int) []int {
	for _, op := range o.ops {
		dst = op.fields(dst, i)
	}
	return dst
}

func (o *orOp) idf(all *census) float64 { return idf(all.docs, o.docs(all.docs)) }

func (o *orOp) docs(all int) (sum int) {
	for _, op := range o.ops {
		sum += op.docs(all)
	}
	return min(sum, all)
}

// compile makes the plan of q within an attribute, under a not or not.
func (s *searcher) compile(q query.Node, attr string, not bool) *node {
	switch q := q.(type) {
	case query.All:
		if attr == "" {
			return s.node(opAll)
		}
		n := s.node(opKeys)
		n.attr = attr
		return n
	case query.Attr:
		return s.compile(q.Value, Attr(q.Name), not)
	case query.And:
		return s.join(opAnd, q, attr, not)
	case query.Or:
		return s.join(opOr, q, attr, not)
	case query.Bag:
		return s.join(opOr, q, attr, not)
	case query.Not:
		n := s.node(opNot)
		n.kids = append(n.kids, s.compile(q.Node, attr, true))
		return n
	case query.Compare:
		if !slices.Contains(comparisons[:], q.Op) || attr == "" {
			return s.refuse(q, "does not compare")
		}
		n := s.node(opKeys)
		n.attr, n.keys = attr, newCompare(q.Op, q.Value)
		return n
	case query.Range:
		if q.Low+q.High == "" || attr == "" {
			return s.refuse(q, "is no range of an attribute")
		}
		n := s.node(opKeys)
		n.attr, n.keys = attr, newRange(q.Low, q.High)
		return n
	case nil:
		return s.refuse(query.All{}, "lacks a node")
	}
	if s.textual(q) {
		if !not {
			s.besides(q, attr, true)
		}
		return s.textNode(q, attr)
	}
	if !not {
		s.besides(q, attr, false)
	}
	return s.leaf(q, attr, not)
}

var comparisons = [...]string{"=", "<", "<=", ">", ">="}

// refuse ends the search.
func (s *searcher) refuse(q query.Node, what string) *node {
	s.fail(fmt.Errorf("index: query %v: %s: %w", q, what, iofs.ErrInvalid))
	return s.node(opOr)
}

// textual tells whether the words of the index do not even tell which
// documents may match: patterns of text and, where case counts, of words,
// since folding can make two characters of one.
func (s *searcher) textual(q query.Node) bool {
	switch q := q.(type) {
	case query.Regexp:
		return q.Text || s.opt.Case
	case query.Fuzzy:
		return q.Phrase || s.opt.Case
	case query.Wild:
		return s.opt.Case
	case query.Word:
		return s.opt.Case && s.opt.Errors > 0
	case query.Near:
		return s.opt.Case && slices.ContainsFunc(q.Nodes, s.textual)
	case query.Or:
		return s.opt.Case && slices.ContainsFunc(q, s.textual)
	}
	return false
}

func (s *searcher) join(o op, kids []query.Node, attr string, not bool) *node {
	n := s.node(o)
	for _, q := range kids {
		n.kids = append(n.kids, s.compile(q, attr, not))
	}
	return n
}

func (s *searcher) node(o op) *node {
	n := s.nodes.get()
	*n = node{op: o, kids: n.kids[:0]}
	return n
}

// textNode is what only the text can tell.
func (s *searcher) textNode(q query.Node, attr string) *node {
	s.vague = true
	n := s.node(opText)
	n.text, n.attr = q, attr
	return n
}

// leaf looks up what q stands for. What has no word in it matches nothing.
func (s *searcher) leaf(q query.Node, attr string, not bool) *node {
	op := s.operand(q, false)
	if op == nil {
		return s.node(opOr)
	}
	n := s.node(opLeaf)
	for _, l := range s.leaves {
		if l.attr == attr && l.not == not && sameOperand(l.op, op) {
			n.leaf = l
			l.boost += s.again
			return n
		}
	}
	l := s.leafs.get()
	*l = clause{node: q, attr: attr, not: not, op: op, boost: 1}
	l.vague = s.opt.Case || s.set.NoPositions && positional(op)
	s.vague = s.vague || l.vague
	l.idf = op.idf(&s.census)
	s.leaves = append(s.leaves, l)
	n.leaf = l
	return n
}

// positional tells whether positions decide of op.
func positional(op operand) bool {
	_, word := op.(*elem)
	return !word
}

// sameOperand tells whether both stand for the same words.
func sameOperand(a, b operand) bool {
	switch a := a.(type) {
	case *elem:
		b, ok := b.(*elem)
		return ok && a.same(b)
	case *phraseOp:
		b, ok := b.(*phraseOp)
		return ok && slices.Equal(a.offset, b.offset) && slices.EqualFunc(a.words, b.words, (*elem).same)
	case *nearOp:
		b, ok := b.(*nearOp)
		return ok && a.distance == b.distance && a.ordered == b.ordered && slices.EqualFunc(a.ops, b.ops, sameOperand)
	case *orOp:
		b, ok := b.(*orOp)
		return ok && slices.EqualFunc(a.ops, b.ops, sameOperand)
	}
	return false
}

func (e *elem) same(f *elem) bool {
	if e.pat == nil || f.pat == nil {
		return e.pat == f.pat && bytes.Equal(e.word, f.word)
	}
	return e.pat.key == f.pat.key
}
