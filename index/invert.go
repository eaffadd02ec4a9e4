package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"syscall"
)

// A heap holds words, each with the chain of what is known of its documents.
// It has no pointers for the garbage collector to follow: a word is an entry
// in a table by open addressing, a chain is chunks of one array.
type heap struct {
	table   []entry // those in use have a head
	n       int     // of them
	mem     []byte  // the chains; the first byte is nobody's
	reserve int     // bytes of mem to be expected if it comes to be large
	region  []byte  // those, outside of what the garbage collector counts
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
func (h *heap) size() int64 { return int64(len(h.table)*entrySize + len(h.mem)) }

func (h *heap) reset() {
	clear(h.table)
	h.n, h.mem = 0, h.mem[:0]
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

func hash(key uint64, word []byte, meta uint32) uint32 {
	h := (key ^ uint64(meta)<<3) * hashFactor
	for i := 8; i < len(word); i += 8 {
		h = (bits.RotateLeft64(h, 29) ^ prefix(word[i:])) * hashFactor
	}
	return uint32(h >> 32)
}

// find gives the entry of a word in a field, a new one if there is none. It is
// good until the next.
func (h *heap) find(field uint32, word []byte) *entry {
	key, meta := prefix(word), field<<fieldAt|uint32(len(word))
	var tail []byte
	if len(word) > 8 {
		tail = word[8:]
	}
	return h.seek(key, meta, hash(key, word, meta), tail)
}

// seek is find; tail is what a long word has after its first 8 bytes.
func (h *heap) seek(key uint64, meta, sum uint32, tail []byte) *entry {
	if 3*h.n >= 2*len(h.table) {
		h.grow()
	}
	mask := uint32(len(h.table) - 1)
	for s := sum & mask; ; s = (s + 1) & mask {
		e := &h.table[s]
		if e.key == key && e.meta&^classMask == meta && (len(tail) == 0 || string(h.tail(e)) == string(tail)) {
			return e
		}
		if e.head == 0 {
			h.n++
			h.add(e, key, meta, tail)
			return e
		}
	}
}

// tail is what a long word has after its first 8 bytes; it stands before the
// chain.
func (h *heap) tail(e *entry) []byte {
	return h.mem[e.head-(e.meta&lenMask-8) : e.head]
}

// add makes e an entry, with its first chunk.
func (h *heap) add(e *entry, key uint64, meta uint32, tail []byte) {
	if len(h.mem) == 0 {
		h.alloc(1)
	}
	copy(h.mem[h.alloc(len(tail)):], tail)
	at := h.alloc(chunkMin)
	*e = entry{key: key, meta: meta, head: at, at: at, end: at + chunkMin, doc: none}
}

// alloc takes n bytes of mem.
func (h *heap) alloc(n int) (at uint32) {
	at = uint32(len(h.mem))
	if len(h.mem)+n > cap(h.mem) {
		if len(h.mem) > reserveAt && h.region == nil && h.reserve > 2*reserveAt {
			h.expand()
		}
		h.mem = slices.Grow(h.mem, n)
	}
	h.mem = h.mem[:len(h.mem)+n]
	return at
}

// From reserveAt bytes on a heap takes what it will need in one piece, so that
// nothing is copied as it grows, and nothing else is let grow because of it.
const reserveAt = 1 << 20

func (h *heap) expand() {
	region, err := syscall.Mmap(-1, 0, h.reserve, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return // it can grow as other memory does
	}
	h.region = region
	h.mem = append(region[:0], h.mem...)
}

// release gives the region back; the heap is of no use any more.
func (h *heap) release() {
	if h.region != nil {
		syscall.Munmap(h.region)
	}
	*h = heap{}
}

func (h *heap) grow() {
	old := h.table
	h.table = make([]entry, max(1<<8, 2*len(old)))
	mask := uint32(len(h.table) - 1)
	var b [lenMask + 1]byte
	for i := range old {
		e := &old[i]
		if e.head == 0 {
			continue
		}
		s := hash(e.key, h.word(b[:0], e), e.meta&^classMask) & mask
		for h.table[s].head != 0 {
			s = (s + 1) & mask
		}
		h.table[s] = *e
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
	size := uint32(chunkMin) << (e.meta&classMask>>classAt + 1)
	if size > chunkMax {
		size = chunkMax
	} else {
		e.meta += 1 << classAt
	}
	at := h.alloc(int(size))
	link := h.mem[e.end-4 : e.end]
	copy(h.mem[at:], link)
	binary.LittleEndian.PutUint32(link, at)
	e.at, e.end = at+4, at+size
}

// setOrdinal notes the ordinal of a key in place of its chain, which is of no
// more use then.
func (h *heap) setOrdinal(e *entry, ord uint32) {
	binary.LittleEndian.PutUint32(h.mem[e.head:], ord)
}

// ordinal is that of the key whose chain began at head.
func (h *heap) ordinal(head uint32) uint32 { return binary.LittleEndian.Uint32(h.mem[head:]) }

func (e *entry) field() uint32 { return e.meta >> fieldAt }
func (e *entry) len() int      { return int(e.meta & lenMask) }

// chain gives all bytes of e's chain, in buf if they are not in one piece.
func (h *heap) chain(buf []byte, e *entry) (b, _ []byte) {
	at, size := e.head, uint32(chunkMin)
	if at <= e.at && e.at <= at+size {
		return h.mem[at:e.at], buf
	}
	buf = buf[:0]
	for e.at < at || e.at > at+size {
		buf = append(buf, h.mem[at:at+size-4]...)
		at = binary.LittleEndian.Uint32(h.mem[at+size-4:])
		size = min(2*size, chunkMax)
	}
	buf = append(buf, h.mem[at:e.at]...)
	return buf, buf
}

// word appends e's to dst.
func (h *heap) word(dst []byte, e *entry) []byte {
	n := e.len()
	dst = binary.BigEndian.AppendUint64(dst, e.key)
	if n > 8 {
		return append(dst, h.tail(e)...)
	}
	return dst[:len(dst)-8+n]
}

// A sortKey orders entries by their first bytes.
type sortKey struct {
	key uint64
	n   uint32 // of the entry in the table
}

// An ordering is that of terms, by word and then by what rank gives for the
// field, or that of keys, by rank of the field and then by key.
type ordering struct {
	rank []uint32
	keys bool
}

// sorted are the entries in order.
func (o *ordering) sorted(h *heap) []sortKey {
	list := make([]sortKey, 0, h.n)
	for i := range h.table {
		if e := &h.table[i]; e.head != 0 {
			list = append(list, sortKey{e.key, uint32(i)})
		}
	}
	slices.SortFunc(list, func(a, b sortKey) int {
		if a.key != b.key && !o.keys {
			if a.key < b.key {
				return -1
			}
			return 1
		}
		x, y := &h.table[a.n], &h.table[b.n]
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
		return bytes.Compare(g.tail(a), h.tail(b))
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

	waiting [32]waiting
	waits   int
	touched uint32 // so that what is touched is not left out

	doc    uint32
	field  uint32
	base   int // position of the value at hand
	length uint32
}

type docLength struct{ doc, words uint32 }

type columnEntry struct{ field, doc, head uint32 } // of the key's entry

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
	x.enter()
	p.pos += x.a.pos
	x.length += uint32(x.a.pos)
}

// word takes one of the value.
func (x *inverter) word(w *Word) bool {
	if x.noNumbers && w.Text[0] <= '9' && isNumber(w.Text) {
		return true
	}
	if x.waits == len(x.waiting) {
		x.enter()
	}
	a := &x.waiting[x.waits]
	x.waits++
	a.key, a.meta = prefix(w.Text), x.field<<fieldAt|uint32(len(w.Text))
	a.sum = hash(a.key, w.Text, a.meta)
	if len(w.Text) > 8 {
		copy(a.tail[:], w.Text[8:])
	}
	a.pos = none
	if !w.Whole && !x.noPositions {
		a.pos = uint32(x.base + w.Pos)
	}
	return true
}

// A waiting is a word of the document that is not yet entered. The memory that
// each needs is as a rule far from the processor; asking for that of many at
// once takes little more time than for that of one.
type waiting struct {
	key  uint64
	meta uint32
	sum  uint32
	pos  uint32 // none: without
	tail [MaxWord - 8]byte
}

// enter enters the words that wait.
func (x *inverter) enter() {
	h := &x.words
	list := x.waiting[:x.waits]
	x.waits = 0
	if len(h.table) > fewEntries {
		mask := uint32(len(h.table) - 1)
		touched := uint32(0)
		for i := range list {
			touched += h.table[list[i].sum&mask].at
		}
		for i := range list {
			if at := h.table[list[i].sum&mask].at; int(at) < len(h.mem) {
				touched += uint32(h.mem[at])
			}
		}
		x.touched = touched
	}
	for i := range list {
		a := &list[i]
		var tail []byte
		if n := int(a.meta & lenMask); n > 8 {
			tail = a.tail[:n-8]
		}
		e := h.seek(a.key, a.meta, a.sum, tail)
		if a.pos == none {
			h.count(e, x.doc)
		} else {
			h.occur(e, x.doc, a.pos)
		}
	}
}

// fewEntries is the size of a table up to which it is near the processor.
const fewEntries = 1 << 12

// keys notes the keys of a value, the first of an attribute in its column.
func (x *inverter) keys(field uint32, keyed, first bool, text string) {
	if first {
		x.mention(field, anyKey[:])
	}
	if !keyed {
		return
	}
	x.key = Keys(x.key, text, func(key []byte) bool {
		e := x.mention(field, key)
		if first {
			x.columns = append(x.columns, columnEntry{field, x.doc, e.head})
			first = false
		}
		return true
	})
}

func (x *inverter) mention(field uint32, key []byte) *entry {
	e := x.values.find(field, key)
	x.values.mention(e, x.doc)
	return e
}

var anyKey = [1]byte{keyAny}
