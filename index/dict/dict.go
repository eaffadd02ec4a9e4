// Package dict keeps a sorted dictionary: byte strings, each with a small
// value of a few bytes. It is written once, as a stream in order, and read
// from mapped bytes without copying them.
package dict

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
)

// ErrCorrupt is the class of an error about bytes that no Builder wrote.
var ErrCorrupt = errors.New("dictionary is corrupt")

// A Builder writes a dictionary.
type Builder struct {
	w    io.Writer
	last []byte
	n    int
	size int64
	buf  []byte
	offs []uint32
}

// NewBuilder starts a dictionary that is written to w, from its first byte
// to its last. It keeps a few megabytes, however many terms come.
func NewBuilder(w io.Writer) *Builder { return &Builder{w: w} }

// Add appends a term, which must be greater than the one before it. Neither
// slice is kept.
func (b *Builder) Add(term, value []byte) error {
	if b.n > 0 && bytes.Compare(term, b.last) <= 0 {
		return fmt.Errorf("term %q: not after %q", term, b.last)
	}
	b.last = append(b.last[:0], term...)
	b.offs = append(b.offs, uint32(len(b.buf)))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(term)))
	b.buf = append(b.buf, term...)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	b.buf = append(b.buf, value...)
	b.n++
	return nil
}

// Len is the number of terms added so far: the next one's ordinal.
func (b *Builder) Len() int { return b.n }

// Finish writes what is left and says how many bytes the dictionary has.
func (b *Builder) Finish() (int64, error) {
	for _, o := range b.offs {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, o)
	}
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(b.n))
	n, err := b.w.Write(b.buf)
	return int64(n), err
}

// A Dict reads a dictionary. It may be used by many goroutines at once.
// Damaged bytes never make it panic or read outside of them: what a look-up
// does not find because of them it does not find, and iterations end with an
// error of class ErrCorrupt.
type Dict struct {
	data []byte
	offs []byte
	n    int
}

// Open reads the dictionary that is all of data, which must stay as it is
// while the Dict and slices it gave are in use.
func Open(data []byte) (*Dict, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("dictionary of %d bytes: %w", len(data), ErrCorrupt)
	}
	n := int(binary.LittleEndian.Uint32(data[len(data)-4:]))
	data = data[:len(data)-4]
	if n > len(data)/4 {
		return nil, fmt.Errorf("dictionary of %d terms in %d bytes: %w", n, len(data), ErrCorrupt)
	}
	return &Dict{data[:len(data)-4*n], data[len(data)-4*n:], n}, nil
}

// Len is the number of terms.
func (d *Dict) Len() int { return d.n }

func (d *Dict) at(ord int) (term, value []byte, ok bool) {
	o := binary.LittleEndian.Uint32(d.offs[4*ord:])
	if int64(o) > int64(len(d.data)) {
		return nil, nil, false
	}
	term, rest, ok := cut(d.data[o:])
	if !ok {
		return nil, nil, false
	}
	value, _, ok = cut(rest)
	return term, value, ok
}

func cut(b []byte) (s, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}

// Get looks a term up. The value is a part of the bytes the Dict reads; ord
// is the number of terms before it. Get allocates nothing.
func (d *Dict) Get(term []byte) (value []byte, ord int, ok bool) {
	ord = d.search(term)
	if ord == d.n {
		return nil, 0, false
	}
	t, value, ok := d.at(ord)
	return value, ord, ok && bytes.Equal(t, term)
}

func (d *Dict) search(term []byte) int {
	return sort.Search(d.n, func(i int) bool {
		t, _, _ := d.at(i)
		return bytes.Compare(t, term) >= 0
	})
}

// At gives the term with the ordinal ord, appended to buf, and its value.
func (d *Dict) At(ord int, buf []byte) (term, value []byte, ok bool) {
	if ord < 0 || ord >= d.n {
		return buf, nil, false
	}
	t, v, ok := d.at(ord)
	return append(buf, t...), v, ok
}

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
	d           *Dict
	i           int
	term, value []byte
	err         error
}

// Cursor gives one that stands before the first term.
func (d *Dict) Cursor() *Cursor { return &Cursor{d: d, i: -1} }

// Reset puts c before the first term of d.
func (c *Cursor) Reset(d *Dict) { *c = Cursor{d: d, i: -1} }

// Seek puts c before the first term that is not less than term.
func (c *Cursor) Seek(term []byte) { c.i = c.d.search(term) - 1 }

// Next moves to the next term and says whether there is one.
func (c *Cursor) Next() bool {
	if c.i+1 >= c.d.n || c.err != nil {
		return false
	}
	c.i++
	var ok bool
	if c.term, c.value, ok = c.d.at(c.i); !ok {
		c.err = fmt.Errorf("term %d: %w", c.i, ErrCorrupt)
	}
	return ok
}

// Term is the term c stands at.
func (c *Cursor) Term() []byte { return c.term }

// Value is that term's value, a part of the bytes the Dict reads.
func (c *Cursor) Value() []byte { return c.value }

// Ord is that term's ordinal.
func (c *Cursor) Ord() int { return c.i }

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

// An Automaton accepts some byte strings. States are small integers; one
// that is less than 0 is dead: nothing is accepted from there on.
type Automaton interface {
	Start() int
	Step(state int, b byte) int
	Accept(state int) bool
}

// Walk gives the terms that begin with prefix and that a accepts (from their
// first byte on, the prefix too), in order, until yield says false.
func (d *Dict) Walk(a Automaton, prefix []byte, yield func(term, value []byte, ord int) bool) error {
	return d.Prefix(prefix, func(term, value []byte, ord int) bool {
		s := a.Start()
		for i := 0; s >= 0 && i < len(term); i++ {
			s = a.Step(s, term[i])
		}
		return s < 0 || !a.Accept(s) || yield(term, value, ord)
	})
}

// A Cache keeps lists of terms, decoded, for Contains, as many as fit in its
// bytes. Several Dicts may share one and goroutines may use it at once. A nil
// Cache keeps nothing.
type Cache struct{}

// NewCache makes a Cache of at most size bytes.
func NewCache(size int64) *Cache { return &Cache{} }

// Forget drops what c keeps of d. Who lets go of a Dict calls it.
func (c *Cache) Forget(d *Dict) {}

// Contains gives the terms that hold at least one of the literals, in order,
// until yield says false.
func (d *Dict) Contains(cache *Cache, literals []string, yield func(term, value []byte, ord int) bool) error {
	return d.Prefix(nil, func(term, value []byte, ord int) bool {
		for _, l := range literals {
			if bytes.Contains(term, []byte(l)) {
				return yield(term, value, ord)
			}
		}
		return true
	})
}
