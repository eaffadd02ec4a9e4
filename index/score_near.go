package index

import (
	"cmp"
	"slices"
)

// Words next to one another in a bag give more if they stand near each other in
// a document: for each attribute where both are
//
//	nearWeight * weight * min(idf, idf) * c*(k1+1) / (c + k1*(1 - b + b*length/mean))
//
// where c is the sum over pairs of places within nearWords words of 1/distance,
// twice that for places next to each other in the order of the query.
const (
	nearWeight = 0.3
	nearWords  = 8
)

// bonus adds to the scores of hits what their words' nearness gives.
func (s *searcher) bonus(hits []candidate, leaves []*clause) {
	if s.set.NoPositions || len(leaves) < 2 {
		return
	}
	order := make([]*candidate, len(hits))
	for i := range hits {
		order[i] = &hits[i]
	}
	slices.SortFunc(order, func(a, b *candidate) int { return cmp.Compare(a.key(), b.key()) })
	for len(order) > 0 && s.alive() {
		n := 0
		for n < len(order) && order[n].part == order[0].part {
			n++
		}
		part := int(order[0].part)
		s.run.begin(&s.view.parts[part], part)
		s.bonusIn(order[:n], leaves)
		order = order[n:]
	}
}

// bonusIn is bonus for documents of one part in order.
func (s *searcher) bonusIn(hits []*candidate, leaves []*clause) {
	norms := s.run.norms()
	places := make([][]reach, len(leaves))
	for f := range s.run.fields {
		at, n := s.standing(leaves, f)
		if n < 2 {
			continue
		}
		weight := s.weight(f, "")
		for _, h := range hits {
			for i, sp := range at {
				places[i] = places[i][:0]
				if sp == nil {
					continue
				}
				d := sp.Doc()
				if d < h.doc {
					d = sp.Advance(h.doc)
				}
				if d == h.doc && sp.confirm() {
					places[i] = sp.spans(places[i])
				}
			}
			more := 0.0
			for i := 1; i < len(leaves); i++ {
				if c := closeness(places[i-1], places[i]); c > 0 {
					k := s.scale.k[norms[h.doc]]
					least := min(leaves[i-1].factor(weight), leaves[i].factor(weight))
					more += float64(nearWeight*least*c/(c+k)+s.scale.round) - s.scale.round
				}
			}
			h.near += more
			h.score += more
		}
	}
}

// standing are the places of leaves in a field, and how many are there.
func (s *searcher) standing(leaves []*clause, field int) (at []spanner, n int) {
	if s.weight(field, "") == 0 {
		return nil, 0
	}
	at = make([]spanner, len(leaves))
	for i, l := range leaves {
		if at[i] = s.spanner(l.op, field); at[i] != nil {
			n++
		}
	}
	return at, n
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
			case y.first == x.last+1:
				sum += 2
			case y.first > x.last:
				sum += 1 / float64(y.first-x.last)
			case x.first > y.last:
				sum += 1 / float64(x.first-y.last)
			}
		}
	}
	return sum
}
