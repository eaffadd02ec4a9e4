package index

import "unicode/utf8"

// A cutter takes a word or phrase of a query apart.
type cutter struct {
	words    []cutWord
	compound []byte // what all of it is, if it is one compound
	buf      []byte

	analyzer
	keep   func(*Word) bool // take
	runEnd int              // where the run of Chinese or Japanese at hand ends, or -1
}

// A cutWord is a word with its place from the first on.
type cutWord struct {
	start, end int // in buf
	offset     uint32
	prefix     bool // any word that begins with it
}

func (c *cutter) word(i int) []byte { return c.buf[c.words[i].start:c.words[i].end] }

// text takes text apart. A run of Chinese or Japanese is the words of two
// characters it has; one character alone may be followed by others.
func (c *cutter) text(text string) {
	c.words, c.compound, c.buf, c.runEnd = c.words[:0], c.compound[:0], c.buf[:0], -1
	c.pos = 0
	if c.keep == nil {
		c.keep = c.take
	}
	c.analyzer.words(text, c.keep)
}

func (c *cutter) take(w *Word) bool {
	if w.Whole {
		if c.compound = c.compound[:0]; w.Pos == 0 {
			c.compound = append(c.compound, w.Text...)
		}
		return true
	}
	c.compound = c.compound[:0]
	n := cutWord{start: len(c.buf), offset: uint32(w.Pos)}
	if w.CJK {
		if utf8.RuneCount(w.Text) == 1 {
			if w.Start < c.runEnd {
				return true
			}
			n.prefix = true
		}
		c.runEnd = w.End
	}
	c.buf = append(c.buf, w.Text...)
	n.end = len(c.buf)
	c.words = append(c.words, n)
	return true
}
