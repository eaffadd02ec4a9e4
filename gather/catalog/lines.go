package catalog

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// lines reads a text line by line and knows where it is.
type lines struct {
	r    *bufio.Reader
	n    int // number of the line that next gave last
	text string
	err  error
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 32<<10)} }

// next gives a line without its end.
func (l *lines) next() (string, error) {
	if l.err != nil {
		return "", l.err
	}
	var b strings.Builder
	for {
		part, err := l.r.ReadSlice('\n')
		b.Write(part)
		if b.Len() > MaxRecord {
			l.n++
			l.err = l.errorf(1, "a line of over %d bytes", MaxRecord)
			return "", l.err
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if l.err = err; err != nil && (err != io.EOF || b.Len() == 0) {
			return "", err
		}
		break
	}
	l.n++
	l.text = strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r")
	if l.n == 1 {
		l.text = strings.TrimPrefix(l.text, "\ufeff")
	}
	return l.text, nil
}

func (l *lines) errorf(col int, format string, arg ...any) error {
	return &Error{max(l.n, 1), col, fmt.Sprintf(format, arg...)}
}

// A field is a line 'Name: value' with those that go on with it.
type field struct {
	name, value string
	line        int
}

// colon reads a line of a record of fields and adds it to those there are.
func (l *lines) colon(all []field, line string) ([]field, error) {
	if line[0] == ' ' || line[0] == '\t' {
		if len(all) == 0 {
			return nil, l.errorf(1, "'%.40s' goes on with nothing: a line begins with 'Name: '", strings.TrimSpace(line))
		}
		f := &all[len(all)-1]
		f.value += "\n" + unstuff(strings.TrimSpace(line))
		return all, nil
	}
	name, value, ok := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.ContainsAny(name, " \t") {
		return nil, l.errorf(1, "'%.40s' is not of the form 'Name: value'", line)
	}
	return append(all, field{name, unstuff(strings.TrimSpace(value)), l.n}), nil
}

// In a value of several lines an empty one is a point, and one of points has one
// more.
func unstuff(line string) string {
	if line != "" && strings.Trim(line, ".") == "" {
		return line[1:]
	}
	return line
}

// writeField writes an attribute as such lines. What would end a line, or stand at
// its edge, does not last.
func writeField(b *strings.Builder, name, value string) {
	b.WriteString(strings.ReplaceAll(name, ":", "-"))
	b.WriteByte(':')
	lead := " "
	for line := range strings.SplitSeq(value, "\n") {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\r", " "))
		if strings.Trim(line, ".") == "" {
			line += "."
		}
		b.WriteString(lead)
		b.WriteString(line)
		lead = "\n\t"
	}
	b.WriteByte('\n')
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }
