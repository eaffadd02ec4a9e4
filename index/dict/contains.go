package dict

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
)

// A list is terms of some blocks, decoded.
type list struct {
	text   []byte
	ends   []uint32 // where each ends in text
	shared []uint16 // bytes it has in common with the one before
}

func (l *list) size() int64 { return int64(cap(l.text) + 4*cap(l.ends) + 2*cap(l.shared)) }

func (l *list) term(i int) []byte { return l.text[l.start(i):l.ends[i]] }

func (l *list) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

// Contains gives the terms that hold at least one of the literals, in order,
// until yield says false.
func (d *Dict) Contains(cache *Cache, literals []string, yield func(term, value []byte, ord int) bool) error {
	for i := range d.chunks {
		k := &d.chunks[i]
		var any [][]byte
		for _, l := range literals {
			if k.spells(l) {
				any = append(any, []byte(l))
			}
		}
		if len(any) == 0 {
			continue
		}
		more, err := k.contains(cache, any, yield)
		if err != nil {
			return fmt.Errorf("dictionary: chunk %d: %w", i, err)
		}
		if !more {
			break
		}
	}
	return nil
}

// spells says whether a term of the chunk can hold l.
func (c *chunk) spells(l string) bool {
	for i := range len(l) {
		if !c.letters[l[i]] {
			return false
		}
	}
	return true
}

// atOnce is how many blocks are decoded together if their terms are not kept.
const atOnce = 256

func (c *chunk) contains(cache *Cache, any [][]byte, yield func(term, value []byte, ord int) bool) (more bool, err error) {
	l, err := c.kept(cache, true)
	if err != nil {
		return false, err
	}
	if l != nil {
		return c.search(l, 0, any, yield)
	}
	l = new(list)
	for from := 0; from < c.blocks; from += atOnce {
		if err := c.list(l, from, min(from+atOnce, c.blocks)); err != nil {
			return false, err
		}
		if more, err := c.search(l, from, any, yield); !more || err != nil {
			return more, err
		}
	}
	return true, nil
}

func (c *chunk) listSize() int64 { return int64(c.length) + 6*int64(c.n) }

// kept gives the list of all blocks if it is kept or, if there is room and it
// is worth it, can be; nil otherwise.
func (c *chunk) kept(cache *Cache, worth bool) (*list, error) {
	s := slot{c, listKind}
	x, keep := cache.get(s, c.listSize())
	if l, ok := x.(*list); ok || !keep || !worth {
		return l, nil
	}
	c.making.Lock() // so that it is made once
	defer c.making.Unlock()
	if x, _ := cache.get(s, 0); x != nil {
		return x.(*list), nil
	}
	l := &list{ends: make([]uint32, 0, c.n), shared: make([]uint16, 0, c.n)}
	if err := c.list(l, 0, c.blocks); err != nil {
		return nil, err
	}
	l.text = append(make([]byte, 0, len(l.text)), l.text...)
	cache.put(s, l)
	c.walked.Store(0)
	return l, nil
}

// list makes l the list of some blocks.
func (c *chunk) list(l *list, from, to int) error {
	l.text, l.ends, l.shared = l.text[:0], l.ends[:0], l.shared[:0]
	var s scan
	for b := from; b < to; b++ {
		ok := s.open(c, b)
		for first := true; ok && s.left > 0; first = false {
			if ok = s.next(); !ok {
				break
			}
			k := s.shared
			if n := len(l.ends); first && n > 0 {
				k = common(l.term(n-1), s.term())
			}
			l.text = append(l.text, s.term()...)
			l.ends = append(l.ends, uint32(len(l.text)))
			l.shared = append(l.shared, uint16(k))
		}
		if !ok || len(l.text) > int(c.length) {
			return fmt.Errorf("block %d: %w", b, ErrCorrupt)
		}
	}
	return nil
}

// search looks for the literals in the list of the blocks from first on.
func (c *chunk) search(l *list, first int, any [][]byte, yield func(term, value []byte, ord int) bool) (more bool, err error) {
	v := valuer{c: c, block: -1}
	next := make([]int, len(any)) // the term that has each next
	for k, x := range any {
		next[k] = l.next(0, x)
	}
	for {
		i := slices.Min(next)
		if i == len(l.ends) {
			return true, nil
		}
		b := first + i/blockTerms
		value, ok := v.value(b, i%blockTerms)
		if !ok {
			return false, fmt.Errorf("block %d: %w", b, ErrCorrupt)
		}
		if !yield(l.term(i), value, c.ord+first*blockTerms+i) {
			return false, nil
		}
		for k, x := range any {
			if next[k] == i {
				next[k] = l.next(i+1, x)
			}
		}
	}
}

// next gives the first term from i on that holds x, or how many there are.
func (l *list) next(i int, x []byte) int {
	if i == len(l.ends) || len(x) == 0 {
		return i
	}
	for at := int(l.start(i)); ; at++ {
		k := bytes.Index(l.text[at:], x)
		if k < 0 {
			return len(l.ends)
		}
		at += k
		i += sort.Search(len(l.ends)-i, func(k int) bool { return int(l.ends[i+k]) > at })
		if i == len(l.ends) {
			return i
		}
		if at+len(x) <= int(l.ends[i]) { // else it runs from one term into the next
			return i
		}
	}
}

// A valuer finds values by block and number, going forward where it can.
type valuer struct {
	c        *chunk
	block, i int // the scan has passed i terms of block
	scan     scan
}

func (v *valuer) value(block, i int) ([]byte, bool) {
	if block != v.block || i < v.i {
		v.block, v.i = block, 0
		if !v.scan.open(v.c, block) {
			return nil, false
		}
	}
	for ; v.i <= i; v.i++ {
		if !v.scan.lead() || !v.scan.skip() {
			return nil, false
		}
	}
	return v.c.bits[max(v.scan.value, 0):v.scan.end], v.scan.value >= 0
}
