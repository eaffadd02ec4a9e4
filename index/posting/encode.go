package posting

import (
	"encoding/binary"
	"fmt"
)

// An Encoder makes lists, one after the other; reader.go says how they look.
// The zero value must be Reset. It holds the first run of a list in memory
// until Finish, and of the second what was not taken yet.
type Encoder struct {
	kind  Kind
	norms []byte
	count int
	next  uint32 // the least document that may be added
	out   []byte // what Finish gave

	// The documents of the block that is being filled.
	n     int
	docs  [BlockSize]uint32
	freqs [BlockSize]uint32
	first [BlockSize]uint32 // position in each
	rest  []uint32          // gaps to the further ones
	front front

	// The blocks before it.
	blocks []block
	body   []byte
	pos    []byte // second run
	taken  uint64 // bytes of it that are not in pos any more
	drop   int    // bytes of pos that TakePositions gave
	gaps   []uint32
}

// A block is a line of a list's table.
type block struct {
	last    uint32
	at      int    // in body
	pos     uint64 // in the second run
	impacts pairs
	points  int // different impacts
}

// Reset begins a list. norms[d] is the norm of document d, for the impacts; it
// is only read. Without norms all are taken to be 0.
func (e *Encoder) Reset(k Kind, norms []byte) {
	e.kind, e.norms, e.count, e.next = k, norms, 0, 0
	e.n, e.rest, e.front = 0, e.rest[:0], e.front[:0]
	e.blocks, e.body, e.pos = e.blocks[:0], e.body[:0], e.pos[:0]
	e.taken, e.drop = 0, 0
}

// Add adds a document, whose number is above that of the one before, with its
// positions: the first, then of each how far it is from the one before. There
// is at least one. The slice is not kept.
func (e *Encoder) Add(doc uint32, gaps []uint32) {
	i := e.n
	e.first[i] = gaps[0]
	e.rest = append(e.rest, gaps[1:]...)
	e.AddFreq(doc, uint32(len(gaps)))
}

// AddFreq adds a document to a list without positions; freq is at least 1.
func (e *Encoder) AddFreq(doc, freq uint32) {
	if doc < e.next || doc == End || freq == 0 {
		panic(fmt.Sprintf("posting: document %d, frequency %d, after %d documents below %d", doc, freq, e.count, e.next))
	}
	e.next = doc + 1
	e.docs[e.n], e.freqs[e.n] = doc, freq
	e.count++
	if e.n++; e.n == BlockSize {
		e.flush()
	}
}

// Count is the number of documents added since Reset.
func (e *Encoder) Count() int { return e.count }

// TakePositions gives the positions coded since it was last called, which are
// the next bytes of the second run. They are valid until the next call to e.
// Who cannot hold those of a long list calls it now and then.
func (e *Encoder) TakePositions() []byte {
	e.dropTaken()
	e.drop = len(e.pos)
	return e.pos
}

func (e *Encoder) dropTaken() {
	if e.drop > 0 {
		e.taken += uint64(e.drop)
		e.pos = e.pos[:copy(e.pos, e.pos[e.drop:])]
		e.drop = 0
	}
}

// flush makes a block of the documents that wait for one.
func (e *Encoder) flush() {
	e.dropTaken()
	b := block{last: e.next - 1, at: len(e.body), pos: e.taken + uint64(len(e.pos))}
	if e.kind != Docs {
		b.impacts, b.points = e.impacts()
	}
	e.blocks = append(e.blocks, b)
	e.body = e.appendBlock(append(e.body, byte(e.n-1)))
	if e.kind == Positions {
		e.pos = e.appendPositions(e.pos)
	}
	e.n, e.rest = 0, e.rest[:0]
}

// impacts are those of the documents that wait.
func (e *Encoder) impacts() (pairs, int) {
	f := e.front[:0]
	if e.norms == nil {
		var most uint32
		for _, q := range e.freqs[:e.n] {
			most = max(most, q)
		}
		f = f.add(Impact{Freq: most})
	} else {
		for i, d := range e.docs[:e.n] {
			f = f.add(Impact{e.freqs[i], e.norms[d]})
		}
	}
	e.front = f.reduce(maxImpacts)
	return e.front.pairs()
}

