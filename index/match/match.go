// Package match finds what a pattern stands for in words and in text: a
// literal, a pattern with wildcards or a regular expression, each with up to
// MaxErrors errors. It does what agrep does without its limits: any pattern
// length, any text, time linear in the text whatever the pattern, and swapped
// neighbours as one error. There is no index in it.
//
// Errors are counted in characters, not bytes, and each kind has a cost. With
// errors, a text matches if some string of the pattern's can be made of it
// within the cost allowed; an edit never touches a place twice, so a pair that
// was swapped is not edited again (the optimal string alignment distance).
//
// A Pattern is either matched against the whole of a word (Match, Automaton)
// or found in a text (Find). Of the matches in a text Find takes this one. Let
// e be the least place where any match ends. Of the matches that begin before
// e, or at e if all that end there are empty, take those of least cost, of
// these the ones that begin first, of these the longest. Without errors that
// is the leftmost-longest match of POSIX.
package match

// MaxErrors is the greatest cost a pattern can be given.
const MaxErrors = 8

// A Syntax says how a pattern is written.
type Syntax int

const (
	Literal Syntax = iota // every character stands for itself
	Wild                  // * for any run of characters, ? for one
	Regexp                // as package regexp/syntax reads Perl's
)

// Costs of the errors; what is 0 costs 1. An error that costs more than
// Options.Errors allows does not happen.
type Costs struct {
	Insert     int // a character of the text that is not in the pattern
	Delete     int // one of the pattern that is not in the text
	Substitute int // another in its place
	Transpose  int // two neighbours swapped
}

// Options of a pattern.
type Options struct {
	Syntax Syntax
	Errors int   // the cost allowed, 0 to MaxErrors
	Costs  Costs // of each kind of error
	Best   bool  // the least cost up to Errors (0: MaxErrors) that matches anything
	Case   bool  // upper and lower case differ
	Word   bool  // Find: no letter, digit, mark or _ stands before or after a match
	Line   bool  // Find: a match is a whole line; implies Lines
	Lines  bool  // a match stays within a line; ^ and $ are the ends of lines

	// Parts makes <…> in a literal or wildcard pattern enclose characters
	// that must stand exactly, and a backslash take the next character as
	// itself. A regular expression names such parts: (?P<exact>…).
	Parts bool
}

// An Automaton decides of words given byte by byte; it walks a dictionary.
// Step gives a state from a state, below 0 if no continuation is accepted.
// All states stay good as long as the Automaton.
type Automaton interface {
	Start() int
	Step(state int, b byte) int
	Accept(state int) bool
}
