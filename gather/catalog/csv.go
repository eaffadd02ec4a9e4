package catalog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"harvest/gather/soif"
)

// # CSV
//
// As RFC 4180 has it: a record a line, fields separated by commas, those with commas,
// quotes or ends of lines in quotes, a quote in those doubled. The first line names
// the columns: URL and Template-Type are those of the object, others its attributes.
// An empty field is an attribute that is not there.

type csvReader struct {
	r     *bufio.Reader
	base  string
	names []string
	line  int // of the byte that comes next, from 1
	col   int
	n     int
	err   error
}

func newCSVReader(r io.Reader, base string) Reader {
	return &csvReader{r: bufio.NewReaderSize(r, 32<<10), base: base, line: 1, col: 1}
}

// maxColumns bounds the columns, as SOIF bounds attributes.
const maxColumns = 1 << 16

func (r *csvReader) Next() (soif.Object, error) {
	o, err := r.object()
	if err != nil && r.err == nil {
		r.err = err
	}
	return o, err
}

func (r *csvReader) object() (soif.Object, error) {
	if r.err != nil {
		return soif.Object{}, r.err
	}
	if r.names == nil {
		names, err := r.record()
		if err != nil {
			return soif.Object{}, err
		}
		names[0] = strings.TrimPrefix(names[0], "\ufeff")
		for i, name := range names {
			if names[i] = strings.TrimSpace(name); names[i] == "" {
				return soif.Object{}, &Error{1, 1, fmt.Sprintf("column %d has no name", i+1)}
			}
		}
		r.names = names
	}
	line := r.line
	fields, err := r.record()
	if err != nil {
		return soif.Object{}, err
	}
	if len(fields) > len(r.names) {
		return soif.Object{}, &Error{line, 1, fmt.Sprintf("%d fields, and %d columns have a name", len(fields), len(r.names))}
	}
	r.n++
	o := soif.Object{Type: "FILE"}
	for i, f := range fields {
		switch {
		case same(r.names[i], "URL"):
			o.URL = f
		case same(r.names[i], "Template-Type"):
			o.Type = templateType(f)
		default:
			add(&o, r.names[i], f)
		}
	}
	if o.URL == "" {
		o.URL = keyed(r.base, "", r.n)
	}
	return o, nil
}

// byte gives the next byte; the end of a line in either form is one newline
// outside of quotes.
func (r *csvReader) byte() (byte, error) {
	c, err := r.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if r.col++; c == '\n' {
		r.line, r.col = r.line+1, 1
	}
	return c, nil
}

// record reads a line's fields. Empty lines are passed over.
func (r *csvReader) record() ([]string, error) {
	var fields []string
	size := 0
	for {
		f, end, err := r.field(&size)
		if err == io.EOF && (len(fields) > 0 || f != "") {
			err, end = nil, true
		}
		if err != nil {
			return nil, err
		}
		if fields = append(fields, f); len(fields) > maxColumns {
			return nil, &Error{r.line, r.col, fmt.Sprintf("more than %d fields", maxColumns)}
		}
		if end && len(fields) == 1 && f == "" {
			fields = nil
			continue
		}
		if end {
			return fields, nil
		}
	}
}

// field reads a field and what ends it; end tells of a newline. It gives io.EOF,
// with the field, at the end of the input.
func (r *csvReader) field(size *int) (f string, end bool, err error) {
	var b bytes.Buffer
	line, col, quoted, closed := r.line, r.col, false, false
	for {
		c, err := r.byte()
		if err == io.EOF && quoted && !closed {
			return "", false, &Error{line, col, "a quote that is not closed"}
		}
		if err != nil {
			return strings.TrimSuffix(b.String(), "\r"), false, err
		}
		if *size++; *size > MaxRecord {
			return "", false, &Error{line, col, fmt.Sprintf("a record of over %d bytes", MaxRecord)}
		}
		inside := quoted && !closed
		switch {
		case c == '"' && !quoted && b.Len() == 0:
			quoted = true
		case c == '"' && inside:
			closed = true
		case c == '"' && closed:
			b.WriteByte('"') // it was doubled
			closed = false
		case c == ',' && !inside:
			return b.String(), false, nil
		case c == '\n' && !inside:
			if !quoted {
				return strings.TrimSuffix(b.String(), "\r"), true, nil
			}
			return b.String(), true, nil
		case c == '\r' && closed:
		case closed:
			return "", false, &Error{r.line, r.col - 1, fmt.Sprintf("%q after the quote that closes a field", c)}
		default:
			b.WriteByte(c)
		}
	}
}

// A csvWriter keeps objects in a file until it knows all the columns.
type csvWriter struct {
	w     io.Writer
	names []string
	at    map[string]int // of a name in lower case
	kept  *os.File
	enc   *soif.Encoder
	buf   *bufio.Writer
}

func newCSVWriter(w io.Writer) Writer { return &csvWriter{w: w, at: make(map[string]int)} }

func (w *csvWriter) Write(o *soif.Object) error {
	if w.kept == nil {
		f, err := os.CreateTemp("", "harvest-")
		if err != nil {
			return err
		}
		if err := os.Remove(f.Name()); err != nil {
			return errors.Join(err, f.Close())
		}
		w.kept, w.buf = f, bufio.NewWriterSize(f, 64<<10)
		w.enc = soif.NewEncoder(w.buf)
	}
	flat := soif.Object{Type: o.Type, URL: o.URL}
	unique(o, func(name string, value []byte) {
		if same(name, "URL") || same(name, "Template-Type") {
			name += "-1" // the column is the object's own
		}
		flat.Add(name, value)
		if _, ok := w.at[strings.ToLower(name)]; !ok && len(value) > 0 {
			w.at[strings.ToLower(name)] = len(w.names)
			w.names = append(w.names, name)
		}
	})
	if len(w.names)+2 > maxColumns {
		return fmt.Errorf("csv: more than %d different attributes", maxColumns-2)
	}
	return w.enc.Encode(&flat)
}

// Close writes the names of the columns, and then all objects.
func (w *csvWriter) Close() error {
	out := bufio.NewWriter(w.w)
	writeCSV(out, append([]string{"Template-Type", "URL"}, w.names...))
	if w.kept == nil {
		return out.Flush()
	}
	defer w.kept.Close()
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if _, err := w.kept.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := soif.NewDecoder(w.kept, soif.Limits{})
	fields := make([]string, len(w.names)+2)
	var o soif.Object
	for {
		if err := d.Next(&o); err == io.EOF {
			return out.Flush()
		} else if err != nil {
			return err
		}
		clear(fields)
		fields[0], fields[1] = o.Type, o.URL
		for _, a := range o.Attrs {
			if i, ok := w.at[strings.ToLower(a.Name)]; ok {
				fields[i+2] = string(a.Value)
			}
		}
		if err := writeCSV(out, fields); err != nil {
			return err
		}
	}
}

func writeCSV(w *bufio.Writer, fields []string) error {
	for i, f := range fields {
		if i > 0 {
			w.WriteByte(',')
		}
		if strings.ContainsAny(f, ",\"\r\n") || strings.HasPrefix(f, "\ufeff") {
			f = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
		}
		w.WriteString(f)
	}
	return w.WriteByte('\n')
}
