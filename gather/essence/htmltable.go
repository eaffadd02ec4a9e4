package essence

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// # The table html
//
// A line tells where the text of an element goes, or the value of an attribute
// of it, as in Essence's SGML summarizer:
//
//	<H1>        headings
//	<EM>        keywords,parent
//	<CODE>      ignore,parent
//	<A:HREF>    url-references
//	<META:author>   author
//	<META:CONTENT>  Meta-$NAME
//
// Text goes to all the attributes named, and is not left in what the elements
// around keep, unless parent is one of them. Words that go to keywords weigh more
// than others when those are chosen; words under ignore weigh nothing. After META:
// stands a name, or property, and after LINK: a relation, after SCRIPT: a name in the
// page's JSON-LD; CONTENT and HREF stand for those that have no line of their own. A
// name may begin or end with *. The first line that fits is taken, and among several
// that give a title, an author, a description, a date or a language, the line that
// comes first in the table.

// An htmlTable is the table html, read.
type htmlTable struct {
	dict     dictionary
	metas    named
	links    named
	scripts  map[string]*attrRule
	useTitle bool // the element TITLE gives the title
}

// A textRule is what is done with the text of an element.
type textRule struct {
	targets  []string
	parent   bool // it is left in what is around it
	keywords bool
	ignore   bool
}

// An attrRule is what is done with the value of an attribute. Of several that
// give the same, the one of lower rank counts.
type attrRule struct {
	key     string // in small letters; of a META the name, of a LINK the relation
	targets []string
	rank    int
}

// A named is the rules for the tags of one name, by what they name.
type named struct {
	exact map[string]*attrRule
	wild  []*attrRule // which begin or end with *
	other *attrRule
}

func (n *named) find(name string) *attrRule {
	if r := n.exact[name]; r != nil {
		return r
	}
	for _, r := range n.wild {
		if s, ok := strings.CutSuffix(r.key, "*"); ok && strings.HasPrefix(name, s) {
			return r
		}
		if s, ok := strings.CutPrefix(r.key, "*"); ok && strings.HasSuffix(name, s) {
			return r
		}
	}
	return n.other
}

func (n *named) add(r *attrRule, other string) {
	switch {
	case r.key == other:
		n.other = r
	case strings.HasPrefix(r.key, "*") || strings.HasSuffix(r.key, "*"):
		n.wild = append(n.wild, r)
	case n.exact[r.key] == nil:
		n.exact[r.key] = r
	}
}

// htmlText is what stands where the user has no table.
func htmlText() string { return defaultHTML }

