package dict

import (
	"bytes"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// Halves are a search for terms near a word. Each term that Whole accepts is
// one that begins with Prefix and that Front accepts, or else ends with Tail.
// What makes it faster than walking with Whole: Front dies of most errors in
// the first half of the word, and the few terms with the right end are found
// without a walk.
type Halves struct {
	Whole, Front Automaton
	Prefix, Tail []byte
	Least, Most  int // characters of a term
}

// TailBytes is the least length of a Tail.
const TailBytes = 3

// Near gives the terms that h.Whole accepts, until yield says false. Those of
// each chunk that Front accepts come in order, then those with the Tail in
// order. Ends of terms are kept in cache, once searches have decoded much of a
// chunk; without, Near is a Walk with Whole.
func (d *Dict) Near(cache *Cache, h Halves, yield func(term, value []byte, ord int) bool) error {
	n := nearer{h: h, yield: yield, more: true}
	n.whole = walker{d: d, cache: cache, a: h.Whole, yield: n.give}
	n.whole.liver, _ = h.Whole.(Liver)
	n.front = walker{d: d, cache: cache, a: h.Front, prefix: h.Prefix, yield: n.give}
	n.front.liver, _ = h.Front.(Liver)
	for i := range d.chunks {
		if err := n.chunk(&d.chunks[i]); err != nil {
			return fmt.Errorf("dictionary: chunk %d: %w", i, err)
		}
		if !n.more {
			break
		}
	}
	return nil
}

// A nearer is one Near.
type nearer struct {
	h            Halves
	whole, front walker
	yield        func(term, value []byte, ord int) bool
	more         bool
	found        []uint32
}

func (n *nearer) give(term, value []byte, ord int) bool {
	n.more = n.yield(term, value, ord)
	return n.more
}

func (n *nearer) chunk(c *chunk) error {
	if len(n.h.Tail) >= TailBytes {
		t, err := c.tails(n.whole.cache)
		if err != nil {
			return err
		}
		if t != nil {
			return n.halves(c, t)
		}
	}
	return n.whole.from(c, 0)
}

// from walks through a chunk by itself.
func (w *walker) from(c *chunk, block int) error {
	w.states = append(w.states[:0], w.a.Start())
	if w.states[0] < 0 {
		return nil
	}
	_, err := w.walk(c, block)
	return err
}

func (n *nearer) halves(c *chunk, t *tails) error {
	if err := n.front.from(c, c.find(n.h.Prefix)); err != nil || !n.more {
		return err
	}
	n.found = t.find(n.found[:0], n.h.Tail, n.h.Least, n.h.Most)
	if len(n.found) == 0 {
		return nil
	}
	l, err := c.kept(n.whole.cache, false)
	if err != nil {
		return err
	}
	if l == nil {
		return n.decode(c)
	}
	v := valuer{c: c, block: -1}
	for _, i := range n.found {
		if term := l.term(int(i)); n.tail(term) {
			value, ok := v.value(int(i)/blockTerms, int(i)%blockTerms)
			if !ok {
				return fmt.Errorf("block %d: %w", i/blockTerms, ErrCorrupt)
			}
			if !n.give(term, value, c.ord+int(i)) {
				return nil
			}
		}
	}
	return nil
}

// decode looks at the terms found in a chunk whose list is not kept.
func (n *nearer) decode(c *chunk) error {
	var s scan
	for found := n.found; len(found) > 0; {
		block := int(found[0]) / blockTerms
		ok := s.open(c, block)
		for i := block * blockTerms; ok && len(found) > 0 && int(found[0])/blockTerms == block; i++ {
			if ok = s.next(); !ok || i < int(found[0]) {
				continue
			}
			found = found[1:]
			if n.tail(s.term()) && !n.give(s.term(), c.bits[s.value:s.end], c.ord+i) {
				return nil
			}
		}
		if !ok {
			return fmt.Errorf("block %d: %w", block, ErrCorrupt)
		}
	}
	return nil
}

// tail tells whether a term is one of the second half.
func (n *nearer) tail(term []byte) bool {
	return bytes.HasSuffix(term, n.h.Tail) && accepts(n.h.Whole, term) &&
		!(bytes.HasPrefix(term, n.h.Prefix) && accepts(n.h.Front, term))
}

func accepts(a Automaton, term []byte) bool {
	state := a.Start()
	for i := 0; i < len(term) && state >= 0; i++ {
		state = a.Step(state, term[i])
	}
	return state >= 0 && a.Accept(state)
}

// Tails find the terms of a chunk by their last bytes. A term is its number,
// 19 bits, and above it what can be told without decoding: how many characters
// it has, 5 bits, 31 for all more, and 4 bits each of the fourth byte from the
// end and the fifth.
type tails struct {
	from  []uint32 // by hash of the last three bytes: where its terms begin
	terms []uint32
	shift uint
}

const (
	numberBits = 19
	mostCount  = 31
)

func (t *tails) size() int64 { return 4 * int64(cap(t.from)+cap(t.terms)) }

// tailsShift says how the hash of three bytes is made one for a chunk.
func (c *chunk) tailsShift() uint { return 32 - uint(min(max(bits.Len(uint(c.n))-2, 4), 16)) }

// tails gives the ends of a chunk's terms, nil if they are not kept.
func (c *chunk) tails(cache *Cache) (*tails, error) {
	s := slot{c, tailsKind}
	x, keep := cache.get(s, 4*int64(c.n)+4<<(32-c.tailsShift()))
	if t, ok := x.(*tails); ok || !keep {
		return t, nil
	}
	l, err := c.kept(cache, c.searched())
	if l == nil && !c.searched() || err != nil {
		return nil, err
	}
	c.making.Lock()
	defer c.making.Unlock()
	if x, _ := cache.get(s, 0); x != nil {
		return x.(*tails), nil
	}
	t, err := c.newTails(l)
	if err == nil {
		cache.put(s, t)
		c.walked.Store(0)
	}
	return t, err
}

// newTails reads all terms, from their list if there is one.
func (c *chunk) newTails(l *list) (*tails, error) {
	t := &tails{shift: c.tailsShift()}
	t.from = make([]uint32, 1<<(32-t.shift)+1)
	keys := make([]uint64, 0, c.n) // bucket, and the term as it is kept
	add := func(term []byte) {
		if len(term) >= TailBytes {
			h := t.hash(term)
			t.from[h+1]++
			keys = append(keys, uint64(h)<<32|uint64(mark(term))<<numberBits|uint64(len(keys)))
		} else {
			keys = append(keys, none)
		}
	}
	if l != nil {
		for i := range l.ends {
			add(l.term(i))
		}
	} else if err := c.each(add); err != nil {
		return nil, err
	}
	for i := range t.from[1:] {
		t.from[i+1] += t.from[i]
	}
	t.terms = make([]uint32, t.from[len(t.from)-1])
	for _, k := range keys {
		if k != none {
			h := k >> 32
			t.terms[t.from[h]] = uint32(k)
			t.from[h]++
		}
	}
	copy(t.from[1:], t.from) // each has come to where the next begins
	t.from[0] = 0
	return t, nil
}

const none = 1<<64 - 1

// each decodes all terms of a chunk.
func (c *chunk) each(add func(term []byte)) error {
	var s scan
	for b := range c.blocks {
		ok := s.open(c, b)
		for ok && s.left > 0 {
			if ok = s.next(); ok {
				add(s.term())
			}
		}
		if !ok {
			return fmt.Errorf("block %d: %w", b, ErrCorrupt)
		}
	}
	return nil
}

func (t *tails) hash(term []byte) uint32 {
	e := term[len(term)-TailBytes:]
	return (uint32(e[0]) | uint32(e[1])<<8 | uint32(e[2])<<16) * 0x9e3779b1 >> t.shift
}

// mark is what is kept of a term above its number.
func mark(term []byte) uint32 {
	m := uint32(min(utf8.RuneCount(term), mostCount))
	for i := TailBytes + 1; i <= TailBytes+2 && i <= len(term); i++ {
		m |= uint32(nibble(term[len(term)-i])) << (4*(i-TailBytes) + 1)
	}
	return m
}

func nibble(b byte) byte { return (b ^ b>>4) & 15 }

// find appends the numbers of the terms that may end with tail and have so
// many characters.
func (t *tails) find(found []uint32, tail []byte, least, most int) []uint32 {
	h := t.hash(tail)
	want, care := uint32(0), uint32(0)
	for i := TailBytes + 1; i <= TailBytes+2 && i <= len(tail); i++ {
		at := 4*(i-TailBytes) + 1
		want |= uint32(nibble(tail[len(tail)-i])) << at
		care |= 15 << at
	}
	for _, x := range t.terms[t.from[h]:t.from[h+1]] {
		m := x >> numberBits
		if n := int(m & mostCount); m&care == want && n <= most && (n >= least || n == mostCount) {
			found = append(found, x&(1<<numberBits-1))
		}
	}
	return found
}
