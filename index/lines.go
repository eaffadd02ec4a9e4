package index

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"harvest/index/query"
)

// A Line is a line of a document in which a query matches.
type Line struct {
	Attr   string
	Text   string   // without its newline and the white space around it
	Ranges [][2]int // the bytes of Text that match, in order, apart from each other
	Errors int      // the fewest that one of the matches has
}

// Lines gives the lines of a document in which words, phrases or patterns of q
// stand that are not under a not; see Matcher.Lines. A query that does not
// compile has none.
func Lines(q query.Node, opt Options, fields []Field, limit int, yield func(Line) bool) {
	if m, err := Compile(q, opt); err == nil {
		m.Lines(fields, limit, yield)
	}
}

// Lines calls yield for the lines of a document in which words, phrases or
// patterns of the query stand that are not under a not, in the order of the
// fields, until it returns false. It does so whether or not the document
// matches. A phrase that runs over lines counts for the one it begins on. A
// line of more than limit bytes is cut to that around its first match.
func (m *Matcher) Lines(fields []Field, limit int, yield func(Line) bool) {
	m.open(fields)
	defer m.release()
	var spans []span
	for i := range m.fields {
		v := &m.fields[i]
		spans = spans[:0]
		for _, f := range m.leaves {
			if f.looks(v) && f.leaf.in(m, v) {
				spans = f.leaf.spans(m, v, spans)
			}
		}
		slices.SortFunc(spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		if !matchedLines(v, spans, limit, yield) {
			return
		}
	}
}

// matchedLines groups the spans in a value by the lines they begin on.
func matchedLines(v *value, spans []span, limit int, yield func(Line) bool) bool {
	for len(spans) > 0 {
		begin := strings.LastIndexByte(v.text[:spans[0].start], '\n') + 1
		end := len(v.text)
		if i := strings.IndexByte(v.text[spans[0].start:], '\n'); i >= 0 {
			end = spans[0].start + i
		}
		n := 1
		for n < len(spans) && spans[n].start <= end {
			n++
		}
		if !yield(newLine(v, begin, end, spans[:n], limit)) {
			return false
		}
		spans = spans[n:]
	}
	return true
}

// newLine makes the line from begin to end, with its matches.
func newLine(v *value, begin, end int, spans []span, limit int) Line {
	begin, end = cut(v.text, begin, end, spans[0].start, limit)
	text := v.text[begin:end]
	begin += len(text) - len(strings.TrimLeft(text, " \t\r\n\v\f"))
	text = strings.TrimSpace(text)
	l := Line{Attr: v.field, Errors: spans[0].errors}
	valid := func(s string) string { return strings.ToValidUTF8(s, "") }
	for _, s := range spans {
		l.Errors = min(l.Errors, s.errors)
		from, to := clamp(s.start-begin, len(text)), clamp(s.end-begin, len(text))
		if from == to {
			continue
		}
		from, to = len(valid(text[:from])), len(valid(text[:to]))
		if n := len(l.Ranges); n > 0 && from <= l.Ranges[n-1][1] {
			l.Ranges[n-1][1] = max(l.Ranges[n-1][1], to)
		} else {
			l.Ranges = append(l.Ranges, [2]int{from, to})
		}
	}
	l.Text = valid(text)
	return l
}

func clamp(i, n int) int { return min(max(i, 0), n) }

// cut takes limit bytes of a line that is longer, around a match, with some of
// what is before it.
func cut(text string, begin, end, at, limit int) (int, int) {
	if end-begin <= limit {
		return begin, end
	}
	if at-begin > limit/2 {
		for begin = at - limit/4; begin < at && !utf8.RuneStart(text[begin]); begin++ {
		}
	}
	if begin+limit < end {
		for end = begin + limit; end > begin && !utf8.RuneStart(text[end]); end-- {
		}
	}
	return begin, end
}
