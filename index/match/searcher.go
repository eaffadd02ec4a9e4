package match

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A Searcher finds a literal in text, eight places at a time: it compares two
// rare bytes of the literal at once with those of eight places, both cases of
// a letter as one, and looks closer where both agree. A Searcher does not
// change and may be shared.
type Searcher struct {
	before, after []rune // of the literal, around run, folded
	folds         bool
	run           []byte // bytes that are the same in either case, but for:
	mask          []byte // 0x20 where run holds an ASCII letter that folds
	o1, o2        int    // of run, the bytes to look for
	heads         [][]byte
}

// NewSearcher makes one for a literal, which is not empty. If folds is set,
// case does not matter.
func NewSearcher(literal string, folds bool) *Searcher {
	s := &Searcher{folds: folds}
	begin, end := s.longest(literal)
	s.before, s.after = []rune(literal[:begin]), []rune(literal[end:])
	if !folds {
		s.before, s.after = nil, nil
	}
	s.run = []byte(literal[begin:end])
	s.mask = make([]byte, len(s.run))
	for i, c := range s.run {
		if folds && asciiLetter(c) {
			s.run[i], s.mask[i] = c|0x20, 0x20
		}
	}
	if len(s.run) == 0 {
		for _, r := range pairs(fold(s.after[0])) {
			s.heads = append(s.heads, utf8.AppendRune(nil, r))
		}
		return s
	}
	s.o1 = s.rarest(-1)
	s.o2 = s.rarest(s.o1)
	return s
}

func asciiLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// pairs is the first of each pair.
func pairs(set []rune) (out []rune) {
	for i := 0; i < len(set); i += 2 {
		out = append(out, set[i])
	}
	return out
}

// longest is the longest stretch of a literal that takes the same bytes in
// either case, ASCII letters aside.
func (s *Searcher) longest(literal string) (begin, end int) {
	if !s.folds {
		return 0, len(literal)
	}
	from := 0
	for i := 0; i < len(literal); {
		r, size := utf8.DecodeRuneInString(literal[i:])
		if r >= utf8.RuneSelf && (r == utf8.RuneError || len(fold(r)) > 2) {
			from = i + size
		}
		i += size
		if i-from > end-begin {
			begin, end = from, i
		}
	}
	return begin, end
}

// common orders bytes of text from the most frequent on.
const common = " etaoinsrlcdhpumf\ngb.y-,w_vk/0()1x'=2:ESTA\"<>CIR3jN;4OPLq5MDz86F79"

// rarest is the place of the rarest byte of run but for the one at not.
func (s *Searcher) rarest(not int) int {
	best, rank := max(not, 0), -1
	for i, c := range s.run {
		at := strings.IndexByte(common, c)
		if at < 0 {
			at = len(common)
		}
		if i != not && at > rank {
			best, rank = i, at
		}
	}
	return best
}

// Find gives the first place of the literal in text from a place on.
func (s *Searcher) Find(text []byte, from int) (start, end int, ok bool) {
	if s.heads != nil {
		return s.findHead(text, from)
	}
	for at := from; ; at++ {
		if at = s.candidate(text, at); at < 0 {
			return 0, 0, false
		}
		if !s.equal(text[at : at+len(s.run)]) {
			continue
		}
		start, end = at, at+len(s.run)
		if len(s.before) > 0 || len(s.after) > 0 {
			if start, ok = s.backward(text[from:], at-from); !ok {
				continue
			}
			start += from
			if end, ok = s.forward(text, end, s.after); !ok {
				continue
			}
		}
		return start, end, true
	}
}

// FindString is Find.
func (s *Searcher) FindString(text string, from int) (start, end int, ok bool) {
	return s.Find(bytesOf(text), from)
}

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

func (s *Searcher) equal(text []byte) bool {
	for i, c := range s.run {
		if text[i]|s.mask[i] != c {
			return false
		}
	}
	return true
}

// candidate is the first place where the two rare bytes of run stand; -1 if
// there is none.
func (s *Searcher) candidate(text []byte, at int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	last := len(text) - len(s.run) // the last place of run
	b1, b2 := uint64(s.run[s.o1])*low, uint64(s.run[s.o2])*low
	m1, m2 := uint64(s.mask[s.o1])*low, uint64(s.mask[s.o2])*low
	if at > last {
		return -1
	}
	one, two := text[s.o1:], text[s.o2:]
	for ; at+31 <= last; at += 32 {
		a, b := one[at:at+32:at+32], two[at:at+32:at+32]
		x0 := (binary.LittleEndian.Uint64(a) | m1) ^ b1
		x1 := (binary.LittleEndian.Uint64(a[8:]) | m1) ^ b1
		x2 := (binary.LittleEndian.Uint64(a[16:]) | m1) ^ b1
		x3 := (binary.LittleEndian.Uint64(a[24:]) | m1) ^ b1
		x0 |= (binary.LittleEndian.Uint64(b) | m2) ^ b2
		x1 |= (binary.LittleEndian.Uint64(b[8:]) | m2) ^ b2
		x2 |= (binary.LittleEndian.Uint64(b[16:]) | m2) ^ b2
		x3 |= (binary.LittleEndian.Uint64(b[24:]) | m2) ^ b2
		if ((x0-low)&^x0|(x1-low)&^x1|(x2-low)&^x2|(x3-low)&^x3)&high != 0 {
			break // the loop below finds which
		}
	}
	for ; at+7 <= last; at += 8 {
		x := (binary.LittleEndian.Uint64(one[at:]) | m1) ^ b1
		x |= (binary.LittleEndian.Uint64(two[at:]) | m2) ^ b2
		if z := (x - low) &^ x & high; z != 0 {
			return at + bits.TrailingZeros64(z)>>3
		}
	}
	for ; at <= last; at++ {
		if one[at]|byte(m1) == byte(b1) && two[at]|byte(m2) == byte(b2) {
			return at
		}
	}
	return -1
}

// backward compares what stands before run.
func (s *Searcher) backward(text []byte, at int) (int, bool) {
	for i := len(s.before) - 1; i >= 0; i-- {
		r, size := utf8.DecodeLastRune(text[:at])
		if size == 0 || !s.same(r, s.before[i]) {
			return 0, false
		}
		at -= size
	}
	return at, true
}

func (s *Searcher) forward(text []byte, at int, want []rune) (int, bool) {
	for _, w := range want {
		r, size := utf8.DecodeRune(text[at:])
		if size == 0 || !s.same(r, w) {
			return 0, false
		}
		at += size
	}
	return at, true
}

func (s *Searcher) same(r, want rune) bool {
	if r == want {
		return true
	}
	set := fold(want)
	for i := 0; i < len(set); i += 2 {
		if set[i] == r {
			return true
		}
	}
	return false
}

// findHead looks for the cases of the first character.
func (s *Searcher) findHead(text []byte, from int) (start, end int, ok bool) {
	var room [4]int
	next := room[:0]
	for range s.heads {
		next = append(next, from-1)
	}
	for at := from; ; {
		best := len(text)
		for i, h := range s.heads {
			if next[i] < at {
				next[i] = len(text)
				if j := bytes.Index(text[at:], h); j >= 0 {
					next[i] = at + j
				}
			}
			best = min(best, next[i])
		}
		if best == len(text) {
			return 0, 0, false
		}
		if end, ok = s.forward(text, best, s.after); ok {
			return best, end, true
		}
		at = best + 1
	}
}
