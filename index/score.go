package index

import (
	"math"

	"harvest/index/posting"
)

// How a document is scored. Each word, phrase or pattern of the query that is
// not under a not gives, for each attribute where it is looked for,
//
//	weight * idf * tf*(k1+1) / (tf + k1*(1 - b + b*length/mean))
//	idf = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// where tf is how often it stands there, weight is that of the attribute,
// length and mean are counted in words over all attributes, N is the number of
// documents and n of those that have it in any attribute: BM25, each attribute
// by itself. A phrase has the sum of its words' idf; a pattern the n of its
// most frequent word, a stem that of all its words together. Documents that are deleted count until a merge drops them.
//
// Each summand is rounded to a multiple of one power of two, so that sums come
// out the same whatever the order of addition. Search skips documents that
// cannot get among the best, and that is exact only if sums are.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

func idf(all, n int) float64 {
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

// saturation is the part of the formula that depends on lengths, by norm.
func saturation(mean float64) *[256]float64 {
	var k [256]float64
	for n := range k {
		k[n] = bm25K1 * (1 - bm25B + bm25B*float64(NormLength(byte(n)))/max(mean, 1))
	}
	return &k
}

// rounding is a number that, added and taken away again, leaves of another
// what is a multiple of a power of two: 2^-42 of the greatest score that a
// document can get in one attribute of weight 1, or a little less. Sums are
// exact up to 2000 times that.
func rounding(greatest float64) float64 {
	_, e := math.Frexp(greatest) // greatest <= 2^e
	return math.Ldexp(1.5, e+10)
}

// A scorer gives one summand: of a leaf in one attribute of a part.
type scorer struct {
	leaf   *clause
	field  int
	weight float64
	factor float64 // weight * idf * (k1+1)
	src    counter
	list   *reader     // src, if it is a single list
	phrase *phraseIter // src, if it is a phrase of single lists
	bounds *reader     // the list whose impacts bound the summand, or nil
	own    bool        // no iter moves src
	sparse bool        // it is cheaper to look at all its documents than at bounds

	max   float64 // bound for all documents
	last  uint32  // bound is good for documents up to this one
	bound float64
}

// A scale is what the scores of one search have in common.
type scale struct {
	k     *[256]float64
	round float64
}

func (c *scale) score(factor float64, freq uint32, norm byte) float64 {
	f := float64(freq)
	return float64(factor*f/(f+c.k[norm])+c.round) - c.round
}

// at is the summand for document d.
func (s *scorer) at(c *scale, norms []byte, d uint32) float64 {
	f := s.freq(d)
	if f == 0 {
		return 0
	}
	return c.score(s.factor, f, norms[d])
}

// freq is how often the leaf stands in the attribute of document d, asked once
// of each. A counter that is the scorer's own it moves there.
func (s *scorer) freq(d uint32) uint32 {
	if s.list != nil {
		at := s.list.Doc()
		if at < d {
			at = s.list.Advance(d)
		}
		if at != d {
			return 0
		}
		return s.list.Freq()
	}
	if s.own && s.src.Doc() < d {
		s.src.Advance(d)
	}
	if s.src.Doc() != d || s.own && !s.src.confirm() {
		return 0
	}
	return s.src.Freq()
}

// most is a bound of the summand for document d, without a look at positions.
func (s *scorer) most(c *scale, norms []byte, d uint32) float64 {
	at := s.src.Doc()
	if at < d && s.own {
		at = s.src.Advance(d)
	}
	if at != d {
		return 0
	}
	switch {
	case s.list != nil:
		return c.score(s.factor, s.list.Freq(), norms[d])
	case s.phrase != nil:
		return c.score(s.factor, s.phrase.most(), norms[d])
	}
	return s.max
}

// Lists of no more than one in so many documents are sparse.
const sparseness = 16

// limits works out the bound for the whole part of docs documents.
func (s *scorer) limits(c *scale, docs uint32) {
	s.bounds = s.list
	if s.list == nil {
		if s.phrase, _ = s.src.(*phraseIter); s.phrase != nil {
			s.bounds = s.phrase.bounds()
		}
		if s.bounds == nil {
			s.phrase = nil
		}
	}
	s.max = s.factor
	if s.bounds != nil {
		s.max = s.best(c, s.bounds.MaxImpacts())
	}
	s.max = float64(s.max+c.round) - c.round
	s.bound, s.last = s.max, 0
	s.sparse = s.src.cost() <= int(docs)/sparseness
}

func (s *scorer) best(c *scale, impacts []posting.Impact) (best float64) {
	for _, im := range impacts {
		best = max(best, c.score(s.factor, im.Freq, im.Norm))
	}
	return best
}

// upto bounds the summand for documents from d to the one it gives. Its counter
// does not stand before d.
func (s *scorer) upto(c *scale, norms []byte, d uint32) uint32 {
	if s.sparse {
		if s.own && s.src.Doc() < d {
			s.src.Advance(d)
		}
		if at := s.src.Doc(); at > d {
			s.last, s.bound = at-1, 0
		} else {
			s.last, s.bound = d, s.most(c, norms, d)
		}
		return s.last
	}
	if s.bounds == nil {
		s.last, s.bound = posting.End, s.max
		return s.last
	}
	if d > s.last || s.last == 0 {
		var impacts []posting.Impact
		s.last, impacts = s.bounds.Shallow(d)
		s.bound = s.best(c, impacts)
	}
	return s.last
}

// window bounds the summand for documents from d up to but not including end.
func (s *scorer) window(c *scale, d, end uint32) float64 {
	if s.src.Doc() >= end {
		return 0
	}
	if s.bounds == nil {
		return s.max
	}
	best := 0.0
	for {
		last, impacts := s.bounds.Shallow(d)
		if len(impacts) == 0 {
			return best
		}
		best = max(best, s.best(c, impacts))
		if last >= end-1 || best >= s.max {
			return best
		}
		d = last + 1
	}
}
