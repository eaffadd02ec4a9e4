package essence

import (
	"bytes"
	"strings"

	"harvest/gather/soif"
)

// A page is what is gathered from an HTML document's tokens. There is no tree:
// building one takes longer than everything else here together.
type page struct {
	title    []byte
	text     []byte // what a reader sees, a line each block
	headings []byte
	meta     soif.Object
	links    []string
	seen     map[string]struct{}
	language string
	lead     string // the first paragraph that says something
	para     int    // where the paragraph now read begins in text, -1 outside
	head     int    // where the heading now read begins in text, -1 outside
	inTitle  bool
	skip     bool // the next text is a script or a style
	hidden   bool // what is read is not seen
	veil     veil
}

func sumHTML(w *worker, o *soif.Object, c *content, text []byte) {
	text = decodeHTML(text, c.declared)
	p := page{para: -1, head: -1, seen: make(map[string]struct{}, 64)}
	p.text = make([]byte, 0, len(text)/4)
	p.read(text)

	w.set(o, "Title", words(p.title))
	w.set(o, "Author", p.meta.Text("author"))
	w.set(o, "Description", p.meta.Text("description"))
	w.set(o, "Abstract", p.lead)
	w.set(o, "Headings", string(p.headings))
	body := bytes.TrimSpace(p.text)
	keys := keywords(body, 30)
	if m := p.meta.Text("keywords"); m != "" {
		keys = m + " " + keys
	}
	w.set(o, "Keywords", keys)
	w.set(o, "Language", p.language)
	w.set(o, "URL-References", strings.Join(p.links, "\n"))
	for _, m := range p.meta.Attrs {
		if m.Name != "author" && m.Name != "description" && m.Name != "keywords" {
			w.set(o, "Meta-"+m.Name, string(m.Value))
		}
	}
	w.fullText(o, c, body)
}

func (p *page) read(text []byte) {
	m := &markup{b: text}
	for {
		switch kind, text := m.next(); kind {
		case nothing:
			p.block()
			return
		case aText:
			p.words(unescapeText(text))
		case rawText:
			p.words(text)
		case opening:
			p.hidden = p.veil.start(m.element, m.b[m.at:])
			p.open(m)
		case closing:
			p.hidden = p.veil.end(m.element)
			p.end(m.name)
		}
	}
}

// tagName is the name of a tag, in small letters, as the tokenizer would give
// it, which would copy it, and each tag's alone would cost an allocation. Names
// longer than any that matters here are cut.
func tagName(raw []byte) []byte {
	var low [12]byte
	i := 1 // past <
	if i < len(raw) && raw[i] == '/' {
		i++
	}
	name := low[:0]
	for ; i < len(raw) && len(name) < len(low); i++ {
		c := raw[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		case c == '>' || c == '/' || c <= ' ':
			return known(name)
		}
		name = append(name, c)
	}
	return known(name)
}

// known returns the name if it is of a tag that means something here, in memory
// that lasts.
func known(name []byte) []byte { return tagNames[string(name)] }

var tagNames = func() map[string][]byte {
	m := make(map[string][]byte)
	for n := range strings.FieldsSeq(`script style title a area html meta h1 h2 h3 h4 h5 h6
		p div br hr li ul ol dl dt dd tr td th table caption pre blockquote section article header footer nav main
		aside form option address figure figcaption body details summary`) {
		m[n] = []byte(n)
	}
	return m
}()

func (p *page) words(t []byte) {
	switch {
	case p.skip:
		p.skip = false
	case p.hidden:
	case p.inTitle:
		p.title = append(p.title, t...)
	default:
		p.text = appendWords(p.text, t)
	}
}

func (p *page) open(m *markup) {
	name := m.name
	p.skip = false
	switch string(name) {
	case "a", "area":
		p.link(m)
		return
	case "html":
		for more := true; more; {
			var k, v []byte
			if k, v, more = m.attribute(); isName(k, "lang") && len(v) < 20 {
				p.language = words(unescapeValue(v))
			}
		}
		return
	case "meta":
		p.metaTag(m)
		return
	}
	m.skip()
	switch string(name) {
	case "script", "style":
		p.skip = true
	case "title":
		p.inTitle = len(p.title) == 0
		p.skip = !p.inTitle // of an SVG
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.block()
		p.head = len(p.text)
	case "p", "dd", "blockquote":
		p.block()
		p.para = len(p.text)
	default:
		if isBlock(name) {
			p.block()
		}
	}
}

