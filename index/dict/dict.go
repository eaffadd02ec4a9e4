// Package dict keeps a sorted dictionary: byte strings, each with a small
// value of a few bytes. It is written once, as a stream in order, and read
// from mapped bytes without copying them. Whoever keeps the bytes checks their
// sum; a reader here checks every length and offset against what is there.
//
// # Format
//
// A dictionary is chunks, a directory of 24 bytes for each, and 16 bytes:
// terms (8), chunks (4), "hdic". All numbers have their low byte first. A chunk
// is up to 524,288 terms, or 8 MB of them; it has its own codes, so numbers
// and words, which sort apart, do not spoil each other's, and a writer needs
// no more memory for more terms. Its directory entry is where it begins (8),
// terms, bytes of blocks, bytes of codes, bytes of all its terms (4 each). It
// holds:
//
//	blocks     of 32 terms, the last of fewer
//	prefixes   the first 8 bytes of each block's first term, as a number of 8
//	           bytes that compares as they do: what a look-up bisects
//	offsets    where each block begins, 4 bytes
//	codes      the symbols, as packSymbols writes them, then the lengths of
//	           codes for symbols, for lengths of values, and for how much is
//	           shared, in each of 32 contexts, as pack writes them
//
// A block is a stream of bits, the first lowest in a byte, and behind it the
// values as they are, from the last to the first, so that their place needs
// no pointer. A term is, in the stream: a code for the value's length (15: 16
// bits more follow), a code for how many bytes it shares with the term before
// (255: 12 bits more), in the context of how many that one shared (31 for
// all more), and symbols for the bytes that follow, the last of them one that
// ends a term. The first term of a block shares nothing and has no code for
// that.
//
// A symbol is up to 8 bytes that were found to be frequent, with or without
// the end of the term; each byte in use is one, so everything can be spelled.
// Codes are Huffman's, of at most 13 bits for symbols and 8 for the others.
// Of four terms,
//
//	lock  locked  mutex  mutexes
//
// the block may read: value 2 "lock" end; value 2, shared 4, "ed" end; value 3,
// shared 0, "mutex" end; value 2, shared 5, "es" end; then the values, 2 + 3 + 2
// + 2 bytes.
//
// # Sizes and times
//
// The 416,129 words of a corpus of 211.9 MB (manuals and their programs; 15.6
// bytes a word with its end), each with a value of 2 or 3 bytes; processor
// time, on a machine busy with other things, so look at the ratios:
//
//	                                  bytes a word  % of text  look-up  next word
//	order-1 Huffman, blocks of 32     7.62          1.50       1.2 µs   45 ns
//	symbols, blocks of 16             8.34          1.64       0.48     20
//	symbols, blocks of 32 (chosen)    7.88          1.55       0.70     20
//	vellum v1.2.1 (an FST)            14.3          2.81       0.50     150
//
// Of the 7.88 bytes, 2.5 are the value; the words alone take 5.38, 1.06 % of
// the text. Symbols are learned from 64 KB of terms; from 384 KB they would
// save 0.14 bytes more and writing would take twice as long. Of less than
// 256 KB they are single bytes, since learning takes 50 ms: 4,000 words take
// 4 ms to write and 12.4 bytes each, values included, instead of 35 and 11.3.
//
// Walking the same words, as times of vellum's: 1 error 0.31, 2 errors 0.77;
// with the terms kept decoded in a Cache 0.12 and 0.25. Near takes a tenth and
// a quarter of such a walk, with tables of 4.3 bytes a word. A literal inside of
// words is found by searching the kept list, 3 to 5 % of the time that
// vellum's automaton needs.
package dict

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
)

// ErrCorrupt is the class of an error about bytes that no Builder wrote.
var ErrCorrupt = errors.New("dictionary is corrupt")

const (
	magic       = "hdic"
	entrySize   = 24
	trailerSize = 16
)

// A Dict reads a dictionary. It may be used by many goroutines at once.
// Damaged bytes never make it panic or read outside of them: what a look-up
// does not find because of them it does not find, and iterations end with an
// error of class ErrCorrupt.
type Dict struct {
	n       int
	chunks  []chunk
	letters [256]bool // bytes that a term may have
}

