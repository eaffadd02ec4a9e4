package block

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// An inverter turns documents round: it keeps for each term the units it
// stands in, ascending. Terms and lists lie in a few large pieces of memory
// without pointers, so the collector has nothing to do with them.
//
// Units count within the inverter: its first document's first is 0.
//
// The ranked engine has a table of its own (index/invert.go): there an entry is
// found by attribute and word, at most 1 KB, and begins a chain for positions. Here
// a term is up to 64 KB, and one of a single unit, as most are, has no chain.
type inverter struct {
	seed    maphash.Seed
	slots   []uint32 // of the hash table: place in entries + 1, or 0
	entries []entry
	terms   []byte
	pages   [][]byte // of chunks
	used    uint32   // bytes of pages given away

	docs   []uint32 // by document: its number outside
	starts []uint32 // by document: its first unit; only if units are not documents
}

// An entry is a term. The first unit stands in it; the gaps to the others, as
// varints, in a chain of chunks, each ending with the place of the next.
type entry struct {
	hash        uint32
	term        uint32 // place in terms
	count       uint32 // of units
	first, last uint32 // units
	head, tail  uint32 // the first chunk and the next byte to write
	left        uint16 // bytes before the end of the last chunk's gaps
	length      uint16
	class       uint8 // of the last chunk
}

// Chunks have 8 bytes to begin with and each twice as many as the one before,
// up to 512; pages are of their size's power of two, so none lies across.
const (
	pageBits   = 16
	firstChunk = 8
	lastClass  = 6
	linkSize   = 4
)

func newInverter() *inverter {
	return &inverter{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<10)}
}

// memory is about what v takes, in bytes.
func (v *inverter) memory() int64 {
	return int64(4*len(v.slots)+36*cap(v.entries)+cap(v.terms)) + int64(len(v.pages))<<pageBits + int64(4*cap(v.docs)+4*cap(v.starts))
}

// add says that a term of at most 64 KB stands in a unit, which is not
// before any it was said to stand in.
func (v *inverter) add(term []byte, unit uint32) {
	h := uint32(maphash.Bytes(v.seed, term))
	mask := uint32(len(v.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		n := v.slots[i]
		if n == 0 {
			v.slots[i] = uint32(len(v.entries) + 1)
			v.enter(term, h, unit)
			return
		}
		e := &v.entries[n-1]
		if e.hash == h && string(v.text(e)) == string(term) {
			if e.last != unit {
				v.append(e, unit)
			}
			return
		}
	}
}

func (v *inverter) text(e *entry) []byte { return v.terms[e.term:][:e.length] }

func (v *inverter) enter(term []byte, h, unit uint32) {
	v.entries = append(v.entries, entry{hash: h, term: uint32(len(v.terms)), length: uint16(len(term)), count: 1, first: unit, last: unit})
	v.terms = append(v.terms, term...)
	if len(v.entries) < len(v.slots)/2 {
		return
	}
	v.slots = make([]uint32, 2*len(v.slots))
	mask := uint32(len(v.slots) - 1)
	for n := range v.entries {
		i := v.entries[n].hash & mask
		for v.slots[i] != 0 {
			i = (i + 1) & mask
		}
		v.slots[i] = uint32(n + 1)
	}
}

func (v *inverter) append(e *entry, unit uint32) {
	gap := unit - e.last
	e.last = unit
	e.count++
	for gap >= 0x80 {
		v.put(e, byte(gap)|0x80)
		gap >>= 7
	}
	v.put(e, byte(gap))
}

func (v *inverter) put(e *entry, b byte) {
	if e.left == 0 {
		v.grow(e)
	}
	v.pages[e.tail>>pageBits][e.tail&(1<<pageBits-1)] = b
	e.tail++
	e.left--
}

// grow chains another chunk to e.
func (v *inverter) grow(e *entry) {
	class := e.class
	if e.head != 0 && class < lastClass {
		class++
	}
	size := uint32(firstChunk) << class
	if rest := -v.used & (1<<pageBits - 1); rest < size {
		v.used += rest // 0 if the page is full
		v.pages = append(v.pages, make([]byte, 1<<pageBits))
		if v.used == 0 {
			v.used = firstChunk // so that no chunk is 0
		}
	}
	at := v.used
	v.used += size
	if e.head == 0 {
		e.head = at
	} else {
		binary.LittleEndian.PutUint32(v.pages[e.tail>>pageBits][e.tail&(1<<pageBits-1):], at)
	}
	e.tail, e.left, e.class = at, uint16(size-linkSize), class
}

// units appends the units of e.
func (v *inverter) units(e *entry, dst []uint32) []uint32 {
	dst = append(dst, e.first)
	at, left, class := e.head, firstChunk-linkSize, 0
	next := func() byte {
		if left == 0 {
			at = binary.LittleEndian.Uint32(v.pages[at>>pageBits][at&(1<<pageBits-1):])
			class = min(class+1, lastClass)
			left = firstChunk<<class - linkSize
		}
		b := v.pages[at>>pageBits][at&(1<<pageBits-1)]
		at++
		left--
		return b
	}
	last := e.first
	for range e.count - 1 {
		var gap uint32
		b := next()
		for shift := 0; ; shift += 7 {
			gap |= uint32(b&0x7f) << shift
			if b < 0x80 {
				break
			}
			b = next()
		}
		last += gap
		dst = append(dst, last)
	}
	return dst
}

// sorted gives the places of the entries in the order of their terms.
func (v *inverter) sorted() []uint32 {
	type key struct {
		head uint64
		n    uint32
	}
	keys := make([]key, len(v.entries))
	for i := range v.entries {
		var head [8]byte
		copy(head[:], v.text(&v.entries[i]))
		keys[i] = key{binary.BigEndian.Uint64(head[:]), uint32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(v.text(&v.entries[a.n]), v.text(&v.entries[b.n]))
	})
	order := make([]uint32, len(keys))
	for i := range keys {
		order[i] = keys[i].n
	}
	return order
}
