package dict

import (
	"bytes"
	"fmt"
)

// An Automaton accepts some byte strings. States are small integers; one
// that is less than 0 is dead: nothing is accepted from there on.
type Automaton interface {
	Start() int
	Step(state int, b byte) int
	Accept(state int) bool
}

// A Liver is an Automaton that can say which byte to go on with; Walk then
// need not try them all: Live gives the least byte, from from on, whose Step
// is not dead, or 256.
type Liver interface {
	Live(state int, from int) int
}

// Walk gives the terms that begin with prefix and that a accepts (from their
// first byte on, the prefix too), in order, until yield says false. It decodes
// only blocks in which a is alive somewhere, and none of chunks that cache
// keeps; it has chunks kept of which walks decoded much.
func (d *Dict) Walk(cache *Cache, a Automaton, prefix []byte, yield func(term, value []byte, ord int) bool) error {
	if d.n == 0 {
		return nil
	}
	w := walker{d: d, cache: cache, a: a, prefix: prefix, states: []int{a.Start()}, yield: yield}
	w.liver, _ = a.(Liver)
	if w.states[0] < 0 {
		return nil
	}
	i := d.chunk(prefix)
	block := d.chunks[i].find(prefix)
	for i < len(d.chunks) {
		more, err := w.walk(&d.chunks[i], block)
		if err != nil {
			return fmt.Errorf("dictionary: chunk %d: %w", i, err)
		}
		if !more || w.dead > 0 && !w.alive() {
			break
		}
		i, block = i+1, 0
		if w.dead > 0 {
			i = max(i, d.chunk(w.bound))
		}
	}
	return nil
}

type walker struct {
	d      *Dict
	cache  *Cache
	a      Automaton
	liver  Liver
	prefix []byte
	yield  func(term, value []byte, ord int) bool
	term   []byte // the last one that was stepped through
	states []int  // after so many bytes of it
	dead   int    // so many bytes of it lead to death; 0: none do
	bound  []byte // what alive found
	scan   scan
}

// walk goes through a chunk, from a block on.
func (w *walker) walk(c *chunk, block int) (more bool, err error) {
	l, err := c.kept(w.cache, c.searched())
	if err != nil {
		return false, err
	}
	if l != nil {
		return w.list(c, l, block*blockTerms)
	}
	n := int64(0)
	defer func() { c.walked.Add(n) }()
	for ; block < c.blocks; n++ {
		if more, err := w.block(c, block); !more || err != nil {
			return more, err
		}
		if block++; w.dead == 0 || block == c.blocks {
			continue
		}
		if !w.alive() {
			return false, nil
		}
		if key(w.bound) >= c.prefix(block) {
			block = max(block, c.find(w.bound))
		}
	}
	return true, nil
}

// searched tells whether searches have decoded so much of a chunk, since
// something of it was last made to be kept, that it is worth to do so.
func (c *chunk) searched() bool { return c.walked.Load() > int64(c.blocks/2) }

// block goes through a block.
func (w *walker) block(c *chunk, block int) (more bool, err error) {
	s := &w.scan
	w.dead = 0
	ok := s.open(c, block)
	for i := 0; ok && s.left > 0; i++ {
		if ok = s.lead(); !ok {
			break
		}
		if w.dead > 0 && s.shared >= w.dead {
			ok = s.skip()
			continue
		}
		if ok = s.shared <= s.n && s.suffix(); !ok {
			break
		}
		w.term = s.term()
		if i == 0 && w.past() {
			return false, nil
		}
		if w.step(s.shared) && bytes.HasPrefix(w.term, w.prefix) &&
			!w.yield(w.term, c.bits[s.value:s.end], c.ord+block*blockTerms+i) {
			return false, nil
		}
	}
	if !ok {
		return false, fmt.Errorf("block %d: %w", block, ErrCorrupt)
	}
	return true, nil
}

// farther is how many terms of a list are passed over one by one before
// looking where life goes on.
const farther = 256

// list goes through the list of a chunk, from a term on.
func (w *walker) list(c *chunk, l *list, i int) (more bool, err error) {
	v := valuer{c: c, block: -1}
	for k := 0; i < len(l.ends); { // bytes of the term that the states are good for
		w.term = l.term(i)
		if k < len(w.prefix) && w.past() {
			return false, nil
		}
		if w.step(k) && bytes.HasPrefix(w.term, w.prefix) {
			value, ok := v.value(i/blockTerms, i%blockTerms)
			if !ok {
				return false, fmt.Errorf("block %d: %w", i/blockTerms, ErrCorrupt)
			}
			if !w.yield(w.term, value, c.ord+i) {
				return false, nil
			}
		}
		i++
		if w.dead > 0 {
			near := min(i+farther, len(l.ends))
			for i < near && int(l.shared[i]) >= w.dead {
				i++
			}
			if i < len(l.ends) && i == near {
				if !w.alive() {
					return false, nil
				}
				if j := c.find(w.bound) * blockTerms; j > i {
					i, k = j, 0
					continue
				}
				for i < len(l.ends) && int(l.shared[i]) >= w.dead {
					i++
				}
			}
		}
		if i < len(l.ends) {
			k = int(l.shared[i])
		}
	}
	return true, nil
}

// past says whether the term is behind all with the prefix.
func (w *walker) past() bool {
	return bytes.Compare(w.term, w.prefix) > 0 && !bytes.HasPrefix(w.term, w.prefix)
}

// step brings the states up to date, of which those after up to k bytes are
// so, and says whether the term is accepted.
func (w *walker) step(k int) bool {
	w.dead = 0
	w.states = w.states[:k+1]
	for ; k < len(w.term); k++ {
		x := w.a.Step(w.states[k], w.term[k])
		if x < 0 {
			w.dead = k + 1
			return false
		}
		w.states = append(w.states, x)
	}
	return w.a.Accept(w.states[k])
}

// alive makes w.bound the least string behind the dead prefix from where the
// automaton lives. It says false if there is none.
func (w *walker) alive() bool {
	for n := w.dead - 1; n >= 0; n-- {
		t := w.term[:n+1]
		if b := w.live(w.states[n], int(t[n])+1); b < 256 {
			w.bound = append(append(w.bound[:0], t[:n]...), byte(b))
			return true
		}
	}
	return false
}

func (w *walker) live(state, from int) int {
	if w.liver != nil {
		return w.liver.Live(state, from)
	}
	for b := from; b < 256; b++ {
		if w.d.letters[b] && w.a.Step(state, byte(b)) >= 0 {
			return b
		}
	}
	return 256
}
