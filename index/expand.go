package index

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"harvest/index/dict"
	"harvest/index/match"
	"harvest/index/posting"
	"harvest/index/query"
)

// Words and patterns of a query become lists of documents here.

// maxTerms is how many words a pattern may stand for if Limits.Terms says
// nothing; their lists take some 80 bytes each while the search lasts.
const maxTerms = 1 << 18

// An expansion is tried against the words of the dictionary.
type expansion struct {
	key    string // which one it is, for finding it again
	fuzzy  bool
	match  *match.Pattern // nil for words of one stem
	stem   string
	prefix []byte // that words begin with
}

// operand is what q stands for, looked up in all parts; nil if there is no
// word in it. The operands of a near have positions.
func (s *searcher) operand(q query.Node, near bool) operand {
	switch q := q.(type) {
	case query.Word:
		return s.word(q)
	case query.Phrase:
		return s.phrase(q.Text)
	case query.Wild:
		return s.pattern(foldPattern(q.Pattern), match.Options{Syntax: match.Wild})
	case query.Regexp:
		if !q.Text {
			return s.pattern(foldRegexp(q.Expr), match.Options{Syntax: match.Regexp})
		}
	case query.Fuzzy:
		if !q.Phrase {
			return s.fuzzy(q)
		}
	case query.Near:
		return s.nearOf(q)
	case query.Or:
		return s.or(q)
	case query.Bag:
		return s.or(query.Or(q))
	}
	if q == nil {
		q = query.All{}
	}
	s.refuse(q, "has no places to be near")
	return nil
}

func (s *searcher) nearOf(q query.Near) operand {
	if q.Distance < 1 || q.Distance >= valueGap {
		s.refuse(q, "has no such distance")
		return nil
	}
	n := &nearOp{distance: uint32(q.Distance), ordered: q.Ordered}
	for _, k := range q.Nodes {
		op := s.operand(k, true)
		if op == nil {
			return nil
		}
		n.ops = append(n.ops, op)
	}
	if len(n.ops) == 1 {
		return n.ops[0]
	}
	if len(n.ops) == 0 {
		return nil
	}
	return n
}

func (s *searcher) or(q query.Or) operand {
	o := new(orOp)
	for _, k := range q {
		if op := s.operand(k, true); op != nil {
			o.ops = append(o.ops, op)
		}
	}
	switch len(o.ops) {
	case 0:
		return nil
	case 1:
		return o.ops[0]
	}
	return o
}

// word looks up a word of the query: with errors allowed or its stem's words
// if the options say so, as a phrase if it is several words.
func (s *searcher) word(q query.Word) operand {
	s.cut.text(q.Text)
	switch {
	case len(s.cut.words) == 0:
		return nil
	case len(s.cut.words) > 1:
		return s.phraseOf()
	case s.cut.words[0].prefix:
		return s.prefix(s.cut.word(0))
	case s.errors(s.cut.word(0)) > 0:
		return s.fuzzy(query.Fuzzy{Text: string(s.cut.word(0)), Errors: s.errors(s.cut.word(0))})
	case s.opt.Stem != nil:
		return s.stem(s.opt.Stem(string(s.cut.word(0))))
	}
	return s.elem(s.cut.word(0))
}

// errors is how many a word of the query allows.
func (s *searcher) errors(word []byte) int {
	return max(0, min(s.opt.Errors, utf8.RuneCount(word)-1, match.MaxErrors))
}

// prefix looks up the words that begin with a Chinese or Japanese character.
func (s *searcher) prefix(char []byte) operand {
	e := s.newElem()
	e.pat = &expansion{key: "prefix " + string(char)}
	for i := range s.view.parts {
		err := s.view.parts[i].terms().Prefix(char, func(term, value []byte, _ int) bool {
			return compound(term) || s.add(e, i, value)
		})
		if err != nil {
			s.fail(s.view.parts[i].Corrupt("%v", err))
		}
	}
	e.sortLists()
	return e
}

