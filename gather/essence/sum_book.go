package essence

import (
	"strings"

	"harvest/gather/soif"
)

// maxChapters bounds the parts of a book that are read.
const maxChapters = 2000

// sumEPUB summarizes an electronic book: its package document, and the chapters
// in the order they are read.
func sumEPUB(w *worker, o *soif.Object, c *content, _ []byte) {
	p, err := w.parcel(c)
	if err != nil {
		w.limit(c, "zip: "+err.Error())
		return
	}
	d := w.document()
	opf := ""
	s := p.xml("META-INF/container.xml")
	for k := s.next(); k != xmlEnd && opf == ""; k = s.next() {
		if k == xmlOpen && string(s.name) == "rootfile" {
			opf = s.attr("full-path")
		}
	}
	if opf == "" {
		w.limit(c, "no package document")
		return
	}
	if p.find("META-INF/encryption.xml") != nil && p.find("META-INF/rights.xml") != nil {
		w.limit(c, "the text is encrypted")
	}
	for i, name := range packageDocument(d, p.xml(opf)) {
		if i == maxChapters {
			w.limit(c, "only the first chapters")
			break
		}
		if d.cut {
			break
		}
		chapter(d, p.xml(beside(opf, unpercent(name))))
	}
	d.put(w, o, c)
}

// packageDocument reads an OPF file: what is said of the book, and the names of
// its chapters.
func packageDocument(d *document, s *xmlScanner) []string {
	names := make(map[string]string)
	var spine, authors []string
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "title":
			if t := s.inner(); d.title == "" {
				d.title = t
			}
		case "creator":
			if a := s.inner(); a != "" && len(authors) < 50 {
				authors = append(authors, a)
			}
		case "subject":
			d.keywords = append(d.keywords, s.inner())
		case "description":
			d.description = fragment(s.inner())
		case "language":
			d.language = s.inner()
		case "publisher":
			d.publisher = s.inner()
		case "date":
			if t := s.inner(); d.date == "" {
				d.date = isoTime(t)
			}
		case "identifier":
			d.extra("Identifier", s.inner())
		case "rights":
			d.extra("Rights", s.inner())
		case "meta":
			if s.attr("property") == "dcterms:modified" {
				d.modified = isoTime(s.inner())
			}
		case "item":
			if t := s.attr("media-type"); strings.Contains(t, "html") && len(names) < maxParts {
				names[s.attr("id")] = s.attr("href")
			}
		case "itemref":
			if n := names[s.attr("idref")]; n != "" && len(spine) <= maxChapters {
				spine = append(spine, n)
			}
		}
	}
	d.author = strings.Join(authors, ", ")
	return spine
}

// fragment is the text of a description that is HTML in text.
func fragment(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	x := &xmlScanner{b: []byte("<x>" + s + "</x>")}
	x.next()
	return x.inner()
}

// unpercent undoes the escapes of a name in a URL.
func unpercent(s string) string {
	dir := ""
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		dir, s = s[:i+1], s[i+1:]
	}
	if s = nameOf(s); dir != "" {
		return dir + s
	}
	return s
}

// blocks are the elements of XHTML and of FictionBook that begin on a new line.
var blocks = func() map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(`p div li br hr tr table ul ol dl dt dd pre blockquote section article header footer aside nav
		h1 h2 h3 h4 h5 h6 figure figcaption center empty-line subtitle v stanza poem title cite epigraph annotation`) {
		m[name] = true
	}
	return m
}()

// chapter reads XHTML: text, headings, links out of the book.
func chapter(d *document, s *xmlScanner) {
	start := 0
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		if k == xmlText {
			d.blanks(s.text)
			continue
		}
		level := len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6'
		switch {
		case k == xmlClose && level:
			d.heading(string(d.text[min(start, len(d.text)):]))
			d.gap(2)
		case k == xmlOpen && (name == "head" || name == "script" || name == "style"):
			s.skip()
		case name == "td" || name == "th":
			d.space(' ')
		case name == "p":
			d.gap(2)
			start = len(d.text)
		case blocks[name]:
			d.gap(1)
			start = len(d.text)
		case k == xmlOpen && name == "a":
			if url := s.attr("href"); strings.Contains(url, "://") || strings.HasPrefix(url, "mailto:") {
				d.link(url)
			}
		}
	}
	d.gap(2)
}

// sumFictionBook summarizes FictionBook 2, a book in one XML file.
func sumFictionBook(w *worker, o *soif.Object, c *content, text []byte) {
	d := w.document()
	s := &xmlScanner{b: text}
	var authors []string
	start, in := 0, ""
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		switch {
		case k == xmlText:
			if in == "body" {
				d.blanks(s.text)
			}
		case k == xmlOpen && (name == "title-info" || name == "publish-info" || name == "body"):
			in = name
		case k == xmlOpen && (name == "binary" || name == "document-info" || name == "src-title-info"):
			s.skip()
		case k == xmlOpen && in == "title-info":
			if a := bookInfo(d, s, name); a != "" && len(authors) < 50 {
				authors = append(authors, a)
			}
		case k == xmlOpen && in == "publish-info":
			switch name {
			case "publisher":
				d.publisher = s.inner()
			case "year":
				d.date = s.inner()
			case "isbn":
				d.extra("Identifier", s.inner())
			}
		case in != "body":
		case k == xmlOpen && name == "title":
			d.gap(2)
			start = len(d.text)
		case k == xmlClose && name == "title":
			d.heading(string(d.text[min(start, len(d.text)):]))
			d.gap(2)
		case k == xmlOpen && name == "a":
			d.link(s.attr("href"))
		case name == "p":
			d.gap(2)
		case name == "td" || name == "th":
			d.space(' ')
		case blocks[name]:
			d.gap(1)
		}
	}
	d.author = strings.Join(authors, ", ")
	d.put(w, o, c)
}

// bookInfo reads an element of title-info and returns an author, if it is one.
func bookInfo(d *document, s *xmlScanner, name string) string {
	switch name {
	case "book-title":
		d.title = s.inner()
	case "annotation":
		d.description = s.inner()
	case "keywords":
		d.keywords = append(d.keywords, strings.Split(s.inner(), ",")...)
	case "genre":
		d.keywords = append(d.keywords, s.inner())
	case "lang":
		d.language = s.inner()
	case "date":
		d.date = s.inner()
	case "author":
		return s.inner()
	}
	return ""
}
