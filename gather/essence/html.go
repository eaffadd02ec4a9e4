package essence

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"harvest/gather/soif"
)

// A page is what is gathered from an HTML document's tokens. There is no tree:
// building one takes longer than everything else here together, and gives up on
// what is nested deeply.
type page struct {
	tab     *htmlTable
	mark    *markup
	text    []byte // what a reader sees, a line each block
	plain   []byte // the text last read, if there were references in it
	main    body   // which of it is the main text
	values  collection
	marked  []stretch // of text whose words are keywords
	passed  []stretch // of text whose words are none
	open    []opened
	counted *terms // the words of the main text
	told    told   // what the page says of itself
	links   []string
	seen    map[string]struct{}
	lead    stretch // the first paragraph that says something
	para    int     // where the paragraph now read begins in text, -1 outside

	title    []byte
	inTitle  bool
	skip     bool // the next text is a script or a style
	inScript scriptKind
	hidden   bool // what is read is not seen
	veil     veil
}

// A stretch is a part of a page's text.
type stretch struct{ start, end int }

// An opened is an element whose end is waited for, since its text is wanted.
type opened struct {
	is    *element
	start int       // in the page's text
	not   []stretch // of elements in it, which are not left in what is around them
}

// maxOpened bounds the elements whose text is waited for at once.
const maxOpened = 64

func newPage(t *htmlTable, doc []byte) *page {
	p := &page{tab: t, mark: newMarkup(doc, &t.dict), para: -1, seen: make(map[string]struct{}, 64)}
	p.text = make([]byte, 0, len(doc)/3)
	p.main = body{nodes: make([]node, 0, 64), stack: make([]int32, 0, 32), lines: make([]textLine, 0, 128), hints: new(hintCache)}
	p.main.start()
	return p
}

func sumHTML(w *worker, o *soif.Object, c *content, text []byte) {
	text = decodeHTML(text, c.declared)
	p := w.tab.scratch.page(w.tab.htmlTable(), text)
	defer w.tab.scratch.leave(p)
	p.read()
	p.readLD()
	p.main.choose(p.text)
	p.summary(w, o, c)
	p.veil.tell(w, c)
}

// summary makes the attributes of what has been read.
func (p *page) summary(w *worker, o *soif.Object, c *content) {
	var body []byte
	if is(c.opt.mainText) {
		body = p.main.chosen(p.text)
	} else {
		body = bytes.TrimSpace(p.text)
	}
	p.countWords(w.tab.scratch.counter())
	lang := languageOf(p.counted.language(), p.main.sample(p.text), p.told.lang)
	w.set(o, "Title", p.bestTitle())
	w.set(o, "Author", p.bestAuthor())
	w.set(o, "Description", p.bestDescription())
	w.set(o, "Abstract", p.abstract())
	p.values.set(w, o, "Headings")
	w.set(o, "Keywords", p.keywords(w, o, c, lang))
	w.set(o, "Language", lang)
	w.set(o, "Date", p.date())
	w.set(o, "URL-References", strings.Join(p.links, "\n"))
	p.values.rest(w, o)
	w.fullText(o, c, body)
}

func (p *page) read() {
	m := p.mark
	for {
		switch kind, text := m.next(); kind {
		case nothing:
			p.line()
			p.closeAll()
			return
		case aText:
			if bytes.IndexByte(text, '&') >= 0 {
				p.plain = appendUnescaped(p.plain[:0], text)
				text = p.plain
			}
			p.words(text)
		case rawText:
			p.words(text)
		case opening:
			m.readAttrs()
			p.hidden = p.veil.start(m.element, m.attrs)
			p.start(m)
		case closing:
			p.hidden = p.veil.end(m.element)
			p.end(m.is)
		}
	}
}

func (p *page) words(t []byte) {
	switch {
	case p.inScript != noScript:
		p.told.script(p.inScript, t)
		p.inScript, p.skip = noScript, false
	case p.skip:
		p.skip = false
	case p.hidden:
		p.veil.miss(t)
	case p.inTitle:
		p.title = append(p.title, t...)
	default:
		p.text = appendWords(p.text, t)
	}
}

// start hears of the beginning of an element.
func (p *page) start(m *markup) {
	p.skip, p.inScript = false, noScript
	e := m.is
	if e == nil {
		if len(m.attrs) > 0 {
			p.byline(m)
		}
		return
	}
	if len(m.attrs) > 0 && !p.hidden {
		p.values.attributes(p, e, m)
	}
	switch {
	case e.does&(isMeta|isRelation|isRoot|isScript|isTitle|isTime) != 0:
		p.special(e, m)
		return
	case e.does&aBlock != 0:
		if e.name != "br" {
			p.endHeading()
		}
		p.line()
		if e.does&aLead != 0 {
			p.para = len(p.text)
		}
	}
	p.main.open(e, m, len(p.text))
	if len(m.attrs) > 0 {
		p.byline(m)
	}
	if e.rule != nil && len(p.open) < maxOpened && !p.hidden {
		p.begin(e)
	}
}

// endHeading ends the heading that is open: nobody has closed it.
func (p *page) endHeading() {
	for i := range p.open {
		if p.open[i].is.does&aHeading != 0 {
			p.closeFrom(i)
			return
		}
	}
}

