package essence

import (
	"bytes"
	"strconv"
	"strings"
)

// # What a reader does not see
//
// Words that a page hides from its readers are there for indexes, and left out:
// those of elements that are hidden, not displayed, of no size or opacity, or
// in the colour of what is behind them. It is told by the tags alone; what
// style sheets and scripts do is not known, and so an element with a class or
// an id has a background that is not known either.

// A cover is an element whose end is waited for.
type cover struct {
	name  []byte
	why   unseen // why its words are hidden
	depth int    // elements of that name that are open in it, itself included
	back  string // its background, "" when that is not known
}

// maxCovers bounds the elements that are waited for at once.
const maxCovers = 256

// A veil is the elements that hide their words, and those that set a background
// which could.
type veil struct {
	hidden cover // if its depth is not 0
	backs  []cover
	missed [manyUnseen]missed
}

// An unseen is why words are not seen.
type unseen int

const (
	seen unseen = iota
	asTemplate
	asHidden
	asTiny
	asClear
	asColour
	manyUnseen
)

func (u unseen) String() string {
	return [manyUnseen]string{"", "of a template", "hidden, or not displayed", "without size", "without opacity", "in the colour behind them"}[u]
}

// A missed is what words were not seen: how many, and how they begin.
type missed struct {
	words int
	begin []byte
}

// miss hears of text that is hidden.
func (v *veil) miss(text []byte) {
	m := &v.missed[v.hidden.why]
	room := max(maxMissed-len(m.begin), 0)
	if m.words > 0 && room > 0 {
		m.begin = append(m.begin, ' ')
	}
	m.begin = append(m.begin, text[:min(len(text), room)]...)
	in := false
	for _, b := range text {
		if word := wordBytes[b]; word != in {
			if in = word; in {
				m.words++
			}
		}
	}
}

// maxMissed is how much of hidden words is told.
const maxMissed = 200

// tell adds to a trace what words a reader does not see, and why.
func (v *veil) tell(w *worker, c *content) {
	for why, m := range v.missed {
		if m.words > 0 {
			begin := cutText([]byte(clean(words(string(m.begin)))), 80)
			w.step(c, "summarize", strconv.Itoa(m.words)+" words left out", unseen(why).String()+": "+string(begin))
		}
	}
}

// start hears of an element and its attributes, and reports whether words are
// hidden from now on.
func (v *veil) start(name []byte, attrs []pair) bool {
	if v.hidden.depth > 0 && v.within(name) {
		return true
	}
	if n := len(v.backs); n > 0 && bytes.EqualFold(name, v.backs[n-1].name) {
		v.backs[n-1].depth++
	}
	if isNamed(name, "template") {
		v.hidden = cover{name: bytes.Clone(name), why: asTemplate, depth: 1}
		return true
	}
	if !v.telling(attrs) || isVoid(name) {
		return false
	}
	l := readLook(attrs)
	if why := l.hides(v.back()); why != seen {
		v.hidden = cover{name: bytes.Clone(name), why: why, depth: 1}
		return true
	}
	if (l.back != "" || l.styled && len(v.backs) > 0) && len(v.backs) < maxCovers {
		v.backs = append(v.backs, cover{name: bytes.Clone(name), depth: 1, back: l.back})
	}
	return false
}

// within hears of an element where words are hidden, and reports whether they
// still are.
func (v *veil) within(name []byte) bool {
	h := &v.hidden
	switch same := bytes.EqualFold(name, h.name); {
	case same && endedByNext(name), bytes.EqualFold(name, []byte("body")):
		h.depth = 0
	case same:
		h.depth++
	case bytes.EqualFold(h.name, []byte("p")) && elements[strings.ToLower(string(name))]&aBlock != 0:
		h.depth = 0
	}
	return h.depth > 0
}

// telling reports whether a tag may say how its element looks. Most do not, and
// that is to be known at once.
func (v *veil) telling(attrs []pair) bool {
	for i := range attrs {
		yes := false
		switch k := attrs[i].key; k[0] | 0x20 {
		case 's':
			yes = isNamed(k, "style")
		case 'h':
			yes = isNamed(k, "hidden")
		case 'b':
			yes = isNamed(k, "bgcolor")
		case 'c':
			yes = isNamed(k, "color") || len(v.backs) > 0 && isNamed(k, "class")
		case 'i':
			yes = len(v.backs) > 0 && isNamed(k, "id")
		}
		if yes {
			return true
		}
	}
	return false
}

