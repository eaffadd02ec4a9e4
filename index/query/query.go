// Package query is the language searchers write: Parse makes a tree of a
// text, String writes a tree back in its canonical form. There is no index
// in it; an engine walks the tree. docs/query.6.md is its manual.
//
//	query  = bag | or
//	bag    = leaf leaf { leaf } [ "?" ]
//	or     = and { "or" and }
//	and    = not { ( "and" | "except" | ) not }
//	not    = { "not" } near
//	near   = item { ( "near" | "adj" ) [ "/" number ] item }
//	item   = "(" or ")" | leaf | "*" | name ":" value | name sign text
//	value  = "(" or ")" | leaf | "*" | range         within "(" or ")" an item
//	range  = text ".." [ text ] | ".." text          is a value or sign text
//	sign   = "=" | "!=" | "<" | "<=" | ">" | ">="
//	text   = word | phrase
//	leaf   = word | phrase | wild | regexp | fuzzy
//	wild   = word with * and ? in it
//	regexp = "/" expression "/" [ "t" ]
//	fuzzy  = ( word | phrase ) "~" [ digit ]
//
// A word is a run of anything but white space, parentheses, quotes, colons,
// the signs = != < > and two dots, with at least one letter or digit in it. A
// phrase stands in double quotes; a quote inside is doubled. In an expression
// \/ is a slash. In a fuzzy one, <...> encloses characters that must stand
// so, and a backslash takes the next as itself. The words and, or, not,
// except, near and adj are operators in any case; quoted they are text.
//
// A bag is a query without any operator, attribute or parenthesis. Elsewhere
// what stands side by side is joined by and. What could be read in two ways is
// an error that says how to write either.
package query

// A Node is a query or a part of one.
type Node interface {
	// String is the canonical form: Parse of it gives the same tree when the
	// tree came from Parse, and one that means the same when it did not.
	String() string

	// level is how tightly the node binds.
	level() int
}

// What stands for itself: words, phrases, patterns.
type (
	// All matches every document; as the value of an Attr, those that have it.
	All struct{}

	// Word is one word as it was written: Plan, x86_64, net/http.
	Word struct{ Text string }

	// Phrase is the text between two quotes, the quotes inside undoubled.
	Phrase struct{ Text string }

	// Wild is a whole word in which * stands for any characters or none, and
	// ? for one.
	Wild struct{ Pattern string }

	// Regexp is a regular expression in the syntax of Go's regexp that
	// matches whole words or, if Text, somewhere in a line of text. A slash
	// in Expr stands for itself.
	Regexp struct {
		Expr string
		Text bool
	}

	// Fuzzy is a word or, if Phrase, a piece of a line of text, found with up
	// to Errors characters wrong or, if Best, with the fewest that find any.
	// What stands between < and > in Text must stand so.
	Fuzzy struct {
		Text   string
		Errors int
		Best   bool
		Phrase bool
	}
)

// What stands within an attribute.
type (
	// Attr asks for Value within the attribute Name, which Parse turns to
	// lower case. Value never holds another Attr.
	Attr struct {
		Name  string
		Value Node
	}

	// Compare is true of a value of the attribute it is in that is = < <= >
	// or >= (Op) to Value: as numbers, dates or text, whichever Value is.
	Compare struct{ Op, Value string }

	// Range is true of a value from Low to High, both counted in; an empty
	// end is open.
	Range struct{ Low, High string }
)

// What joins others.
type (
	// Near asks for its nodes, two or more, in one attribute, each at most
	// Distance words from the one before it and, if Ordered, after it; next
	// to each other is 1. A node is a Word, Phrase or Wild, a Regexp or Fuzzy
	// of words, or an Or of such.
	Near struct {
		Nodes    []Node
		Distance int
		Ordered  bool
	}

	// And asks for all of its nodes, two or more.
	And []Node

	// Or asks for any of its nodes, two or more.
	Or []Node

	// Not asks for what Node does not match.
	Not struct{ Node Node }

	// Bag is a query that is nothing but words, phrases and patterns, two or
	// more: it asks for any of them, those documents first that have all.
	Bag []Node
)

// Levels, from what binds least.
const (
	levelBag = iota // alone only
	levelOr
	levelAnd
	levelNot
	levelNear
	levelItem
)

func (All) level() int     { return levelItem }
func (Word) level() int    { return levelItem }
func (Phrase) level() int  { return levelItem }
func (Wild) level() int    { return levelItem }
func (Regexp) level() int  { return levelItem }
func (Fuzzy) level() int   { return levelItem }
func (Attr) level() int    { return levelItem }
func (Compare) level() int { return levelItem }
func (Range) level() int   { return levelItem }
func (Near) level() int    { return levelNear }
func (Not) level() int     { return levelNot }
func (And) level() int     { return levelAnd }
func (Or) level() int      { return levelOr }
func (Bag) level() int     { return levelBag }
