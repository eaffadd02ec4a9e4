package soif

import (
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"
)

// Append appends the canonical encoding of o to dst and returns it. The result
// always parses, with the same attributes and values: a type or a name that
// could not be read back is written as Name makes it, a URL with its blanks and
// control bytes percent-encoded. Encoder refuses such an object instead.
func (o *Object) Append(dst []byte) []byte {
	dst = append(dst, '@')
	dst = append(dst, Name(o.Type)...)
	if frameOp(o.Type) != 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, " { "...)
	dst = append(dst, cleanURL(o.URL)...)
	dst = append(dst, '\n')
	for i := range o.Attrs {
		dst = o.Attrs[i].Append(dst)
	}
	return append(dst, "}\n"...)
}

// Append appends the encoding of the attribute alone: Name{size}:, tab, value,
// newline.
func (a *Attr) Append(dst []byte) []byte {
	dst = append(dst, Name(a.Name)...)
	dst = append(dst, '{')
	dst = strconv.AppendInt(dst, int64(len(a.Value)), 10)
	dst = append(dst, delimiter...)
	dst = append(dst, a.Value...)
	return append(dst, '\n')
}

// Name makes any text fit for the name of an attribute: what cannot stand in one,
// which is white space, control characters, braces and @, becomes a hyphen, and
// so does the empty text.
func Name(s string) string {
	if isToken(&nameByte, s) {
		return s
	}
	if s == "" {
		return "-"
	}
	b := []byte(s)
	for i, c := range b {
		if !nameByte[c] {
			b[i] = '-'
		}
	}
	return string(b)
}

func cleanURL(u string) string {
	if u == "" {
		return "-"
	}
	if isToken(&urlByte, u) && u != "}" {
		return u
	}
	var b strings.Builder
	for _, c := range []byte(u) {
		if urlByte[c] && u != "}" {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isToken(class *[256]bool, s string) bool {
	for i := range len(s) {
		if !class[s[i]] {
			return false
		}
	}
	return s != ""
}

// An Encoder writes objects to a stream, one Write each.
type Encoder struct {
	w   io.Writer
	buf []byte
}

// NewEncoder returns an Encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// Encode writes o in canonical form, or an error that wraps fs.ErrInvalid and
// nothing if its type, URL or a name could not be read back.
func (e *Encoder) Encode(o *Object) error {
	if err := o.readable(); err != nil {
		return err
	}
	e.buf = o.Append(e.buf[:0])
	_, err := e.w.Write(e.buf)
	return err
}

// readable returns an error for an object that could not be read back.
func (o *Object) readable() error {
	switch {
	case !isToken(&nameByte, o.Type):
		return fmt.Errorf("%s: template type %q: %w", o.id(), o.Type, iofs.ErrInvalid)
	case frameOp(o.Type) != 0:
		return fmt.Errorf("%s: template type %q is the name of a frame: %w", o.id(), o.Type, iofs.ErrInvalid)
	case o.URL != "" && (!isToken(&urlByte, o.URL) || o.URL == "}"):
		return fmt.Errorf("url %q: %w", o.URL, iofs.ErrInvalid)
	}
	for i := range o.Attrs {
		if name := o.Attrs[i].Name; !isToken(&nameByte, name) {
			return fmt.Errorf("%s: attribute name %q: %w", o.id(), name, iofs.ErrInvalid)
		}
	}
	return nil
}
