// Package query is the language searchers write: Parse makes a tree of a
// text, String writes a tree back in its canonical form. There is no index
// in it; an engine walks the tree. docs/query.6.md is its manual.
//
//	expr  = and { "or" and }
//	and   = not { [ "and" ] not }
//	not   = { "not" } item
//	item  = "(" expr ")" | value | name ":" attr
//	attr  = "(" expr ")" | value
//	value = word | phrase
//
// A word is a run of anything but white space, parentheses, quotes and
// colons, with at least one letter or digit in it. A phrase stands in double
// quotes; a quote inside is doubled. The words and, or, not are operators in
// any case; quoted they are text.
package query

import "strings"

// A Node is a query or a part of one: Word, Phrase, Attr, And, Or, Not.
type Node interface {
	// String is the canonical form: Parse of it gives the same tree when the
	// tree came from Parse, and one that means the same when it did not.
	String() string

	// level is how tightly the node binds: or 0, and 1, not 2, the rest 3.
	level() int
}

type (
	// Word is one word as it was written: Plan, x86_64, net/http.
	Word struct{ Text string }

	// Phrase is the text between two quotes, the quotes inside undoubled.
	Phrase struct{ Text string }

	// Attr asks for Value within the attribute Name, which Parse turns to
	// lower case. Value never holds another Attr.
	Attr struct {
		Name  string
		Value Node
	}

	// And asks for all of its nodes, two or more.
	And []Node

	// Or asks for any of its nodes, two or more.
	Or []Node

	// Not asks for what Node does not match.
	Not struct{ Node Node }
)

func (Word) level() int   { return 3 }
func (Phrase) level() int { return 3 }
func (Attr) level() int   { return 3 }
func (Not) level() int    { return 2 }
func (And) level() int    { return 1 }
func (Or) level() int     { return 0 }

func (w Word) String() string {
	if bare(w.Text) {
		return w.Text
	}
	return Phrase(w).String()
}

func (p Phrase) String() string {
	return `"` + strings.ReplaceAll(p.Text, `"`, `""`) + `"`
}

func (a Attr) String() string { return strings.ToLower(a.Name) + " : " + tight(a.Value, 3) }

func (n Not) String() string { return "not " + tight(n.Node, 2) }

func (a And) String() string { return join(a, " and ", 2) }

func (o Or) String() string { return join(o, " or ", 1) }

func join(nodes []Node, op string, level int) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(op)
		}
		b.WriteString(tight(n, level))
	}
	return b.String()
}

// tight writes n in parentheses when it binds less than level.
func tight(n Node, level int) string {
	if n.level() < level {
		return "(" + n.String() + ")"
	}
	return n.String()
}

// bare tells whether text reads back as a word without quotes.
func bare(text string) bool {
	if text == "" || operator(text) != "" {
		return false
	}
	for _, r := range text {
		if !wordRune(r) {
			return false
		}
	}
	return true
}