// end hears of the end of an element, and reports whether words are hidden.
func (v *veil) end(name []byte) bool {
	if v.hidden.depth == 0 && len(v.backs) == 0 {
		return false
	}
	if v.hidden.depth > 0 {
		if bytes.EqualFold(name, v.hidden.name) {
			v.hidden.depth--
		} else if bytes.EqualFold(name, []byte("body")) {
			v.hidden.depth = 0
		}
		return v.hidden.depth > 0
	}
	if n := len(v.backs); n > 0 && bytes.EqualFold(name, v.backs[n-1].name) {
		if v.backs[n-1].depth--; v.backs[n-1].depth == 0 {
			v.backs = v.backs[:n-1]
		}
	}
	return false
}

func (v *veil) back() string {
	if n := len(v.backs); n > 0 {
		return v.backs[n-1].back
	}
	return ""
}

// endedByNext reports whether an element ends where the next of its name begins.
func endedByNext(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "p", "li", "dt", "dd", "tr", "td", "th", "option":
		return true
	}
	return false
}

// isVoid reports whether an element holds nothing.
func isVoid(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "img", "br", "hr", "input", "meta", "link", "area", "base", "col", "embed", "source", "track", "wbr":
		return true
	}
	return false
}

// A look is what a tag's attributes say of how its element is seen.
type look struct {
	hidden, tiny, clear bool
	colour              string // of its words; colours are #rrggbb
	back                string // behind them
	styled              bool   // by a class or an id, from elsewhere
}

func (l *look) hides(back string) unseen {
	if l.back != "" {
		back = l.back
	}
	switch {
	case l.hidden:
		return asHidden
	case l.tiny:
		return asTiny
	case l.clear:
		return asClear
	case l.colour != "" && l.colour == back && !(l.styled && l.back == ""):
		return asColour
	}
	return seen
}

// readLook reads the attributes of a tag.
func readLook(attrs []pair) (l look) {
	for _, a := range attrs {
		switch strings.ToLower(string(a.key)) {
		case "hidden":
			l.hidden = !strings.EqualFold(string(a.value), "until-found")
		case "class", "id":
			l.styled = true
		case "color":
			l.colour = colour(string(a.value))
		case "bgcolor":
			l.back = colour(string(a.value))
		case "style":
			l.style(string(unescapeValue(a.value)))
		}
	}
	return l
}

// style reads a style attribute.
func (l *look) style(text string) {
	for rule := range strings.SplitSeq(strings.ToLower(text), ";") {
		name, value, _ := strings.Cut(rule, ":")
		name = strings.TrimSpace(name)
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		switch name {
		case "display":
			l.hidden = l.hidden || value == "none"
		case "visibility":
			l.hidden = l.hidden || value == "hidden" || value == "collapse"
		case "opacity":
			l.clear = l.clear || zero(value)
		case "font-size":
			l.tiny = l.tiny || tiny(value)
		case "color":
			l.colour = colour(value)
		case "background", "background-color":
			if l.back = colour(value); l.back == "" {
				l.styled = true // a picture, or a colour told otherwise
			}
		}
	}
}

func zero(value string) bool { return strings.Trim(value, "0.%") == "" && value != "" }

// tiny reports whether a size is none or a pixel or two.
func tiny(value string) bool {
	n := strings.TrimRight(value, "pxtemr%")
	if zero(n) {
		return true
	}
	switch unit := value[len(n):]; unit {
	case "px", "pt":
		return n == "1" || n == "2" || strings.HasPrefix(n, "0.") || strings.HasPrefix(n, "1.")
	}
	return false
}

var colours = map[string]string{
	"white": "#ffffff", "black": "#000000", "silver": "#c0c0c0", "gray": "#808080", "grey": "#808080", "red": "#ff0000", "maroon": "#800000",
	"yellow": "#ffff00", "olive": "#808000", "lime": "#00ff00", "green": "#008000", "aqua": "#00ffff", "teal": "#008080", "blue": "#0000ff",
	"navy": "#000080", "fuchsia": "#ff00ff", "purple": "#800080",
}

// colour writes a colour as #rrggbb, "" when it is none that is known.
func colour(value string) string {
	value = strings.ToLower(strings.TrimSpace(value))
	if c := colours[value]; c != "" {
		return c
	}
	value = strings.TrimPrefix(value, "#")
	if strings.Trim(value, "0123456789abcdef") != "" {
		return ""
	}
	switch len(value) {
	case 3:
		return "#" + value[0:1] + value[0:1] + value[1:2] + value[1:2] + value[2:3] + value[2:3]
	case 6:
		return "#" + value
	}
	return ""
}
