package block

import (
	"context"
	"fmt"
	iofs "io/fs"
	"unicode/utf8"

	"harvest/index"
	"harvest/index/query"
)

// A bound is what the index knows of a query in a part: the documents that
// match for sure, and those that may, which are these and more. It is never
// known that a document of a block does not match, so NOT makes of those that
// may not the sure ones, and of the sure ones those that cannot.
type bound struct{ must, may set }

// An evaluator bounds queries in one part.
type evaluator struct {
	ctx   context.Context
	s     *search
	p     *part
	words listReader
	keys  listReader
	li    list
	key   []byte
	free  []set
	err   error
}

func (s *search) evaluator(p *part) *evaluator {
	fine := p.segment.fine()
	return &evaluator{ctx: s.ctx, s: s, p: p, words: p.terms.lists.reader(&p.segment.layout), keys: p.keys.lists.reader(fine)}
}

// empty gives a set without documents.
func (e *evaluator) empty() set {
	if n := len(e.free); n > 0 {
		s := e.free[n-1]
		e.free = e.free[:n-1]
		s.clear()
		return s
	}
	return newSet(e.p.segment.docs)
}

func (e *evaluator) all() set {
	s := e.empty()
	s.addRange(0, e.p.segment.docs)
	return s
}

func (e *evaluator) drop(sets ...set) { e.free = append(e.free, sets...) }

func (e *evaluator) nothing() bound { return bound{e.empty(), e.empty()} }

func (e *evaluator) fail(err error) bound {
	if e.err == nil {
		e.err = err
	}
	return e.nothing()
}

// live is the bound of q among the documents that are not gone.
func (e *evaluator) live(q query.Node) (bound, error) {
	b := e.bound(q, "")
	if e.p.gone != nil {
		b.must.without(e.p.gone.Bits())
		b.may.without(e.p.gone.Bits())
	}
	if e.err == nil {
		e.err = e.ctx.Err()
	}
	return b, e.err
}

// bound is that of a node within an attribute, or "" for those that have
// weight.
func (e *evaluator) bound(q query.Node, attr string) bound {
	if e.err != nil {
		return e.nothing()
	}
	switch q := q.(type) {
	case query.All:
		return e.having(attr)
	case query.Attr:
		return e.bound(q.Value, index.Attr(q.Name))
	case query.And:
		return e.and(q, attr)
	case query.Or:
		return e.or(q, attr)
	case query.Bag:
		return e.bag(q, attr)
	case query.Not:
		b := e.bound(q.Node, attr)
		must, may := e.all(), e.all()
		must.without(b.may)
		may.without(b.must)
		e.drop(b.must, b.may)
		return bound{must, may}
	case query.Near:
		b := e.and(q.Nodes, attr)
		b.must.clear()
		return b
	case query.Compare:
		return e.compare(q, attr)
	case query.Range:
		return e.compare(q, attr)
	}
	return e.leaf(q, attr)
}

func (e *evaluator) leaf(q query.Node, attr string) bound {
	switch q := q.(type) {
	case query.Word:
		return e.word(q.Text, attr)
	case query.Phrase:
		return e.phrase(q.Text, attr)
	case query.Wild, query.Regexp, query.Fuzzy:
		return e.pattern(q, attr)
	}
	return e.fail(fmt.Errorf("index/block: query %v: %w", q, iofs.ErrInvalid))
}

// having is the documents that have an attribute; "": all.
func (e *evaluator) having(attr string) bound {
	if attr == "" {
		return bound{e.all(), e.all()}
	}
	b := e.nothing()
	e.addKey(attributeKey(attr), b.must)
	b.may.or(b.must)
	return b
}

func (e *evaluator) and(nodes []query.Node, attr string) bound {
	b := bound{e.all(), e.all()}
	for _, q := range nodes {
		c := e.bound(q, attr)
		b.must.and(c.must)
		b.may.and(c.may)
		e.drop(c.must, c.may)
	}
	return b
}

func (e *evaluator) or(nodes []query.Node, attr string) bound {
	b := e.nothing()
	for _, q := range nodes {
		c := e.bound(q, attr)
		b.must.or(c.must)
		b.may.or(c.may)
		e.drop(c.must, c.may)
	}
	return b
}

// bag is an or without stop words.
func (e *evaluator) bag(nodes []query.Node, attr string) bound {
	var left []query.Node
	for _, q := range nodes {
		if w, ok := q.(query.Word); !ok || !e.s.stopped(w) {
			left = append(left, q)
		}
	}
	if len(left) == 0 {
		left = nodes
	}
	return e.or(left, attr)
}

// stopped tells whether a word is one term and a stop word.
func (s *search) stopped(w query.Word) bool {
	if s.opt.Stop == nil {
		return false
	}
	t := s.terms(w.Text)
	return len(t.parts) == 1 && s.opt.Stop(t.parts[0])
}

// Terms are what a word or phrase of a query comes down to.
type terms struct {
	parts []string
	cjk   []bool
}

// terms cuts a text of the query; it is kept.
func (s *search) terms(text string) *terms {
	if t := s.cut[text]; t != nil {
		return t
	}
	t := new(terms)
	index.Words(text, func(w *index.Word) bool {
		if !w.Whole {
			t.parts = append(t.parts, string(w.Text))
			t.cjk = append(t.cjk, w.CJK)
		}
		return true
	})
	s.cut[text] = t
	return t
}

// begins tells whether term i stands for all that it begins: the last character
// of Chinese or Japanese.
func (t *terms) begins(i int) bool {
	return t.cjk[i] && i == len(t.parts)-1 && utf8.RuneCountInString(t.parts[i]) == 1
}

