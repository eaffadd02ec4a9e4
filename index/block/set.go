package block

import "math/bits"

// A set is a set of documents of one segment, a bit each.
type set []uint64

func newSet(docs uint32) set { return make(set, (uint64(docs)+63)/64) }

func (s set) add(doc uint32)      { s[doc>>6] |= 1 << (doc & 63) }
func (s set) has(doc uint32) bool { return s != nil && s[doc>>6]&(1<<(doc&63)) != 0 }

// addRange adds the documents from from up to, not with, to.
func (s set) addRange(from, to uint32) {
	if from >= to {
		return
	}
	first, last := from>>6, (to-1)>>6
	low, high := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if first == last {
		s[first] |= low & high
		return
	}
	s[first] |= low
	for i := first + 1; i < last; i++ {
		s[i] = ^uint64(0)
	}
	s[last] |= high
}

func (s set) clear() { clear(s) }

func (s set) or(t set) {
	for i, w := range t {
		s[i] |= w
	}
}

func (s set) and(t set) {
	for i, w := range t {
		s[i] &= w
	}
}

func (s set) without(t set) {
	for i, w := range t {
		s[i] &^= w
	}
}

func (s set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s set) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// each calls yield for the documents in order until it returns false.
func (s set) each(yield func(doc uint32) bool) { s.eachFrom(0, yield) }

// eachFrom is each for the documents from from on.
func (s set) eachFrom(from uint32, yield func(doc uint32) bool) {
	for i := int(from >> 6); i < len(s); i++ {
		w := s[i]
		if i == int(from>>6) {
			w &= ^uint64(0) << (from & 63)
		}
		for ; w != 0; w &= w - 1 {
			if !yield(uint32(i)<<6 | uint32(bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// countFrom counts the documents from from up to, not with, to.
func (s set) countFrom(from, to uint32) (n int) {
	if from >= to {
		return 0
	}
	first, last := from>>6, (to-1)>>6
	for i := first; i <= last; i++ {
		w := s[i]
		if i == first {
			w &= ^uint64(0) << (from & 63)
		}
		if i == last {
			w &= ^uint64(0) >> (63 - (to-1)&63)
		}
		n += bits.OnesCount64(w)
	}
	return n
}
