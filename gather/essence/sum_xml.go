package essence

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// What an xmlScanner stops at.
const (
	xmlEnd   = iota // of the text
	xmlOpen         // a start tag, or one that closes itself: xmlClose comes next then
	xmlClose        // an end tag
	xmlText         // character data
)

// An xmlScanner takes XML apart without asking that it is well-formed: what is
// cut or damaged gives what there is of it. It allocates nothing but for text
// with entities, and keeps no stack, so that depth costs nothing. Names are
// without their prefix: documents differ in those, and what names mean is told
// by the part they stand in.
type xmlScanner struct {
	b     []byte
	i     int
	name  []byte // of a tag
	attrs []byte // of a start tag, as written
	text  []byte
	empty bool // the start tag has closed itself
}

// next moves on and tells what it stands at.
func (x *xmlScanner) next() int {
	if x.empty {
		x.empty = false
		return xmlClose
	}
	for x.i < len(x.b) {
		if x.b[x.i] != '<' {
			end := bytes.IndexByte(x.b[x.i:], '<')
			if end < 0 {
				end = len(x.b) - x.i
			}
			x.text = xmlUnescape(x.b[x.i : x.i+end])
			x.i += end
			return xmlText
		}
		rest := x.b[x.i:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			x.past("-->", 4)
		case bytes.HasPrefix(rest, []byte("<![CDATA[")):
			start := x.i + 9
			x.past("]]>", 9)
			x.text = bytes.TrimSuffix(x.b[start:x.i], []byte("]]>"))
			return xmlText
		case bytes.HasPrefix(rest, []byte("<?")):
			x.past("?>", 2)
		case bytes.HasPrefix(rest, []byte("<!")):
			x.doctype()
		default:
			return x.tag()
		}
	}
	return xmlEnd
}

// past moves past the next mark, or to the end where there is none.
func (x *xmlScanner) past(mark string, from int) {
	at := min(x.i+from, len(x.b))
	if end := bytes.Index(x.b[at:], []byte(mark)); end >= 0 {
		x.i = at + end + len(mark)
	} else {
		x.i = len(x.b)
	}
}

// doctype moves past a declaration, and what stands in its brackets.
func (x *xmlScanner) doctype() {
	depth := 0
	for ; x.i < len(x.b); x.i++ {
		switch x.b[x.i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				x.i++
				return
			}
		}
	}
}

// tag reads a tag, whose end is the first > that is in no quotes.
func (x *xmlScanner) tag() int {
	start := x.i + 1
	end := start
	var quote byte
	for ; end < len(x.b); end++ {
		c := x.b[end]
		if quote != 0 {
			if c == quote {
				quote = 0
			}
		} else if c == '>' {
			break
		} else if c == '"' || c == '\'' {
			quote = c
		}
	}
	x.i = min(end+1, len(x.b))
	in := x.b[start:end]
	if len(in) > 0 && in[0] == '/' {
		x.name, _ = xmlName(in[1:])
		return xmlClose
	}
	if n := len(in); n > 0 && in[n-1] == '/' {
		x.empty = true
		in = in[:n-1]
	}
	x.name, x.attrs = xmlName(in)
	return xmlOpen
}

// xmlName cuts a name from what follows it, and its prefix off.
func xmlName(in []byte) (name, rest []byte) {
	end := 0
	for end < len(in) && !blank(in[end]) {
		end++
	}
	name = in[:end]
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	return name, in[end:]
}

// attr is the value of an attribute of the start tag; name has its prefix, or is
// without for one that may have any.
func (x *xmlScanner) attr(name string) string {
	in := x.attrs
	for len(in) > 0 {
		eq := bytes.IndexByte(in, '=')
		if eq < 0 {
			return ""
		}
		key := bytes.TrimSpace(in[:eq])
		in = bytes.TrimLeft(in[eq+1:], " \t\r\n")
		if len(in) == 0 {
			return ""
		}
		end := bytes.IndexByte(in[1:], in[0])
		if end < 0 || in[0] != '"' && in[0] != '\'' {
			return ""
		}
		val := in[1 : 1+end]
		in = in[2+end:]
		local := key
		if i := bytes.IndexByte(key, ':'); i >= 0 {
			local = key[i+1:]
		}
		if string(key) == name || string(local) == name {
			return string(xmlUnescape(val))
		}
	}
	return ""
}

// skip moves past the element whose start tag was read. Elements of the same
// name inside it are counted.
func (x *xmlScanner) skip() {
	name := x.name
	for depth := 1; depth > 0; {
		switch x.next() {
		case xmlEnd:
			return
		case xmlOpen:
			if bytes.Equal(x.name, name) {
				depth++
			}
		case xmlClose:
			if bytes.Equal(x.name, name) {
				depth--
			}
		}
	}
}

// inner is the text of the element whose start tag was read, of all in it.
func (x *xmlScanner) inner() string {
	name := x.name
	var out []byte
	for depth := 1; depth > 0; {
		switch x.next() {
		case xmlEnd:
			depth = 0
		case xmlText:
			out = appendWords(out, x.text)
		case xmlOpen:
			if bytes.Equal(x.name, name) {
				depth++
			}
		case xmlClose:
			if bytes.Equal(x.name, name) {
				depth--
			} else {
				out = appendWords(out, []byte(" ")) // of a list, an item each
			}
		}
	}
	return strings.TrimSpace(string(out))
}

// xmlUnescape replaces entities: those of XML, characters by number, and those
// of HTML, which books use without declaring them.
func xmlUnescape(b []byte) []byte {
	if bytes.IndexByte(b, '&') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			return append(out, b...)
		}
		out = append(out, b[:i]...)
		b = b[i:]
		end := bytes.IndexByte(b[:min(len(b), 32)], ';')
		if end < 0 {
			out = append(out, '&')
			b = b[1:]
			continue
		}
		out = appendEntity(out, b[:end+1])
		b = b[end+1:]
	}
	return out
}

func appendEntity(out, e []byte) []byte {
	switch name := string(e[1 : len(e)-1]); {
	case name == "amp":
		return append(out, '&')
	case name == "lt":
		return append(out, '<')
	case name == "gt":
		return append(out, '>')
	case name == "quot":
		return append(out, '"')
	case name == "apos":
		return append(out, '\'')
	case strings.HasPrefix(name, "#x"), strings.HasPrefix(name, "#X"):
		return appendNumber(out, name[2:], 16)
	case strings.HasPrefix(name, "#"):
		return appendNumber(out, name[1:], 10)
	default:
		return append(out, html.UnescapeString(string(e))...)
	}
}

func appendNumber(out []byte, digits string, base int) []byte {
	n, err := strconv.ParseInt(digits, base, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return append(out, "\uFFFD"...)
	}
	if n < ' ' && n != '\n' && n != '\t' {
		return append(out, ' ')
	}
	return utf8.AppendRune(out, rune(n))
}
