package index

import (
	"cmp"
	"math"
	"slices"
)

// Words next to one another in a bag give more if they stand near each other in
// a document: for each attribute where both are
//
//	nearWeight * weight * min(idf, idf) * c*(k1+1) / (c + k1*(1 - b + b*length/mean))
//
// where c is the sum over pairs of places within nearWords words of 1/distance.
// Tried on Cranfield and CISI: weights from 0 to .5, more for the order of the
// query, a share for how many of the words there are; none was better on both.
const (
	nearWeight = 0.3
	nearWords  = 8
)

// nearness is the memory of bonus.
type nearness struct {
	order  []*candidate
	at     []spanner // of the leaves in one attribute
	here   []bool    // which of them the document has
	places [][]reach
}

// bonus adds to the scores of hits, which are in order, what their words'
// nearness gives. If only some are wanted, the others get theirs only where
// it may bring them among the wanted.
func (s *searcher) bonus(hits []candidate, leaves []*clause) {
	if s.set.NoPositions || len(leaves) < 2 {
		return
	}
	n := len(hits)
	if want := s.keeping(); want > 0 {
		n = min(n, want)
	}
	s.bonusFor(hits[:n], leaves, -1)
	least := math.Inf(1)
	for i := range hits[:n] {
		least = min(least, hits[i].score)
	}
	s.bonusFor(hits[n:], leaves, least)
}

// bonusFor is bonus for those that can reach a score of least with it.
func (s *searcher) bonusFor(hits []candidate, leaves []*clause, least float64) {
	order := s.near.order[:0]
	for i := range hits {
		order = append(order, &hits[i])
	}
	slices.SortFunc(order, func(a, b *candidate) int { return cmp.Compare(a.key(), b.key()) })
	s.near.order = order
	for len(order) > 0 && s.alive() {
		n := 0
		for n < len(order) && order[n].part == order[0].part {
			n++
		}
		part := int(order[0].part)
		s.run.begin(&s.view.parts[part], part)
		s.bonusIn(order[:n], leaves, least)
		if err := s.run.err(); err != nil {
			s.fail(err)
		}
		order = order[n:]
	}
	clear(s.near.order)
}

// bonusIn is bonus for documents of one part in order.
func (s *searcher) bonusIn(hits []*candidate, leaves []*clause, least float64) {
	m := &s.near
	fields := 0.0 // weight of those to come
	for f := range s.run.fields {
		fields += s.weight(f, "")
	}
	most := 0.0 // that a weight of 1 can bring
	for i := 1; i < len(leaves); i++ {
		most += nearWeight * min(leaves[i-1].factor(1), leaves[i].factor(1))
	}
	for f := range s.run.fields {
		weight := s.weight(f, "")
		if weight == 0 || !s.standing(leaves, f) {
			fields -= weight
			continue
		}
		m.places = slices.Grow(m.places[:0], len(leaves))[:len(leaves)]
		for _, h := range hits {
			if h.score+most*fields < least || !m.meet(h.doc) {
				continue
			}
			more := s.closeIn(h.doc, leaves, weight)
			h.near += more
			h.score += more
		}
		fields -= weight
	}
}

// standing sets at to the leaves in a field, and tells whether two
// neighbours are there.
func (s *searcher) standing(leaves []*clause, field int) (two bool) {
	m := &s.near
	m.at = m.at[:0]
	for i, l := range leaves {
		m.at = append(m.at, s.spanner(l.op, field))
		two = two || i > 0 && m.at[i] != nil && m.at[i-1] != nil
	}
	return two
}

// meet tells whether two neighbours may stand in document d.
func (m *nearness) meet(d uint32) (two bool) {
	m.here = m.here[:0]
	for i, sp := range m.at {
		m.here = append(m.here, sp != nil && (sp.Doc() == d || sp.Doc() < d && sp.Advance(d) == d))
		two = two || i > 0 && m.here[i] && m.here[i-1]
	}
	return two
}

// closeIn is what document d gets for one attribute.
func (s *searcher) closeIn(d uint32, leaves []*clause, weight float64) (sum float64) {
	m := &s.near
	for i, sp := range m.at {
		m.places[i] = m.places[i][:0]
		beside := i > 0 && m.here[i-1] || i+1 < len(m.at) && m.here[i+1]
		if m.here[i] && beside && sp.confirm() {
			m.places[i] = sp.spans(m.places[i])
		}
	}
	k := s.scale.k[s.run.norm(d)]
	for i := 1; i < len(leaves); i++ {
		if c := closeness(m.places[i-1], m.places[i]); c > 0 {
			least := min(leaves[i-1].factor(weight), leaves[i].factor(weight))
			sum += float64(nearWeight*least*c/(c+k)+s.scale.round) - s.scale.round
		}
	}
	return sum
}

// closeness sums up how near the places of a and b are to each other.
func closeness(a, b []reach) (sum float64) {
	low := 0
	for _, x := range a {
		for low < len(b) && b[low].last+nearWords < x.first {
			low++
		}
		for _, y := range b[low:] {
			if y.first > x.last+nearWords {
				break
			}
			switch {
			case y.first > x.last:
				sum += 1 / float64(y.first-x.last)
			case x.first > y.last:
				sum += 1 / float64(x.first-y.last)
			}
		}
	}
	return sum
}
