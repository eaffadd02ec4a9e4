package posting

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The first run of a list, of documents and frequencies. A gap is how far a
// document is from the one before, less 1; the first counts from -1. Numbers
// are unsigned varints where nothing else is said, else little endian; vector.go
// tells what a vector is.
//
// Up to 7 documents, for each:
//
//	gap * 2, and 1 more if it has the term once; else how often it has it
//	(a list of kind Docs: gap)
//
// More, in one block:
//
//	last document * 2
//	block     a vector of the gaps but the first; a vector of frequencies less 1
//	          (not for Docs)
//
// More, in several blocks:
//
//	number of blocks * 2 + 1
//	1 byte    bytes of a start; 8 times the bytes of a start of positions
//	1 byte    impacts of a block
//	lasts     the last document of each block, 4 bytes
//	starts    where each block begins, from the first on
//	          where the positions of each begin, from the second run's begin on
//	impacts   of each block: for each, a byte for the frequency, the norm
//	          of 32 blocks each: the same
//	blocks    1 byte, the number of documents less 1, then as above
//
// A block is full, 128 documents, but for the last and where a merge ended a
// list. In a full one the vector of gaps has 128 numbers, of which the last
// means nothing. Documents are found backwards from the last one, so a block is
// the same bytes wherever it stands; a merge copies it and adds to its last.
//
// The second run has the positions, gaps within a document, the first from 0:
//
//	up to 7 documents: of each its gaps
//	else for each block: a vector of the first position in each document;
//	vectors of 128 of all further gaps, document by document
//
// A word in three documents, 4, 9 and 200, at 20, at 3 and 17, and at 21, is
//
//	09 08 02 fd 02    14 03 0e 15
//
// Of 24,376 manuals, 212 MB, the 296,602 words have 6.8 M documents and 29.8 M
// positions: those of one document, in the dictionary, are 0.5 % of the text;
// of the others the first run is 3.5 % (9.0 bits a document) and the second
// 17.3 % (10.0 bits a position). CORPUS=DIR go test -bench Benchmark/Encode.
const (
	smallCount = 8
	wideBlocks = 32
)

// A table is what is known of the blocks of a list before they are read.
type table struct {
	blocks    int
	starts    int // bytes of each
	posStarts int
	points    int // impacts

	lasts, begins, posBegins, impacts, wides []byte
}

// A Reader goes through a list. The zero value must be Reset. Nothing here
// allocates but Positions, which grows dst, and MaxImpacts, once. It is 3 KB
// and must not be copied in use.
type Reader struct {
	kind  Kind
	count int
	limit uint32
	err   error

	run []byte // documents, from the first block on
	pos []byte // positions
	table
	only uint32 // last document of a list of one block that has no table

	// The block at hand, if n > 0. Before its first document i is -1; at the
	// end of the list docs[i] is End.
	block int // its number; -1 at first, blocks at the end
	floor uint32
	last  uint32
	i, n  int
	docs  [BlockSize]uint32

	counted bool // freqs are read, and rest
	coded   []byte
	freqs   [BlockSize]uint32
	rest    int // positions of the block but the first in each document
	where   where

	peeked  int // the block found last for Shallow
	shallow peek
	most    front
}

// A peek is what Shallow said last.
type peek struct {
	at      int // block or stretch; -1 if it said nothing
	n       int
	impacts [maxImpacts]Impact
}

// Reset begins a list of count documents, all of them below limit. The Reader
// reads the bytes in place, never past their ends.
func (r *Reader) Reset(k Kind, docs, positions []byte, count int, limit uint32) {
	r.kind, r.count, r.limit, r.err = k, count, limit, nil
	r.run, r.pos = docs, positions
	r.block, r.floor, r.last, r.i, r.n = -1, 0, 0, -1, 0
	r.shallow.at, r.most = -1, r.most[:0]
	r.peeked, r.starts, r.blocks = 0, 0, 1
	if count >= smallCount {
		r.open()
	} else if count <= 0 {
		r.blocks = 0
	}
}

// ResetOne begins the list that AppendOne put at the beginning of b, and gives
// its length there.
func (r *Reader) ResetOne(k Kind, b []byte, limit uint32) (n int) {
	n = LenOne(k, b)
	r.Reset(k, b[:n], nil, 1, limit)
	if r.load(0) {
		r.pos = r.coded
	}
	return n
}