func (p *page) end(name []byte) {
	p.skip = false
	switch string(name) {
	case "title":
		p.inTitle = false
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.heading()
		p.block()
	default:
		if isBlock(name) {
			p.block()
		}
	}
}

// isBlock reports whether a tag begins or ends a line.
func isBlock(name []byte) bool {
	switch string(name) {
	case "p", "div", "br", "hr", "li", "ul", "ol", "dl", "dt", "dd", "tr", "td", "th", "table", "caption", "pre",
		"blockquote", "section", "article", "header", "footer", "nav", "main", "aside", "form", "option",
		"address", "figure", "figcaption", "body", "details", "summary":
		return true
	}
	return false
}

// block ends the line, the paragraph and the heading.
func (p *page) block() {
	p.heading()
	if p.para >= 0 {
		if para := p.text[p.para:]; p.lead == "" && letters(para, 60) {
			p.lead = string(cutText([]byte(words(para)), 1000))
		}
		p.para = -1
	}
	if n := len(p.text); n > 0 && p.text[n-1] == ' ' {
		p.text = p.text[:n-1]
	}
	if n := len(p.text); n > 0 && p.text[n-1] != '\n' {
		p.text = append(p.text, '\n')
	}
}

func (p *page) heading() {
	if p.head < 0 {
		return
	}
	h := bytes.TrimSpace(p.text[min(p.head, len(p.text)):])
	if len(h) > 0 && len(h) < 500 && len(p.headings) < 64<<10 {
		if len(p.headings) > 0 {
			p.headings = append(p.headings, '\n')
		}
		p.headings = append(p.headings, h...)
	}
	p.head = -1
}

// maxLinks bounds the references kept of one page.
const maxLinks = 1000

func (p *page) link(m *markup) {
	met := false
	for more := true; more; {
		var k, v []byte
		k, v, more = m.attribute()
		if met || !isName(k, "href") {
			continue
		}
		met = true
		p.refer(unescapeValue(v))
	}
}

// refer keeps a reference, without its fragment, if it is new.
func (p *page) refer(v []byte) {
	if i := bytes.IndexByte(v, '#'); i >= 0 {
		v = v[:i]
	}
	if v = bytes.TrimSpace(v); len(v) == 0 || len(v) > 2048 || len(p.links) >= maxLinks ||
		bytes.HasPrefix(v, []byte("javascript:")) || bytes.ContainsAny(v, " \t\r\n") {
		return
	}
	if _, dup := p.seen[string(v)]; !dup {
		s := string(v)
		p.seen[s] = struct{}{}
		p.links = append(p.links, s)
	}
}

// isName compares the name of an attribute, whatever its case.
func isName(k []byte, want string) bool {
	if len(k) != len(want) {
		return false
	}
	for i, c := range k {
		if c|0x20 != want[i] {
			return false
		}
	}
	return true
}

// metaNames are the META tags kept besides author, description and keywords.
var metaNames = map[string]bool{
	"generator": true, "date": true, "dc.title": true, "dc.creator": true, "dc.subject": true, "dc.date": true,
	"dc.description": true, "dc.publisher": true, "dc.language": true, "copyright": true, "classification": true,
}

func (p *page) metaTag(m *markup) {
	var name, value string
	for more := true; more; {
		var k, v []byte
		k, v, more = m.attribute()
		switch {
		case isName(k, "name"):
			name = strings.ToLower(words(unescapeValue(v)))
		case isName(k, "content"):
			value = words(unescapeValue(v))
		}
	}
	switch name {
	case "author", "description", "keywords":
	default:
		if !metaNames[name] {
			return
		}
	}
	if _, dup := p.meta.Get(name); !dup && value != "" {
		p.meta.Add(name, []byte(value))
	}
}