// A chunk is a run of blocks that share their codes.
type chunk struct {
	ord      int    // of the first term
	n        int    // terms
	blocks   int    // of blockTerms terms, but for the last
	bits     []byte // the blocks and, so that 8 bytes can be read anywhere in them, what follows
	size     int    // of the blocks alone
	prefixes []byte // 8 for each block
	offsets  []byte // 4 for each block
	first    []byte // the first term

	words  []entry  // wordEnd, length and number of a symbol
	texts  []uint64 // of the symbols
	values []entry  // length of the value
	shares [shareContexts][]entry

	letters [256]bool    // bytes that a term may have
	length  uint32       // of all terms
	making  sync.Mutex   // held while something is made for a Cache
	walked  atomic.Int64 // blocks that walks decoded since something was made
}

const (
	shareContexts = 32  // of a shared length: how much the term before shared, the last for all more
	shareEscape   = 255 // stands for a shared length of 12 bits that follow
	valueSymbols  = 16
	valueEscape   = 15 // stands for a value's length of 16 bits that follow
	wordEnd       = 1 << 4
)

// Open reads the dictionary that is all of data, which must stay as it is
// while the Dict and slices it gave are in use.
func Open(data []byte) (*Dict, error) {
	if len(data) < trailerSize || string(data[len(data)-4:]) != magic {
		return nil, fmt.Errorf("dictionary of %d bytes: %w", len(data), ErrCorrupt)
	}
	t := data[len(data)-trailerSize:]
	terms := binary.LittleEndian.Uint64(t)
	chunks := int(binary.LittleEndian.Uint32(t[8:]))
	if chunks > (len(data)-trailerSize)/entrySize {
		return nil, fmt.Errorf("dictionary of %d chunks in %d bytes: %w", chunks, len(data), ErrCorrupt)
	}
	dir := data[len(data)-trailerSize-chunks*entrySize:]
	data = data[:len(data)-trailerSize-chunks*entrySize]
	d := &Dict{chunks: make([]chunk, chunks)}
	for i := range d.chunks {
		c := &d.chunks[i]
		c.ord = d.n
		if err := c.open(data, dir[i*entrySize:]); err != nil {
			return nil, fmt.Errorf("dictionary: chunk %d: %w", i, err)
		}
		d.n += c.n
		for b, used := range c.letters {
			d.letters[b] = d.letters[b] || used
		}
	}
	if uint64(d.n) != terms {
		return nil, fmt.Errorf("dictionary of %d terms has %d: %w", terms, d.n, ErrCorrupt)
	}
	return d, nil
}

func (c *chunk) open(data, entry []byte) error {
	off := binary.LittleEndian.Uint64(entry)
	c.n = int(binary.LittleEndian.Uint32(entry[8:]))
	c.size = int(binary.LittleEndian.Uint32(entry[12:]))
	codes := int(binary.LittleEndian.Uint32(entry[16:]))
	c.length = binary.LittleEndian.Uint32(entry[20:])
	c.blocks = (c.n + blockTerms - 1) / blockTerms
	if c.n == 0 || c.n > chunkTerms || off > uint64(len(data)) || c.size+12*c.blocks+codes > len(data)-int(off) {
		return ErrCorrupt
	}
	data = data[off:]
	data = data[:c.size+12*c.blocks+codes]
	c.bits = data
	c.prefixes = data[c.size : c.size+8*c.blocks]
	c.offsets = data[c.size+8*c.blocks : c.size+12*c.blocks]
	if err := c.codes(data[c.size+12*c.blocks:]); err != nil {
		return err
	}
	var s scan
	if !s.open(c, 0) || !s.next() {
		return ErrCorrupt
	}
	c.first = s.term()
	return nil
}

// codes reads the codes.
func (c *chunk) codes(b []byte) error {
	symbols, b, err := unpackSymbols(b)
	if err != nil {
		return err
	}
	read := func(n, limit int) (t []entry) {
		var l []uint8
		if err == nil {
			l, b, err = unpack(b, n)
		}
		if err == nil {
			var ok bool
			if t, ok = fill(l, limit); !ok {
				err = errCode
			}
		}
		return t
	}
	c.words = read(len(symbols), maxBits)
	c.values = read(valueSymbols, 8)
	for i := range c.shares {
		c.shares[i] = read(256, 8)
	}
	if err != nil {
		return err
	}
	for i, e := range c.words {
		if e != 0 {
			y := symbols[e>>4]
			c.words[i] = e>>4<<9 | entry(y.n)<<5 | e&15
			if y.end {
				c.words[i] |= wordEnd
			}
		}
	}
	c.texts = make([]uint64, len(symbols))
	for i, y := range symbols {
		c.texts[i] = y.text
		for k := range y.n {
			c.letters[byte(y.text>>(8*k))] = true
		}
	}
	return nil
}

