package essence

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"harvest/gather/soif"
)

// A relation of a part of an OOXML document leads to another part, or out of
// the document.
type relation struct {
	kind, target string // the last part of the type's URL
	external     bool
}

// ooxml is an OOXML document being read.
type ooxml struct {
	*parcel
	d *document
}

// sumOOXML summarizes what Word, Excel, PowerPoint and Visio write since 2007, and
// what others write like them. Which of the four it is tells the main part.
func sumOOXML(w *worker, o *soif.Object, c *content, _ []byte) {
	p, err := w.parcel(c)
	if err != nil {
		w.limit(c, "zip: "+err.Error())
		return
	}
	x := &ooxml{parcel: p, d: w.document()}
	main := ""
	var properties []string
	rels := x.relations("")
	for _, id := range sortedKeys(rels) {
		switch r := rels[id]; r.kind {
		case "officeDocument", "document": // the second is Visio's
			main = r.target
		case "core-properties", "extended-properties":
			properties = append(properties, r.target)
		}
	}
	if main == "" {
		w.limit(c, "no main part")
		return
	}
	for _, name := range properties {
		x.properties(name)
	}
	switch dir, _, _ := strings.Cut(main, "/"); {
	case dir == "xl" || strings.Contains(path.Base(main), "workbook"):
		x.workbook(main)
	case dir == "ppt" || strings.Contains(path.Base(main), "presentation"):
		x.presentation(main)
	case dir == "visio":
		x.drawing(main)
	default:
		x.text(main)
	}
	x.d.put(w, o, c)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { // rId9 before rId10
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}

// relations are those of a part, by identifier; of the document for "".
func (x *ooxml) relations(part string) map[string]relation {
	name := path.Join(path.Dir(part), "_rels", path.Base(part)+".rels")
	if part == "" {
		name = "_rels/.rels"
	}
	m := make(map[string]relation)
	s := x.xml(name)
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen || string(s.name) != "Relationship" || len(m) >= maxParts {
			continue
		}
		r := relation{kind: path.Base(s.attr("Type")), target: s.attr("Target"), external: s.attr("TargetMode") == "External"}
		if !r.external {
			r.target = beside(part, r.target)
		}
		m[s.attr("Id")] = r
	}
	return m
}

// properties reads docProps/core.xml or app.xml.
func (x *ooxml) properties(part string) {
	d := x.d
	s := x.xml(part)
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "title":
			d.title = s.inner()
		case "creator":
			d.author = s.inner()
		case "subject":
			d.subject = s.inner()
		case "description":
			d.description = s.inner()
		case "keywords":
			d.keywords = strings.FieldsFunc(s.inner(), func(r rune) bool { return r == ',' || r == ';' })
		case "language":
			d.language = s.inner()
		case "created":
			d.created = isoTime(s.inner())
		case "modified":
			d.modified = isoTime(s.inner())
		case "category":
			d.extra("Category", s.inner())
		case "Application":
			d.generator = s.inner()
		case "Company":
			d.publisher = s.inner()
		case "Pages", "Slides":
			d.pages, _ = strconv.Atoi(s.inner())
		}
	}
}

// text reads a document of words: its main part, then what stands beside it.
func (x *ooxml) text(main string) {
	rels := x.relations(main)
	var styles map[string]string
	for _, r := range rels {
		if r.kind == "styles" {
			styles = x.styles(r.target)
		}
	}
	x.prose(main, rels, styles)
	for _, id := range sortedKeys(rels) {
		switch r := rels[id]; r.kind {
		case "footnotes", "endnotes", "header", "footer":
			x.d.gap(2)
			x.prose(r.target, x.relations(r.target), nil)
		case "comments":
			x.remarks(r.target, "comment")
		}
	}
}

// styles are the names of paragraph styles that make headings, by identifier.
func (x *ooxml) styles(part string) map[string]string {
	m := make(map[string]string)
	id := ""
	s := x.xml(part)
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "style":
			id = s.attr("styleId")
		case "name":
			if n := strings.ToLower(s.attr("val")); n == "title" || strings.HasPrefix(n, "heading ") {
				m[id] = n
			}
		case "basedOn":
			if n := m[s.attr("val")]; m[id] == "" && strings.HasPrefix(n, "heading ") {
				m[id] = n
			}
		case "outlineLvl":
			if m[id] == "" && s.attr("val") != "9" {
				m[id] = "heading"
			}
		}
	}
	return m
}

// A prose is where the reading of WordprocessingML stands.
type prose struct {
	x      *ooxml
	rels   map[string]relation
	styles map[string]string
	style  string // of the paragraph, if it is a heading's
	field  string // the instruction that is being told
	hidden bool
	start  int // of the paragraph in the text
	cells  int // how deep in tables it is
}

// prose reads WordprocessingML: paragraphs, tables, links, fields. What was
// deleted and is only kept as a change is not text, nor is the form of something
// for readers that know it only in another.
func (x *ooxml) prose(part string, rels map[string]relation, styles map[string]string) {
	p := prose{x: x, rels: rels, styles: styles}
	s := x.xml(part)
	for k := s.next(); k != xmlEnd; k = s.next() {
		switch k {
		case xmlText:
		case xmlClose:
			p.close(string(s.name))
		default:
			if !p.text(s) {
				p.form(s)
			}
		}
	}
}

// close ends a paragraph or a part of a table.
func (p *prose) close(name string) {
	d := p.x.d
	switch name {
	case "p":
		if p.start = min(p.start, len(d.text)); p.style != "" {
			p.x.headed(p.style, string(d.text[p.start:]))
		}
		d.gap(2 - min(p.cells, 1))
		p.style, p.start = "", len(d.text)
	case "tc":
		p.cells = max(p.cells-1, 0)
		d.text = append(noNewline(d.text), '\t')
	case "tr":
		d.gap(1)
	case "tbl":
		d.gap(2)
	}
}

