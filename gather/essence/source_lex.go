package essence

import (
	"bytes"
	"strings"
)

// A syntax says what of a source is comment and what is string, as tokens: the
// longest of those that begin with the same byte stands first.
type syntax struct {
	tokens []token
	at     [256][]token // tokens by first byte
}

// A token is how something that is no code begins and ends.
type token struct {
	kind  tokenKind
	open  string
	close string
}

type tokenKind byte

const (
	lineComment  tokenKind = iota // ends with the line
	wordComment                   // the same, where a word may begin
	startComment                  // the same, at the start of a line only
	blockComment                  // ends with close
	nestComment                   // the same, and nests
	startBlock                    // a block that begins and ends at the start of a line
	quoted                        // a string in one line, with \ escapes
	keyQuoted                     // the same, which may be the key of an object
	longQuoted                    // a string over lines, with \ escapes
	rawQuoted                     // a string over lines, without escapes
	docQuoted                     // a string over lines; where a statement may begin it is a comment
	charQuoted                    // a character, where there are names like 'a too
	template                      // a string with ${code}
	slashRegexp                   // /…/ where a value may begin
	heredoc                       // <<WORD, its lines until WORD
	rawCpp                        // R"x(…)x"
	rawRust                       // r#"…"#
	escape                        // the next byte means itself
)

func newSyntax(tokens ...token) *syntax {
	s := &syntax{tokens: tokens}
	for _, t := range tokens {
		s.at[t.open[0]] = append(s.at[t.open[0]], t)
	}
	return s
}

// A span is a comment, in a source.
type span struct {
	start, end int // of what it says
	line       bool
}

// A masked source is the source with blanks for what is no code, each byte and
// each line where it was.
type masked struct {
	code     []byte
	comments []span // no more than hold the bytes asked for
}

// mask parts a source into code and comments; of comments it keeps the first n
// bytes.
func (s *syntax) mask(text []byte, n int) masked {
	l := lexer{text: text, room: n}
	l.code = bytes.Clone(text)
	for l.i < len(text) {
		c := text[l.i]
		if c == '\n' && l.word != "" {
			l.hereLines()
			continue
		}
		tokens := s.at[c]
		if tokens == nil || !l.take(tokens) {
			l.i++
		}
	}
	return l.masked
}

type lexer struct {
	masked
	text []byte
	i    int
	room int    // for comments, in bytes
	word string // that ends the here-document of this line
	lost int    // here-documents without an end; past a few there are none
}

// take passes the token at i, if there is one.
func (l *lexer) take(tokens []token) bool {
	for _, t := range tokens {
		if len(t.open) > 1 && !strings.HasPrefix(string(l.text[l.i:min(len(l.text), l.i+len(t.open))]), t.open) {
			continue
		}
		if n := l.length(t); n > 0 {
			l.i += n
			return true
		}
	}
	return false
}

// length blanks the token at i, if it is t, and returns its bytes.
func (l *lexer) length(t token) int {
	rest := l.text[l.i:]
	switch t.kind {
	case wordComment:
		if l.i > 0 && !blank(l.text[l.i-1]) && strings.IndexByte(";(){}&|", l.text[l.i-1]) < 0 {
			return 0
		}
		return l.toLine(t, rest)
	case startComment:
		if !l.lineStart(false) {
			return 0
		}
		return l.toLine(t, rest)
	case lineComment:
		return l.toLine(t, rest)
	case blockComment:
		n := endOf(rest, len(t.open), t.close)
		return l.comment(len(t.open), n, len(t.close), false)
	case nestComment:
		n := endOfNested(rest, t)
		return l.comment(len(t.open), n, len(t.close), false)
	case startBlock:
		if !l.lineStart(false) {
			return 0
		}
		return l.comment(len(t.open), endOf(rest, len(t.open), "\n"+t.close), len(t.close)+1, false)
	case docQuoted:
		n := endOfQuoted(rest, len(t.open), t.close, true)
		if l.lineStart(true) {
			return l.comment(len(t.open), n, len(t.close), false)
		}
		return l.hide(n)
	}
	n := stringLength(l, t, rest)
	if t.kind == keyQuoted && l.key(rest[:n]) {
		l.code[l.i], l.code[l.i+n-1] = ' ', ' '
		return n
	}
	return l.hide(n)
}

