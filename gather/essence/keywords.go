package essence

import (
	"bytes"
	"cmp"
	"slices"
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
	n     int      // words in all
	text  int      // bytes that were counted
	slot  []uint16 // of all, by hash; 0 is free; their number is a power of two
}

const (
	maxTerms   = 20_000
	maxCounted = 1 << 20 // bytes of a text whose words are counted
	maxWord    = 32      // bytes
)

func newTerms() *terms {
	return &terms{bytes: make([]byte, 0, 4<<10), all: make([]term, 0, 256), slot: make([]uint16, 1<<12)}
}

// keywords returns the n words that tell most of a text, that most first, for
// what is in its first MB: they are frequent, and not in texts of the same
// language in general.
func keywords(text []byte, n int) string {
	t := newTerms()
	t.count(text[:min(len(text), maxCounted)], 1)
	return t.top(n, 0, t.language().lang, nil, nil)
}

// keywords are those of a text, as the options of its type have them: the most
// telling ones, then words that its summary has not got yet.
func (w *worker) keywords(o *soif.Object, c *content, t *terms, lang string) string {
	n := defaultKeywords
	if c.opt.keywords != nil {
		n = *c.opt.keywords
	}
	room := min(t.text*c.opt.share/100, w.lim.Attr)
	if room <= 0 {
		return t.top(n, 0, lang, c.opt.stop, nil)
	}
	told := w.tab.scratch.counter()
	defer w.tab.scratch.drop(told)
	for _, a := range o.Attrs {
		if proseAttrs[a.Name] {
			told.count(a.Value, 1)
		}
	}
	return t.top(n, room, lang, c.opt.stop, told)
}

// proseAttrs are the attributes whose words keywords need not have again.
var proseAttrs = map[string]bool{"Title": true, "Author": true, "Description": true, "Abstract": true, "Headings": true, "Subject": true, "Synopsis": true}

// defaultKeywords are the words of a type that the table options says nothing of.
const defaultKeywords = 60

// count counts the words of a text, each for so much.
func (t *terms) count(text []byte, weight int) {
	t.text += len(text)
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
	i := t.find(t.bytes[start:], h)
	switch k := t.slot[i]; {
	case k != 0:
		e := &t.all[k-1]
		e.n++
		e.weight += weight
	case len(t.all) < maxTerms:
		t.all = append(t.all, term{start: start, end: len(t.bytes), n: 1, weight: weight, hash: h, wide: wide})
		if t.slot[i] = uint16(len(t.all)); 2*len(t.all) > len(t.slot) {
			t.grow()
		}
		return
	}
	t.bytes = t.bytes[:start]
}

// find is the slot of a word in small letters, or the free one where it belongs.
func (t *terms) find(low []byte, hash uint32) uint32 {
	last := uint32(len(t.slot) - 1)
	for i := spreadHash(hash) & last; ; i = (i + 1) & last {
		k := t.slot[i]
		if k == 0 {
			return i
		}
		if e := &t.all[k-1]; e.hash == hash && string(t.bytes[e.start:e.end]) == string(low) {
			return i
		}
	}
}

// grow makes room for twice as many words.
func (t *terms) grow() {
	t.slot = make([]uint16, 2*len(t.slot))
	last := uint32(len(t.slot) - 1)
	for n := range t.all {
		i := spreadHash(t.all[n].hash) & last
		for t.slot[i] != 0 {
			i = (i + 1) & last
		}
		t.slot[i] = uint16(n + 1)
	}
}

// has reports whether a word of another text is there.
func (t *terms) has(e *term, low []byte) bool { return t.slot[t.find(low, e.hash)] != 0 }

// top returns the n words of the most weight, of equal ones the first, and as many
// more as have room in so many bytes in all and told has not: those first that
// are in few texts.
func (t *terms) top(n, room int, lang string, stop map[string]bool, told *terms) string {
	all := byWeight(t.telling(lang, stop))
	for n = min(n, len(all)); n > 0 && all[n-1].weight == 0; n-- {
	}
	out := make([]byte, 0, max(room, 512))
	for i := range all[:n] {
		out = t.appendWord(out, &all[i])
	}
	for _, common := range []bool{false, true} {
		for i := n; i < len(all) && len(out) < room; i++ {
			e := &all[i]
			if (e.common > 0) == common && len(out)+1+e.end-e.start <= room && !told.has(e, t.bytes[e.start:e.end]) {
				out = t.appendWord(out, e)
			}
		}
	}
	return string(out)
}

func (t *terms) appendWord(out []byte, e *term) []byte {
	if len(out) > 0 {
		out = append(out, ' ')
	}
	return append(out, t.bytes[e.start:e.end]...)
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

// byWeight returns words with the heaviest first, of equal ones the first. Most
// weigh little, so that they are counted, not compared.
func byWeight(all []term) []term {
	var at [1024]int // where the words of a weight begin, many weights together at the end
	const top = len(at) - 1
	for i := range all {
		at[min(all[i].weight, top)]++
	}
	sum := 0
	for w := top; w >= 0; w-- {
		at[w], sum = sum, sum+at[w]
	}
	heavy := at[top-1]
	out := make([]term, len(all))
	for i := range all {
		w := min(all[i].weight, top)
		out[at[w]] = all[i]
		at[w]++
	}
	slices.SortStableFunc(out[:heavy], func(a, b term) int { return cmp.Compare(b.weight, a.weight) })
	return out
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
	w.set(o, "Keywords", w.keywords(o, c, t, lang))
	if _, ok := o.Get("Language"); !ok {
		w.set(o, "Language", lang)
	}
}