// text takes an element that is text, or white space.
func (p *prose) text(s *xmlScanner) bool {
	d := p.x.d
	switch string(s.name) {
	case "t":
		if !p.hidden {
			d.addInner(s)
		}
	case "tab", "ptab":
		d.space('\t')
	case "br", "cr":
		d.gap(1)
	case "noBreakHyphen":
		d.add([]byte("-"))
	default:
		return false
	}
	return true
}

// form takes an element that tells how text is meant, and where links lead.
func (p *prose) form(s *xmlScanner) {
	d := p.x.d
	switch string(s.name) {
	case "p":
		p.start = min(p.start, len(d.text)) // the end of a cell takes newlines away
	case "tc":
		p.cells++
	case "r":
		p.hidden = false
	case "vanish":
		p.hidden = s.attr("val") != "0" && s.attr("val") != "false"
	case "pStyle":
		if p.style == "" {
			p.style = headingStyle(s.attr("val"), p.styles)
		}
	case "outlineLvl":
		if s.attr("val") != "9" {
			p.style = "heading"
		}
	case "tabs", "Fallback", "del", "moveFrom", "sectPr":
		s.skip()
	case "hyperlink":
		if r := p.rels[s.attr("r:id")]; r.external {
			d.link(r.target)
		}
	case "fldSimple":
		d.link(fieldLink(s.attr("instr")))
	case "instrText":
		p.field += s.inner() + " "
		d.link(fieldLink(p.field))
	case "fldChar":
		p.field = ""
	}
}

func noNewline(text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == '\n' {
		text = text[:len(text)-1]
	}
	return text
}

// addInner adds the text of the element whose start tag was read, blanks and
// all.
func (d *document) addInner(s *xmlScanner) {
	for {
		switch s.next() {
		case xmlText:
			d.add(s.text)
		default:
			return
		}
	}
}

// headingStyle is the name of a paragraph style if it makes a heading. Styles
// that are told nowhere have names that tell.
func headingStyle(id string, styles map[string]string) string {
	if n, ok := styles[id]; ok {
		return n
	}
	if low := strings.ToLower(id); strings.HasPrefix(low, "heading") || low == "title" {
		return low
	}
	return ""
}

func (x *ooxml) headed(style, text string) {
	if style == "title" {
		if x.d.title == "" {
			x.d.title = words(text)
		}
		return
	}
	x.d.heading(text)
}

// fieldLink is where a HYPERLINK field leads.
func fieldLink(instr string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(instr), "HYPERLINK")
	if !ok {
		return ""
	}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, `"`) {
		url, _, ok := strings.Cut(rest[1:], `"`)
		if ok {
			return url
		}
		return ""
	}
	if strings.HasPrefix(rest, `\`) { // into the document
		return ""
	}
	url, _, _ := strings.Cut(rest, " ")
	return url
}

// remarks reads comments, an element of the name each.
func (x *ooxml) remarks(part, element string) {
	s := x.xml(part)
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k == xmlOpen && string(s.name) == element {
			author := s.attr("author")
			text := s.inner()
			if author != "" && text != "" {
				text = author + ": " + text
			}
			x.d.comment(text)
		}
	}
}

// presentation reads the slides in the order they are shown.
func (x *ooxml) presentation(main string) {
	rels := x.relations(main)
	s := x.xml(main)
	n := 0
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen || string(s.name) != "sldId" {
			continue
		}
		if r, ok := rels[s.attr("r:id")]; ok && r.kind == "slide" && n < maxParts {
			n++
			x.slide(r.target)
		}
	}
	if n > 0 {
		x.d.pages = n
	}
}

// slide reads a slide, then its diagrams, notes and comments.
func (x *ooxml) slide(part string) {
	rels := x.relations(part)
	x.shapes(part, rels, true)
	for _, id := range sortedKeys(rels) {
		switch r := rels[id]; r.kind {
		case "diagramData", "chart":
			x.shapes(r.target, nil, false)
		case "notesSlide":
			x.shapes(r.target, x.relations(r.target), false)
		case "comments":
			x.remarks(r.target, "cm")
		}
	}
	x.d.gap(2)
}

// shapes reads DrawingML: a paragraph a line, the title's shape as a heading.
func (x *ooxml) shapes(part string, rels map[string]relation, titled bool) {
	d := x.d
	s := x.xml(part)
	role, start, number := "", 0, false
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		switch {
		case k == xmlText:
		case k == xmlClose:
			switch name {
			case "sp":
				if start = min(start, len(d.text)); titled && strings.HasSuffix(strings.ToLower(role), "title") && role != "subTitle" {
					d.heading(string(d.text[start:]))
				}
				role = ""
			case "p":
				d.gap(1)
			case "tc":
				d.text = append(noNewline(d.text), '\t')
			case "tr":
				d.gap(1)
			case "fld":
				number = false
			}
		case name == "sp":
			start = len(d.text)
		case name == "ph":
			role = s.attr("type")
			if role == "sldNum" || role == "dt" || role == "sldImg" {
				number = true
			}
		case name == "txBody":
			if number {
				s.skip()
			}
			number = false
		case name == "t":
			d.addInner(s)
		case name == "br":
			d.gap(1)
		case name == "v" && !titled: // of a chart
			d.addInner(s)
			d.space(' ')
		case name == "Fallback":
			s.skip()
		case name == "hlinkClick":
			if r := rels[s.attr("r:id")]; r.external {
				d.link(r.target)
			}
		}
	}
}
