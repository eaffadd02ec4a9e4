package index

import (
	"slices"
	"sync"

	"harvest/index/dict"
)

// An aside is what searches find out about a segment and keep.
type aside struct {
	stems dict.Stems
	mu    sync.Mutex
	long  []uint32 // ordinals of words that are cut, once known
	known bool     // of long

	orders map[orderName]*ordered
}

// stem looks up the words with a stem.
func (s *searcher) stem(stem string) *elem {
	e := s.newElem()
	e.pat = &expansion{key: "stem " + stem, stem: stem}
	for i := range s.view.parts {
		p := &s.view.parts[i]
		err := p.aside.stems.Each(s.ctx, p.terms(), s.opt.Stem, compound, stem, func(_, value []byte, _ int) bool { return s.add(e, i, value) })
		if !s.alive() {
			break
		}
		if err != nil {
			s.fail(p.Corrupt("%v", err))
			break
		}
	}
	e.sortLists()
	return e
}

// compound tells whether a term holds a joiner.
func compound(term []byte) bool {
	return slices.ContainsFunc(term, func(c byte) bool { return class[c] < wide })
}
