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
	MaxLength = 8192 // bytes
	MaxDepth  = 64   // parentheses and nots inside one another
	MaxWords  = 128  // words and phrases
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
	p := &parser{scanner: scanner{text: text, col: 1}}
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
	if p.tok.kind == closing {
		return nil, p.errorf("')' without '('")
	}
	if p.tok.kind != end {
		return nil, p.errorf("%s where an operator or the end should be", p.tok)
	}
	return n, nil
}

type kind int

const (
	end kind = iota
	word
	phrase
	opening
	closing
	colon
	and
	or
	not
)

// A token is a piece of the text and the column it begins at.
type token struct {
	kind kind
	text string
	col  int
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case phrase:
		return quote(t.text)
	}
	return "'" + t.text + "'"
}

// The scanner cuts text into tokens; col is the column of text's first byte.
type scanner struct {
	text string
	col  int
}

func wordRune(r rune) bool {
	switch r {
	case '(', ')', '"', ':':
		return false
	}
	return !unicode.IsSpace(r)
}

func operator(text string) string {
	if len(text) > 3 {
		return ""
	}
	switch s := strings.ToLower(text); s {
	case "and", "or", "not":
		return s
	}
	return ""
}

// skip drops the first n bytes.
func (s *scanner) skip(n int) {
	s.col += utf8.RuneCountInString(s.text[:n])
	s.text = s.text[n:]
}

func (s *scanner) scan() (token, error) {
	s.skip(len(s.text) - len(strings.TrimLeftFunc(s.text, unicode.IsSpace)))
	t := token{col: s.col}
	if s.text == "" {
		return t, nil
	}
	switch s.text[0] {
	case '"':
		return s.quoted()
	case '(', ')', ':':
		t.kind = map[byte]kind{'(': opening, ')': closing, ':': colon}[s.text[0]]
		t.text = s.text[:1]
		s.skip(1)
		return t, nil
	}
	n := strings.IndexFunc(s.text, func(r rune) bool { return !wordRune(r) })
	if n < 0 {
		n = len(s.text)
	}
	t.kind, t.text = word, s.text[:n]
	s.skip(n)
	switch operator(t.text) {
	case "and":
		t.kind = and
	case "or":
		t.kind = or
	case "not":
		t.kind = not
	default:
		return t, searchable(t)
	}
	return t, nil
}

// quoted scans a phrase; a doubled quote inside stands for one.
func (s *scanner) quoted() (token, error) {
	t := token{kind: phrase, col: s.col}
	for i := 1; i < len(s.text); i++ {
		if s.text[i] != '"' {
			continue
		}
		if strings.HasPrefix(s.text[i+1:], `"`) {
			i++
			continue
		}
		t.text = strings.ReplaceAll(s.text[1:i], `""`, `"`)
		s.skip(i + 1)
		return t, searchable(t)
	}
	return t, &Error{t.col, "quote is not closed"}
}

// searchable refuses a word or phrase no index could hold anything of.
func searchable(t token) error {
	if !utf8.ValidString(t.text) {
		return &Error{t.col, "text is not UTF-8"}
	}
	for _, r := range t.text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return nil
		}
	}
	return &Error{t.col, t.String() + " has no letter or digit"}
}

// The parser looks one token ahead; a method leaves tok behind what it read.
type parser struct {
	scanner
	tok   token
	depth int
	words int
	attr  bool // inside an attribute's value
}

func (p *parser) next() (err error) {
	p.tok, err = p.scan()
	return err
}

func (p *parser) errorf(format string, arg ...any) error {
	return &Error{p.tok.col, fmt.Sprintf(format, arg...)}
}

func (p *parser) or() (Node, error) {
	var nodes Or
	for {
		n, err := p.and()
		if err != nil {
			return nil, err
		}
		if inner, ok := n.(Or); ok { // (a or b) or c is a or b or c
			nodes = append(nodes, inner...)
		} else {
			nodes = append(nodes, n)
		}
		if p.tok.kind != or {
			break
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return nodes, nil
}

func (p *parser) and() (Node, error) {
	var nodes And
	for {
		n, err := p.not()
		if err != nil {
			return nil, err
		}
		if inner, ok := n.(And); ok {
			nodes = append(nodes, inner...)
		} else {
			nodes = append(nodes, n)
		}
		switch p.tok.kind {
		case and:
			if err := p.next(); err != nil {
				return nil, err
			}
			continue
		case word, phrase, opening, not: // adjacent: and is understood
			continue
		}
		break
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return nodes, nil
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
		return p.item()
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

func (p *parser) item() (Node, error) {
	t := p.tok
	switch t.kind {
	case opening:
		return p.group()
	case word, phrase:
		if err := p.next(); err != nil {
			return nil, err
		}
		if p.tok.kind == colon {
			return p.attribute(t)
		}
		return p.value(t)
	case end:
		return nil, p.errorf("the query ends where a word should be")
	}
	return nil, p.errorf("%s where a word should be", t)
}

func (p *parser) value(t token) (Node, error) {
	if p.words++; p.words > MaxWords {
		return nil, &Error{t.col, fmt.Sprintf("more than %d words", MaxWords)}
	}
	if t.kind == phrase {
		return Phrase{t.text}, nil
	}
	return Word{t.text}, nil
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
		return nil, &Error{open.col, "'(' is not closed"}
	}
	if p.tok.kind != closing {
		return nil, p.errorf("%s where an operator or ')' should be", p.tok)
	}
	return n, p.next()
}

// attribute reads the value after the name and colon.
func (p *parser) attribute(name token) (Node, error) {
	if name.kind != word {
		return nil, &Error{name.col, fmt.Sprintf("attribute name %s is quoted", name)}
	}
	if p.attr {
		return nil, &Error{name.col, fmt.Sprintf("attribute '%s' inside another attribute's value", name.text)}
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	p.attr = true
	defer func() { p.attr = false }()
	var (
		v   Node
		err error
	)
	switch p.tok.kind {
	case opening:
		v, err = p.group()
	case word, phrase:
		if v, err = p.value(p.tok); err == nil {
			err = p.next()
		}
	default:
		return nil, p.errorf("%s where the value of attribute '%s' should be", p.tok, name.text)
	}
	if err != nil {
		return nil, err
	}
	if p.tok.kind == colon {
		return nil, p.errorf("second ':' after attribute '%s'; quote a value that holds one", name.text)
	}
	return Attr{strings.ToLower(name.text), v}, nil
}
