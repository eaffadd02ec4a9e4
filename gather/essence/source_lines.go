package essence

import (
	"bytes"
	"strings"
)

// A ruleSet holds the rules for the lines of one kind of block.
type ruleSet struct {
	rules []contextRule
	heads map[string][]int // rules by the first word of a line
	any   []int            // rules tried on every line
	paren bool             // it stands in ( ), not in { }
}

type contextRule struct {
	*rule
	opens *ruleSet
}

// prepare makes a language's contexts of its rules.
func (l *language) prepare() *language {
	l.contexts = map[string]*ruleSet{"": {heads: make(map[string][]int)}}
	of := func(name string) *ruleSet {
		if l.contexts[name] == nil {
			l.contexts[name] = &ruleSet{heads: make(map[string][]int), paren: name[0] == '('}
		}
		return l.contexts[name]
	}
	for i := range l.rules {
		r := &l.rules[i]
		cr := contextRule{rule: r}
		if r.opens != "" {
			cr.opens = of(r.opens)
		}
		c := of(r.in)
		c.rules = append(c.rules, cr)
		n := len(c.rules) - 1
		if r.heads == "" {
			c.any = append(c.any, n)
		}
		for h := range strings.FieldsSeq(r.heads) {
			c.heads[h] = append(c.heads[h], n)
		}
	}
	if l.heads != "" {
		l.import1 = make(map[string]bool)
		for h := range strings.FieldsSeq(l.heads) {
			l.import1[h] = true
		}
	}
	return l
}

// A frame is a block that the scan is in.
type frame struct {
	level int // brackets open in it, or the indentation of the line that opened it
	*ruleSet
}

// A lineScan goes through code line by line.
type lineScan struct {
	l       *language
	s       *symbols
	depth   int // brackets open
	frames  []frame
	pending *ruleSet // of the block that the next bracket opens
}

// maxFrames bounds the blocks in blocks; what is deeper is passed over.
const maxFrames = 64

// lines finds names by a language's rules.
func (l *language) lines(code []byte, s *symbols) {
	z := &lineScan{l: l, s: s, frames: []frame{{0, l.contexts[""]}}}
	if l.indent {
		z.frames[0].level = -1
	}
	goesOn := false
	for len(code) > 0 && !s.cut {
		line := code
		if i := bytes.IndexByte(code, '\n'); i >= 0 {
			line, code = code[:i], code[i+1:]
		} else {
			code = nil
		}
		start := 0
		for start < len(line) && (line[start] == ' ' || line[start] == '\t' || line[start] == '\r') {
			start++
		}
		line = bytes.TrimRight(line, " \t\r")
		if start >= len(line) {
			continue
		}
		z.line(line[start:], start, goesOn)
		goesOn = l.goesOn != "" && strings.IndexByte(l.goesOn, line[len(line)-1]) >= 0
	}
}

// line takes a line of code, which began with indent blanks.
func (z *lineScan) line(line []byte, indent int, goesOn bool) {
	if z.l.indent && z.depth == 0 && !goesOn {
		for len(z.frames) > 1 && indent <= z.frames[len(z.frames)-1].level {
			z.frames = z.frames[:len(z.frames)-1]
		}
	}
	f := z.frames[len(z.frames)-1]
	open := z.l.flat || z.depth == f.level || z.l.indent && z.depth == 0
	if open && !goesOn && f.ruleSet != nil {
		if opens, ok := z.match(f.ruleSet, line); ok {
			z.pending = opens
			if z.l.indent && opens != nil && len(z.frames) < maxFrames {
				z.frames = append(z.frames, frame{indent, opens})
			}
		}
	}
	if !z.l.flat {
		z.brackets(line)
	}
}

// match tries the rules for a line; the first that matches says what it opens.
func (z *lineScan) match(c *ruleSet, line []byte) (opens *ruleSet, ok bool) {
	word := firstWord(line)
	var low [32]byte
	if z.l.fold && len(word) <= len(low) {
		for i, b := range word {
			if low[i] = b; b >= 'A' && b <= 'Z' {
				low[i] = b | 0x20
			}
		}
		word = low[:len(word)]
	}
	for _, set := range [2][]int{c.heads[string(word)], c.any} {
		for _, i := range set {
			r := &c.rules[i]
			m := r.re.FindSubmatchIndex(line[:min(len(line), 1000)])
			if m == nil {
				continue
			}
			for g := 2; g+1 < len(m); g += 2 {
				if m[g] >= 0 {
					z.s.addList(line[m[g]:m[g+1]], r.minor)
				}
			}
			return r.opens, true
		}
	}
	return nil, false
}

// firstWord is the word a line begins with, or its first byte.
func firstWord(line []byte) []byte {
	i := 0
	for i < len(line) && wordBytes[line[i]] {
		i++
	}
	if i == 0 && len(line) > 0 {
		i = 1
	}
	return line[:i]
}

// brackets follows the brackets of a line.
func (z *lineScan) brackets(line []byte) {
	for _, b := range line {
		switch b {
		case '{', '(', '[':
			z.depth++
			z.open(b)
		case '}', ')', ']':
			if n := len(z.frames) - 1; n > 0 && !z.l.indent && z.frames[n].level == z.depth {
				z.frames = z.frames[:n]
			}
			if z.depth > 0 {
				z.depth--
			}
		case ';':
			if z.depth == z.frames[len(z.frames)-1].level {
				z.pending = nil
			}
		}
	}
}

// open enters the block that a bracket opens, if there is something to be found
// in it.
func (z *lineScan) open(b byte) {
	if z.l.indent || len(z.frames) >= maxFrames {
		return
	}
	in := z.frames[len(z.frames)-1]
	c := z.pending
	switch {
	case c != nil && (b == '{' && !c.paren || b == '(' && c.paren) && z.depth == in.level+1:
		z.pending = nil
	case b == '{' && z.l.nested:
		c = z.l.contexts[""]
	default:
		return
	}
	z.frames = append(z.frames, frame{z.depth, c})
}
