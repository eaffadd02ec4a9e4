package view

import (
	"bytes"
	"math/rand/v2"

	"harvest/index"
)

// Spans are ranges of keys that queries ask an attribute for: a treap by where
// they begin, in which each node knows the last end below it. So those around
// a key are found with a look at little else, and they come and go at the cost of
// a path.
type spans struct{ root *spanNode }

type spanNode struct {
	keys        index.KeyRange
	of          *standing
	end         []byte // the last below, this one counted in
	rank        uint32 // no less than those below
	left, right *spanNode
}

func (n *spanNode) compare(keys *index.KeyRange, of *standing) int {
	if c := bytes.Compare(keys.First(), n.keys.First()); c != 0 {
		return c
	}
	if c := bytes.Compare(keys.Last(), n.keys.Last()); c != 0 {
		return c
	}
	return int(of.id) - int(n.of.id)
}

// update makes end true again.
func (n *spanNode) update() *spanNode {
	n.end = n.keys.Last()
	for _, c := range []*spanNode{n.left, n.right} {
		if c != nil && bytes.Compare(c.end, n.end) > 0 {
			n.end = c.end
		}
	}
	return n
}

func (s *spans) add(keys *index.KeyRange, of *standing) {
	s.root = s.root.add(&spanNode{keys: *keys, of: of, rank: rand.Uint32()})
}

func (n *spanNode) add(new *spanNode) *spanNode {
	switch {
	case n == nil:
		return new.update()
	case new.rank > n.rank:
		new.left, new.right = n.split(new)
		return new.update()
	case n.compare(&new.keys, new.of) < 0:
		n.left = n.left.add(new)
	default:
		n.right = n.right.add(new)
	}
	return n.update()
}

// split parts what comes before another from the rest.
func (n *spanNode) split(at *spanNode) (before, after *spanNode) {
	if n == nil {
		return nil, nil
	}
	if n.compare(&at.keys, at.of) < 0 {
		before, n.left = n.left.split(at)
		return before, n.update()
	}
	n.right, after = n.right.split(at)
	return n.update(), after
}

func (s *spans) drop(keys *index.KeyRange, of *standing) { s.root = s.root.drop(keys, of) }

func (n *spanNode) drop(keys *index.KeyRange, of *standing) *spanNode {
	if n == nil {
		return nil
	}
	switch c := n.compare(keys, of); {
	case c < 0:
		n.left = n.left.drop(keys, of)
	case c > 0:
		n.right = n.right.drop(keys, of)
	default:
		return join(n.left, n.right)
	}
	return n.update()
}

// join makes one of two of which all of the first come before the second.
func join(a, b *spanNode) *spanNode {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.rank > b.rank:
		a.right = join(a.right, b)
		return a.update()
	}
	b.left = join(a, b.left)
	return b.update()
}

// around calls yield for the queries that ask for a key.
func (n *spanNode) around(key []byte, yield func(*standing)) {
	for n != nil && bytes.Compare(n.end, key) >= 0 {
		n.left.around(key, yield)
		if bytes.Compare(n.keys.First(), key) > 0 {
			return // and so do all to the right
		}
		if n.keys.Has(key) {
			yield(n.of)
		}
		n = n.right
	}
}
