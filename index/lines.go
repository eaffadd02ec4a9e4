package index

import (
	"strings"

	"harvest/index/query"
)

// A Line is a line of a document in which a query matches.
type Line struct {
	Attr string
	Text string // without its newline and the white space around it
}

// Lines gives the lines of a document's fields in which words or phrases of q
// stand that are not under a not, in the order of the fields; a phrase that
// runs over lines counts for the one it begins on. The text of a line is cut
// to max bytes around the match.
func Lines(q query.Node, opt Options, fields []Field, max int, yield func(Line) bool) {
	var leaves []*lineLeaf
	collect(q, "", &leaves)
	for i := range fields {
		f := &fields[i]
		name := Attr(f.Name)
		var here []*lineLeaf
		for _, l := range leaves {
			if len(l.words) > 0 && l.weight(opt, name) > 0 {
				here = append(here, l)
			}
		}
		if len(here) > 0 && !lines(here, f, max, yield) {
			return
		}
	}
}

// collect gathers the leaves that score.
func collect(q query.Node, attr string, out *[]*lineLeaf) {
	switch q := q.(type) {
	case query.Attr:
		collect(q.Value, Attr(q.Name), out)
	case query.And:
		for _, n := range q {
			collect(n, attr, out)
		}
	case query.Or:
		for _, n := range q {
			collect(n, attr, out)
		}
	case query.Bag:
		collect(query.Or(q), attr, out)
	case query.Word:
		*out = append(*out, newLineLeaf(q.Text, attr))
	case query.Phrase:
		*out = append(*out, newLineLeaf(q.Text, attr))
	}
}

// lines goes through the words of one value once. A leaf of n words has up to
// n-1 beginnings of itself open, each with the byte it began at.
func lines(leaves []*lineLeaf, f *Field, max int, yield func(Line) bool) bool {
	open := make([][]int, len(leaves)) // by leaf, by words seen: where it began, or -1
	for i, l := range leaves {
		open[i] = make([]int, len(l.words))
		for j := range open[i] {
			open[i][j] = -1
		}
	}
	more := true
	shown := 0 // bytes of the value up to which lines were given
	Words(f.Text, func(w *Word) bool {
		if w.Whole {
			return true
		}
		word, start := w.Text, w.Start
		found := -1
		for i, l := range leaves {
			if at := advance(open[i], l.words, word, start); at >= shown && (found < 0 || at < found) {
				found = at
			}
		}
		if found >= 0 {
			var text string
			text, shown = lineAt(f.Text, found, max)
			more = yield(Line{f.Name, text})
		}
		return more
	})
	return more
}

// advance takes one word. open[j] is where the words up to j began, if they
// stand just before; it returns where all of them began, or -1.
func advance(open []int, words []string, word []byte, start int) int {
	for j := len(words) - 1; j >= 0; j-- {
		at := start
		if j > 0 {
			at = open[j-1]
		}
		if at >= 0 && words[j] != string(word) {
			at = -1
		}
		open[j] = at
	}
	return open[len(words)-1]
}

// lineAt is the line of text around a byte, and where the next begins.
func lineAt(text string, at, max int) (line string, next int) {
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	next = end
	if end-begin > max { // show the match with some of what is before it
		if at-begin > max/2 {
			begin = at - max/4
		}
		end = min(begin+max, end)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[begin:end], "")), next
}

// A lineLeaf is a word or phrase of the query with the attribute it is asked of.
type lineLeaf struct {
	attr  string // "" for any that has a weight
	words []string
}

func newLineLeaf(text, attr string) *lineLeaf { return &lineLeaf{attr, terms(text)} }

// weight is that of an attribute for the leaf; one that is named counts.
func (l *lineLeaf) weight(opt Options, attr string) float64 {
	if l.attr != "" && l.attr != attr {
		return 0
	}
	w := max(opt.Weigh(attr), 0)
	if w == 0 && l.attr != "" {
		w = 1
	}
	return w
}
