package index

import (
	"math/bits"
	"slices"

	"harvest/index/posting"
)

// A docIter goes through documents of one part in order. It stands on the first
// when it is made, and on posting.End after the last. Next and Advance settle
// on a document that may match, as far as lists of documents tell; confirm
// looks at the rest, positions as a rule, and is asked at most once for each.
type docIter interface {
	Doc() uint32
	Next() uint32
	Advance(target uint32) uint32 // to the first not below target and not before Doc
	confirm() bool
	cost() int // documents it settles on, about
}

// A counter is a docIter that knows how often something stands in a document.
type counter interface {
	docIter
	Freq() uint32 // in Doc, once it is confirmed
}

// A posts is a counter that knows where.
type posts interface {
	counter
	Positions(dst []uint32) []uint32
}

// A reader is the list of one word in one attribute.
type reader struct{ posting.Reader }

func (r *reader) confirm() bool { return true }
func (r *reader) cost() int     { return r.Count() }

// A counted is a list held in memory: the union of many.
type counted struct {
	docs  []uint32
	freqs []uint32
	ends  []uint32 // where the positions of each document end, if there are any
	pos   []uint32
	i     int
}

func (c *counted) Doc() uint32 {
	if c.i < len(c.docs) {
		return c.docs[c.i]
	}
	return posting.End
}

func (c *counted) Next() uint32 {
	c.i++
	return c.Doc()
}

// Advance gallops: targets are near as a rule.
func (c *counted) Advance(target uint32) uint32 {
	low, step := c.i, 1
	for low+step < len(c.docs) && c.docs[low+step] < target {
		low += step
		step *= 2
	}
	rest := c.docs[min(low, len(c.docs)):min(low+step+1, len(c.docs))]
	n, _ := slices.BinarySearch(rest, target)
	c.i = low + n
	return c.Doc()
}

func (c *counted) Freq() uint32 {
	if c.freqs == nil {
		return 1
	}
	return c.freqs[c.i]
}

func (c *counted) Positions(dst []uint32) []uint32 {
	if c.ends == nil {
		return dst
	}
	begin := uint32(0)
	if c.i > 0 {
		begin = c.ends[c.i-1]
	}
	return append(dst, c.pos[begin:c.ends[c.i]]...)
}

func (c *counted) confirm() bool { return true }
func (c *counted) cost() int     { return len(c.docs) }

// A bitset is a set of documents, one bit each.
type bitset []uint64

func (b bitset) add(d uint32)      { b[d/64] |= 1 << (d % 64) }
func (b bitset) has(d uint32) bool { return b[d/64]>>(d%64)&1 != 0 }

func (b bitset) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// next is the first document of b from d on.
func (b bitset) next(d uint32) uint32 {
	i := int(d / 64)
	if i >= len(b) {
		return posting.End
	}
	if w := b[i] >> (d % 64); w != 0 {
		return d + uint32(bits.TrailingZeros64(w))
	}
	for i++; i < len(b); i++ {
		if b[i] != 0 {
			return uint32(i*64 + bits.TrailingZeros64(b[i]))
		}
	}
	return posting.End
}

// A bitIter goes through a bitset.
type bitIter struct {
	set bitset
	doc uint32
	n   int
}

func (b *bitIter) Doc() uint32 { return b.doc }

func (b *bitIter) Next() uint32 { return b.Advance(b.doc + 1) }

func (b *bitIter) Advance(target uint32) uint32 {
	if target > b.doc && b.doc != posting.End {
		b.doc = b.set.next(target)
	}
	return b.doc
}

func (b *bitIter) confirm() bool { return true }
func (b *bitIter) cost() int     { return b.n }

// An allIter goes through all documents of a part, deleted ones too.
type allIter struct{ doc, n uint32 }

func (a *allIter) Doc() uint32 { return a.doc }

func (a *allIter) Next() uint32 { return a.Advance(a.doc + 1) }

func (a *allIter) Advance(target uint32) uint32 {
	if a.doc = max(a.doc, target); a.doc >= a.n {
		a.doc = posting.End
	}
	return a.doc
}

func (a *allIter) confirm() bool { return true }
func (a *allIter) cost() int     { return int(a.n) }

// A noneIter has no documents.
type noneIter struct{}

func (noneIter) Doc() uint32           { return posting.End }
func (noneIter) Next() uint32          { return posting.End }
func (noneIter) Advance(uint32) uint32 { return posting.End }
func (noneIter) confirm() bool         { return false }
func (noneIter) cost() int             { return 0 }

// An anyIter joins by or.
type anyIter struct {
	at  []docIter
	doc uint32
	n   int
}

// start settles on the first document of at.
func (a *anyIter) start() {
	a.doc, a.n = posting.End, 0
	for _, it := range a.at {
		a.doc = min(a.doc, it.Doc())
		a.n += it.cost()
	}
}

func (a *anyIter) Doc() uint32 { return a.doc }

func (a *anyIter) Next() uint32 { return a.Advance(a.doc + 1) }

func (a *anyIter) Advance(target uint32) uint32 {
	if a.doc >= target {
		return a.doc
	}
	a.doc = posting.End
	for _, it := range a.at {
		d := it.Doc()
		if d < target {
			d = it.Advance(target)
		}
		a.doc = min(a.doc, d)
	}
	return a.doc
}

// confirm asks all that stand on the document, since each may score.
func (a *anyIter) confirm() bool {
	ok := false
	for _, it := range a.at {
		if it.Doc() == a.doc && it.confirm() {
			ok = true
		}
	}
	return ok
}

func (a *anyIter) cost() int { return a.n }

// An andIter joins by and what is to match, the rarest first, with what is not to.
type andIter struct {
	with    []docIter
	without []docIter
	doc     uint32
}

// start settles on the first document that all of with have.
func (a *andIter) start() {
	slices.SortStableFunc(a.with, func(x, y docIter) int { return x.cost() - y.cost() })
	a.doc = a.settle(a.with[0].Doc())
}

func (a *andIter) Doc() uint32 { return a.doc }

func (a *andIter) Next() uint32 {
	if a.doc != posting.End {
		a.doc = a.settle(a.with[0].Next())
	}
	return a.doc
}

func (a *andIter) Advance(target uint32) uint32 {
	if a.doc < target {
		a.doc = a.settle(a.with[0].Advance(target))
	}
	return a.doc
}

// settle leapfrogs from d, which the first of with stands on.
func (a *andIter) settle(d uint32) uint32 {
again:
	if d == posting.End {
		return d
	}
	for _, it := range a.with[1:] {
		e := it.Doc()
		if e < d {
			e = it.Advance(d)
		}
		if e > d {
			if e == posting.End {
				return e
			}
			d = a.with[0].Advance(e)
			goto again
		}
	}
	return d
}

func (a *andIter) confirm() bool {
	for _, it := range a.without {
		d := it.Doc()
		if d < a.doc {
			d = it.Advance(a.doc)
		}
		if d == a.doc && it.confirm() {
			return false
		}
	}
	for _, it := range a.with {
		if !it.confirm() {
			return false
		}
	}
	return true
}

func (a *andIter) cost() int { return a.with[0].cost() }
