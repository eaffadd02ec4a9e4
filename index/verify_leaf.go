package index

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"harvest/index/match"
	"harvest/index/query"
)

// word compiles a leaf that stands for words. Beside others (near) patterns do
// not stand for compounds, which have no place among them.
func (m *Matcher) word(q query.Node, near bool) (leaf, error) {
	opt := match.Options{Case: true} // both sides are folded
	switch q := q.(type) {
	case query.Word:
		return m.plainWord(q, near)
	case query.Phrase:
		return newPhrase(phraseOf(q.Text), m.opt.Case), nil
	case query.Wild:
		opt.Syntax = match.Wild
		return m.pattern(m.fold(q.Pattern), opt, near)
	case query.Regexp:
		opt.Syntax, opt.Case = match.Regexp, m.opt.Case
		return m.pattern(m.foldWide(q.Expr), opt, near)
	case query.Fuzzy:
		opt.Errors, opt.Costs, opt.Parts = m.errors(q), m.opt.Costs, true
		return m.pattern(m.fold(q.Text), opt, near)
	}
	return nil, bad(q, "is nothing to look for")
}

// fold is text as words are compared.
func (m *Matcher) fold(text string) string {
	if m.opt.Case {
		return string(appendCased(nil, text))
	}
	return string(Fold(nil, text))
}

// foldWide folds the characters of an expression that are not ASCII; the
// others are left to the pattern, since \S is not \s.
func (m *Matcher) foldWide(expr string) string {
	if isASCII(expr) {
		return expr
	}
	var b strings.Builder
	for _, r := range expr {
		if r < utf8.RuneSelf {
			b.WriteByte(byte(r))
		} else {
			b.WriteString(m.fold(string(r)))
		}
	}
	return b.String()
}

// errors is how many a fuzzy word or phrase allows; see Compile.
func (m *Matcher) errors(f query.Fuzzy) int {
	if !f.Best {
		return f.Errors
	}
	letters := 0
	escaped := false
	for _, r := range f.Text {
		if escaped = r == '\\' && !escaped; !escaped && r != '<' && r != '>' {
			letters++
		}
	}
	return min(match.MaxErrors, max(1, letters/2))
}

func (m *Matcher) plainWord(q query.Word, near bool) (leaf, error) {
	words, single := queryWord(q.Text)
	if !single {
		return newPhrase(words, m.opt.Case), nil
	}
	text := words[0].as(m.opt.Case)
	if k := min(m.opt.Errors, utf8.RuneCountInString(text)-1); k > 0 {
		return m.pattern(text, match.Options{Case: true, Errors: k, Costs: m.opt.Costs}, near)
	}
	if m.opt.Stem != nil && !m.opt.Case {
		stem := m.opt.Stem
		return &pattern{match: remember(stem, stem(text)), near: near}, nil
	}
	return newPhrase(words, m.opt.Case), nil
}

// remember tells words that stem maps to a stem. It keeps what it has learned
// of some thousand words.
func remember(stem func(string) string, want string) func([]byte) (int, bool) {
	known := map[string]bool{}
	return func(word []byte) (int, bool) {
		is, ok := known[string(word)]
		if !ok {
			if len(known) >= 1<<14 {
				clear(known)
			}
			is = stem(string(word)) == want
			known[string(word)] = is
		}
		return 0, is
	}
}

// A phrase is words one after another, or one word.
type phrase struct {
	words  []string
	at     []int  // their places, from that of the first
	prefix []bool // they stand for all words they begin
	cased  bool
	number bool // one is a number

	anchor int             // the word to look for
	find   *match.Searcher // of the anchor, if all words are ASCII
}

func newPhrase(words []wordOf, cased bool) leaf {
	p := &phrase{cased: cased}
	for i, w := range words {
		text := w.as(cased)
		p.words = append(p.words, text)
		p.at = append(p.at, w.pos-words[0].pos)
		p.prefix = append(p.prefix, w.prefix)
		p.number = p.number || isNumber([]byte(text))
		if p.rarer(text, p.words[p.anchor]) {
			p.anchor = i
		}
	}
	if len(words) > 0 && isASCII(p.words[p.anchor]) {
		p.find = match.NewSearcher(p.words[p.anchor], !cased)
	}
	return p
}