func (s *searcher) phrase(text string) operand {
	s.cut.text(text)
	switch len(s.cut.words) {
	case 0:
		return nil
	case 1:
		if w := s.cut.words[0]; !w.prefix {
			return s.elem(s.cut.word(0))
		}
		return s.prefix(s.cut.word(0))
	}
	return s.phraseOf()
}

// phraseOf is the phrase of the words that were cut.
func (s *searcher) phraseOf() operand {
	p := s.phrases.get()
	*p = phraseOp{words: p.words[:0], offset: p.offset[:0]}
	for i, w := range s.cut.words {
		p.offset = append(p.offset, w.offset)
		p.length = w.offset + 1
		if w.prefix {
			p.words = append(p.words, s.prefix(s.cut.word(i)).(*elem))
		} else {
			p.words = append(p.words, s.elem(s.cut.word(i)))
		}
	}
	return p
}

// newElem is an elem of no documents.
func (s *searcher) newElem() *elem {
	e := s.elems.get()
	*e = elem{word: e.word[:0], lists: e.lists[:0], have: e.have[:0]}
	for range s.view.parts {
		if len(e.lists) < cap(e.lists) {
			e.lists = e.lists[:len(e.lists)+1]
			e.lists[len(e.lists)-1] = e.lists[len(e.lists)-1][:0]
		} else {
			e.lists = append(e.lists, nil)
		}
	}
	return e
}

// elem looks one word up.
func (s *searcher) elem(word []byte) *elem {
	e := s.newElem()
	e.word = append(e.word, word...)
	e.terms = 1
	for i := range s.view.parts {
		have := uint32(0)
		if s.view.parts[i].lookup(e.word, &s.info) {
			have = s.info.docs
			e.lists[i] = append(e.lists[i], s.info.lists...)
		}
		e.n += int(have)
		e.have = append(e.have, have)
	}
	return e
}

// add takes one more word of a pattern in part i. It gives false if there are
// too many.
func (s *searcher) add(e *elem, i int, value []byte) bool {
	limit := s.opt.Limits.Terms
	if limit <= 0 {
		limit = maxTerms
	}
	if e.terms >= limit {
		s.limited = fmt.Sprintf("%d words of a pattern", limit)
		return false
	}
	if s.view.parts[i].decode(value, &s.info) {
		e.terms++
		if e.pat.match != nil {
			e.most = max(e.most, int(s.info.docs))
		} else {
			e.n += int(s.info.docs)
		}
		e.lists[i] = append(e.lists[i], s.info.lists...)
	}
	return e.terms%256 != 0 || s.alive()
}

// sortLists puts the lists of an elem in the order of fields.
func (e *elem) sortLists() {
	for _, lists := range e.lists {
		slices.SortStableFunc(lists, func(a, b list) int { return a.field - b.field })
	}
}

// pattern looks up the words that match expr.
func (s *searcher) pattern(expr string, opt match.Options) operand {
	opt.Case = false
	m, err := match.Compile(expr, opt)
	if err != nil {
		s.fail(fmt.Errorf("index: %w", err))
		return nil
	}
	p := &expansion{key: fmt.Sprint(opt.Syntax, opt.Errors, opt.Costs, expr), fuzzy: opt.Errors > 0, match: m, prefix: []byte(m.Prefix())}
	e := s.newElem()
	e.pat = p
	for i := range s.view.parts {
		e.most = 0
		s.matching(p, i, func(term, value []byte) bool { return s.add(e, i, value) })
		e.n += e.most
	}
	e.sortLists()
	return e
}

// matching gives the words of part i that match a pattern. Those are found by
// the automaton, unless the pattern begins with anything and holds a literal:
// searching for that is faster than walking everywhere.
func (s *searcher) matching(p *expansion, i int, yield func(term, value []byte) bool) {
	d := s.view.parts[i].terms()
	check := func(term, value []byte, _ int) bool {
		if _, ok := p.match.Match(term); !ok {
			return true
		}
		return yield(term, value)
	}
	var err error
	if lits := p.match.Required(); !p.fuzzy && len(p.prefix) == 0 && len(lits) > 0 && shortest(lits) >= 2 {
		err = d.Contains(s.cache, lits, check)
	} else {
		err = Accepted(d, s.cache, p.match, p.prefix, check)
	}
	if err != nil {
		s.fail(s.view.parts[i].Corrupt("%v", err))
	}
}

