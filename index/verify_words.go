package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/unicode/norm"
)

// A value is one of the document at hand.
type value struct {
	field  string // its attribute as it was written
	name   string
	weighs bool
	text   string
	known  uint8 // what of the below is
	ascii  bool
	odd    [noRole]tokens // the words of stretches with a character of a role
	all    tokens
}

const (
	knowASCII = 1 << iota
	knowAll
	knowOdd // and the next, by role
)

// A role is what characters beyond ASCII can do to the words they stand in.
type role uint8

const (
	folding  role = iota // become ASCII letters or digits, or nothing
	joining              // that, or be a joiner in a compound
	lettered             // be part of a word, or nothing
	wordy                // any of these
	noRole
)

// roles has, for the characters of the first plane, a bit for each role: what
// roleOf says, in a hundredth of the time.
var roles = sync.OnceValue(func() *[1 << 16]uint8 {
	const letter = 1 << noRole
	var t [1 << 16]uint8
	each := func(table *unicode.RangeTable, change func(bits *uint8)) {
		for _, r := range table.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				change(&t[c])
			}
		}
	}
	each(unicode.P, func(bits *uint8) { *bits = 1<<joining | 1<<wordy })
	each(unicode.Pd, func(bits *uint8) { *bits = 0 })
	t['\u202f'] = 1<<joining | 1<<wordy
	for _, table := range []*unicode.RangeTable{unicode.N, unicode.M, unicode.Cf} {
		each(table, func(bits *uint8) { *bits = letter - 1 })
	}
	each(unicode.L, func(bits *uint8) { *bits = letter | (letter - 1) })
	for _, table := range solid {
		each(table, func(bits *uint8) {
			if *bits&letter != 0 {
				*bits = 1<<lettered | 1<<wordy
			}
		})
	}
	for i := range t {
		t[i] &^= letter
	}
	return &t
})

// solid are scripts no letter of which folds to ASCII.
var solid = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Cyrillic,
	unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Thai, unicode.Devanagari, unicode.Armenian, unicode.Georgian}

func roleOf(r rune) (bits uint8) {
	switch {
	case unicode.IsLetter(r) && unicode.In(r, solid...):
		return 1<<lettered | 1<<wordy
	case unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Cf):
		return 1<<folding | 1<<joining | 1<<lettered | 1<<wordy
	case unicode.Is(unicode.P, r) && !unicode.Is(unicode.Pd, r), r == '\u202f':
		return 1<<joining | 1<<wordy
	}
	return 0
}

// plays tells whether a character has a role.
func plays(r rune, as role) bool {
	if r < 1<<16 {
		return roles()[r]>>as&1 != 0
	}
	return roleOf(r)>>as&1 != 0
}

// isASCII tells whether a value is ASCII throughout.
func (v *value) isASCII() bool {
	if v.known&knowASCII == 0 {
		v.known |= knowASCII
		v.ascii = indexWide(v.text, 0) < 0
	}
	return v.ascii
}

// indexWide is the place of the first byte from a place on that is not ASCII;
// -1 if all are.
func indexWide(text string, at int) int {
	const high = 0x8080808080808080
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	for ; at+32 <= len(b); at += 32 {
		w := b[at : at+32 : at+32]
		x := binary.LittleEndian.Uint64(w) | binary.LittleEndian.Uint64(w[8:]) | binary.LittleEndian.Uint64(w[16:]) | binary.LittleEndian.Uint64(w[24:])
		if x&high != 0 {
			break // the loop below finds where
		}
	}
	for ; at+8 <= len(b); at += 8 {
		if z := binary.LittleEndian.Uint64(b[at:]) & high; z != 0 {
			return at + bits.TrailingZeros64(z)>>3
		}
	}
	for ; at < len(b); at++ {
		if b[at] >= utf8.RuneSelf {
			return at
		}
	}
	return -1
}

// Tokens are the words of a text: those with positions, which are their
// places in parts, and compounds.
type tokens struct {
	bytes  []byte
	parts  []token
	wholes []token
}

type token struct {
	from, to   uint32 // in bytes
	pos        uint32
	start, end uint32
}

func (t *tokens) reset() { t.bytes, t.parts, t.wholes = t.bytes[:0], t.parts[:0], t.wholes[:0] }

func (t *tokens) text(k *token) []byte { return t.bytes[k.from:k.to] }

func (k *token) span() span {
	return span{int(k.pos), int(k.pos), int(k.start), int(k.end), 0}
}

