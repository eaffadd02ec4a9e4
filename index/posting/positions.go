package posting

import "encoding/binary"

// A where finds the positions of documents of the block at hand.
type where struct {
	open bool
	doc  int // of the block; what follows is about it
	skip int // gaps of documents before it

	first    vector
	firsts   [BlockSize]uint32
	asked    int  // times that first was read one by one
	unpacked bool // firsts is all of it

	gaps  []byte // vectors of gaps, from the first on
	next  []byte // those after the one at hand
	chunk int    // number of the one at hand, -1 before the first
	some  vector
	read  int  // of it, one by one
	full  bool // buf is all of it
	buf   [BlockSize]uint32
}

// few values are read one by one, more by unpacking their vector.
const few = 6

// Positions appends the positions of Doc, ascending, to dst.
func (r *Reader) Positions(dst []uint32) []uint32 {
	from := len(dst)
	dst = r.appendGaps(dst)
	for i := from + 1; i < len(dst); i++ {
		dst[i] += dst[i-1]
	}
	return dst
}

// appendGaps appends the gaps that were given to Add.
func (r *Reader) appendGaps(dst []uint32) []uint32 {
	if r.kind != Positions || r.i < 0 || r.n == 0 {
		return dst
	}
	if r.count < smallCount {
		return r.smallGaps(dst)
	}
	if !r.counted {
		r.readFreqs(r.n)
	}
	w := &r.where
	if r.n == 0 || !w.open && !r.openWhere() {
		return dst
	}
	for ; w.doc < r.i; w.doc++ {
		w.skip += int(r.freqs[w.doc&(BlockSize-1)]) - 1
	}
	n := int(r.freqs[r.i&(BlockSize-1)]) - 1
	dst = append(dst, w.firstOf(r.i))
	for at := w.skip; n > 0; {
		if at/BlockSize != w.chunk && !r.openChunk(at/BlockSize) {
			return dst
		}
		from := at % BlockSize
		k := min(n, w.some.n-from)
		if k <= 0 {
			r.damaged("block %d has no %d positions", r.block, at)
			return dst
		}
		dst = w.appendChunk(dst, from, from+k)
		n -= k
		at += k
	}
	return dst
}

// openWhere finds the positions of the block at hand.
func (r *Reader) openWhere() bool {
	w := &r.where
	b := r.pos
	if r.starts > 0 {
		var ok bool
		if b, ok = tail(r.pos, r.posBegins, r.posStarts, r.block); !ok {
			r.damaged("the positions of block %d are not there", r.block)
			return false
		}
	}
	n := w.first.open(b, r.n)
	if n == 0 {
		r.damaged("the positions of block %d are cut off", r.block)
		return false
	}
	w.open, w.doc, w.skip = true, 0, 0
	w.asked, w.unpacked = 0, false
	w.gaps, w.chunk = b[n:], -1
	w.next = w.gaps
	return true
}

func (w *where) firstOf(i int) uint32 {
	if !w.unpacked {
		if w.asked++; w.asked <= few {
			return w.first.at(i)
		}
		w.first.decode(&w.firsts)
		w.unpacked = true
	}
	return w.firsts[i&(BlockSize-1)]
}

// openChunk goes to a vector of gaps.
func (r *Reader) openChunk(chunk int) bool {
	w := &r.where
	if chunk < w.chunk {
		w.chunk, w.next = -1, w.gaps
	}
	for ; w.chunk < chunk; w.chunk++ {
		left := r.rest - (w.chunk+1)*BlockSize
		n := 0
		if left > 0 {
			n = w.some.open(w.next, min(left, BlockSize))
		}
		if n == 0 {
			r.damaged("the positions of block %d are cut off", r.block)
			return false
		}
		w.next = w.next[n:]
	}
	w.full, w.read = false, 0
	return true
}

// appendChunk appends the gaps from from to below to of the vector at hand.
func (w *where) appendChunk(dst []uint32, from, to int) []uint32 {
	if !w.full {
		if w.read += to - from; w.read <= few {
			for i := from; i < to; i++ {
				dst = append(dst, w.some.at(i))
			}
			return dst
		}
		w.some.decode(&w.buf)
		w.full = true
	}
	return append(dst, w.buf[from:to]...)
}

// smallGaps is appendGaps where nothing is packed.
func (r *Reader) smallGaps(dst []uint32) []uint32 {
	w := &r.where
	if !w.open {
		w.open, w.doc, w.next = true, 0, r.pos
	}
	for ; w.doc < r.i; w.doc++ {
		n := r.freqs[w.doc&(BlockSize-1)]
		for n > 0 && len(w.next) > 0 {
			if w.next[0] < 0x80 {
				n--
			}
			w.next = w.next[1:]
		}
	}
	b := w.next
	for range r.freqs[r.i&(BlockSize-1)] {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<32-1 {
			r.damaged("its positions are cut off")
			return dst
		}
		dst = append(dst, uint32(v))
		b = b[n:]
	}
	return dst
}