// Accepted gives the words of d that a pattern's automaton accepts: from both ends
// if the pattern has halves.
func Accepted(d *dict.Dict, cache *dict.Cache, p *match.Pattern, prefix []byte, yield func(term, value []byte, ord int) bool) error {
	if h, ok := p.Halves(); ok {
		return d.Near(cache, dict.Halves{
			Whole: p.Automaton(), Front: h.Front, Prefix: []byte(h.Prefix), Tail: []byte(h.Tail), Least: h.Least, Most: h.Most,
		}, yield)
	}
	return d.Walk(cache, p.Automaton(), prefix, yield)
}

func shortest(list []string) int {
	n := len(list[0])
	for _, s := range list[1:] {
		n = min(n, len(s))
	}
	return n
}

// fuzzy looks up the words near another in spelling.
func (s *searcher) fuzzy(q query.Fuzzy) operand {
	if q.Errors < 0 || q.Errors > match.MaxErrors {
		s.refuse(q, "allows no such errors")
		return nil
	}
	return s.pattern(foldPattern(q.Text), match.Options{Errors: q.Errors, Costs: s.opt.Costs, Parts: true})
}

// counter is an operand in a field, nil if it is not there.
func (s *searcher) counter(op operand, field int) counter {
	switch op := op.(type) {
	case *elem:
		if p := s.posts(op, field, false); p != nil {
			return p
		}
	default:
		if s.set.NoPositions {
			return s.without(op, field)
		}
		if sp := s.spanner(op, field); sp != nil {
			return sp
		}
	}
	return nil
}

// posts is an elem in a field, nil if it is not there.
func (s *searcher) posts(e *elem, field int, positions bool) posts {
	lists := e.in(s.run.number, field)
	if positions && len(lists) == 1 && lists[0].kind != posting.Positions { // a compound
		return nil
	}
	switch len(lists) {
	case 0:
		return nil
	case 1:
		if r := s.reader(&lists[0], positions); r != nil {
			return r
		}
		return nil
	}
	if c := s.union(lists, positions); c != nil {
		return c
	}
	return nil
}

// spanner is an operand in a field with its places, nil if it is not there.
func (s *searcher) spanner(op operand, field int) spanner {
	switch op := op.(type) {
	case *elem:
		if p := s.posts(op, field, true); p != nil {
			w := s.run.words.get()
			*w = wordSpans{p, w.pos[:0]}
			return w
		}
	case *phraseOp:
		return s.phraseIn(op, field)
	case *nearOp:
		n := s.run.nears.get()
		n.ops, n.distance, n.ordered = n.ops[:0], op.distance, op.ordered
		for _, o := range op.ops {
			sp := s.spanner(o, field)
			if sp == nil {
				return nil
			}
			n.ops = append(n.ops, sp)
		}
		n.start()
		return n
	case *orOp:
		a := s.run.options.get()
		a.of = a.of[:0]
		for _, o := range op.ops {
			if sp := s.spanner(o, field); sp != nil {
				a.of = append(a.of, sp)
			}
		}
		if len(a.of) > 0 {
			a.start()
			return a
		}
	}
	return nil
}

func (s *searcher) phraseIn(op *phraseOp, field int) spanner {
	p := s.run.phrases.get()
	p.words, p.length = p.words[:0], op.length
	for i, e := range op.words {
		w := s.posts(e, field, true)
		if w == nil {
			return nil
		}
		p.words = append(p.words, phraseWord{w, op.offset[i]})
	}
	p.start()
	return p
}

// A loose counter has the documents that have all words of an operand, for an
// index without positions. As often as they all stand there it counts it.
type loose struct{ docIter }

func (loose) Freq() uint32 { return 1 }

