package index

import "math"

// Weights from outside are mixed in as WebCrawler's author describes it:
//
//	score = a*relevance + (1-a)*external
//	a0 = max(2/3, 1 - log10(matches)/20)
//	a = a0 + (1-a0)*spread
//
// Relevance is the score divided by the best one. The more documents match,
// the less their words tell them apart. The text says in words only that a
// great spread of scores, between the first and the one a quarter down the
// list, is to leave less to the external weight, and does not say of which
// base the logarithm is: spread is taken as 1 - relevance of the document at
// a quarter of the list, and the base as 10, which comes to 2/3 at 4.6 million
// matches (the natural one at 786).
func mixing(matches int, spread float64) float64 {
	a := max(2.0/3, 1-math.Log10(float64(max(matches, 1)))/20)
	return a + (1-a)*min(max(spread, 0), 1)
}

// external orders all hits, which may come in any order, by scores with the weights from outside.
func (s *searcher) external(hits []candidate) []candidate {
	if len(hits) == 0 {
		return hits
	}
	best := 0.0
	for i := range hits {
		best = max(best, hits[i].score)
	}
	if best <= 0 {
		best = 1
	}
	s.mix = mixing(len(hits), 1-quarter(hits)/best)
	s.scaled = s.mix / best
	for i := range hits {
		h := &hits[i]
		w := s.opt.External.Weight(h.id)
		if !(w >= 0) { // NaN too
			w = 0
		}
		h.outside = (1 - s.mix) * min(w, 1)
		h.score = h.score*s.scaled + h.outside
	}
	return s.first(hits)
}

// quarter is the score of the document a quarter down the list.
func quarter(hits []candidate) float64 {
	scores := make([]float64, len(hits))
	for i := range hits {
		scores[i] = hits[i].score
	}
	return nth(scores, len(scores)/4)
}

// nth is the n-th greatest of list, which it puts out of order.
func nth(list []float64, n int) float64 {
	for low, high := 0, len(list)-1; low < high; {
		pivot := list[(low+high)/2]
		i, j := low, high
		for i <= j {
			for list[i] > pivot {
				i++
			}
			for list[j] < pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return list[n]
		}
	}
	return list[n]
}
