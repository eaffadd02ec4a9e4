package enginetest

import (
	"math"
	"slices"

	"harvest/index"
	"harvest/index/query"
)

// A scored is a word or phrase of a query, which adds to the score of the
// documents it stands in.
type scored struct {
	find  finder
	attr  string
	words int     // that it is made of
	idf   float64 // of them
}

// scored are the words and phrases of q that are not under a not, each once;
// false if it has patterns, whose scores are not modelled.
func (e *evaluator) scored(q query.Node) (out []scored, ok bool) {
	var seen []string
	ok = true
	query.Walk(q, func(n query.Node, attr string, not bool) bool {
		var text string
		switch n := n.(type) {
		case query.Word:
			text = n.Text
		case query.Phrase:
			text = n.Text
		case query.Wild, query.Regexp, query.Fuzzy, query.Near:
			ok = ok && not
			return false
		default:
			return true
		}
		if !not {
			s := scored{find: e.finder(n, attr), attr: attr}
			key := attr + "\x00"
			for _, w := range cut(text) {
				ok = ok && !w.cjk
				if !w.whole {
					s.words, s.idf, key = s.words+1, s.idf+e.idf(e.exact(w)), key+" "+w.text
				}
			}
			if !slices.Contains(seen, key) {
				out, seen = append(out, s), append(seen, key)
			}
		}
		return true
	})
	return out, ok
}

// score is what the formula gives a document; mean is the length of all.
func (e *evaluator) score(leaves []scored, d *document, mean float64) (sum float64) {
	length := float64(index.NormLength(index.Norm(d.length)))
	for _, l := range leaves {
		for attr, tf := range e.counts(l, d) {
			sum += e.weight(l, attr) * l.idf * tf * (1.2 + 1) / (tf + 1.2*(1-0.75+0.75*length/mean))
		}
	}
	return sum
}

// mean is the mean length of documents in words.
func (m *model) mean() float64 {
	total := 0
	for _, d := range m.docs {
		total += d.length
	}
	return max(float64(total)/float64(len(m.docs)), 1)
}

// counts are how often the leaf stands in the attributes it looks into.
func (e *evaluator) counts(l scored, d *document) map[string]float64 {
	counts := make(map[string]float64)
	for i := range d.values {
		v := &d.values[i]
		if n := len(l.find(v)); n > 0 && e.looks(l.attr, v.attr) {
			counts[v.attr] += float64(n)
		}
	}
	return counts
}

// weight is that of an attribute; one that the query names counts.
func (e *evaluator) weight(l scored, attr string) float64 {
	if w := e.opt.Weigh(attr); w > 0 || l.attr == "" {
		return w
	}
	return 1
}

// idf is the rarity of a word, which stands in an attribute, whichever.
func (e *evaluator) idf(t test) float64 {
	n := 0.0
	for _, d := range e.docs {
		if slices.ContainsFunc(d.values, func(v value) bool { return len(e.terms(t)(&v)) > 0 }) {
			n++
		}
	}
	return math.Log(1 + (float64(len(e.docs))-n+0.5)/(n+0.5))
}
