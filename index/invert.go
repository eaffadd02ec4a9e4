package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// A heap holds words, each with the chain of what is known of its documents.
// It has no pointers for the garbage collector to follow: a word is an entry,
// a chain is chunks of one array.
type heap struct {
	slots   []uint64 // open addressing: hash in the upper half, entry + 1 in the lower
	entries []entry
	mem     []byte // the chains
	reserve int    // bytes of mem to be expected if it comes to be large
}

// An entry is a word, or a key, in one attribute. Two of them fit in a line of
// the processor's cache. The chain holds varints: for each document its
// distance to the one before (the first from -1) times two and one; then for
// each occurrence, if positions are kept, the distance to the one before (the
// first from 0) times two; else a zero for each further one. A word of more
// than 8 bytes stands before the first chunk.
type entry struct {
	key  uint64 // the first 8 bytes, the first in the highest place
	meta uint32 // field << fieldAt | class of the chunk << classAt | length
	head uint32 // first chunk
	at   uint32 // where the chain goes on
	end  uint32 // of the chunk
	doc  uint32 // last document
	pos  uint32 // last position in it
}

const (
	entrySize = 32
	classAt   = 10 // a key has 3 + MaxKey bytes at most
	fieldAt   = 14
	lenMask   = 1<<classAt - 1
	classMask = 1<<fieldAt - 1 - lenMask
	maxField  = 1<<(32-fieldAt) - 1
	chunkMin  = 8 // bytes; each chunk has twice those of the one before, up to
	chunkMax  = 4096
	none      = ^uint32(0)
)

// size is the memory in use, in bytes.
func (h *heap) size() int64 {
	return int64(len(h.slots)*8 + len(h.entries)*entrySize + len(h.mem))
}

func (h *heap) reset() {
	clear(h.slots)
	h.entries, h.mem = h.entries[:0], h.mem[:0]
}

// prefix is the first 8 bytes of a word as a number that sorts as they do. It
// is fastest if there is memory behind the word.
func prefix(word []byte) uint64 {
	if cap(word) >= 8 {
		v := binary.BigEndian.Uint64(word[:8])
		if len(word) < 8 {
			v &= ^uint64(0) << (64 - 8*len(word))
		}
		return v
	}
	var v uint64
	for i, c := range word {
		v |= uint64(c) << (56 - 8*i)
	}
	return v
}

const hashFactor = 0x9e3779b97f4a7c15

func hash(key uint64, word []byte, meta uint32) uint64 {
	h := (key ^ uint64(meta)<<3) * hashFactor
	for i := 8; i < len(word); i += 8 {
		h = (bits.RotateLeft64(h, 29) ^ prefix(word[i:])) * hashFactor
	}
	return h >> 32
}

// find gives the number of the entry of a word in a field, a new one if there
// is none.
func (h *heap) find(field uint32, word []byte) uint32 {
	key, meta := prefix(word), field<<fieldAt|uint32(len(word))
	sum := uint32(hash(key, word, meta))
	if 2*len(h.entries) >= len(h.slots) {
		h.grow()
	}
	mask := uint32(len(h.slots) - 1)
	for s := sum & mask; ; s = (s + 1) & mask {
		slot := h.slots[s]
		if slot == 0 {
			h.slots[s] = uint64(sum)<<32 | uint64(len(h.entries)+1)
			h.add(key, meta, word)
			return uint32(len(h.entries) - 1)
		}
		if uint32(slot>>32) != sum {
			continue
		}
		n := uint32(slot) - 1
		e := &h.entries[n]
		if e.key == key && e.meta&^classMask == meta && (len(word) <= 8 || string(h.mem[e.head-uint32(len(word)):e.head]) == string(word)) {
			return n
		}
	}
}

// add adds an entry, with its first chunk.
func (h *heap) add(key uint64, meta uint32, word []byte) {
	if len(h.mem) > reserveAt && cap(h.mem) < h.reserve {
		h.mem = append(make([]byte, 0, h.reserve), h.mem...)
	}
	if len(word) > 8 {
		h.mem = append(h.mem, word...)
	}
	at := uint32(len(h.mem))
	h.mem = append(h.mem, zeros[:chunkMin]...)
	h.entries = append(h.entries, entry{key: key, meta: meta, head: at, at: at, end: at + chunkMin, doc: none})
}

