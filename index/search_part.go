package index

import (
	"math"
	"slices"
)

// A plan is looked up once for all parts, then run over one part at a time. The
// objects of a run come from arenas that are emptied for the next part, so a
// searcher that has run before allocates nothing.

// An arena gives objects that are used again after a reset. Whoever gets one
// sets all of it, slices by cutting them to length 0.
type arena[T any] struct {
	all []*T
	n   int
}

func (a *arena[T]) get() *T {
	if a.n == len(a.all) {
		a.all = append(a.all, new(T))
	}
	a.n++
	return a.all[a.n-1]
}

// reset takes all objects back; no more than keep of them stay in memory.
func (a *arena[T]) reset(keep int) {
	if len(a.all) > keep {
		clear(a.all[keep:])
		a.all = a.all[:keep]
	}
	a.n = 0
}

// A run is the plan over one part.
type run struct {
	*part
	number  int
	weights []float64 // of attributes by field, NaN if not asked yet
	scorers []scorer

	readers  arena[reader]
	counteds arena[counted]
	anys     arena[anyIter]
	alls     arena[andIter]
	docs     arena[allIter]
	bits     arena[bitIter]
	phrases  arena[phraseIter]
	nears    arena[near]
	words    arena[wordSpans]
	options  arena[anySpan]

	count tally // of a union
	any   tally // of all leaves
}

// begin turns to part i.
func (r *run) begin(p *part, i int) {
	r.part, r.number = p, i
	r.weights = r.weights[:0]
	for range p.fields {
		r.weights = append(r.weights, math.NaN())
	}
	r.end()
}

// end takes everything back.
func (r *run) end() {
	clear(r.scorers)
	r.scorers = r.scorers[:0]
	r.readers.reset(64)
	r.counteds.reset(64)
	r.anys.reset(64)
	r.alls.reset(64)
	r.docs.reset(16)
	r.bits.reset(16)
	r.phrases.reset(64)
	r.nears.reset(16)
	r.words.reset(64)
	r.options.reset(16)
}

// weight is that of a field for a leaf: 0 if it is not looked in.
func (s *searcher) weight(field int, attr string) float64 {
	name := s.run.fields[field].name
	if attr != "" && attr != name {
		return 0
	}
	w := s.run.weights[field]
	if math.IsNaN(w) {
		w = max(s.opt.Weigh(name), 0)
		s.run.weights[field] = w
	}
	if w == 0 && attr != "" {
		w = 1
	}
	return w
}

// iter makes the iter of a node. If the index cannot tell of some documents
// whether they match, it has them if over is set and has them not otherwise.
func (s *searcher) iter(n *node, over, safe bool) docIter {
	r := &s.run
	switch n.op {
	case opAll:
		return r.everything()
	case opKeys:
		return s.keysIter(n)
	case opText:
		if !over {
			return noneIter{}
		}
		return s.candidates(n)
	case opLeaf:
		if n.leaf.vague && !over {
			return noneIter{}
		}
		return s.leafIter(n.leaf, safe)
	case opNot:
		a := r.alls.get()
		a.with = append(a.with[:0], r.everything())
		a.without = append(a.without[:0], s.iter(n.kids[0], !over, false))
		a.start()
		return a
	case opAnd:
		return s.allIter(n, over, safe)
	}
	return s.anyIter(n, over, safe)
}

func (r *run) everything() docIter {
	a := r.docs.get()
	*a = allIter{n: r.part.docs}
	a.Advance(0)
	return a
}

func (s *searcher) allIter(n *node, over, safe bool) docIter {
	a := s.run.alls.get()
	a.with, a.without = a.with[:0], a.without[:0]
	for _, kid := range n.kids {
		if kid.op == opNot {
			a.without = append(a.without, s.iter(kid.kids[0], !over, false))
		} else {
			a.with = append(a.with, s.iter(kid, over, safe))
		}
	}
	if len(a.with) == 0 {
		a.with = append(a.with, s.run.everything())
	}
	if len(a.with) == 1 && len(a.without) == 0 {
		return a.with[0]
	}
	a.start()
	return a
}

// anyIter joins by or. Under it an and may stand behind a document that a leaf
// of it has: such leaves are not scored through it.
func (s *searcher) anyIter(n *node, over, safe bool) docIter {
	a := s.run.anys.get()
	a.at = a.at[:0]
	for _, kid := range n.kids {
		a.at = append(a.at, s.iter(kid, over, safe && kid.op != opAnd))
	}
	if len(a.at) == 0 {
		return noneIter{}
	}
	a.start()
	return a
}

// leafIter is a leaf in all attributes where it is looked for. If it is safe,
// it stands on each document that matches and so can score it.
func (s *searcher) leafIter(l *clause, safe bool) docIter {
	a := s.run.anys.get()
	a.at = a.at[:0]
	score := safe && !l.scored && !l.not && s.scoring
	s.sources(l, func(src counter, field int, weight float64) {
		a.at = append(a.at, src)
		if score {
			s.scorer(l, src, field, weight)
		}
	})
	if score {
		l.scored = true
	}
	switch len(a.at) {
	case 0:
		return noneIter{}
	case 1:
		return a.at[0]
	}
	a.start()
	return a
}

// sources are a leaf's, by attribute.
func (s *searcher) sources(l *clause, yield func(src counter, field int, weight float64)) {
	s.fieldset = l.op.fields(s.fieldset[:0], s.run.number)
	slices.Sort(s.fieldset)
	s.fieldset = slices.Compact(s.fieldset)
	for _, f := range s.fieldset {
		if w := s.weight(f, l.attr); w > 0 {
			if src := s.counter(l.op, f); src != nil {
				yield(src, f, w)
			}
		}
	}
}

// rest scores by readers of their own the leaves that no iter stands for.
func (s *searcher) rest() {
	for _, l := range s.leaves {
		if !l.scored && !l.not {
			s.sources(l, func(src counter, field int, weight float64) {
				s.scorer(l, src, field, weight).own = true
			})
		}
		l.scored = false
	}
}

func (s *searcher) scorer(l *clause, src counter, field int, weight float64) *scorer {
	s.run.scorers = append(s.run.scorers, scorer{leaf: l, field: field, weight: weight, factor: l.factor(weight), src: src})
	sc := &s.run.scorers[len(s.run.scorers)-1]
	sc.list, _ = src.(*reader)
	sc.limits(&s.scale, s.run.part.docs)
	return sc
}

// err tells whether a list of the part was damaged.
func (r *run) err() error {
	for _, l := range r.readers.all[:r.readers.n] {
		if err := l.Err(); err != nil {
			return r.Corrupt("%v", err)
		}
	}
	return nil
}

// reader opens a list, settled on its first document.
func (s *searcher) reader(l *list, positions bool) *reader {
	rd := s.run.readers.get()
	if err := s.run.open(l, &rd.Reader, positions); err != nil {
		s.fail(err)
		return nil
	}
	rd.Next()
	return rd
}
