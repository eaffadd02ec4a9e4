package query

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind byte

const (
	end kind = iota
	word
	phrase
	wild
	regular
	fuzzy // a word; of a phrase, a phrase with mark
	star
	dots
	opening
	closing
	colon
	compare
	and
	or
	not
	near
	except
)

// A token is a piece of the text.
type token struct {
	kind  kind
	mark  bool   // regular: of text; fuzzy: the best; phrase: with errors; near: ordered
	best  bool   // phrase: with the fewest errors
	space bool   // white space is before it
	n     int    // errors or distance
	at    int    // offset
	text  string // unquoted, and without the signs that its kind says
}

// String is the token as a message shows it.
func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case phrase:
		return quote(t.text)
	case regular:
		return Regexp{t.text, t.mark}.String()
	}
	return "'" + t.text + "'"
}

// The scanner cuts text into tokens.
type scanner struct {
	text   string
	at     int
	mixed  bool // something was scanned that is no word, phrase or pattern
	leaves int  // words, phrases and patterns scanned
}

// errorAt is an error about what is at an offset.
func (s *scanner) errorAt(at int, format string, arg ...any) error {
	return &Error{1 + utf8.RuneCountInString(s.text[:at]), fmt.Sprintf(format, arg...)}
}

// runeAt decodes the character at an offset, which is not the end.
func (s *scanner) runeAt(i int) (rune, int) {
	if c := s.text[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s.text[i:])
}

func (s *scanner) blank() {
	for s.at < len(s.text) {
		r, n := s.runeAt(s.at)
		if !unicode.IsSpace(r) {
			return
		}
		s.at += n
	}
}

func (s *scanner) scan() (token, error) {
	from := s.at
	s.blank()
	t := token{at: s.at, space: s.at > from}
	if s.at == len(s.text) {
		return t, nil
	}
	switch s.text[s.at] {
	case '(':
		return s.sign(t, opening, 1), nil
	case ')':
		return s.sign(t, closing, 1), nil
	case ':':
		return s.sign(t, colon, 1), nil
	case '"':
		return s.quoted(t)
	case '/':
		return s.regular(t)
	case "“"[0]:
		if r, _ := s.runeAt(s.at); r == '“' || r == '„' || r == '”' {
			return s.curly(t)
		}
	}
	return s.bare(t)
}

// sign takes n bytes as a token that is no word.
func (s *scanner) sign(t token, k kind, n int) token {
	t.kind, t.text = k, s.text[s.at:s.at+n]
	s.at += n
	s.mixed = true
	return t
}

// curly scans a phrase in the quotes that word processors write.
func (s *scanner) curly(t token) (token, error) {
	t.kind = phrase
	s.leaves++
	begin := s.at + len("“")
	i := strings.IndexAny(s.text[begin:], "“”")
	if i < 0 {
		return t, s.errorAt(t.at, "quote is not closed")
	}
	t.text = s.text[begin : begin+i]
	s.at = begin + i + len("”")
	return s.behind(t)
}

// quoted scans a phrase; a doubled quote inside stands for one.
func (s *scanner) quoted(t token) (token, error) {
	t.kind = phrase
	s.leaves++
	doubled := false
	for i := s.at + 1; i < len(s.text); i++ {
		if s.text[i] != '"' {
			continue
		}
		if strings.HasPrefix(s.text[i+1:], `"`) {
			doubled = true
			i++
			continue
		}
		t.text = s.text[s.at+1 : i]
		if doubled {
			t.text = strings.ReplaceAll(t.text, `""`, `"`)
		}
		s.at = i + 1
		return s.behind(t)
	}
	return t, s.errorAt(t.at, "quote is not closed")
}

// behind reads what may follow a quote: ~ and a number.
func (s *scanner) behind(t token) (token, error) {
	if s.at == len(s.text) {
		return t, nil
	}
	switch s.text[s.at] {
	case '?':
		if s.overBut("?") { // of the sentence
			s.at = len(s.text)
			return t, nil
		}
		fallthrough
	case '*':
		return t, s.errorAt(s.at, "'%c' after a quote: a phrase takes none", s.text[s.at])
	case '~':
		begin := s.at + 1
		s.at = begin + digits(s.text[begin:])
		if !s.ends() {
			return t, s.errorAt(begin, "'~' takes a number of errors or nothing")
		}
		t.mark = true
		return s.errors(t, begin)
	}
	return t, nil
}

// ends tells whether no word goes on here.
func (s *scanner) ends() bool {
	if s.at == len(s.text) {
		return true
	}
	r, _ := s.runeAt(s.at)
	return delimiter(r)
}

// errors reads the digits after ~, which begin there and end here, into a token
// whose text is what is to be found with them.
func (s *scanner) errors(t token, begin int) (token, error) {
	number := s.text[begin:s.at]
	if number == "" {
		t.best = true
	} else if t.n, _ = strconv.Atoi(number); t.n > MaxErrors || len(number) > 3 {
		return t, s.errorAt(begin, "%s errors, the limit is %d", number, MaxErrors)
	}
	n, trouble := parts(t.text)
	if trouble != "" {
		return t, s.errorAt(t.at, "%s: %s", t, trouble)
	}
	if t.n >= n && !t.best {
		return t, s.errorAt(begin, "%d errors in %d characters match anything", t.n, n)
	}
	return t, nil
}

