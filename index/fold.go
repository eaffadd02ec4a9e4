package index

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold appends text as words are compared: without difference of case (ß is
// ss), accents, and forms that Unicode calls compatible (wide, raised, joined).
// Vowel signs, which some scripts write as marks, stay. Signs that are not
// seen go, the right quote is an apostrophe. What is folded folds to itself.
func Fold(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		n := cluster(text[i:])
		dst = foldCluster(dst, text[i:i+n])
		i += n
	}
	return dst
}

// cluster is the length of the character that text, which does not begin with
// ASCII, begins with, and of the marks that Unicode may compose with it.
func cluster(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	if n == len(text) || text[n] < firstMark || r == utf8.RuneError {
		return n
	}
	if strings.HasPrefix(text[n:], "\uff9e") || strings.HasPrefix(text[n:], "\uff9f") {
		return n + 3 // the narrow kana's voice marks, which are no marks by themselves
	}
	if next := norm.NFC.NextBoundaryInString(text, true); next > n && next <= maxCluster {
		return next
	}
	return n
}

const (
	firstMark  = 0xcc // of U+0300, as the first byte
	maxCluster = 64   // more marks than this are a joke
)

func foldCluster(dst []byte, c string) []byte {
	r, n := utf8.DecodeRuneInString(c)
	if n == len(c) {
		return foldRune(dst, r, c)
	}
	var buf [maxCluster]byte
	folded := buf[:0]
	for _, r := range norm.NFC.String(c) {
		folded = foldRune(folded, r, string(r))
	}
	return norm.NFC.Append(dst, folded...)
}

// foldRune folds one character, s as a string.
func foldRune(dst []byte, r rune, s string) []byte {
	switch {
	case r < tableEnd:
		t := foldTable()
		return append(dst, t.text[t.at[r]:t.at[r+1]]...)
	case 0x4e00 <= r && r <= 0x9fff, 0xac00 <= r && r <= 0xd7a3, 0x3041 <= r && r <= 0x3096, 0x30a1 <= r && r <= 0x30fe:
		return append(dst, s...)
	case r == utf8.RuneError:
		return append(dst, s...)
	}
	return append(dst, foldSlow(r)...)
}

// What follows is known beforehand for characters below tableEnd: those of
// Europe and the near east. It takes 10 ms, once, if it is needed.
const tableEnd = 0x2100

type foldings struct {
	at   [tableEnd + 1]uint16
	text string
}

var foldTable = sync.OnceValue(func() *foldings {
	var t foldings
	var b strings.Builder
	for r := range rune(tableEnd) {
		b.WriteString(foldSlow(r))
		t.at[r+1] = uint16(b.Len())
	}
	t.text = b.String()
	return &t
})

func foldSlow(r rune) string {
	switch {
	case r == '’':
		return "'"
	case unicode.Is(unicode.Cf, r), accent(r):
		return ""
	}
	if unicode.Is(unicode.Cherokee, r) { // which cases.Fold folds to and fro
		return strings.ToUpper(string(r))
	}
	fold := cases.Fold()
	s := string(r)
	for range 3 { // until it stays as it is
		s = plain(fold.String(norm.NFKD.String(s)))
	}
	if s == "" || odd(r, s) {
		return plain(fold.String(norm.NFD.String(string(r))))
	}
	return s
}

// plain takes the accents away.
func plain(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if accent(r) {
			return -1
		}
		return r
	}, s))
}

// accent tells marks that change how a letter sounds, not which it is.
func accent(r rune) bool {
	if r == 0x3099 || r == 0x309a { // voiced kana
		return false
	}
	return unicode.Is(unicode.M, r) && unicode.In(r, unicode.Inherited, unicode.Hebrew, unicode.Arabic) || unicode.Is(unicode.Me, r)
}

// odd tells whether s, what a character is compatible with, is of another
// sort: a fraction is no digits and a stroke, a phrase in one sign no words.
func odd(r rune, s string) bool {
	word := unicode.IsLetter(r) || unicode.IsNumber(r)
	for _, c := range s {
		if word && !unicode.In(c, unicode.L, unicode.N, unicode.M) || !word && c == ' ' && !unicode.IsSpace(r) {
			return true
		}
	}
	return false
}