// cut adds the words of text, which stands at a place of the value.
func (m *Matcher) cut(t *tokens, text string, at int) {
	m.a.pos = 0
	m.a.words(text, func(w *Word) bool {
		from := len(t.bytes)
		t.bytes = m.appendWord(t.bytes, w, text)
		k := token{uint32(from), uint32(len(t.bytes)), uint32(w.Pos), uint32(at + w.Start), uint32(at + w.End)}
		if w.Whole {
			t.wholes = append(t.wholes, k)
		} else {
			t.parts = append(t.parts, k)
		}
		return true
	})
}

// appendWord appends a word as it is compared.
func (m *Matcher) appendWord(dst []byte, w *Word, text string) []byte {
	if !m.opt.Case {
		return append(dst, w.Text...)
	}
	return appendCased(dst, text[w.Start:w.End])
}

// oddWords are the words of stretches between white space that hold a
// character of a role; all others can be told by their bytes.
func (m *Matcher) oddWords(v *value, as role) *tokens {
	t := &v.odd[as]
	if v.known&(knowOdd<<as) != 0 {
		return t
	}
	v.known |= knowOdd << as
	t.reset()
	for at := indexWide(v.text, 0); at >= 0; at = indexWide(v.text, at) {
		r, n := utf8.DecodeRuneInString(v.text[at:])
		if at += n; plays(r, as) {
			begin, end := stretch(v.text, at-n)
			m.cut(t, v.text[begin:end], begin)
			at = end
		}
	}
	return t
}

// stretch is what stands around a place up to white space, across which no
// word goes.
func stretch(text string, at int) (begin, end int) {
	for begin = at; begin > 0 && text[begin-1] > ' '; begin-- {
	}
	for end = at; end < len(text) && text[end] > ' '; end++ {
	}
	return begin, end
}

// allWords are the words of a value.
func (m *Matcher) allWords(v *value) *tokens {
	if v.known&knowAll == 0 {
		v.known |= knowAll
		v.all.reset()
		m.cut(&v.all, v.text, 0)
	}
	return &v.all
}

// appendCased appends a text without accents and compatible forms, as Fold
// does, but in the case it is written.
func appendCased(dst []byte, s string) []byte {
	if isASCII(s) {
		return append(dst, s...)
	}
	bare := strings.Map(func(r rune) rune {
		switch {
		case accent(r), unicode.Is(unicode.Cf, r):
			return -1
		case r == '’':
			return '\''
		}
		return r
	}, norm.NFKD.String(s))
	return norm.NFC.AppendString(dst, bare)
}

// A word of a query: what the index has for it.
type wordOf struct {
	folded string
	cased  string
	pos    int
	cjk    bool
	prefix bool // stands for all words it begins: a Chinese or Japanese character alone
}

// as is the word as a Matcher compares it.
func (w *wordOf) as(cased bool) string {
	if cased {
		return w.cased
	}
	return w.folded
}

// phraseOf are the words of a phrase. Of a run of Chinese or Japanese the last
// character is not one: the pair before it says as much.
func phraseOf(text string) (out []wordOf) {
	end := -1 // of the last pair
	Words(text, func(w *Word) bool {
		if w.Whole {
			return true
		}
		single := w.CJK && utf8.RuneCount(w.Text) == 1
		if single && w.End == end {
			return true
		}
		if w.CJK {
			end = w.End
		}
		cased := string(appendCased(nil, text[w.Start:w.End]))
		out = append(out, wordOf{string(w.Text), cased, w.Pos, w.CJK, single})
		return true
	})
	return out
}

// queryWord is the words of a query's word: those of a compound are a phrase.
// It is single if it is one that can be misspelt or stemmed, and is no Chinese
// or Japanese.
func queryWord(text string) (words []wordOf, single bool) {
	words = phraseOf(text)
	return words, len(words) == 1 && !words[0].cjk
}

// alnum tells ASCII letters and digits.
func alnum(c byte) bool { return class[c] >= '0' }

// simple tells a word of ASCII letters and digits.
func simple(word string) bool {
	for i := range len(word) {
		if !alnum(word[i]) {
			return false
		}
	}
	return word != ""
}

func isASCII(s string) bool { return indexWide(s, 0) < 0 }

// holds tells whether a word is among tokens.
func (t *tokens) holds(word string, prefix bool) bool {
	return slices.ContainsFunc(t.parts, func(k token) bool { return t.is(&k, word, prefix) })
}

func (t *tokens) is(k *token, word string, prefix bool) bool {
	if prefix {
		return bytes.HasPrefix(t.text(k), []byte(word))
	}
	return int(k.to-k.from) == len(word) && string(t.text(k)) == word
}