const defaultHTML = `# Where the text of HTML elements goes, and the values of their attributes: essence(6).
<A>             keywords,parent
<B>             keywords,parent
<EM>            keywords,parent
<I>             keywords,parent
<STRONG>        keywords,parent
<TT>            keywords,parent
<UL>            keywords,parent
<CODE>          ignore,parent
<TITLE>         title
<H1>            headings
<H2>            headings
<H3>            headings
<H4>            headings
<H5>            headings
<H6>            headings
<ADDRESS>       address
<CITE>          references,parent
<A:HREF>        url-references
<AREA:HREF>     url-references
<FRAME:SRC>     url-references
<IFRAME:SRC>    url-references
<IMG:SRC>       images

# LINK by its REL
<LINK:canonical>        canonical-url
<LINK:alternate>        url-references
<LINK:author>           url-references
<LINK:HREF>             ignore

# JSON-LD of the page
<SCRIPT:headline>       title
<SCRIPT:author>         author
<SCRIPT:datePublished>  date
<SCRIPT:dateCreated>    date
<SCRIPT:keywords>       keywords

# META by its NAME, PROPERTY or ITEMPROP
<META:citation_title>   title
<META:og:title>         title
<META:og:site_name>     publisher
<META:twitter:title>    title
<META:dc.title>         title
<META:dcterms.title>    title
<META:citation_author>  author
<META:parsely-author>   author
<META:sailthru.author>  author
<META:author>           author
<META:article:author>   author
<META:article:author_name> author
<META:dc.creator>       author
<META:dcterms.creator>  author
<META:dc.creator.*>     author
<META:byl>              author
<META:twitter:data1>    author
<META:twitter:data2>    author
<META:description>      description
<META:dc.description>   description
<META:dcterms.description> description
<META:dcterms.abstract> description
<META:og:description>   description
<META:twitter:description> description
<SCRIPT:description>    description
<META:article:published_time> date
<META:og:article:published_time> date
<META:citation_publication_date> date
<META:citation_date>    date
<META:dc.date>          date
<META:dc.date.*>        date
<META:dcterms.created>  date
<META:dcterms.date>     date
<META:dcterms.issued>   date
<META:parsely-pub-date> date
<META:sailthru.date>    date
<META:pubdate>          date
<META:publishdate>      date
<META:publish-date>     date
<META:date>             date
<META:datepublished>    date
<META:keywords>         keywords
<META:news_keywords>    keywords
<META:article:tag>      keywords
<META:dc.subject>       Meta-$NAME,keywords
<META:dcterms.subject>  Meta-$NAME,keywords
<META:content-language> language
<META:dc.language>      Meta-$NAME
<META:og:locale>        language
<META:generator>        Meta-$NAME
<META:copyright>        Meta-$NAME
<META:dc.*>             Meta-$NAME
<META:dcterms.*>        Meta-$NAME
<META:citation_*>       Meta-$NAME

# what tells a program something, not a reader
<META:*:*>              ignore
<META:viewport>         ignore
<META:robots>           ignore
<META:*bot>             ignore
<META:*verif*>          ignore
<META:CONTENT>          Meta-$NAME
`

// defaultTable is the table of htmlText.
var defaultTable = sync.OnceValue(func() *htmlTable {
	t, err := parseHTML(htmlText())
	if err != nil {
		panic(err)
	}
	return t
})

// htmlTable is the table in force.
func (t *Tables) htmlTable() *htmlTable {
	if t == nil || t.html == nil {
		return defaultTable()
	}
	return t.html
}

// htmlFile is the table as a text that users see and set.
func htmlFile() tableFile {
	return tableFile{"html", htmlText, func(t *Tables, text []byte) (err error) {
		if string(text) == htmlText() {
			t.html = defaultTable()
			return nil
		}
		t.html, err = parseHTML(string(text))
		return err
	}}
}

// parseHTML reads a table. An error is an *ndb.Error.
func parseHTML(text string) (*htmlTable, error) {
	t := &htmlTable{metas: named{exact: make(map[string]*attrRule)}, links: named{exact: make(map[string]*attrRule)}, scripts: make(map[string]*attrRule)}
	all := make(map[string]*element)
	for name, does := range elements {
		all[name] = &element{name: name, does: does}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		if err := t.line(all, n, line); err != nil {
			return nil, err
		}
	}
	for _, e := range all {
		if e.rule == nil && e.does&aHeading != 0 {
			e.rule = &textRule{parent: true} // its text may be the title
		}
	}
	t.dict = newDictionary(all)
	return t, nil
}

// line reads one line of a table.
func (t *htmlTable) line(all map[string]*element, n int, line string) error {
	field := strings.Fields(line)
	if len(field) == 0 {
		return nil
	}
	fault := func(part int, format string, arg ...any) error {
		return &ndb.Error{Line: n, Col: 1 + strings.Index(line, field[part]), Msg: fmt.Sprintf(format, arg...)}
	}
	tag, attr, of := strings.Cut(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(field[0], "<"), ">")), ":")
	switch {
	case !isTagName(tag):
		return fault(0, "'%s': want <ELEMENT> or <ELEMENT:ATTRIBUTE>", field[0])
	case of && attr == "":
		return fault(0, "'%s': the attribute is missing", field[0])
	case len(field) < 2:
		return fault(0, "'%s': where to?", field[0])
	case len(field) > 2:
		return fault(2, "'%s': attributes are separated by commas, without blanks", field[2])
	}
	targets := strings.Split(field[1], ",")
	for i, name := range targets {
		why := ""
		if targets[i], why = target(name, tag); why != "" {
			return fault(1, "'%s': %s", name, why)
		}
	}
	e := all[tag]
	if e == nil {
		e = &element{name: tag}
		all[tag] = e
	}
	if !of {
		t.text(e, targets)
		return nil
	}
	r := &attrRule{attr, slices.DeleteFunc(targets, func(s string) bool { return s == "ignore" || s == "parent" }), n}
	switch tag {
	case "meta":
		t.metas.add(r, "content")
	case "link":
		t.links.add(r, "href")
	case "script":
		if t.scripts[attr] == nil {
			t.scripts[attr] = r
		}
	default:
		e.attr = append(e.attr, *r)
	}
	return nil
}

