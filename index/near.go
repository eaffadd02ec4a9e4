package index

import (
	"cmp"
	"slices"
)

// What words stand next to or near each other is decided here, within one
// attribute of one document. Documents are found by leapfrog, the rarest word
// first; positions are decoded only of documents that have all words.

// A spanner is a counter that tells the places where it stands: each from the
// position of its first word to that of its last.
type spanner interface {
	counter
	spans(dst []reach) []reach // in Doc, once it is confirmed, ascending
}

type reach struct{ first, last uint32 }

// A wordSpans is one word, or several of which any will do.
type wordSpans struct {
	posts
	pos []uint32
}

func (w *wordSpans) spans(dst []reach) []reach {
	w.pos = w.Positions(w.pos[:0])
	for _, p := range w.pos {
		dst = append(dst, reach{p, p})
	}
	return dst
}

// A phraseIter is words at fixed distances from the first: a join of them.
type phraseIter struct {
	andIter
	words  []phraseWord // the rarest first
	length uint32       // words that it takes
	starts []uint32     // in the document confirmed
	pos    []uint32
}

type phraseWord struct {
	posts
	offset uint32
}

// start settles on the first document with all words.
func (p *phraseIter) start() {
	slices.SortStableFunc(p.words, func(x, y phraseWord) int { return cmp.Compare(x.cost(), y.cost()) })
	p.with = p.with[:0]
	for i := range p.words {
		p.with = append(p.with, p.words[i].posts)
	}
	p.andIter.start()
}

func (p *phraseIter) confirm() bool {
	first := &p.words[0]
	p.starts = first.Positions(p.starts[:0])
	p.starts = before(p.starts, first.offset)
	for i := 1; i < len(p.words) && len(p.starts) > 0; i++ {
		p.pos = p.words[i].Positions(p.pos[:0])
		p.starts = follow(p.starts, p.pos, p.words[i].offset)
	}
	return len(p.starts) > 0
}

// before takes n from each of a, and those that have not got n out.
func before(a []uint32, n uint32) []uint32 {
	if n == 0 {
		return a
	}
	out := a[:0]
	for _, p := range a {
		if p >= n {
			out = append(out, p-n)
		}
	}
	return out
}

// follow keeps the positions of a that b has n further on.
func follow(a, b []uint32, n uint32) []uint32 {
	out, j := a[:0], 0
	for _, p := range a {
		for j < len(b) && b[j] < p+n {
			j++
		}
		if j == len(b) {
			break
		}
		if b[j] == p+n {
			out = append(out, p)
		}
	}
	return out
}

// most is how often the phrase can stand in Doc, by how often its words do.
func (p *phraseIter) most() uint32 {
	n := p.words[0].Freq()
	for i := 1; i < len(p.words) && n > 1; i++ {
		n = min(n, p.words[i].Freq())
	}
	return n
}

// bounds is a list of which each document has at least as many places as the
// phrase, or nil.
func (p *phraseIter) bounds() *reader {
	r, _ := p.words[0].posts.(*reader)
	return r
}

func (p *phraseIter) Freq() uint32 { return uint32(len(p.starts)) }

func (p *phraseIter) spans(dst []reach) []reach {
	for _, s := range p.starts {
		dst = append(dst, reach{s, s + p.length - 1})
	}
	return dst
}

// A near is a chain: each operand stands within distance of the one before,
// from the last word of the one to the first of the other, 1 being next to
// each other; after it if ordered. It counts the places where the last of the
// chain stands.
type near struct {
	andIter            // the operands, the rarest first
	ops      []spanner // the same in the order of the query
	distance uint32
	ordered  bool
	ends     []reach // in the document confirmed
	next     []reach
}

func (n *near) start() {
	n.with = n.with[:0]
	for _, op := range n.ops {
		n.with = append(n.with, op)
	}
	n.andIter.start()
}

func (n *near) confirm() bool {
	n.ends = n.ends[:0]
	if !n.andIter.confirm() {
		return false
	}
	n.ends = n.ops[0].spans(n.ends)
	for _, op := range n.ops[1:] {
		n.next = op.spans(n.next[:0])
		n.chain()
	}
	return len(n.ends) > 0
}

// chain makes ends those of next that stand near one of ends. Both ascend by
// their first and, of one length as a rule, by their last words.
func (n *near) chain() {
	out := n.next[:0]
	low := 0 // no end before it can be near
	for _, s := range n.next {
		for low < len(n.ends) && n.ends[low].last+n.distance+longest < s.first {
			low++
		}
		for _, e := range n.ends[low:] {
			if e.first > s.last+n.distance {
				break
			}
			if n.joined(e, s) {
				out = append(out, s)
				break
			}
		}
	}
	n.ends, n.next = out, n.ends
}

// Spans begin in order, but one may end this much after the next: the words
// of a phrase, which are not more than a query has bytes.
const longest = 1 << 13

func (n *near) joined(e, s reach) bool {
	if s.first > e.last && s.first-e.last <= n.distance {
		return true
	}
	return !n.ordered && e.first > s.last && e.first-s.last <= n.distance
}

func (n *near) Freq() uint32 { return uint32(len(n.ends)) }

func (n *near) spans(dst []reach) []reach { return append(dst, n.ends...) }

// An anySpan is one of several operands.
type anySpan struct {
	anyIter
	of []spanner
	at []reach
}

func (a *anySpan) start() {
	a.anyIter.at = a.anyIter.at[:0]
	for _, s := range a.of {
		a.anyIter.at = append(a.anyIter.at, s)
	}
	a.anyIter.start()
}

func (a *anySpan) confirm() bool {
	a.at = a.at[:0]
	for _, s := range a.of {
		if s.Doc() == a.doc && s.confirm() {
			a.at = s.spans(a.at)
		}
	}
	slices.SortFunc(a.at, func(x, y reach) int {
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.last, y.last))
	})
	a.at = slices.Compact(a.at)
	return len(a.at) > 0
}

func (a *anySpan) Freq() uint32 { return uint32(len(a.at)) }

func (a *anySpan) spans(dst []reach) []reach { return append(dst, a.at...) }
