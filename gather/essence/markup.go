package essence

import (
	"bytes"
	"html"
	"strings"
)

// markup reads HTML as the standard's tokenizer would, less what a summary has
// no use for: comments, and attributes that nobody asks for. It works on the
// bytes as they are and copies none, which makes it several times as fast.
type markup struct {
	b       []byte
	at      int
	dict    *dictionary
	is      *element // the tag last read, nil if it means nothing
	element []byte   // its name as it is written
	raw     []byte   // the name of the element whose text has no markup in it, nil outside
	lastEnd int      // where the document's last > is, -1 if it has none
	attrs   []pair   // of the tag last read, once readAttrs was called
}

// A pair is an attribute of a tag, as it is written.
type pair struct{ key, value []byte }

func newMarkup(doc []byte, dict *dictionary) *markup {
	return &markup{b: doc, dict: dict, lastEnd: lastEnd(doc), attrs: make([]pair, 0, 16)}
}

func lastEnd(doc []byte) int { return bytes.LastIndexByte(doc, '>') }

// A part is what markup is made of.
type part byte

const (
	nothing part = iota // the document has ended
	aText               // which may have character references
	rawText             // which has none
	opening             // a tag; its attributes are to be read before the next part
	closing             // a tag
)

// next reads the next part, and returns the text if it is one.
func (m *markup) next() (part, []byte) {
	if m.raw != nil {
		kind, text := m.rawText()
		if len(text) > 0 {
			return kind, text
		}
	}
	start := m.at
	for m.at < len(m.b) {
		i := bytes.IndexByte(m.b[m.at:], '<')
		if i < 0 {
			m.at = len(m.b)
			break
		}
		m.at += i
		if !m.begins() {
			m.at++
			continue
		}
		if m.at > start {
			return aText, m.b[start:m.at]
		}
		if kind := m.tag(); kind != nothing {
			return kind, nil
		}
		start = m.at
	}
	if m.at > start {
		return aText, m.b[start:m.at]
	}
	return nothing, nil
}

