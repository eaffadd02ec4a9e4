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
	m, err := index.Compile(e.resolved(q), opt)
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
func (e *evaluator) resolved(q query.Node) query.Node {
	return query.Map(q, func(q query.Node, attr string) query.Node {
		f, ok := q.(query.Fuzzy)
		if !ok || !f.Best {
			return nil
		}
		if f.Errors, f.Best = e.fewest(f, index.Attr(attr)), false; f.Errors < 0 {
			return query.Or{}
		}
		return f
	})
}
