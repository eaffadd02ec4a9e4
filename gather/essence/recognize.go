package essence

import (
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// recognize finds the type of a content, and what told it: its URL or its name,
// unless the content belies that; then the content; then what the server says.
func (w *worker) recognize(c *content) (*kind, string) {
	t := w.tab
	if len(c.head) == 0 {
		return t.kind("Empty"), "content: empty"
	}
	s := newSight(w, c)
	named, byName := t.named(c.url, c.name)
	shown, byContent := t.shown(s)
	if shown != nil {
		c.form = shown.name
	}
	note := ""
	if byName != "" {
		note = " (" + byName + ")"
	}
	switch {
	case named == nil && shown != nil:
		return shown, byContent
	case named == nil:
		return t.guessed(s, "")
	case shown != nil && shown != named && shown.is(named):
		return shown, byContent + note
	case shown != nil && !named.is(shown):
		return shown, byContent + " (" + byName + ", belied by content)"
	case shown == nil && (named.magic || named.text && !s.isText || named.binary && s.isText):
		k, rule := t.guessed(s, byName)
		if k == named || named.is(k) && !named.magic {
			return named, byName
		}
		return k, rule + " (" + byName + ", belied by content)"
	case isWeb(c.declared) && named.text && s.isText && named.name != "HTML":
		return t.kind("HTML"), "server: " + c.declared + note // page.php
	}
	return named, byName
}

// named is the type that a URL or a name tells.
func (t *Tables) named(url, name string) (*kind, string) {
	if url != "" {
		if p := t.byurl.find(url); p != nil {
			return p.kind, "byurl: " + p.text
		}
	}
	if name != "" {
		if p := t.byname.find(name); p != nil {
			return p.kind, "byname: " + p.text
		}
	}
	return nil, ""
}

// shown is the type that a content gives away, whatever it is called.
func (t *Tables) shown(s *sight) (*kind, string) {
	for i := range t.bycontent {
		if r := &t.bycontent[i]; r.kind != nil && r.sure && r.fits(s) {
			s.c.media = r.media
			return r.kind, r.by()
		}
	}
	return nil, ""
}

// guessed is the type of a content that gives nothing away and has no telling
// name: what it looks like, and what its server says. belied is told of the name
// that it has all the same.
func (t *Tables) guessed(s *sight, belied string) (*kind, string) {
	if s.isText && isWeb(s.c.declared) {
		return t.kind("HTML"), "server: " + s.c.declared
	}
	for i := range t.bycontent {
		switch r := &t.bycontent[i]; {
		case r.kind == nil && !s.isText:
			if k, rule := t.library(s); k != nil {
				return k, rule
			}
		case r.kind == nil:
		case !r.sure && r.fits(s):
			s.c.media = r.media
			return r.kind, r.by()
		}
	}
	if k := t.ofMedia(s.c.declared); k != nil && belied == "" && !k.magic && k.text == s.isText && k.name != "Text" && k.name != "Data" {
		return k, "server: " + s.c.declared
	}
	if s.isText {
		return t.kind("Text"), "content: text"
	}
	return t.kind("Data"), "content: not text"
}

// library asks the library mimetype.
func (t *Tables) library(s *sight) (*kind, string) {
	for m := mimetype.Detect(s.head); m != nil; m = m.Parent() {
		if k := t.ofMedia(m.String()); k != nil && k.name != "Data" && k.name != "Text" && !(k.text && !s.isText) {
			s.c.media = m.String()
			return k, "mimetype: " + m.String()
		}
	}
	return nil, ""
}

func isWeb(declared string) bool {
	t, _, _ := strings.Cut(strings.ToLower(declared), ";")
	t = strings.TrimSpace(t)
	return t == "text/html" || t == "application/xhtml+xml"
}

// looksText reports whether a beginning is that of a text, in UTF-8, UTF-16, or
// an 8-bit character set: no NUL, few control bytes.
func looksText(head []byte) bool {
	head = head[:min(len(head), 8<<10)]
	if wide(head) != 0 {
		return true
	}
	odd := 0
	for i := 0; i < len(head); i++ {
		if i += withoutControl(head[i:]); i == len(head) {
			break
		}
		b := head[i]
		switch {
		case b == 0:
			return false
		case b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\b' && b != 0x1b:
			odd++
		}
	}
	return odd*20 <= len(head)
}

// withoutControl counts bytes from ' ' on at the beginning of a text, in eights: a
// byte below is the only one that the subtraction gives an upper bit it had not.
func withoutControl(b []byte) (n int) {
	const blanks, upper = 0x2020202020202020, 0x8080808080808080
	for ; len(b)-n >= 8; n += 8 {
		if x := binary.LittleEndian.Uint64(b[n:]); (x-blanks)&^x&upper != 0 {
			break
		}
	}
	return n
}
