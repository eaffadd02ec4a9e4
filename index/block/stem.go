package block

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// The words of a dictionary by stem: hashes of stems in order, each with the
// ordinal of a word: 8 bytes a word. A segment keeps those of the last Stem it
// was asked for.
type stems struct {
	mu    sync.Mutex
	of    func(string) string
	seed  maphash.Seed
	words []uint64 // hash of the stem << 32 | ordinal
}

// same tells whether f and g are one function made by one evaluation: a func is
// a pointer to what it was made of.
func same(f, g func(string) string) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f)) == *(*unsafe.Pointer)(unsafe.Pointer(&g))
}

// stemmed bounds the words that have the stem of word.
func (e *evaluator) stemmed(word, attr string) bound {
	words, seed := e.stems()
	stem := e.s.opt.Stem(word)
	h := maphash.String(seed, stem) >> 32
	f := e.find(attr)
	n, _ := slices.BinarySearch(words, h<<32)
	var term []byte
	for _, w := range words[n:] {
		if w>>32 != h {
			break
		}
		t, _, ok := e.p.terms.dict.At(int(uint32(w)), term[:0])
		if ok && e.s.opt.Stem(string(t)) == stem {
			f.addAt(string(t), int(uint32(w)))
		}
		term = t
	}
	b := f.bound(false)
	if hashed([]byte(word)) { // numbers are their own stems
		e.widen(&b, e.term(word, attr))
	}
	return b
}

// stems gives those of the part.
func (e *evaluator) stems() ([]uint64, maphash.Seed) {
	st := &e.p.stems
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.of != nil && same(st.of, e.s.opt.Stem) {
		return st.words, st.seed
	}
	st.seed = maphash.MakeSeed()
	words := make([]uint64, 0, e.p.terms.dict.Len())
	c := e.p.terms.dict.Cursor()
	for c.Next() {
		if c.Ord()%4096 == 0 && e.ctx.Err() != nil {
			e.fail(e.ctx.Err())
			return nil, st.seed
		}
		if t := c.Term(); !marked(t) {
			words = append(words, maphash.String(st.seed, e.s.opt.Stem(string(t)))>>32<<32|uint64(c.Ord()))
		}
	}
	if err := c.Err(); err != nil {
		e.fail(corrupt(e.p.path, "%v", err))
		return nil, st.seed
	}
	slices.SortFunc(words, cmp.Compare[uint64])
	st.of, st.words = e.s.opt.Stem, words
	return words, st.seed
}
