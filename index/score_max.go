package index

import (
	"cmp"
	"math/bits"
	"slices"

	"harvest/index/posting"
)

// The best documents of a disjunction are found by MaxScore over stretches of
// documents: lists are ordered by what they can give at most in a stretch; those
// that together cannot give enough are only asked about documents that the
// others have. Stretches follow the blocks of lists, whose bounds are known.
// Sparse lists have blocks so wide that their bounds say little of a stretch;
// all their documents in it are looked at instead.

// Documents of a stretch, at most. A score of each is kept.
const longStretch = 4096

type maxscore struct {
	order  []*scorer // that have documents left
	dense  []*scorer // of a stretch
	sparse []*scorer
	sums   []float64 // of the bounds of dense up to each
	acc    [longStretch]float64
	set    [longStretch / 64]uint64
}

// maxscore takes the best of the documents that any scorer has.
func (s *searcher) maxscore() {
	m := &s.max
	m.order = m.order[:0]
	for i := range s.run.scorers {
		if s.run.scorers[i].src.Doc() != posting.End {
			m.order = append(m.order, &s.run.scorers[i])
		}
	}
	slices.SortFunc(m.order, func(a, b *scorer) int { return cmp.Compare(a.max, b.max) })
	for from := uint32(0); s.alive(); {
		least := s.top.least()
		start, sum := posting.End, 0.0
		for _, sc := range m.order {
			if sum += sc.max; sum < least {
				continue
			}
			at := sc.src.Doc()
			if at < from {
				at = sc.src.Advance(from)
			}
			start = min(start, at)
		}
		if start == posting.End {
			return
		}
		from = s.stretch(start, least)
	}
}

// stretch works through some documents from start on, and gives the first
// behind them.
func (s *searcher) stretch(start uint32, least float64) (end uint32) {
	m := &s.max
	s.count.windows++
	end = min(start+longStretch, s.run.part.docs)
	n := 0
	if m.dense, m.sparse = m.dense[:0], m.sparse[:0]; least < 0 {
		m.dense = append(m.dense, m.order...)
	} else {
		end = s.blockEnd(start, end)
		if s.divide(start, end) < least {
			s.count.skipped++
			return end
		}
		n = m.partition(least)
	}
	essential := m.dense[n:]
	if len(essential) == 1 && len(m.sparse) == 0 && essential[0].list != nil {
		s.single(essential[0], n, start, end)
		return end
	}
	for _, sc := range m.sparse {
		s.gather(sc, start, end)
	}
	for _, sc := range essential {
		s.gather(sc, start, end)
	}
	if len(m.sparse)+len(essential) > 0 {
		s.settle(n, start, end)
	}
	return end
}

// divide parts the scorers with documents in a stretch in dense and sparse
// ones and gives the sum of their bounds.
func (s *searcher) divide(start, end uint32) (sum float64) {
	m := &s.max
	for _, sc := range m.order {
		if sc.sparse && sc.src.Doc() < start {
			sc.src.Advance(start)
		}
		if sc.bound = sc.window(&s.scale, start, end); sc.bound == 0 {
			continue
		}
		sum += sc.bound
		if sc.sparse {
			m.sparse = append(m.sparse, sc)
		} else {
			m.dense = append(m.dense, sc)
		}
	}
	return sum
}

// partition orders the dense scorers by their bounds and gives the number of
// those that together cannot give least.
func (m *maxscore) partition(least float64) (n int) {
	slices.SortFunc(m.dense, func(a, b *scorer) int { return cmp.Compare(a.bound, b.bound) })
	m.sums = m.sums[:0]
	sum := 0.0
	for _, sc := range m.dense {
		sum += sc.bound
		if m.sums = append(m.sums, sum); sum < least {
			n++
		}
	}
	return n
}

// blockEnd shortens a stretch to the blocks of the lists that matter, but not
// so much that looking for bounds costs more than they save.
func (s *searcher) blockEnd(start, end uint32) uint32 {
	least := uint32(len(s.max.order)) * 64
	for _, sc := range s.max.order {
		if sc.list != nil && !sc.sparse && sc.src.Doc() < end {
			last, _ := sc.list.Shallow(start)
			if last < end-1 {
				end = max(last+1, start+least)
			}
		}
	}
	return min(end, s.run.part.docs)
}

// gather adds what one scorer gives.
func (s *searcher) gather(sc *scorer, start, end uint32) {
	m := &s.max
	norms := s.run.norms()
	add := func(d, freq uint32) {
		i := d - start
		m.set[i/64] |= 1 << (i % 64)
		m.acc[i] += s.scale.score(sc.factor, freq, norms[d])
	}
	if sc.list == nil {
		for d := sc.src.Advance(start); d < end; d = sc.src.Next() {
			if sc.src.confirm() {
				add(d, sc.src.Freq())
			}
		}
		return
	}
	for d := sc.list.Advance(start); d < end; d = sc.list.NextBlock() {
		docs, freqs := sc.list.Block()
		for i, d := range docs {
			if d >= end {
				sc.list.Advance(end)
				return
			}
			f := uint32(1)
			if freqs != nil {
				f = freqs[i]
			}
			add(d, f)
		}
	}
}

// settle looks at the documents gathered; n scorers were left out.
func (s *searcher) settle(n int, start, end uint32) {
	m := &s.max
	for i := range m.set[:(end-start+63)/64] {
		for w := m.set[i]; w != 0; w &= w - 1 {
			j := i*64 + bits.TrailingZeros64(w)
			score := m.acc[j]
			m.acc[j] = 0
			s.finish(start+uint32(j), score, n)
		}
		m.set[i] = 0
	}
}

// single works through a stretch where only one list can bring good documents.
func (s *searcher) single(sc *scorer, n int, start, end uint32) {
	norms := s.run.norms()
	rest := 0.0
	if n > 0 {
		rest = s.max.sums[n-1]
	}
	for d := sc.list.Advance(start); d < end; d = sc.list.NextBlock() {
		docs, freqs := sc.list.Block()
		least := s.top.least()
		for i, d := range docs {
			if d >= end {
				return
			}
			f := uint32(1)
			if freqs != nil {
				f = freqs[i]
			}
			if score := s.scale.score(sc.factor, f, norms[d]); score+rest >= least {
				s.finish(d, score, n)
				least = s.top.least()
			}
		}
	}
}

// finish completes the score of a document by that of the n scorers left out,
// as long as they can make it good enough.
func (s *searcher) finish(d uint32, score float64, n int) {
	s.total++
	if s.run.deleted(d) {
		s.total--
		return
	}
	least := s.top.least()
	norms := s.run.norms()
	for n > 0 {
		if score+s.max.sums[n-1] < least {
			return
		}
		n--
		score += s.max.dense[n].at(&s.scale, norms, d)
	}
	if score >= least {
		s.count.scored++
		s.keep(d, score)
	}
}
