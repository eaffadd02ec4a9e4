package match

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is kept of a pattern's literals.
const (
	maxExact  = 24  // strings a part may stand for, to be kept as such
	maxString = 128 // bytes of one
	maxClause = 64  // strings of a clause
)

// A clause is strings one of which every match holds.
type clause []string

// needs is what all strings have that a part of a pattern stands for.
type needs struct {
	exact   []string // all of them, if known: not nil
	clauses []clause
}

// analysis finds what texts must hold to match. Letters are lower case where
// case does not matter.
type analysis struct{ lower bool }

func (a analysis) of(re *syntax.Regexp) needs {
	switch re.Op {
	case syntax.OpLiteral:
		return a.literal(re)
	case syntax.OpCharClass:
		return a.class(re.Rune)
	case syntax.OpCapture:
		return a.of(re.Sub[0])
	case syntax.OpPlus:
		return needs{clauses: a.of(re.Sub[0]).flat()}
	case syntax.OpQuest:
		if n := a.of(re.Sub[0]); n.exact != nil && len(n.exact) < maxExact/2 {
			return needs{exact: join(n.exact, []string{""})}
		}
	case syntax.OpConcat:
		return a.concat(re.Sub)
	case syntax.OpAlternate:
		return a.alternate(re.Sub)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return needs{exact: []string{""}}
	}
	return needs{}
}

// literal is the string of a literal; a character whose cases have more than
// one lower case, like sigma, is left open.
func (a analysis) literal(re *syntax.Regexp) needs {
	c := newChain()
	for _, r := range re.Rune {
		if s, ok := a.char(r, re.Flags&syntax.FoldCase != 0); ok {
			c.add(needs{exact: []string{s}})
		} else {
			c.add(needs{})
		}
	}
	return c.needs()
}

func (a analysis) char(r rune, folds bool) (string, bool) {
	if r == utf8.RuneError {
		return "", false // also bytes that are no UTF-8
	}
	if !a.lower {
		return string(r), !folds || len(fold(r)) == 2
	}
	low := unicode.ToLower(r)
	for _, f := range fold(r) {
		if unicode.ToLower(f) != low {
			return "", false
		}
	}
	return string(low), true
}

func (a analysis) class(set []rune) needs {
	var out []string
	n := 0
	for i := 0; i+1 < len(set); i += 2 {
		if n += int(set[i+1]-set[i]) + 1; n > 8 {
			return needs{}
		}
		for r := set[i]; r <= set[i+1]; r++ {
			s, ok := a.char(r, false)
			if !ok {
				return needs{}
			}
			out = join(out, []string{s})
		}
	}
	if out == nil {
		return needs{}
	}
	return needs{exact: out}
}

func (a analysis) concat(subs []*syntax.Regexp) needs {
	c := newChain()
	for _, sub := range subs {
		c.add(a.of(sub))
	}
	return c.needs()
}

// A chain joins what parts need that follow each other.
type chain struct {
	clauses []clause
	run     []string // the strings since the last part that was not exact
	broken  bool
}

func newChain() *chain { return &chain{run: []string{""}} }

func (c *chain) add(n needs) {
	if n.exact != nil {
		if run, ok := cross(c.run, n.exact); ok {
			c.run = run
			return
		}
	}
	c.broken = true
	c.clauses = append(c.clauses, needs{exact: c.run}.flat()...)
	c.run = []string{""}
	if n.exact != nil {
		c.run = n.exact
	} else {
		c.clauses = append(c.clauses, n.clauses...)
	}
}

func (c *chain) needs() needs {
	if !c.broken {
		return needs{exact: c.run}
	}
	return needs{clauses: append(c.clauses, needs{exact: c.run}.flat()...)}
}

// cross is each string of a with each of b after it, if they are not too many.
func cross(a, b []string) (out []string, ok bool) {
	if len(a)*len(b) > maxExact {
		return nil, false
	}
	for _, s := range a {
		for _, t := range b {
			if len(s)+len(t) > maxString {
				return nil, false
			}
			out = append(out, s+t)
		}
	}
	return out, true
}

