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
func (s *search) settle(v *view, q query.Node) (_ query.Node, err error) {
	q = query.Map(q, func(q query.Node, attr string) query.Node {
		f, ok := q.(query.Fuzzy)
		if !ok || !f.Best || err != nil {
			return nil
		}
		to, e := s.fewest(v, f, index.Attr(attr))
		if err = e; err != nil {
			return nil
		}
		return to
	})
	return q, err
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
