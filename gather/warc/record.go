// Package warc writes and reads WARC files, the archives of what was fetched
// from the web (ISO 28500, versions 1.0 and 1.1).
//
// A Recorder between a crawler and the network keeps each exchange as it went
// over the wire; a Replay answers requests from such files in place of the
// network. Files of other programs are read too: plain, with a gzip member or a
// zstd frame for each record, or compressed as a whole.
package warc

import (
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"
)

// The types of records that this package writes.
const (
	Info     = "warcinfo" // what a file is of
	Request  = "request"
	Response = "response"
	Revisit  = "revisit" // a response whose content is in an earlier record
	Metadata = "metadata"
	Resource = "resource" // content without a protocol's headers; only read
)

// A Field is one line of a header.
type Field struct{ Name, Value string }

// A Header is the fields of a record in their order.
type Header []Field

// Get returns the first value of a name, whatever its case, or "".
func (h Header) Get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Add adds a field at the end. One without a value is left out.
func (h *Header) Add(name, value string) {
	if value != "" {
		*h = append(*h, Field{name, value})
	}
}

// Type returns WARC-Type.
func (h Header) Type() string { return strings.ToLower(h.Get("WARC-Type")) }

// Target returns WARC-Target-URI. Some programs put it in angle brackets, as
// the first standard had it; they are no part of it.
func (h Header) Target() string {
	u := h.Get("WARC-Target-URI")
	if strings.HasPrefix(u, "<") && strings.HasSuffix(u, ">") {
		return u[1 : len(u)-1]
	}
	return u
}

// Date returns WARC-Date, the zero Time when it is missing or no date.
func (h Header) Date() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, h.Get("WARC-Date"))
	return t.UTC()
}

// length returns Content-Length, which every record has to have.
func (h Header) length() (int64, error) {
	text := h.Get("Content-Length")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || text[0] == '+' {
		return 0, fmt.Errorf("Content-Length %.40q: %w", text, iofs.ErrInvalid)
	}
	return n, nil
}

// append writes the header as it stands in a file, the empty line included.
func (h Header) append(b []byte) []byte {
	b = append(b, "WARC/1.1\r\n"...)
	for _, f := range h {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, oneLine(f.Value)...)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// oneLine is a value that cannot begin another field.
func oneLine(v string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == 0 {
			return ' '
		}
		return r
	}, v)
}
