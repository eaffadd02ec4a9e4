package essence

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A told is what a page says of itself, other than by its META.
type told struct {
	lang    string // of html
	heads   []heading
	times   []string // of elements TIME, the first that look like it
	authors []string // of elements that say they name one
	ld      [][]byte // scripts of JSON-LD

	persons []string // of JSON-LD, who may have written it

	name   []byte // of the element that says it names the author, nil outside
	sure   bool   // it is a link that has the relation author
	nameAt int    // where its text begins
}

// A heading is a heading of the first two levels.
type heading struct {
	level byte
	text  string
}

// A scriptKind is what a script is read for.
type scriptKind byte

const (
	noScript scriptKind = iota
	ldScript            // JSON-LD
)

func scriptOf(m *markup) scriptKind {
	if t := m.get("type"); len(t) >= len("application/ld+json") && strings.EqualFold(string(t[:len("application/ld+json")]), "application/ld+json") {
		return ldScript
	}
	return noScript
}

const maxLD = 256 << 10 // bytes of JSON-LD that are read of a page

func (t *told) script(k scriptKind, text []byte) {
	n := 0
	for _, b := range t.ld {
		n += len(b)
	}
	if k == ldScript && n+len(text) <= maxLD && len(t.ld) < 50 {
		t.ld = append(t.ld, text)
	}
}

func (t *told) heading(e *element, text []byte) {
	if level := e.name[1]; level <= '2' && len(t.heads) < 50 && len(text) > 0 {
		t.heads = append(t.heads, heading{level, strings.TrimRight(titleText(string(text)), " ¶§#")})
	}
}

func (t *told) time(m *markup) {
	if v := m.get("datetime"); len(v) > 0 && len(v) < 60 && len(t.times) < 5 {
		if s := day(words(unescapeValue(v))); s != "" {
			t.times = append(t.times, s)
		}
	}
}

// byline hears of an element that may say that it names the author. One in
// another is the better.
func (p *page) byline(m *markup) {
	if p.hidden || len(p.told.authors) >= 10 || p.main.commented() {
		return
	}
	for i := range m.attrs {
		a := &m.attrs[i]
		if len(a.value) < 4 || len(a.value) > 200 {
			continue
		}
		sure := isNamed(a.key, "rel") && bytes.Contains(a.value, []byte("author"))
		if !sure && !(a.names() && p.main.known(a.value)&hintAuthor != 0) {
			continue
		}
		p.told.name, p.told.sure, p.told.nameAt = m.element, sure, len(p.text)
		return
	}
}

// end hears of the end of an element.
func (t *told) end(name, text []byte) {
	if t.name == nil || !bytes.EqualFold(name, t.name) {
		return
	}
	t.name = nil
	if at := min(t.nameAt, len(text)); len(text)-at <= 200 {
		if name := words(text[at:]); t.sure {
			t.authors = append([]string{name}, t.authors...)
		} else {
			t.authors = append(t.authors, name)
		}
	}
}

// readLD takes what the page's JSON-LD says.
func (p *page) readLD() {
	for _, text := range p.told.ld {
		text = bytes.Map(func(r rune) rune {
			if r < ' ' {
				return ' ' // as is found in strings
			}
			return r
		}, text)
		var v any
		if json.Unmarshal(text, &v) == nil {
			p.linked(v, 0)
		}
	}
}

// linked goes through JSON-LD for what says something of the page.
func (p *page) linked(v any, depth int) {
	if depth > 8 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			p.linked(e, depth+1)
		}
	case map[string]any:
		p.linked(v["@graph"], depth+1)
		p.linked(v["mainEntity"], depth+1)
		if v["@type"] == "Person" && len(p.told.persons) < 10 {
			p.told.persons = append(p.told.persons, namesOf(v["name"], 0)...)
		}
		if !isWork(v["@type"]) {
			return
		}
		for key, r := range p.tab.scripts {
			for key2, e := range v {
				if strings.EqualFold(key, key2) {
					for _, s := range namesOf(e, 0) {
						p.values.named(p, r, key, words(unescapeText([]byte(s))))
					}
				}
			}
		}
	}
}

