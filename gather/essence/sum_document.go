package essence

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"harvest/gather/soif"
)

// A document is what is found in documents of whatever format: each has its
// reader, and one place sets the attributes.
type document struct {
	title, author, abstract, subject string
	description, language, generator string
	publisher, date                  string // date is of publication, as written
	created, modified                string // as isoTime has them
	keywords                         []string
	headings, links, comments        []string
	name                             string // the title where nothing else tells one
	pages                            int
	text                             []byte
	more                             []soif.Attr // attributes of this format
	seen                             map[string]bool
	room                             int  // bytes of text left
	cut                              bool // there was more text
}

// minText is how much text is kept where none is wanted: keywords and a
// description are made of it.
const minText = 64 << 10

// maxPoints bounds headings, links and comments, each.
const maxPoints = 1000

func (w *worker) document() *document {
	d := &document{seen: make(map[string]bool), room: minText}
	if w.full {
		d.room = max(w.lim.Text, minText)
	}
	return d
}

// add adds text, as far as there is room for it.
func (d *document) add(text []byte) {
	if len(text) > d.room {
		text, d.cut = cutText(text, d.room), true
		d.room = 0
	} else {
		d.room -= len(text)
	}
	d.text = append(d.text, text...)
}

// gap ends a line, or with n = 2 a paragraph: so many newlines stand at the end.
func (d *document) gap(n int) {
	t := bytes.TrimRight(d.text, " \t")
	if len(bytes.TrimRight(t, "\n")) == 0 {
		return
	}
	for range n {
		if len(t) >= n && len(bytes.Trim(t[len(t)-n:], "\n")) == 0 {
			break
		}
		t = append(t, '\n')
	}
	d.text = t
}

// space sets two words apart.
func (d *document) space(b byte) {
	if n := len(d.text); n > 0 && !blank(d.text[n-1]) {
		d.text = append(d.text, b)
	}
}

func (d *document) heading(h string) { d.headings = point(d.headings, h) }
func (d *document) comment(c string) { d.comments = point(d.comments, c) }

func point(list []string, s string) []string {
	if s = words(s); s == "" || len(list) >= maxPoints {
		return list
	}
	return append(list, string(cutText([]byte(s), 1<<10)))
}

// link keeps where a link leads, once, unless that is in the document.
func (d *document) link(url string) {
	url = strings.TrimSpace(url)
	if url == "" || url[0] == '#' || len(url) > 2<<10 || d.seen[url] || len(d.links) >= maxPoints {
		return
	}
	d.seen[url] = true
	d.links = append(d.links, url)
}

// extra keeps an attribute that only this format has.
func (d *document) extra(name, text string) {
	if text = words(text); text != "" && len(d.more) < 100 {
		d.more = append(d.more, soif.Attr{Name: name, Value: []byte(text)})
	}
}

// property keeps what a document says of itself in a property, by the name that
// formats of Microsoft have for it, in lower case.
func (d *document) property(name, v string) {
	switch name {
	case "title":
		d.title = v
	case "subject":
		d.subject = v
	case "author":
		d.author = v
	case "keywords":
		d.keywords = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ';' })
	case "comments":
		d.description = v
	case "company":
		d.publisher = v
	case "category":
		d.extra("Category", v)
	}
}

