package dict

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"
)

// Limits of a Builder. They are far above what an index needs, and keep a
// reader's memory small whatever the bytes say.
const (
	MaxTerm  = 4095
	MaxValue = 65535
)

const (
	blockTerms = 32
	chunkTerms = 1 << 19
	chunkBytes = 8 << 20  // of terms without what they share, values and 6 bytes each
	sampleSize = 64 << 10 // bytes of terms from which symbols are learned; of less than four times that, none are
)

// A Builder writes a dictionary.
type Builder struct {
	w      io.Writer
	size   int64
	n      int
	last   []byte
	rec    []byte // the chunk's terms: see record
	terms  int    // in rec
	length int    // of those terms, and one more for each
	dir    []byte // an entry for each chunk written
	err    error
}

// NewBuilder starts a dictionary that is written to w, from its first byte to
// its last. It keeps some 20 megabytes at most, however many terms come.
func NewBuilder(w io.Writer) *Builder { return &Builder{w: w} }

// Len is the number of terms added so far: the next one's ordinal.
func (b *Builder) Len() int { return b.n }

// Add appends a term, which must be greater than the one before it. Neither
// slice is kept.
func (b *Builder) Add(term, value []byte) error {
	switch {
	case b.err != nil:
		return b.err
	case len(term) > MaxTerm || len(value) > MaxValue:
		return fmt.Errorf("term of %d bytes with a value of %d: too long", len(term), len(value))
	case b.n > 0 && bytes.Compare(term, b.last) <= 0:
		return fmt.Errorf("term %q: not after %q", term, b.last)
	}
	k := 0
	if b.terms%blockTerms != 0 {
		k = common(term, b.last)
	}
	b.last = append(b.last[:0], term...)
	b.rec = appendRecord(b.rec, k, term[k:], value)
	b.length += len(term)
	b.n++
	if b.terms++; b.terms == chunkTerms || b.terms%blockTerms == 0 && len(b.rec) >= chunkBytes {
		b.err = b.flush()
	}
	return b.err
}

func common(a, b []byte) (k int) {
	n := min(len(a), len(b))
	for ; k+8 <= n; k += 8 {
		if x := binary.LittleEndian.Uint64(a[k:]) ^ binary.LittleEndian.Uint64(b[k:]); x != 0 {
			return k + bits.TrailingZeros64(x)/8
		}
	}
	for k < n && a[k] == b[k] {
		k++
	}
	return k
}

// Finish writes what is left and says how many bytes the dictionary has.
func (b *Builder) Finish() (int64, error) {
	if b.err == nil && b.terms > 0 {
		b.err = b.flush()
	}
	if b.err != nil {
		return b.size, b.err
	}
	var t [trailerSize]byte
	binary.LittleEndian.PutUint64(t[0:], uint64(b.n))
	binary.LittleEndian.PutUint32(t[8:], uint32(len(b.dir)/entrySize))
	copy(t[12:], magic)
	b.err = b.write(append(b.dir, t[:]...))
	return b.size, b.err
}

func (b *Builder) write(p []byte) error {
	n, err := b.w.Write(p)
	b.size += int64(n)
	return err
}

// flush writes the chunk in b.rec.
func (b *Builder) flush() error {
	b.rec = append(b.rec, 0, 0, 0, 0, 0, 0, 0, 0) // so that 8 bytes can be read at each
	w := &writer{rec: records{b.rec, b.terms}}
	w.spell()
	head := w.choose()
	w.encode()
	e := binary.LittleEndian.AppendUint64(nil, uint64(b.size))
	e = binary.LittleEndian.AppendUint32(e, uint32(b.terms))
	e = binary.LittleEndian.AppendUint32(e, uint32(len(w.out)))
	e = binary.LittleEndian.AppendUint32(e, uint32(len(head)))
	b.dir = binary.LittleEndian.AppendUint32(append(b.dir, e...), uint32(b.length))
	b.rec, b.terms, b.length = b.rec[:0], 0, 0
	for _, p := range [][]byte{w.out, w.prefixes, w.offsets, head} {
		if err := b.write(p); err != nil {
			return err
		}
	}
	return nil
}

// records are terms as a Builder keeps them: how much is shared with the one
// before, the lengths of suffix and value, suffix, value.
type records struct {
	bytes []byte
	n     int
}

type record struct {
	shared        int
	suffix, value []byte
}

func appendRecord(b []byte, shared int, suffix, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(shared))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(suffix)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return append(append(b, suffix...), value...)
}

// each gives the records in order. There are 8 bytes or more behind a suffix.
func (r records) each(yield func(i int, r record) bool) {
	b := r.bytes
	for i := range r.n {
		n := 6 + int(binary.LittleEndian.Uint16(b[2:]))
		v := n + int(binary.LittleEndian.Uint16(b[4:]))
		if !yield(i, record{int(binary.LittleEndian.Uint16(b)), b[6:n], b[n:v]}) {
			return
		}
		b = b[v:]
	}
}

