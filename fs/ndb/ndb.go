// Package ndb reads and writes lines of attr=value pairs, the text of config
// and status files.
//
// A line is an entry, its white-space separated words are its pairs:
//
//	# what to gather
//	root url=https://go.dev/doc/ depth=4 title='The Go ''docs'''
//	refresh
//
// A word without '=' is a key with an empty value. Quotes may stand anywhere
// in a word and are undone as fs.Field undoes them; an '=' inside them is
// text. A '#' where a word would begin starts a comment that ends with the
// line. Unlike in Plan 9's ndb(6), an entry is one line and never continued:
// indentation means nothing, so that grep and sed see whole entries.
//
// The package knows no keys: which there are, which may be repeated and what
// their values mean is said by whoever owns the file, with errors made by
// Entry.Errorf so that each names its line and column.
package ndb

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"harvest/fs"
)

// A Pair is one word of an entry.
type Pair struct {
	Key, Value string
	Col        int // of its first character in the line, from 1; 0 if it was not read from text
}

// Of makes a pair of a value, written as every file of the tree writes it:
// a time as RFC 3339 in UTC (the zero time as nothing), a bool as yes or no,
// the rest as fmt.Sprint does.
func Of(key string, value any) Pair {
	switch v := value.(type) {
	case time.Time:
		if v.IsZero() {
			return Pair{Key: key}
		}
		return Pair{Key: key, Value: v.UTC().Format(time.RFC3339)}
	case bool:
		if v {
			return Pair{Key: key, Value: "yes"}
		}
		return Pair{Key: key, Value: "no"}
	}
	return Pair{Key: key, Value: fmt.Sprint(value)}
}

// An Entry is the pairs of one line, in their order.
type Entry struct {
	Line  int // from 1
	Pairs []Pair
}

// First gives the pair the line begins with, which says what kind of entry
// it is. Entries that Parse gives have one.
func (e Entry) First() Pair {
	if len(e.Pairs) == 0 {
		return Pair{}
	}
	return e.Pairs[0]
}

// Pair gives the first pair of that key.
func (e Entry) Pair(key string) (Pair, bool) {
	for p := range e.All(key) {
		return p, true
	}
	return Pair{}, false
}

// Get gives the value of the first pair of that key.
func (e Entry) Get(key string) (string, bool) {
	p, ok := e.Pair(key)
	return p.Value, ok
}

// All gives the pairs of that key, in their order.
func (e Entry) All(key string) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		for _, p := range e.Pairs {
			if p.Key == key && !yield(p) {
				return
			}
		}
	}
}

// String writes the entry as Format does.
func (e Entry) String() string { return Format(e.Pairs...) }

// Format writes pairs as one line, without its newline. A pair without value
// is its key alone. Parsing the line gives the same pairs, but that a newline
// in them has become a blank: an entry is one line.
func Format(pairs ...Pair) string {
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte(' ')
		}
		key := fs.Quote(p.Key)
		if key == p.Key && strings.Contains(key, "=") {
			key = "'" + key + "'"
		}
		b.WriteString(key)
		if p.Value != "" {
			b.WriteByte('=')
			b.WriteString(fs.Quote(p.Value))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// An Error is trouble at a place of a text. Its class is iofs.ErrInvalid,
// unless it wraps an error of another.
type Error struct {
	Line, Col int // from 1
	Msg       string

	class error
}

func (e *Error) Error() string { return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg) }

// Position gives the line and the column, from 1.
func (e *Error) Position() (line, col int) { return e.Line, e.Col }

// Unwrap gives what the error wraps.
func (e *Error) Unwrap() error {
	if e.class == nil {
		return iofs.ErrInvalid
	}
	return e.class
}

// Errorf makes an *Error at the pair p of the entry, or, for a Pair that was
// not read from it (the zero Pair, say), at the start of its line.
func (e Entry) Errorf(p Pair, format string, arg ...any) error {
	err := fmt.Errorf(format, arg...)
	return &Error{e.Line, max(p.Col, 1), err.Error(), errors.Unwrap(err)}
}

// Parse reads a text. The error, an *Error, is about its first bad line.
func Parse(text string) ([]Entry, error) {
	var out []Entry
	n := 0
	for line := range strings.Lines(text) {
		n++
		e, err := ParseLine(line, n)
		if err != nil {
			return nil, err
		}
		if len(e.Pairs) > 0 {
			out = append(out, e)
		}
	}
	return out, nil
}

// ParseLine reads line number n of a text. A line with nothing but white
// space or a comment is an entry without pairs. An error is an *Error.
func ParseLine(line string, n int) (Entry, error) {
	e := Entry{Line: n}
	col, rest := 1, line
	for {
		word := strings.TrimLeft(rest, " \t\r\n")
		col += len(rest) - len(word) // all of them one byte
		if word == "" || word[0] == '#' {
			return e, nil
		}
		_, next, _, err := fs.Field(word)
		if err != nil {
			return Entry{}, e.Errorf(Pair{Col: col}, "%v", err)
		}
		word = word[:len(word)-len(next)]
		p, err := pair(word)
		if err != nil {
			return Entry{}, e.Errorf(Pair{Col: col}, "%v", err)
		}
		p.Col = col
		e.Pairs = append(e.Pairs, p)
		col, rest = col+utf8.RuneCountInString(word), next
	}
}

var errKey = errors.New("no key before '='; a pair is written key=value, without blanks")

// pair splits a word, still quoted, at its first '=' outside quotes.
func pair(word string) (Pair, error) {
	quoted, cut := false, len(word)
	for i := 0; i < len(word) && cut == len(word); i++ {
		switch {
		case word[i] == '\'':
			quoted = !quoted
		case word[i] == '=' && !quoted:
			cut = i
		}
	}
	if cut == 0 {
		return Pair{}, errKey
	}
	key, _, _, err := fs.Field(word[:cut])
	if err != nil || cut == len(word) {
		return Pair{Key: key}, err
	}
	value, _, _, err := fs.Field(word[cut+1:])
	return Pair{Key: key, Value: value}, err
}

// Duration gives the pair's value as a Go duration that is not negative.
func (e Entry) Duration(p Pair) (time.Duration, error) {
	d, err := time.ParseDuration(p.Value)
	if err != nil || d < 0 {
		return 0, e.bad(p, "a duration such as 30s or 720h")
	}
	return d, nil
}

// Int gives the pair's value as a number.
func (e Entry) Int(p Pair) (int, error) {
	n, err := strconv.Atoi(p.Value)
	if err != nil {
		return 0, e.bad(p, "a number")
	}
	return n, nil
}

// Bool gives the pair's value, yes or no; a key alone means yes.
func (e Entry) Bool(p Pair) (bool, error) {
	switch p.Value {
	case "yes", "":
		return true, nil
	case "no":
		return false, nil
	}
	return false, e.bad(p, "yes or no")
}

// Size gives the pair's value as bytes: digits, and perhaps one of K, M, G
// and T for the powers of 1024.
func (e Entry) Size(p Pair) (int64, error) {
	digits, unit := p.Value, int64(1)
	if i := len(digits) - 1; i > 0 {
		if k := strings.IndexByte("KMGT", digits[i]); k >= 0 {
			digits, unit = digits[:i], 1<<(10*(k+1))
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, e.bad(p, "a size such as 512, 64K or 2G")
	}
	return int64(n) * unit, nil
}

func (e Entry) bad(p Pair, want string) error {
	return e.Errorf(p, "%s: %s is not %s", p.Key, fs.Quote(p.Value), want)
}