func (t *htmlTable) text(e *element, targets []string) {
	r := &textRule{}
	for _, name := range targets {
		switch name {
		case "parent":
			r.parent = true
		case "ignore":
			r.ignore = true
		case "Keywords":
			r.keywords = true
		case "Title":
			if e.does&isTitle != 0 {
				t.useTitle = true
				continue
			}
			r.targets = append(r.targets, name)
		default:
			r.targets = append(r.targets, name)
		}
	}
	e.rule = r
}

func isTagName(s string) bool {
	if s == "" || len(s) > maxTagName || !isLetter(s[0]) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}) < 0
}

// written are the attributes that have a way to be written.
var written = func() map[string]string {
	m := make(map[string]string)
	for name := range strings.FieldsSeq(`Title Author Description Abstract Headings Keywords Language Date URL-References
		Images References Address Canonical-URL Publisher Subject Comments`) {
		m[strings.ToLower(name)] = name
	}
	return m
}()

// bookkeeping are attributes that no document may set.
var bookkeeping = func() map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(`type url file-size md5 last-modification-time update-time time-to-live refresh-rate full-text
		summary-limit presentation unnested-size nested-filename abstract gatherer-name gatherer-host gatherer-version`) {
		m[name] = true
	}
	return m
}()

// isReserved reports whether no document may set an attribute.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	return bookkeeping[name] || strings.HasPrefix(name, "embed")
}

// indexOfName is where $NAME stands in a text, in whatever case, or -1.
func indexOfName(text string) int {
	const name = "$NAME"
	for i := range max(len(text)-len(name)+1, 0) {
		if strings.EqualFold(text[i:i+len(name)], name) {
			return i
		}
	}
	return -1
}

// target is an attribute as it is written, or why it cannot be one.
func target(name, tag string) (string, string) {
	low := strings.ToLower(name)
	if low == "parent" || low == "ignore" {
		return low, ""
	}
	bare := name
	if i := indexOfName(name); i >= 0 {
		if tag != "meta" && tag != "link" {
			return "", "$NAME is that of a META"
		}
		name = name[:i] + "$NAME" + name[i+len("$NAME"):]
		bare = name[:i] + "n" + name[i+len("$NAME"):]
	}
	switch {
	case soif.Name(bare) != bare:
		return "", "no name of an attribute"
	case isReserved(bare):
		return "", "the program's own"
	}
	if w := written[low]; w != "" {
		name = w
	}
	return name, ""
}

// meta takes a META.
func (t *htmlTable) meta(p *page, m *markup) {
	name := m.get("name")
	for _, key := range [...]string{"property", "itemprop", "http-equiv"} {
		if name == nil {
			name = m.get(key)
		}
	}
	content := m.get("content")
	if len(name) == 0 || len(name) > 100 || len(content) == 0 {
		return
	}
	n := strings.ToLower(words(unescapeValue(name)))
	if r := t.metas.find(n); r != nil {
		p.values.named(p, r, n, words(unescapeValue(content)))
	}
}

// link takes a LINK, for each of its relations.
func (t *htmlTable) link(p *page, m *markup) {
	href := unescapeValue(m.get("href"))
	for rel := range bytes.FieldsSeq(m.get("rel")) {
		n := strings.ToLower(string(unescapeValue(rel)))
		if r := t.links.find(n); r != nil && len(n) < 100 {
			p.values.named(p, r, n, words(href))
		}
	}
}
