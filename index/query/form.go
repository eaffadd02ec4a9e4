package query

import (
	"regexp"
	"strconv"
	"strings"
)

func (All) String() string { return "*" }

func (w Word) String() string {
	if bare(w.Text) {
		return w.Text
	}
	return quote(w.Text)
}

func (p Phrase) String() string { return quote(p.Text) }

func (w Wild) String() string {
	s := scanner{text: w.Pattern}
	if t, err := s.scan(); err == nil && t.kind == wild && len(t.text) == len(w.Pattern) && searchable(t.text) {
		return w.Pattern
	}
	return w.regexp().String()
}

// regexp is the regular expression that means the same.
func (w Wild) regexp() Regexp {
	r := strings.NewReplacer(`\*`, ".*", `\?`, ".")
	return Regexp{Expr: r.Replace(regexp.QuoteMeta(w.Pattern))}
}

func (r Regexp) String() string {
	var b strings.Builder
	b.WriteByte('/')
	for i := 0; i < len(r.Expr); i++ {
		switch c := r.Expr[i]; {
		case c == '/':
			b.WriteString(`\/`)
		case c == '\\' && i+1 < len(r.Expr):
			i++
			b.WriteString(r.Expr[i-1 : i+1])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('/')
	if r.Text {
		b.WriteByte('t')
	}
	return b.String()
}

func (f Fuzzy) String() string {
	text := f.Text
	if f.Phrase {
		text = quote(text)
	}
	if f.Best {
		return text + "~"
	}
	return text + "~" + strconv.Itoa(f.Errors)
}

func (a Attr) String() string {
	name := strings.ToLower(a.Name)
	switch v := a.Value.(type) {
	case Compare:
		return name + " " + v.String()
	case nil:
		return name
	}
	return name + " : " + tight(a.Value, levelItem)
}

func (c Compare) String() string { return c.Op + " " + literal(c.Value) }

func (r Range) String() string {
	low, high := "", ""
	if r.Low != "" {
		low = literal(r.Low)
	}
	if strings.HasSuffix(low, ".") { // would join the two dots
		low = quote(low)
	}
	if r.High != "" {
		high = literal(r.High)
	}
	if strings.HasPrefix(high, ".") {
		high = quote(high)
	}
	return low + ".." + high
}

func (n Near) String() string {
	op, usual := " near", 10
	if n.Ordered {
		op, usual = " adj", 1
	}
	if n.Distance != usual {
		op += "/" + strconv.Itoa(n.Distance)
	}
	return join(n.Nodes, op+" ", levelItem)
}

func (n Not) String() string { return "not " + tight(n.Node, levelNot) }

func (a And) String() string {
	if len(a) == 0 { // asks for nothing, and so for all
		return All{}.String()
	}
	return join(a, " and ", levelNot)
}

func (o Or) String() string {
	if len(o) == 0 {
		return Not{All{}}.String()
	}
	return join(o, " or ", levelAnd)
}

// A bag within another query is an or: that is what it matches.
func (b Bag) String() string {
	if len(b) < 2 {
		return Or(b).String()
	}
	for _, n := range b {
		if !inBag(n) {
			return Or(b).String()
		}
	}
	if w, ok := b[len(b)-1].(Wild); ok && strings.HasSuffix(w.Pattern, "?") { // not a question mark
		return join(b[:len(b)-1], " ", levelItem) + " " + w.regexp().String()
	}
	return join(b, " ", levelItem)
}

// inBag tells whether a node can stand in a Bag.
func inBag(n Node) bool {
	switch n.(type) {
	case Word, Phrase, Wild, Regexp, Fuzzy:
		return true
	}
	return false
}

func join(nodes []Node, op string, level int) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(op)
		}
		b.WriteString(tight(n, level))
	}
	return b.String()
}

// tight writes n in parentheses when it binds less than level.
func tight(n Node, level int) string {
	if b, ok := n.(Bag); ok {
		n = Or(b)
	}
	if n.level() < level {
		return "(" + n.String() + ")"
	}
	return n.String()
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// literal is the value of a comparison or the end of a range.
func literal(text string) string {
	if bare(text) {
		return text
	}
	return quote(text)
}

// bare tells whether text reads back as a word without quotes.
func bare(text string) bool {
	s := scanner{text: text}
	t, err := s.scan()
	return err == nil && t.kind == word && len(t.text) == len(text) && searchable(text)
}
