package catalog

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"harvest/gather/soif"
)

// # Feeds
//
// RSS 0.9 to 2.0 and Atom: an item is an object. Its title, link, description or
// summary, content, author or creator, categories, date and guid or id are Title,
// the URL, Description, Full-Text, Author, Keywords (a line each),
// Last-Modification-Time and Identifier; markup in them goes. Attributes that feeds
// know nothing of are elements of the name space below, which readers of feeds pass
// over:
//
//	<soif:attribute name="File-Size">812</soif:attribute>

const (
	soifSpace = "urn:ietf:rfc:2655"
	atomSpace = "http://www.w3.org/2005/Atom"
)

type feedReader struct {
	d       *xml.Decoder
	root    bool // there was an element
	limited *limited
	base    string
	n       int
	err     error
}

// limited gives no more than so many bytes until it is told to go on.
type limited struct {
	r    io.Reader
	left int
	err  error // of r, but io.EOF
}

var errLong = errors.New("too long")

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	if err != io.EOF {
		l.err = err
	}
	return n, err
}

func newFeedReader(r io.Reader, base string) Reader {
	f := &feedReader{limited: &limited{r: r, left: MaxRecord}, base: base}
	f.d = xml.NewDecoder(f.limited)
	f.d.Strict = false
	f.d.Entity = xml.HTMLEntity
	f.d.CharsetReader = charset.NewReaderLabel
	return f
}

func (f *feedReader) Next() (soif.Object, error) {
	if f.err != nil {
		return soif.Object{}, f.err
	}
	o, err := f.item()
	if err == nil || err == io.EOF {
		f.err = err
		return o, err
	}
	line, col := f.d.InputPos()
	col = max(col, 1) // 0 behind the end of a line
	var bad *xml.SyntaxError
	switch {
	case errors.Is(err, errLong):
		err = &Error{line, col, fmt.Sprintf("an item of over %d bytes", MaxRecord)}
	case errors.As(err, &bad):
		err = &Error{line, col, bad.Msg}
	case f.limited.err == nil: // of its declaration, or its character set
		err = &Error{line, col, strings.TrimPrefix(err.Error(), "xml: ")}
	}
	f.err = err
	return soif.Object{}, err
}

// item reads up to the end of the next item.
func (f *feedReader) item() (soif.Object, error) {
	for {
		f.limited.left = MaxRecord
		t, err := f.d.Token()
		if err == io.EOF && !f.root {
			err = &xml.SyntaxError{Msg: "no feed: there is no element"}
		}
		if err != nil {
			return soif.Object{}, err
		}
		start, ok := t.(xml.StartElement)
		if ok && !f.root && !same(start.Name.Local, "rss") && !same(start.Name.Local, "RDF") && start.Name.Local != "feed" && start.Name.Local != "channel" {
			return soif.Object{}, &xml.SyntaxError{Msg: fmt.Sprintf("no feed: <%.40s> is none of rss, RDF and feed", start.Name.Local)}
		}
		f.root = f.root || ok
		if ok && (start.Name.Local == "item" || start.Name.Local == "entry") {
			f.n++
			o := soif.Object{Type: "FILE"}
			if err := f.parts(&o, start); err != nil {
				if err == io.EOF {
					err = &xml.SyntaxError{Msg: "the text ends inside of an item"}
				}
				return o, err
			}
			if o.URL == "" {
				if id := o.Text("Identifier"); isURL(id) {
					o.URL = id
				} else {
					o.URL = keyed(f.base, "", f.n)
				}
			}
			return o, nil
		}
	}
}

// parts reads the elements of an item.
func (f *feedReader) parts(o *soif.Object, item xml.StartElement) error {
	for {
		t, err := f.d.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			if t.Name == item.Name {
				return nil
			}
		case xml.StartElement:
			text, err := f.text(t)
			if err != nil {
				return err
			}
			feedAttribute(o, t, text)
		}
	}
}