// key reports whether a string is the key of an object, and fit for a name.
func (l *lexer) key(s []byte) bool {
	after := bytes.TrimLeft(l.text[l.i+len(s):min(len(l.text), l.i+len(s)+4)], " ")
	if len(s) < 3 || len(s) > 64 || len(after) == 0 || after[0] != ':' {
		return false
	}
	for _, c := range s[1 : len(s)-1] {
		if !wordBytes[c] && c != '-' {
			return false
		}
	}
	return true
}

// stringLength is the length of the string at i, 0 if there is none.
func stringLength(l *lexer, t token, rest []byte) int {
	switch t.kind {
	case quoted, keyQuoted:
		return endOfQuoted(rest, len(t.open), t.close, false)
	case longQuoted:
		return endOfQuoted(rest, len(t.open), t.close, true)
	case rawQuoted:
		return endOf(rest, len(t.open), t.close)
	case charQuoted:
		return charLength(rest)
	case template:
		return templateLength(rest)
	case slashRegexp:
		return regexpLength(l.text, l.i)
	case heredoc:
		l.here(rest[len(t.open):])
		return 0
	case rawCpp:
		if l.i > 0 && wordBytes[l.text[l.i-1]] {
			return 0
		}
		i := bytes.IndexByte(rest[:min(len(rest), 24)], '(')
		if i < 0 {
			return 0
		}
		return endOf(rest, i+1, ")"+string(rest[2:i])+`"`)
	case rawRust:
		if l.i > 0 && wordBytes[l.text[l.i-1]] {
			return 0
		}
		i := 1
		for i < len(rest) && i < 20 && rest[i] == '#' {
			i++
		}
		if i >= len(rest) || rest[i] != '"' {
			return 0
		}
		return endOf(rest, i+1, `"`+strings.Repeat("#", i-1))
	case escape:
		return min(2, len(rest))
	}
	return 0
}

// lineStart reports whether i is where a line begins, after blanks if indented.
func (l *lexer) lineStart(indented bool) bool {
	i := l.i
	for indented && i > 0 && (l.text[i-1] == ' ' || l.text[i-1] == '\t') {
		i--
	}
	return i == 0 || l.text[i-1] == '\n'
}

// toLine takes a comment that ends with its line.
func (l *lexer) toLine(t token, rest []byte) int {
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		n = len(rest)
	}
	return l.comment(len(t.open), n, 0, true)
}

// comment keeps and hides a comment of n bytes, of which open and end are its marks.
func (l *lexer) comment(open, n, end int, line bool) int {
	if l.room > 0 && !(l.i == 0 && bytes.HasPrefix(l.text, []byte("#!"))) {
		stop := max(open, n-end)
		l.comments = append(l.comments, span{l.i + open, l.i + stop, line})
		l.room -= stop - open + 1
	}
	return l.hide(n)
}

// hide puts blanks over n bytes of code; a string's quotes stay as one.
func (l *lexer) hide(n int) int {
	b := l.code[l.i : l.i+n]
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
	return n
}

// endOf is where a close that has no escapes ends, or the end of the text.
func endOf(text []byte, from int, close string) int {
	from = min(from, len(text))
	if i := bytes.Index(text[from:], []byte(close)); i >= 0 {
		return from + i + len(close)
	}
	return len(text)
}

// endOfNested is the same where comments nest.
func endOfNested(text []byte, t token) int {
	depth := 0
	for i := 0; i < len(text); {
		switch {
		case text[i] == t.open[0] && bytes.HasPrefix(text[i:], []byte(t.open)):
			depth++
			i += len(t.open)
		case text[i] == t.close[0] && bytes.HasPrefix(text[i:], []byte(t.close)):
			i += len(t.close)
			if depth--; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(text)
}

// endOfQuoted is where a string with escapes ends. One that should not go past
// its line ends there: what began it was no quote, or the source is broken.
func endOfQuoted(text []byte, from int, close string, lines bool) int {
	for i := min(from, len(text)); i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '\n' && !lines:
			return i
		case c == close[0] && bytes.HasPrefix(text[i:], []byte(close)):
			return i + len(close)
		}
	}
	return len(text)
}

