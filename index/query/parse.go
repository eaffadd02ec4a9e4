package query

import (
	"fmt"
	iofs "io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a query may not exceed. All are far past what a person writes, and
// keep a hostile one from costing more than a few plain ones.
const (
	MaxLength   = 8192 // bytes
	MaxDepth    = 64   // parentheses and nots inside one another
	MaxWords    = 128  // words, phrases, patterns, values
	MaxRegexp   = 2000 // characters of a regular expression
	MaxErrors   = 8    // in a word or phrase
	MaxDistance = 99   // in words, of near and adj
)

// An Error says what is wrong and where: Column counts characters from 1.
// It is of the class iofs.ErrInvalid.
type Error struct {
	Column int
	Msg    string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Msg) }

// Unwrap gives the class.
func (e *Error) Unwrap() error { return iofs.ErrInvalid }

// Parse reads a query. An error is an *Error.
func Parse(text string) (Node, error) {
	if len(text) > MaxLength {
		return nil, &Error{1, fmt.Sprintf("query of %d bytes, the limit is %d", len(text), MaxLength)}
	}
	p := &parser{scanner: scanner{text: text}, star: -1}
	if at := invalid(text); at >= 0 {
		return nil, p.errorAt(at, "text is not UTF-8")
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.tok.kind == end {
		return nil, &Error{1, "empty query"}
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != end {
		return nil, p.surplus("the end")
	}
	return p.bag(n)
}

// invalid is where text stops being UTF-8, or -1.
func invalid(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return i
		}
	}
	return -1
}

// The parser looks one token ahead; a method leaves tok behind what it read.
type parser struct {
	scanner
	tok   token
	depth int
	words int
	attr  bool // inside an attribute's value
	star  int  // where the first * alone is, or -1
}

func (p *parser) next() (err error) {
	p.tok, err = p.scan()
	return err
}

// errorf is an error about tok.
func (p *parser) errorf(format string, arg ...any) error { return p.errorAt(p.tok.at, format, arg...) }

// bag makes a query that has nothing but words and patterns one.
func (p *parser) bag(n Node) (Node, error) {
	all, ok := n.(And)
	if !ok || p.mixed {
		return n, nil
	}
	if p.star >= 0 {
		return nil, p.errorAt(p.star, "'*' is all objects and needs an operator beside it")
	}
	return Bag(all), nil
}

// surplus says what is wrong with tok, at which a query or what is in
// parentheses should be over.
func (p *parser) surplus(over string) error {
	switch p.tok.kind {
	case closing:
		return p.errorf("')' without '('")
	case colon, compare:
		return p.errorf("%s where an operator or %s should be; quote a word that holds it", p.tok, over)
	case dots:
		return p.errorf("'..' makes a range of an attribute's values; quote a word that holds it")
	}
	return p.errorf("%s where an operator or %s should be", p.tok, over)
}

func (p *parser) or() (Node, error) {
	first, err := p.and()
	if err != nil || p.tok.kind != or {
		return first, err
	}
	nodes := appendOr(make(Or, 0, 4), first)
	for p.tok.kind == or {
		if err := p.next(); err != nil {
			return nil, err
		}
		n, err := p.and()
		if err != nil {
			return nil, err
		}
		nodes = appendOr(nodes, n)
	}
	return nodes, nil
}

// appendOr makes a or b or c of (a or b) or c.
func appendOr(list Or, n Node) Or {
	if inner, ok := n.(Or); ok {
		return append(list, inner...)
	}
	return append(list, n)
}

func appendAnd(list And, n Node) And {
	if inner, ok := n.(And); ok {
		return append(list, inner...)
	}
	return append(list, n)
}

func (p *parser) and() (Node, error) {
	first, err := p.not()
	if err != nil || !p.more() {
		return first, err
	}
	nodes := appendAnd(make(And, 0, 4), first)
	for p.more() {
		op := p.tok.kind
		if op == and || op == except {
			if err := p.next(); err != nil {
				return nil, err
			}
		}
		n, err := p.not()
		if err != nil {
			return nil, err
		}
		if op == except {
			n = Not{n}
		}
		nodes = appendAnd(nodes, n)
	}
	return nodes, nil
}

// more tells whether an and goes on: adjacent it is understood.
func (p *parser) more() bool {
	switch p.tok.kind {
	case and, except, word, phrase, wild, regular, fuzzy, star, opening, not:
		return true
	case compare, dots: // within an attribute's parentheses
		return p.attr
	}
	return false
}

