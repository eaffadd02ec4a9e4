package broker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"harvest/broker/provider"
	"harvest/fs/ndb"
	"harvest/index/query"
)

// A Collection.conf of the first Harvest is taken as it is, alone or among
// entries:
//
//	# host               port  type  filter
//	harvest.example.edu  8510  3     --
//	harvest.example.edu  8501  7     --QUERY (Author : Danzig) --FLAGS #index error 1
//
// Each line becomes a source= entry in the same line of the text, which is then
// read as any config is: types 0 to 3 are Gatherers, by their export protocol,
// 4 to 7 Brokers, whose tree is expected at that host and port. What has no
// meaning any more is told in status.

// imported is what became of a text with such lines.
type imported struct {
	text    string       // entries
	old     map[int]bool // lines that were of a Collection.conf
	ignored []ignored
}

// ignored is something in a line that has no effect.
type ignored struct {
	line      int
	name, why string
}

// An oldSource is a line of a Collection.conf.
type oldSource struct {
	line  int
	path  string
	kind  int
	query string // of 6 and 7, as queries are written here
}

// isOldSource reports whether a line is one of a Collection.conf: no entry
// has its second and third word be numbers.
func isOldSource(line string) bool {
	f := strings.Fields(line)
	if len(f) < 3 || strings.ContainsAny(f[0], "=#'") {
		return false
	}
	_, err := strconv.ParseUint(f[1], 10, 32)
	_, kind := strconv.ParseUint(f[2], 10, 32)
	return err == nil && kind == nil
}

// importSources translates the lines of a Collection.conf in a text. An error
// is an *ndb.Error.
func importSources(text string) (imported, error) {
	m := imported{old: make(map[int]bool)}
	var lines []string
	var sources []oldSource
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		n := len(lines)
		if !isOldSource(line) {
			continue
		}
		m.old[n] = true
		s, err := m.source(line, n)
		if err != nil {
			return m, err
		}
		lines[n-1] = ""
		if s.merge(sources, &m) {
			sources = append(sources, s)
		}
	}
	if len(m.old) == 0 {
		m.text = text
		return m, nil
	}
	for _, s := range sources {
		lines[s.line-1] = s.entry()
	}
	m.text = strings.Join(lines, "\n") + "\n"
	return m, nil
}

// merge has one source for one host and port: one that is there already takes
// over what the new one asks for. It reports whether s is new.
func (s *oldSource) merge(others []oldSource, m *imported) bool {
	i := slices.IndexFunc(others, func(o oldSource) bool { return o.path == s.path })
	if i < 0 {
		return true
	}
	o := &others[i]
	switch {
	case o.query == s.query:
		m.ignore(s.line, s.path, "line %d has it already", o.line)
	case o.query == "":
		m.ignore(s.line, s.path, "line %d collects all of it", o.line)
	default:
		m.ignore(s.line, s.path, "line %d collects this too", o.line)
		if o.query != "" && s.query != "" {
			o.query = "(" + o.query + ") or (" + s.query + ")"
		} else {
			o.query = ""
		}
	}
	return false
}

// original moves an error about a line that was translated to its begin.
func (m *imported) original(err error) error {
	var e *ndb.Error
	if errors.As(err, &e) && m.old[e.Line] {
		e.Col = 1
	}
	return err
}

func (m *imported) ignore(line int, name, format string, arg ...any) {
	m.ignored = append(m.ignored, ignored{line, name, fmt.Sprintf(format, arg...)})
}

// source reads a line.
func (m *imported) source(line string, n int) (oldSource, error) {
	f := strings.Fields(line)
	bad := func(format string, arg ...any) (oldSource, error) {
		return oldSource{}, ndb.Entry{Line: n}.Errorf(ndb.Pair{}, format, arg...)
	}
	s := oldSource{line: n}
	if port, err := strconv.ParseUint(f[1], 10, 16); err != nil || port == 0 {
		return bad("port %.20s: not a number from 1 to 65535", f[1])
	}
	var err error
	if s.kind, err = strconv.Atoi(f[2]); err != nil || s.kind > 7 {
		return bad("type %.20s: not one of 0 to 7", f[2])
	}
	if strings.ContainsAny(f[0], "!/") {
		return bad("'%.60s' is not the name of a host", f[0])
	}
	s.path = provider.Scheme + f[0] + "!" + f[1]
	if s.kind > 3 {
		s.path = "tcp!" + f[0] + "!" + f[1] + "/broker"
	}
	asked, flags, err := oldFilter(line)
	switch {
	case err != nil:
		return bad("%v", err)
	case s.kind < 6:
		if asked != "" || flags != "" {
			m.ignore(n, "filter", "it counts for types 6 and 7, this is type %d", s.kind)
		}
		return s, nil
	case asked == "":
		return bad("type %d: --QUERY is missing", s.kind)
	}
	errs, err := m.flags(n, flags)
	if err != nil {
		return bad("%v", err)
	}
	if s.query, err = oldQuery(asked, errs); err != nil {
		return bad("--QUERY: %v", err)
	}
	return s, nil
}

// entry is the line as an entry. Types with an even number read all each time.
func (s *oldSource) entry() string {
	pairs := []ndb.Pair{ndb.Of("source", ""), ndb.Of("path", s.path)}
	if s.kind < 4 {
		pairs = append(pairs, ndb.Of("compressed", yesOrNo(s.kind > 1)))
	}
	if s.kind%2 == 0 {
		pairs = append(pairs, ndb.Of("full", "yes"))
	}
	if s.query != "" {
		pairs = append(pairs, ndb.Of("query", s.query))
	}
	return ndb.Format(pairs...)
}