// begins reports whether the '<' at at begins anything.
func (m *markup) begins() bool {
	if m.at+1 >= len(m.b) {
		return false
	}
	c := m.b[m.at+1]
	return isLetter(c) || c == '/' && m.at+2 < len(m.b) || c == '!' || c == '?'
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// tag reads what begins at at: a tag, or a comment, which is nothing.
func (m *markup) tag() part {
	rest := m.b[m.at:]
	switch {
	case m.at > m.lastEnd: // the document ends in it
		m.at = len(m.b)
	case isLetter(rest[1]):
		m.element = rest[1 : 1+nameLength(rest[1:])]
		m.is = m.dict.find(m.element)
		raw := rawName(m.element)
		m.at += 1 + len(m.element)
		if m.raw = nil; raw > 0 {
			m.raw = rest[1 : 1+raw]
		}
		return opening
	case rest[1] == '/' && isLetter(rest[2]):
		m.element = rest[2 : 2+nameLength(rest[2:])]
		m.is = m.dict.find(m.element)
		m.at += 2 + len(m.element)
		m.skip()
		return closing
	case bytes.HasPrefix(rest, []byte("<!--")):
		m.comment(rest)
	default:
		m.pass(rest, ">")
	}
	return nothing
}

func (m *markup) comment(rest []byte) {
	body := rest[4:]
	switch {
	case bytes.HasPrefix(body, []byte(">")), bytes.HasPrefix(body, []byte("->")):
		m.pass(rest, ">")
		return
	}
	for i := 0; ; {
		n := bytes.Index(body[i:], []byte("--"))
		if n < 0 {
			m.at = len(m.b)
			return
		}
		after := body[i+n+2:]
		for len(after) > 0 && after[0] == '-' {
			after = after[1:]
		}
		switch i = len(body) - len(after); {
		case bytes.HasPrefix(after, []byte(">")):
			m.at += 4 + i + 1
			return
		case bytes.HasPrefix(after, []byte("!>")):
			m.at += 4 + i + 2
			return
		}
	}
}

// pass goes on past the next end.
func (m *markup) pass(rest []byte, end string) {
	if i := bytes.Index(rest, []byte(end)); i >= 0 {
		m.at += i + len(end)
	} else {
		m.at = len(m.b)
	}
}

func nameLength(b []byte) int {
	n := 0
	for n < len(b) && b[n] > ' ' && b[n] != '>' && b[n] != '/' {
		n++
	}
	return n
}

// rawNames are the elements whose text has no markup in it.
var rawNames = [...]string{"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}

// rawName is the length of a name if it is of an element whose text has no markup
// in it, else 0.
func rawName(name []byte) int {
	if len(name) < 3 {
		return 0
	}
	switch name[0] | 0x20 {
	case 'i', 'n', 'p', 's', 't', 'x':
		for _, raw := range rawNames {
			if isNamed(name, raw) {
				return len(name)
			}
		}
	}
	return 0
}

// rawText reads the text of an element that has no markup in it, up to its end.
func (m *markup) rawText() (part, []byte) {
	kind := rawText
	if c := m.raw[0] | 0x20; c == 't' { // a title, or a text area
		kind = aText
	}
	name := m.raw
	m.raw = nil
	start := m.at
	for !bytes.EqualFold(name, []byte("plaintext")) {
		i := bytes.Index(m.b[m.at:], []byte("</"))
		if i < 0 {
			break
		}
		m.at += i
		rest := m.b[m.at+2:]
		if len(rest) > len(name) && bytes.EqualFold(rest[:len(name)], name) {
			if c := rest[len(name)]; c <= ' ' || c == '/' || c == '>' {
				return kind, m.b[start:m.at]
			}
		}
		m.at += 2
	}
	m.at = len(m.b)
	return kind, m.b[start:]
}

// attribute reads the next attribute of a tag. There is no more once the tag has
// ended.
func (m *markup) attribute() (key, value []byte, more bool) {
	b, i := m.b, m.at
	for i < len(b) && (b[i] <= ' ' || b[i] == '/') {
		i++
	}
	start := i
	for i < len(b) && b[i] > ' ' && b[i] != '>' && b[i] != '/' && (b[i] != '=' || i == start) {
		i++
	}
	key = b[start:i]
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	if i < len(b) && b[i] == '=' {
		for i++; i < len(b) && b[i] <= ' '; i++ {
		}
		if i < len(b) && (b[i] == '"' || b[i] == '\'') {
			end := bytes.IndexByte(b[i+1:], b[i])
			if end < 0 { // the document ends in the tag, which then is none
				m.at = len(b)
				return nil, nil, false
			}
			value = b[i+1 : i+1+end]
			i += end + 2
		} else {
			start := i
			for i < len(b) && b[i] > ' ' && b[i] != '>' {
				i++
			}
			value = b[start:i]
		}
	}
	switch {
	case i >= len(b):
		m.at = i
		return nil, nil, false
	case b[i] == '>':
		m.at = i + 1
		return key, value, false
	}
	m.at = i
	return key, value, true
}

// maxAttrs bounds the attributes of a tag that are looked at.
const maxAttrs = 32

// readAttrs reads all attributes of a tag.
func (m *markup) readAttrs() {
	m.attrs = m.attrs[:0]
	if m.at < len(m.b) && m.b[m.at] == '>' {
		m.at++
		return
	}
	for more := true; more; {
		var p pair
		if p.key, p.value, more = m.attribute(); len(p.key) > 0 && len(m.attrs) < maxAttrs {
			m.attrs = append(m.attrs, p)
		}
	}
}

// get is the value of an attribute that readAttrs has read.
func (m *markup) get(key string) []byte {
	for i := range m.attrs {
		if p := &m.attrs[i]; isNamed(p.key, key) {
			return p.value
		}
	}
	return nil
}

// skip passes over the attributes of a tag. When their quotes come in pairs up to
// the first '>', that is its end.
func (m *markup) skip() {
	if i := bytes.IndexByte(m.b[m.at:], '>'); i >= 0 {
		within := m.b[m.at : m.at+i]
		if len(within) == 0 || bytes.Count(within, []byte{'"'})%2 == 0 && bytes.IndexByte(within, '\'') < 0 {
			m.at += i + 1
			return
		}
	}
	for more := true; more; {
		_, _, more = m.attribute()
	}
}

// unescapeText replaces the character references of a text.
func unescapeText(text []byte) []byte {
	if bytes.IndexByte(text, '&') < 0 {
		return text
	}
	return appendUnescaped(make([]byte, 0, len(text)), text)
}

// appendUnescaped adds a text to dst, its character references replaced.
func appendUnescaped(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i:]
		n := 1
		for n < len(text) && (isLetter(text[n]) || '0' <= text[n] && text[n] <= '9' || text[n] == '#' && n == 1) {
			n++
		}
		if n < len(text) && text[n] == ';' {
			n++
		}
		switch string(text[:n]) { // nearly all that there are
		case "&":
			dst = append(dst, '&')
		case "&lt;":
			dst = append(dst, '<')
		case "&gt;":
			dst = append(dst, '>')
		case "&amp;":
			dst = append(dst, '&')
		case "&quot;":
			dst = append(dst, '"')
		case "&nbsp;":
			dst = append(dst, "\u00a0"...)
		default:
			dst = append(dst, html.UnescapeString(string(text[:n]))...)
		}
		text = text[n:]
	}
}

// unescapeValue replaces the character references of an attribute's value.
// There, one without its semicolon that stands before a letter, a digit or = is
// none: the copy of "?a=1&copy=2".
func unescapeValue(v []byte) []byte {
	if bytes.IndexByte(v, '&') < 0 {
		return v
	}
	var out []byte
	for {
		i := bytes.IndexByte(v, '&')
		if i < 0 {
			return append(out, v...)
		}
		out = append(out, v[:i]...)
		n := i + 1
		for n < len(v) && (v[n] == '#' && n == i+1 || isLetter(v[n]) || '0' <= v[n] && v[n] <= '9') {
			n++
		}
		whole := n < len(v) && v[n] == ';'
		if whole {
			n++
		}
		ref := string(v[i:n])
		text := html.UnescapeString(ref)
		if whole && strings.HasSuffix(text, ";") || !whole && !strings.HasPrefix(ref, "&#") && (n < len(v) && v[n] == '=' || len([]rune(text)) > 1) {
			text = ref
		}
		out = append(out, text...)
		v = v[n:]
	}
}
