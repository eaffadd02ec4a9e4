package block

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A layout says what the numbers in a segment's lists mean.
type layout struct {
	docs   uint32
	exact  uint32   // lists of more documents are of blocks; 0: none is
	blocks []uint32 // the first document of each, and docs; if exact > 0
	alone  set      // blocks that have been one document from the start
	starts []uint32 // the first stretch of each document, and how many there are; at Medium
}

// A list is the places of one term.
type list struct {
	count  uint32   // documents, or stretches at Medium; no fewer than there are
	blocks bool     // places are blocks, not documents or stretches
	places []uint32 // ascending
}

// blockOf gives the block that a document is in.
func (l *layout) blockOf(doc uint32) uint32 { return under(l.blocks, doc) }

// under gives the last i with starts[i] ≤ v.
func under(starts []uint32, v uint32) uint32 {
	i, found := slices.BinarySearch(starts, v)
	if !found {
		i--
	}
	// Several may begin there, all empty but the last.
	for found && i+1 < len(starts) && starts[i+1] == v {
		i++
	}
	return uint32(i)
}

// coarsen turns a list of too many documents to one of blocks.
func (l *layout) coarsen(li *list) {
	if l.exact == 0 || li.blocks || li.count <= l.exact {
		return
	}
	li.blocks = true
	n := 0
	b, end := uint32(0), uint32(0)
	for _, doc := range li.places {
		if doc >= end {
			b = l.blockOf(doc)
			end = l.blocks[b+1]
			li.places[n] = b
			n++
		}
	}
	li.places = li.places[:n]
}

// width is how many places there are for a term of so many documents.
func (l *layout) width(blocks bool) uint32 {
	switch {
	case blocks:
		return uint32(len(l.blocks) - 1)
	case l.starts != nil:
		return l.starts[l.docs]
	}
	return l.docs
}

// A listWriter writes lists one behind the other, in bits. Every chunkLists
// of them begin at a byte, and their lengths are written as varints; every
// groupChunks of those lengths have their own place and the lists' written
// (16 bytes), so list i is found by reading less than groupChunks lengths and
// chunkLists lists.
//
// A list is its count (gamma) and its places (numbers); a list of blocks has
// the number of blocks between.
type listWriter struct {
	bits    bitWriter
	at      uint64 // bytes taken from bits already
	n       int
	chunk   uint64 // where the chunk began
	lengths []byte
	groups  []byte
}

const (
	chunkLists  = 16
	groupChunks = 64
)

func (w *listWriter) add(l *layout, li *list) {
	if w.n%chunkLists == 0 {
		w.endChunk()
	}
	if w.n%(chunkLists*groupChunks) == 0 {
		w.groups = binary.LittleEndian.AppendUint64(w.groups, w.chunk)
		w.groups = binary.LittleEndian.AppendUint64(w.groups, uint64(len(w.lengths)))
	}
	w.n++
	w.bits.gamma(uint64(li.count))
	width := l.width(li.blocks)
	if li.blocks {
		w.bits.code(uint64(len(li.places)-1), uint64(width))
	}
	w.bits.numbers(li.places, 0, width-1)
}

func (w *listWriter) endChunk() {
	w.bits.align()
	at := w.at + uint64(len(w.bits.b))
	if w.n > 0 {
		w.lengths = binary.AppendUvarint(w.lengths, at-w.chunk)
	}
	w.chunk = at
}

// take gives the bytes that are complete; they are good until the next add.
func (w *listWriter) take() []byte {
	b := w.bits.b
	w.at += uint64(len(b))
	w.bits.b = b[:0]
	return b
}

// lists reads what a listWriter wrote. Of damaged bytes it makes lists of
// other places that there are, or none.
type lists struct {
	n       int
	data    []byte
	lengths []byte
	groups  []byte
}

func openLists(n int, data, lengths, groups []byte) (*lists, error) {
	if want := (n + chunkLists*groupChunks - 1) / (chunkLists * groupChunks) * 16; len(groups) != want {
		return nil, fmt.Errorf("%d bytes of groups of lists, want %d", len(groups), want)
	}
	return &lists{n, data, lengths, groups}, nil
}

// A listReader gives lists of one of lists, best in order.
type listReader struct {
	*lists
	l    *layout
	bits bitReader
	next int // list that bits stand at
}

func (s *lists) reader(l *layout) listReader { return listReader{lists: s, l: l, next: -1} }

// list gives list n. Its places are appended to li.places[:0].
func (r *listReader) list(n int, li *list) bool {
	if n < 0 || n >= r.n {
		return false
	}
	if r.next < 0 || n < r.next || n/chunkLists != r.next/chunkLists {
		if !r.seek(n) {
			return false
		}
	}
	for ; r.next <= n; r.next++ {
		if r.next%chunkLists == 0 {
			r.bits.at = (r.bits.at + 7) &^ 7
		}
		if !r.read(li) {
			r.next = -1
			return false
		}
	}
	return true
}

// seek goes to the first list of n's chunk.
func (r *listReader) seek(n int) bool {
	chunk := n / chunkLists
	group := r.groups[chunk/groupChunks*16:]
	at := binary.LittleEndian.Uint64(group)
	from := binary.LittleEndian.Uint64(group[8:])
	if from > uint64(len(r.lengths)) {
		return false
	}
	lengths := r.lengths[from:]
	for range chunk % groupChunks {
		v, k := binary.Uvarint(lengths)
		if k <= 0 || v > uint64(len(r.data)) {
			return false
		}
		at += v
		lengths = lengths[k:]
	}
	if at > uint64(len(r.data)) {
		return false
	}
	r.bits = bitReader{b: r.data, at: 8 * at}
	r.next = chunk * chunkLists
	return true
}

// read reads the list that bits stand at.
func (r *listReader) read(li *list) bool {
	count := r.bits.gamma()
	if count == 0 || count > uint64(^uint32(0)) {
		return false
	}
	li.count = uint32(count)
	li.blocks = r.l.exact > 0 && li.count > r.l.exact
	width := uint64(r.l.width(li.blocks))
	if li.blocks {
		if width == 0 {
			return false
		}
		count = r.bits.code(width) + 1
	}
	if count > width || r.bits.over() {
		return false
	}
	li.places = slices.Grow(li.places[:0], int(count))[:count]
	r.bits.numbers(li.places, 0, uint32(width-1))
	return !r.bits.over()
}
