package index

import (
	"slices"
	"sort"

	"harvest/index/query"
)

// maxNear is the greatest distance of near; values of one attribute lie
// further apart.
const maxNear = 99

// A nearby is leaves that stand close, each to the one before it.
type nearby struct {
	operands [][]leaf // each any of some
	distance int
	ordered  bool
}

func (m *Matcher) near(q query.Near) (leaf, error) {
	if q.Distance < 1 || q.Distance > maxNear {
		return nil, bad(q, "a distance is 1 to 99 words")
	}
	if len(q.Nodes) == 0 {
		return nil, bad(q, "nothing is near")
	}
	n := &nearby{distance: q.Distance, ordered: q.Ordered}
	for _, o := range q.Nodes {
		leaves, err := m.operand(o, nil)
		if err != nil {
			return nil, err
		}
		n.operands = append(n.operands, leaves)
	}
	return n, nil
}

// operand adds the leaves of an operand.
func (m *Matcher) operand(q query.Node, out []leaf) ([]leaf, error) {
	switch q := q.(type) {
	case query.Or:
		for _, n := range q {
			var err error
			if out, err = m.operand(n, out); err != nil {
				return nil, err
			}
		}
		return out, nil
	case query.Regexp:
		if q.Text {
			return nil, bad(q, "text beside words")
		}
	case query.Fuzzy:
		if q.Phrase {
			return nil, bad(q, "text beside words")
		}
	}
	l, err := m.word(q, true)
	return append(out, l), err
}

func (n *nearby) cost() int { return costWords }

func (n *nearby) in(m *Matcher, v *value) bool {
	for _, o := range n.operands {
		if !slices.ContainsFunc(o, func(l leaf) bool { return l.in(m, v) }) {
			return false
		}
	}
	reached := n.forward(m, v)
	return len(reached[len(reached)-1]) > 0
}

// forward gives, for each operand, the places where it ends a chain.
func (n *nearby) forward(m *Matcher, v *value) [][]span {
	out := make([][]span, len(n.operands))
	for i, o := range n.operands {
		var list []span
		for _, l := range o {
			list = l.spans(m, v, list)
		}
		bySpan(list)
		if i > 0 {
			list = n.linked(list, out[i-1], false)
		}
		if out[i] = list; len(list) == 0 {
			break
		}
	}
	return out
}

// linked keeps of list what stands close enough to one of the others: after
// it, or before it if back is set, when the order counts.
func (n *nearby) linked(list, others []span, back bool) []span {
	longest := 0
	for _, o := range others {
		longest = max(longest, o.last-o.first)
	}
	return slices.DeleteFunc(list, func(s span) bool {
		from := s.first - n.distance - longest
		i := sort.Search(len(others), func(i int) bool { return others[i].first >= from })
		for ; i < len(others) && others[i].first <= s.last+n.distance; i++ {
			a, b := others[i], s
			if back {
				a, b = b, a
			}
			if n.close(a, b) {
				return false
			}
		}
		return true
	})
}

// close tells whether b stands near enough to a, and after it if that counts.
func (n *nearby) close(a, b span) bool {
	if gap := b.first - a.last; gap >= 1 {
		return gap <= n.distance
	}
	gap := a.first - b.last
	return !n.ordered && gap >= 1 && gap <= n.distance
}

// spans gives the places of all operands that take part in a chain.
func (n *nearby) spans(m *Matcher, v *value, dst []span) []span {
	chain := n.forward(m, v)
	for i := len(chain) - 1; i >= 0; i-- {
		if i < len(chain)-1 {
			chain[i] = n.linked(chain[i], chain[i+1], true)
		}
		dst = append(dst, chain[i]...)
	}
	return dst
}
