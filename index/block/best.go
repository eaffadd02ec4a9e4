package block

import (
	"strings"
	"unicode/utf8"

	"harvest/index"
	"harvest/index/match"
	"harvest/index/query"
)

// settle puts numbers of errors in place of Best: for each such word or phrase
// the least with which it finds anything where it stands.
func (s *search) settle(v *view, q query.Node, attr string) (_ query.Node, err error) {
	list := func(nodes []query.Node) ([]query.Node, error) {
		out := make([]query.Node, len(nodes))
		for i, n := range nodes {
			if out[i], err = s.settle(v, n, attr); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch n := q.(type) {
	case query.Attr:
		n.Value, err = s.settle(v, n.Value, index.Attr(n.Name))
		return n, err
	case query.Not:
		n.Node, err = s.settle(v, n.Node, attr)
		return n, err
	case query.And:
		l, err := list(n)
		return query.And(l), err
	case query.Or:
		l, err := list(n)
		return query.Or(l), err
	case query.Bag:
		l, err := list(n)
		return query.Bag(l), err
	case query.Near:
		n.Nodes, err = list(n.Nodes)
		return n, err
	case query.Fuzzy:
		if n.Best {
			return s.fewest(v, n, attr)
		}
	}
	return q, nil
}

func (s *search) fewest(v *view, q query.Fuzzy, attr string) (query.Node, error) {
	q.Best = false
	opt := s.opt
	opt.Offset, opt.Limit, opt.Count, opt.Buf, opt.Rank = 0, 1, false, nil, index.RankNone
	plain := strings.NewReplacer(`\<`, "_", `\>`, "_", "<", "", ">", "", `\\`, "_", `\`, "").Replace(q.Text)
	most := min(match.MaxErrors, max(1, utf8.RuneCountInString(plain)/2))
	for q.Errors = 0; q.Errors <= most; q.Errors++ {
		var alone query.Node = q
		if attr != "" {
			alone = query.Attr{Name: attr, Value: q}
		}
		t := &search{engine: s.engine, ctx: s.ctx, opt: opt, q: alone, cut: s.cut, patterns: s.patterns}
		var err error
		if t.matcher, err = index.Compile(alone, opt); err != nil {
			return nil, err
		}
		r, err := t.run(v)
		if err != nil || r.Total > 0 {
			return q, err
		}
	}
	return query.Or{}, nil
}
