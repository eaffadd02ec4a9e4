package essence

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// # The language of a text
//
// Its commonest words tell it, when enough of them are there and those of no
// other language are nearly as many: that costs nothing, since words are counted anyway.
// Else it is told by its script and its runs of three letters, if there are
// enough of those. What a document says of itself is believed unless its words say
// otherwise.

const (
	fewestWords   = 15  // that languages are told by
	fewestLetters = 200 // that runs are told by
)

// A verdict is a language, "" for none, and whether it is beyond doubt.
type verdict struct {
	lang string
	sure bool
}

// language is the one whose common words are most of the text's. It also notes of
// each word in which languages it is common, and how common.
func (t *terms) language() (v verdict) {
	var score [32]int
	words := 0
	t.look(0)
	for i := range t.all {
		e := &t.all[i]
		words += e.n
		of := e.of
		if of == 0 {
			continue
		}
		worth := 12 * e.n / bits(of) // a word of one language tells more
		for i := 0; of != 0; i, of = i+1, of>>1 {
			if of&1 != 0 {
				score[i] += worth
			}
		}
	}
	first, second := -1, 0
	for i, s := range score {
		switch {
		case first < 0 || s > score[first]:
			if first >= 0 {
				second = score[first]
			}
			first = i
		case s > second:
			second = s
		}
	}
	switch share := score[first] * 100 / (12 * max(words, 1)); {
	case words < fewestWords || share < 4:
		return verdict{}
	default:
		return verdict{stopWords[first].lang, share >= 10 && score[first]*10 > second*13}
	}
}

// look notes of the words from one on in which languages they are common, and how.
func (t *terms) look(from int) {
	known := lexical()
	for i := from; i < len(t.all); i++ {
		e := &t.all[i]
		if w := known.find(e.hash, t.bytes[e.start:e.end]); w != nil {
			e.of, e.common = w.of, w.common
		}
	}
}

func bits(t tongue) (n int) {
	for ; t != 0; t &= t - 1 {
		n++
	}
	return n
}

// languageOf is the language of a text of which its words and the text itself, in
// said, tell one.
func languageOf(v verdict, text []byte, said string) string {
	said = strings.ReplaceAll(strings.TrimSpace(said), "_", "-")
	if !isLanguage(said) {
		said = ""
	}
	base, _, _ := strings.Cut(strings.ToLower(said), "-")
	if said != "" && (v.lang == "" || same(v.lang, base) || !v.sure) {
		return said
	}
	if !letters(text, fewestLetters) {
		if v.sure && said == "" {
			return v.lang
		}
		return said
	}
	sample := middle(text)
	accents, lang := scripts(sample)
	switch {
	case lang != "":
		return lang
	case v.sure && !(v.lang == "en" && accents):
		return v.lang
	case v.lang == "" && !accents:
		return said // of no language, mostly
	}
	if l := byRuns(sample); l != "" {
		return l
	}
	return v.lang
}

// maxRuns is how much of a text scripts and runs are looked for in.
const maxRuns = 1500

// middle is a part of a text, past what stands at its head.
func middle(text []byte) []byte {
	if len(text) > 3*maxRuns {
		text = text[len(text)/3:]
	}
	return bytes.ToValidUTF8(text[:min(len(text), maxRuns)], nil)
}

// scripts reports whether a text has letters that are not ASCII, two in a hundred
// at least, and the language if its script tells: English words among
// Chinese, Japanese or Korean are more in bytes than in what they say.
func scripts(text []byte) (accents bool, lang string) {
	var all, wide, han, kana, hangul int
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
			if isLetter(byte(r)) {
				all++
			}
			continue
		case !unicode.IsLetter(r):
			continue
		case r >= 0x3040 && r < 0x3100:
			kana++
		case r >= 0x3400 && r < 0xa000:
			han++
		case r >= 0xac00 && r < 0xd7b0:
			hangul++
		}
		all++
		wide++
	}
	switch {
	case 8*(han+kana+hangul) < all:
	case hangul > han+kana:
		lang = "ko"
	case 10*kana > han:
		lang = "ja"
	default:
		lang = "zh"
	}
	return 50*wide > all, lang
}

// same reports whether two languages are written alike, so that words do not
// tell one from the other.
func same(a, b string) bool {
	if a == "nb" && (b == "no" || b == "nn") {
		return true
	}
	return a == b || strings.Contains("hr sr bs sh", a) && strings.Contains("hr sr bs sh", b) && b != ""
}

// isLanguage reports whether a text may be a tag of BCP 47: letters and digits in
// parts of at most eight, the first of two or three letters.
func isLanguage(s string) bool {
	for i, part := range strings.Split(s, "-") {
		if len(part) == 0 || len(part) > 8 || i == 0 && len(part) != 2 && len(part) != 3 {
			return false
		}
		for _, c := range []byte(part) {
			if !isLetter(c) && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
	}
	return len(s) <= 20
}

// byRuns tells the language by script and by runs of letters, "" if they do not
// tell it from others.
func byRuns(text []byte) string {
	info := whatlanggo.Detect(string(text))
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}
