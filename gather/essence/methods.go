package essence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/essence/access"
	"harvest/gather/soif"
)

// # The table access
//
// A publisher gives objects methods by which they can be looked at:
//
//	series: Type == 'CSV' && Title ~ /series/
//		def view(o):
//			return "\n".join([line for line in o["Abstract"].split("\n") if line])
//
// A line that begins with the method's name, a colon and a condition as rules have
// it (rulesparse.go), then, behind blanks, a function in Starlark. Objects that meet
// the condition carry it as their attribute Access-Method-series, through whatever
// Broker or cache, and as/series/OID there is what it says of the object: package
// access.

// A method is one of the table.
type method struct {
	name, source string
	line, col    int // where its first line stands: lines before, and bytes
	when         condition
}

func accessTable() tableFile {
	return tableFile{name: "access", text: func() string { return accessText }, parse: func(t *Tables, text []byte) (err error) {
		t.methods, err = parseMethods(string(text))
		return err
	}}
}

const accessText = `# Ways to look at objects that travel with them: a name, a condition as in rules, and a function in Starlark.
#
#	series: Type == 'CSV'
#		def view(o):
#			return o["Title"] + ": " + o["Abstract"]
#
# is read as as/series/OID, of a Gatherer or of any Broker that has the object.
`

// maxMethods bounds the methods of a table.
const maxMethods = 1000

// parseMethods reads the table. An error is an *ndb.Error.
func parseMethods(text string) (all []method, err error) {
	n := 0
	var begun int
	var body []string
	done := func() error {
		if begun == 0 {
			return nil
		}
		m := &all[len(all)-1]
		m.line = begun
		for len(body) > 0 && strings.TrimSpace(body[0]) == "" {
			m.line, body = m.line+1, body[1:]
		}
		m.source, m.col = dedent(body)
		if len(m.source) > access.MaxSource {
			return &ndb.Error{Line: begun, Col: 1, Msg: fmt.Sprintf("%s: over %d bytes", m.name, access.MaxSource)}
		}
		if !strings.Contains(m.source, "def view(") {
			return &ndb.Error{Line: begun, Col: 1, Msg: fmt.Sprintf("%s: there is no 'def view(o):' behind blanks below it", m.name)}
		}
		return nil
	}
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		inside := line == "" || line[0] == ' ' || line[0] == '\t'
		switch {
		case inside && begun > 0:
			body = append(body, line)
		case inside && strings.TrimSpace(line) == "", !inside && line[0] == '#':
		case inside:
			return nil, &ndb.Error{Line: n, Col: 1, Msg: "it belongs to no method: NAME: CONDITION begins in the first column"}
		default:
			if err := done(); err != nil {
				return nil, err
			}
			m, err := methodLine(line, n)
			if err != nil {
				return nil, err
			}
			if all = append(all, m); len(all) > maxMethods {
				return nil, &ndb.Error{Line: n, Col: 1, Msg: fmt.Sprintf("more than %d methods", maxMethods)}
			}
			begun, body = n, nil
		}
	}
	return all, done()
}

// CheckAccess compiles the functions of the table, in the jail. An error of one is
// an *ndb.Error.
func CheckAccess(ctx context.Context, text string) error {
	all, err := parseMethods(text)
	if err != nil {
		return err
	}
	for _, m := range all {
		err := checkStar(ctx, m.name, false, access.Starlark(m.source))
		var at *ndb.Error
		if errors.As(err, &at) {
			at.Line = m.line + min(at.Line, strings.Count(m.source, "\n")) // what is missing may be noticed in what is added
			at.Col += m.col
			at.Msg = m.name + ": " + at.Msg
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// methodLine reads NAME: CONDITION.
func methodLine(line string, n int) (m method, err error) {
	r := &ruleReader{line: n, text: line}
	m.name, _, _ = strings.Cut(line, ":")
	r.at = len(m.name)
	if !access.IsName(m.name) {
		return m, r.errorf(0, "'%.40s' is no name of a method, which is letters, digits and -", m.name)
	}
	if !r.is(":") {
		return m, r.errorf(r.at, "%s where the : after the name should be", r.here())
	}
	if m.when, err = r.either(0); err == nil {
		err = r.end()
	}
	return m, err
}

// dedent takes away what all lines begin with, and tells how much that is.
func dedent(lines []string) (text string, cut int) {
	lead := ""
	for i, l := range lines {
		blanks := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if blanks == l {
			continue
		}
		if lead == "" {
			lead = blanks
		}
		for !strings.HasPrefix(lines[i], lead) {
			lead = lead[:len(lead)-1]
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, lead) + "\n")
	}
	return strings.TrimSpace(b.String()) + "\n", len(lead)
}

// addMethods gives an object the methods that are for it. One that it has of itself
// goes: what a document says is nothing to run.
func (t *Tables) addMethods(o *soif.Object) {
	access.Remove(o)
	for _, m := range t.methods {
		if m.when(o) {
			o.Set(access.Prefix+m.name, []byte(m.source))
		}
	}
}

// MethodNames are the names of the methods that objects may carry, in the table's
// order.
func (t *Tables) MethodNames() (all []string) {
	for _, m := range t.methods {
		all = append(all, m.name)
	}
	return all
}
