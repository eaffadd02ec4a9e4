package dict

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"sync"
)

// A Cache keeps the terms of chunks, decoded, for Contains and Walk, as many
// as fit in its bytes; those not used for longest go first. Several Dicts may
// share one and goroutines may use it at once. A nil Cache keeps nothing.
type Cache struct {
	size int64

	mu    sync.Mutex
	used  int64 // by lists
	clock int64
	lists map[*chunk]*list
}

// NewCache makes a Cache of at most size bytes.
func NewCache(size int64) *Cache { return &Cache{size: size, lists: map[*chunk]*list{}} }

// A list is terms of some blocks, decoded.
type list struct {
	text   []byte
	ends   []uint32 // where each ends in text
	shared []uint16 // bytes it has in common with the one before
	clock  int64    // when it was last used
}

func (l *list) size() int64 { return int64(cap(l.text) + 4*cap(l.ends) + 2*cap(l.shared)) }

func (l *list) term(i int) []byte { return l.text[l.start(i):l.ends[i]] }

func (l *list) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

// Forget drops what c keeps of d. Who lets go of a Dict calls it.
func (c *Cache) Forget(d *Dict) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range d.chunks {
		if l := c.lists[&d.chunks[i]]; l != nil {
			c.used -= l.size()
			delete(c.lists, &d.chunks[i])
		}
	}
}

// get gives the list of a chunk, nil if it is not kept.
func (c *Cache) get(k *chunk) *list {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[k]
	if l != nil {
		c.clock++
		l.clock = c.clock
	}
	return l
}

// put keeps a list, in place of others if need be.
func (c *Cache) put(k *chunk, l *list) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[k] != nil {
		return
	}
	c.clock++
	l.clock = c.clock
	c.lists[k] = l
	for c.used += l.size(); c.used > c.size; {
		var oldest *chunk
		for k, l := range c.lists {
			if oldest == nil || l.clock < c.lists[oldest].clock {
				oldest = k
			}
		}
		c.used -= c.lists[oldest].size()
		delete(c.lists, oldest)
	}
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
	if c.listSize() <= cache.room() {
		l, err := c.cached(cache)
		if err != nil {
			return false, err
		}
		return c.search(l, 0, any, yield)
	}
	l := new(list)
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

func (c *Cache) room() int64 {
	if c == nil {
		return 0
	}
	return c.size
}

func (c *chunk) listSize() int64 { return int64(c.length) + 6*int64(c.n) }

// cached gives the list of all blocks, from the cache or to it.
func (c *chunk) cached(cache *Cache) (*list, error) {
	if l := cache.get(c); l != nil {
		return l, nil
	}
	c.listing.Lock() // so that it is made once
	defer c.listing.Unlock()
	if l := cache.get(c); l != nil {
		return l, nil
	}
	l := &list{ends: make([]uint32, 0, c.n), shared: make([]uint16, 0, c.n)}
	if err := c.list(l, 0, c.blocks); err != nil {
		return nil, err
	}
	l.text = append(make([]byte, 0, len(l.text)), l.text...)
	cache.put(c, l)
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
