package match

import (
	"encoding/binary"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A kind is what a character means to those beside it.
type kind uint8

const (
	plain   kind = iota
	letter       // of a word, ASCII: what \b knows
	foreign      // of a word, beyond ASCII
	newline      // the end of a line
	edge0        // none: the end of the text
	kinds
)

func (k kind) ofWord() bool { return k == letter || k == foreign }

// kindOf is the kind of a character.
func kindOf(r rune) kind {
	switch {
	case r == '\n':
		return newline
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' {
			return letter
		}
	case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r):
		return foreign
	}
	return plain
}

// kindBefore is the kind of what stands before byte i of text.
func kindBefore(text []byte, i int) kind {
	if i == 0 {
		return edge0
	}
	r, _ := utf8.DecodeLastRune(text[:i])
	return kindOf(r)
}

// kindAfter is the kind of what stands at byte i of text.
func kindAfter(text []byte, i int) kind {
	if i >= len(text) {
		return edge0
	}
	r, _ := utf8.DecodeRune(text[i:])
	return kindOf(r)
}

// conds is what holds between two characters.
func conds(before, after kind) (c cond) {
	if before >= newline {
		c |= beginLine
	}
	if after >= newline {
		c |= endLine
	}
	if before == edge0 {
		c |= beginText
	}
	if after == edge0 {
		c |= endText
	}
	if (before == letter) != (after == letter) {
		return c | wordEdge
	}
	return c | noWordEdge
}

// multi is the class of bytes that begin no ASCII character, before the
// character they are part of is known.
const multi = 0

// classes parts the characters into classes that no set of a pattern tells
// apart. Class 0 is multi.
type classes struct {
	bytes [256]uint16 // the class of an ASCII character; multi
	low   []rune      // of the ranges beyond ASCII, in order
	of    []uint16    // their classes
	sets  [][]int32   // by class: the sets that hold it
	kind  []kind      // by class, if it was asked for
	nl    int         // the class of '\n'

	once sync.Once
	lead [256]uint16 // see leads
}

func (c *classes) class(r rune) int {
	if r < utf8.RuneSelf {
		return int(c.bytes[r])
	}
	i, ok := slices.BinarySearch(c.low, r)
	if !ok {
		i--
	}
	return int(c.of[i])
}

// leads gives the class of all characters that begin with a byte, if they and
// bytes that are no character have one; else 0.
func (c *classes) leads() *[256]uint16 {
	c.once.Do(func() {
		broken := c.class(utf8.RuneError)
		for b := 0x80; b < 256; b++ {
			low, high := utf8.RuneError, utf8.RuneError
			switch length[b] {
			case 2:
				low, high = rune(b&0x1f)<<6, rune(b&0x1f)<<6|0x3f
			case 3:
				low, high = rune(b&0xf)<<12, rune(b&0xf)<<12|0xfff
			case 4:
				low, high = rune(b&7)<<18, rune(b&7)<<18|0x3ffff
			}
			i, _ := slices.BinarySearch(c.low, low+1)
			parted := i < len(c.low) && c.low[i] <= high
			if class := c.class(max(low, utf8.RuneSelf)); class == broken && !parted {
				c.lead[b] = uint16(class)
			}
		}
	})
	return &c.lead
}

func (c *classes) len() int { return len(c.sets) }

// newClasses parts the characters by sets, and by kind as well if kinds is
// set; the newline is always alone.
func newClasses(sets [][]rune, byKind bool) *classes {
	all := append(slices.Clip(sets), []rune{'\n', '\n'})
	if byKind {
		all = append(all, letters(), asciiLetters)
	}
	s := sweep{now: make([]bool, len(all)), ids: map[string]uint16{}, c: &classes{}}
	s.c.sets = append(s.c.sets, nil)
	s.c.kind = append(s.c.kind, plain)
	bounds := []bound{{0, -1, true}, {utf8.RuneSelf, -1, true}}
	for i, set := range all {
		for j := 0; j+1 < len(set); j += 2 {
			bounds = append(bounds, bound{set[j], i, true}, bound{set[j+1] + 1, i, false})
		}
	}
	slices.SortFunc(bounds, func(a, b bound) int { return int(a.at) - int(b.at) })
	depth := make([]int, len(all))
	for i, b := range bounds {
		if b.set >= 0 {
			if b.opens {
				depth[b.set]++
			} else {
				depth[b.set]--
			}
			s.now[b.set] = depth[b.set] > 0
		}
		if i+1 < len(bounds) && bounds[i+1].at == b.at || b.at > unicode.MaxRune {
			continue
		}
		end := rune(unicode.MaxRune + 1)
		if i+1 < len(bounds) {
			end = bounds[i+1].at
		}
		s.add(b.at, end)
	}
	s.c.nl = int(s.c.bytes['\n'])
	return s.c
}

type bound struct {
	at    rune
	set   int
	opens bool
}

type sweep struct {
	now []bool
	ids map[string]uint16
	key []byte
	c   *classes
}

// add gives the characters from low up to end, which no set tells apart,
// their class.
func (s *sweep) add(low, end rune) {
	s.key = s.key[:0]
	for i, in := range s.now {
		if in {
			s.key = binary.AppendUvarint(s.key, uint64(i))
		}
	}
	id, ok := s.ids[string(s.key)]
	if !ok {
		id = uint16(len(s.c.sets))
		s.ids[string(s.key)] = id
		var in []int32
		for i, yes := range s.now {
			if yes {
				in = append(in, int32(i))
			}
		}
		s.c.sets = append(s.c.sets, in)
		s.c.kind = append(s.c.kind, kindOf(low))
	}
	if low >= utf8.RuneSelf {
		s.c.low = append(s.c.low, low)
		s.c.of = append(s.c.of, id)
		return
	}
	for r := low; r < min(end, utf8.RuneSelf); r++ {
		s.c.bytes[r] = id
	}
}

var asciiLetters = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}

// letters is the set of the characters of words.
var letters = sync.OnceValue(func() (set []rune) {
	set = append(set, '_', '_')
	for _, t := range []*unicode.RangeTable{unicode.L, unicode.M, unicode.N} {
		for _, r := range t.R16 {
			set = appendRange(set, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			set = appendRange(set, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return set
})

func appendRange(set []rune, low, high, stride rune) []rune {
	if stride == 1 {
		return append(set, low, high)
	}
	for r := low; r <= high; r += stride {
		set = append(set, r, r)
	}
	return set
}