// nest counts one level in; the caller counts it out.
func (p *parser) nest() error {
	if p.depth++; p.depth > MaxDepth {
		return p.errorf("nested deeper than %d", MaxDepth)
	}
	return nil
}

func (p *parser) not() (Node, error) {
	if p.tok.kind != not {
		return p.near()
	}
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.next(); err != nil {
		return nil, err
	}
	n, err := p.not()
	if err != nil {
		return nil, err
	}
	return Not{n}, nil
}

func (p *parser) near() (Node, error) {
	at := p.tok.at
	first, err := p.item()
	if err != nil || p.tok.kind != near {
		return first, err
	}
	if !positioned(first) {
		return nil, p.unplaced(at)
	}
	op := p.tok
	n := Near{Nodes: append(make([]Node, 0, 2), first), Distance: op.n, Ordered: op.mark}
	for p.tok.kind == near {
		if p.tok.n != op.n || p.tok.mark != op.mark {
			return nil, p.errorf("%s after %s: in a row they have to be the same", p.tok, op)
		}
		if err := p.next(); err != nil {
			return nil, err
		}
		at := p.tok.at
		operand, err := p.item()
		if err != nil {
			return nil, err
		}
		if !positioned(operand) {
			return nil, p.unplaced(at)
		}
		n.Nodes = append(n.Nodes, operand)
	}
	return n, nil
}

func (p *parser) unplaced(at int) error {
	return p.errorAt(at, "near and adj stand between words, phrases, patterns of words, or such joined by or")
}

// positioned tells whether a node can stand in a Near.
func positioned(n Node) bool {
	switch n := n.(type) {
	case Word, Phrase, Wild:
		return true
	case Regexp:
		return !n.Text
	case Fuzzy:
		return !n.Phrase
	case Or:
		for _, n := range n {
			if !positioned(n) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *parser) item() (Node, error) {
	t := p.tok
	switch t.kind {
	case opening:
		return p.group()
	case word, phrase, wild, regular, fuzzy, star:
		if err := p.next(); err != nil {
			return nil, err
		}
		switch p.tok.kind {
		case colon:
			return p.attribute(t)
		case compare:
			return p.comparison(t)
		}
		if p.attr {
			return p.value(t)
		}
		return p.leaf(t)
	case compare, dots:
		if p.attr {
			return p.values()
		}
	}
	return nil, p.missing("a word")
}

// missing says that something should be where tok is.
func (p *parser) missing(what string) error {
	switch p.tok.kind {
	case end:
		return p.errorf("the query ends where %s should be", what)
	case compare, dots:
		return p.errorf("%s where %s should be; quote a word that holds it", p.tok, what)
	}
	return p.errorf("%s where %s should be", p.tok, what)
}

// count counts a leaf, which is at an offset.
func (p *parser) count(at int) error {
	if p.words++; p.words > MaxWords {
		return p.errorAt(at, "more than %d words", MaxWords)
	}
	return nil
}

// leaf is the node of a word, a phrase or a pattern.
func (p *parser) leaf(t token) (Node, error) {
	if err := p.count(t.at); err != nil {
		return nil, err
	}
	if t.kind == star {
		if p.star < 0 {
			p.star = t.at
		}
		return All{}, nil
	}
	if t.kind != regular && !searchable(t.text) {
		return nil, p.errorAt(t.at, "%s has no letter or digit", t)
	}
	switch {
	case t.kind == wild:
		return Wild{t.text}, nil
	case t.kind == regular:
		return Regexp{t.text, t.mark}, nil
	case t.kind == fuzzy:
		return Fuzzy{Text: t.text, Errors: t.n, Best: t.best}, nil
	case t.kind == phrase && t.mark:
		return Fuzzy{Text: t.text, Errors: t.n, Best: t.best, Phrase: true}, nil
	case t.kind == phrase:
		return Phrase{t.text}, nil
	}
	return Word{t.text}, nil
}

// searchable tells whether an index could hold anything of the text.
func searchable(text string) bool {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return true
		}
	}
	return false
}

func (p *parser) group() (Node, error) {
	open := p.tok
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.next(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind == end {
		return nil, p.errorAt(open.at, "'(' is not closed")
	}
	if p.tok.kind != closing {
		return nil, p.surplus("')'")
	}
	return n, p.next()
}
