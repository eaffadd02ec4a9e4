package index

import (
	"context"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"harvest/index/dict"
	"harvest/index/posting"
	"harvest/index/query"
)

// A searcher runs one search at a time. It is used again for the next, so that
// a search of words allocates nothing.
type searcher struct {
	ctx    context.Context
	err    error
	engine *engine
	view   *view
	set    *Settings
	cache  *dict.Cache
	opt    Options

	nodes   arena[node]
	leafs   arena[clause]
	elems   arena[elem]
	phrases arena[phraseOp]
	cut     cutter
	leaves  []*clause
	more    []beside // leaves to come, that only score
	vague   bool     // the text has the last word
	limited string   // which limit was met
	scoring bool
	scale   scale

	run      run
	info     termInfo
	lists    []list
	fieldset []int
	pairs    []uint64
	pos      []uint32

	top   top
	total int
	least bool // total is a lower bound
	max   maxscore
	near  nearness
	count figures

	census   census       // what words are rare among
	mean     float64      // words of a document
	greatest float64      // no document has more from its words
	tiered   float64      // what documents with all words have more
	mix      float64      // how much the words say, beside weights from outside
	scaled   float64      // what scores were multiplied with
	words    []query.Node // of a bag, without stop words
	again    float64      // what a word weighs more for each time that it comes again
	began    time.Time
	steps    []string
}

// figures are what a search did, for plan.
type figures struct {
	scored, bounds, skipped, windows int
	verified                         int
	bytes                            int64
}

// Search finds the documents that q matches and orders them.
func (e *engine) Search(ctx context.Context, q query.Node, opt Options) (Results, error) {
	v, err := e.view()
	if err != nil {
		return Results{}, err
	}
	defer runtime.KeepAlive(v) // and so of the maps
	e.pace.Begin()
	defer e.pace.End()
	return e.search(ctx, v, q, opt)
}

func (e *engine) search(ctx context.Context, v *view, q query.Node, opt Options) (Results, error) {
	s := e.searcher(ctx, v, opt)
	var r Results
	if s.alive() {
		q = s.settled(q)
		r = s.answer(q, s.root(q))
	}
	if err := e.release(s); err != nil {
		return Results{}, err
	}
	return r, nil
}

// searcher takes one from the pool.
func (e *engine) searcher(ctx context.Context, v *view, opt Options) *searcher {
	s, _ := e.searchers.Get().(*searcher)
	if s == nil {
		s = new(searcher)
	}
	s.ctx, s.engine, s.view, s.set, s.cache, s.opt = ctx, e, v, &e.set, e.cache, opt
	s.census = v.census(opt.Among)
	if mean := s.census.mean; s.scale.k == nil || mean != s.mean {
		s.mean, s.scale.k = mean, saturation(mean)
	}
	s.vague, s.least, s.limited, s.total = false, false, "", 0
	s.mix, s.scaled, s.greatest, s.tiered = 0, 1, 0, 0
	s.count = figures{}
	if opt.Plan {
		s.began = time.Now()
	}
	s.scoring = opt.Rank == RankBM25 || opt.Rank == RankVector
	return s
}

// release lets go of what belongs to the caller and of what is large, and tells
// what went wrong.
func (e *engine) release(s *searcher) error {
	s.run.end()
	s.run.part = nil
	clear(s.leaves)
	s.leaves = s.leaves[:0]
	s.nodes.reset(64)
	s.leafs.reset(64)
	s.elems.reset(64)
	s.phrases.reset(64)
	clear(s.words)
	s.ctx, s.engine, s.view, s.set, s.cache, s.opt = nil, nil, nil, nil, nil, Options{}
	s.census = census{}
	err := s.err
	s.err, s.steps = nil, nil
	e.searchers.Put(s)
	return err
}

// fail keeps the first error.
func (s *searcher) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// alive tells whether there is reason to go on.
func (s *searcher) alive() bool {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	return s.err == nil
}

// wanted is how many documents the caller will see the end of; 0: all.
func (s *searcher) wanted() int {
	if s.opt.Limit <= 0 {
		return 0
	}
	return max(s.opt.Offset, 0) + s.opt.Limit
}

// root compiles the query, a bag without its stop words.
func (s *searcher) root(q query.Node) *node {
	defer s.addBesides()
	bag, ok := q.(query.Bag)
	if !ok {
		return s.compile(q, "", false)
	}
	s.words = s.words[:0]
	for _, n := range bag {
		if w, ok := n.(query.Word); !ok || !s.stopWord(w.Text) {
			s.words = append(s.words, n)
		}
	}
	if len(s.words) == 0 {
		s.words = append(s.words, bag...)
	}
	s.again = 1
	n := s.join(opOr, s.words, "", false)
	s.again = 0
	return n
}