// text reads an element to its end, without the marks of those inside, of which name
// is what counts of an Atom author.
func (f *feedReader) text(start xml.StartElement) (string, error) {
	var all, name strings.Builder
	depth, named := 1, 0
	for depth > 0 {
		t, err := f.d.Token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if depth++; t.Name.Local == "name" && named == 0 {
				named = depth
			}
			all.WriteByte(' ')
		case xml.EndElement:
			if depth--; depth < named {
				named = -1
			}
		case xml.CharData:
			all.Write(t)
			if named > 0 {
				name.Write(t)
			}
		}
	}
	if start.Name.Local == "author" && name.Len() > 0 {
		return name.String(), nil
	}
	return all.String(), nil
}

// feedAttribute adds what an element of an item says.
func feedAttribute(o *soif.Object, t xml.StartElement, text string) {
	attr := func(name string) string {
		for _, a := range t.Attr {
			if a.Name.Local == name {
				return strings.TrimSpace(a.Value)
			}
		}
		return ""
	}
	if t.Name.Space == soifSpace {
		add(o, attr("name"), text)
		return
	}
	plain := strings.TrimSpace(text)
	visible := visible
	if t.Name.Space == atomSpace && attr("type") != "html" { // else it is text, or its elements have been left out
		visible = func(s string) string { return s }
	}
	switch t.Name.Local {
	case "title":
		add(o, "Title", oneLine(visible(plain)))
	case "link":
		feedLink(o, attr("href"), attr("rel"), plain)
	case "description", "summary", "subtitle":
		add(o, "Description", visible(plain))
	case "content", "encoded":
		add(o, "Full-Text", visible(plain))
	case "author", "creator":
		add(o, "Author", oneLine(plain))
	case "category", "subject":
		if term := attr("term"); term != "" {
			plain = term
		}
		if was := o.Text("Keywords"); was != "" && plain != "" {
			o.Set("Keywords", []byte(was+"\n"+oneLine(plain)))
		} else {
			add(o, "Keywords", oneLine(plain))
		}
	case "guid", "id":
		add(o, "Identifier", plain)
	case "pubDate", "updated", "modified", "date":
		feedDate(o, plain)
	case "published", "issued", "created":
		add(o, "Creation-Date", plain)
	default:
		add(o, capital(t.Name.Local), plain)
	}
}

// feedLink takes the first link that is the item itself; others are references.
func feedLink(o *soif.Object, href, rel, text string) {
	if href == "" {
		href = text
	}
	href = strings.TrimSpace(href)
	if o.URL == "" && (rel == "" || rel == "alternate") && isURL(href) {
		o.URL = href
		return
	}
	add(o, "URL-References", href)
}

func feedDate(o *soif.Object, text string) {
	for _, form := range []string{time.RFC3339, time.RFC1123Z, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2006-01-02T15:04:05", "2006-01-02"} {
		if at, err := time.Parse(form, text); err == nil && at.Unix() > 0 {
			o.Set("Last-Modification-Time", strconv.AppendInt(nil, at.Unix(), 10))
			return
		}
	}
	add(o, "Date", text)
}

// visible is a text without the marks of HTML, if there are any.
func visible(s string) string {
	if strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '&') < 0 {
		return s
	}
	if strings.IndexByte(s, '<') < 0 {
		return strings.TrimSpace(html.UnescapeString(s))
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return tidy(b.String())
		case html.TextToken:
			if skip == "" {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			if skip == "" && (string(name) == "script" || string(name) == "style") {
				skip = string(name)
			}
			b.WriteString(between(string(name)))
		case html.EndTagToken:
			name, _ := z.TagName()
			if string(name) == skip {
				skip = ""
			}
			b.WriteString(between(string(name)))
		case html.SelfClosingTagToken:
			name, _ := z.TagName()
			b.WriteString(between(string(name)))
		}
	}
}

// between is what stands for a tag: an end of line where a page has one.
func between(tag string) string {
	switch tag {
	case "p", "br", "div", "li", "ul", "ol", "tr", "table", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "dt", "dd":
		return "\n"
	case "td", "th", "img":
		return " "
	}
	return ""
}

