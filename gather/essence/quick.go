package essence

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// # Quick summarizers
//
// A quick summarizer is a text of lines
//
//	Attribute regexp
//
// in the syntax of RE2, whose time is linear. Each is tried on each line of the
// document; what its groups match, joined by a blank, or all that it matches if
// it has none, is a line of the attribute's value, once. A line that begins with
// # is a comment.

// A quickRule is a line of a quick summarizer.
type quickRule struct {
	name string
	re   *regexp.Regexp
}

// Bounds of a quick summarizer and of the lines it sees.
const (
	maxQuick     = 200 // rules
	maxQuickLine = 8 << 10
	maxPattern   = 2000
)

// parseQuick reads a quick summarizer. An error names line and column.
func parseQuick(text string) (rules []quickRule, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		fail := func(col int, format string, arg ...any) error {
			return &ndb.Error{Line: n, Col: col, Msg: fmt.Sprintf(format, arg...)}
		}
		name, pattern, _ := strings.Cut(line, " ")
		if i := strings.IndexByte(line, '\t'); i >= 0 && i < len(name) {
			name, pattern = line[:i], line[i+1:]
		}
		at := len(line) - len(strings.TrimLeft(pattern, " \t")) + 1
		pattern = strings.TrimLeft(pattern, " \t")
		switch {
		case name == "" || soif.Name(name) != name:
			return nil, fail(1, "'%.60s' is not the name of an attribute", name)
		case pattern == "":
			return nil, fail(len(line)+1, "a line is the name of an attribute, a blank and a regular expression")
		case len(pattern) > maxPattern:
			return nil, fail(at, "a regular expression of more than %d bytes", maxPattern)
		case len(rules) == maxQuick:
			return nil, fail(1, "more than %d lines", maxQuick)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fail(at, "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		rules = append(rules, quickRule{name, re})
	}
	return rules, nil
}

// quick runs a quick summarizer over the beginning of a content.
func (b *brought) quick(w *worker, c *content) ([]soif.Object, error) {
	text := c.head
	if looksText(text) {
		text = decode(text, c.declared)
	}
	values := make(map[string]*quickValue)
	for i := 0; len(text) > 0; i++ {
		if i%1024 == 0 && w.ctx.Err() != nil {
			return nil, w.ctx.Err()
		}
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		line = bytes.TrimRight(line[:min(len(line), maxQuickLine)], "\r")
		for _, r := range b.rules {
			m := r.re.FindSubmatch(line)
			if m == nil {
				continue
			}
			v := values[r.name]
			if v == nil {
				v = &quickValue{seen: make(map[string]bool)}
				values[r.name] = v
			}
			v.add(m, w.lim.Attr)
		}
	}
	var o soif.Object
	for _, r := range b.rules {
		if v := values[r.name]; v != nil && len(v.text) > 0 {
			o.Add(r.name, v.text)
			delete(values, r.name)
		}
	}
	if w.full && looksText(c.head) {
		o.Add("Full-Text", decode(c.head, c.declared))
	}
	return []soif.Object{o}, nil
}

// A quickValue is the value of an attribute, as it grows.
type quickValue struct {
	text []byte
	seen map[string]bool
}

// add takes a match, as far as the value may grow.
func (v *quickValue) add(m [][]byte, most int) {
	s := m[0]
	if len(m) > 1 {
		var some [][]byte
		for _, g := range m[1:] {
			if len(g) > 0 {
				some = append(some, g)
			}
		}
		s = bytes.Join(some, []byte(" "))
	}
	s = bytes.TrimSpace(s)
	if len(s) == 0 || v.seen[string(s)] || len(v.text)+1+len(s) > most {
		return
	}
	v.seen[string(s)] = true
	if len(v.text) > 0 {
		v.text = append(v.text, '\n')
	}
	v.text = append(v.text, s...)
}