// special hears of an element that is not seen, or says something of the page.
func (p *page) special(e *element, m *markup) {
	switch {
	case e.does&isMeta != 0:
		p.tab.meta(p, m)
	case e.does&isRelation != 0:
		p.tab.link(p, m)
	case e.does&isRoot != 0:
		if v := m.get("lang"); v != nil && len(v) < 20 {
			p.told.lang = words(unescapeValue(v))
		} else if v := m.get("xml:lang"); len(v) < 20 {
			p.told.lang = words(unescapeValue(v))
		}
	case e.does&isScript != 0:
		p.skip = true
		p.inScript = scriptOf(m)
	case e.does&isTitle != 0:
		p.inTitle = len(p.title) == 0
		p.skip = !p.inTitle // of an SVG
	case e.does&isTime != 0:
		p.told.time(m)
		p.byline(m)
	}
}

// begin waits for the end of an element whose text is wanted. An element that
// ends where the next begins, or is misnested, does not hold others up: what is
// open below it ends with it.
func (p *page) begin(e *element) {
	if n := len(p.open); n > 0 && p.open[n-1].is == e && e.does&(aLink|aHeading|endsOwn) != 0 {
		p.close(n - 1)
	}
	n := len(p.open)
	if n == cap(p.open) {
		p.open = append(p.open, opened{is: e, start: len(p.text)})
		return
	}
	p.open = p.open[:n+1]
	p.open[n] = opened{e, len(p.text), p.open[n].not[:0]}
}

// end hears of the end of an element.
func (p *page) end(e *element) {
	p.skip, p.inScript = false, noScript
	if e == nil {
		p.told.end(p.mark.element, p.text)
		return
	}
	if e.does&isTitle != 0 {
		p.inTitle = false
		return
	}
	if e.rule != nil {
		for i := len(p.open) - 1; i >= 0; i-- {
			if p.open[i].is == e {
				p.closeFrom(i)
				break
			}
		}
	}
	p.told.end(p.mark.element, p.text)
	if e.does&aBlock != 0 {
		p.line()
	}
	p.main.end(e, len(p.text))
}

// line ends the line and the paragraph.
func (p *page) line() {
	if n := len(p.text); n > 0 && p.text[n-1] == ' ' {
		p.text = p.text[:n-1]
	}
	if p.para >= 0 {
		if p.lead.end == 0 && p.para < len(p.text) && letters(p.text[p.para:], 60) {
			p.lead = stretch{p.para, len(p.text)}
		}
		p.para = -1
	}
	if n := len(p.text); n > 0 && p.text[n-1] != '\n' {
		p.main.block(p.text)
		p.text = append(p.text, '\n')
	}
}

// maxLinks bounds the references kept of one page.
const maxLinks = 1000

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

// keywords are those the page gives, and the words that tell most of its main
// text; those that stand out there count more.
func (p *page) keywords(w *worker, o *soif.Object, c *content, lang string) string {
	if c.opt.share > 0 {
		p.countOther()
	}
	keys := w.keywords(o, c, p.counted, lang)
	if m := p.values.first("Keywords"); m != "" {
		keys = strings.ReplaceAll(m, "\n", ", ") + "\n" + keys
	}
	return strings.TrimSuffix(keys, "\n")
}

// countWords counts the words of the main text, if there is any, or of all.
func (p *page) countWords(t *terms) {
	p.counted = t
	room := maxCounted
	marked, passed := merged(p.marked), merged(p.passed)
	all := p.main.chosenN == 0
	for i := range p.main.lines {
		l := &p.main.lines[i]
		if !l.main && !all || room <= 0 {
			continue
		}
		at := stretch{int(l.start), min(int(l.end), int(l.start)+room)}
		room -= at.end - at.start
		marked = after(marked, at.start)
		passed = after(passed, at.start)
		p.countLine(at, marked, passed)
	}
}

// countOther counts the words that are not in the main text, if there is any, for
// nothing: they come after all others.
func (p *page) countOther() {
	if p.main.chosenN == 0 {
		return
	}
	from := len(p.counted.all)
	for i := range p.main.lines {
		if l := &p.main.lines[i]; !l.main && p.counted.text < maxCounted {
			p.counted.count(p.text[l.start:l.end], 0)
		}
	}
	p.counted.look(from)
}

// countLine counts the words of a line: those of passed stretches not, those of
// marked ones more.
func (p *page) countLine(at stretch, marked, passed []stretch) {
	for at.start < at.end {
		marked, passed = after(marked, at.start), after(passed, at.start)
		end, weight := at.end, 1
		if len(marked) > 0 {
			weight, end = marked[0].within(at.start, end, weight, standsOut)
		}
		if len(passed) > 0 {
			weight, end = passed[0].within(at.start, end, weight, 0)
		}
		if weight > 0 {
			p.counted.count(p.text[at.start:end], weight)
		}
		at.start = end
	}
}

// standsOut is what a word under keywords in the table counts.
const standsOut = 2

// merged are stretches in order, those that overlap made one.
func merged(all []stretch) []stretch {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.start, b.start) })
	n := 0
	for _, s := range all {
		if n > 0 && s.start <= all[n-1].end {
			all[n-1].end = max(all[n-1].end, s.end)
			continue
		}
		all[n] = s
		n++
	}
	return all[:n]
}

// after drops the stretches that end before a place.
func after(all []stretch, at int) []stretch {
	for len(all) > 0 && all[0].end <= at {
		all = all[1:]
	}
	return all
}

// within is the weight of what stands at a place before the end of a stretch, and
// up to where it is that.
func (s stretch) within(at, end, weight, inside int) (int, int) {
	if s.start > at {
		return weight, min(end, s.start)
	}
	return inside, min(end, s.end)
}
