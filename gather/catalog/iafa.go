package catalog

import (
	"io"
	"strings"

	"harvest/gather/soif"
)

// # IAFA templates
//
// As the working group of the IETF for anonymous FTP archives had them: fields, a
// line each, going on where a line begins with a blank, an empty line between
// records. Template-Type is the template type, the first URI the URL, Handle the key
// of one without. Author-Name and its variants (-v1) are Author; other names stay as
// they are, variants included.

type iafaReader struct {
	l    *lines
	base string
	n    int
}

func newIAFAReader(r io.Reader, base string) Reader { return &iafaReader{l: newLines(r), base: base} }

func (r *iafaReader) Next() (soif.Object, error) {
	var all []field
	size := 0
	for {
		line, err := r.l.next()
		if err == io.EOF && len(all) > 0 {
			return r.object(all), nil
		}
		if err != nil {
			return soif.Object{}, err
		}
		if isBlank(line) {
			if len(all) > 0 {
				return r.object(all), nil
			}
			continue
		}
		if line[0] == '#' {
			continue
		}
		if size += len(line); size > MaxRecord {
			return soif.Object{}, r.l.errorf(1, "a record of over %d bytes", MaxRecord)
		}
		if all, err = r.l.colon(all, line); err != nil {
			r.l.err = err
			return soif.Object{}, err
		}
	}
}

func (r *iafaReader) object(all []field) soif.Object {
	r.n++
	o := soif.Object{Type: "FILE"}
	key := ""
	for _, f := range all {
		switch {
		case same(f.name, "Template-Type"):
			o.Type = templateType(f.value)
		case o.URL == "" && (same(f.name, "URI") || same(f.name, "URI-v1") || same(f.name, "URL")) && isURL(f.value):
			o.URL = f.value
		case same(f.name, "Author-Name"), strings.HasPrefix(strings.ToLower(f.name), "author-name-v"):
			add(&o, "Author", f.value)
		default:
			if same(f.name, "Handle") {
				key = f.value
			}
			add(&o, f.name, f.value)
		}
	}
	if o.URL == "" {
		o.URL = keyed(r.base, key, r.n)
	}
	return o
}

// isURL reports whether a value is a URL, in one word.
func isURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	return ok && len(scheme) > 1 && rest != "" && !strings.ContainsAny(s, " \t\n") && !strings.ContainsAny(scheme, "/.?#")
}

type iafaWriter struct {
	w    io.Writer
	next bool
}

func newIAFAWriter(w io.Writer) Writer { return &iafaWriter{w: w} }

func (w *iafaWriter) Write(o *soif.Object) error {
	var b strings.Builder
	if w.next {
		b.WriteByte('\n')
	}
	w.next = true
	writeField(&b, "Template-Type", o.Type)
	if o.URL != "" {
		writeField(&b, "URI", o.URL)
	}
	unique(o, func(name string, value []byte) {
		if same(name, "Author") {
			name = "Author-Name"
		}
		writeField(&b, name, string(value))
	})
	_, err := io.WriteString(w.w, b.String())
	return err
}

func (w *iafaWriter) Close() error { return nil }