// rarer tells which word to look for: one that is not ASCII, or the longer.
func (p *phrase) rarer(a, b string) bool {
	if isASCII(a) != isASCII(b) {
		return isASCII(b)
	}
	return len(a) > len(b)
}

func (p *phrase) cost() int {
	if p.find == nil {
		return costText
	}
	return costBytes
}

func (p *phrase) in(m *Matcher, v *value) bool {
	if len(p.words) == 0 || p.number && !m.numbers {
		return false
	}
	as, open := lettered, false
	if p.find != nil {
		var ok bool
		if ok, open = p.inBytes(m, v.text); ok {
			return true
		}
		as = folding
	}
	if v.isASCII() {
		return false
	}
	odd := m.oddWords(v, as).holds(p.words[p.anchor], p.prefix[p.anchor])
	if len(p.words) == 1 {
		return odd
	}
	return (odd || open) && p.run(m.allWords(v), func(span) bool { return true })
}

// inBytes looks for the words where no characters beyond ASCII are part of
// them. If there are some, it stays open.
func (p *phrase) inBytes(m *Matcher, text string) (ok, open bool) {
	for at := 0; ; {
		start, end, ok := p.find.FindString(text, at)
		if !ok {
			return false, open
		}
		at = start + 1
		if start > 0 && alnum(text[start-1]) {
			continue
		}
		w := walk{text: text, cased: p.cased}
		if len(p.words) == 1 && w.touchesLetter(start, end) {
			if ok, at = p.inStretch(m, text, start); ok {
				return true, false
			}
			continue
		}
		if w.touches(start, w.end(end, p.words[p.anchor])) && w.goesOn(p.words[p.anchor+1:]) && w.cameBefore(p.words[:p.anchor]) {
			return true, false
		}
		open = open || w.open
	}
}

// A walk goes from a word of a text to its neighbours.
type walk struct {
	text     string
	cased    bool
	from, to int  // what it has passed
	open     bool // it met a character that bytes do not decide on
}

// end is where the word ends that begins with the one sought; one of MaxWord
// bytes may go on.
func (w *walk) end(end int, word string) int {
	for len(word) == MaxWord && !w.cased && end < len(w.text) && alnum(w.text[end]) {
		end++
	}
	return end
}

// touches tells whether a word begins and ends at from and to.
func (w *walk) touches(from, to int) bool {
	w.from, w.to = from, to
	if to < len(w.text) && alnum(w.text[to]) {
		return false
	}
	return !w.letterAfter() && !w.letterBefore()
}

// touchesLetter tells whether a character beyond ASCII that may belong to the
// word stands beside it.
func (w *walk) touchesLetter(from, to int) bool {
	w.from, w.to = from, to
	return w.letterAfter() || w.letterBefore()
}

// letterAfter tells whether a character beyond ASCII that may belong to the
// word stands after what was passed.
func (w *walk) letterAfter() bool {
	if w.to == len(w.text) || w.text[w.to] < utf8.RuneSelf {
		return false
	}
	r, _ := utf8.DecodeRuneInString(w.text[w.to:])
	w.open = w.open || plays(r, lettered)
	return plays(r, lettered)
}

func (w *walk) letterBefore() bool {
	if w.from == 0 || w.text[w.from-1] < utf8.RuneSelf {
		return false
	}
	r, _ := utf8.DecodeLastRuneInString(w.text[:w.from])
	w.open = w.open || plays(r, lettered)
	return plays(r, lettered)
}

// goesOn tells whether words follow.
func (w *walk) goesOn(words []string) bool {
	for _, word := range words {
		for w.to < len(w.text) && !alnum(w.text[w.to]) {
			if w.letterAfter() {
				return false
			}
			_, n := utf8.DecodeRuneInString(w.text[w.to:])
			w.to += n
		}
		start := w.to
		for w.to < len(w.text) && alnum(w.text[w.to]) {
			w.to++
		}
		if w.letterAfter() || !w.equal(w.text[start:w.to], word) {
			return false
		}
	}
	return true
}