// isWork reports whether a type is of a work that a page may be.
func isWork(t any) bool {
	switch t := t.(type) {
	case string:
		for _, w := range [...]string{"Article", "Posting", "CreativeWork", "Report", "Recipe", "Review", "Book", "Blog", "TechArticle"} {
			if strings.HasSuffix(t, w) {
				return true
			}
		}
	case []any:
		for _, e := range t {
			if s, ok := e.(string); ok && isWork(s) {
				return true
			}
		}
	}
	return false
}

// namesOf are the names in a value, a string or a thing that has one, or several.
func namesOf(v any, depth int) []string {
	if depth > 4 {
		return nil
	}
	switch v := v.(type) {
	case string:
		return []string{v}
	case map[string]any:
		return namesOf(v["name"], depth+1)
	case []any:
		var out []string
		for _, e := range v[:min(len(v), 20)] {
			out = append(out, namesOf(e, depth+1)...)
		}
		return out
	}
	return nil
}

// day is a date of the form 2006-01-02, in whatever stands before it, "" if there
// is none.
func day(s string) string {
	if len(s) < 8 {
		return ""
	}
	digits := func(from, n int) bool {
		for i := from; i < from+n; i++ {
			if i >= len(s) || s[i] < '0' || s[i] > '9' {
				return false
			}
		}
		return true
	}
	switch {
	case len(s) >= 10 && digits(0, 4) && (s[4] == '-' || s[4] == '/') && digits(5, 2) && s[7] == s[4] && digits(8, 2):
		return valid(s[0:4], s[5:7], s[8:10])
	case digits(0, 8):
		return valid(s[0:4], s[4:6], s[6:8])
	case len(s) >= 10 && digits(0, 2) && s[2] == '.' && digits(3, 2) && s[5] == '.' && digits(6, 4):
		return valid(s[6:10], s[3:5], s[0:2])
	}
	return ""
}

func valid(y, m, d string) string {
	if y < "1900" || y > "2100" || m < "01" || m > "12" || d < "01" || d > "31" {
		return ""
	}
	return y + "-" + m + "-" + d
}

// date is when the page was first published: the day, if it is told in a way
// that is understood, else as it is told.
func (p *page) date() string {
	other := ""
	for _, c := range p.values.candidates("Date") {
		first, _, _ := bytes.Cut(c.value, []byte("\n"))
		if s := day(string(first)); s != "" {
			return s
		}
		if other == "" && len(first) < 100 {
			other = string(first)
		}
	}
	if other == "" && len(p.told.times) > 0 {
		return p.told.times[0]
	}
	return other
}

func (p *page) bestDescription() string {
	for _, c := range p.values.candidates("Description") {
		first, _, _ := bytes.Cut(c.value, []byte("\n"))
		if letters(first, 10) {
			return string(first)
		}
	}
	return p.values.first("Description")
}

// abstract is the first paragraph of the main text that says something, or of
// the page.
func (p *page) abstract() string {
	at := p.main.lead(p.text)
	if at.end == 0 {
		at = p.lead
	}
	return string(cutText([]byte(words(p.text[at.start:at.end])), 1000))
}

// bestAuthor are the authors, by whom of several that tell it first has it right:
// what is for machines, before what is on the page.
func (p *page) bestAuthor() string {
	site := p.values.first(siteName)
	notSite := func(names []string) string {
		s := authors(names)
		if strings.EqualFold(s, site) || !strings.Contains(s, " ") && strings.Contains(s, ".") && s == strings.ToLower(s) {
			return ""
		}
		return s
	}
	last := ""
	for _, c := range p.values.candidates("Author") {
		names := strings.Split(string(c.value), "\n")
		if s := notSite(names); s != "" {
			return s
		}
		if last == "" {
			last = authors(names)
		}
	}
	for _, a := range append(p.told.authors, p.signed()) {
		if s := notSite([]string{a}); s != "" {
			return s
		}
	}
	if len(p.told.persons) == 1 {
		return authorName(p.told.persons[0])
	}
	return last
}

