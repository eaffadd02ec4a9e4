package catalog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"harvest/gather/soif"
)

// # BibTeX
//
// An entry is a DOCUMENT with its kind in Entry-Type and its key in Citation-Key. Fields
// are attributes of their names with a capital; of author and editor each name is
// a value; url is the URL, or else doi, or else the key in the catalogue. @string
// is put in, months are as BibTeX has them, @comment and @preamble are passed over,
// as is all text outside of entries. Values are one line: their braces go, and what
// TeX writes as a command (texText) becomes the character.

// What BibTeX and SOIF call the same.
const (
	entryType   = "Entry-Type"
	citationKey = "Citation-Key"
)

type bibReader struct {
	r         *bufio.Reader
	base      string
	line, col int // of the byte read last
	size      int // of the entry
	n         int
	macros    map[string]string
	defined   int // bytes of @string
	err       error
}

func newBibReader(r io.Reader, base string) Reader {
	b := &bibReader{r: bufio.NewReaderSize(r, 32<<10), base: base, line: 1, macros: make(map[string]string)}
	for _, m := range []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"} {
		b.macros[strings.ToLower(m[:3])] = m
	}
	return b
}

// maxMacros bounds what @string defines, in bytes.
const maxMacros = 1 << 20

func (b *bibReader) errorf(format string, arg ...any) error {
	return &Error{b.line, max(b.col, 1), fmt.Sprintf(format, arg...)}
}

func (b *bibReader) byte() (byte, error) {
	c, err := b.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if c == '\n' {
		b.line, b.col = b.line+1, 0
	} else {
		b.col++
	}
	if b.size++; b.size > MaxRecord {
		return 0, b.errorf("an entry of over %d bytes", MaxRecord)
	}
	return c, nil
}

func (b *bibReader) unread(c byte) {
	b.r.UnreadByte()
	b.size--
	if b.col--; c == '\n' {
		b.line--
	}
}

func (b *bibReader) Next() (soif.Object, error) {
	for b.err == nil {
		o, ok, err := b.entry()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = b.errorf("the text ends inside of an entry")
		}
		if err == nil && ok {
			return o, nil
		}
		b.err = err
	}
	return soif.Object{}, b.err
}

// entry reads up to the end of the next entry, or what looks like one; ok is false
// for those that describe nothing. io.EOF is the end.
func (b *bibReader) entry() (o soif.Object, ok bool, err error) {
	for c := byte(0); c != '@'; {
		b.size = 0
		if c, err = b.byte(); err != nil {
			return o, false, err
		}
	}
	kind, err := b.word()
	if err == nil && kind == "" {
		return o, false, nil // an @ in the text outside
	}
	if err != nil {
		return o, false, whole(err)
	}
	open, err := b.solid()
	if err != nil {
		return o, false, whole(err)
	}
	if same(kind, "comment") && open != '{' && open != '(' {
		return o, false, nil
	}
	if open != '{' && open != '(' {
		return o, false, b.errorf("%q where the { of @%.40s should be", open, kind)
	}
	end := byte('}')
	if open == '(' {
		end = ')'
	}
	switch strings.ToLower(kind) {
	case "comment", "preamble":
		_, err = b.balanced(end)
		return o, false, whole(err)
	case "string":
		return o, false, whole(b.define(end))
	}
	o, err = b.fields(kind, end)
	return o, err == nil, whole(err)
}

// whole is what the end of the input means inside of an entry.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// solid gives the next byte that is no white space.
func (b *bibReader) solid() (byte, error) {
	for {
		c, err := b.byte()
		if err != nil || strings.IndexByte(" \t\r\n", c) < 0 {
			return c, err
		}
	}
}

// word reads a name, after white space: it may be empty.
func (b *bibReader) word() (string, error) {
	var w strings.Builder
	c, err := b.solid()
	for ; err == nil; c, err = b.byte() {
		if strings.IndexByte(" \t\r\n{}(),=#\"%@'\\", c) >= 0 {
			b.unread(c)
			return w.String(), nil
		}
		w.WriteByte(c)
	}
	return w.String(), err
}