// cameBefore tells whether words stand before.
func (w *walk) cameBefore(words []string) bool {
	for i := len(words) - 1; i >= 0; i-- {
		for w.from > 0 && !alnum(w.text[w.from-1]) {
			if w.letterBefore() {
				return false
			}
			_, n := utf8.DecodeLastRuneInString(w.text[:w.from])
			w.from -= n
		}
		end := w.from
		for w.from > 0 && alnum(w.text[w.from-1]) {
			w.from--
		}
		if w.letterBefore() || !w.equal(w.text[w.from:end], words[i]) {
			return false
		}
	}
	return true
}

// equal compares a word of text with one of the query.
func (w *walk) equal(text, word string) bool {
	if w.cased {
		return text == word
	}
	if len(text) > MaxWord {
		text = text[:MaxWord]
	}
	if len(text) != len(word) {
		return false
	}
	for i := range len(text) {
		if class[text[i]] != word[i] {
			return false
		}
	}
	return true
}

// inStretch looks for the word in a stretch of text around a place, and tells
// where the next begins.
func (p *phrase) inStretch(m *Matcher, text string, at int) (bool, int) {
	begin, end := stretch(text, at)
	m.some.reset()
	m.cut(&m.some, text[begin:end], begin)
	return m.some.holds(p.words[0], false), end
}

func (p *phrase) spans(m *Matcher, v *value, dst []span) []span {
	if len(p.words) == 0 || p.number && !m.numbers {
		return dst
	}
	p.run(m.allWords(v), func(s span) bool {
		dst = append(dst, s)
		return false
	})
	return dst
}

// run calls yield for each place among tokens until it returns true.
func (p *phrase) run(t *tokens, yield func(span) bool) bool {
	for i := range t.parts {
		last := i + p.at[len(p.at)-1]
		if last >= len(t.parts) {
			break
		}
		if p.all(t, i) {
			s := t.parts[i].span()
			s.last, s.end = last, int(t.parts[last].end)
			if yield(s) {
				return true
			}
		}
	}
	return false
}

func (p *phrase) all(t *tokens, first int) bool {
	for j, w := range p.words {
		if !t.is(&t.parts[first+p.at[j]], w, p.prefix[j]) {
			return false
		}
	}
	return true
}

// A lineText is a pattern found in the lines of a text.
type lineText struct{ p *match.Pattern }

func (m *Matcher) textRegexp(q query.Regexp) (leaf, error) {
	p, err := match.Compile(q.Expr, match.Options{Syntax: match.Regexp, Case: m.opt.Case, Lines: true})
	return lineText{p}, err
}

func (m *Matcher) textFuzzy(q query.Fuzzy) (leaf, error) {
	p, err := match.Compile(q.Text, match.Options{Errors: m.errors(q), Costs: m.opt.Costs, Parts: true,
		Case: m.opt.Case, Lines: true})
	return lineText{p}, err
}

func (lineText) cost() int { return costText }

func (l lineText) in(m *Matcher, v *value) bool {
	if v.text == "" {
		return false // has no line
	}
	if strings.IndexByte(v.text, '\r') < 0 {
		return l.p.HasString(strings.TrimSuffix(v.text, "\n"))
	}
	return lines(v.text, func(line string, _ int) bool { return l.p.HasString(line) })
}

// lines calls yield for the lines of text, without what ends them, and where
// they begin, until it returns true.
func lines(text string, yield func(line string, at int) bool) bool {
	for at := 0; at < len(text); {
		end, next := len(text), len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		if yield(strings.TrimSuffix(text[at:end], "\r"), at) {
			return true
		}
		at = next
	}
	return false
}

func (l lineText) spans(_ *Matcher, v *value, dst []span) []span {
	lines(v.text, func(line string, begin int) bool {
		for at := 0; at <= len(line); {
			start, end, errors, ok := l.p.FindString(line, at)
			if !ok {
				break
			}
			dst = append(dst, span{0, 0, begin + start, begin + end, errors})
			if at = end; end == start {
				_, n := utf8.DecodeRuneInString(line[at:])
				at += max(n, 1)
			}
		}
		return false
	})
	return dst
}

// bySpan sorts spans by where they begin, then end.
func bySpan(list []span) {
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last), cmp.Compare(a.start, b.start))
	})
}
