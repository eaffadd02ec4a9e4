package enginetest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"harvest/index/query"
)

// unaccented is text without accents and compatible forms, as Fold has it, but
// in the case it is written.
func unaccented(text string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r) && r != 0x3099 && r != 0x309a, unicode.Is(unicode.Cf, r):
			return -1
		case r == '’':
			return '\''
		}
		return r
	}, norm.NFKD.String(text)))
}

// A test tells whether a word of a value is one that is asked for.
type test func(w *word) bool

// exact asks for a word of the query, as it is written if case matters.
func (e *evaluator) exact(q word) test {
	return func(w *word) bool {
		return w.whole == q.whole && w.text == q.text && (!e.opt.Case || w.plain == q.plain)
	}
}

// prefix asks for words of one Chinese or Japanese character and what follows.
func prefix(q word) test {
	return func(w *word) bool { return !w.whole && strings.HasPrefix(w.text, q.text) }
}

// An element is a word of a phrase, and how many words are before it.
type element struct {
	test
	offset int
}

// elements are the words with places that a text of the query asks for. The
// last character of a run of Chinese or Japanese is part of the word before it,
// and a run of one is the beginning of any.
func (e *evaluator) elements(text string) (out []element) {
	var before word
	for _, w := range cut(text) {
		switch {
		case w.whole:
			continue
		case w.cjk && before.cjk && before.end == w.end:
		case w.cjk && utf8.RuneCountInString(text[w.start:w.end]) == 1:
			out = append(out, element{prefix(w), w.pos})
		default:
			out = append(out, element{e.exact(w), w.pos})
		}
		before = w
	}
	return out
}

func (e *evaluator) phrase(text string) finder {
	es := e.elements(text)
	return func(v *value) (out []span) {
		for at := range v.places {
			if len(es) > 0 && v.follow(es, at-es[0].offset) {
				out = append(out, span{at, at - es[0].offset + es[len(es)-1].offset})
			}
		}
		return out
	}
}

// follow tells whether all elements of a phrase that begins at a place stand
// in a value.
func (v *value) follow(es []element, at int) bool {
	return !slices.ContainsFunc(es, func(e element) bool {
		i := at + e.offset
		return i < 0 || i >= len(v.places) || !e.test(&v.places[i])
	})
}

// word finds a word of the query: several words, joined or not, as a phrase, one
// with the errors that the options allow or all of its stem.
func (e *evaluator) word(text string) finder {
	if ws := cut(text); len(ws) == 1 && !ws[0].cjk {
		if k := e.errors(ws[0]); k > 0 {
			return e.fuzzyWord(query.Fuzzy{Text: escape(ws[0].plain), Errors: k})
		}
		if e.opt.Stem != nil && !e.opt.Case {
			stem := e.opt.Stem(ws[0].text)
			return e.terms(func(w *word) bool { return !w.whole && e.opt.Stem(w.text) == stem })
		}
	}
	return e.phrase(text)
}

// errors that a plain word allows.
func (e *evaluator) errors(w word) int { return min(e.opt.Errors, count(w.text)-1) }

func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "<", `\<`, ">", `\>`).Replace(text)
}

// terms finds single words, compounds too.
func (e *evaluator) terms(t test) finder {
	return func(v *value) (out []span) {
		for i := range v.words {
			switch w := &v.words[i]; {
			case w.text == "", !t(w): // the first is a number forgotten
			case w.whole:
				out = append(out, nowhere)
			default:
				out = append(out, span{w.pos, w.pos})
			}
		}
		return out
	}
}

func (e *evaluator) pattern(q query.Node, attr string) finder {
	switch q := q.(type) {
	case query.Wild:
		expr := regexp.QuoteMeta(e.folded(q.Pattern))
		expr = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(expr)
		return e.terms(e.matching("(?s)^" + expr + "$"))
	case query.Regexp:
		if q.Text {
			return e.inLines(q)
		}
		return e.terms(e.matching(e.caseFlag() + "^(?:" + e.foldedExpr(q.Expr) + ")$"))
	case query.Fuzzy:
		if q.Best {
			return e.best(q, attr)
		}
		if q.Phrase {
			return e.fuzzyLine(q)
		}
		return e.fuzzyWord(q)
	}
	panic("pattern " + q.String())
}

