package soif

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Clean takes attributes out of o whose values are not text, if binary is set, and
// cuts Keywords, those of members and numbered ones too, to so many bytes after the
// last word that fits, unless it is 0. Values are cut where they are.
func (o *Object) Clean(binary bool, keywords int) {
	kept := o.Attrs[:0]
	for _, a := range o.Attrs {
		if binary && isBinary(a.Value) {
			continue
		}
		if keywords > 0 && isKeywords(a.Name) {
			a.Value = cutWords(a.Value, keywords)
		}
		kept = append(kept, a)
	}
	o.Attrs = kept
}

// isBinary reports whether b has a control character that text has not.
func isBinary(b []byte) bool {
	for _, c := range b {
		if c < ' ' && !(c >= '\b' && c <= '\r') && c != '\x1b' || c == 0x7f {
			return true
		}
	}
	return false
}

// isKeywords reports whether name is Keywords, perhaps of a member, perhaps
// numbered.
func isKeywords(name string) bool {
	for range Depth(name) {
		_, name, _ = strings.Cut(name, "-")
	}
	o := Object{Attrs: []Attr{{Name: name}}}
	for range o.Values("Keywords") {
		return true
	}
	return false
}

// cutWords cuts b to at most n bytes, after a word if there is one that fits,
// and not inside of a character.
func cutWords(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	head := b[:n]
	if i := bytes.LastIndexAny(b[:n+1], " \t\r\n"); i > 0 {
		return bytes.TrimRight(head[:i], " \t\r\n")
	}
	for len(head) > 0 && !utf8.RuneStart(b[len(head)]) {
		head = head[:len(head)-1]
	}
	return head
}