// oldFilter is the fourth field: "--" or nothing, or --QUERY and --FLAGS with
// what follows each.
func oldFilter(line string) (asked, flags string, err error) {
	rest := strings.TrimSpace(line)
	for range 3 { // host, port and type
		i := strings.IndexAny(rest, " \t")
		if i < 0 {
			return "", "", nil
		}
		rest = strings.TrimLeft(rest[i:], " \t")
	}
	if rest == "" || rest == "--" {
		return "", "", nil
	}
	parts := map[string]*string{"--QUERY": &asked, "--FLAGS": &flags}
	into := (*string)(nil)
	for w := range strings.FieldsSeq(rest) {
		switch next := parts[w]; {
		case next != nil:
			into = next
		case into == nil:
			return "", "", fmt.Errorf("filter '%.60s' is neither -- nor --QUERY …", rest)
		case *into == "":
			*into = w
		default:
			*into += " " + w
		}
	}
	return asked, flags, nil
}

// flags reads the flags that went to the index. Errors in spelling count; the
// others were about how answers were shown, or are as they say anyway.
func (m *imported) flags(line int, text string) (errs int, err error) {
	for f := range strings.SplitSeq(text, "#") {
		w := strings.Fields(f)
		if len(w) == 0 {
			continue
		}
		name := "#" + strings.Join(w, " ")
		if w[0] == "index" {
			w = w[1:]
		}
		switch is := strings.ToLower(strings.Join(w, " ")); {
		case len(w) == 2 && strings.EqualFold(w[0], "error"):
			if errs, err = strconv.Atoi(w[1]); err != nil || errs < 0 || errs > maxErrors {
				return 0, fmt.Errorf("--FLAGS: %s is not a number from 0 to %d", name, maxErrors)
			}
		case is == "case insensitive", is == "matchword":
		case is == "case sensitive":
			m.ignore(line, name, "what is collected by a query is found in any case")
		case len(w) == 2 && strings.EqualFold(w[0], "maxresult"):
			m.ignore(line, name, "all that match are collected")
		case is == "desc", is == "opaque":
			m.ignore(line, name, "it is about how answers are shown")
		default:
			m.ignore(line, name, "it is not known")
		}
	}
	return errs, nil
}

// oldOperators are words of the original between an attribute and a value.
var oldOperators = map[string]string{"exact": "=", "regexp": ":", "less-than": "<", "greater-than": ">"}

// oldQuery is a query of the original as it is written here, with so many
// errors in plain words.
func oldQuery(text string, errs int) (string, error) {
	var out []string
	value, pattern := false, false // the next is one, of an attribute; and a regular expression
	for _, w := range oldTokens(text) {
		bare := strings.ToLower(strings.TrimPrefix(w, "#"))
		switch op, known := oldOperators[bare], oldOperators[bare] != ""; {
		case known && !value && len(out) > 0:
			out, value, pattern = append(out, op), true, bare == "regexp"
			continue
		case w == ":":
			out, value = append(out, w), true
			continue
		case w == "(" || w == ")":
			out = append(out, w)
			continue
		case !value && w[0] == '#' && bare == "allb":
			w = "*"
		case !value && (bare == "and" || bare == "or" || bare == "not" || bare == "except"):
			w = bare
		case w[0] == '"':
			if pattern {
				w = asRegexp(strings.Trim(w, `"`))
			}
		case pattern || isPattern(w):
			w = asRegexp(w)
		case strings.Contains(w, ":"):
			w = `"` + w + `"`
		}
		out, value, pattern = append(out, w), false, false
	}
	q, err := query.Parse(strings.Join(out, " "))
	if err != nil {
		var at *query.Error // its column is of a text that nobody wrote
		if errors.As(err, &at) {
			return "", fmt.Errorf("%s, in %.200s", at.Msg, strings.Join(out, " "))
		}
		return "", err
	}
	if q, err = standing(q); err != nil || errs == 0 {
		return q.String(), err
	}
	return query.Map(q, func(n query.Node, _ string) query.Node {
		if w, ok := n.(query.Word); ok && oneWord(w.Text) && errs < len([]rune(w.Text)) {
			return query.Fuzzy{Text: w.Text, Errors: errs}
		}
		return nil
	}).String(), nil
}

// isPattern reports whether a word is meant as a regular expression.
func isPattern(w string) bool {
	return strings.Contains(w, ".*") || w[0] == '^' || strings.HasSuffix(w, "$") || strings.ContainsAny(w, "[|")
}

func asRegexp(w string) string { return query.Regexp{Expr: w, Text: true}.String() }

// oldTokens are the words of a query: in quotes, parentheses, and the colon
// after the name of an attribute.
func oldTokens(text string) (out []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " \t") {
		n := 1
		switch text[0] {
		case '(', ')', ':':
		case '"':
			if end := strings.IndexByte(text[1:], '"'); end >= 0 {
				n = end + 2
			} else {
				n = len(text)
			}
		default:
			n = strings.IndexAny(text+" ", " \t()\"")
			named := len(out) == 0 || out[len(out)-1] != ":"
			if i := strings.IndexByte(text[:n], ':'); i > 0 && named && isAttrName(text[:i]) {
				n = i
			}
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func isAttrName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// ignoredLines are lines of status about what has no effect. Called with the
// Broker's mu held.
func (c *config) ignoredLines() (lines [][]ndb.Pair) {
	for _, i := range c.imported.ignored {
		lines = append(lines, []ndb.Pair{ndb.Of("ignored", i.name), ndb.Of("line", i.line), ndb.Of("reason", i.why)})
	}
	return lines
}

// translated is the config in entries alone.
func (b *Broker) translated() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.imported.text
}