func (e *evaluator) folded(text string) string {
	if e.opt.Case {
		return unaccented(text)
	}
	return fold(text)
}

func (e *evaluator) caseFlag() string {
	if e.opt.Case {
		return ""
	}
	return "(?i)"
}

// foldedExpr folds the characters of an expression that are not ASCII; the
// others are left to the flag, since \S is not \s.
func (e *evaluator) foldedExpr(expr string) string {
	var b strings.Builder
	for _, r := range expr {
		if r >= utf8.RuneSelf {
			b.WriteString(e.folded(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// form is the word as it is compared.
func (e *evaluator) form(w *word) string {
	if e.opt.Case {
		return w.plain
	}
	return w.text
}

func (e *evaluator) matching(expr string) test {
	re := regexp.MustCompile(expr)
	return func(w *word) bool { return re.MatchString(e.form(w)) }
}

func (e *evaluator) fuzzyWord(q query.Fuzzy) finder {
	p := letters(e.folded(q.Text))
	return e.terms(func(w *word) bool {
		return distance(p, []rune(e.form(w)), e.opt.Costs, exactly, false) <= q.Errors
	})
}

// inLines finds an expression in lines of text, accents and all.
func (e *evaluator) inLines(q query.Regexp) finder {
	re := regexp.MustCompile(e.caseFlag() + "(?:" + q.Expr + ")")
	return func(v *value) (out []span) {
		for _, l := range lines(v.text) {
			if re.MatchString(l) {
				out = append(out, nowhere)
			}
		}
		return out
	}
}

func (e *evaluator) fuzzyLine(q query.Fuzzy) finder {
	same := anyCase
	if e.opt.Case {
		same = exactly
	}
	p := letters(q.Text)
	return func(v *value) (out []span) {
		for _, l := range lines(v.text) {
			if distance(p, []rune(l), e.opt.Costs, same, true) <= q.Errors {
				out = append(out, nowhere)
			}
		}
		return out
	}
}

// best finds with the fewest errors that find anything.
func (e *evaluator) best(q query.Fuzzy, attr string) finder {
	q.Errors, q.Best = e.fewest(q, attr), false
	if q.Errors < 0 {
		return func(*value) []span { return nil }
	}
	return e.finder(q, attr)
}

// fewest is the least number of errors with which a document is found, or -1.
func (e *evaluator) fewest(q query.Fuzzy, attr string) int {
	q.Best = false
	for q.Errors = 0; q.Errors <= most(q.Text); q.Errors++ {
		for _, d := range e.docs {
			if e.match(q, attr, d) {
				return q.Errors
			}
		}
	}
	return -1
}

// either finds any of several.
func (e *evaluator) either(q query.Or, attr string) finder {
	return func(v *value) (out []span) {
		for _, n := range q {
			out = append(out, e.finder(n, attr)(v)...)
		}
		return out
	}
}

// near finds chains of places, one of each operand, each near the one before.
func (e *evaluator) near(q query.Near, attr string) finder {
	return func(v *value) []span {
		var ends []span
		for i, n := range q.Nodes {
			var reached []span
			for _, s := range e.finder(n, attr)(v) {
				follows := func(before span) bool { return neighbours(before, s, q) }
				if s != nowhere && (i == 0 || slices.ContainsFunc(ends, follows)) {
					reached = append(reached, s)
				}
			}
			ends = reached
		}
		return ends
	}
}

func neighbours(a, b span, q query.Near) bool {
	after, before := b.first-a.last, a.first-b.last
	return after >= 1 && after <= q.Distance || !q.Ordered && before >= 1 && before <= q.Distance
}
