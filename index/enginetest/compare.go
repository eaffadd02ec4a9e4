package enginetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// random applies random documents and deletes, opens the index again now and
// then, and asks random queries in between.
func (s suite) random(t *testing.T) {
	seed := uint64(number("SEED", int(time.Now().UnixNano()&math.MaxInt32)))
	rounds := number("ROUNDS", 12)
	t.Logf("SEED=%d ROUNDS=%d", seed, rounds)
	src := source{rand.New(rand.NewPCG(seed, 0))}
	dir := t.TempDir()
	p := s.start(t, dir, s.model())
	telling := 0 // queries that found some documents and not all
	for round := range rounds {
		var (
			puts    []index.Doc
			deletes []index.ID
		)
		for range src.IntN(10) {
			deletes = append(deletes, src.id())
		}
		for range src.IntN(25) {
			puts = append(puts, src.doc())
		}
		p.apply(puts, deletes, strconv.Itoa(round))
		if src.IntN(6) == 0 {
			p.Close()
			p = s.start(t, dir, p.model)
		}
		for range 40 {
			if n := s.compare(p, src, fmt.Sprintf("seed %d round %d", seed, round)); n > 0 && n < len(p.docs) {
				telling++
			}
		}
		if n := p.Stats().Docs; n != len(p.docs) {
			t.Fatalf("round %d: got %d documents, want %d", round, n, len(p.docs))
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d queries found some documents", telling, 40*rounds)
	if telling < 10*rounds {
		t.Errorf("got %d queries of %d that found some, too few to tell", telling, 40*rounds)
	}
	if err := p.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

// compare asks one random query and compares what comes with the model; when
// says of what. It returns how many documents were found.
func (s suite) compare(p *pair, src source, when string) int {
	q, opt := src.query(src.IntN(4)), src.options()
	opt.Why = src.IntN(2) == 0
	if !s.opt.Unranked {
		opt.Rank = pick(src, []index.Rank{index.RankBM25, index.RankBM25, index.RankBM25, index.RankVector, index.RankNone})
	}
	when = fmt.Sprintf("%s: %s (%s rank=%d)", when, q, optionText(opt), opt.Rank)
	before := p.Stats()
	r, err := p.Search(ctx, q, opt)
	if err != nil {
		p.t.Errorf("%s: got error %v", when, err)
		return 0
	}
	p.sameSet(r, p.find(q, opt), when)
	if s.opt.Unranked {
		return len(r.Hits)
	}
	p.ordered(q, opt, r, when)
	p.explained(r, opt, when)
	p.page(src, q, opt, r, before, when)
	p.sameText(q, opt, r, when)
	return len(r.Hits)
}

func (p *pair) sameSet(r index.Results, want []*document, when string) {
	var got, exp []index.ID
	for _, h := range r.Hits {
		got = append(got, h.ID)
	}
	for _, d := range want {
		exp = append(exp, d.ID)
	}
	slices.SortFunc(got, func(a, b index.ID) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(got, exp) {
		p.t.Errorf("%s: got %d documents, want %d", when, len(got), len(exp))
		p.differences(got, exp)
	}
	if r.Total != len(exp) || r.AtLeast || r.Cut != "" {
		p.t.Errorf("%s: got total %d, at least %v, cut %q, want %d", when, r.Total, r.AtLeast, r.Cut, len(exp))
	}
}

// differences shows two documents that are only on one side.
func (p *pair) differences(got, want []index.ID) {
	shown := 0
	show := func(what string, a, b []index.ID) {
		for _, id := range a {
			if !slices.Contains(b, id) && shown < 2 {
				p.t.Errorf("\t%s %d: %q", what, id[0], fields(p.docs[id]))
				shown++
			}
		}
	}
	show("missed", want, got)
	show("not wanted", got, want)
}

func fields(d *document) (out []string) {
	if d != nil {
		for _, v := range d.values {
			out = append(out, v.attr+": "+v.text)
		}
	}
	return out
}

// ordered checks the order of the hits: of a bag, those with all members come
// first; by score; by ID.
func (p *pair) ordered(q query.Node, opt index.Options, r index.Results, when string) {
	if opt.Rank == index.RankNone {
		return
	}
	e := &evaluator{p.model, opt, make(map[leafKey]finder)}
	tier := func(id index.ID) int {
		if b, ok := q.(query.Bag); ok && opt.Rank == index.RankBM25 && e.all(b, p.docs[id]) {
			return 0
		}
		return 1
	}
	for i := range max(len(r.Hits)-1, 0) {
		a, b := r.Hits[i], r.Hits[i+1]
		if cmp.Or(cmp.Compare(tier(a.ID), tier(b.ID)), cmp.Compare(b.Score, a.Score), byID(a, b)) > 0 {
			p.t.Errorf("%s: got document %d (%v, tier %d) before %d (%v, tier %d)", when, a.ID[0], a.Score, tier(a.ID), b.ID[0], b.Score, tier(b.ID))
		}
	}
}

// explained checks that the parts of a score sum up to it.
func (p *pair) explained(r index.Results, opt index.Options, when string) {
	if opt.Rank == index.RankNone {
		return
	}
	for _, h := range r.Hits {
		if h.Score < 0 || math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
			p.t.Errorf("%s: document %d: got score %v", when, h.ID[0], h.Score)
		}
		if !opt.Why {
			continue
		}
		sum := 0.0
		for _, part := range h.Why {
			sum += part.Score
		}
		if !near(sum, h.Score, 1e-9) {
			p.t.Errorf("%s: document %d: got parts %+v, want them to sum up to %v", when, h.ID[0], h.Why, h.Score)
		}
	}
}

func near(a, b, share float64) bool {
	return math.Abs(a-b) <= share*max(math.Abs(a), math.Abs(b), 1e-9)
}

// page asks for a piece of the hits, which is to be as it is among all. When a
// merge has dropped deleted documents since before, scores are others.
func (p *pair) page(src source, q query.Node, opt index.Options, all index.Results, before index.Stats, when string) {
	opt.Limit, opt.Offset = 1+src.IntN(12), src.IntN(2)*src.IntN(8)
	opt.Count, opt.Why = src.IntN(2) == 0, false
	when = fmt.Sprintf("%s from %d on %d", when, opt.Offset, opt.Limit)
	r, err := p.Search(ctx, q, opt)
	if err != nil {
		p.t.Errorf("%s: got error %v", when, err)
		return
	}
	from := min(opt.Offset, len(all.Hits))
	want := all.Hits[from:min(from+opt.Limit, len(all.Hits))]
	if p.Stats() == before && !slices.EqualFunc(r.Hits, want, func(a, b index.Hit) bool { return a.ID == b.ID && a.Score == b.Score }) {
		p.t.Errorf("%s: got %v, want %v", when, brief(r.Hits), brief(want))
	}
	if r.Total != all.Total && (opt.Count || !r.AtLeast || r.Total > all.Total || r.Total < len(r.Hits)) {
		p.t.Errorf("%s: got total %d (at least %v), want %d", when, r.Total, r.AtLeast, all.Total)
	}
}

func brief(hits []index.Hit) (out []string) {
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%d=%.6g", h.ID[0], h.Score))
	}
	return out
}

// sameText asks for what the query is written as, which means the same.
func (p *pair) sameText(q query.Node, opt index.Options, all index.Results, when string) {
	read, err := query.Parse(q.String())
	if err != nil {
		p.t.Errorf("%s: canonical form: got error %v", when, err)
		return
	}
	opt.Why, opt.Count = false, true
	r, err := p.Search(ctx, read, opt)
	if err != nil || r.Total != all.Total {
		p.t.Errorf("%s: parsed again as %s: got %d documents, %v, want %d", when, read, r.Total, err, all.Total)
	}
}

// rank compares scores with the formula, over documents of which none was deleted.
func (s suite) rank(t *testing.T) {
	if s.opt.Unranked {
		t.Skip("the engine has no scores")
	}
	seed := uint64(number("SEED", int(time.Now().UnixNano()&math.MaxInt32)))
	t.Logf("SEED=%d", seed)
	src := source{rand.New(rand.NewPCG(seed, 1))}
	p := s.fresh(t)
	for n := range 3 {
		var puts []index.Doc
		for i := range 40 {
			d := src.doc()
			d.ID = index.ID{byte(n*40 + i)}
			puts = append(puts, d)
		}
		p.apply(puts, nil, strconv.Itoa(n))
	}
	scored := 0
	for range 20 * number("ROUNDS", 12) {
		scored += s.scores(p, src.node(src.IntN(3), false), src.options(), fmt.Sprintf("seed %d", seed))
		if t.Failed() {
			return
		}
	}
	if scored < 100 {
		t.Errorf("got %d documents scored, too few to tell", scored)
	}
}

// scores compares those of a query, if it is made of words and phrases.
func (s suite) scores(p *pair, q query.Node, opt index.Options, when string) int {
	opt.Errors, opt.Case, opt.Stem = 0, false, nil
	e := &evaluator{p.model, opt, make(map[leafKey]finder)}
	leaves, ok := e.scored(q)
	if s.opt.NoPositions && slices.ContainsFunc(leaves, func(l scored) bool { return l.words > 1 }) {
		ok = false
	}
	if !ok {
		return 0
	}
	when = fmt.Sprintf("%s: %s (%s)", when, q, optionText(opt))
	r, err := p.Search(ctx, q, opt)
	if err != nil {
		p.t.Errorf("%s: got error %v", when, err)
		return 0
	}
	mean := p.mean()
	for _, h := range r.Hits {
		if want := e.score(leaves, p.docs[h.ID], mean); !near(h.Score, want, 1e-3) {
			p.t.Errorf("%s: document %d: got score %v, want %v\n\t%q", when, h.ID[0], h.Score, want, fields(p.docs[h.ID]))
			return len(r.Hits)
		}
	}
	return len(r.Hits)
}