// parts counts the characters of an approximate text, and says what is
// wrong with its exact parts.
func parts(text string) (n int, trouble string) {
	open := -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 == len(text):
			return n, `'\' is before nothing`
		case c == '\\':
			i++
			n++
		case c == '<' && open >= 0, c == '>' && open < 0:
			return n, "'<' and '>' do not pair"
		case c == '<':
			open = n
		case c == '>' && open == n:
			return n, "'<>' holds nothing"
		case c == '>':
			open = -1
		case utf8.RuneStart(c):
			n++
		}
	}
	if open >= 0 {
		return n, "'<' is not closed"
	}
	return n, ""
}

func digits(text string) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// regular scans a regular expression.
func (s *scanner) regular(t token) (token, error) {
	t.kind = regular
	s.leaves++
	i, escaped := s.at+1, false
	for ; i < len(s.text) && s.text[i] != '/'; i++ {
		if s.text[i] == '\\' {
			i++
			escaped = true
		}
	}
	if i >= len(s.text) {
		return t, s.errorAt(t.at, "regular expression is not closed; quote a word that begins with '/'")
	}
	t.text = s.text[s.at+1 : i]
	if escaped {
		t.text = unescape(t.text)
	}
	s.at = i + 1
	if strings.HasPrefix(s.text[s.at:], "t") {
		s.at++
		t.mark = true
	}
	if !s.ends() {
		return t, s.errorAt(s.at, "'%s' after a regular expression; quote a path, or escape its '/'", s.rest())
	}
	if trouble := regexpTrouble(t.text, t.mark); trouble != "" {
		return t, s.errorAt(t.at, "regular expression: %s", trouble)
	}
	return t, nil
}

// rest is the rest of a run without blanks, for a message.
func (s *scanner) rest() string {
	if i := strings.IndexFunc(s.text[s.at:], delimiter); i >= 0 {
		return s.text[s.at : s.at+i]
	}
	return s.text[s.at:]
}

// unescape makes \/ the slash that it stands for.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] != '/' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func regexpTrouble(expr string, text bool) string {
	if expr == "" {
		return "it is empty"
	}
	if n := utf8.RuneCountInString(expr); n > MaxRegexp {
		return fmt.Sprintf("%d characters, the limit is %d", n, MaxRegexp)
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	if !text && holdsBlank(re) {
		return "a word holds no blank; /…/t looks in lines of text"
	}
	return ""
}

// holdsBlank tells whether an expression spells a blank.
func holdsBlank(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if r == ' ' {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if holdsBlank(sub) {
			return true
		}
	}
	return false
}

func delimiter(r rune) bool {
	switch r {
	case '(', ')', '"', ':':
		return true
	}
	return unicode.IsSpace(r)
}

// A run is what stands between delimiters, and what was seen in it.
type run struct {
	text                   string
	sign, tilde, wild, dot int // first < = >, last ~, first * ?, first .. alone; or -1
}

func (s *scanner) run() run {
	r := run{sign: -1, tilde: -1, wild: -1, dot: -1}
	i := s.at
	for i < len(s.text) {
		c, n := s.runeAt(i)
		if delimiter(c) {
			break
		}
		switch at := i - s.at; c {
		case '<', '=', '>':
			if r.sign < 0 {
				r.sign = at
			}
		case '~':
			r.tilde = at
		case '*', '?':
			if r.wild < 0 {
				r.wild = at
			}
		case '.':
			if r.dot < 0 && s.twoDots(i) {
				r.dot = at
			}
		}
		i += n
	}
	r.text = s.text[s.at:i]
	return r
}

// twoDots tells whether two dots begin here, no more and no fewer.
func (s *scanner) twoDots(i int) bool {
	return strings.HasPrefix(s.text[i:], "..") && !strings.HasPrefix(s.text[i:], "...") && (i == 0 || s.text[i-1] != '.')
}

// bare scans what begins with none of the signs that stand alone.
func (s *scanner) bare(t token) (token, error) {
	r := s.run()
	if r.fuzzy() {
		return s.fuzzy(t, r)
	}
	if r.sign >= 0 {
		if r.sign > 0 && r.text[r.sign] == '=' && r.text[r.sign-1] == '!' {
			r.sign--
		}
		if r.sign == 0 {
			return s.operator(t)
		}
		r.cut(r.sign)
	}
	if r.dot == 0 {
		return s.sign(t, dots, 2), nil
	}
	if r.dot > 0 {
		r.cut(r.dot)
	}
	if op, ok, err := s.named(t, r.text); ok || err != nil {
		return op, err
	}
	if r.tilde > 0 {
		return t, s.errorAt(s.at+r.tilde, "'~' takes a number of errors or nothing; quote a word that holds it")
	}
	return s.plain(t, r)
}

