// Package pattern finds which of many patterns a text has, in one pass over it.
//
// A pattern is a phrase, or a regular expression in Go's syntax. Phrases and
// what a regular expression cannot match without are words that one automaton
// (Aho and Corasick's, automaton.go) looks for at once; only the regular
// expressions whose words are there are then tried. Each has an automaton of its
// own, made state by state as texts need it (dfa.go), and is run from where a
// match of it may begin, which a second pass for the words of those expressions
// tells (near.go), up to where none has begun. So the time is that of two passes
// and what follows the beginnings, however many patterns there are, and at worst
// that of one table look-up for each byte and expression tried. Automata are
// bounded; an expression that outgrows them is left to Go's regexp, which is
// linear too. A regular expression without words is tried on every text, which is
// why there may be few of them (MaxBlind).
//
// Text is looked at as words: letters, marks and digits without regard to case,
// all else between them as one blank. For a phrase that is all: 'Laser
// intensity' is in "laser-\nintensity," and not in "lasers intensity". For a
// regular expression it only says whether it is worth trying.
package pattern

import (
	"fmt"
	iofs "io/fs"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Bounds of a Set.
const (
	MaxPatterns = 100_000
	MaxBlind    = 64      // regular expressions that need no word
	MaxSize     = 1 << 10 // bytes of a pattern
	maxWords    = 4 << 20 // bytes of all words of the automaton
)

// A Pattern is what is looked for.
type Pattern struct {
	Text   string
	Regexp bool // Text is a regular expression; else a phrase
}

// An Error tells which pattern a set could not be made with.
type Error struct {
	Index int
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("pattern %d: %v", e.Index+1, e.Err) }

// Unwrap has the class too: a pattern that cannot be is invalid.
func (e *Error) Unwrap() []error { return []error{e.Err, iofs.ErrInvalid} }

// A Set holds patterns. It does not change once made, and any number of
// goroutines may match with it.
type Set struct {
	auto  *automaton
	words []string    // of the automaton
	owner [][]int32   // patterns of each word of the automaton: those it may mean
	needs [][][]int32 // of each pattern: sets of words that it needs one each of, besides
	exprs []*expr     // of each pattern; nil for a phrase
	pool  *pool
	blind []int32 // patterns that are to be tried always
}

// Compile makes a set. An error is an *Error.
func Compile(patterns []Pattern) (*Set, error) {
	s := &Set{exprs: make([]*expr, len(patterns)), needs: make([][][]int32, len(patterns)), pool: &pool{max: maxPool}}
	if len(patterns) > MaxPatterns {
		return nil, &Error{MaxPatterns, fmt.Errorf("no more than %d patterns", MaxPatterns)}
	}
	b := &gathered{words: make(map[string][]int32), needs: make(map[int32][][]string), begin: make(map[int32][]string)}
	for i, p := range patterns {
		if err := s.add(b, int32(i), p); err != nil {
			return nil, &Error{i, err}
		}
	}
	all := make([]string, 0, len(b.words))
	for w := range b.words {
		all = append(all, w)
	}
	slices.Sort(all)
	s.auto, s.words = newAutomaton(all), all
	s.owner = make([][]int32, len(all))
	number := make(map[string]int32, len(all))
	for i, w := range all {
		s.owner[i], number[w] = b.words[w], int32(i)
	}
	for i, sets := range b.needs {
		for _, set := range sets {
			var numbers []int32
			for _, w := range set {
				numbers = append(numbers, number[w])
			}
			s.needs[i] = append(s.needs[i], numbers)
		}
	}
	for i, set := range b.begin {
		for _, w := range set {
			s.exprs[i].begin = append(s.exprs[i].begin, number[w])
		}
	}
	return s, nil
}

// gathered are the words of patterns, while a set is made.
type gathered struct {
	words map[string][]int32
	needs map[int32][][]string
	begin map[int32][]string
	size  int
}

func (g *gathered) add(word string, patterns ...int32) error {
	if _, ok := g.words[word]; !ok {
		if g.size += len(word); g.size > maxWords {
			return fmt.Errorf("the words of all patterns are over %d bytes", maxWords)
		}
	}
	g.words[word] = append(g.words[word], patterns...)
	return nil
}

func (s *Set) add(b *gathered, i int32, p Pattern) error {
	if len(p.Text) > MaxSize {
		return fmt.Errorf("over %d bytes", MaxSize)
	}
	if !p.Regexp {
		word := string(phrase(p.Text))
		if len(word) < 3 { // two blanks
			return fmt.Errorf("'%s' has no letter or digit", p.Text)
		}
		return b.add(word, i)
	}
	re, err := regexp.Compile(p.Text)
	if err != nil {
		return err
	}
	s.exprs[i] = &expr{re: re, pool: s.pool}
	s.pool.all = append(s.pool.all, s.exprs[i])
	tree, err := syntax.Parse(p.Text, syntax.Perl)
	if err != nil {
		return err
	}
	tree = tree.Simplify()
	b.begin[i] = beginnings(tree)
	for _, w := range b.begin[i] {
		if err := b.add(w); err != nil {
			return err
		}
	}
	sets := required(tree)
	if len(sets) == 0 {
		if s.blind = append(s.blind, i); len(s.blind) > MaxBlind {
			return fmt.Errorf("/%s/ matches without any word, as more than %d others do, and every text would have to be searched for it", p.Text, MaxBlind)
		}
		return nil
	}
	for _, w := range sets[0] {
		if err := b.add(w, i); err != nil {
			return err
		}
	}
	b.needs[i] = sets[1:]
	for _, w := range slices.Concat(sets[1:]...) {
		if err := b.add(w); err != nil {
			return err
		}
	}
	return nil
}

// Hits are the patterns found so far, by one goroutine.
type Hits struct {
	words   bits    // found in this text
	tried   bits    // patterns, in this text
	found   bits    // patterns, in any
	pending []int32 // patterns to be tried on this text
	places  *places
	near    near
}

// Hits makes room for what Match finds.
func (s *Set) Hits() *Hits {
	return &Hits{words: newBits(len(s.owner)), tried: newBits(len(s.exprs)), found: newBits(len(s.exprs)), places: newPlaces(s.words)}
}

// Has reports whether pattern i was found.
func (h *Hits) Has(i int) bool { return h.found.has(int32(i)) }

// Match adds to h the patterns that text has.
func (s *Set) Match(h *Hits, text []byte) {
	clear(h.words)
	clear(h.tried)
	h.pending = h.pending[:0]
	s.auto.find(text, func(word int32) {
		for _, i := range s.owner[word] {
			switch {
			case h.found.has(i) || h.tried.has(i):
			case s.exprs[i] == nil:
				h.found.set(i)
			default:
				h.tried.set(i)
				h.pending = append(h.pending, i)
			}
		}
	}, h.words)
	known := s.plan(h, text)
	for _, i := range h.pending {
		var at *near
		if begin := s.exprs[i].begin; known && begin != nil {
			at = h.places.of(&h.near, begin)
		}
		if s.exprs[i].match(text, at) {
			h.found.set(i)
		}
	}
	h.places.forget()
}

// may reports whether the text has all the words that pattern i needs.
func (s *Set) may(h *Hits, i int32) bool {
	for _, set := range s.needs[i] {
		if !slices.ContainsFunc(set, h.words.has) {
			return false
		}
	}
	return true
}

type bits []uint64

func newBits(n int) bits            { return make(bits, (n+63)/64) }
func (b bits) has(i int32) bool     { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bits) set(i int32)          { b[i>>6] |= 1 << (i & 63) }
func isWord(r rune) bool            { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
func foldASCII(c byte) (byte, bool) { return asciiFold[c], asciiFold[c] != ' ' }

// asciiFold is what an ASCII byte is looked at as.
var asciiFold = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'z':
			t[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		default:
			t[c] = ' '
		}
	}
	return t
}()

// fold gives one rune for all that differ only in case; of those it is the ASCII
// one if there is one, else the smallest, which is what (?i) goes by too.
func fold(r rune) rune {
	if !isWord(r) {
		return ' '
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least < utf8.RuneSelf {
		return rune(asciiFold[least])
	}
	return least
}

// words gives text as it is looked at. A text that begins, or ends, with what is no
// letter does so with a blank.
func words(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		r = fold(r)
		if r == ' ' && len(out) > 0 && out[len(out)-1] == ' ' {
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// phrase gives text as words that stand by themselves.
func phrase(text string) []byte { return words(" " + text + " ") }
