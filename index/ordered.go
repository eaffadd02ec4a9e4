package index

import (
	"bytes"
	"math/bits"
	"slices"

	"harvest/index/dict"
	"harvest/index/posting"
)

// Comparisons of numbers and dates stand for very many keys, each with a list of its
// own of a document or a few. So the first one of an attribute puts the documents of
// a segment in the order of its keys, in memory, and the next ones mark a stretch of
// that: a million documents within a millisecond or two.

// An ordered is the documents of a segment by the keys of one kind of an attribute.
type ordered struct {
	first int      // ordinal of the first key
	ends  []uint32 // where the documents of each key end
	docs  []uint32
}

// An orderName is what an ordered is of.
type orderName struct {
	attr string
	kind byte
}

// manyKeys is how many keys are worth it, and maxOrders how many ordereds a segment
// has at most: each takes some 8 bytes a document.
const (
	manyKeys  = 256
	maxOrders = 8
)

// within are the documents of the keys from ordinal low up to but not including high.
func (o *ordered) within(low, high int) []uint32 {
	low, high = max(low-o.first, 0), min(high-o.first, len(o.ends))
	if low >= high {
		return nil
	}
	from := uint32(0)
	if low > 0 {
		from = o.ends[low-1]
	}
	return o.docs[from:o.ends[high-1]]
}

// ordinals are those of the first key of a range and of the first behind it.
func (s *searcher) ordinals(d *dict.Dict, attr string, r *keyRange) (low, high int) {
	c := d.Cursor()
	at := func(key []byte, after bool) int {
		term := appendKey(nil, attr, key...)
		c.Seek(term)
		if !c.Next() {
			if err := c.Err(); err != nil {
				s.fail(s.run.Corrupt("%v", err))
			}
			return d.Len()
		}
		if after && bytes.Equal(c.Term(), term) {
			return c.Ord() + 1
		}
		return c.Ord()
	}
	low = at(r.low, r.above)
	if r.high == nil {
		return low, at([]byte{r.kind + 1}, false)
	}
	return low, at(r.high, !r.below)
}

// inOrder is the ordered of an attribute's keys of a kind, nil if there is none to be.
func (s *searcher) inOrder(d *dict.Dict, attr string, kind byte) *ordered {
	a, name := &s.run.aside, orderName{attr, kind}
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.orders[name]; o != nil || len(a.orders) >= maxOrders {
		return o
	}
	low, high := s.ordinals(d, attr, &keyRange{kind: kind, low: []byte{kind}})
	o := &ordered{first: low, ends: make([]uint32, 0, max(high-low, 0))}
	c := d.Cursor()
	c.Seek(appendKey(nil, attr, kind))
	for n := low; n < high && c.Next(); n++ {
		if n%256 == 255 && !s.alive() {
			return nil
		}
		if s.run.decode(c.Value(), &s.info) {
			s.each(s.info.lists, false, func(r *reader) {
				for d := r.Doc(); d != posting.End; d = r.Next() {
					o.docs = append(o.docs, d)
				}
			})
		}
		o.ends = append(o.ends, uint32(len(o.docs)))
	}
	if err := c.Err(); err != nil {
		s.fail(s.run.Corrupt("%v", err))
	}
	if !s.alive() {
		return nil
	}
	o.docs = slices.Clip(o.docs)
	if a.orders == nil {
		a.orders = make(map[orderName]*ordered)
	}
	a.orders[name] = o
	return o
}

// between is the documents with a key in a range, if there are so many keys that an
// ordered is worth it.
func (s *searcher) between(d *dict.Dict, n *node) (docIter, bool) {
	low, high := s.ordinals(d, n.attr, &n.keys)
	if high-low < manyKeys || !s.alive() {
		return nil, false
	}
	o := s.inOrder(d, n.attr, n.keys.kind)
	if o == nil {
		return nil, false
	}
	b := s.run.empty()
	for _, d := range o.within(low, high) {
		b.set.add(d)
	}
	b.settle()
	return b, true
}

// empty is a set of no documents of the part.
func (r *run) empty() *bitIter {
	b := r.bits.get()
	size := int(r.part.docs+63) / 64
	b.set = slices.Grow(b.set[:0], size)[:size]
	clear(b.set)
	return b
}

// settle has it stand on its first document.
func (b *bitIter) settle() {
	b.n = b.set.count()
	b.doc = b.set.next(0)
}

// comparisonsOnly tells whether a query is of comparisons alone: then all that match have the
// score 0, and sets tell which do.
func comparisonsOnly(n *node) bool {
	switch n.op {
	case opKeys, opAll:
		return true
	case opAnd, opOr, opNot:
		return !slices.ContainsFunc(n.kids, func(k *node) bool { return !comparisonsOnly(k) })
	}
	return false
}

// setOf is the documents of the part that match such a query.
func (s *searcher) setOf(n *node) bitset {
	switch n.op {
	case opAll:
		return s.run.everyone()
	case opNot:
		return subtract(s.run.everyone(), s.setOf(n.kids[0]))
	case opAnd:
		set := s.run.everyone()
		for _, k := range n.kids {
			if k.op == opNot {
				set = subtract(set, s.setOf(k.kids[0]))
				continue
			}
			for i, w := range s.setOf(k) {
				set[i] &= w
			}
		}
		return set
	case opOr:
		set := s.run.empty().set
		for _, k := range n.kids {
			for i, w := range s.setOf(k) {
				set[i] |= w
			}
		}
		return set
	}
	it := s.keysIter(n)
	if b, ok := it.(*bitIter); ok {
		return b.set
	}
	set := s.run.empty().set
	for d := it.Doc(); d != posting.End; d = it.Next() {
		set.add(d)
	}
	return set
}

// subtract takes documents out of a set.
func subtract(set, gone bitset) bitset {
	for i, w := range gone {
		set[i] &^= w
	}
	return set
}

// everyone is the set of all documents of the part.
func (r *run) everyone() bitset {
	set := r.empty().set
	for i := range set {
		set[i] = ^uint64(0)
	}
	if n := r.part.docs % 64; n > 0 {
		set[len(set)-1] = 1<<n - 1
	}
	return set
}

// takeSet takes the documents of a set that have the least IDs, as those with the
// same score stand, and counts all.
func (s *searcher) takeSet(set bitset) {
	if gone := s.run.gone; gone != nil {
		set = subtract(set, gone.Bits())
	}
	n := set.count()
	s.total += n
	want := s.top.limit
	if want > 0 && n > want && int(s.run.part.docs)/n*want < n {
		for i := 0; i < int(s.run.part.docs) && want > 0; i++ {
			if d := s.run.ordered(i); set.has(d) {
				s.keep(d, 0)
				want--
			}
		}
		return
	}
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			s.keep(uint32(64*i+bits.TrailingZeros64(w)), 0)
		}
	}
}
