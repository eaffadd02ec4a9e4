package view

import (
	"bytes"
	"cmp"
	"slices"

	"harvest/index"
	"harvest/index/query"
)

// A key is something a document may have: a word, a word within an attribute,
// a value of an attribute within a range, or an attribute with whatever in it.
type key struct {
	attr string          // "": in any
	word string          // "": the attribute is there
	keys *index.KeyRange // nil: with any value
}

// A guard are keys of which a document has at least one if a query matches it.
// Nil says nothing of the document.
type guard []key

// guarding finds guards of queries.
type guarding struct {
	stem func(string) string   // or nil
	docs func(word string) int // how many documents have a word, or nil

	noNumbers bool // words of digits alone say nothing
}

// all gives guards of a query, of which a document that it matches has each, the
// one that most documents are without first.
func (g *guarding) all(q query.Node) (all []guard) {
	nodes := []query.Node{q}
	if and, ok := q.(query.And); ok {
		nodes = and
	}
	for _, n := range nodes {
		if own := g.of(n, ""); own != nil {
			all = append(all, unique(own))
		}
	}
	slices.SortStableFunc(all, func(a, b guard) int { return cmp.Compare(g.cost(a), g.cost(b)) })
	return all
}

func unique(g guard) guard {
	var once guard
	for _, k := range g {
		if !slices.Contains(once, k) {
			once = append(once, k)
		}
	}
	return once
}

// of gives the guard of a query that most documents are without.
func (g *guarding) of(q query.Node, attr string) guard {
	switch q := q.(type) {
	case query.All:
		return presence(attr)
	case query.Word:
		return g.text(q.Text, attr)
	case query.Phrase:
		return g.text(q.Text, attr)
	case query.Attr:
		name := index.Attr(q.Name)
		if own := g.of(q.Value, name); own != nil {
			return own
		}
		return presence(name)
	case query.And:
		return g.best(q, attr)
	case query.Near:
		return g.best(q.Nodes, attr)
	case query.Or:
		return g.any(q, attr)
	case query.Bag:
		return g.any(q, attr)
	case query.Compare, query.Range:
		if r, err := index.NewKeyRange(q); err == nil && attr != "" {
			return guard{{attr: attr, keys: &r}}
		}
		return presence(attr)
	}
	return nil // Not, and patterns: nothing that has to be there as it is
}

func presence(attr string) guard {
	if attr == "" {
		return nil
	}
	return guard{{attr: attr}}
}

// text is the guard of a text: the rarest of its words.
func (g *guarding) text(text, attr string) guard {
	var all []guard
	index.Words(text, func(w *index.Word) bool {
		if !w.Whole && !(g.noNumbers && digits(w.Text)) { // its parts came before it
			all = append(all, guard{{attr: attr, word: stemmed(g.stem, w.Text)}})
		}
		return true
	})
	return g.rarest(all)
}

func digits(word []byte) bool {
	return !slices.ContainsFunc(word, func(c byte) bool { return c < '0' || c > '9' })
}

// stemmed is what a word of a document is looked up by; never "".
func stemmed(stem func(string) string, word []byte) string {
	if stem != nil {
		if s := stem(string(word)); s != "" {
			return s
		}
	}
	return string(word)
}

// best is the guard of what matches only if all of the nodes do.
func (g *guarding) best(nodes []query.Node, attr string) guard {
	var all []guard
	for _, n := range nodes {
		if own := g.of(n, attr); own != nil {
			all = append(all, own)
		}
	}
	return g.rarest(all)
}

// any is the guard of what matches if one of the nodes does.
func (g *guarding) any(nodes []query.Node, attr string) (all guard) {
	for _, n := range nodes {
		own := g.of(n, attr)
		if own == nil {
			return nil
		}
		all = append(all, own...)
	}
	return all
}

// rarest is the guard that the fewest documents have, as far as is known.
func (g *guarding) rarest(all []guard) (least guard) {
	cost := 0
	for _, own := range all {
		if c := g.cost(own); least == nil || c < cost {
			least, cost = own, c
		}
	}
	return least
}

// What is taken for the number of documents with a word, where nobody counts,
// and with an attribute.
const (
	unknownWord = 1 << 16
	oneValue    = 1 << 18
	someValues  = 1 << 22
	manyValues  = 1 << 26
	anyValue    = 1 << 30
)

// width is what is taken for the number of documents with a value in a range.
func width(keys *index.KeyRange) int {
	switch first, last := keys.First(), keys.Last(); {
	case bytes.Equal(first, last):
		return oneValue
	case len(first) == 1 || len(last) == 1: // open
		return manyValues
	}
	return someValues
}

func (g *guarding) cost(own guard) (cost int) {
	for _, k := range own {
		switch {
		case k.keys != nil:
			cost += width(k.keys)
		case k.word == "":
			cost += anyValue
		case g.docs != nil:
			cost += g.docs(k.word)
		default:
			cost += unknownWord / (1 + len(k.word)) // long words are rarer
		}
	}
	return cost
}