// Len is the number of terms.
func (d *Dict) Len() int { return d.n }

// A scan decodes a block.
type scan struct {
	c      *chunk
	left   int    // terms still to come
	shared int    // with the term before, of the last one; -1 before the first
	p      uint   // where in c.bits, in bits
	value  int    // where the last term's value begins, and the next one's ends
	end    int    // where the last term's value ends
	n      int    // length of the last term
	room   []byte // that term, and more
}

func (s *scan) term() []byte { return s.room[:s.n] }

// open puts s before the first term of a block.
func (s *scan) open(c *chunk, block int) bool {
	from, to := c.block(block)
	if from > to || to > c.size {
		return false
	}
	s.c, s.p, s.value, s.shared, s.n = c, uint(from)*8, to, -1, 0
	s.left = min(blockTerms, c.n-block*blockTerms)
	return true
}

func (c *chunk) block(i int) (from, to int) {
	from, to = int(binary.LittleEndian.Uint32(c.offsets[4*i:])), c.size
	if i+1 < c.blocks {
		to = int(binary.LittleEndian.Uint32(c.offsets[4*i+4:]))
	}
	return from, to
}

// lead decodes what stands before a suffix: where the value is and how much
// the next term shares with the last one.
func (s *scan) lead() bool {
	c := s.c
	if s.p>>3+8 > uint(len(c.bits)) {
		return false
	}
	acc := binary.LittleEndian.Uint64(c.bits[s.p>>3:]) >> (s.p & 7)
	e := c.values[acc&uint64(len(c.values)-1)]
	n := uint(e & 15)
	acc >>= n
	v := int(e >> 4)
	if v == valueEscape {
		v = int(acc & 0xffff)
		acc >>= 16
		n += 16
	}
	s.end = s.value
	s.value -= v
	s.left--
	if s.shared < 0 {
		s.p += n
		s.shared = 0
		return e != 0
	}
	t := c.shares[min(s.shared, shareContexts-1)]
	f := t[acc&uint64(len(t)-1)]
	k := int(f >> 4)
	n += uint(f & 15)
	if k == shareEscape {
		k = int(acc >> (f & 15) & 0xfff)
		n += 12
	}
	s.p += n
	s.shared = k
	return e != 0 && f != 0
}

// next decodes the next term. It says false at the end of the block, with
// left 0, and for damage, with left more.
func (s *scan) next() bool {
	if s.left == 0 {
		return false
	}
	if !s.lead() || s.shared > s.n {
		s.left = 1
		return false
	}
	if !s.suffix() {
		s.left = 1
		return false
	}
	return true
}

// suffix decodes what follows the first s.shared bytes of the term.
func (s *scan) suffix() bool {
	c, p, n := s.c, s.p, s.shared
	mask := uint64(len(c.words) - 1)
	for {
		if p>>3+8 > uint(len(c.bits)) || n > MaxTerm {
			return false
		}
		if n+5*longest > len(s.room) {
			s.room = append(s.room[:n], make([]byte, n+128)...)
		}
		acc := binary.LittleEndian.Uint64(c.bits[p>>3:]) >> (p & 7)
		for range 57 / maxBits {
			e := c.words[acc&mask]
			acc >>= e & 15
			p += uint(e & 15)
			binary.LittleEndian.PutUint64(s.room[n:], c.texts[e>>9])
			n += int(e >> 5 & 15)
			if e&wordEnd != 0 {
				s.n, s.p = n, p
				return n <= MaxTerm && s.value >= int((p+7)>>3)
			}
			if e == 0 {
				return false
			}
		}
	}
}

