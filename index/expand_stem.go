package index

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// An aside is what searches find out about a segment and keep.
type aside struct {
	mu    sync.Mutex
	stems *stems
	long  []uint32 // ordinals of words that are cut, once known
	known bool     // of long
}

// The words of a dictionary by stem: hashes of stems in order, each with the
// ordinal of a word. It takes 8 bytes a word and is made when it is first
// asked for, which takes as long as stemming all words.
type stems struct {
	of    func(string) string
	seed  maphash.Seed
	words []uint64 // hash of the stem << 32 | ordinal
}

func (st *stems) hash(stem string) uint64 { return maphash.String(st.seed, stem) >> 32 << 32 }

// same tells whether f and g are one function, made by one evaluation: a
// func is a pointer to what it was made of.
func same(f, g func(string) string) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f)) == *(*unsafe.Pointer)(unsafe.Pointer(&g))
}

// stem looks up the words with a stem.
func (s *searcher) stem(stem string) *elem {
	e := s.newElem()
	e.pat = &expansion{key: "stem " + stem, stem: stem}
	for i := range s.view.parts {
		p := &s.view.parts[i]
		st := s.stems(p)
		if st == nil {
			break
		}
		h := st.hash(stem)
		n, _ := slices.BinarySearch(st.words, h)
		var term []byte
		for _, w := range st.words[n:] {
			if w>>32 != h>>32 {
				break
			}
			t, value, ok := p.terms().At(int(uint32(w)), term[:0])
			if ok && s.opt.Stem(string(t)) == stem && !s.add(e, i, value) {
				break
			}
			term = t
		}
	}
	e.sortLists()
	return e
}

// stems gives those of a segment, nil if the search is to end.
func (s *searcher) stems(p *part) *stems {
	p.aside.mu.Lock()
	defer p.aside.mu.Unlock()
	if st := p.aside.stems; st != nil && same(st.of, s.opt.Stem) {
		return st
	}
	d := p.terms()
	st := &stems{of: s.opt.Stem, seed: maphash.MakeSeed(), words: make([]uint64, 0, d.Len())}
	c := d.Cursor()
	for c.Next() {
		if c.Ord()%4096 == 0 && !s.alive() {
			return nil
		}
		if !compound(c.Term()) {
			st.words = append(st.words, st.hash(s.opt.Stem(string(c.Term())))|uint64(c.Ord()))
		}
	}
	if err := c.Err(); err != nil {
		s.fail(corrupt(p.path, "%v", err))
		return nil
	}
	slices.SortFunc(st.words, cmp.Compare[uint64])
	p.aside.stems = st
	return st
}

// compound tells whether a term holds a joiner.
func compound(term []byte) bool {
	return slices.ContainsFunc(term, func(c byte) bool { return class[c] < wide })
}
