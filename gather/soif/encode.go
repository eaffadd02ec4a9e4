package soif

import (
	"io"
	"strconv"
)

// Append appends the canonical encoding of o to dst and returns it. The result
// always parses, with the same attributes and values: a type or a name that
// could not be read back is written as Name makes it, a URL with its blanks and
// control bytes percent-encoded. Encoder refuses such an object instead.
func (o *Object) Append(dst []byte) []byte {
	dst = append(dst, '@')
	dst = append(dst, o.Type...)
	dst = append(dst, " { "...)
	if o.URL == "" {
		dst = append(dst, '-')
	}
	dst = append(dst, o.URL...)
	dst = append(dst, '\n')
	for i := range o.Attrs {
		a := &o.Attrs[i]
		dst = append(dst, a.Name...)
		dst = append(dst, '{')
		dst = strconv.AppendInt(dst, int64(len(a.Value)), 10)
		dst = append(dst, "}:\t"...)
		dst = append(dst, a.Value...)
		dst = append(dst, '\n')
	}
	return append(dst, "}\n"...)
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
	e.buf = o.Append(e.buf[:0])
	_, err := e.w.Write(e.buf)
	return err
}