// charLength is the length of a character in quotes, 0 for a name such as 'a.
func charLength(text []byte) int {
	if len(text) > 2 && text[1] == '\\' {
		if n := endOfQuoted(text[:min(len(text), 14)], 1, "'", false); text[n-1] == '\'' {
			return n
		}
		return 0
	}
	if i := bytes.IndexByte(text[min(len(text), 2):min(len(text), 6)], '\''); i == 0 || i > 0 && text[1] >= 0x80 {
		return i + 3
	}
	return 0
}

// templateLength is the length of a template with code in it, which may hold
// templates.
func templateLength(text []byte) int {
	var braces [16]int // open in the code of each template, -1 in its string
	level := 0
	braces[0] = -1
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			i++
		case braces[level] < 0 && c == '`':
			if level == 0 {
				return i + 1
			}
			level--
		case braces[level] < 0 && c == '$' && i+1 < len(text) && text[i+1] == '{':
			if level+1 >= len(braces) {
				return len(text)
			}
			i++
			level++
			braces[level] = 1
		case braces[level] < 0:
		case c == '`' && level+1 < len(braces):
			level++
			braces[level] = -1
		case c == '{':
			braces[level]++
		case c == '}':
			if braces[level]--; braces[level] == 0 {
				level--
			}
		}
	}
	return len(text)
}

// regexpLength is the length of the regular expression at i, 0 where a value
// stands before the slash, which then divides.
func regexpLength(text []byte, i int) int {
	j := i - 1
	for j >= 0 && (text[j] == ' ' || text[j] == '\t') {
		j--
	}
	if j >= 0 && text[j] != '\n' && strings.IndexByte("(,=:[!&|?{};~+-*%<>^", text[j]) < 0 {
		k := j
		for k >= 0 && wordBytes[text[k]] {
			k--
		}
		switch string(text[k+1 : j+1]) {
		case "return", "typeof", "case", "in", "of", "delete", "void", "and", "or", "not", "if", "unless", "when":
		default:
			return 0
		}
	}
	set := false
	for k := i + 1; k < min(len(text), i+1000) && text[k] != '\n'; k++ {
		switch c := text[k]; {
		case c == '\\':
			k++
		case c == '[':
			set = true
		case c == ']':
			set = false
		case c == '/' && !set:
			return k + 1 - i
		}
	}
	return 0
}

// here notes the word that ends a here-document, if there is one.
func (l *lexer) here(after []byte) {
	if l.word != "" || l.lost > 8 {
		return
	}
	i := 0
	for i < len(after) && i < 3 && (after[i] == '-' || after[i] == '~' || after[i] == ' ') {
		i++
	}
	quote := i < len(after) && (after[i] == '\'' || after[i] == '"' || after[i] == '\\')
	if quote {
		i++
	} else if i > 0 && after[i-1] == ' ' {
		return
	}
	start := i
	for i < len(after) && i < start+64 && wordBytes[after[i]] {
		i++
	}
	if i > start && (after[start] < '0' || after[start] > '9') {
		l.word = string(after[start:i])
	}
}

// hereLines hides the lines of a here-document, which begin after i.
func (l *lexer) hereLines() {
	word := l.word
	l.word = ""
	for at := l.i + 1; at < len(l.text); {
		line, _, _ := bytes.Cut(l.text[at:], []byte("\n"))
		if trimmed := bytes.Trim(line, " \t\r;"); string(trimmed) == word {
			l.hide(at + len(line) - l.i)
			l.i = at + len(line)
			return
		}
		at += len(line) + 1
	}
	l.lost++ // no document after all
	l.i++
}
