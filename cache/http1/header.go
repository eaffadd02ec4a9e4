package http1

import (
	"iter"
	"strings"
)

// A Field is a line of a header: its name as it was written, its value without the
// blanks around it.
type Field struct{ Name, Value string }

// A Header is the fields of a message in their order. Names are compared without
// case; a field may be there several times.
type Header []Field

// Values yields the values of each line of a field.
func (h Header) Values(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range h {
			if strings.EqualFold(h[i].Name, name) && !yield(h[i].Value) {
				return
			}
		}
	}
}

// Get returns the value of a field, those of several lines joined with commas
// (RFC 9110, 5.3), and whether it is there.
func (h Header) Get(name string) (value string, ok bool) {
	for v := range h.Values(name) {
		if ok {
			value += ", " + v
		} else {
			value, ok = v, true
		}
	}
	return value, ok
}

// Text is the value of a field, or "" if it is not there.
func (h Header) Text(name string) string {
	v, _ := h.Get(name)
	return v
}

// Has reports whether a field is there.
func (h Header) Has(name string) bool {
	for range h.Values(name) {
		return true
	}
	return false
}

// Del takes out all lines of a field.
func (h *Header) Del(name string) {
	kept := (*h)[:0]
	for _, f := range *h {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	*h = kept
}

// Add adds a line.
func (h *Header) Add(name, value string) { *h = append(*h, Field{name, value}) }

// Set makes value the only one of a field.
func (h *Header) Set(name, value string) {
	h.Del(name)
	h.Add(name, value)
}

// Clone is a copy of h that can be changed.
func (h Header) Clone() Header { return append(make(Header, 0, len(h)+4), h...) }

// Members yields the members of a field whose value is a list (RFC 9110, 5.6.1):
// those of all its lines, split at the commas that are not in quotes, without the
// blanks around them and without empty ones.
func (h Header) Members(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for v := range h.Values(name) {
			for m := range Split(v, ',') {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// HasMember reports whether a list has a member, compared without case.
func (h Header) HasMember(name, member string) bool {
	for m := range h.Members(name) {
		if strings.EqualFold(m, member) {
			return true
		}
	}
	return false
}

// Split yields what stands between separators that are not in a quoted string,
// without the blanks around it; empty pieces are left out.
func Split(s string, sep byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		piece := func(p string) bool {
			p = strings.Trim(p, " \t")
			return p == "" || yield(p)
		}
		quoted, start := false, 0
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case !quoted && c == sep:
				if !piece(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		piece(s[start:])
	}
}

// hopByHop are fields that are about a connection (RFC 9110, 7.6.1), with those
// that old senders forget to list in Connection.
var hopByHop = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true,
	"proxy-authorization": true, "proxy-authentication-info": true,
}

// Forwarded is the header without what is about the connection it came by: the
// fields that are so by definition and those that Connection lists.
func (h Header) Forwarded() Header {
	var listed map[string]bool
	for m := range h.Members("Connection") {
		if listed == nil {
			listed = make(map[string]bool)
		}
		listed[strings.ToLower(m)] = true
	}
	out := make(Header, 0, len(h)+4)
	for _, f := range h {
		low := strings.ToLower(f.Name)
		if !hopByHop[low] && !listed[low] {
			out = append(out, f)
		}
	}
	return out
}
