package dict

import (
	"bytes"
	"fmt"
)

// A Cursor goes through the terms of a dictionary in order:
//
//	for c.Seek(from); c.Next(); {
//		use(c.Term(), c.Value(), c.Ord())
//	}
//	if err := c.Err(); err != nil { … }
//
// What Term gives is good until the next call of Next or Seek. A zero Cursor
// needs Reset; one that is Reset again keeps its memory.
type Cursor struct {
	d     *Dict
	chunk int // the scan's
	block int
	ord   int
	held  bool // the scan's term is the next one
	scan  scan
	err   error
}

// Cursor gives one that stands before the first term.
func (d *Dict) Cursor() *Cursor {
	c := new(Cursor)
	c.Reset(d)
	return c
}

// Reset puts c before the first term of d.
func (c *Cursor) Reset(d *Dict) {
	*c = Cursor{d: d, scan: scan{room: c.scan.room}}
	if d.n > 0 {
		c.open(0, 0)
	}
}

// open puts c before a block.
func (c *Cursor) open(chunk, block int) bool {
	c.chunk, c.block, c.held = chunk, block, false
	k := &c.d.chunks[chunk]
	c.ord = k.ord + block*blockTerms - 1
	if !c.scan.open(k, block) {
		c.scan.left = 0
		c.fail()
		return false
	}
	return true
}

func (c *Cursor) fail() {
	if c.err == nil {
		c.err = fmt.Errorf("dictionary: chunk %d, block %d: %w", c.chunk, c.block, ErrCorrupt)
	}
}

// Seek puts c before the first term that is not less than term.
func (c *Cursor) Seek(term []byte) {
	if c.d.n == 0 || c.err != nil {
		return
	}
	i := c.d.chunk(term)
	if !c.open(i, c.d.chunks[i].find(term)) {
		return
	}
	for c.Next() {
		if bytes.Compare(c.scan.term(), term) >= 0 {
			c.held = true
			return
		}
	}
}

// Next moves to the next term and says whether there is one.
func (c *Cursor) Next() bool {
	if c.held {
		c.held = false
		return true
	}
	if c.scan.left == 0 && !c.more() {
		return false
	}
	c.ord++
	if c.scan.next() {
		return true
	}
	c.fail()
	c.scan.left = 0
	return false
}

// more opens the next block, if there is one.
func (c *Cursor) more() bool {
	if c.err != nil || c.d.n == 0 {
		return false
	}
	if c.block+1 < c.d.chunks[c.chunk].blocks {
		return c.open(c.chunk, c.block+1)
	}
	return c.chunk+1 < len(c.d.chunks) && c.open(c.chunk+1, 0)
}

// Term is the term c stands at.
func (c *Cursor) Term() []byte { return c.scan.term() }

// Value is that term's value, a part of the bytes the Dict reads.
func (c *Cursor) Value() []byte { return c.scan.c.bits[c.scan.value:c.scan.end] }

// Ord is that term's ordinal.
func (c *Cursor) Ord() int { return c.ord }

// Err says what ended the iteration early.
func (c *Cursor) Err() error { return c.err }

// Prefix gives all terms that begin with prefix, in order, until yield says
// false. Term is good during the call only; so it is in Walk and Contains.
func (d *Dict) Prefix(prefix []byte, yield func(term, value []byte, ord int) bool) error {
	c := d.Cursor()
	for c.Seek(prefix); c.Next() && bytes.HasPrefix(c.Term(), prefix); {
		if !yield(c.Term(), c.Value(), c.Ord()) {
			break
		}
	}
	return c.Err()
}
