package block

import (
	"unicode/utf8"

	"harvest/index"
)

// Terms that are no words begin with one of these, with which no word does.
const (
	cutMark    = '!' // words and compounds so long that some may have been cut
	hashedMark = '#' // words of a class (hashed.go)
	cjkMark    = '?' // characters of Chinese and Japanese, at Tiny; alone: any
)

func marked(term []byte) bool { return term[0] < '0' || term[0] == cjkMark }

// A cutter gives the words of texts that are in the dictionary.
type cutter struct {
	chars bool // of Chinese and Japanese the characters, not two and two
	buf   []byte
}

var (
	cutTerm = [8]byte{cutMark}
	cjkTerm = [8]byte{cjkMark}
)

// parts gives the words of text with their positions, and the number of
// positions they take. The term of a word is good until the next.
func (c *cutter) parts(text string, yield func(term []byte, pos int)) (n int) {
	index.Words(text, func(w *index.Word) bool {
		if max(w.End-w.Start, len(w.Text)) > index.MaxWord-4 {
			yield(cutTerm[:1], w.Pos)
		}
		switch {
		case w.Whole:
			return true
		case w.CJK && c.chars:
			_, k := utf8.DecodeRune(w.Text)
			c.buf = append(append(c.buf[:0], cjkMark), w.Text[:k]...)
			yield(cjkTerm[:1], w.Pos)
			yield(c.buf, w.Pos)
		default:
			yield(w.Text, w.Pos)
		}
		n = w.Pos + 1
		return true
	})
	return n
}

// isNumber tells whether a term is a word that Settings.NoNumbers leaves out.
func isNumber(term []byte) bool {
	for _, c := range term {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
