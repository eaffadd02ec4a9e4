package enginetest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"harvest/index"
	"harvest/index/query"
)

// A source of documents and queries at random. Words, values and attributes
// are few, so that queries find something and much comes together in a document.
type source struct{ *rand.Rand }

var (
	vocabulary = strings.Fields("the a of plan fuse mount kernel system file files filing kern x86_64 größe Größe naïve naive Été colour color " +
		"javax.swing spin_lock don't 9 42 3.14 2026 straße STRASSE c++ net/http foo-bar 日本語 本 東京 カタカナ ﬁle e\u0301tude Œuvre ab ba abc")
	separators = []string{" ", " ", " ", " ", "\n", ", ", "-", ". ", "\t", "; ", " \u00a0", "…", " (", "\r\n"}
	names      = []string{"title", "body", "author", "keywords"} // of text
	numbers    = []string{"0", "7", "42", "100", "1000", "2020", "10K", "-3.5", "1e3", "1048576", "2M"}
	dates      = []string{"2020-01-01", "2020-06-15 10:30:00", "2021-03-04T05:06:07Z", "2021", "1999-12", "Mon, 02 Jan 2006 15:04:05 GMT", "1600000000"}
	texts      = []string{"html", "HTML", "text html", "Text  Html", "pdf", "größe", "GRÖSSE", "", "a..b", "日本"}
)

func pick[T any](s source, list []T) T { return list[s.IntN(len(list))] }

// word is mostly one of the first of the vocabulary, in one case or another.
func (s source) word() string {
	n := len(vocabulary)
	w := vocabulary[min(s.IntN(n), s.IntN(n))]
	switch s.IntN(8) {
	case 0:
		return strings.ToUpper(w)
	case 1:
		r := []rune(w)
		r[0] = unicode.ToTitle(r[0])
		return string(r)
	}
	return w
}

func (s source) text(words int) string {
	var b strings.Builder
	for i := range s.IntN(words + 1) {
		if i > 0 || s.IntN(4) == 0 {
			b.WriteString(pick(s, separators))
		}
		w := s.word()
		b.WriteString(w)
		if s.IntN(6) == 0 {
			b.WriteString(" " + w)
		}
	}
	return b.String()
}

func (s source) id() index.ID { return index.ID{byte(s.IntN(120)), 7} }

func (s source) doc() index.Doc {
	d := index.Doc{ID: s.id()}
	add := func(name, text string) {
		if s.IntN(3) == 0 {
			name = strings.ToUpper(name[:1]) + name[1:]
		}
		d.Fields = append(d.Fields, index.Field{Name: name, Text: text})
	}
	for range s.IntN(5) {
		add(pick(s, names), s.text(15))
	}
	for range s.IntN(3) {
		add("size", pick(s, numbers))
	}
	for range s.IntN(2) {
		add("date", pick(s, dates))
	}
	for range s.IntN(2) {
		add("type", pick(s, texts))
	}
	if s.IntN(40) == 0 {
		add("body", s.text(250))
	}
	return d
}

// query is one of any form, and depth.
func (s source) query(depth int) query.Node {
	if s.IntN(4) == 0 {
		var b query.Bag
		for range 2 + s.IntN(4) {
			b = append(b, s.leaf())
		}
		return b
	}
	return s.node(depth, false)
}

func (s source) node(depth int, attr bool) query.Node {
	if depth == 0 {
		return s.item(attr)
	}
	several := func() (out []query.Node) {
		for range 2 + s.IntN(2) {
			out = append(out, s.node(depth-1, attr))
		}
		return out
	}
	switch k := s.IntN(9); {
	case k < 2:
		return query.And(several())
	case k < 4:
		return query.Or(several())
	case k < 5:
		return query.Not{Node: s.node(depth-1, attr)}
	case k < 7 && !attr:
		return query.Attr{Name: pick(s, names), Value: s.node(depth-1, true)}
	}
	return s.item(attr)
}

// item is a leaf, or something that compares.
func (s source) item(attr bool) query.Node {
	switch s.IntN(12) {
	case 0, 1:
		if attr {
			return pick(s, []query.Node{query.All{}, s.compare(texts), s.between(texts)})
		}
		return s.valueQuery()
	case 2, 3:
		return s.near()
	case 4:
		if s.IntN(3) == 0 {
			return query.All{}
		}
	}
	return s.leaf()
}

func (s source) valueQuery() query.Node {
	switch s.IntN(4) {
	case 0:
		return query.Attr{Name: "size", Value: pick(s, []query.Node{s.compare(numbers), s.between(numbers), query.All{}})}
	case 1:
		return query.Attr{Name: "date", Value: pick(s, []query.Node{s.compare(dates), s.between(dates), query.All{}})}
	case 2:
		return query.Attr{Name: "type", Value: query.Or{s.compare(texts), query.Not{Node: s.between(texts)}}}
	}
	return query.Attr{Name: pick(s, []string{"type", "title", "size", "author"}), Value: s.compare(texts)}
}

func (s source) compare(values []string) query.Node {
	return query.Compare{Op: pick(s, []string{"=", "=", "<", "<=", ">", ">="}), Value: pick(s, values)}
}

func (s source) between(values []string) query.Node {
	r := query.Range{Low: pick(s, values), High: pick(s, values)}
	switch s.IntN(4) {
	case 0:
		r.Low = ""
	case 1:
		r.High = ""
	}
	if r == (query.Range{}) {
		r.High = "x"
	}
	return r
}

