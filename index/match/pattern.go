package match

import (
	"errors"
	"fmt"
)

// A Pattern is a compiled one. It keeps what it learns of the texts it is run
// over, in bounded memory, and so is not safe for concurrent use; a Clone is
// as good and shares all that does not change.
type Pattern struct {
	expr string
	opt  Options
}

// Compile makes a pattern. The error tells what is wrong with expr, or that it
// is too large, and wraps iofs.ErrInvalid.
func Compile(expr string, opt Options) (*Pattern, error) {
	return nil, fmt.Errorf("pattern '%s': %w", expr, errors.ErrUnsupported)
}

// Clone gives a pattern for another goroutine.
func (p *Pattern) Clone() *Pattern { return &Pattern{p.expr, p.opt} }

// Limit gives the pattern with another cost allowed.
func (p *Pattern) Limit(errors int) (*Pattern, error) { return nil, nil }

// Match tells the least cost at which the whole of word matches.
func (p *Pattern) Match(word []byte) (cost int, ok bool) { return 0, false }

// MatchString is Match.
func (p *Pattern) MatchString(word string) (cost int, ok bool) { return 0, false }

// Find gives the match that the package comment describes, in text from byte
// from on; what stands before from still counts as before it (for Word, ^ and
// \b).
func (p *Pattern) Find(text []byte, from int) (start, end, cost int, ok bool) { return 0, 0, 0, false }

// FindString is Find.
func (p *Pattern) FindString(text string, from int) (start, end, cost int, ok bool) {
	return 0, 0, 0, false
}

// Least is the least cost of any match in text.
func (p *Pattern) Least(text []byte) (cost int, ok bool) { return 0, false }

// Literals are strings each match holds, all of them, longest first; in lower
// case unless Options.Case. A text that lacks one, whatever the case, does not
// match.
func (p *Pattern) Literals() []string { return nil }

// Required are strings of which each match holds one; none if that is not
// known. It is the most selective set, by length.
func (p *Pattern) Required() []string { return nil }

// Prefix is what each word begins with that Match accepts, in lower case
// unless Options.Case; a word in lower case, that is.
func (p *Pattern) Prefix() string { return "" }

// Automaton gives an automaton of the words Match accepts. When its memory is
// used up, 8 MB, it accepts all that continues what it has seen so far:
// confirm words with Match.
func (p *Pattern) Automaton() Automaton { return nil }
