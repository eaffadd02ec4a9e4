package essence

import (
	resyntax "regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// # What a match begins and ends with
//
// Most expressions of the tables hold the beginning of a text or its end, and
// so say which bytes may stand there. A look at one byte spares running them,
// which costs a hundred times as much.

// A byteSet is a set of bytes.
type byteSet [4]uint64

var allBytes = byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *byteSet) join(t byteSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *byteSet) meet(t byteSet) {
	for i := range s {
		s[i] &= t[i]
	}
}

// addRunes adds those that a letter from lo to hi may begin or end with. Of a
// letter that is not ASCII, and of bytes that are none, that is any of the upper half.
func (s *byteSet) addRunes(lo, hi rune) {
	for c := lo; c <= min(hi, utf8.RuneSelf-1); c++ {
		s.add(byte(c))
	}
	if hi >= utf8.RuneSelf {
		s[2], s[3] = ^uint64(0), ^uint64(0)
	}
}

// ends are the bytes that a text may begin and end with if an expression is to
// match in it.
type ends struct{ first, last byteSet }

// endsOf finds them; expressions that cannot be read match anything here.
func endsOf(expr string) ends {
	re, err := resyntax.Parse(expr, resyntax.Perl)
	if err != nil {
		return ends{allBytes, allBytes}
	}
	re = re.Simplify()
	return ends{edgeOf(re, resyntax.OpBeginText), edgeOf(re, resyntax.OpEndText)}
}

// may reports whether a text can match. The empty one always can.
func (e *ends) may(text string) bool {
	return text == "" || e.first.has(text[0]) && e.last.has(text[len(text)-1])
}

// edgeOf is the bytes at one edge of the texts that an expression matches: all
// unless each match has hold of it.
func edgeOf(re *resyntax.Regexp, hold resyntax.Op) byteSet {
	if !holds(re, hold) {
		return allBytes
	}
	set, empty := edge(re, hold)
	if empty {
		return allBytes
	}
	return set
}

// outer gives the parts of a sequence from an edge inwards.
func outer(re *resyntax.Regexp, hold resyntax.Op, i int) *resyntax.Regexp {
	if hold == resyntax.OpEndText {
		i = len(re.Sub) - 1 - i
	}
	return re.Sub[i]
}

// holds reports whether each match of an expression is at an edge of the text.
func holds(re *resyntax.Regexp, hold resyntax.Op) bool {
	switch re.Op {
	case hold:
		return true
	case resyntax.OpCapture, resyntax.OpPlus:
		return holds(re.Sub[0], hold)
	case resyntax.OpAlternate:
		for _, sub := range re.Sub {
			if !holds(sub, hold) {
				return false
			}
		}
		return true
	case resyntax.OpConcat:
		return holds(outer(re, hold, 0), hold)
	}
	return false
}

// edge is the bytes that what an expression matches begins with, or ends with,
// and whether it may match nothing there.
func edge(re *resyntax.Regexp, hold resyntax.Op) (set byteSet, empty bool) {
	switch re.Op {
	case resyntax.OpNoMatch:
		return set, false
	case resyntax.OpLiteral:
		r := re.Rune[0]
		if hold == resyntax.OpEndText {
			r = re.Rune[len(re.Rune)-1]
		}
		set.addRunes(r, r)
		if re.Flags&resyntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				set.addRunes(f, f)
			}
		}
		return set, false
	case resyntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			set.addRunes(re.Rune[i], re.Rune[i+1])
		}
		return set, false
	case resyntax.OpAnyChar, resyntax.OpAnyCharNotNL:
		return allBytes, false
	case resyntax.OpCapture, resyntax.OpPlus:
		return edge(re.Sub[0], hold)
	case resyntax.OpStar, resyntax.OpQuest:
		set, _ = edge(re.Sub[0], hold)
		return set, true
	case resyntax.OpConcat:
		for i := range re.Sub {
			s, empty := edge(outer(re, hold, i), hold)
			set.join(s)
			if !empty {
				return set, false
			}
		}
		return set, true
	case resyntax.OpAlternate:
		for _, sub := range re.Sub {
			s, e := edge(sub, hold)
			set.join(s)
			empty = empty || e
		}
		return set, empty
	case resyntax.OpEmptyMatch, resyntax.OpBeginLine, resyntax.OpEndLine, resyntax.OpBeginText, resyntax.OpEndText,
		resyntax.OpWordBoundary, resyntax.OpNoWordBoundary:
		return set, true
	}
	return allBytes, true
}
