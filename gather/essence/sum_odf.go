package essence

import (
	"bytes"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// sumODF summarizes OpenDocument: text, sheets, slides and drawings, as a zip
// file or flat.
func sumODF(w *worker, o *soif.Object, c *content, text []byte) {
	d := w.document()
	defer func() { d.put(w, o, c) }()
	if !bytes.HasPrefix(text, []byte("PK")) {
		s := &xmlScanner{b: decode(text, "")}
		odfMeta(d, s)
		s.i = 0
		odfBody(d, s)
		return
	}
	p, err := w.parcel(c)
	if err != nil {
		w.limit(c, "zip: "+err.Error())
		return
	}
	if bytes.Contains(p.part("META-INF/manifest.xml"), []byte("encryption-data")) {
		w.limit(c, "content.xml: is encrypted")
		odfMeta(d, p.xml("meta.xml"))
		return
	}
	odfMeta(d, p.xml("meta.xml"))
	if c.typ == "ODFormula" {
		odfFormula(d, p.xml("content.xml"))
		return
	}
	odfBody(d, p.xml("content.xml"))
}

// odfFormula reads a formula: what its author typed, where that is kept beside the
// MathML, or else the names, numbers and operators of that.
func odfFormula(d *document, s *xmlScanner) {
	typed := ""
	for k := s.next(); k != xmlEnd; k = s.next() {
		switch {
		case k == xmlText:
			d.add(s.text)
		case k == xmlClose:
			d.space(' ')
		case string(s.name) == "annotation":
			typed = words(s.inner())
		}
	}
	if typed != "" {
		d.text = append(d.text[:0], cutText([]byte(typed), len(d.text)+d.room)...)
	}
}

// odfMeta reads what stands in office:meta.
func odfMeta(d *document, s *xmlScanner) {
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k == xmlClose && string(s.name) == "meta" {
			return
		}
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "body": // flat, without office:meta
			return
		case "title":
			d.title = s.inner()
		case "initial-creator":
			d.author = s.inner()
		case "creator":
			if by := s.inner(); d.author == "" {
				d.author = by
			}
		case "subject":
			d.subject = s.inner()
		case "description":
			d.description = s.inner()
		case "keyword":
			d.keywords = append(d.keywords, s.inner())
		case "language":
			d.language = s.inner()
		case "creation-date":
			d.created = isoTime(s.inner())
		case "date":
			d.modified = isoTime(s.inner())
		case "generator":
			d.generator = s.inner()
		case "user-defined":
			if name := s.attr("name"); name != "" {
				if v := s.inner(); v != "" {
					d.extra("Meta-"+attrName(name), v)
				}
			}
		case "document-statistic":
			d.pages, _ = strconv.Atoi(s.attr("page-count"))
		}
	}
}

// attrName makes an attribute's name of words.
func attrName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, string(cutText([]byte(words(s)), 60)))
}

// odfBody reads what stands in office:body. Deleted text that is kept as a
// change is not text, and remarks are comments.
func odfBody(d *document, s *xmlScanner) {
	in, title := false, false
	outline, cells := 0, 0 // where a heading begins; how deep in tables the text is
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		switch {
		case k == xmlOpen && name == "body":
			in = true
		case !in:
		case k == xmlText:
			d.blanks(s.text)
		case k == xmlClose:
			switch name {
			case "body":
				return
			case "h":
				d.heading(string(d.text[min(outline, len(d.text)):]))
				d.gap(2)
			case "p":
				d.gap(2 - min(cells, 1))
			case "table-row":
				d.gap(1)
			case "table":
				d.gap(2)
			case "table-cell":
				cells = max(cells-1, 0)
				d.text = append(noNewline(d.text), '\t')
			case "frame":
				if title {
					d.heading(string(d.text[min(outline, len(d.text)):]))
				}
				title = false
			case "page":
				d.gap(2)
			}
		case name == "table-cell":
			cells++
		case name == "h":
			outline = len(d.text)
		case name == "frame":
			title, outline = s.attr("presentation:class") == "title", len(d.text)
		case name == "table":
			d.sheetName(s)
		case name == "s":
			n, _ := strconv.Atoi(s.attr("c"))
			d.add(bytes.Repeat([]byte(" "), min(max(n, 1), 80)))
		case name == "tab":
			d.space('\t')
		case name == "line-break":
			d.gap(1)
		case name == "note-body":
			d.space(' ')
		case name == "a":
			d.link(s.attr("href"))
		case name == "annotation":
			d.comment(s.inner())
		case name == "tracked-changes", name == "note-citation", name == "forms", name == "scripts", name == "page-number", name == "sequence-decls":
			s.skip()
		}
	}
}

// sheetName keeps the name of a table as a heading, unless it is one that a
// program has given.
func (d *document) sheetName(s *xmlScanner) {
	name := s.attr("table:name")
	if low := strings.ToLower(name); strings.HasPrefix(low, "table") || strings.HasPrefix(low, "tabelle") {
		return
	}
	d.heading(name)
}

// blanks adds text in which any blanks are one, as in XML made to be read.
func (d *document) blanks(text []byte) {
	room := len(d.text)
	d.text = appendWords(d.text, text)
	if d.room -= len(d.text) - room; d.room < 0 {
		d.text = d.text[:max(len(d.text)+d.room, 0)]
		d.room, d.cut = 0, true
	}
}
