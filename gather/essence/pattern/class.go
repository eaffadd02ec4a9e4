package pattern

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A kind is what an assertion, such as \b or $, asks of the rune beside it.
type kind uint8

const (
	other kind = iota
	inWord
	newline
	edge    // the beginning of the text, or its end
	unknown // the rune is not read yet
)

func kindOf(r rune) kind {
	switch {
	case r == '\n':
		return newline
	case syntax.IsWordChar(r):
		return inWord
	}
	return other
}

// kindBefore is of the rune before text[i:]. Only ASCII is not other.
func kindBefore(text []byte, i int) kind {
	if i == 0 {
		return edge
	}
	return kindOf(rune(text[i-1]))
}

// Classes are the runes that an expression does not tell apart. The last one is
// the end of the text.
type classes struct {
	ascii [utf8.RuneSelf]uint8
	from  []rune  // where others begin, ascending
	of    []uint8 // those
	rune  []rune  // one of each class
}

// maxTells bounds the work of making classes; an expression over it, or with more
// classes than a byte numbers, is left to Go's regexp.
const maxTells = 1 << 18

// classesOf makes those of a program, or reports that it cannot be.
func classesOf(prog *syntax.Prog) (*classes, bool) {
	runes, cuts := telling(prog)
	if len(runes)*len(cuts) > maxTells {
		return nil, false
	}
	c, number := new(classes), make(map[string]uint8)
	sign := make([]byte, len(runes)+1)
	for i, r := range cuts {
		for j, in := range runes {
			sign[j] = '0'
			if in.MatchRune(r) {
				sign[j] = '1'
			}
		}
		sign[len(runes)] = byte(kindOf(r))
		k, ok := number[string(sign)]
		if !ok {
			if len(number) == 254 {
				return nil, false
			}
			k = uint8(len(number))
			number[string(sign)] = k
			c.rune = append(c.rune, r)
		}
		c.from, c.of = append(c.from, r), append(c.of, k)
		for end := min(next(cuts, i), utf8.RuneSelf); r < end; r++ {
			c.ascii[r] = k
		}
	}
	return c, true
}

// next is where the piece that follows cuts[i] begins.
func next(cuts []rune, i int) rune {
	if i+1 < len(cuts) {
		return cuts[i+1]
	}
	return unicode.MaxRune + 1
}

// telling gives one instruction of each sort that asks for a rune, and where
// their answers, and those of assertions, may change.
func telling(prog *syntax.Prog) (runes []*syntax.Inst, cuts []rune) {
	seen := make(map[string]bool)
	cuts = append(cuts, 0, '\n', '\n'+1, '0', '9'+1, 'A', 'Z'+1, '_', '_'+1, 'a', 'z'+1)
	for i := range prog.Inst {
		in := &prog.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			continue
		}
		key := string(rune(in.Arg&uint32(syntax.FoldCase))) + string(in.Rune)
		if seen[key] {
			continue
		}
		seen[key] = true
		runes = append(runes, in)
		if len(in.Rune) == 1 {
			r := in.Rune[0]
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				cuts = append(cuts, f, f+1)
			}
			cuts = append(cuts, r, r+1)
			continue
		}
		for j := 0; j+1 < len(in.Rune); j += 2 {
			cuts = append(cuts, in.Rune[j], in.Rune[j+1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	return runes, slices.DeleteFunc(cuts, func(r rune) bool { return r > unicode.MaxRune })
}

// n is how many there are, with the end of the text.
func (c *classes) n() int   { return len(c.rune) + 1 }
func (c *classes) end() int { return len(c.rune) }

// wide is the class of a rune that is not ASCII.
func (c *classes) wide(r rune) uint8 {
	i, ok := slices.BinarySearch(c.from, r)
	if !ok {
		i--
	}
	return c.of[i]
}

// kind is what assertions see of a class.
func (c *classes) kind(class int) kind {
	if class == c.end() {
		return edge
	}
	return kindOf(c.rune[class])
}
