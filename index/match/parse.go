package match

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// parse reads an expression of any syntax as a regular expression, in its
// simple form, which has no counted repeats.
func parse(expr string, opt Options) (*syntax.Regexp, error) {
	switch {
	case expr == "":
		return nil, invalid(expr, "is empty")
	case len(expr) > maxExpr:
		return nil, invalid(expr, "is too long")
	case opt.Syntax != Regexp:
		return parseLiteral(expr, opt)
	}
	flags := syntax.Perl
	if !opt.Case {
		flags |= syntax.FoldCase
	}
	re, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil, invalid(expr, reason(err))
	}
	if re = re.Simplify(); !opt.Case && !strings.ContainsAny(expr, "\u017f\u212a") {
		narrowClasses(re)
	}
	return re, nil
}

// narrowClasses takes from classes what only the folding of s and k brought
// into them; see fold.
func narrowClasses(re *syntax.Regexp) {
	if re.Op == syntax.OpCharClass {
		var set []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if lo, hi := re.Rune[i], re.Rune[i+1]; lo != hi || lo != longS && lo != kelvin {
				set = append(set, lo, hi)
			}
		}
		re.Rune = set
	}
	for _, sub := range re.Sub {
		narrowClasses(sub)
	}
}

// reason is a parser's complaint without the expression.
func reason(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Expr == "" {
		return e.Code.String()
	}
	return e.Code.String() + " at '" + e.Expr + "'"
}

// literalParser makes a tree of a literal or a pattern with wildcards.
type literalParser struct {
	opt   Options
	flags syntax.Flags
	top   *syntax.Regexp // a concatenation
	part  *syntax.Regexp // the exact part in it that is open
}

func parseLiteral(expr string, opt Options) (*syntax.Regexp, error) {
	p := &literalParser{opt: opt, top: &syntax.Regexp{Op: syntax.OpConcat}}
	if !opt.Case {
		p.flags = syntax.FoldCase
	}
	for i := 0; i < len(expr); {
		r, size := utf8.DecodeRuneInString(expr[i:])
		i += size
		if opt.Parts && r == '\\' && i < len(expr) {
			r, size = utf8.DecodeRuneInString(expr[i:])
			i += size
			p.literal(r)
		} else if why := p.rune(r); why != "" {
			return nil, invalid(expr, why)
		}
	}
	if p.part != nil {
		return nil, invalid(expr, "'<' without '>'")
	}
	if len(p.top.Sub) == 0 {
		return nil, invalid(expr, "is empty")
	}
	return p.top, nil
}

func (p *literalParser) rune(r rune) (why string) {
	switch {
	case p.opt.Parts && r == '<':
		if p.part != nil {
			return "'<' within '<'"
		}
		p.part = &syntax.Regexp{Op: syntax.OpConcat}
	case p.opt.Parts && r == '>':
		if p.part == nil {
			return "'>' without '<'"
		}
		if len(p.part.Sub) > 0 {
			p.top.Sub = append(p.top.Sub,
				&syntax.Regexp{Op: syntax.OpCapture, Name: exactName, Sub: []*syntax.Regexp{p.part}})
		}
		p.part = nil
	case p.opt.Syntax == Wild && r == '?':
		p.add(&syntax.Regexp{Op: syntax.OpAnyChar})
	case p.opt.Syntax == Wild && r == '*':
		p.add(&syntax.Regexp{Op: syntax.OpStar, Sub: []*syntax.Regexp{{Op: syntax.OpAnyChar}}})
	default:
		p.literal(r)
	}
	return ""
}

func (p *literalParser) add(re *syntax.Regexp) {
	to := p.top
	if p.part != nil {
		to = p.part
	}
	to.Sub = append(to.Sub, re)
}

// literal adds a character, to the literal before it if there is one.
func (p *literalParser) literal(r rune) {
	to := p.top
	if p.part != nil {
		to = p.part
	}
	if n := len(to.Sub); n > 0 && to.Sub[n-1].Op == syntax.OpLiteral {
		to.Sub[n-1].Rune = append(to.Sub[n-1].Rune, r)
		return
	}
	p.add(&syntax.Regexp{Op: syntax.OpLiteral, Flags: p.flags, Rune: []rune{r}})
}

// plainText is the literal a tree stands for, if it is one that has no case
// of its own or is folded throughout. U+FFFD also stands for bytes that are no
// UTF-8, so it is not plain.
func plainText(re *syntax.Regexp, fold bool) (string, bool) {
	var b strings.Builder
	ok := appendText(&b, re, fold)
	return b.String(), ok && b.Len() > 0
}

func appendText(b *strings.Builder, re *syntax.Regexp, fold bool) bool {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return !slices.Contains(re.Rune, utf8.RuneError) && fold == (re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if !appendText(b, sub, fold) {
				return false
			}
		}
		return true
	}
	return false
}
