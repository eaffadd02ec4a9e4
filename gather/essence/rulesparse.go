package essence

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// # The table rules
//
// As the first Harvest had it: a condition begins its line, and what is done to
// the objects that meet it stands below, behind blanks.
//
//	URL ~ /users/ && Type != 'Image'
//		time-to-live = "86400"
//		keywords | tr A-Z a-z
//		address,city,zip ! /usr/local/lib/clean-address
//	Type == 'SOIFStream'
//		delete()
//
// A condition compares an attribute, or URL, with a text (==, !=) or a regular
// expression in Go's syntax (~, !~; an i behind it is for any case). Conditions are
// joined by && and ||, of which && holds tighter, put in parentheses, and turned
// around by ! before them. An attribute of several values is equal to a text
// when one of them is; one that is not there is equal to none.
//
//	ATTRIBUTE = "TEXT"       set it; "" takes it away
//	ATTRIBUTE | COMMAND      the value is what the command makes of it
//	ATTRIBUTE,… ! COMMAND    the same for several, in SOIF
//	delete()                 the object is not kept
//
// Every rule that is met is applied, in the order of the table, to what those
// before have made. In quotes, \ stands before the quote and itself. A line that
// ends in \ goes on in the next. # begins a comment line.

func rulesTable() tableFile {
	return tableFile{name: "rules", text: func() string { return rulesText }, parse: func(t *Tables, text []byte) (err error) {
		t.rules, err = parseRules(string(text))
		return err
	}}
}

const rulesText = `# What is done to summaries once they are made. A condition begins its line:
#
#	URL ~ /users/ && Type != 'Image'
#		time-to-live = "86400"
#		keywords | tr A-Z a-z
#		address,city,zip ! /usr/local/lib/clean-address
#	Type == 'SOIFStream'
#		delete()
`

// maxRules bounds the rules of a table, and the instructions of each.
const maxRules = 10_000

// gatherers are attributes that a Gatherer writes, and nobody else.
var gatherers = []string{"URL", "Update-Time", "Gatherer-Name", "Gatherer-Host", "Gatherer-Version"}

// A ruleReader reads the table.
type ruleReader struct {
	rules []postRule
	line  int    // of what is read, its first
	text  string // of it, continued lines joined by a newline
	at    int    // in text
}