// without is an operand in a field as far as it can be told without positions.
func (s *searcher) without(op operand, field int) counter {
	a := s.run.alls.get()
	a.with, a.without = a.with[:0], a.without[:0]
	put := func(src counter) bool {
		if src != nil {
			a.with = append(a.with, src)
		}
		return src != nil
	}
	switch op := op.(type) {
	case *phraseOp:
		for _, e := range op.words {
			if !put(s.counter(e, field)) {
				return nil
			}
		}
	case *nearOp:
		for _, o := range op.ops {
			if !put(s.counter(o, field)) {
				return nil
			}
		}
	case *orOp:
		b := s.run.anys.get()
		b.at = b.at[:0]
		for _, o := range op.ops {
			if src := s.counter(o, field); src != nil {
				b.at = append(b.at, src)
			}
		}
		if len(b.at) == 0 {
			return nil
		}
		b.start()
		return loose{b}
	}
	a.start()
	return loose{a}
}

// union joins lists into one in memory.
func (s *searcher) union(lists []list, positions bool) *counted {
	c := s.run.counteds.get()
	*c = counted{docs: c.docs[:0], freqs: c.freqs[:0], ends: c.ends[:0], pos: c.pos[:0]}
	n := 0
	for i := range lists {
		n += int(lists[i].docs)
	}
	switch {
	case positions:
		s.unionPositions(c, lists)
	case n <= int(s.run.part.docs)/64+16:
		s.unionSorted(c, lists)
	default:
		s.run.count.begin(s.run.part.docs)
		s.each(lists, false, func(r *reader) { s.run.count.addAll(r) })
		s.run.count.take(c)
	}
	if len(c.docs) == 0 {
		return nil
	}
	return c
}

// each reads lists one after the other.
func (s *searcher) each(lists []list, positions bool, read func(*reader)) {
	n := s.run.readers.n
	for i := range lists {
		if positions && lists[i].kind != posting.Positions {
			continue
		}
		if r := s.reader(&lists[i], positions); r != nil {
			read(r)
			if err := r.Err(); err != nil {
				s.fail(s.run.Corrupt("%v", err))
			}
		}
		s.run.readers.n = n
		if i%256 == 255 && !s.alive() {
			return
		}
	}
}

// unionSorted is for few documents: it sorts them.
func (s *searcher) unionSorted(c *counted, lists []list) {
	s.pairs = s.pairs[:0]
	s.each(lists, false, func(r *reader) {
		for d := r.Doc(); d != posting.End; d = r.Next() {
			s.pairs = append(s.pairs, uint64(d)<<32|uint64(r.Freq()))
		}
	})
	slices.Sort(s.pairs)
	for _, p := range s.pairs {
		d, f := uint32(p>>32), uint32(p)
		if n := len(c.docs); n > 0 && c.docs[n-1] == d {
			c.freqs[n-1] += f
		} else {
			c.docs, c.freqs = append(c.docs, d), append(c.freqs, f)
		}
	}
}

// unionPositions sorts documents with their positions.
func (s *searcher) unionPositions(c *counted, lists []list) {
	s.pairs = s.pairs[:0]
	s.each(lists, true, func(r *reader) {
		for d := r.Doc(); d != posting.End; d = r.Next() {
			s.pos = r.Positions(s.pos[:0])
			for _, p := range s.pos {
				s.pairs = append(s.pairs, uint64(d)<<32|uint64(p))
			}
		}
	})
	slices.Sort(s.pairs)
	for _, p := range s.pairs {
		d := uint32(p >> 32)
		if n := len(c.docs); n == 0 || c.docs[n-1] != d {
			c.docs, c.freqs, c.ends = append(c.docs, d), append(c.freqs, 0), append(c.ends, 0)
		}
		n := len(c.docs) - 1
		c.pos = append(c.pos, uint32(p))
		c.freqs[n]++
		c.ends[n] = uint32(len(c.pos))
	}
}

// A tally counts for all documents of a part at once.
type tally struct {
	set   bitset
	freqs []uint32 // of those in set
}

