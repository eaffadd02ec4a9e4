package essence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"harvest/gather/soif"
)

// bareAttribute begins SOIF without the object around it, as the original's
// summarizers wrote it.
var bareAttribute = expression(`^[A-Za-z][A-Za-z0-9_-]*\{[0-9]+\}:`)

// parseSummary reads the attributes that a summarizer wrote: a SOIF object, its
// inside alone, or lines 'Name: value' in which a value goes on where a line
// begins with a blank.
func parseSummary(out []byte) (soif.Object, error) {
	out = bytes.TrimLeft(out, " \t\r\n")
	switch {
	case len(out) == 0:
		return soif.Object{}, nil
	case bareAttribute().Match(out):
		out = fmt.Appendf(nil, "@FILE { -\n%s\n}\n", bytes.TrimRight(out, "\n"))
	case out[0] != '@':
		return parseLines(out)
	}
	o, n, err := soif.Parse(out, soif.Limits{})
	if err != nil {
		return o, fmt.Errorf("what it wrote: %w", err)
	}
	if rest := bytes.TrimSpace(out[n:]); len(rest) > 0 {
		return o, fmt.Errorf("what it wrote: more than one object, after %d bytes", n)
	}
	return o, nil
}

// parseLines reads lines of attributes. Those of one name are lines of one value.
func parseLines(out []byte) (o soif.Object, err error) {
	n := 0
	for line := range strings.Lines(string(out)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(o.Attrs) == 0 {
				return o, fmt.Errorf("what it wrote, line %d: '%.40s' goes on with nothing", n, clean(strings.TrimSpace(line)))
			}
			a := &o.Attrs[len(o.Attrs)-1]
			a.Value = append(append(a.Value, '\n'), strings.TrimSpace(line)...)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || soif.Name(name) != name {
			return o, fmt.Errorf("what it wrote, line %d: '%.40s' is not of the form 'Name: value'", n, clean(line))
		}
		o.Attrs = append(o.Attrs, soif.Attr{Name: name, Value: []byte(strings.TrimSpace(value))})
	}
	return o, nil
}

// maxExploded bounds the objects that an exploder may write.
const maxExploded = 100_000

// parseStream reads the objects that an exploder wrote.
func parseStream(out []byte) (all []soif.Object, err error) {
	d := soif.NewDecoder(bytes.NewReader(out), soif.Limits{})
	for {
		var o soif.Object
		err := d.Next(&o)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("what it wrote: %w", err)
		case len(all) == maxExploded:
			return all, fmt.Errorf("what it wrote: more than %d objects", maxExploded)
		}
		all = append(all, o.Clone())
	}
}