// flat is n as clauses.
func (n needs) flat() []clause {
	if n.exact == nil || slices.Contains(n.exact, "") {
		return n.clauses
	}
	return append(n.clauses, n.exact)
}

func (a analysis) alternate(subs []*syntax.Regexp) needs {
	var exact []string
	var best clause
	known, some := true, true
	for _, sub := range subs {
		n := a.of(sub)
		if n.exact == nil {
			known = false
		}
		exact = join(exact, n.exact)
		if c := choose(n.flat()); c == nil {
			some = false
		} else {
			best = join(best, c)
		}
	}
	switch {
	case known && len(exact) > 0 && len(exact) <= maxExact:
		return needs{exact: exact}
	case some && len(best) <= maxClause:
		return needs{clauses: []clause{best}}
	}
	return needs{}
}

// choose is the clause that narrows most: by its shortest string, then by how
// few it has.
func choose(clauses []clause) (best clause) {
	for _, c := range clauses {
		if best == nil || worth(c) > worth(best) {
			best = c
		}
	}
	return best
}

func worth(c clause) int {
	short := maxString
	for _, s := range c {
		short = min(short, len(s))
	}
	return short*maxClause - len(c)
}

// pieces is what remains of a pattern with errors: of n+1 pieces of its
// literals that lie apart, n errors leave one as it is. Swapped neighbours are
// one error in two places, hence a character between two pieces.
func pieces(parts []part, errors int, swaps bool) clause {
	gap := 0
	if swaps {
		gap = 1
	}
	longest := 0
	for _, p := range parts {
		longest = max(longest, len(p.text))
		if p.exact {
			if best := longestExact(parts); len([]rune(best)) > 1 {
				return clause{best}
			}
		}
	}
	for size := longest; size > 1; size-- {
		var out clause
		for i, p := range parts {
			text := []rune(p.text)
			for at := 0; at+size <= len(text) && len(out) <= errors; at += size + gap {
				if at+size+gap > len(text) && i < len(parts)-1 {
					break // the part after may begin right here
				}
				out = append(out, string(text[at:at+size]))
			}
		}
		if len(out) > errors {
			return slices.Compact(out)
		}
	}
	return nil
}

// A part is a literal that stands in every string of a pattern.
type part struct {
	text  string
	exact bool
}

func longestExact(parts []part) (best string) {
	for _, p := range parts {
		if p.exact && len(p.text) > len(best) {
			best = p.text
		}
	}
	return best
}

// parts are the literals of a tree that stand in every string, in order.
func (a analysis) parts(re *syntax.Regexp, exact bool, out []part) []part {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range a.literal(re).flat() {
			if len(c) == 1 {
				out = append(out, part{c[0], exact})
			}
		}
	case syntax.OpCapture:
		return a.parts(re.Sub[0], exact || re.Name == exactName, out)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			out = a.parts(sub, exact, out)
		}
	}
	return out
}

// prefix is what all strings of a tree begin with; whole if that is all of
// them.
func (a analysis) prefix(re *syntax.Regexp) (text string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			s, ok := a.char(r, re.Flags&syntax.FoldCase != 0)
			if !ok {
				return text, false
			}
			text += s
		}
		return text, true
	case syntax.OpCapture:
		return a.prefix(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			s, all := a.prefix(sub)
			if text += s; !all {
				return text, false
			}
		}
		return text, true
	case syntax.OpPlus:
		text, _ = a.prefix(re.Sub[0])
		return text, false
	case syntax.OpCharClass:
		if n := a.class(re.Rune); len(n.exact) == 1 {
			return n.exact[0], true
		}
	case syntax.OpAlternate:
		return a.common(re.Sub), false
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return "", true
	}
	return "", false
}

func (a analysis) common(subs []*syntax.Regexp) string {
	common, _ := a.prefix(subs[0])
	for _, sub := range subs[1:] {
		s, _ := a.prefix(sub)
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}

// byLength sorts strings, longest first.
func byLength(list []string) []string {
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return list
}