// open reads what comes before the blocks.
func (r *Reader) open() {
	v, n := binary.Uvarint(r.run)
	if n <= 0 || v>>1 > uint64(End) {
		r.damaged("it begins wrong")
		return
	}
	r.run = r.run[n:]
	if v&1 == 0 {
		r.only = uint32(v >> 1)
		return
	}
	if v>>1 > uint64(len(r.run)) || len(r.run) < 2 {
		r.damaged("it has %d bytes for %d blocks", len(r.run), v>>1)
		return
	}
	t := &r.table
	t.blocks, t.starts, t.posStarts, t.points = int(v>>1), int(r.run[0]&7), int(r.run[0]>>3), int(r.run[1])
	stretches := (t.blocks + wideBlocks - 1) / wideBlocks
	if t.starts == 0 || t.posStarts > 7 || t.points > maxImpacts ||
		(r.kind == Positions) != (t.posStarts > 0) || (r.kind == Docs) != (t.points == 0) ||
		t.blocks*(4+t.starts+t.posStarts+2*t.points)+stretches*2*t.points > len(r.run)-2 {
		r.damaged("its table is wrong")
		return
	}
	b := r.run[2:]
	cut := func(n int) (head []byte) { head, b = b[:n], b[n:]; return head }
	t.lasts = cut(4 * t.blocks)
	t.begins = cut(t.starts * t.blocks)
	t.posBegins = cut(t.posStarts * t.blocks)
	t.impacts = cut(2 * t.points * t.blocks)
	t.wides = cut(2 * t.points * stretches)
	r.run = b
}

// damaged ends the list with an error.
func (r *Reader) damaged(format string, arg ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, arg...))
	}
	r.blocks, r.starts = 0, 0
	r.end()
}

func (r *Reader) end() uint32 {
	r.block, r.i, r.n = r.blocks, 0, 0
	r.docs[0] = End
	return End
}

// Err tells why the list ended early, wrapping ErrDamaged.
func (r *Reader) Err() error { return r.err }

// Count is the number of documents of the list.
func (r *Reader) Count() int { return r.count }

// Doc is what the last Next, NextBlock or Advance gave; before those it says nothing.
func (r *Reader) Doc() uint32 { return r.docs[r.i&(BlockSize-1)] }

// Next goes to the next document and gives its number; at first to the first.
func (r *Reader) Next() uint32 {
	if r.i++; r.i < r.n {
		return r.docs[r.i&(BlockSize-1)]
	}
	return r.NextBlock()
}

// NextBlock goes to the first document of the next block, at first to that of
// the first.
func (r *Reader) NextBlock() uint32 {
	if r.i >= 0 || r.n == 0 { // else it is loaded and nobody has seen it
		if r.block+1 >= r.blocks {
			return r.end()
		}
		if !r.load(r.block + 1) {
			return End
		}
	}
	r.i = 0
	return r.docs[0]
}

// Advance goes to the first document that is not below target and not before
// the one at hand, and gives its number. It may stay where it is.
func (r *Reader) Advance(target uint32) uint32 {
	if d := r.Doc(); d >= target && r.i >= 0 {
		return d
	}
	if r.n == 0 || target > r.last {
		j := r.block + 1
		if r.starts > 0 {
			j = r.find(j, target)
		}
		if j >= r.blocks {
			return r.end()
		}
		if !r.load(j) {
			return End
		}
		if target > r.last {
			return r.end()
		}
	}
	return r.seek(target)
}

// seek is Advance in the block at hand, which has what is looked for. Mostly
// it is near; if not, halving without a branch beats a wrong guess.
func (r *Reader) seek(target uint32) uint32 {
	i := r.i + 1
	for near := min(i+4, r.n); i < near; i++ {
		if d := r.docs[i&(BlockSize-1)]; d >= target {
			r.i = i
			return d
		}
	}
	for n := r.n - i; n > 1; {
		half := n >> 1
		d := r.docs[(i+half-1)&(BlockSize-1)]
		i += half & -int((uint64(d)-uint64(target))>>63) // if d < target
		n -= half
	}
	r.i = i
	return r.docs[i&(BlockSize-1)]
}

func (t *table) lastOf(block int) uint32 { return binary.LittleEndian.Uint32(t.lasts[4*block:]) }

