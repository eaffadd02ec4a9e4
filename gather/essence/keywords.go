package essence

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"harvest/gather/soif"
)

// A term is a word of a text, in lower case, how often it is there, and what that
// is worth.
type term struct {
	start, end int // in the bytes of terms
	n          int
	weight     int
	hash       uint32
	of         tongue // the languages it is common in
	common     uint8  // its weight in commonWords, 0 if it is not there
	wide       bool   // it is not ASCII
}

// terms are the different words of a text, in the order they come.
type terms struct {
	bytes []byte
	all   []term
	n     int             // words in all
	slot  [1 << 13]uint16 // of all, by hash; 0 is free
}

const (
	maxTerms   = 4096
	maxCounted = 64 << 10 // bytes of a text whose words are counted
	maxWord    = 32       // bytes
)

func newTerms() *terms {
	return &terms{bytes: make([]byte, 0, 4<<10), all: make([]term, 0, 256)}
}

// keywords returns the n words that tell most of a text, that most first, for
// what is in its first 64 KB: they are frequent, and not in texts of the same
// language in general.
func keywords(text []byte, n int) string {
	t := newTerms()
	t.count(text[:min(len(text), maxCounted)], 1)
	return t.top(n, t.language().lang, nil)
}

// keywords are those of a text, as the options of its type have them.
func (w *worker) keywords(c *content, t *terms, lang string) string {
	n := defaultKeywords
	if c.opt.keywords != nil {
		n = *c.opt.keywords
	}
	return t.top(n, lang, c.opt.stop)
}

const defaultKeywords = 60

// count counts the words of a text, each for so much.
func (t *terms) count(text []byte, weight int) {
	for i := 0; i < len(text); {
		if !wordBytes[text[i]] {
			i++
			continue
		}
		if n := mark(text[i:]); n > 0 {
			i += n
			continue
		}
		start, wide := i, false
		for i < len(text) && wordBytes[text[i]] {
			if text[i] >= utf8.RuneSelf {
				if mark(text[i:]) > 0 {
					break
				}
				wide = true
			}
			i++
		}
		if w := text[start:i]; len(w) >= 2 && len(w) <= maxWord && w[0] > '9' {
			t.add(w, weight, wide)
		}
	}
}

// mark is the length of the mark that a text begins with, one that is not ASCII:
// a quote, a dash, a blank; 0 if it is a letter.
func mark(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[0] {
	case 0xc2: // of Latin 1
		if c := b[1]; c != 0xaa && c != 0xb5 && c != 0xba {
			return 2
		}
	case 0xe2: // general punctuation, and symbols
		if b[1] <= 0xaf && len(b) > 2 {
			return 3
		}
	case 0xe3: // of CJK
		if b[1] == 0x80 && len(b) > 2 {
			return 3
		}
	case 0xef: // of full width
		if len(b) > 2 && (b[1] == 0xbc && b[2] <= 0xa0 || b[1] == 0xbb) {
			return 3
		}
	}
	return 0
}

// add counts a word.
func (t *terms) add(w []byte, weight int, wide bool) {
	start := len(t.bytes)
	h := uint32(hashStart)
	if wide {
		w = bytes.ToLower(w)
	}
	for _, b := range w {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		t.bytes = append(t.bytes, b)
		h = (h ^ uint32(b)) * hashPrime
	}
	t.n++
	low := t.bytes[start:]
	for i := spreadHash(h) % uint32(len(t.slot)); ; i = (i + 1) % uint32(len(t.slot)) {
		k := t.slot[i]
		if k == 0 {
			if len(t.all) == maxTerms {
				break
			}
			t.all = append(t.all, term{start: start, end: len(t.bytes), n: 1, weight: weight, hash: h, wide: wide})
			t.slot[i] = uint16(len(t.all))
			return
		}
		if e := &t.all[k-1]; e.hash == h && string(t.bytes[e.start:e.end]) == string(low) {
			e.n++
			e.weight += weight
			break
		}
	}
	t.bytes = t.bytes[:start]
}

// top returns the n words of the most weight, of equal ones the first.
func (t *terms) top(n int, lang string, stop map[string]bool) string {
	all := t.telling(lang, stop)
	all = heaviest(all, n)
	slices.SortStableFunc(all, func(a, b term) int { return cmp.Compare(b.weight, a.weight) })
	var out strings.Builder
	for i := range min(n, len(all)) {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.Write(t.bytes[all[i].start:all[i].end])
	}
	return out.String()
}

// telling are the words that are not of the language itself, weighed. language has
// noted which are.
func (t *terms) telling(lang string, stop map[string]bool) []term {
	of := tongueOf(lang) | tongueOf("en") // which is in texts of all others
	english := lang == "en" || lang == ""
	all := make([]term, 0, len(t.all))
	for _, e := range t.all {
		w := t.bytes[e.start:e.end]
		if len(w) < 3 || e.of&of != 0 || stop != nil && stop[string(w)] || !e.isWord(w) {
			continue
		}
		e.weight *= rare
		if english && e.common > 0 {
			e.weight = e.weight / rare * int(e.common)
		}
		all = append(all, e)
	}
	return all
}

// isWord reports whether a term is text, and has a letter.
func (e *term) isWord(w []byte) bool {
	if !e.wide && isLetter(w[0]) {
		return true
	}
	return utf8.Valid(w) && bytes.ContainsFunc(w, unicode.IsLetter)
}

// heaviest drops the words that cannot be among the n of the most weight, so that
// they need not be sorted.
func heaviest(all []term, n int) []term {
	if len(all) <= n {
		return all
	}
	var with [512]int // words by weight, many together at the end
	const top = len(with) - 1
	for _, e := range all {
		with[min(e.weight, top)]++
	}
	least, sum := top, with[top]
	for ; least > 0 && sum < n; sum += with[least] {
		least--
	}
	room := n - (sum - with[least]) // for words of the same weight as the last
	return slices.DeleteFunc(all, func(e term) bool {
		w := min(e.weight, top)
		if w == least && least < top {
			room--
			return room < 0
		}
		return w < least
	})
}

// wordBytes are the bytes that words are made of.
var wordBytes = func() (t [256]bool) {
	for i := range t {
		b := byte(i)
		t[i] = b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_' || b >= utf8.RuneSelf
	}
	return t
}()

// tell sets the keywords of a text and the language it is in; said is what it
// says of that itself.
func (w *worker) tell(o *soif.Object, c *content, text []byte, said string) {
	t := w.tab.scratch.counter()
	defer w.tab.scratch.drop(t)
	t.count(text[:min(len(text), maxCounted)], 1)
	lang := languageOf(t.language(), text, said)
	w.set(o, "Keywords", w.keywords(c, t, lang))
	if _, ok := o.Get("Language"); !ok {
		w.set(o, "Language", lang)
	}
}
