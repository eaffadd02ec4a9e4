package essence

import (
	"bytes"
	"html"
	"strings"

	"harvest/gather/soif"
)

// xmlFamily are the types marked by tags of their own.
func xmlFamily() map[string]entry {
	return map[string]entry{
		"XML":     {sum: sumXML},
		"DocBook": {sum: sumXML},
		"SGML":    {sum: sumXML},
		"Feed":    {sum: sumFeed, bytes: true},
	}
}

type tagKind byte

const (
	tagText tagKind = iota
	tagOpen
	tagClose
	tagComment
	tagDecl // <! … >
	tagProc // <? … ?>
)

// An tagScan goes through text with tags, whatever is wrong with it: what does
// not close ends with the text.
type tagScan struct {
	b     []byte
	i     int
	kind  tagKind
	raw   []byte // what stands there, marks left out
	name  []byte // of a tag, without its prefix, as it is written
	empty bool   // <name/>
	cdata bool
}

// next goes to the next piece.
func (z *tagScan) next() bool {
	if z.i >= len(z.b) {
		return false
	}
	rest := z.b[z.i:]
	z.cdata = false
	if rest[0] != '<' || len(rest) == 1 {
		n := bytes.IndexByte(rest[1:], '<') + 1
		if n == 0 {
			n = len(rest)
		}
		z.kind, z.raw = tagText, rest[:n]
		z.i += n
		return true
	}
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		z.mark(tagComment, 4, "-->")
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		z.mark(tagText, 9, "]]>")
		z.cdata = true
	case rest[1] == '?':
		z.mark(tagProc, 2, ">")
	case rest[1] == '!':
		z.declaration(rest)
	case rest[1] == '/':
		z.mark(tagClose, 2, ">")
		z.name = local(firstTag(z.raw))
	case rest[1]|0x20 >= 'a' && rest[1]|0x20 <= 'z' || rest[1] == '_' || rest[1] >= 0x80:
		z.tag(rest)
	default:
		z.kind, z.raw = tagText, rest[:1]
		z.i++
	}
	return true
}

// mark takes what stands between an opening of n bytes and close.
func (z *tagScan) mark(kind tagKind, n int, close string) {
	rest := z.b[z.i+n:]
	end := bytes.Index(rest, []byte(close))
	if end < 0 {
		z.kind, z.raw = kind, rest
		z.i = len(z.b)
		return
	}
	z.kind, z.raw = kind, rest[:end]
	z.i += n + end + len(close)
}

// declaration takes <!DOCTYPE … [ … ]>: what is in the brackets is read as
// pieces of its own.
func (z *tagScan) declaration(rest []byte) {
	n, quote := 2, byte(0)
	for ; n < min(len(rest), 8<<10); n++ {
		if c := rest[n]; quote != 0 {
			if c == quote {
				quote = 0
			}
		} else if c == '"' || c == '\'' {
			quote = c
		} else if c == '[' || c == '>' {
			break
		}
	}
	if n >= min(len(rest), 8<<10) {
		if n = bytes.IndexAny(rest, "[>"); n < 0 {
			n = len(rest) - 1
		}
	}
	z.kind, z.raw = tagDecl, rest[2:max(n, 2)]
	z.i += n + 1
}

// tag takes an opening tag, > in quotes left alone.
func (z *tagScan) tag(rest []byte) {
	i, quote := 1, byte(0)
	for ; i < len(rest); i++ {
		if c := rest[i]; quote != 0 {
			if c == quote {
				quote = 0
			}
		} else if c == '"' || c == '\'' {
			quote = c
		} else if c == '>' || c == '<' {
			break
		}
	}
	raw := rest[1:i]
	z.kind, z.empty = tagOpen, len(raw) > 0 && raw[len(raw)-1] == '/'
	z.raw = raw
	z.name = local(firstTag(raw))
	if z.i += i; z.i < len(z.b) && z.b[z.i] == '>' {
		z.i++
	}
}

func firstTag(b []byte) []byte {
	if i := bytes.IndexAny(b, " \t\r\n/>"); i >= 0 {
		return b[:i]
	}
	return b
}