// balanced reads up to end, outside of braces, which it takes.
func (b *bibReader) balanced(end byte) (string, error) {
	var t strings.Builder
	depth := 0
	for {
		c, err := b.byte()
		switch {
		case err != nil:
			return "", err
		case c == '\\':
			t.WriteByte(c)
			if c, err = b.byte(); err != nil {
				return "", err
			}
			if c == '{' || c == '}' { // BibTeX counts these too, and so must balance
				b.unread(c)
				continue
			}
		case c == end && depth == 0:
			return t.String(), nil
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth < 0 {
				return "", b.errorf("a } too many")
			}
		}
		t.WriteByte(c)
	}
}

// value reads a field's value: texts, numbers and names of macros, joined by #.
func (b *bibReader) value() (string, error) {
	var v strings.Builder
	for {
		c, err := b.solid()
		if err != nil {
			return "", err
		}
		switch c {
		case '{', '"':
			end := c
			if c == '{' {
				end = '}'
			}
			text, err := b.balanced(end)
			if err != nil {
				return "", err
			}
			v.WriteString(text)
		default:
			b.unread(c)
			w, err := b.word()
			if err != nil {
				return "", err
			}
			if w == "" {
				return "", b.errorf("%q where a value should be", c)
			}
			if m, ok := b.macros[strings.ToLower(w)]; ok {
				w = m
			}
			v.WriteString(w)
		}
		if v.Len() > MaxRecord { // macros of macros
			return "", b.errorf("a value of over %d bytes", MaxRecord)
		}
		c, err = b.solid()
		if err != nil {
			return "", err
		}
		if c != '#' {
			b.unread(c)
			return v.String(), nil
		}
	}
}

// pair reads NAME = VALUE.
func (b *bibReader) pair() (name, value string, err error) {
	if name, err = b.word(); err != nil {
		return "", "", err
	}
	c, err := b.solid()
	if err != nil {
		return "", "", err
	}
	if c != '=' || name == "" {
		return "", "", b.errorf("%q where NAME = VALUE should be", name+string(rune(c)))
	}
	value, err = b.value()
	return name, value, err
}

func (b *bibReader) define(end byte) error {
	name, value, err := b.pair()
	if err != nil {
		return err
	}
	if b.defined += len(name) + len(value); b.defined > maxMacros {
		return b.errorf("over %d bytes of @string", maxMacros)
	}
	b.macros[strings.ToLower(name)] = value
	c, err := b.solid()
	if err == nil && c != end {
		err = b.errorf("%q where the %c of @string should be", c, end)
	}
	return err
}

// fields reads an entry after its {.
func (b *bibReader) fields(kind string, end byte) (soif.Object, error) {
	o := soif.Object{Type: "DOCUMENT"}
	add(&o, entryType, strings.ToLower(kind))
	key, err := b.key(end)
	if err != nil {
		return o, err
	}
	add(&o, citationKey, key)
	doi := ""
	for {
		c, err := b.solid()
		if err != nil {
			return o, err
		}
		if c == end {
			break
		}
		if c == ',' {
			continue
		}
		b.unread(c)
		name, value, err := b.pair()
		if err != nil {
			return o, err
		}
		switch strings.ToLower(name) {
		case "url":
			if u := strings.TrimSpace(texText(value)); o.URL == "" && isURL(u) {
				o.URL = u
				continue
			}
		case "doi":
			doi = strings.TrimSpace(texText(value))
		}
		bibAttribute(&o, name, value)
	}
	b.n++
	switch {
	case o.URL != "":
	case doi != "" && !strings.ContainsAny(doi, " \t"):
		o.URL = doiURL(doi)
	default:
		o.URL = keyed(b.base, key, b.n)
	}
	return o, nil
}

func doiURL(doi string) string {
	if isURL(doi) && strings.Contains(doi, "://") {
		return doi
	}
	return "https://doi.org/" + doi
}

