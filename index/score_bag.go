package index

import (
	"math"
	"slices"
)

// A query of words without operators asks for documents with any of them. Those
// with all words come first, by as much as no other can reach; within each of
// both sorts words that stand near each other count, for the best few.

// nearest is how many of the best documents are looked at for nearness.
const nearest = 200

// bag orders the documents that any kid of root matches.
func (s *searcher) bag(root *node) []candidate {
	keep := s.keeping()
	if keep > 0 {
		keep = max(keep, nearest)
	}
	all := s.node(opAnd)
	all.kids = append(all.kids, root.kids...)
	s.top.reset(keep)
	s.collect(all)
	hits := slices.Clone(s.top.sorted())
	n := len(hits)
	if keep == 0 || n < keep || s.opt.Count {
		s.top.reset(keep)
		s.total, s.least = 0, false
		s.collect(root)
		hits = s.others(hits, s.top.sorted())
	} else {
		s.least = true
	}
	s.tiered = s.tier()
	for i := range hits[:n] {
		hits[i].score += s.tiered
		hits[i].whole = true
	}
	s.bonus(hits[:min(nearest, len(hits))], s.bagLeaves(root))
	slices.SortFunc(hits, compareFound)
	return hits
}

// Words in more than this share of the documents, if these are more than a few,
// say nothing by standing near others, and would take the most time.
const (
	tooCommon = 0.75
	aFew      = 100
)

// bagLeaves are the leaves of a bag whose nearness counts, in the order of the
// query.
func (s *searcher) bagLeaves(root *node) (out []*clause) {
	for _, k := range root.kids {
		if k.op != opLeaf || len(out) > 0 && out[len(out)-1] == k.leaf {
			continue
		}
		if n, all := s.census.docsWith(k.leaf.op, s.view.docs); n <= aFew || float64(n) <= tooCommon*float64(all) {
			out = append(out, k.leaf)
		}
	}
	return out
}

// others appends to hits those of more that it does not have.
func (s *searcher) others(hits, more []candidate) []candidate {
	known := make([]uint64, len(hits))
	for i := range hits {
		known[i] = hits[i].key()
	}
	slices.Sort(known)
	for i := range more {
		if _, ok := slices.BinarySearch(known, more[i].key()); !ok {
			hits = append(hits, more[i])
		}
	}
	return hits
}

func (f *candidate) key() uint64 { return uint64(f.part)<<32 | uint64(f.doc) }

// tier is more than a document can have that has not all words: a power of two,
// so that it changes no sum.
func (s *searcher) tier() float64 {
	_, e := math.Frexp(s.greatest * (1 + nearWeight))
	if s.opt.Among != nil {
		e = max(e, amongTier)
	}
	return math.Ldexp(1, e)
}