func (s *searcher) stopWord(text string) bool {
	if s.opt.Stop == nil {
		return false
	}
	s.cut.text(text)
	return len(s.cut.words) == 1 && len(s.cut.compound) == 0 && s.stopped(s.cut.word(0))
}

// answer runs the plan of q.
func (s *searcher) answer(q query.Node, root *node) Results {
	if !s.alive() {
		return Results{}
	}
	s.ready()
	s.step("looked up")
	hits := s.order(q, root)
	if s.alive() && s.opt.Feedback > 0 && s.opt.Rank == RankBM25 {
		s.feedback(hits)
		s.ready()
		s.total, s.least = 0, false
		hits = s.order(q, root)
	}
	if s.alive() && s.opt.External != nil && s.scoring {
		hits = s.external(hits)
		s.step("weighed from outside")
	}
	if !s.alive() {
		return Results{}
	}
	return s.results(hits)
}

// order finds the hits and orders them, at least as many as are wanted.
func (s *searcher) order(q query.Node, root *node) []candidate {
	var hits []candidate
	_, bag := q.(query.Bag)
	switch {
	case !s.scoring:
		hits = s.unordered(root)
	case s.opt.Rank == RankVector:
		s.top.reset(0)
		s.collect(root)
		hits = s.top.sorted()
	case bag && len(root.kids) > 1:
		hits = s.bag(root)
	default:
		s.top.reset(s.keeping())
		s.collect(root)
		if s.opt.External != nil && s.opt.Feedback == 0 && !s.vague {
			hits = s.top.heap // external orders them
		} else {
			hits = s.top.sorted()
		}
	}
	s.step("joined")
	if s.vague && s.alive() {
		if bag && s.opt.Rank == RankBM25 {
			hits = s.verifyBag(q, hits)
		} else {
			hits = s.verify(q, hits, s.page())
		}
		s.step("read")
	}
	switch s.opt.Rank {
	case RankVector:
		s.normalize(hits)
	case RankValue:
		hits = s.byValue(hits)
	}
	return hits
}

// keeping is how many of the best documents are to be found; 0: all.
func (s *searcher) keeping() int {
	if s.vague || s.opt.External != nil {
		return 0
	}
	n := s.wanted()
	if n > 0 {
		n = max(n, s.opt.Feedback)
	}
	return n
}

// first gives the wanted ones in order.
func (s *searcher) first(hits []candidate) []candidate {
	s.top.reset(s.wanted())
	for i := range hits {
		s.top.add(hits[i])
	}
	return s.top.sorted()
}

// ready fixes what all scores are multiples of.
func (s *searcher) ready() {
	sum := 0.0
	for _, l := range s.leaves {
		if s.opt.Rank == RankVector {
			l.idf = vectorWeight(s.view.docs, l.op.docs(s.view.docs))
		}
		if !l.not {
			sum += l.factor(1)
		}
	}
	s.scale.round = rounding(sum)
}

// collect runs the plan over all parts.
func (s *searcher) collect(root *node) {
	sets := s.opt.Rank == RankBM25 && s.opt.External == nil && comparisonsOnly(root) && !s.extra()
	flat := s.opt.Rank == RankBM25 && disjunction(root) && !s.extra()
	for i := range s.view.parts {
		if !s.alive() {
			return
		}
		s.run.begin(&s.view.parts[i], i)
		switch {
		case sets:
			s.takeSet(s.setOf(root))
		case flat:
			s.best(root)
		default:
			s.walk(root)
		}
		sum := 0.0
		for j := range s.run.scorers {
			sum += s.run.scorers[j].factor
		}
		s.greatest = max(s.greatest, sum)
		if err := s.run.err(); err != nil {
			s.fail(err)
		}
	}
}

// extra tells whether there are leaves that no document has to have.
func (s *searcher) extra() bool {
	return slices.ContainsFunc(s.leaves, func(l *clause) bool { return l.extra })
}

// disjunction tells whether any leaf of the plan is enough for a match, and
// positions decide of none: a walk looks at fewer.
func disjunction(n *node) bool {
	switch n.op {
	case opLeaf:
		return !n.leaf.vague && !n.leaf.not && !positional(n.leaf.op)
	case opOr:
		for _, k := range n.kids {
			if !disjunction(k) {
				return false
			}
		}
		return true
	}
	return false
}

// best takes the best documents that have any leaf.
func (s *searcher) best(root *node) {
	total, known := s.total, s.top.limit == 0
	if !known {
		n, ok := s.known(root)
		if ok {
			total, known = total+n, true
		} else if s.opt.Count {
			s.countAny()
			s.run.begin(s.run.part, s.run.number)
			total, known = s.total, true
		}
	}
	s.rest()
	s.maxscore()
	if s.top.limit == 0 {
		return
	}
	if known {
		s.total = total
	} else if s.top.least() >= 0 {
		s.least = true
	}
}