func (s source) leaf() query.Node {
	switch s.IntN(12) {
	case 0, 1, 2:
		return s.phrase()
	case 3:
		return s.wild()
	case 4:
		return query.Regexp{Expr: s.expr(s.word()), Text: false}
	case 5:
		return query.Regexp{Expr: s.expr(s.piece()), Text: true}
	case 6, 7:
		return s.fuzzy()
	case 8:
		return s.fuzzyPiece()
	}
	return query.Word{Text: s.word()}
}

func (s source) near() query.Node {
	n := query.Near{Distance: 1 + s.IntN(6), Ordered: s.IntN(2) == 0}
	for range 2 + s.IntN(2) {
		n.Nodes = append(n.Nodes, s.operand())
	}
	return n
}

func (s source) operand() query.Node {
	switch s.IntN(8) {
	case 0:
		return s.phrase()
	case 1:
		return s.wild()
	case 2:
		return query.Or{s.operand(), query.Word{Text: s.word()}}
	case 3:
		return s.fuzzy()
	case 4:
		return query.Regexp{Expr: s.expr(s.word())}
	}
	return query.Word{Text: s.word()}
}

// piece is some words as they stand in a text.
func (s source) piece() string {
	var ws []string
	for range 1 + s.IntN(3) {
		ws = append(ws, s.word())
	}
	return strings.Join(ws, pick(s, []string{" ", " ", "-", ", "}))
}

func (s source) phrase() query.Node { return query.Phrase{Text: s.piece()} }

func (s source) wild() query.Node {
	r := []rune(strings.NewReplacer("/", "", "+", "", "-", "").Replace(s.word()))
	for range 1 + s.IntN(2) {
		i := s.IntN(len(r))
		switch s.IntN(3) {
		case 0:
			r[i] = '?'
		case 1:
			r[i] = '*'
		case 2:
			r = append(r[:max(i, 1)], '*')
		}
	}
	if strings.IndexFunc(string(r), unicode.IsLetter) < 0 {
		r = append(r, 'e', '*')
	}
	return query.Wild{Pattern: string(r)}
}

// expr makes a regular expression of a text.
func (s source) expr(text string) string {
	r := []rune(text)
	i := s.IntN(len(r))
	head, tail := regexp.QuoteMeta(string(r[:i])), regexp.QuoteMeta(string(r[i+1:]))
	at := regexp.QuoteMeta(string(r[i]))
	switch s.IntN(7) {
	case 0:
		return head + "." + tail
	case 1:
		return head + "[" + at + "aeiou]" + tail
	case 2:
		return head + "(" + at + "|x|" + tail + ")+" + tail
	case 3:
		return head + ".*"
	case 4:
		return ".*" + at + tail
	case 5:
		return head + at + "?" + tail + "s?"
	}
	return head + at + "{1,2}" + tail
}

// fuzzy is a word with errors, or with exact parts.
func (s source) fuzzy() query.Node {
	w := strings.NewReplacer("/", "", "+", "", "-", "").Replace(s.word())
	t := s.typo(w)
	n := count(t)
	if n < 2 {
		t, n = w+"ab", count(w)+2
	}
	if s.IntN(5) == 0 {
		r := []rune(t)
		t = "<" + string(r[:n/2+1]) + ">" + string(r[n/2+1:])
	}
	return query.Fuzzy{Text: t, Errors: min(s.IntN(4), n-1), Best: s.IntN(5) == 0}
}

// typo changes a letter or two.
func (s source) typo(text string) string {
	r := []rune(text)
	for range 1 + s.IntN(2) {
		i := s.IntN(len(r))
		switch s.IntN(4) {
		case 0:
			r = slices.Insert(r, i, 'x')
		case 1:
			if len(r) > 2 {
				r = slices.Delete(r, i, i+1)
			}
		case 2:
			r[i] = 'y'
		case 3:
			if i+1 < len(r) && r[i] != ' ' && r[i+1] != ' ' {
				r[i], r[i+1] = r[i+1], r[i]
			}
		}
	}
	return strings.Trim(string(r), " ._',")
}

// fuzzyPiece is one with errors, fewer than it has letters.
func (s source) fuzzyPiece() query.Node {
	t := s.typo(s.piece())
	if count(t) < 4 {
		t += " file"
	}
	return query.Fuzzy{Text: t, Errors: 1 + s.IntN(2), Best: s.IntN(5) == 0, Phrase: true}
}

// options are those of a search, of which each may be said or not.
func (s source) options() (opt index.Options) {
	if s.IntN(3) == 0 {
		weights := map[string]float64{"title": 4, "body": 1, "author": float64(s.IntN(2)), "type": 0.5}
		opt.Weight = func(a string) float64 { return weights[a] }
	}
	switch s.IntN(11) {
	case 0:
		opt.Case = true
	case 1:
		opt.Errors = 1 + s.IntN(2)
	case 2:
		opt.Costs.Substitute = 2
	case 3:
		opt.Costs.Insert, opt.Costs.Transpose = 2, 1
	case 4:
		opt.Stop = func(w string) bool { return slices.Contains([]string{"the", "of", "a", "plan"}, w) }
	case 5:
		opt.Stem = stem
	}
	return opt
}

// stem is a poor one.
func stem(word string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "s"), "ing"), "e")
}

// optionText says options for a message.
func optionText(opt index.Options) string {
	var out []string
	if opt.Weight != nil {
		out = append(out, fmt.Sprintf("weights title=%v body=%v author=%v type=%v others=%v", opt.Weight("title"), opt.Weight("body"), opt.Weight("author"), opt.Weight("type"), opt.Weight("x")))
	}
	if opt.Stop != nil {
		out = append(out, "stop the of a plan")
	}
	if opt.Stem != nil {
		out = append(out, "stem")
	}
	return fmt.Sprintf("case=%v errors=%d costs=%v %s", opt.Case, opt.Errors, opt.Costs, strings.Join(out, " "))
}
