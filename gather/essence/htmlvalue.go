package essence

import (
	"strings"

	"harvest/gather/soif"
)

// A collection is what a page's elements and attributes give, by the attribute
// of the summary it is for.
type collection struct {
	all  []collected
	size int                 // bytes in all
	seen map[string]struct{} // values of addNew, by attribute
}

// A collected is the values of one attribute.
type collected struct {
	name  string
	rank  int // of values of which one is to be chosen
	value []byte
	n     int // of values
}

const (
	maxCollected      = 64 << 10 // bytes, of a page
	maxCollectedNames = 100      // attributes, of a page
)

// single are the attributes that have one value, of the candidates the best.
func single(name string) bool {
	switch name {
	case "Title", "Author", "Description", "Date", "Language":
		return true
	}
	return false
}

// add keeps a value, in a line of its own.
func (c *collection) add(name string, rank int, value []byte) {
	if len(value) == 0 || c.size+len(value) > maxCollected {
		return
	}
	if !single(name) {
		rank = 0
	}
	var at *collected
	for i := range c.all {
		if c.all[i].name == name && c.all[i].rank == rank {
			at = &c.all[i]
		}
	}
	if at == nil {
		if len(c.all) == maxCollectedNames {
			return
		}
		at = c.another(name, rank)
	}
	if at.n > 0 {
		at.value = append(at.value, '\n')
	}
	at.value = append(at.value, value...)
	at.n++
	c.size += len(value)
}

// another makes room for the values of one more attribute.
func (c *collection) another(name string, rank int) *collected {
	n := len(c.all)
	if n < cap(c.all) {
		c.all = c.all[:n+1]
		c.all[n] = collected{name: name, rank: rank, value: c.all[n].value[:0]}
	} else {
		c.all = append(c.all, collected{name: name, rank: rank})
	}
	return &c.all[n]
}

// attributes takes those of a tag that the table has a use for.
func (c *collection) attributes(p *page, e *element, m *markup) {
	for i := range e.attr {
		r := &e.attr[i]
		if v := m.get(r.key); len(v) > 0 {
			v = unescapeValue(v)
			for _, name := range r.targets {
				if name == "URL-References" {
					p.refer(v)
				} else if len(v) <= 2048 && !strings.HasPrefix(string(v), "data:") {
					c.addNew(name, r.rank, words(v))
				}
			}
		}
	}
}

// addNew keeps a value that is not there yet.
func (c *collection) addNew(name string, rank int, value string) {
	key := name + "\n" + value
	if _, dup := c.seen[key]; dup || value == "" || c.size+len(value) > maxCollected {
		return
	}
	if c.seen == nil {
		c.seen = make(map[string]struct{})
	}
	c.seen[key] = struct{}{}
	c.add(name, rank, []byte(value))
}

// named takes the value of a META, of a LINK or of a name in JSON-LD.
func (c *collection) named(p *page, r *attrRule, name, value string) {
	for _, t := range r.targets {
		if t == "URL-References" {
			p.refer([]byte(value))
			continue
		}
		if strings.Contains(t, "$NAME") {
			if t = soif.Name(strings.Replace(t, "$NAME", name, 1)); isReserved(t) {
				continue
			}
			if w := written[strings.ToLower(t)]; w != "" {
				t = w
			}
		}
		c.addNew(t, r.rank, value)
	}
}

// candidates are the values of one attribute, by rank.
func (c *collection) candidates(name string) []collected {
	var out []collected
	for _, a := range c.all {
		if a.name != name {
			continue
		}
		i := len(out)
		for i > 0 && out[i-1].rank > a.rank {
			i--
		}
		out = append(out[:i], append([]collected{a}, out[i:]...)...)
	}
	return out
}

// first is the value of an attribute of the lowest rank.
func (c *collection) first(name string) string {
	if all := c.candidates(name); len(all) > 0 {
		return string(all[0].value)
	}
	return ""
}

// set adds an attribute to the summary.
func (c *collection) set(w *worker, o *soif.Object, name string) {
	if v := c.first(name); v != "" {
		w.set(o, name, v)
	}
}

// rest adds those that have no place of their own.
func (c *collection) rest(w *worker, o *soif.Object) {
	for _, a := range c.all {
		if !single(a.name) && a.name != "Headings" && a.name != "Keywords" {
			w.set(o, a.name, string(a.value))
		}
	}
}

// close ends the i-th of the open elements whose text is wanted, and those in it.
func (p *page) closeFrom(i int) {
	for j := len(p.open) - 1; j >= i; j-- {
		p.close(j)
	}
}

func (p *page) closeAll() { p.closeFrom(0) }

// maxMarked bounds the parts of a page that are marked.
const maxMarked = 20_000

// close ends the last of the open elements whose text is wanted.
func (p *page) close(i int) {
	o := p.open[i]
	p.open = p.open[:i]
	r, at := o.is.rule, stretch{o.start, len(p.text)}
	if at.start >= at.end {
		return
	}
	if r.keywords && len(p.marked) < maxMarked {
		p.marked = append(p.marked, at)
	}
	if r.ignore && len(p.passed) < maxMarked {
		p.passed = append(p.passed, at)
	}
	if i > 0 {
		up := &p.open[i-1]
		if r.parent {
			up.not = append(up.not, o.not...)
		} else if len(up.not) < maxMarked {
			up.not = append(up.not, at)
		}
	}
	if len(r.targets) == 0 && o.is.does&aHeading == 0 {
		return
	}
	text := p.without(at, o.not)
	if o.is.does&aHeading != 0 {
		p.told.heading(o.is, text)
	}
	if o.is.does&aHeading != 0 && len(text) >= 500 {
		return // no heading, whatever it says
	}
	for _, name := range r.targets {
		p.values.add(name, 0, text)
	}
}

// without is a part of the text, on one line, less parts of it.
func (p *page) without(at stretch, not []stretch) []byte {
	if len(not) == 0 {
		return []byte(words(p.text[at.start:at.end]))
	}
	var out []byte
	from := at.start
	for _, n := range not {
		if n.start >= from {
			out = append(out, p.text[from:n.start]...)
			from = n.end
		}
	}
	return []byte(words(append(out, p.text[from:at.end]...)))
}