func local(name []byte) []byte {
	if i := bytes.LastIndexByte(name, ':'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// text is a piece of text with its references resolved.
func (z *tagScan) text() []byte {
	if z.cdata || bytes.IndexByte(z.raw, '&') < 0 {
		return z.raw
	}
	return []byte(html.UnescapeString(string(z.raw)))
}

// attr is the value of an attribute of the tag, its name without a prefix.
func (z *tagScan) attr(name string) string {
	b := z.raw
	for range 200 {
		i := bytes.IndexByte(b, '=')
		if i < 0 {
			return ""
		}
		key := bytes.TrimSpace(b[:i])
		if j := bytes.LastIndexAny(key, " \t\r\n"); j >= 0 {
			key = key[j+1:]
		}
		b = bytes.TrimLeft(b[i+1:], " \t\r\n")
		if len(b) == 0 {
			return ""
		}
		end := bytes.IndexAny(b, " \t\r\n")
		value := b
		if b[0] == '"' || b[0] == '\'' {
			if end = bytes.IndexByte(b[1:], b[0]); end < 0 {
				return ""
			}
			value, b = b[1:1+end], b[end+2:]
		} else if end >= 0 {
			value, b = b[:end], b[end:]
		} else {
			b = nil
		}
		if string(local(key)) == name && !(name == "xmlns" && len(local(key)) != len(key)) {
			return html.UnescapeString(string(value))
		}
	}
	return ""
}

// An xmlSummary is what is kept of a document while it is read.
type xmlSummary struct {
	w         *worker
	root      string
	namespace string
	doctype   string
	path      []string // elements that are open
	text      []byte
	values    map[string]*list // by attribute
	comments  []byte
	catch     []catch // elements whose text is wanted
	elements  *list   // that a DTD declares
	entities  map[string]string
	grown     int // by entities
}

// A catch is an element whose text becomes a value.
type catch struct {
	depth int
	attr  string
	start int // in the text
}

// xmlAttributes are the elements whose text says what an attribute holds, in
// DocBook, TEI, OPF, Dublin Core, Ant, Maven and what people write themselves.
var xmlAttributes = map[string]string{
	"title": "Title", "titleabbrev": "", "subtitle": "Subject", "docname": "Title", "name": "Name", "label": "Name",
	"author": "Author", "creator": "Author", "editor": "Author", "othercredit": "Author", "developer_name": "Author",
	"abstract": "Abstract", "description": "Description", "summary": "Description", "refpurpose": "Description", "desc": "Description",
	"refentrytitle": "Headings", "refname": "Title", "head": "Headings", "heading": "Headings", "header": "Headings",
	"subject": "Subject", "keyword": "Keywords", "keywords": "Keywords", "pubdate": "Date", "date": "Date", "updated": "Date", "modified": "Date",
	"language": "Language", "publisher": "Publisher", "license": "License", "version": "Version", "releaseinfo": "Version",
}

// sumXML summarizes a document marked by tags: its root, title, headings, people
// and text, and what a DTD declares.
func sumXML(w *worker, o *soif.Object, c *content, text []byte) {
	x := &xmlSummary{w: w, values: make(map[string]*list), elements: w.list(), entities: make(map[string]string)}
	z := tagScan{b: text}
	for z.next() {
		x.piece(&z)
	}
	for len(x.path) > 0 {
		x.close()
	}
	title := x.first("Title")
	if title == "" {
		title = x.first("Name")
	}
	if title == "" {
		title = c.name
	}
	w.set(o, "Title", title)
	w.set(o, "Author", x.value("Author"))
	w.set(o, "Abstract", x.first("Abstract"))
	description := x.first("Description")
	if description == "" && x.first("Abstract") == "" {
		description = firstParagraph(x.text, 400)
	}
	w.set(o, "Description", string(cutText([]byte(description), 400)))
	w.set(o, "Headings", x.headings(title))
	for _, name := range []string{"Subject", "Date", "Language", "Publisher", "License", "Version"} {
		w.set(o, name, x.value(name))
	}
	w.set(o, "Root-Element", x.root)
	w.set(o, "Namespace", x.namespace)
	w.set(o, "Document-Type", x.doctype)
	w.set(o, "Symbols", strings.ReplaceAll(x.elements.String(), "\n", " "))
	w.set(o, "URL-References", x.value("URL-References"))
	if k := x.value("Keywords"); k != "" {
		w.set(o, "Keywords", words(k))
	} else {
		w.set(o, "Keywords", keywords(x.text, 30))
	}
	w.set(o, "Comments", strings.TrimSpace(string(x.comments)))
	w.fullText(o, c, plainText(x.text))
}

// headings are the titles after the document's own.
func (x *xmlSummary) headings(title string) string {
	l := x.w.list()
	for _, name := range []string{"Title", "Headings", "Name"} {
		for t := range strings.SplitSeq(x.value(name), "\n") {
			if t != title {
				l.add(t)
			}
		}
	}
	return l.String()
}

func (x *xmlSummary) value(name string) string {
	if l := x.values[name]; l != nil {
		return l.String()
	}
	return ""
}

func (x *xmlSummary) first(name string) string {
	v, _, _ := strings.Cut(x.value(name), "\n")
	return v
}

func (x *xmlSummary) add(name, text string) {
	if x.values[name] == nil {
		x.values[name] = x.w.list()
	}
	x.values[name].add(text)
}

// maxTags bounds the elements that are followed into one another.
const maxTags = 256

// piece takes a piece of the document.
func (x *xmlSummary) piece(z *tagScan) {
	switch z.kind {
	case tagText:
		x.text = appendWords(x.text, x.resolve(z.text()))
	case tagComment:
		if t := bytes.TrimSpace(z.raw); len(t) > 0 && len(x.comments) < x.w.lim.Attr && letters(t, 4) {
			x.comments = appendComment(x.comments, t, x.w.lim.Attr)
		}
	case tagDecl:
		x.declare(z.raw)
	case tagOpen:
		x.open(z)
	case tagClose:
		name := strings.ToLower(string(z.name))
		for i := len(x.path) - 1; i >= 0; i-- {
			if x.path[i] == name {
				for len(x.path) > i {
					x.close()
				}
				break
			}
		}
	}
}

func (x *xmlSummary) open(z *tagScan) {
	name := strings.ToLower(string(z.name))
	if x.root == "" {
		x.root, x.namespace = string(z.name), z.attr("xmlns")
	}
	for _, a := range []string{"href", "url", "src"} {
		if bytes.Contains(z.raw, []byte(a)) {
			if v := z.attr(a); len(v) > 0 && len(v) < 2048 {
				x.add("URL-References", v)
			}
		}
	}
	if !inlineTags[name] {
		x.text = newLine(x.text)
	}
	if z.empty || len(x.path) >= maxTags {
		return
	}
	x.path = append(x.path, name)
	if a := xmlAttributes[name]; a != "" && len(x.catch) < 16 {
		if a == "Title" && len(x.path) > 2 && x.values["Title"] != nil {
			a = "Headings"
		}
		x.catch = append(x.catch, catch{len(x.path), a, len(x.text)})
	}
}

// inlineTags are elements that do not end the line they stand in.
var inlineTags = wordSet("emphasis literal command filename option b i em strong tt code a ulink link xref span sub sup firstterm function varname replaceable quote acronym systemitem type constant parameter application package envar prompt userinput computeroutput citerefentry manvolnum firstname surname othername honorific")

func newLine(text []byte) []byte {
	text = bytes.TrimRight(text, " ")
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text, '\n')
	}
	return text
}

