package match

// Records parts a text into records: lines, paragraphs, mails, or whatever a
// delimiter says. Not safe for concurrent use.
type Records struct {
	delimiter *Pattern
	ends      bool // the delimiter ends a record; else one begins with it
}

// NewRecords makes Records for a delimiter: "line", "paragraph" (ended by
// blank lines), "mail" (begun by a line with From and a blank), or a regular
// expression that records begin with, in which ^ and $ are ends of lines.
func NewRecords(delimiter string) (*Records, error) {
	ends := true
	switch delimiter {
	case "line":
		delimiter = `\n`
	case "paragraph":
		delimiter = `\n([ \t\r]*\n)+`
	case "mail":
		delimiter, ends = `^From `, false
	default:
		ends = false
	}
	p, err := Compile("(?m)"+delimiter, Options{Syntax: Regexp, Case: true})
	if err != nil {
		return nil, err
	}
	return &Records{p, ends}, nil
}

// Next gives the record that begins at a byte of text, with its delimiter;
// the next begins where it ends. A delimiter without characters, as a
// beginning or an end of a line alone, parts what stands at either side.
func (r *Records) Next(text []byte, from int) (end int, ok bool) {
	if from >= len(text) {
		return from, false
	}
	for at := from; at <= len(text); {
		start, end, _, ok := r.delimiter.Find(text, at)
		if !ok {
			break
		}
		if r.ends && end > from {
			return end, true
		}
		if !r.ends && start > from {
			return start, true
		}
		at = forth(text, max(start, at), 1)
		if end > start {
			at = end
		}
		if at == len(text) && end == start {
			break
		}
	}
	return len(text), true
}