// byName is a line that says who wrote the page.
var byName = expression(`^(?:[Bb]y|BY|[Vv]on|VON|[Pp]or|[Pp]ar|Text:|Autor:|Author:) \p{Lu}[\p{L}'’.-]* (?:(?:von|van|de|der|la|di) )*\p{Lu}`)

// signed is a line of the page, short and no other's comment, that says who wrote
// it, "" if there is none.
func (p *page) signed() string {
	for i := range p.main.lines {
		l := &p.main.lines[i]
		if n := l.end - l.start; n < 8 || n > 80 || strings.IndexByte("BbVvPpTA", p.text[l.start]) < 0 || p.main.nodes[l.node].comment {
			continue
		}
		line := p.text[l.start:l.end]
		if i := bytes.IndexByte(line, ' '); i >= 2 && i <= 7 && byName().Match(line) {
			return string(line)
		}
	}
	return ""
}

// authors are names that look like those of authors, "; " between them.
func authors(names []string) string {
	var out []string
	for _, n := range names {
		n = authorName(n)
		if n == "" {
			continue
		}
		dup := false
		for _, o := range out {
			dup = dup || strings.EqualFold(o, n)
		}
		if !dup && len(out) < 20 {
			out = append(out, n)
		}
	}
	return strings.Join(out, "; ")
}

var (
	// beforeName is what is said before the name of an author.
	beforeName = expression(`(?i)^(?:(?:written|posted|published|created|submitted|veröffentlicht|publiziert|eingestellt|erstellt|geschrieben|verfasst|artikel|ein beitrag|story|text|words|post author|rédigé|écrit|publié|interview)?\s*\b(?:by|von|vom|par|por|di)\b|(?:post )?auth?or(?:in|s|\(s\))?|auteur|autore?|redakteur(?:in)?|text|foto|über den autor|about the author)\s*:?\s+`)
	// afterName is what follows one: a day, a time, another thing.
	afterName = expression(`(?i)\s*(?:[|•·–—/]|\s-\s|,?\s+(?:am|on|posted on|veröffentlicht|aktualisiert|updated|datum|kategorien?)\b|\d{1,2}[.:/ ]|\d{4}-\d|,\s*(?:den\s*)?\d).*$`)
	// noName is what stands where a name is to be filled in, and words of which none follows.
	noName = expression(`(?i)^(?:name\b.*|e-?mail.*|posted|published|publiziert am|posted on|veröffentlicht|eingestellt|von|by|par|por|admin|administrator|root|webmaster|anonymous|anonym|gast|guest|unknown|autor|author|auteur|view .*|zeige .*|mehr .*|more .*|all posts.*|alle .*|\d+ min.*)$`)
)

// authorName is a name without what is around it, "" if it is none.
func authorName(n string) string {
	if len(n) > 300 || strings.Contains(n, "://") {
		return ""
	}
	n = titleText(n)
	for range 3 {
		n = strings.TrimSpace(strings.Trim(strings.TrimSpace(n), ",;:|-–—·•/"))
		short := beforeName().ReplaceAllString(n+" ", "")
		if short = strings.TrimSpace(short); short == n || short == "" {
			break
		}
		n = short
	}
	if short := afterName().ReplaceAllString(n, ""); utf8.RuneCountInString(short) > 2 {
		n = short
	}
	n = strings.TrimSpace(strings.Trim(strings.TrimSpace(n), ",;:|-–—·•/"))
	if len(n) < 2 || utf8.RuneCountInString(n) > 60 || strings.ContainsAny(n, "@<>{}") ||
		strings.HasPrefix(n, "www.") || !strings.ContainsFunc(n, unicode.IsLetter) || noName().MatchString(n) {
		return ""
	}
	return n
}