// appendBlock appends the documents that wait, as a block.
func (e *Encoder) appendBlock(b []byte) []byte {
	var v [BlockSize]uint32
	for i := 1; i < e.n; i++ {
		v[i-1] = e.docs[i] - e.docs[i-1] - 1
	}
	if n := gapsOf(e.n); n > 0 {
		b = appendVector(b, v[:n])
	}
	if e.kind == Docs {
		return b
	}
	for i, q := range e.freqs[:e.n] {
		v[i] = q - 1
	}
	return appendVector(b, v[:e.n])
}

// gapsOf is the number of gaps kept of a block of n documents: there is one
// fewer, but a full block is best unpacked as one.
func gapsOf(n int) int {
	if n == BlockSize {
		return n
	}
	return n - 1
}

// appendPositions appends the positions of the documents that wait.
func (e *Encoder) appendPositions(b []byte) []byte {
	b = appendVector(b, e.first[:e.n])
	for rest := e.rest; len(rest) > 0; {
		n := min(len(rest), BlockSize)
		b = appendVector(b, rest[:n])
		rest = rest[n:]
	}
	return b
}

// Finish ends the list and gives the first run, valid until the next Reset.
// TakePositions has the rest of the second then.
func (e *Encoder) Finish() (docs []byte) {
	e.out = e.out[:0]
	switch {
	case e.count < smallCount:
		e.finishSmall()
	case e.count == e.n: // one short block
		e.out = binary.AppendUvarint(e.out, uint64(e.next-1)<<1)
		e.dropTaken()
		e.out = e.appendBlock(e.out)
		if e.kind == Positions {
			e.pos = e.appendPositions(e.pos)
		}
	case len(e.blocks) == 1 && e.n == 0:
		e.out = binary.AppendUvarint(e.out, uint64(e.next-1)<<1)
		e.out = append(e.out, e.body[1:]...)
	default:
		if e.n > 0 {
			e.flush()
		}
		e.finishTable()
		e.out = append(e.out, e.body...)
	}
	return e.out
}

func (e *Encoder) finishSmall() {
	if len(e.blocks) > 0 {
		panic("posting: a block of a small list")
	}
	next, rest := uint32(0), e.rest
	for i, d := range e.docs[:e.n] {
		e.out = appendSmall(e.out, e.kind, d-next, e.freqs[i])
		next = d + 1
		if e.kind == Positions {
			e.pos = binary.AppendUvarint(e.pos, uint64(e.first[i]))
			for _, g := range rest[:e.freqs[i]-1] {
				e.pos = binary.AppendUvarint(e.pos, uint64(g))
			}
			rest = rest[e.freqs[i]-1:]
		}
	}
}

// finishTable appends what comes before the blocks of a long list.
func (e *Encoder) finishTable() {
	t := table{blocks: len(e.blocks), starts: byteWidth(uint64(len(e.body)))}
	if e.kind == Positions {
		t.posStarts = byteWidth(e.blocks[len(e.blocks)-1].pos)
	}
	for i := range e.blocks {
		t.points = max(t.points, e.blocks[i].points)
	}
	le := binary.LittleEndian
	e.out = binary.AppendUvarint(e.out, uint64(t.blocks)<<1|1)
	e.out = append(e.out, byte(t.starts|t.posStarts<<3), byte(t.points))
	for i := range e.blocks {
		e.out = le.AppendUint32(e.out, e.blocks[i].last)
	}
	for i := range e.blocks {
		e.out = appendWide(e.out, uint64(e.blocks[i].at), t.starts)
	}
	for i := range e.blocks {
		e.out = appendWide(e.out, e.blocks[i].pos, t.posStarts)
	}
	for i := range e.blocks {
		e.out = append(e.out, e.blocks[i].impacts[:2*t.points]...)
	}
	for from := 0; from < len(e.blocks); from += wideBlocks {
		e.out = append(e.out, e.wide(e.blocks[from:min(from+wideBlocks, len(e.blocks))], t.points)...)
	}
}

// wide joins the impacts of blocks.
func (e *Encoder) wide(blocks []block, points int) []byte {
	if points == 0 {
		return nil
	}
	f := e.front[:0]
	for i := range blocks {
		for b := blocks[i].impacts[:]; len(b) > 0; b = b[2:] {
			f = f.add(Impact{codeFreq(b[0]), b[1]})
		}
	}
	e.front = f.reduce(points)
	p, _ := e.front.pairs()
	return p[:2*points]
}

// byteWidth is the number of bytes that v needs, at least 1.
func byteWidth(v uint64) (n int) {
	for n = 1; v >= 256; n++ {
		v >>= 8
	}
	return n
}

func appendWide(b []byte, v uint64, width int) []byte {
	for range width {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}