func (h *heap) grow() {
	old := h.slots
	h.slots = make([]uint64, max(1<<10, 2*len(old)))
	mask := uint64(len(h.slots) - 1)
	for _, slot := range old {
		if slot != 0 {
			s := slot >> 32 & mask
			for h.slots[s] != 0 {
				s = (s + 1) & mask
			}
			h.slots[s] = slot
		}
	}
}

// occur notes a word at a position of a document.
func (h *heap) occur(e *entry, doc, pos uint32) {
	if e.doc != doc {
		h.put(e, (doc-e.doc)<<1|1)
		e.doc, e.pos = doc, 0
	}
	v := (pos - e.pos) << 1
	e.pos = pos
	if v < 0x80 && e.at < e.end {
		h.mem[e.at] = byte(v)
		e.at++
		return
	}
	h.put(e, v)
}

// count notes a word that has no positions.
func (h *heap) count(e *entry, doc uint32) {
	if e.doc == doc {
		h.put(e, 0)
		return
	}
	h.mention(e, doc)
}

// mention notes a document, however often.
func (h *heap) mention(e *entry, doc uint32) {
	if e.doc != doc {
		h.put(e, (doc-e.doc)<<1|1)
		e.doc = doc
	}
}

func (h *heap) put(e *entry, v uint32) {
	for v >= 0x80 {
		if e.at == e.end {
			h.chunk(e)
		}
		h.mem[e.at] = byte(v) | 0x80
		e.at++
		v >>= 7
	}
	if e.at == e.end {
		h.chunk(e)
	}
	h.mem[e.at] = byte(v)
	e.at++
}

// chunk gives e another one. Where it stands takes the place of the last 4
// bytes of the one before, which move.
func (h *heap) chunk(e *entry) {
	at := uint32(len(h.mem))
	size := uint32(chunkMin) << (e.meta&classMask>>classAt + 1)
	if size > chunkMax {
		size = chunkMax
	} else {
		e.meta += 1 << classAt
	}
	h.mem = append(h.mem, zeros[:size]...)
	link := h.mem[e.end-4 : e.end]
	copy(h.mem[at:], link)
	binary.LittleEndian.PutUint32(link, at)
	e.at, e.end = at+4, at+size
}

// From reserveAt bytes on a heap takes what it will need in one piece, so that
// nothing is copied as it grows.
const reserveAt = 1 << 20

var zeros [chunkMax]byte

func (e *entry) field() uint32 { return e.meta >> fieldAt }
func (e *entry) len() int      { return int(e.meta & lenMask) }

// chain appends all bytes of e's chain to dst.
func (h *heap) chain(dst []byte, e *entry) []byte {
	at, size := e.head, uint32(chunkMin)
	for e.at < at || e.at > at+size {
		dst = append(dst, h.mem[at:at+size-4]...)
		at = binary.LittleEndian.Uint32(h.mem[at+size-4:])
		size = min(2*size, chunkMax)
	}
	return append(dst, h.mem[at:e.at]...)
}

// word appends e's to dst.
func (h *heap) word(dst []byte, e *entry) []byte {
	n := e.len()
	if n > 8 {
		return append(dst, h.mem[e.head-uint32(n):e.head]...)
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], e.key)
	return append(dst, b[:n]...)
}

// A sortKey orders entries by their first bytes.
type sortKey struct {
	key uint64
	n   uint32 // of the entry
}

// An ordering is that of terms, by word and then by what rank gives for the
// field, or that of keys, by rank of the field and then by key.
type ordering struct {
	rank []uint32
	keys bool
}

// sorted are the entries in order.
func (o *ordering) sorted(h *heap) []sortKey {
	list := make([]sortKey, len(h.entries))
	for i := range h.entries {
		list[i] = sortKey{h.entries[i].key, uint32(i)}
	}
	slices.SortFunc(list, func(a, b sortKey) int {
		if a.key != b.key && !o.keys {
			if a.key < b.key {
				return -1
			}
			return 1
		}
		x, y := &h.entries[a.n], &h.entries[b.n]
		if c := o.term(h, x, h, y); c != 0 {
			return c
		}
		return int(o.rank[x.field()]) - int(o.rank[y.field()])
	})
	return list
}

