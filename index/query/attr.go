package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// enter checks the name of an attribute, which tok is behind, and that
// it stands in no other's value.
func (p *parser) enter(name token) error {
	switch {
	case name.kind == phrase:
		return p.errorAt(name.at, "attribute name %s is quoted", name)
	case name.kind != word:
		return p.errorAt(name.at, "attribute name %s is a pattern", name)
	case !searchable(name.text):
		return p.errorAt(name.at, "attribute name %s has no letter or digit", name)
	case p.attr:
		return p.errorAt(name.at, "attribute %s inside another attribute's value", name)
	}
	return nil
}

// attribute reads the value after the name and colon.
func (p *parser) attribute(name token) (n Node, err error) {
	if err := p.enter(name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.text[p.at:], "//") {
		return nil, p.errorf("'://' after attribute %s; quote a URL", name)
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	p.attr = true
	defer func() { p.attr = false }()
	switch t := p.tok; t.kind {
	case opening:
		n, err = p.group()
	case word, phrase, wild, regular, fuzzy, star:
		if err = p.next(); err == nil {
			n, err = p.value(t)
		}
	case dots:
		n, err = p.values()
	default:
		return nil, p.errorf("%s where the value of attribute %s should be", p.tok, name)
	}
	if err != nil {
		return nil, err
	}
	switch p.tok.kind {
	case colon:
		return nil, p.errorf("second ':' after attribute %s; quote a value that holds one", name)
	case compare, dots:
		return nil, p.surplus("the end")
	}
	return Attr{strings.ToLower(name.text), n}, nil
}

// value is a leaf within an attribute, or a range that begins with it.
func (p *parser) value(t token) (Node, error) {
	if p.tok.kind != dots {
		return p.leaf(t)
	}
	if err := p.isText(t, "'..'"); err != nil {
		return nil, err
	}
	if err := p.count(t.at); err != nil {
		return nil, err
	}
	return p.upTo(t)
}

// values reads a comparison or a range that tok begins.
func (p *parser) values() (Node, error) {
	if err := p.count(p.tok.at); err != nil {
		return nil, err
	}
	if p.tok.kind == dots {
		return p.upTo(token{at: p.tok.at})
	}
	return p.compared()
}

// upTo reads the end of a range, from its dots on.
func (p *parser) upTo(low token) (Node, error) {
	op := p.tok
	if err := p.next(); err != nil {
		return nil, err
	}
	r := Range{Low: low.text}
	switch t := p.tok; t.kind {
	case word, phrase, wild, regular, fuzzy, star:
		if t.space && !op.space && low.kind != end {
			return nil, p.errorf("blank after '..', not before; write it in one, or an operator")
		}
		if err := p.isText(t, "'..'"); err != nil {
			return nil, err
		}
		r.High = t.text
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if r == (Range{}) {
		return nil, p.errorAt(op.at, "'..' without a low or high end")
	}
	return r, nil
}

// isText refuses a pattern as a value that is compared.
func (p *parser) isText(t token, op string) error {
	switch {
	case t.kind != word && t.kind != phrase, t.mark:
		return p.errorAt(t.at, "%s compares values, not patterns: quote %s", op, t)
	case t.kind == word && !searchable(t.text):
		return p.errorAt(t.at, "%s has no letter or digit", t)
	}
	return nil
}

// comparison reads what comes after an attribute's name, from the sign on.
func (p *parser) comparison(name token) (Node, error) {
	if err := p.enter(name); err != nil {
		return nil, err
	}
	first, _ := utf8.DecodeRuneInString(name.text)
	last, _ := utf8.DecodeLastRuneInString(name.text)
	if !letter(first) || !letter(last) {
		return nil, p.errorAt(name.at, "%s is no attribute's name; quote a word that holds %s", name, p.tok)
	}
	if err := p.count(p.tok.at); err != nil {
		return nil, err
	}
	n, err := p.compared()
	if err != nil {
		return nil, err
	}
	switch p.tok.kind {
	case colon, compare, dots:
		return nil, p.surplus("the end")
	}
	attr := strings.ToLower(name.text)
	if not, ok := n.(Not); ok {
		return Not{Attr{attr, not.Node}}, nil
	}
	return Attr{attr, n}, nil
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// compared reads a sign and a value.
func (p *parser) compared() (Node, error) {
	op := p.tok
	if err := p.next(); err != nil {
		return nil, err
	}
	t := p.tok
	switch t.kind {
	case word, phrase, wild, regular, fuzzy, star:
	default:
		return nil, p.missing("the value for " + op.String())
	}
	if err := p.isText(t, op.String()); err != nil {
		return nil, err
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if op.text == "!=" {
		return Not{Compare{"=", t.text}}, nil
	}
	return Compare{op.text, t.text}, nil
}
