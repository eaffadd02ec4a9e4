package enginetest

import (
	"context"
	"testing"

	"harvest/index"
	"harvest/index/query"
)

// The suite passes on an engine that asks a Matcher of each document.
func TestMatcher(t *testing.T) {
	kept := make(map[string]*matched)
	Run(t, func(dir string, _ index.Source) (index.Engine, error) {
		e := &matched{scan{model: newModel()}}
		if old := kept[dir]; old != nil {
			e.model, e.mark = old.model, old.mark
		}
		kept[dir] = e
		return e, nil
	}, Options{Unranked: true})
}

// matched is a scan that leaves what matches to a Matcher.
type matched struct{ scan }

func (s *matched) Search(ctx context.Context, q query.Node, opt index.Options) (r index.Results, err error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	if err := s.ready(ctx); err != nil {
		return r, err
	}
	if !valid(q, false, false) { // which resolved would trip over
		_, err := index.Compile(q, opt)
		return r, err
	}
	e := &evaluator{s.model, opt, make(map[leafKey]finder)}
	m, err := index.Compile(e.resolved(q, ""), opt)
	if err != nil {
		return r, err
	}
	for _, d := range s.sorted() {
		if m.Match(d.Fields) {
			r.Hits = append(r.Hits, index.Hit{ID: d.ID})
		}
	}
	r.Total = len(r.Hits)
	r.Hits = r.Hits[min(opt.Offset, len(r.Hits)):]
	if opt.Limit > 0 {
		r.Hits = r.Hits[:min(opt.Limit, len(r.Hits))]
	}
	return r, nil
}

// resolved puts the number of errors in where the fewest are asked for, which
// one document cannot tell.
func (e *evaluator) resolved(q query.Node, attr string) query.Node {
	all := func(nodes []query.Node) (out []query.Node) {
		for _, n := range nodes {
			out = append(out, e.resolved(n, attr))
		}
		return out
	}
	switch q := q.(type) {
	case query.Fuzzy:
		if q.Best {
			q.Errors, q.Best = e.fewest(q, attr), false
			if q.Errors < 0 {
				return query.Or{}
			}
		}
		return q
	case query.Attr:
		return query.Attr{Name: q.Name, Value: e.resolved(q.Value, index.Attr(q.Name))}
	case query.Not:
		return query.Not{Node: e.resolved(q.Node, attr)}
	case query.And:
		return query.And(all(q))
	case query.Or:
		return query.Or(all(q))
	case query.Bag:
		return query.Bag(all(q))
	case query.Near:
		q.Nodes = all(q.Nodes)
		return q
	}
	return q
}