// close leaves the innermost element.
func (x *xmlSummary) close() {
	depth := len(x.path)
	if n := len(x.catch); n > 0 && x.catch[n-1].depth == depth {
		k := x.catch[n-1]
		x.catch = x.catch[:n-1]
		if t := x.text[min(k.start, len(x.text)):]; len(t) < 4096 {
			x.add(k.attr, words(t))
		}
	}
	if !inlineTags[x.path[depth-1]] {
		x.text = newLine(x.text)
	}
	x.path = x.path[:depth-1]
}

// declare takes <!DOCTYPE …> and what a DTD declares.
func (x *xmlSummary) declare(raw []byte) {
	f := strings.Fields(string(raw[:min(len(raw), 1000)]))
	if len(f) < 2 {
		return
	}
	switch strings.ToUpper(f[0]) {
	case "DOCTYPE":
		x.doctype = words(raw[min(len(raw), len("DOCTYPE")):min(len(raw), 500)])
	case "ELEMENT":
		for n := range strings.FieldsFuncSeq(strings.Trim(f[1], "()"), func(r rune) bool { return r == '|' }) {
			x.elements.add(n)
		}
	case "ENTITY":
		if f[1] == "%" && len(f) > 2 {
			x.elements.add("%" + f[2])
		} else {
			x.elements.add("&" + f[1])
			if v := strings.Trim(words(raw[bytes.Index(raw, []byte(f[1]))+len(f[1]):]), `"'`); len(v) < 1000 && len(x.entities) < 1000 {
				x.entities[f[1]] = v
			}
		}
	}
}

// resolve puts the values of a document's own entities in their places; values
// are not looked into again, so that nothing grows without end.
func (x *xmlSummary) resolve(text []byte) []byte {
	if len(x.entities) == 0 || bytes.IndexByte(text, '&') < 0 {
		return text
	}
	return ownEntity().ReplaceAllFunc(text, func(ref []byte) []byte {
		if v, ok := x.entities[string(ref[1:len(ref)-1])]; ok && x.grown < 64<<10 {
			x.grown += len(v)
			return markedText(v)
		}
		return ref
	})
}

var ownEntity = expression(`&[A-Za-z_][\w.-]*;`)
