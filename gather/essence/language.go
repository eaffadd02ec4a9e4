package essence

import (
	"bytes"
	"strings"
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
// each word in which languages it is common.
func (t *terms) language() (v verdict) {
	var score [32]int
	words := 0
	for i := range t.all {
		e := &t.all[i]
		words += e.n
		if e.end-e.start > longestStop {
			continue
		}
		of := tongues[string(t.bytes[e.start:e.end])]
		if e.of = of; of == 0 {
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
	if words < fewestWords || score[first]*10 < words*12 { // less than one in ten
		return verdict{}
	}
	return verdict{stopWords[first].lang, score[first]*10 > second*13}
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
	switch {
	case said != "" && (v.lang == "" || same(v.lang, base) || !v.sure):
		return said
	case v.sure:
		return v.lang
	}
	if !letters(text, fewestLetters) || v.lang == "" && !hasAccents(text) {
		return said
	}
	if l := byRuns(text); l != "" {
		return l
	}
	return v.lang
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

// hasAccents reports whether a text has letters that are not ASCII, a few at least.
// One that has not, nor the common words of a language, is mostly of no language.
func hasAccents(text []byte) bool {
	text = text[:min(len(text), 4<<10)]
	n := 0
	for _, b := range text {
		if b >= utf8.RuneSelf {
			n++
		}
	}
	return n*50 > len(text)
}

// maxRuns is how much of a text runs are counted in.
const maxRuns = 1500

// byRuns tells the language by script and by runs of letters.
func byRuns(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i >= 0 && len(text) > 3*maxRuns {
		text = text[len(text)/3:] // past what stands at its head
	}
	info := whatlanggo.Detect(string(bytes.ToValidUTF8(text[:min(len(text), maxRuns)], nil)))
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}
