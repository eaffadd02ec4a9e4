package essence

import (
	"bytes"
	"strings"
)

// A list is a value of lines, each there once, in so many bytes.
type list struct {
	room int
	text strings.Builder
	seen map[string]bool
}

func (w *worker) list() *list { return &list{room: w.lim.Attr, seen: make(map[string]bool)} }

// add adds a line.
func (l *list) add(line string) {
	line = words(line)
	if line == "" || l.seen[line] || len(line)+1 > l.room {
		return
	}
	l.seen[line] = true
	l.room -= len(line) + 1
	if l.text.Len() > 0 {
		l.text.WriteByte('\n')
	}
	l.text.WriteString(line)
}

func (l *list) String() string { return l.text.String() }

// fields are what a header such as a mail's says: names in lower case, values on
// one line each. What a name says twice is in lines.
type fields map[string]string

// maxFields bounds the fields of one header.
const maxFields = 500

// readFields reads `Name: value` lines, continued by lines that begin with a
// blank, up to an empty line or one that is neither; it returns what follows.
func readFields(text []byte) (fields, []byte) {
	f := make(fields)
	last := ""
	for len(text) > 0 && len(f) < maxFields {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		if len(line) == 0 {
			return f, rest
		}
		if line[0] == ' ' || line[0] == '\t' {
			if last == "" {
				return f, text
			}
			if len(f[last]) < 8<<10 {
				f[last] += "\n" + string(bytes.TrimSpace(line))
			}
			text = rest
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || len(name) > 64 || bytes.ContainsAny(name, " \t") {
			if line[0] == '#' {
				text = rest
				continue
			}
			return f, text
		}
		last = strings.ToLower(string(name))
		if v := string(bytes.TrimSpace(value)); f[last] == "" {
			f[last] = v
		} else if len(f[last]) < 8<<10 {
			f[last] += "\n" + v
		}
		text = rest
	}
	return f, text
}

// one is the value of the first of names that there is, on one line.
func (f fields) one(names ...string) string {
	for _, n := range names {
		if f[n] != "" {
			return words(f[n])
		}
	}
	return ""
}

// paragraph undoes the way Debian writes long texts: a dot stands for an empty line.
func paragraph(v string) string {
	return strings.ReplaceAll("\n"+v+"\n", "\n.\n", "\n\n")
}