// single tells whether the terms are one word with a place in the dictionary.
func (t *terms) single() bool { return len(t.parts) == 1 && !t.cjk[0] }

func (e *evaluator) word(text, attr string) bound {
	t := e.s.terms(text)
	one := t.single()
	switch {
	case len(t.parts) == 0:
		return e.nothing()
	case one && e.s.opt.Errors > 0:
		return e.pattern(query.Fuzzy{Text: t.parts[0], Errors: min(e.s.opt.Errors, utf8.RuneCountInString(t.parts[0])-1)}, attr)
	case one && e.s.opt.Stem != nil:
		return e.stemmed(t.parts[0], attr)
	case one:
		return e.term(t.parts[0], attr)
	}
	return e.together(t, attr)
}

func (e *evaluator) phrase(text, attr string) bound {
	t := e.s.terms(text)
	switch {
	case len(t.parts) == 0:
		return e.nothing()
	case t.single():
		return e.term(t.parts[0], attr)
	}
	return e.together(t, attr)
}

// together bounds words that stand next to each other by all of them.
func (e *evaluator) together(t *terms, attr string) bound {
	b := bound{e.empty(), e.all()}
	for i, w := range t.parts {
		var c bound
		switch {
		case t.cjk[i] && e.s.grain == Tiny:
			c = e.characters(w, attr)
		case t.begins(i):
			c = e.beginning(w, attr)
		default:
			c = e.term(w, attr)
		}
		b.may.and(c.may)
		e.drop(c.must, c.may)
	}
	e.adjoining(t, b.may)
	return b
}

// characters bounds those of a word of Chinese or Japanese.
func (e *evaluator) characters(word, attr string) bound {
	b := bound{e.empty(), e.all()}
	for _, r := range word {
		c := e.term(string(cjkMark)+string(r), attr)
		b.may.and(c.may)
		e.drop(c.must, c.may)
	}
	return b
}

// term bounds a word of the dictionary.
func (e *evaluator) term(word, attr string) bound {
	if e.s.set.NoNumbers && isNumber([]byte(word)) {
		return e.nothing()
	}
	f := e.find(attr)
	term := address([]byte(word), &e.key)
	f.add(string(term))
	return f.bound(hashed([]byte(word)))
}

// beginning bounds the words that begin with prefix.
func (e *evaluator) beginning(prefix, attr string) bound {
	f := e.find(attr)
	err := e.p.terms.dict.Prefix([]byte(prefix), func(term, _ []byte, ord int) bool {
		f.addAt(string(term), ord)
		return true
	})
	if err != nil {
		return e.fail(e.p.Corrupt("%v", err))
	}
	return f.bound(false)
}

// A finding gathers the documents of words, any of them, that stand in an
// attribute, or in one that has weight.
type finding struct {
	e     *evaluator
	attr  string
	b     bound
	names []string // attributes whose own words count
	own   set      // documents that have one of the words in short values of those
}

func (e *evaluator) find(attr string) *finding {
	f := &finding{e: e, attr: attr, b: e.nothing()}
	if attr != "" {
		f.names = []string{attr}
	} else if e.s.opt.Weight != nil {
		for _, a := range e.p.attrs {
			if e.s.opt.Weight(a) <= 0 {
				f.names = append(f.names, a)
			}
		}
	}
	if len(f.names) > 0 {
		f.own = e.empty()
	}
	return f
}

func (f *finding) add(term string) {
	if _, ord, ok := f.e.p.terms.dict.Get([]byte(term)); ok {
		f.addAt(term, ord)
	}
}

// addAt adds the documents of the word with an ordinal.
func (f *finding) addAt(term string, ord int) {
	e := f.e
	e.s.counts.words++
	if !e.words.list(ord, &e.li) {
		e.fail(e.p.Corrupt("list of %q", term))
		return
	}
	if e.li.blocks {
		e.s.counts.blocks += len(e.li.places)
	}
	e.p.documents(&e.li, f.b.may)
	e.p.certain(&e.li, f.b.must)
	for _, a := range f.names {
		e.key = append(append(e.key[:0], prefixKey(wordKind, a)...), term...)
		e.addKey(e.key, f.own)
	}
}

// bound gives what was gathered. With doubt, a word may be another.
//
// A short value's words are listed by attribute; those of the others may stand
// in any long value there is. So within an attribute it is sure that a word
// stands there if it is listed, and possible if the attribute has a long value.
// Without, the attributes of no weight matter: a word is sure to stand in
// another if it is not listed for them and they have no long value.
func (f *finding) bound(doubt bool) bound {
	e, b := f.e, f.b
	if len(f.names) > 0 {
		long := e.empty()
		for _, a := range f.names {
			e.addKey(prefixKey(longKind, a), long)
		}
		if f.attr != "" {
			b.may.and(long)
			b.may.or(f.own)
			copy(b.must, f.own)
		} else {
			b.must.without(long)
			b.must.without(f.own)
		}
		e.drop(long, f.own)
	}
	if doubt || e.s.opt.Case {
		b.must.clear()
	}
	return b
}

// addKey adds the documents of a key to a set.
func (e *evaluator) addKey(key []byte, to set) {
	if _, ord, ok := e.p.keys.dict.Get(key); ok {
		e.addKeyAt(key, ord, to)
	}
}

func (e *evaluator) addKeyAt(key []byte, ord int, to set) {
	if !e.keys.list(ord, &e.li) {
		e.fail(e.p.Corrupt("list of key %q", key))
		return
	}
	for _, doc := range e.li.places {
		to.add(doc)
	}
}
