package index

import (
	"strings"

	"harvest/index/query"
)

// What a query does not ask for, and yet tells its hits apart: leaves that score
// and match nothing.

// A beside is what is to score beside a node of the query.
type beside struct {
	node  query.Node
	attr  string
	boost float64
	why   string // for plan
}

// besides are what scores beside q, which is not under a not: the word as it
// is written if errors are allowed, by as much that no word with errors
// reaches it however often it stands (in a document of mean length); and, where
// only the text tells what a pattern matches since case counts, the words that
// the pattern matches if it does not.
func (s *searcher) besides(q query.Node, attr string, decided bool) {
	if s.opt.Rank != RankBM25 {
		return
	}
	if decided {
		switch f := q.(type) {
		case query.Regexp:
			if !f.Text {
				s.more = append(s.more, beside{q, attr, 1, "case aside"})
			}
		case query.Fuzzy:
			if !f.Phrase {
				s.more = append(s.more, beside{q, attr, 1, "case aside"})
			}
		case query.Wild, query.Word:
			s.more = append(s.more, beside{q, attr, 1, "case aside"})
		}
	}
	text := ""
	switch q := q.(type) {
	case query.Fuzzy:
		if q.Errors > 0 && !q.Phrase && !strings.ContainsAny(q.Text, `<>\`) {
			text = q.Text
		}
	case query.Word:
		if s.opt.Errors > 0 {
			text = q.Text
		}
	}
	if text != "" {
		s.more = append(s.more, beside{query.Word{Text: text}, attr, bm25K1, "without errors"})
	}
}

// addBesides makes leaves of them. What has one already is that, with more weight.
func (s *searcher) addBesides() {
	for _, b := range s.more {
		var op operand
		if w, ok := b.node.(query.Word); ok {
			if s.cut.text(w.Text); len(s.cut.words) != 1 || s.cut.words[0].prefix {
				continue
			}
			if b.boost != 1 { // or else with errors, or those of its stem
				op = s.elem(s.cut.word(0))
			}
		}
		if op == nil {
			op = s.operand(b.node, false)
		}
		if op != nil && op.docs(s.view.docs) > 0 {
			s.addMore(b.node, b.attr, op, b.boost).why = b.why
		}
	}
	clear(s.more)
	s.more = s.more[:0]
}

// addMore adds a leaf that scores; no document has to have it.
func (s *searcher) addMore(q query.Node, attr string, op operand, boost float64) *clause {
	for _, l := range s.leaves {
		if !l.not && l.attr == attr && sameOperand(l.op, op) {
			l.boost += boost
			return l
		}
	}
	l := s.leafs.get()
	*l = clause{node: q, attr: attr, op: op, boost: boost, extra: true, idf: op.idf(&s.census)}
	s.leaves = append(s.leaves, l)
	return l
}
