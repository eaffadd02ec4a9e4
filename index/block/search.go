package block

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"

	"harvest/index"
	"harvest/index/query"
)

// A search is one call of Search.
type search struct {
	*engine
	ctx      context.Context
	opt      index.Options
	q        query.Node
	cut      map[string]*terms
	patterns map[string]*pattern
	matcher  *index.Matcher
	counts   counts
	limited  string // which limit on words was met
}

// Counts of what a search did.
type counts struct {
	words     int // looked up, each in each segment
	blocks    int // in their lists
	certain   int // documents decided by the index
	possible  int // documents that may match
	read      int // of those
	confirmed int
	bytes     int64 // of their text
}

// Search finds the documents that q matches, in the order of the index unless
// opt.Rank is RankValue. They have no score.
func (e *engine) Search(ctx context.Context, q query.Node, opt index.Options) (index.Results, error) {
	v, err := e.view()
	if err != nil {
		return index.Results{}, err
	}
	defer runtime.KeepAlive(v)
	e.pace.Begin()
	defer e.pace.End()
	s := &search{engine: e, ctx: ctx, opt: opt, cut: make(map[string]*terms), patterns: make(map[string]*pattern)}
	if s.matcher, err = index.Compile(q, opt); err != nil {
		return index.Results{}, err
	}
	if s.q, err = s.settle(v, q); err != nil {
		return index.Results{}, err
	}
	if !reflect.DeepEqual(s.q, q) {
		if s.matcher, err = index.Compile(s.q, opt); err != nil {
			return index.Results{}, err
		}
	}
	if e.set.NoNumbers {
		s.matcher.WithoutNumbers()
	}
	return s.run(v)
}

// need is how many hits are enough, 0 for all.
func (s *search) need() int {
	if s.opt.Count || s.opt.Limit <= 0 || s.opt.Rank == index.RankValue {
		return 0
	}
	return s.opt.Offset + s.opt.Limit
}

func (s *search) run(v *view) (r index.Results, err error) {
	bounds := make([]bound, len(v.parts))
	for i := range v.parts {
		if bounds[i], err = s.evaluator(&v.parts[i]).live(s.q); err != nil {
			return r, err
		}
		s.counts.certain += bounds[i].must.count()
		bounds[i].may.without(bounds[i].must)
		s.counts.possible += bounds[i].may.count()
	}
	if r.Cut, r.AtLeast, err = s.scan(v, bounds); err != nil {
		return r, err
	}
	if s.limited != "" {
		r.Cut, r.AtLeast = s.limited, true
	}
	hits := s.hits(v, bounds)
	r.Total = len(hits)
	if s.opt.Rank == index.RankValue {
		if err := s.sort(v, hits); err != nil {
			return r, err
		}
	}
	hits = hits[min(s.opt.Offset, len(hits)):]
	if s.opt.Limit > 0 {
		hits = hits[:min(s.opt.Limit, len(hits))]
	}
	r.Hits = hits
	r.Plan = s.plan(v)
	return r, nil
}

// hits gives the documents that match.
func (s *search) hits(v *view, bounds []bound) []index.Hit {
	hits := s.opt.Buf[:0]
	for i := range v.parts {
		bounds[i].must.each(func(doc uint32) bool {
			hits = append(hits, index.Hit{ID: v.parts[i].id(doc)})
			return true
		})
	}
	return hits
}

// sort puts hits in the order of the least key of the attribute opt.Sort, or
// the reverse; those that have none come last, equals by ID.
func (s *search) sort(v *view, hits []index.Hit) error {
	place := make(map[index.ID]int, len(hits))
	for _, h := range hits {
		place[h.ID] = math.MaxInt
	}
	err := v.eachList(s.ctx, prefixKey(valueKind, index.Attr(s.opt.Sort)), func(n int, p *part, docs []uint32) {
		for _, doc := range docs {
			if k, ok := place[p.id(doc)]; ok && k == math.MaxInt && !p.gone.Has(doc) {
				place[p.id(doc)] = n
			}
		}
	})
	slices.SortFunc(hits, func(a, b index.Hit) int {
		k, l := place[a.ID], place[b.ID]
		if s.opt.Reverse && k != math.MaxInt && l != math.MaxInt {
			k, l = l, k
		}
		return cmp.Or(cmp.Compare(k, l), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return err
}

func (s *search) plan(v *view) []string {
	c := &s.counts
	return []string{
		fmt.Sprintf("index: grain %v, segments %d", s.grain, len(v.parts)),
		fmt.Sprintf("words: looked up %d, blocks %d", c.words, c.blocks),
		fmt.Sprintf("documents: by the index %d, possible %d", c.certain, c.possible),
		fmt.Sprintf("text: documents %d, bytes %d, matches %d", c.read, c.bytes, c.confirmed),
	}
}
