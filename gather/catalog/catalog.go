// Package catalog reads and writes what others keep records in, as SOIF objects:
// IAFA templates, the Linux Software Map, BibTeX, RSS and Atom feeds, CSV, JSON
// lines, and SOIF itself.
//
// Both directions stream: a record is an object, and no more than one of them
// is in memory (but see CSV, whose first line names the columns of all). What an
// object says stays: an attribute that a format has no place for goes into one
// of the format's own kind, and reading what was written gives the same
// attributes and values again, as far as the format can hold text. docs/catalog.6.md
// says what that is for each.
package catalog

import (
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// MaxRecord bounds the bytes of a record that is read.
const MaxRecord = 4 << 20

// Options say how a catalogue is read.
type Options struct {
	Base string // URL of the catalogue: a record without one of its own is Base#KEY; "" leaves it without
}

// A Reader reads records. Next returns io.EOF after the last, an *Error for what
// is no record of the format, after which there are no more, or the error of
// reading. The object's values are its own.
type Reader interface {
	Next() (soif.Object, error)
}

// A Writer writes records; they are all written when Close has returned nil. It
// does not close what it writes to.
type Writer interface {
	Write(o *soif.Object) error
	Close() error
}

// An Error says where a catalogue is none. Its class is iofs.ErrInvalid.
type Error struct {
	Line, Col int // from 1; Col in bytes
	Text      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Text)
}

// Position gives the line and the column, from 1.
func (e *Error) Position() (line, col int) { return e.Line, e.Col }

// Unwrap gives the class.
func (e *Error) Unwrap() error { return iofs.ErrInvalid }

// A format is one of them.
type format struct {
	name  string
	read  func(r io.Reader, base string) Reader
	write func(w io.Writer) Writer
}

func formats() []format {
	return []format{
		{"atom", newFeedReader, newAtomWriter},
		{"bibtex", newBibReader, newBibWriter},
		{"csv", newCSVReader, newCSVWriter},
		{"iafa", newIAFAReader, newIAFAWriter},
		{"jsonl", newJSONReader, newJSONWriter},
		{"lsm", newLSMReader, newLSMWriter},
		{"rss", newFeedReader, newRSSWriter},
		{"soif", newSOIFReader, newSOIFWriter},
	}
}

// Formats are the names of the formats, sorted.
func Formats() []string {
	var all []string
	for _, f := range formats() {
		all = append(all, f.name)
	}
	return all
}

func find(name string) (format, error) {
	for _, f := range formats() {
		if f.name == strings.ToLower(name) {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("format '%.40s': it is none of %s: %w", name, strings.Join(Formats(), ", "), iofs.ErrNotExist)
}

// NewReader reads a catalogue. Feeds of either kind are read by both names.
func NewReader(format string, r io.Reader, opt Options) (Reader, error) {
	f, err := find(format)
	if err != nil {
		return nil, err
	}
	return f.read(r, opt.Base), nil
}

// NewWriter writes a catalogue.
func NewWriter(format string, w io.Writer) (Writer, error) {
	f, err := find(format)
	if err != nil {
		return nil, err
	}
	return f.write(w), nil
}

// Convert reads a catalogue of one format and writes it in another. Each object
// is handed to change, when that is not nil, before it is written.
func Convert(w io.Writer, to string, r io.Reader, from string, opt Options, change func(*soif.Object)) error {
	in, err := NewReader(from, r, opt)
	if err != nil {
		return err
	}
	out, err := NewWriter(to, w)
	if err != nil {
		return err
	}
	for {
		o, err := in.Next()
		if err == io.EOF {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if change != nil {
			change(&o)
		}
		if err := out.Write(&o); err != nil {
			return err
		}
	}
}

// keyed is the URL of a record that has none: of its key, or its number.
func keyed(base, key string, n int) string {
	if base == "" {
		return ""
	}
	if key == "" {
		key = strconv.Itoa(n)
	}
	return base + "#" + strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '#' {
			return '-'
		}
		return r
	}, key)
}

// add adds an attribute whose name and value are a stranger's. One without a
// value says nothing.
func add(o *soif.Object, name, value string) {
	if value != "" {
		o.Add(attrName(name), []byte(value))
	}
}

// maxName is how much of a stranger's name is kept, in bytes: SOIF takes 256, and
// unique adds a number.
const maxName = 240

// attrName makes a text the name of an attribute. The rest of a long one is cut off.
func attrName(s string) string {
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "")
	}
	return soif.Name(s)
}

// templateType makes a word a template type.
func templateType(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return "FILE"
	}
	s = attrName(s)
	if slices.Contains([]string{"UPDATE", "DELETE", "REFRESH", "CURSOR"}, strings.ToUpper(s)) {
		return s + "-" // those are frames of update streams
	}
	return s
}

// unique yields the attributes of an object under names that are all different:
// the second of one name is its -1, as in Author, Author-1.
func unique(o *soif.Object, yield func(name string, value []byte)) {
	taken := make(map[string]bool, len(o.Attrs))
	for _, a := range o.Attrs {
		taken[strings.ToLower(a.Name)] = true
	}
	seen := make(map[string]int, len(o.Attrs))
	for _, a := range o.Attrs {
		low := strings.ToLower(a.Name)
		n, twice := seen[low]
		name := a.Name
		for twice {
			n++
			if name = a.Name + "-" + strconv.Itoa(n); !taken[strings.ToLower(name)] {
				break
			}
		}
		seen[low], taken[strings.ToLower(name)] = n, true
		yield(name, a.Value)
	}
}

// same compares names.
func same(a, b string) bool { return strings.EqualFold(a, b) }

// A soifReader is SOIF in.
type soifReader struct{ d *soif.Decoder }

func newSOIFReader(r io.Reader, _ string) Reader {
	return soifReader{soif.NewDecoder(r, soif.Limits{Object: MaxRecord, Value: MaxRecord})}
}

func (r soifReader) Next() (soif.Object, error) {
	var o soif.Object
	if err := r.d.Next(&o); err != nil {
		if at, ok := err.(*soif.Error); ok {
			return o, &Error{int(at.Line), 1, at.Trouble()}
		}
		return o, err
	}
	return o.Clone(), nil
}

type soifWriter struct{ e *soif.Encoder }

func newSOIFWriter(w io.Writer) Writer { return soifWriter{soif.NewEncoder(w)} }

func (w soifWriter) Write(o *soif.Object) error { return w.e.Encode(o) }
func (w soifWriter) Close() error               { return nil }
