package view

import (
	"slices"
	"sync"

	"harvest/index"
	"harvest/index/query"
)

// Standing are queries that stand, each under a number: a document is handed to
// all of them at once. Most are never looked at: a query is tried on a document
// only when that has one of its words or values (see guard). Its methods may be called
// concurrently.
type Standing struct {
	how  Manner
	docs func(word string) int

	mu    sync.RWMutex
	all   map[uint32]*standing
	words map[string]*holders    // by the words of guards
	attrs map[string][]*standing // whose guard is that an attribute is there
	spans map[string]*spans      // whose guard is a value of an attribute
	bare  []*standing            // without a guard: tried on all documents
}

// holders are the queries that have a word in their first guard, and how many
// have it in any.
type holders struct {
	anywhere []*standing
	within   map[string][]*standing // by attribute
	uses     int
}

// A standing is one query.
type standing struct {
	id    uint32
	q     query.Node
	guard guard        // the first: who has nothing of it is not tried
	words []string     // of all guards
	also  [][]*holders // of the others: of each, one is there
	match sync.Pool    // of *index.Matcher: one is used by one goroutine
}

// A Manner is how queries are asked.
type Manner struct {
	index.Options      // those of index.Compile
	NoNumbers     bool // words of digits alone are passed over, as by an index without them
}

// NewStanding makes an empty set. docs estimates how many documents have a word,
// for the choice of guards; it may be nil.
func NewStanding(how Manner, docs func(word string) int) *Standing {
	return &Standing{how: how, docs: docs, all: make(map[uint32]*standing), words: make(map[string]*holders), attrs: make(map[string][]*standing), spans: make(map[string]*spans)}
}

// Put has a query stand under a number, in place of one that did. An error
// wraps iofs.ErrInvalid, and changes nothing.
func (s *Standing) Put(id uint32, q query.Node) error {
	m, err := index.Compile(q, s.how.Options)
	if err != nil {
		return err
	}
	if s.how.NoNumbers {
		m.WithoutNumbers()
	}
	g := guarding{stem: s.how.Stem, docs: s.docs, noNumbers: s.how.NoNumbers}
	guards := g.all(q)
	n := &standing{id: id, q: q}
	n.match.New = func() any { return m.Clone() }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
	s.all[id] = n
	if len(guards) == 0 {
		s.bare = append(s.bare, n)
		return nil
	}
	n.guard = guards[0]
	s.use(n, guards)
	for _, k := range n.guard {
		if k.keys != nil {
			s.addSpan(k, n)
			continue
		}
		s.edit(k, func(list []*standing) []*standing { return append(list, n) })
	}
	return nil
}

func (s *Standing) addSpan(k key, n *standing) {
	if s.spans[k.attr] == nil {
		s.spans[k.attr] = new(spans)
	}
	s.spans[k.attr].add(k.keys, n)
}

func (s *Standing) dropSpan(k key, n *standing) {
	if s.spans[k.attr].drop(k.keys, n); s.spans[k.attr].root == nil {
		delete(s.spans, k.attr)
	}
}

// use enters the words of the guards of a query.
func (s *Standing) use(n *standing, guards []guard) {
	for i, g := range guards {
		var of []*holders
		words := 0
		for _, k := range g {
			if k.word == "" {
				continue
			}
			words++
			h := s.words[k.word]
			if h == nil {
				h = &holders{within: make(map[string][]*standing)}
				s.words[k.word] = h
			}
			h.uses++
			n.words = append(n.words, k.word)
			of = append(of, h)
		}
		if i > 0 && words == len(g) { // of an attribute it is not known whether it is there
			n.also = append(n.also, of)
		}
	}
}

// edit changes the queries that have a key in their first guard.
func (s *Standing) edit(k key, f func([]*standing) []*standing) {
	if k.word == "" {
		keep(s.attrs, k.attr, f(s.attrs[k.attr]))
		return
	}
	h := s.words[k.word]
	if k.attr == "" {
		h.anywhere = f(h.anywhere)
	} else {
		keep(h.within, k.attr, f(h.within[k.attr]))
	}
}

func keep(m map[string][]*standing, name string, list []*standing) {
	if len(list) == 0 {
		delete(m, name)
	} else {
		m[name] = list
	}
}

// Drop takes a query away, if there is one under the number.
func (s *Standing) Drop(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

func (s *Standing) drop(id uint32) {
	n := s.all[id]
	if n == nil {
		return
	}
	delete(s.all, id)
	without := func(list []*standing) []*standing {
		return slices.DeleteFunc(list, func(o *standing) bool { return o == n })
	}
	s.bare = without(s.bare)
	for _, k := range n.guard {
		if k.keys != nil {
			s.dropSpan(k, n)
			continue
		}
		s.edit(k, without)
	}
	for _, word := range n.words {
		h := s.words[word]
		if h.uses--; h.uses == 0 {
			delete(s.words, word)
		}
	}
}

// Match gives the numbers of the queries that match a document, in order, and
// how many were tried.
func (s *Standing) Match(fields []index.Field) (ids []uint32, tried int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	maybe := s.candidates(fields)
	for _, n := range maybe {
		m := n.match.Get().(*index.Matcher)
		if m.Match(fields) {
			ids = append(ids, n.id)
		}
		n.match.Put(m)
	}
	slices.Sort(ids)
	return ids, len(maybe)
}

// candidates are the queries that a document is not known not to match.
func (s *Standing) candidates(fields []index.Field) []*standing {
	maybe := slices.Clone(s.bare)
	seen := make(map[*standing]struct{})
	there := make(map[*holders]struct{})
	one := func(n *standing) {
		if _, ok := seen[n]; !ok {
			seen[n] = struct{}{}
			maybe = append(maybe, n)
		}
	}
	add := func(list []*standing) {
		for _, n := range list {
			one(n)
		}
	}
	var buf []byte
	for i := range fields {
		attr := index.Attr(fields[i].Name)
		add(s.attrs[attr])
		if in := s.spans[attr]; in != nil {
			buf = index.Keys(buf, fields[i].Text, func(key []byte) bool {
				in.root.around(key, one)
				return true
			})
		}
		if len(s.words) == 0 {
			continue
		}
		index.Words(fields[i].Text, func(w *index.Word) bool {
			if h := s.holders(w); h != nil {
				there[h] = struct{}{}
				add(h.anywhere)
				add(h.within[attr])
			}
			return true
		})
	}
	return slices.DeleteFunc(maybe, func(n *standing) bool { return !n.may(there) })
}

// may tells whether of each further guard something is there.
func (n *standing) may(there map[*holders]struct{}) bool {
	for _, of := range n.also {
		if !slices.ContainsFunc(of, func(h *holders) bool { _, ok := there[h]; return ok }) {
			return false
		}
	}
	return true
}

func (s *Standing) holders(w *index.Word) *holders {
	switch {
	case w.Whole: // its parts came before it
		return nil
	case s.how.Stem == nil:
		return s.words[string(w.Text)]
	}
	return s.words[stemmed(s.how.Stem, w.Text)]
}

// Len is how many queries stand, and of those how many without a guard, which
// are tried on every document.
func (s *Standing) Len() (all, bare int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all), len(s.bare)
}
