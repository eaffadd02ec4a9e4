package route

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"harvest/index"
	"harvest/index/query"
)

// A Broker is one that may be asked. Digest is nil if it has none: then it is.
type Broker struct {
	Path   string
	Digest *Digest
}

// A Choice is what is to be done with one of them.
type Choice struct {
	Path  string
	Ask   bool
	Why   string
	Docs  float64 // objects that it is expected to have
	Score float64 // that none of them exceeds
	value float64
}

// Choose tells whom to ask: of those that may have something at most share (0 to
// 1) of all, but one at least, the most promising first; then those to leave out.
// Whoever publishes nothing is asked beside these.
func Choose(q query.Node, all []Broker, share float64) []Choice {
	among := Census(q, all)
	list := make([]Choice, len(all))
	for i, b := range all {
		list[i] = consider(q, b, among)
	}
	slices.SortStableFunc(list, func(a, b Choice) int { return cmp.Compare(b.value, a.value) })
	left := max(1, int(math.Floor(share*float64(len(all))+1e-9)))
	for i := range list {
		c := &list[i]
		switch {
		case math.IsInf(c.value, 1):
		case c.Ask && left > 0:
			left--
		case c.Ask:
			c.Ask = false
			c.Why += fmt.Sprintf(", past %d of %d", max(1, int(share*float64(len(all)))), len(all))
		}
	}
	return list
}

// consider is what one of them promises.
func consider(q query.Node, b Broker, among *index.Among) Choice {
	c := Choice{Path: b.Path, Ask: true}
	if b.Digest == nil {
		c.Why, c.value = "no digest", math.Inf(1)
		return c
	}
	e := estimator{d: b.Digest, memory: make(map[string]Word), weigh: func(word string) float64 { return rarity(among, word) }}
	in := e.of(q, "")
	c.Docs, c.Score = in.docs, in.score
	if in.docs <= 0 {
		c.Ask, c.value = false, -1
		if c.Why = "no objects"; in.short != "" {
			c.Why = "nothing with " + in.short
		}
		return c
	}
	c.value = in.score*(1-math.Exp(-chance*in.docs)) + whole(&e, q)
	if in.score == 0 {
		c.value = min(in.docs, 1e9) / 1e9 // it has no order: who has most is to be asked
	}
	c.Why = fmt.Sprintf("objects %.3g, score %.3f", in.docs, in.score)
	if in.vague {
		c.Why += ", cannot tell"
	}
	return c
}

// chance is how many objects one that is expected makes likely: words of a phrase
// or of an and are seldom as strange to each other as is reckoned.
const chance = 20

// together is how many times more often the words of a query stand in one object
// than if each stood anywhere.
const together = 4

// whole is what a bag is worth where objects have all of its words: those come
// before all others.
func whole(e *estimator, q query.Node) float64 {
	bag, ok := q.(query.Bag)
	if !ok {
		return 0
	}
	in := e.every(bag, "")
	return 4096 * min(1, together*in.docs)
}

// rarity is the idf of a word, as package index has it.
func rarity(among *index.Among, word string) float64 {
	n := float64(among.Count[word])
	return math.Log(1 + (float64(among.Docs)-n+0.5)/(n+0.5))
}

// Words are those that a query looks for, as they are indexed, each once.
func Words(q query.Node) (words []string) {
	seen := make(map[string]bool)
	add := func(text string) {
		index.Words(text, func(w *index.Word) bool {
			if word := string(w.Text); !w.Whole && !seen[word] {
				seen[word] = true
				words = append(words, word)
			}
			return true
		})
	}
	query.Walk(q, func(n query.Node, _ string, not bool) bool {
		if not {
			return false
		}
		switch n := n.(type) {
		case query.Word:
			add(n.Text)
		case query.Phrase:
			add(n.Text)
		}
		return true
	})
	return words
}

// Census sums up what digests say of the words of a query; a stemmed word counts
// as its stem does.
func Census(q query.Node, all []Broker) *index.Among {
	among := &index.Among{Count: make(map[string]int)}
	for _, b := range all {
		if b.Digest != nil {
			among.Docs += b.Digest.Objects
			among.Words += b.Digest.Words
		}
	}
	for _, word := range Words(q) {
		n := 0
		for _, b := range all {
			if b.Digest != nil {
				n += b.Digest.Word(word).Objects
			}
		}
		among.Count[word] = min(n, among.Docs)
	}
	return among
}

// share is the part of an attribute's values that lies between two, as numbers or
// dates, if one can tell.
func (a *Attr) share(low, high string) (share float64, told bool) {
	kind, from, to := index.Bounds(low, high)
	switch kind {
	case index.KeyNumber:
		return overlap(a.Numbers, a.Low, a.High, from, to), true
	case index.KeyDate:
		return overlap(a.Dates, float64(a.First.Unix()), float64(a.Last.Unix()+1), from, to), true
	}
	return 0, false
}

func overlap(there bool, low, high, from, to float64) float64 {
	if !there || from > high || to < low {
		return 0
	}
	if high <= low || math.IsInf(high-low, 0) {
		return 1
	}
	return max((min(to, high)-max(from, low))/(high-low), 1e-9)
}

// String is the choice as a line: asked or skipped, the path, why.
func (c Choice) String() string {
	what := "skipped"
	if c.Ask {
		what = "asked"
	}
	return strings.Join([]string{what, c.Path, c.Why}, "\t")
}