// put sets the attributes of a document.
func (d *document) put(w *worker, o *soif.Object, c *content) {
	text := bytes.TrimSpace(bytes.ToValidUTF8(d.text, []byte("\uFFFD")))
	rest := text
	title := words(d.title)
	if !tells(title, c) {
		title = ""
	}
	if title == "" && len(d.headings) > 0 {
		title = d.headings[0]
	}
	if title == "" {
		title, rest = firstLine(text)
	}
	if title == "" {
		title = d.name
	}
	description := words(d.description)
	if description == "" && d.abstract == "" {
		description = d.firstProse(rest)
	}
	w.set(o, "Title", string(cutText([]byte(title), 300)))
	w.set(o, "Author", words(d.author))
	w.set(o, "Abstract", words(d.abstract))
	w.set(o, "Description", description)
	w.set(o, "Subject", words(d.subject))
	w.set(o, "Headings", strings.Join(d.headings, "\n"))
	t := w.tab.scratch.counter()
	defer w.tab.scratch.drop(t)
	t.count(text[:min(len(text), maxCounted)], 1)
	lang := languageOf(t.language(), text, words(d.language))
	w.set(o, "Keywords", d.allKeywords(w.keywords(o, c, t, lang)))
	w.set(o, "URL-References", strings.Join(d.links, "\n"))
	w.set(o, "Comments", strings.Join(d.comments, "\n"))
	w.set(o, "Language", lang)
	w.set(o, "Publisher", words(d.publisher))
	w.set(o, "Date", words(d.date))
	w.set(o, "Creation-Date", d.created)
	w.set(o, "Modification-Date", d.modified)
	w.set(o, "Generator", words(d.generator))
	if d.pages > 0 {
		w.set(o, "Pages", strconv.Itoa(d.pages))
	}
	for _, a := range d.more {
		w.set(o, a.Name, string(a.Value))
	}
	if d.cut && w.full {
		w.limit(c, fmt.Sprintf("text after the first %d bytes left out", len(d.text)))
	}
	w.fullText(o, c, text)
}

// firstProse is the first paragraph that is more than a title, a heading or a
// name.
func (d *document) firstProse(text []byte) string {
	start := text[:min(len(text), 32<<10)]
	for range 60 {
		para, after, more := bytes.Cut(bytes.TrimLeft(start, " \t\n"), []byte("\n\n"))
		if p := words(para); letters(para, 60) && p != words(d.title) && !slices.Contains(d.headings, p) {
			return string(cutText([]byte(p), 400))
		}
		if !more {
			break
		}
		start = after
	}
	return firstParagraph(text, 400)
}

// allKeywords are those that the document has, and then its frequent words.
func (d *document) allKeywords(frequent string) string {
	var out []string
	for _, k := range d.keywords {
		if k = words(k); k != "" && !slices.Contains(out, k) && len(out) < 100 {
			out = append(out, k)
		}
	}
	own := strings.Join(out, ", ")
	if own != "" && frequent != "" {
		own += "\n"
	}
	return own + frequent
}

// tells reports whether a title is one: programs write their own, or the name of
// the file, where the author has given none.
func tells(title string, c *content) bool {
	low := strings.ToLower(title)
	for _, junk := range []string{"untitled", "(anonymous)", "powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint", "presentación de powerpoint", "powerpoint 演示文稿", "slide 1", "no title", "document", "()", "none"} {
		if low == junk {
			return false
		}
	}
	if low == strings.ToLower(c.name) {
		return false
	}
	for _, program := range []string{"microsoft word - ", "microsoft powerpoint - ", "microsoft excel - "} {
		if strings.HasPrefix(low, program) {
			return false
		}
	}
	if i := strings.LastIndexByte(low, '.'); i > 0 && !strings.ContainsRune(low, ' ') {
		switch low[i+1:] {
		case "dvi", "doc", "docx", "tex", "ps", "eps", "odt", "rtf", "pdf", "qxd", "indd", "ppt", "pptx", "xls", "xlsx", "html", "md", "txt":
			return false
		}
	}
	return letters([]byte(title), 2) || title != "" && strings.Trim(title, "0123456789") == ""
}

// isoTime writes a time as ISO 8601 does, whatever of several forms it came in;
// what is none of them is kept as it is.
func isoTime(s string) string {
	s = strings.TrimSpace(s)
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.RFC1123Z, time.ANSIC,
		"Mon Jan _2 15:04:05 MST 2006", "Mon Jan 02 15:04:05 2006", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"} {
		if t, err := time.Parse(form, s); err == nil {
			return iso(t, strings.ContainsAny(form, "ZM") && !strings.HasPrefix(form, "Mon Jan 02"))
		}
	}
	return string(cutText([]byte(words(s)), 40))
}

// iso writes a time, in UTC if its zone is known.
func iso(t time.Time, zoned bool) string {
	if t.Year() < 1 || t.Year() > 9999 {
		return ""
	}
	if zoned {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05")
}
