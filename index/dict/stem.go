package dict

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// Stems finds the words of a dictionary by their stems: hashes of stems in
// order, each with the ordinal of a word, 8 bytes a word. They are made when they
// are first asked for, which takes as long as stemming all words, and kept for
// one function that stems, the last. The zero Stems are ready; any number of
// goroutines may ask.
type Stems struct {
	mu   sync.Mutex
	of   func(string) string
	kept hashes // of that
}

type hashes struct {
	seed  maphash.Seed
	words []uint64 // hash of the stem << 32 | ordinal
}

func (h *hashes) hash(stem string) uint64 { return maphash.String(h.seed, stem) >> 32 << 32 }

// same tells whether f and g are one function, made by one evaluation: a func is
// a pointer to what it was made of.
func same(f, g func(string) string) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f)) == *(*unsafe.Pointer)(unsafe.Pointer(&g))
}

// Each calls yield, until it returns false, for the words of d whose stem is
// one. The words that skip tells have none. All calls of a Stems are about one
// dictionary, and skip tells the same each time.
func (st *Stems) Each(ctx context.Context, d *Dict, stem func(string) string, skip func(term []byte) bool, one string, yield func(term, value []byte, ord int) bool) error {
	h, err := st.hashes(ctx, d, stem, skip)
	if err != nil {
		return err
	}
	want := h.hash(one)
	n, _ := slices.BinarySearch(h.words, want)
	var term []byte
	for _, w := range h.words[n:] {
		if w>>32 != want>>32 {
			break
		}
		t, value, ok := d.At(int(uint32(w)), term[:0])
		if ok && stem(string(t)) == one && !yield(t, value, int(uint32(w))) {
			break
		}
		term = t
	}
	return nil
}

// hashes gives those of a function.
func (st *Stems) hashes(ctx context.Context, d *Dict, stem func(string) string, skip func(term []byte) bool) (hashes, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.of != nil && same(st.of, stem) {
		return st.kept, nil
	}
	h := hashes{seed: maphash.MakeSeed(), words: make([]uint64, 0, d.Len())}
	c := d.Cursor()
	for c.Next() {
		if c.Ord()%4096 == 0 && ctx.Err() != nil {
			return h, ctx.Err()
		}
		if !skip(c.Term()) {
			h.words = append(h.words, h.hash(stem(string(c.Term())))|uint64(c.Ord()))
		}
	}
	if err := c.Err(); err != nil {
		return h, err
	}
	slices.Sort(h.words)
	st.of, st.kept = stem, h
	return h, nil
}
