package thin

import (
	"unicode"
	"unicode/utf8"
)

// MaxWord is the length in bytes from which on a word takes no more, in documents and
// queries alike: longer runs of letters are data, not language.
const MaxWord = 64

// Words gives the words of text with the bytes they take: runs of Unicode
// letters, numbers and the marks on them, in lower case. A Chinese or Japanese
// character is a word of its own, since nothing parts words there. The word is
// valid until the next. It is what every engine and every query agrees on.
func Words(text string, yield func(word []byte, start, end int) bool) {
	var buf [MaxWord + utf8.UTFMax]byte
	word, start := buf[:0], 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c = folded[c]; c != 0 {
				if len(word) == 0 {
					start = i
				}
				if len(word) < MaxWord {
					word = append(word, c)
				}
			} else if len(word) > 0 {
				if !yield(word, start, i) {
					return
				}
				word = buf[:0]
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		alone := ideograph(r)
		if len(word) > 0 && (alone || !partOf(r)) {
			if !yield(word, start, i) {
				return
			}
			word = buf[:0]
		}
		switch {
		case alone:
			if !yield(utf8.AppendRune(word, r), i, i+n) {
				return
			}
		case len(word) > 0 && partOf(r), unicode.IsLetter(r), unicode.IsNumber(r):
			if len(word) == 0 {
				start = i
			}
			if len(word) < MaxWord {
				word = utf8.AppendRune(word, unicode.ToLower(r))
			}
		}
		i += n
	}
	if len(word) > 0 {
		yield(word, start, len(text))
	}
}

// folded maps ASCII letters and digits to lower case and the rest to 0.
var folded = func() (t [utf8.RuneSelf]byte) {
	for c := range byte(utf8.RuneSelf) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			t[c] = c
		case 'A' <= c && c <= 'Z':
			t[c] = c + 'a' - 'A'
		}
	}
	return t
}()

func partOf(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

func ideograph(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// terms are the words of a query's word or phrase.
func terms(text string) (out []string) {
	Words(text, func(w []byte, _, _ int) bool {
		out = append(out, string(w))
		return true
	})
	return out
}
