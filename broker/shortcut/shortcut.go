// Package shortcut answers queries of a known form beside what the index finds: the
// weather of a place, a street on a map, a word's meaning (row W-35; the shortcuts of
// Excite, in M. Van Kleek's and B. Pinkerton's time). Each kind of query has a module,
// which says by regular expressions what it is for. The expressions of all modules
// are matched in one pass over a query, so that a module costs nothing for queries
// that are not its own; those that are asked answer at once, side by side, within
// Limit, or not at all.
//
// A module is a template or a program. A template is lines:
//
//	# a comment
//	match (?i)^weather (?:in )?(?P<place>\w+)$
//	score 80
//	Title: Weather of ${place}
//	URL-References: https://weather.example/${place}
//
// Its answer is the attributes, with what the expression's groups have matched put
// in; $$ is a dollar sign. A program begins with #! and has its match lines behind
// the comment signs of its first lines:
//
//	#!/bin/sh
//	# match: ^[0-9 +*/()-]+$
//	while read -r q; do echo "Title: $q = $(( $q ))"; echo; done
//
// It is started when a query is its own first, in a jail, and is kept: it reads
// queries, a line each, and answers with lines 'Attribute: value' and an empty one,
// which alone is "none". Score, from 0 to 100, is how sure it is, 50 if it does not
// say. What it writes past its time is lost with it, and it is started anew.
package shortcut

import (
	"bytes"
	"fmt"
	iofs "io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"harvest/gather/soif"
)

// Bounds of modules and answers.
const (
	Limit     = 50 * time.Millisecond // for an answer
	MaxText   = 256 << 10             // bytes of a module
	MaxAnswer = 64 << 10              // bytes of an answer
	MaxQuery  = 4 << 10               // bytes of a query; longer ones have no shortcut
	headLines = 64                    // of a program, in which its matches stand
	maxMatch  = 32                    // expressions of a module
)

// A module is a text that was read.
type module struct {
	name    string
	text    string
	match   []string
	exprs   []*regexp.Regexp
	score   int
	attrs   []soif.Attr // of a template: values with ${…}
	program bool
}

// IsProgram reports whether a module is a program.
func IsProgram(text string) bool { return strings.HasPrefix(text, "#!") }

// An Error tells what a module is no module for.
type Error struct {
	Line    int
	Trouble string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Trouble) }

// Unwrap gives the class.
func (e *Error) Unwrap() error { return iofs.ErrInvalid }

func errorf(line int, format string, arg ...any) error {
	return &Error{line, fmt.Sprintf(format, arg...)}
}

// parse reads a module. An error is an *Error.
func parse(name, text string) (*module, error) {
	m := &module{name: name, text: text, score: 50, program: IsProgram(text)}
	if len(text) > MaxText {
		return nil, errorf(1, "a module of over %d bytes", MaxText)
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if m.program && n > headLines {
			break
		}
		line = strings.TrimRight(line, "\r\n")
		var err error
		if m.program {
			err = m.programLine(line, n)
		} else {
			err = m.templateLine(line, n)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(m.match) == 0 && m.program:
		return nil, errorf(1, "none of the first %d lines is '# match: EXPRESSION', which says what queries it is for", headLines)
	case len(m.match) == 0:
		return nil, errorf(1, "there is no line 'match EXPRESSION', which says what queries it is for")
	case !m.program && len(m.attrs) == 0:
		return nil, errorf(n, "there is no line 'Attribute: value', so it answers nothing")
	}
	return m, nil
}

// programLine looks for a match behind signs of a comment.
func (m *module) programLine(line string, n int) error {
	comment := strings.TrimLeft(line, " \t")
	bare := strings.TrimLeft(comment, "#/;%-*\" \t")
	expr, ok := strings.CutPrefix(bare, "match:")
	if !ok || len(bare) == len(comment) {
		return nil
	}
	return m.addMatch(strings.TrimSpace(expr), n)
}

func (m *module) templateLine(line string, n int) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.TrimSpace(line) == "" || line[0] == '#':
		return nil
	case word == "match":
		return m.addMatch(strings.TrimSpace(rest), n)
	case word == "score":
		score, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil || score < 0 || score > 100 {
			return errorf(n, "score '%.40s' is not a number from 0 to 100", rest)
		}
		m.score = score
		return nil
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || soif.Name(name) != name || len(name) > 64 {
		return errorf(n, "'%.60s' is none of: match EXPRESSION, score N, Attribute: value", line)
	}
	m.attrs = append(m.attrs, soif.Attr{Name: name, Value: []byte(strings.TrimSpace(value))})
	return nil
}

func (m *module) addMatch(expr string, n int) error {
	re, err := regexp.Compile(expr)
	switch {
	case expr == "":
		return errorf(n, "match without an expression")
	case err != nil:
		return errorf(n, "match: %v", err)
	case re.MatchString(""):
		return errorf(n, "match %s fits the empty query, and so any", expr)
	case len(m.match) == maxMatch:
		return errorf(n, "over %d expressions", maxMatch)
	}
	m.match = append(m.match, expr)
	m.exprs = append(m.exprs, re)
	return nil
}

// fits reports whether a query is the module's, by the first expression that says so.
func (m *module) fits(q string) (*regexp.Regexp, []int) {
	for _, re := range m.exprs {
		if at := re.FindStringSubmatchIndex(q); at != nil {
			return re, at
		}
	}
	return nil, nil
}

// fill is a template's answer.
func (m *module) fill(q string) (Answer, bool) {
	re, at := m.fits(q)
	if re == nil {
		return Answer{}, false
	}
	a := Answer{Name: m.name, Score: m.score}
	for _, t := range m.attrs {
		value := re.ExpandString(nil, string(t.Value), q, at)
		a.Attrs = append(a.Attrs, soif.Attr{Name: t.Name, Value: clean(value)})
	}
	return a, true
}

// An Answer is what a module says to a query.
type Answer struct {
	Name  string // of the module
	Score int    // 0 to 100
	Attrs []soif.Attr
	Took  time.Duration
	Err   error // why there is none; Attrs are nil
}

// Text is an answer as lines 'Attribute: value'.
func (a *Answer) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Score: %d\n", a.Score)
	for _, t := range a.Attrs {
		fmt.Fprintf(&b, "%s: %s\n", t.Name, t.Value)
	}
	return b.String()
}

// parseAnswer reads the lines of a program's answer.
func parseAnswer(name string, lines [][]byte) (Answer, error) {
	a := Answer{Name: name, Score: 50}
	for _, line := range lines {
		attr, value, ok := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case !ok || soif.Name(string(attr)) != string(attr) || len(attr) > 64:
			return a, fmt.Errorf("it answered '%.60s', which is not 'Attribute: value'", clean(line))
		case bytes.EqualFold(attr, []byte("Score")):
			score, err := strconv.Atoi(string(value))
			if err != nil || score < 0 || score > 100 {
				return a, fmt.Errorf("its score '%.20s' is not a number from 0 to 100", clean(value))
			}
			a.Score = score
		default:
			a.Attrs = append(a.Attrs, soif.Attr{Name: string(attr), Value: clean(value)})
		}
	}
	return a, nil
}

// clean is a value on one line, in UTF-8.
func clean(b []byte) []byte {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, b)
}
