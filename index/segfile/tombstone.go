package segfile

import (
	"encoding/binary"
	"math/bits"
)

// Tombstones are the documents of a segment that were deleted or replaced: a bit
// for each. They never change: who deletes makes others, of 12 KB for 100,000
// documents. Every document that is looked at is asked for here, so the set
// is plain rather than compressed. Nil is none.
type Tombstones struct {
	bits []uint64
	n    int
}

// Has tells whether a document is gone.
func (t *Tombstones) Has(doc uint32) bool { return t != nil && t.bits[doc/64]&(1<<(doc%64)) != 0 }

// Count is how many are gone.
func (t *Tombstones) Count() int {
	if t == nil {
		return 0
	}
	return t.n
}

// Bits gives a bit for each document, the first lowest; nil if none is gone. It
// is not to be written to.
func (t *Tombstones) Bits() []uint64 {
	if t == nil {
		return nil
	}
	return t.bits
}

// With gives t and those docs, of a segment of n, that are not among them yet,
// for each of which it calls fresh.
func (t *Tombstones) With(docs []uint32, n uint32, fresh func(doc uint32)) *Tombstones {
	if len(docs) == 0 {
		return t
	}
	u := &Tombstones{bits: make([]uint64, (uint64(n)+63)/64), n: t.Count()}
	copy(u.bits, t.Bits())
	for _, d := range docs {
		if !u.Has(d) {
			u.bits[d/64] |= 1 << (d % 64)
			u.n++
			if fresh != nil {
				fresh(d)
			}
		}
	}
	return u
}

// sparse tells whether gaps are kept of so many documents that are gone.
func sparse(gone, docs uint64) bool { return gone <= docs/8 }

// appendTo writes t, of a segment of docs, as a manifest has it.
func (t *Tombstones) appendTo(b []byte, docs uint64) []byte {
	dense := !sparse(uint64(t.Count()), docs)
	last := 0
	for i, w := range t.Bits() {
		if dense {
			b = binary.LittleEndian.AppendUint64(b, w)
			continue
		}
		for ; w != 0; w &= w - 1 {
			d := 64*i + bits.TrailingZeros64(w)
			b = binary.AppendUvarint(b, uint64(d-last))
			last = d
		}
	}
	return b
}

// readGone is the inverse, as a list; docs is what the manifest says.
func readGone(r *Reader, n, docs uint64) (list []uint32) {
	if sparse(n, docs) {
		last := uint64(0)
		for ; n > 0 && !r.Bad; n-- {
			last += r.Uvarint()
			r.Bad = r.Bad || last >= docs
			list = append(list, uint32(last))
		}
		return list
	}
	if docs > 8*uint64(len(r.B)) {
		r.Bad = true
		return nil
	}
	for i := range (docs + 63) / 64 {
		b := r.Bytes(8)
		if r.Bad {
			return nil
		}
		for w := binary.LittleEndian.Uint64(b); w != 0; w &= w - 1 {
			d := 64*i + uint64(bits.TrailingZeros64(w))
			r.Bad = r.Bad || d >= docs
			list = append(list, uint32(d))
		}
	}
	r.Bad = r.Bad || uint64(len(list)) != n
	return list
}