// find gives the first block from j on that does not end below target.
func (t *table) find(j int, target uint32) int {
	if j >= t.blocks || t.lastOf(j) >= target {
		return j
	}
	low, step := j, 1 // low is too early
	for low+step < t.blocks && t.lastOf(low+step) < target {
		low += step
		step *= 2
	}
	high := min(low+step, t.blocks)
	for low+1 < high {
		mid := int(uint(low+high) / 2)
		if t.lastOf(mid) < target {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// start reads the number of a block in a column of starts.
func start(column []byte, width, block int) (v uint64) {
	for i := width*(block+1) - 1; i >= width*block; i-- {
		v = v<<8 | uint64(column[i])
	}
	return v
}

// tail is a run from a block's part on, at least a byte.
func tail(run, column []byte, width, block int) ([]byte, bool) {
	from := start(column, width, block)
	if from >= uint64(len(run)) {
		return nil, false
	}
	return run[from:], true
}

// span is a block's part of a run.
func span(run, column []byte, width, block, blocks int) ([]byte, bool) {
	from, to := start(column, width, block), uint64(len(run))
	if block+1 < blocks {
		to = start(column, width, block+1)
	}
	if from > to || to > uint64(len(run)) {
		return nil, false
	}
	return run[from:to:to], true
}

// load makes block j the one at hand, before its first document.
func (r *Reader) load(j int) bool {
	if r.n > 0 {
		r.floor = r.last + 1
	}
	b, n := r.run, r.count
	last := r.only
	switch {
	case r.starts > 0:
		var ok bool
		if b, ok = tail(r.run, r.begins, r.starts, j); !ok {
			r.damaged("block %d is not there", j)
			return false
		}
		n, b, last = int(b[0])+1, b[1:], r.lastOf(j)
	case r.count < smallCount:
		return r.loadSmall()
	}
	r.block, r.i, r.n, r.last = j, -1, n, last
	r.counted, r.where.open = false, false
	return r.loadDocs(b)
}

// loadDocs reads the documents of the block at hand.
func (r *Reader) loadDocs(b []byte) bool {
	n := r.n
	if n > BlockSize || r.last >= r.limit || uint64(r.last) < uint64(r.floor)+uint64(n)-1 {
		r.damaged("block %d of %d documents up to %d of %d", r.block, n, r.last, r.limit)
		return false
	}
	var v vector
	if m := gapsOf(n); m > 0 {
		k := v.open(b, m)
		if k == 0 {
			r.damaged("block %d is cut off", r.block)
			return false
		}
		v.decode(&r.docs)
		b = b[k:]
	}
	r.coded = b
	s := r.last
	switch d := r.docs[:n]; {
	case v.w+v.over > 24: // the gaps could come round
		var ok bool
		if s, ok = sumSlowly(d, s); !ok {
			r.damaged("block %d has a gap beyond 0", r.block)
			return false
		}
	case n == BlockSize:
		r.docs[n-1] = 0
		s = sumBlock(&r.docs, s)
	default:
		d[n-1] = s
		for i := n - 2; i >= 0; i-- {
			s -= d[i] + 1
			d[i] = s
		}
	}
	if s < r.floor || s > r.last {
		r.damaged("block %d begins with %d, after %d", r.block, s, r.floor)
		return false
	}
	return true
}

// sumBlock makes documents of the gaps of a full block that ends with last, and
// gives the first. It is written out: with a loop of eight inside, a block takes
// 1.12 times as long.
func sumBlock(d *[BlockSize]uint32, last uint32) uint32 {
	s := last + 1
	for i := BlockSize - 8; i >= 0; i -= 8 {
		q := (*[8]uint32)(d[i:])
		s -= q[7] + 1
		q[7] = s
		s -= q[6] + 1
		q[6] = s
		s -= q[5] + 1
		q[5] = s
		s -= q[4] + 1
		q[4] = s
		s -= q[3] + 1
		q[3] = s
		s -= q[2] + 1
		q[2] = s
		s -= q[1] + 1
		q[1] = s
		s -= q[0] + 1
		q[0] = s
	}
	return s
}

// sumSlowly is sumBlock of any gaps, and of any number of them.
func sumSlowly(d []uint32, last uint32) (uint32, bool) {
	s := last
	d[len(d)-1] = s
	for i := len(d) - 2; i >= 0; i-- {
		if d[i] >= s {
			return 0, false
		}
		s -= d[i] + 1
		d[i] = s
	}
	return s, true
}

// loadSmall reads a list of fewer documents than are packed.
func (r *Reader) loadSmall() bool {
	b := r.run
	next, total := uint64(0), 0
	for i := range r.count {
		gap, k := binary.Uvarint(b)
		if k <= 0 {
			r.damaged("it is cut off")
			return false
		}
		b = b[k:]
		freq := uint64(1)
		if r.kind != Docs {
			once := gap&1 == 1
			gap >>= 1
			if !once {
				if freq, k = binary.Uvarint(b); k <= 0 || freq == 0 || freq > uint64(End) {
					r.damaged("it is cut off")
					return false
				}
				b = b[k:]
			}
		}
		if gap >= uint64(r.limit) || next+gap >= uint64(r.limit) {
			r.damaged("a gap of %d after %d, of %d documents", gap, next, r.limit)
			return false
		}
		r.docs[i], r.freqs[i] = uint32(next+gap), uint32(freq)
		next += gap + 1
		total += int(freq) - 1
	}
	r.block, r.i, r.n, r.last = 0, -1, r.count, uint32(next-1)
	r.counted, r.where.open, r.rest, r.coded = true, false, total, b
	return true
}

// Freq is how often Doc has the term, 1 in a list of kind Docs.
func (r *Reader) Freq() uint32 {
	if !r.counted {
		r.readFreqs(r.n)
	}
	return r.freqs[r.i&(BlockSize-1)]
}

// readFreqs reads the frequencies of the block at hand, which has n.
func (r *Reader) readFreqs(n int) {
	r.counted = true
	f := r.freqs[:n]
	var v vector
	ones := r.kind == Docs || n == 0
	if !ones {
		if v.open(r.coded, n) == 0 {
			for i := range f {
				f[i] = 1
			}
			r.damaged("the frequencies of block %d are cut off", r.block)
			return
		}
		ones = v.w == 0 && len(v.exc) == 0
	}
	r.rest = 0
	if ones {
		for i := range f {
			f[i] = 1
		}
		return
	}
	v.decode(&r.freqs)
	total := 0
	for i, x := range f {
		total += int(x)
		f[i] = x + 1
	}
	r.rest = total
	if v.w+v.over == 32 && slices.Contains(f, 0) {
		r.damaged("a frequency of block %d is 0", r.block)
	}
}

// Block is the rest of the block at hand, from Doc on, with its frequencies.
// Both are valid until the Reader moves and not to be written to.
func (r *Reader) Block() (docs, freqs []uint32) {
	if r.i < 0 {
		return nil, nil
	}
	if !r.counted {
		r.readFreqs(r.n)
	}
	return r.docs[r.i:r.n], r.freqs[r.i:r.n]
}

// Shallow tells about the block that Advance(target) would look into, without
// going there: its last document and its impacts, valid until the next call.
// After the last block it gives End and none. target is not below Doc.
func (r *Reader) Shallow(target uint32) (last uint32, impacts []Impact) {
	if r.starts == 0 {
		return r.shallowOne(target)
	}
	j := r.peekAt(target)
	if j >= r.blocks {
		return End, nil
	}
	return r.lastOf(j), r.shallow.tell(r.kind, r.impacts[2*r.points*j:][:2*r.points], j)
}

// peekAt finds the block of target, mostly that of the last time or the next.
func (r *Reader) peekAt(target uint32) int {
	j := max(r.peeked, r.block, 0)
	if j > 0 && (j >= r.blocks || r.lastOf(j-1) >= target) {
		j = max(r.block, 0)
	}
	j = r.find(j, target)
	r.peeked = j
	return j
}

// tell gives the impacts that are coded in b.
func (p *peek) tell(k Kind, b []byte, at int) []Impact {
	if p.at != at {
		p.at = at
		p.n = len(readImpacts(p.impacts[:0], b))
		if k == Docs {
			p.impacts[0], p.n = Impact{Freq: 1}, 1
		}
	}
	return p.impacts[:p.n]
}

func (r *Reader) shallowOne(target uint32) (last uint32, impacts []Impact) {
	if r.blocks == 0 || r.block < 0 && !r.load(0) || target > r.last {
		return End, nil
	}
	return r.last, r.MaxImpacts()
}

// MaxImpacts are those of the whole list, valid until the next Reset. A list
// of one block has one, with the norm 0.
func (r *Reader) MaxImpacts() []Impact {
	if len(r.most) > 0 {
		return r.most
	}
	switch {
	case r.kind == Docs:
		r.most = append(r.most, Impact{Freq: 1})
	case r.starts > 0:
		for b := r.wides; len(b) > 0; b = b[2:] {
			r.most = r.most.add(Impact{codeFreq(b[0]), b[1]})
		}
	case r.blocks > 0 && (r.block >= 0 || r.load(0)):
		if !r.counted {
			r.readFreqs(r.count) // n is 0 at the end
		}
		var most uint32
		for _, q := range r.freqs[:min(r.count, BlockSize)] {
			most = max(most, q)
		}
		r.most = append(r.most, Impact{Freq: most})
	}
	return r.most
}