// cut leaves only what is before i.
func (r *run) cut(i int) {
	r.text = r.text[:i]
	if r.dot >= i {
		r.dot = -1
	}
	if r.wild >= i {
		r.wild = -1
	}
	r.tilde = strings.LastIndexByte(r.text, '~')
}

// fuzzy tells whether the run is a word with errors: it ends in ~ and digits,
// and signs of comparison in it pair as those of exact parts.
func (r *run) fuzzy() bool {
	if r.tilde <= 0 || digits(r.text[r.tilde+1:]) < len(r.text)-r.tilde-1 {
		return false
	}
	if r.sign < 0 {
		return true
	}
	_, trouble := parts(r.text[:r.tilde])
	return trouble == "" && !strings.Contains(r.text, "=")
}

func (s *scanner) fuzzy(t token, r run) (token, error) {
	t.kind, t.text = fuzzy, r.text[:r.tilde]
	s.leaves++
	s.at += len(r.text)
	if r.wild >= 0 {
		return t, s.errorAt(t.at, "'%s': a pattern takes no errors", r.text)
	}
	if err := s.oneWord(t); err != nil {
		return t, err
	}
	return s.errors(t, t.at+r.tilde+1)
}

// operator scans a sign of comparison.
func (s *scanner) operator(t token) (token, error) {
	n := 1
	if s.text[s.at] == '!' || s.text[s.at] != '=' && strings.HasPrefix(s.text[s.at+1:], "=") {
		n = 2
	}
	return s.sign(t, compare, n), nil
}

// named scans an operator that is a word.
func (s *scanner) named(t token, text string) (token, bool, error) {
	name, rest := text, ""
	if len(text) > 3 {
		if i := strings.IndexByte(text[:min(len(text), 5)], '/'); i > 0 {
			name, rest = text[:i], text[i:]
		}
	}
	op, usual := operator(name)
	if op == end || rest != "" && (usual == 0 || digits(rest[1:]) < len(rest)-1) {
		return t, false, nil
	}
	t.n, t.mark = usual, usual == 1
	t = s.sign(t, op, len(text))
	if rest != "" {
		t.n, _ = strconv.Atoi(rest[1:])
		if t.n < 1 || t.n > MaxDistance {
			return t, false, s.errorAt(t.at+len(name)+1, "'%s' takes a number of words from 1 to %d", text, MaxDistance)
		}
	}
	return t, true, nil
}

// operator is the operator that the word is, and its usual distance.
func operator(text string) (op kind, distance int) {
	switch len(text) {
	case 2:
		if strings.EqualFold(text, "or") {
			return or, 0
		}
	case 3:
		switch {
		case strings.EqualFold(text, "and"):
			return and, 0
		case strings.EqualFold(text, "not"):
			return not, 0
		case strings.EqualFold(text, "adj"):
			return near, 1
		}
	case 4:
		if strings.EqualFold(text, "near") {
			return near, 10
		}
	case 6:
		if strings.EqualFold(text, "except") {
			return except, 0
		}
	}
	return end, 0
}

// plain scans a word, or one with wildcards.
func (s *scanner) plain(t token, r run) (token, error) {
	t.kind, t.text = word, r.text
	s.at += len(r.text)
	if r.text == "*" {
		t.kind = star
		s.leaves++
		return t, nil
	}
	if r.wild >= 0 && s.question() {
		t.text = strings.TrimRight(t.text, "?")
		if t.text == "" {
			return s.scan() // the end
		}
	}
	s.leaves++
	if r.wild >= 0 && r.wild < len(t.text) {
		t.kind = wild
		return t, s.oneWord(t)
	}
	return t, nil
}

// question tells whether a query of words alone, two or more, ends here: its
// last sign may be a question mark.
func (s *scanner) question() bool {
	if s.mixed || s.leaves == 0 || s.text[s.at-1] != '?' {
		return false
	}
	return s.overBut("?")
}

// overBut tells whether nothing is to come but white space and the sign.
func (s *scanner) overBut(sign string) bool {
	return strings.TrimSpace(strings.ReplaceAll(s.text[s.at:], sign, "")) == ""
}

// oneWord refuses a pattern that no word can match: one with a sign that
// stands in no word, or at the end of none.
func (s *scanner) oneWord(t token) error {
	inside := false // the character before can be followed by a joiner
	joiner := -1
	for i, r := range t.text {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), unicode.Is(unicode.Pc, r), r == '*', r == '?':
			inside, joiner = true, -1
		case unicode.Is(unicode.Cf, r), t.kind == fuzzy && (r == '<' || r == '>'):
		case inside && strings.ContainsRune(joiners, r):
			inside, joiner = false, i
		default:
			return s.errorAt(t.at+i, "'%c' stands in no word, and a pattern is one word", r)
		}
	}
	if joiner >= 0 {
		return s.errorAt(t.at+joiner, "'%c' ends no word, and a pattern is one word", t.text[joiner])
	}
	return nil
}

// joiners stand between the letters or digits of one word: UAX 29's MidLetter,
// MidNum and MidNumLet.
const joiners = ".',;\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\u2044\ufe13\ufe52\ufe55\uff07\uff0e\uff1a" +
	"\u037e\u0589\u060c\u060d\u066c\u07f8\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"