// known is the number of documents that match, if it stands in the dictionary.
func (s *searcher) known(root *node) (n int, ok bool) {
	if root.op != opLeaf || s.run.gone != nil {
		return 0, false
	}
	e, ok := root.leaf.op.(*elem)
	if !ok || e.pat != nil {
		return 0, false
	}
	looked := 0
	lists := e.lists[s.run.number]
	for i := range lists {
		if s.weight(lists[i].field, root.leaf.attr) > 0 {
			looked++
			n = int(lists[i].docs)
		}
	}
	if looked > 1 {
		if looked < len(lists) {
			return 0, false
		}
		n = int(e.have[s.run.number])
	}
	return n, true
}

// countAny counts the documents that have any leaf.
func (s *searcher) countAny() {
	t := &s.run.any
	t.begin(s.run.part.docs)
	for _, l := range s.leaves {
		if l.not {
			continue
		}
		s.sources(l, func(src counter, _ int, _ float64) {
			if r, ok := src.(*reader); ok {
				t.mark(r)
				return
			}
			for d := src.Doc(); d != posting.End; d = src.Next() {
				if src.confirm() {
					t.set.add(d)
				}
			}
		})
		if !s.alive() {
			return
		}
	}
	s.total += t.set.count()
	if gone := s.run.gone; gone != nil {
		for i, w := range t.set {
			s.total -= bits.OnesCount64(w & gone.Bits()[i])
		}
	}
}

// walk goes through the documents that match and scores them. Stretches that
// hold none good enough it passes over, and documents whose positions need not
// be looked at, if the total is not asked for.
func (s *searcher) walk(root *node) {
	it := s.iter(root, true, true)
	if s.scoring {
		s.rest()
	}
	prune := s.top.limit > 0 && s.opt.Rank == RankBM25
	least := s.top.least()
	norms := s.run.norms()
	until, poor := uint32(0), false
	for d, n := it.Doc(), 0; d != posting.End; n++ {
		if n%256 == 0 && !s.alive() {
			return
		}
		if prune && least >= 0 {
			if d >= until {
				until, poor = s.poor(norms, d, least)
			}
			if !s.opt.Count {
				if poor {
					s.least = true
					d = it.Advance(until)
					continue
				}
				if s.most(norms, d) < least {
					s.least = true
					d = it.Next()
					continue
				}
			}
		}
		if !s.run.deleted(d) && it.confirm() {
			s.total++
			if !poor {
				if score := s.score(norms, d); score >= least {
					s.keep(d, score)
					least = s.top.least()
				}
			}
		}
		d = it.Next()
	}
}

// poor tells whether no document from d up to but not including the one it
// gives can have a score of least.
func (s *searcher) poor(norms []byte, d uint32, least float64) (until uint32, poor bool) {
	until = posting.End
	sum := 0.0
	for i := range s.run.scorers {
		sc := &s.run.scorers[i]
		until = min(until, sc.upto(&s.scale, norms, d))
		sum += sc.bound
	}
	s.count.bounds++
	if until != posting.End {
		until++
	}
	return until, sum < least
}

// most bounds the score of a document.
func (s *searcher) most(norms []byte, d uint32) (sum float64) {
	for i := range s.run.scorers {
		sum += s.run.scorers[i].most(&s.scale, norms, d)
	}
	return sum
}

func (s *searcher) score(norms []byte, d uint32) (sum float64) {
	s.count.scored++
	if s.opt.Rank == RankVector {
		return s.vector(d)
	}
	for i := range s.run.scorers {
		sum += s.run.scorers[i].at(&s.scale, norms, d)
	}
	return sum
}

func (s *searcher) keep(d uint32, score float64) {
	if id := s.run.id(d); s.top.takes(score, &id) {
		s.top.add(candidate{score: score, part: int32(s.run.number), doc: d, id: id})
	}
}

// results gives the page that was asked for of all hits in order.
func (s *searcher) results(hits []candidate) Results {
	r := Results{Total: s.total, AtLeast: s.least, Cut: s.limited}
	hits = hits[min(max(s.opt.Offset, 0), len(hits)):]
	if s.opt.Limit > 0 && len(hits) > s.opt.Limit {
		hits = hits[:s.opt.Limit]
	}
	r.Hits = slices.Grow(s.opt.Buf[:0], len(hits))
	for i := range hits {
		r.Hits = append(r.Hits, Hit{ID: hits[i].id, Score: hits[i].score})
	}
	if s.opt.Why {
		s.why(hits, r.Hits)
	}
	if s.opt.Plan {
		r.Plan = s.plan()
	}
	return r
}
