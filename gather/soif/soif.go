// Package soif reads and writes the Summary Object Interchange Format: a
// stream of objects, each a template type, a URL and a list of attributes whose
// values are delimited by byte counts, so that a value may hold anything.
//
//	@FILE { http://site/intro.html
//	Title{12}:	Introduction
//	Update-Time{9}:	784649664
//	}
//
// The format is described in full in docs/soif.6.md. Decoder and Encoder work
// on streams, Parse and Object.Append on byte slices; UpdateReader and
// UpdateWriter on streams of changes. Values are never copied by decoding: they
// alias the slice that was parsed or the Decoder's buffer.
//
// The package knows nothing of how an object was made, what its attributes mean
// beyond the schema of its template type, or where it is kept.
package soif

import (
	"bytes"
	"iter"
	"strings"
)

// An Attr is one attribute. Names compare without regard to ASCII case, but are
// kept as they were written. A value is any bytes.
type Attr struct {
	Name  string
	Value []byte
}

// An Object is one summary: a template type (FILE, DOCUMENT, …), a URL, and
// attributes in order. A URL of "" is written as "-".
//
// Values of an Object that was decoded alias the input; see Clone.
type Object struct {
	Type  string
	URL   string
	Attrs []Attr
}

// Get returns the value of the first attribute called name, and whether there
// is one. The value is not copied.
func (o *Object) Get(name string) ([]byte, bool) {
	if i := o.index(name); i >= 0 {
		return o.Attrs[i].Value, true
	}
	return nil, false
}

// Text returns the value of the first attribute called name as a string, ""
// when there is none.
func (o *Object) Text(name string) string {
	v, _ := o.Get(name)
	return string(v)
}

// Set gives the first attribute called name the value, in its place and with the
// name as it stands there, and removes any others of that name. Without one it
// adds an attribute at the end. The value is kept, not copied.
func (o *Object) Set(name string, value []byte) {
	i := o.index(name)
	if i < 0 {
		o.Add(name, value)
		return
	}
	o.Attrs[i].Value = value
	o.Attrs = append(o.Attrs[:i+1], without(o.Attrs[i+1:], name)...)
}

// Add adds an attribute at the end, whether or not there is one called name
// already. The value is kept, not copied.
func (o *Object) Add(name string, value []byte) {
	o.Attrs = append(o.Attrs, Attr{name, value})
}

// Del removes every attribute called name. Author does not remove Author-1.
func (o *Object) Del(name string) {
	o.Attrs = without(o.Attrs, name)
}

// Values yields the values of an attribute that may have several, in the order of
// the object: those called name and those called name with a number, as in
// Author, Author-1, Author-2.
func (o *Object) Values(name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range o.Attrs {
			if numbered(o.Attrs[i].Name, name) && !yield(o.Attrs[i].Value) {
				return
			}
		}
	}
}

// Clone returns a copy of o in memory of its own, two allocations for all
// attributes, that stays valid whatever becomes of what o aliases.
func (o *Object) Clone() Object {
	n := 0
	for i := range o.Attrs {
		n += len(o.Attrs[i].Value)
	}
	c := Object{Type: o.Type, URL: o.URL, Attrs: make([]Attr, len(o.Attrs))}
	mem := make([]byte, 0, n)
	for i, a := range o.Attrs {
		mem = append(mem, a.Value...)
		end := len(mem)
		c.Attrs[i] = Attr{a.Name, mem[end-len(a.Value) : end : end]}
	}
	return c
}

// Equal reports whether o and p have the same type, URL and attributes in the
// same order, names compared without regard to case.
func (o *Object) Equal(p *Object) bool {
	if o.Type != p.Type || o.URL != p.URL || len(o.Attrs) != len(p.Attrs) {
		return false
	}
	for i, a := range o.Attrs {
		if !strings.EqualFold(a.Name, p.Attrs[i].Name) || !bytes.Equal(a.Value, p.Attrs[i].Value) {
			return false
		}
	}
	return true
}

func (o *Object) index(name string) int {
	for i := range o.Attrs {
		if equalName(o.Attrs[i].Name, name) {
			return i
		}
	}
	return -1
}

// without returns the attributes not called name, in the memory of attrs.
func without(attrs []Attr, name string) []Attr {
	kept := attrs[:0]
	for _, a := range attrs {
		if !equalName(a.Name, name) {
			kept = append(kept, a)
		}
	}
	clear(attrs[len(kept):])
	return kept
}

// equalName compares names without regard to the case of ASCII letters.
func equalName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// numbered reports whether have is name, or name with a number: Author-12.
func numbered(have, name string) bool {
	if len(have) == len(name) {
		return equalName(have, name)
	}
	if len(have) < len(name)+2 || have[len(name)] != '-' {
		return false
	}
	for _, c := range []byte(have[len(name)+1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return equalName(have[:len(name)], name)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