func (t *tally) begin(docs uint32) {
	n := int(docs+63) / 64
	t.set = slices.Grow(t.set[:0], n)[:n]
	clear(t.set)
	t.freqs = slices.Grow(t.freqs[:0], int(docs))[:docs]
}

func (t *tally) add(d, freq uint32) {
	if t.set.has(d) {
		t.freqs[d] += freq
		return
	}
	t.set.add(d)
	t.freqs[d] = freq
}

func (t *tally) addAll(r *reader) {
	for r.Doc() != posting.End {
		docs, freqs := r.Block()
		if freqs == nil {
			for _, d := range docs {
				t.add(d, 1)
			}
		} else {
			for i, d := range docs {
				t.add(d, freqs[i])
			}
		}
		r.NextBlock()
	}
}

// mark is addAll without counts.
func (t *tally) mark(r *reader) {
	for r.Doc() != posting.End {
		docs, _ := r.Block()
		for _, d := range docs {
			t.set.add(d)
		}
		r.NextBlock()
	}
}

// take moves what was counted to c.
func (t *tally) take(c *counted) {
	for d := t.set.next(0); d != posting.End; d = t.set.next(d + 1) {
		c.docs, c.freqs = append(c.docs, d), append(c.freqs, t.freqs[d])
	}
}

// keysIter is the documents with a key in a range, or with the attribute.
func (s *searcher) keysIter(n *node) docIter {
	d, err := s.run.keys()
	if err != nil {
		s.fail(err)
		return noneIter{}
	}
	s.lists = s.lists[:0]
	take := func(value []byte) {
		if s.run.decode(value, &s.info) {
			s.lists = append(s.lists, s.info.lists...)
		}
	}
	if n.keys.kind == keyAny {
		if value, _, ok := d.Get(appendKey(nil, n.attr, keyAny)); ok {
			take(value)
		}
		return s.anyOf(s.lists)
	}
	if it, ok := s.between(d, n); ok || !s.alive() {
		return cmp.Or[docIter](it, noneIter{})
	}
	prefix := appendKey(nil, n.attr)
	c := d.Cursor()
	for c.Seek(append(bytes.Clone(prefix), n.keys.low...)); c.Next(); {
		key, ok := bytes.CutPrefix(c.Term(), prefix)
		if !ok || n.keys.behind(key) {
			break
		}
		if n.keys.has(key) {
			take(c.Value())
		}
		if len(s.lists)%256 == 255 && !s.alive() {
			break
		}
	}
	if err := c.Err(); err != nil {
		s.fail(s.run.Corrupt("%v", err))
	}
	return s.anyOf(s.lists)
}

// anyOf joins lists of documents: as a set of bits if they are many.
func (s *searcher) anyOf(lists []list) docIter {
	switch len(lists) {
	case 0:
		return noneIter{}
	case 1:
		if r := s.reader(&lists[0], false); r != nil {
			return r
		}
		return noneIter{}
	}
	n := 0
	for i := range lists {
		n += int(lists[i].docs)
	}
	if n < int(s.run.part.docs)/8 {
		if c := s.union(lists, false); c != nil {
			return c
		}
		return noneIter{}
	}
	b := s.run.empty()
	s.each(lists, false, func(r *reader) {
		for r.Doc() != posting.End {
			docs, _ := r.Block()
			for _, d := range docs {
				b.set.add(d)
			}
			r.NextBlock()
		}
	})
	b.settle()
	return b
}

// foldPattern folds what is to be matched with folded words.
func foldPattern(text string) string { return string(Fold(nil, text)) }

// foldRegexp folds the characters of a regular expression that are not ASCII;
// the others say what kind of thing they are by their case, and match both.
func foldRegexp(expr string) string {
	var out []byte
	for i := 0; i < len(expr); {
		n := i
		for n < len(expr) && (expr[n] >= utf8.RuneSelf) == (expr[i] >= utf8.RuneSelf) {
			n++
		}
		if expr[i] < utf8.RuneSelf {
			out = append(out, expr[i:n]...)
		} else {
			out = Fold(out, expr[i:n])
		}
		i = n
	}
	return string(out)
}