// term compares what is one term in the dictionary: a word in whatever field,
// a key of a field.
func (o *ordering) term(g *heap, a *entry, h *heap, b *entry) int {
	if o.keys {
		if c := int(o.rank[a.field()]) - int(o.rank[b.field()]); c != 0 {
			return c
		}
	}
	if a.key != b.key {
		if a.key < b.key {
			return -1
		}
		return 1
	}
	n, m := a.len(), b.len()
	if n > 8 && m > 8 {
		return bytes.Compare(g.mem[a.head-uint32(n)+8:a.head], h.mem[b.head-uint32(m)+8:b.head])
	}
	return n - m
}

// An inverter turns documents round: from words by document to documents by
// word. One goroutine uses it.
type inverter struct {
	words  heap
	values heap // keys

	lengths []docLength
	columns []columnEntry // the first key of each attribute of each document
	places  []place       // by field
	a       analyzer
	yield   func(*Word) bool // word
	key     []byte

	noPositions, noNumbers bool

	doc    uint32
	field  uint32
	base   int // position of the value at hand
	length uint32
}

type docLength struct{ doc, words uint32 }

type columnEntry struct{ field, doc, entry uint32 }

// A place is where the words of an attribute go on in a document.
type place struct {
	doc uint32
	pos int
}

func newInverter(set *Settings, reserve int) *inverter {
	x := &inverter{noPositions: set.NoPositions, noNumbers: set.NoNumbers}
	x.words.reserve = reserve
	x.yield = x.word
	return x
}

func (x *inverter) size() int64 {
	return x.words.size() + x.values.size() + int64(len(x.lengths)*8+len(x.columns)*12)
}

func (x *inverter) reset() {
	x.words.reset()
	x.values.reset()
	x.lengths, x.columns, x.places = x.lengths[:0], x.columns[:0], x.places[:0]
}

// begin begins a document; numbers ascend.
func (x *inverter) begin(doc uint32) { x.doc, x.length = doc, 0 }

// end ends it.
func (x *inverter) end() {
	x.lengths = append(x.lengths, docLength{x.doc, x.length})
}

// add adds a value of an attribute to the document.
func (x *inverter) add(field uint32, keyed bool, text string) {
	for int(field) >= len(x.places) {
		x.places = append(x.places, place{doc: none})
	}
	p := &x.places[field]
	first := p.doc != x.doc
	if first {
		p.doc, p.pos = x.doc, 0
	} else {
		p.pos += valueGap
	}
	x.keys(field, keyed, first, text)
	x.field, x.base = field, p.pos
	x.a.pos = 0
	x.a.words(text, x.yield)
	p.pos += x.a.pos
	x.length += uint32(x.a.pos)
}

// word takes one of the value.
func (x *inverter) word(w *Word) bool {
	if x.noNumbers && w.Text[0] <= '9' && isNumber(w.Text) {
		return true
	}
	e := &x.words.entries[x.words.find(x.field, w.Text)]
	if w.Whole || x.noPositions {
		x.words.count(e, x.doc)
	} else {
		x.words.occur(e, x.doc, uint32(x.base+w.Pos))
	}
	return true
}

// keys notes the keys of a value, the first of an attribute in its column.
func (x *inverter) keys(field uint32, keyed, first bool, text string) {
	if first {
		x.mention(field, anyKey[:])
	}
	if !keyed {
		return
	}
	x.key = Keys(x.key, text, func(key []byte) bool {
		n := x.mention(field, key)
		if first {
			x.columns = append(x.columns, columnEntry{field, x.doc, n})
			first = false
		}
		return true
	})
}

func (x *inverter) mention(field uint32, key []byte) (entry uint32) {
	n := x.values.find(field, key)
	x.values.mention(&x.values.entries[n], x.doc)
	return n
}

var anyKey = [1]byte{keyAny}