// A writer encodes a chunk.
type writer struct {
	rec     records
	symbols []symbol
	spelled []uint16 // all suffixes, as symbols
	seen    []uint32 // of each symbol

	words  []code // of each symbol
	shares [shareContexts][256]code
	values [256]code

	out               []byte // blocks
	prefixes, offsets []byte
	acc               uint64 // bits not yet in out
	n                 uint
}

// spell finds the symbols of the chunk and spells all suffixes with them.
func (w *writer) spell() {
	var used [256]bool
	size := 0
	for _, r := range w.rec.each {
		size += len(r.suffix)
		for _, c := range r.suffix {
			used[c] = true
		}
	}
	letters := []symbol{{end: true}}
	for c, u := range used {
		if u {
			letters = append(letters, symbol{uint64(c), 1, false})
		}
	}
	w.symbols = letters
	if step := size / sampleSize; step >= 4 {
		var sample [][]byte
		for i, r := range w.rec.each {
			if i%step == 0 {
				sample = append(sample, r.suffix[:len(r.suffix)+8])
			}
		}
		w.symbols = learn(sample, letters, symbolCost/float64(step))
	}
	s := newSpeller(w.symbols)
	w.seen = make([]uint32, len(w.symbols))
	for _, r := range w.rec.each {
		s.spell(r.suffix[:len(r.suffix)+8], len(r.suffix), func(y int) {
			w.spelled = append(w.spelled, uint16(y))
			w.seen[y]++
		})
	}
	w.sort()
}

// sort puts the symbols into the order they are written in, and leaves out
// those of no use.
func (w *writer) sort() {
	order := make([]int, 0, len(w.symbols))
	for i, n := range w.seen {
		if n > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return w.symbols[a].compare(w.symbols[b]) })
	number := make([]uint16, len(w.symbols))
	symbols, seen := make([]symbol, len(order)), make([]uint32, len(order))
	for i, o := range order {
		number[o], symbols[i], seen[i] = uint16(i), w.symbols[o], w.seen[o]
	}
	w.symbols, w.seen = symbols, seen
	for i, y := range w.spelled {
		w.spelled[i] = number[y]
	}
}

// choose makes the codes, and gives them as they are written.
func (w *writer) choose() []byte {
	var shares [shareContexts][256]uint32
	var values [valueSymbols]uint32
	last := 0
	for i, r := range w.rec.each {
		if i%blockTerms != 0 {
			shares[min(last, shareContexts-1)][min(r.shared, shareEscape)]++
		}
		last = r.shared
		values[min(len(r.value), valueEscape)]++
	}
	head := packSymbols(nil, w.symbols)
	w.words = make([]code, len(w.symbols))
	head = choose(head, w.seen, maxBits, w.words)
	head = choose(head, values[:], 8, w.values[:])
	for i := range shares {
		head = choose(head, shares[i][:], 8, w.shares[i][:])
	}
	return head
}

// choose makes a code for what was seen and appends its lengths to head.
func choose(head []byte, seen []uint32, limit int, words []code) []byte {
	l := lengths(seen, limit)
	assign(l, func(i int, c code) { words[i] = c })
	return pack(head, l)
}

// encode writes the blocks: the bits of the terms, to a full byte, then the
// values from the last to the first.
func (w *writer) encode() {
	var values [][]byte
	last := 0
	spelled := w.spelled
	for i, r := range w.rec.each {
		if i%blockTerms == 0 {
			w.end(values)
			values = values[:0]
			w.prefixes = binary.LittleEndian.AppendUint64(w.prefixes, key(r.suffix))
			w.offsets = binary.LittleEndian.AppendUint32(w.offsets, uint32(len(w.out)))
		}
		v := min(len(r.value), valueEscape)
		w.put(w.values[v])
		if v == valueEscape {
			w.bits(uint64(len(r.value)), 16)
		}
		if i%blockTerms != 0 {
			k := min(r.shared, shareEscape)
			w.put(w.shares[min(last, shareContexts-1)][k])
			if k == shareEscape {
				w.bits(uint64(r.shared), 12)
			}
		}
		for more := true; more; spelled = spelled[1:] {
			w.put(w.words[spelled[0]])
			more = !w.symbols[spelled[0]].end
		}
		last = r.shared
		values = append(values, r.value)
	}
	w.end(values)
}

// end finishes a block.
func (w *writer) end(values [][]byte) {
	if w.n > 0 {
		w.bits(0, 8-w.n)
	}
	for _, v := range slices.Backward(values) {
		w.out = append(w.out, v...)
	}
}

func (w *writer) put(c code) { w.bits(uint64(c.bits), uint(c.n)) }

func (w *writer) bits(v uint64, n uint) {
	w.acc |= v << w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
}

// key is the first 8 bytes of a term as a number that compares as they do.
func key(term []byte) uint64 {
	if len(term) >= 8 {
		return binary.BigEndian.Uint64(term)
	}
	var p [8]byte
	copy(p[:], term)
	return binary.BigEndian.Uint64(p[:])
}