// find gives the last block whose first term is not greater than term, or
// the first block.
func (c *chunk) find(term []byte) int {
	k := key(term)
	hi := c.bound(0, c.blocks, k, true)
	if hi == 0 || c.prefix(hi-1) != k {
		return max(0, hi-1)
	}
	lo := c.bound(0, hi, k, false)
	for lo < hi { // of those with the same prefix
		m := int(uint(lo+hi) >> 1)
		var s scan
		order := 1
		if s.open(c, m) && s.lead() {
			_, order = s.compare(term, 0)
		}
		if order <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return max(0, lo-1)
}

// bound gives the first block in [lo, hi) whose prefix is at least k, or
// greater.
func (c *chunk) bound(lo, hi int, k uint64, greater bool) int {
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if p := c.prefix(m); p < k || greater && p == k {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func (c *chunk) prefix(block int) uint64 { return binary.LittleEndian.Uint64(c.prefixes[8*block:]) }

// chunk finds the chunk where a term would be.
func (d *Dict) chunk(term []byte) int {
	i := sort.Search(len(d.chunks), func(i int) bool { return bytes.Compare(d.chunks[i].first, term) > 0 })
	return max(0, i-1)
}

// Get looks a term up. The value is a part of the bytes the Dict reads; ord
// is the number of terms before it. Get allocates nothing.
func (d *Dict) Get(term []byte) (value []byte, ord int, ok bool) {
	if d.n == 0 {
		return nil, 0, false
	}
	c := &d.chunks[0]
	if len(d.chunks) > 1 {
		c = &d.chunks[d.chunk(term)]
	}
	var s scan
	block := c.find(term)
	if !s.open(c, block) {
		return nil, 0, false
	}
	same := 0 // bytes that the last term has in common with term; it is less
	for i := block * blockTerms; s.left > 0 && s.lead(); i++ {
		if s.shared < same { // it differs there, and is greater
			break
		}
		order := -1
		if s.shared == same {
			same, order = s.compare(term, same)
		} else if !s.skip() {
			break
		}
		if order == 0 {
			return c.bits[s.value:s.end], c.ord + i, true
		}
		if order > 0 {
			break
		}
	}
	return nil, 0, false
}

// skip passes over a suffix.
func (s *scan) skip() bool {
	c, p := s.c, s.p
	mask := uint64(len(c.words) - 1)
	for p>>3+8 <= uint(len(c.bits)) {
		acc := binary.LittleEndian.Uint64(c.bits[p>>3:]) >> (p & 7)
		for range 57 / maxBits {
			e := c.words[acc&mask]
			acc >>= e & 15
			p += uint(e & 15)
			if e&wordEnd != 0 {
				s.p = p
				return true
			}
			if e == 0 {
				return false
			}
		}
	}
	return false
}

// compare decodes a suffix and compares it with what follows the first same
// bytes of term: how much is the same then, and 0 if all is, else whether the
// suffix is less or greater. It goes to the end of what is less only. Damage
// is as if it were greater.
func (s *scan) compare(term []byte, same int) (int, int) {
	c, p := s.c, s.p
	mask := uint64(len(c.words) - 1)
	for p>>3+8 <= uint(len(c.bits)) {
		acc := binary.LittleEndian.Uint64(c.bits[p>>3:]) >> (p & 7)
		for range 57 / maxBits {
			e := c.words[acc&mask]
			acc >>= e & 15
			p += uint(e & 15)
			if e == 0 {
				return 0, 1
			}
			n := int(e >> 5 & 15)
			text := c.texts[e>>9]
			for ; n > 0 && same < len(term) && byte(text) == term[same]; n-- {
				text >>= 8
				same++
			}
			if n > 0 {
				s.p = p
				if same == len(term) || byte(text) > term[same] || e&wordEnd == 0 && !s.skip() {
					return same, 1
				}
				return same, -1
			}
			if e&wordEnd != 0 {
				s.p = p
				if same == len(term) && s.value >= int((p+7)>>3) {
					return same, 0
				}
				return same, -1
			}
		}
	}
	return 0, 1
}

// At gives the term with the ordinal ord, appended to buf, and its value.
func (d *Dict) At(ord int, buf []byte) (term, value []byte, ok bool) {
	if ord < 0 || ord >= d.n {
		return buf, nil, false
	}
	c := &d.chunks[sort.Search(len(d.chunks), func(i int) bool { return d.chunks[i].ord > ord })-1]
	ord -= c.ord
	var room [256]byte
	s := scan{room: room[:]}
	if !s.open(c, ord/blockTerms) {
		return buf, nil, false
	}
	for range ord%blockTerms + 1 {
		if !s.next() {
			return buf, nil, false
		}
	}
	return append(buf, s.term()...), c.bits[s.value:s.end], true
}