// key reads an entry's key, which may have what a name may not.
func (b *bibReader) key(end byte) (string, error) {
	var k strings.Builder
	for {
		c, err := b.byte()
		if err != nil {
			return "", err
		}
		if c == ',' || c == end {
			b.unread(c)
			return strings.TrimSpace(k.String()), nil
		}
		if c == '=' || c == '{' || c == '"' {
			return "", b.errorf("%q where the , after the key of an entry should be", c)
		}
		k.WriteByte(c)
	}
}

// bibAttribute adds a field.
func bibAttribute(o *soif.Object, name, value string) {
	if same(name, "author") || same(name, "editor") {
		for _, one := range splitNames(value) {
			add(o, capital(name), oneLine(texText(one)))
		}
		return
	}
	switch strings.ToLower(name) { // Type is of the document that is summarized
	case "type":
		name = "Report-Type"
	case "x-type":
		name = "Type"
	}
	add(o, capital(name), oneLine(texText(value)))
}

func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// splitNames parts names at the word and, outside of braces.
func splitNames(s string) (all []string) {
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ' ', '\t', '\n', '\r':
			if depth == 0 && i+4 < len(s) && same(s[i+1:i+4], "and") && strings.IndexByte(" \t\r\n", s[i+4]) >= 0 {
				all = append(all, s[from:i])
				from, i = i+4, i+3
			}
		}
	}
	return append(all, s[from:])
}

type bibWriter struct {
	w io.Writer
	n int
}

func newBibWriter(w io.Writer) Writer { return &bibWriter{w: w} }

func (w *bibWriter) Write(o *soif.Object) error {
	w.n++
	kind := o.Text(entryType)
	if kind == "" || strings.Trim(strings.ToLower(kind), "abcdefghijklmnopqrstuvwxyz") != "" {
		kind = "misc"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "@%s{%s", kind, w.key(o))
	put := func(name, value string) {
		fmt.Fprintf(&b, ",\n\t%s = {%s}", bibName(name), value)
	}
	if o.URL != "" && o.URL != doiURL(o.Text("Doi")) {
		put("url", texEscape(o.URL))
	}
	people := make(map[string]bool)
	unique(o, func(name string, value []byte) {
		base := unnumbered(name)
		switch {
		case same(name, entryType), same(name, citationKey):
		case same(base, "Author"), same(base, "Editor"):
			if base = strings.ToLower(base); !people[base] {
				people[base] = true
				put(base, joinNames(o, base))
			}
		case same(name, "Report-Type"):
			put("type", texEscape(oneLine(string(value))))
		case same(name, "Type"):
			put("x-type", texEscape(oneLine(string(value))))
		case same(name, "URL"):
			put("url-1", texEscape(oneLine(string(value))))
		default:
			put(name, texEscape(oneLine(string(value))))
		}
	})
	b.WriteString("\n}\n\n")
	_, err := io.WriteString(w.w, b.String())
	return err
}

func (w *bibWriter) Close() error { return nil }

// key is the object's own, or the last part of its URL.
func (w *bibWriter) key(o *soif.Object) string {
	key := o.Text(citationKey)
	if key == "" {
		key = strings.TrimRight(o.URL, "/")
		key = key[strings.LastIndexAny(key, "/#")+1:]
	}
	key = strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune("{}(),=\"#%\\~'", r) || r == 0x7f {
			return '-'
		}
		return r
	}, key)
	if key == "" {
		key = fmt.Sprintf("object%d", w.n)
	}
	return key
}

// unnumbered is a name without the number at its end.
func unnumbered(name string) string {
	base := strings.TrimRight(name, "0123456789")
	if cut, ok := strings.CutSuffix(base, "-"); ok && base != name && cut != "" {
		return cut
	}
	return name
}

func joinNames(o *soif.Object, base string) string {
	var all []string
	for v := range o.Values(base) {
		name := texEscape(oneLine(string(v)))
		if len(splitNames("x "+name+" x")) > 1 {
			name = "{" + name + "}"
		}
		all = append(all, name)
	}
	return strings.Join(all, " and ")
}

func bibName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("(),=\"#%\\~'", r) || r <= ' ' {
			return '-'
		}
		return r
	}, name))
}