// parseRules reads the table. An error is an *ndb.Error.
func parseRules(text string) (*postRules, error) {
	r := new(ruleReader)
	n := 0
	var whole strings.Builder
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if whole.Len() == 0 {
			r.line = n
			if s := strings.TrimLeft(line, " \t"); s == "" || s[0] == '#' {
				continue
			}
		}
		whole.WriteString(strings.TrimSuffix(line, `\`))
		if strings.HasSuffix(line, `\`) {
			whole.WriteByte('\n')
			continue
		}
		if err := r.take(whole.String()); err != nil {
			return nil, err
		}
		whole.Reset()
	}
	r.line = n
	if whole.Len() > 0 {
		return nil, r.errorf(0, `the text ends where a line was to go on, after \`)
	}
	if err := r.done(); err != nil || len(r.rules) == 0 {
		return nil, err
	}
	return &postRules{r.rules}, nil
}

// errorf makes an error at an offset of what is read.
func (r *ruleReader) errorf(at int, format string, arg ...any) error {
	before := r.text[:min(at, len(r.text))]
	line := r.line + strings.Count(before, "\n")
	before = before[strings.LastIndexByte(before, '\n')+1:]
	return &ndb.Error{Line: line, Col: utf8.RuneCountInString(before) + 1, Msg: fmt.Sprintf(format, arg...)}
}

// done checks the rule that ends.
func (r *ruleReader) done() error {
	if n := len(r.rules); n > 0 && len(r.rules[n-1].do) == 0 {
		return &ndb.Error{Line: r.rules[n-1].line, Col: 1, Msg: "nothing is to be done: instructions stand below a condition, behind a tab"}
	}
	return nil
}

// take reads one line.
func (r *ruleReader) take(text string) error {
	r.text, r.at = text, 0
	if text[0] != ' ' && text[0] != '\t' {
		if err := r.done(); err != nil {
			return err
		}
		if len(r.rules) == maxRules {
			return r.errorf(0, "more than %d rules", maxRules)
		}
		when, err := r.either(0)
		if err == nil {
			err = r.end()
		}
		r.rules = append(r.rules, postRule{line: r.line, text: oneLine(text), when: when})
		return err
	}
	r.blank()
	if len(r.rules) == 0 {
		return r.errorf(r.at, "an instruction before any condition, which begins in the first column")
	}
	last := &r.rules[len(r.rules)-1]
	if len(last.do) == maxRules {
		return r.errorf(r.at, "more than %d instructions", maxRules)
	}
	a, err := r.instruction()
	last.do = append(last.do, a)
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// blank passes over blanks.
func (r *ruleReader) blank() {
	for r.at < len(r.text) && strings.IndexByte(" \t\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// is passes over a token, if it is there.
func (r *ruleReader) is(token string) bool {
	r.blank()
	ok := strings.HasPrefix(r.text[r.at:], token)
	if ok {
		r.at += len(token)
	}
	return ok
}

// end wants the end of the line, perhaps behind a ; or :.
func (r *ruleReader) end() error {
	if !r.is(";") {
		r.is(":")
	}
	r.blank()
	if r.at < len(r.text) {
		return r.errorf(r.at, "%s where the line was to end", r.here())
	}
	return nil
}

// here is what stands at r.at, for errors.
func (r *ruleReader) here() string {
	if r.at == len(r.text) {
		return "the end of the line"
	}
	rest := []rune(r.text[r.at:min(len(r.text), r.at+80)])
	return "'" + strings.TrimSpace(string(rest[:min(len(rest), 20)])) + "'"
}

// maxParentheses bounds how deep conditions stand in parentheses.
const maxParentheses = 50

// either reads conditions joined by ||.
func (r *ruleReader) either(depth int) (condition, error) {
	left, err := r.both(depth)
	for err == nil && r.is("||") {
		var right condition
		was := left
		right, err = r.both(depth)
		left = func(o *soif.Object) bool { return was(o) || right(o) }
	}
	return left, err
}

// both reads conditions joined by &&.
func (r *ruleReader) both(depth int) (condition, error) {
	left, err := r.single(depth)
	for err == nil && r.is("&&") {
		var right condition
		was := left
		right, err = r.single(depth)
		left = func(o *soif.Object) bool { return was(o) && right(o) }
	}
	return left, err
}

func (r *ruleReader) single(depth int) (condition, error) {
	if depth > maxParentheses {
		return nil, r.errorf(r.at, "more than %d parentheses in each other", maxParentheses)
	}
	if r.is("!") {
		c, err := r.single(depth + 1)
		return func(o *soif.Object) bool { return !c(o) }, err
	}
	if r.is("(") {
		at := r.at - 1
		c, err := r.either(depth + 1)
		if err == nil && !r.is(")") {
			err = r.errorf(at, "( is not closed: there is %s", r.here())
		}
		return c, err
	}
	name, err := r.name()
	if err != nil {
		return nil, err
	}
	r.blank()
	for _, op := range []string{"==", "!=", "!~", "~"} {
		if !r.is(op) {
			continue
		}
		test, err := r.operand(op)
		if op[0] == '!' {
			return func(o *soif.Object) bool { return !anyValue(o, name, test) }, err
		}
		return func(o *soif.Object) bool { return anyValue(o, name, test) }, err
	}
	return nil, r.errorf(r.at, "%s where one of == != ~ !~ should be", r.here())
}

// anyValue reports whether a value of an attribute, or the URL, passes a test.
func anyValue(o *soif.Object, name string, test func([]byte) bool) bool {
	if strings.EqualFold(name, "URL") {
		return test([]byte(o.URL))
	}
	for v := range o.Values(name) {
		if test(v) {
			return true
		}
	}
	return false
}

// operand reads what an attribute is compared with.
func (r *ruleReader) operand(op string) (func([]byte) bool, error) {
	r.blank()
	if op == "==" || op == "!=" {
		text, err := r.quoted()
		return func(v []byte) bool { return string(v) == text }, err
	}
	at := r.at
	if !r.is("/") {
		return nil, r.errorf(r.at, "%s where a /regular expression/ should be", r.here())
	}
	text, err := r.until('/', at)
	if err != nil {
		return nil, err
	}
	if r.at < len(r.text) && r.text[r.at] == 'i' {
		r.at++
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, r.errorf(at, "%v", err)
	}
	return re.Match, nil
}

// quoted reads a text in quotes of either kind.
func (r *ruleReader) quoted() (string, error) {
	if r.at < len(r.text) && (r.text[r.at] == '\'' || r.text[r.at] == '"') {
		r.at++
		return r.until(r.text[r.at-1], r.at-1)
	}
	return "", r.errorf(r.at, "%s where a 'text' in quotes should be", r.here())
}

// until reads up to a mark. \ takes what follows as it is, if it is the mark, or,
// but in a regular expression, another \.
func (r *ruleReader) until(mark byte, at int) (string, error) {
	var b strings.Builder
	for ; r.at < len(r.text); r.at++ {
		c := r.text[r.at]
		if c == mark {
			r.at++
			return b.String(), nil
		}
		if c == '\\' && r.at+1 < len(r.text) {
			switch next := r.text[r.at+1]; {
			case next == mark || next == '\\' && mark != '/':
				r.at++
				c = next
			case next == '\\': // stays two, and the second is no escape
				b.WriteByte(c)
				r.at++
			}
		}
		b.WriteByte(c)
	}
	return "", r.errorf(at, "%c is not closed", mark)
}

// name reads the name of an attribute.
func (r *ruleReader) name() (string, error) {
	r.blank()
	at := r.at
	for r.at < len(r.text) && strings.IndexByte(" \t\n()!=~&|'\"/,;{}@", r.text[r.at]) < 0 {
		r.at++
	}
	name := r.text[at:r.at]
	if name == "" || soif.Name(name) != name {
		r.at = at
		return "", r.errorf(at, "%s where the name of an attribute should be", r.here())
	}
	return name, nil
}

// instruction reads what is to be done.
func (r *ruleReader) instruction() (a action, err error) {
	a = action{line: r.line, text: oneLine(r.text)}
	start := r.at
	if r.is("delete") && r.is("(") {
		if !r.is(")") {
			return a, r.errorf(r.at, "%s where delete() should end", r.here())
		}
		return a, r.end()
	}
	r.at = start
	if a.names, err = r.targets(); err != nil {
		return a, err
	}
	switch {
	case r.is("="):
		return a, r.value(&a)
	case r.is("|"):
		if len(a.names) > 1 {
			return a, r.errorf(start, "a | filters one attribute; several go through ATTRIBUTE,ATTRIBUTE ! COMMAND as SOIF")
		}
	case r.is("!"):
		a.asSOIF = true
	default:
		return a, r.errorf(r.at, "%s where one of = | ! should be", r.here())
	}
	r.blank()
	if a.shell = r.text[r.at:]; a.shell == "" {
		return a, r.errorf(r.at, "a command is missing")
	}
	if strings.IndexByte(a.shell, 0) >= 0 {
		return a, r.errorf(r.at, "there is a NUL in the command")
	}
	return a, nil
}

// targets reads the attributes that are to be changed.
func (r *ruleReader) targets() (names []string, err error) {
	for {
		r.blank()
		at := r.at
		name, err := r.name()
		if err != nil {
			return nil, err
		}
		if isGatherers(name) {
			return nil, r.errorf(at, "%s is the Gatherer's to set", name)
		}
		if names = append(names, name); !r.is(",") {
			return names, nil
		}
	}
}

func isGatherers(name string) bool {
	for _, own := range gatherers {
		if strings.EqualFold(name, own) {
			return true
		}
	}
	return false
}

// value reads what an attribute is set to.
func (r *ruleReader) value(a *action) error {
	r.blank()
	at := r.at
	text, err := r.quoted()
	if err != nil {
		return err
	}
	if len(a.names) > 1 {
		return r.errorf(at, "one attribute is set at a time")
	}
	if err := checkLife(a.names[0], []byte(text)); err != nil && text != "" {
		return r.errorf(at, "%v", err)
	}
	a.value = &text
	return r.end()
}

// RunsPrograms reports whether what a user has set has programs run, in the jail:
// filters of rules. Who may not have programs run may not set such Tables.
func (t *Tables) RunsPrograms() bool {
	if t.rules == nil {
		return false
	}
	for _, r := range t.rules.rules {
		for _, a := range r.do {
			if a.shell != "" {
				return true
			}
		}
	}
	return false
}