// tidy leaves one blank between words, and one end of line between lines.
func tidy(s string) string {
	var all []string
	for line := range strings.Lines(s) {
		if line = oneLine(line); line != "" {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

// A feedWriter writes a feed of either kind.
type feedWriter struct {
	w     *bufio.Writer
	atom  bool
	begun bool
}

func newRSSWriter(w io.Writer) Writer  { return &feedWriter{w: bufio.NewWriter(w)} }
func newAtomWriter(w io.Writer) Writer { return &feedWriter{w: bufio.NewWriter(w), atom: true} }

func (w *feedWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.w.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	if w.atom {
		w.w.WriteString(`<feed xmlns="` + atomSpace + `" xmlns:soif="` + soifSpace + `">` + "\n<title>Harvest</title>\n<id>urn:harvest</id>\n")
		return
	}
	w.w.WriteString(`<rss version="2.0" xmlns:soif="` + soifSpace + `" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>` + "\n<title>Harvest</title><link>urn:harvest</link><description>SOIF objects</description>\n")
}

// put writes an element.
func (w *feedWriter) put(name, attrs, text string) {
	fmt.Fprintf(w.w, "<%s%s>", name, attrs)
	xml.EscapeText(w.w, []byte(text))
	end, _, _ := strings.Cut(name, " ")
	fmt.Fprintf(w.w, "</%s>\n", end)
}

func quoted(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return `"` + b.String() + `"`
}

// htmlText is text as HTML, which is what descriptions are read as.
func htmlText(s string) string { return html.EscapeString(s) }

func (w *feedWriter) Write(o *soif.Object) error {
	w.begin()
	names := map[bool][]string{false: {"item", "description", "content:encoded", "guid"}, true: {"entry", "summary", "content", "id"}}[w.atom]
	kind := map[bool]string{true: ` type="html"`}[w.atom]
	fmt.Fprintf(w.w, "<%s>\n", names[0])
	if w.atom && o.URL != "" {
		w.put("link", " href="+quoted(o.URL), "")
	} else if o.URL != "" {
		w.put("link", "", o.URL)
	}
	for _, a := range o.Attrs {
		text := string(a.Value)
		switch {
		case !utf8.Valid(a.Value) || strings.TrimSpace(text) != text || strings.Contains(text, "\r"):
			w.other(a.Name, text)
		case same(a.Name, "Title") && oneLine(text) == text:
			w.put("title", kind, htmlText(text))
		case same(a.Name, "Description"):
			w.put(names[1], kind, htmlText(text))
		case same(a.Name, "Full-Text"):
			w.put(names[2], kind, htmlText(text))
		case same(a.Name, "Author") && oneLine(text) == text:
			w.author(text)
		case same(a.Name, "Identifier"):
			w.put(names[3], map[bool]string{false: ` isPermaLink="false"`}[w.atom], text)
		case same(a.Name, "Last-Modification-Time"):
			w.date(a.Name, text)
		default:
			w.other(a.Name, text)
		}
	}
	fmt.Fprintf(w.w, "</%s>\n", names[0])
	return w.w.Flush()
}

func (w *feedWriter) other(name, text string) {
	w.put("soif:attribute", " name="+quoted(name), text)
}

func (w *feedWriter) author(text string) {
	if !w.atom {
		w.put("author", "", text)
		return
	}
	w.w.WriteString("<author>")
	w.put("name", "", text)
	w.w.WriteString("</author>\n")
}

func (w *feedWriter) date(name, text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n <= 0 || n > 1<<37:
		w.other(name, text)
	case w.atom:
		w.put("updated", "", time.Unix(n, 0).UTC().Format(time.RFC3339))
	default:
		w.put("pubDate", "", time.Unix(n, 0).UTC().Format(time.RFC1123Z))
	}
}

func (w *feedWriter) Close() error {
	w.begin()
	end := "</channel></rss>\n"
	if w.atom {
		end = "</feed>\n"
	}
	w.w.WriteString(end)
	return w.w.Flush()
}
