package route

import (
	"math"
	"strings"

	"harvest/index"
	"harvest/index/query"
)

// An estimate is what a digest says of a query.
type estimate struct {
	docs  float64 // objects that match, words taken to be independent; 0: surely none
	score float64 // no object has more, with all the words that are here
	short string  // the word for want of which it matches nothing
	vague bool    // the digest cannot tell
}

// An estimator asks one digest.
type estimator struct {
	d      *Digest
	weigh  func(word string) float64
	memory map[string]Word
}

func (e *estimator) word(word string) Word {
	w, ok := e.memory[word]
	if !ok {
		w = e.d.Word(word)
		e.memory[word] = w
	}
	return w
}

func (e *estimator) all() float64 { return float64(e.d.Objects) }

// of estimates a query within an attribute, "" for any.
func (e *estimator) of(q query.Node, attr string) estimate {
	switch q := q.(type) {
	case query.All:
		return e.presence(attr)
	case query.Word:
		return e.text(q.Text, attr, false)
	case query.Phrase:
		return e.text(q.Text, attr, true)
	case query.Attr:
		return e.of(q.Value, index.Attr(q.Name))
	case query.And:
		return e.every(q, attr)
	case query.Near:
		return e.every(q.Nodes, attr)
	case query.Or:
		return e.some(q, attr)
	case query.Bag:
		return e.some(q, attr)
	case query.Compare:
		return e.compare(q, attr)
	case query.Range:
		return e.within(q, attr)
	case query.Not:
		in := e.of(q.Node, attr)
		return estimate{docs: max(e.all()-in.docs, 1), vague: in.vague}
	}
	return e.unknown(attr) // patterns
}

// unknown is of what cannot be told, but whether the attribute is there.
func (e *estimator) unknown(attr string) estimate {
	in := e.presence(attr)
	if in.docs > 0 {
		in.docs, in.vague = max(in.docs/10, 1), true
	}
	return in
}

func (e *estimator) presence(attr string) estimate {
	if attr == "" {
		return estimate{docs: e.all()}
	}
	a, ok := e.d.of(attr)
	if !ok || a.Objects == 0 {
		return estimate{short: attr + ":"}
	}
	return estimate{docs: float64(a.Objects)}
}

// text estimates the words of a text, all of which are to be there; side by side
// they say as much as they say together in the object that has the rarest most.
func (e *estimator) text(text, attr string, phrase bool) (out estimate) {
	out.docs = e.all()
	least, sum, n := math.Inf(1), 0.0, 0
	index.Words(text, func(w *index.Word) bool {
		if w.Whole {
			return true // its parts came before it
		}
		name := string(w.Text)
		in := e.word(name)
		if !e.d.has(in, attr) {
			if e.unlisted(w) {
				in = Word{Objects: 1, Most: 1}
			} else {
				out = estimate{short: name}
				return false
			}
		}
		n++
		out.docs *= min(float64(in.Objects)/max(e.all(), 1), 1)
		out.score += e.weigh(name) * in.Most
		sum += e.weigh(name)
		least = min(least, in.Most)
		return true
	})
	if n == 0 && out.short == "" {
		return e.unknown(attr)
	}
	if phrase && out.docs > 0 && n > 1 {
		out.score = sum * least
	}
	return out
}

// unlisted tells that an object may have a word that the digest does not.
func (e *estimator) unlisted(w *index.Word) bool {
	return e.d.Least > 1 || w.CJK || allDigits(w.Text)
}

// allDigits tells of a word that an index may do without.
func allDigits(word []byte) bool {
	for _, c := range word {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func (e *estimator) every(list []query.Node, attr string) estimate {
	out := estimate{docs: e.all()}
	for _, n := range list {
		in := e.of(n, attr)
		if in.docs == 0 {
			return in
		}
		out.docs *= min(in.docs/max(e.all(), 1), 1)
		out.score += in.score
		out.vague = out.vague || in.vague
	}
	return out
}

func (e *estimator) some(list []query.Node, attr string) (out estimate) {
	none := 1.0
	for _, n := range list {
		in := e.of(n, attr)
		none *= 1 - min(in.docs/max(e.all(), 1), 1)
		out.score += in.score
		out.vague = out.vague || in.vague
		if out.short == "" {
			out.short = in.short
		}
	}
	if out.docs = e.all() * (1 - none); out.docs > 0 {
		out.short = ""
	}
	return out
}

// compare estimates a comparison: one for equality as the words of the value, as
// all are there, another by where the values lie.
func (e *estimator) compare(q query.Compare, attr string) estimate {
	if q.Op == "=" {
		in := e.text(q.Value, attr, true)
		in.score = 0
		return in
	}
	switch {
	case strings.HasPrefix(q.Op, "<"):
		return e.within(query.Range{High: q.Value}, attr)
	case strings.HasPrefix(q.Op, ">"):
		return e.within(query.Range{Low: q.Value}, attr)
	}
	return e.unknown(attr)
}

func (e *estimator) within(q query.Range, attr string) estimate {
	out := e.presence(attr)
	a, ok := e.d.of(attr)
	if !ok || out.docs == 0 {
		return out
	}
	share, told := a.share(q.Low, q.High)
	if !told {
		return e.unknown(attr)
	}
	if share <= 0 {
		return estimate{short: attr + ": " + q.Low + ".." + q.High}
	}
	out.docs = max(out.docs*share, 1)
	return out
}
