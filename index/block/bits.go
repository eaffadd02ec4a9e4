package block

import (
	"encoding/binary"
	"math/bits"
)

// Numbers are written bit by bit, the lowest first.
//
// A number below m, where m need not be a power of two, takes as many bits as
// the largest power of two in m has, or one more (code). A number from 1 on of
// n bits takes n-1 zeros, a one and its lower n-1 bits (gamma). Ascending
// numbers from lo to hi are the one in the middle, then those before and those
// behind it, each within what the others leave it (numbers): runs and
// clusters take next to nothing, and any bits at all read as ascending
// numbers from lo to hi.

type bitWriter struct {
	b   []byte
	acc uint64
	n   int // bits in acc, below 8 between calls
}

// put writes the lower n bits of v, n ≤ 56; the others are 0.
func (w *bitWriter) put(v uint64, n int) {
	w.acc |= v << w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.b = append(w.b, byte(w.acc))
		w.acc >>= 8
	}
}

// align fills the last byte.
func (w *bitWriter) align() {
	if w.n > 0 {
		w.b = append(w.b, byte(w.acc))
		w.acc, w.n = 0, 0
	}
}

func (w *bitWriter) code(v, m uint64) {
	k := bits.Len64(m) - 1
	short := uint64(2)<<k - m // so many codes have k bits
	if v < short {
		w.put(v, k)
		return
	}
	v += short
	w.put(v>>1, k)
	w.put(v&1, 1)
}

func (w *bitWriter) gamma(v uint64) {
	k := bits.Len64(v) - 1
	w.put(1<<k, k+1)
	w.put(v&^(1<<k), k)
}

func (w *bitWriter) numbers(a []uint32, lo, hi uint32) {
	for len(a) > 0 && uint64(hi)-uint64(lo)+1 > uint64(len(a)) {
		m := len(a) / 2
		low := lo + uint32(m)
		w.code(uint64(a[m]-low), uint64(hi)-uint64(len(a)-1-m)-uint64(low)+1)
		w.numbers(a[:m], lo, a[m]-1)
		a, lo = a[m+1:], a[m]+1
	}
}

// A bitReader reads what a bitWriter wrote; behind the end there are zeros.
type bitReader struct {
	b  []byte
	at uint64 // in bits
}

// get reads n bits, n ≤ 56.
func (r *bitReader) get(n int) uint64 {
	i := r.at >> 3
	var v uint64
	if i+8 <= uint64(len(r.b)) {
		v = binary.LittleEndian.Uint64(r.b[i:])
	} else if i < uint64(len(r.b)) {
		var last [8]byte
		copy(last[:], r.b[i:])
		v = binary.LittleEndian.Uint64(last[:])
	}
	v >>= r.at & 7
	r.at += uint64(n)
	return v & (1<<n - 1)
}

// over tells that bits were read that are not there.
func (r *bitReader) over() bool { return r.at > 8*uint64(len(r.b)) }

func (r *bitReader) code(m uint64) uint64 {
	k := bits.Len64(m) - 1
	short := uint64(2)<<k - m
	v := r.get(k)
	if v >= short {
		v = v<<1 | r.get(1)
		v -= short
	}
	return v
}

// gamma reads 0 where no number can stand.
func (r *bitReader) gamma() uint64 {
	v := r.get(48)
	r.at -= 48
	if v == 0 {
		return 0
	}
	k := bits.TrailingZeros64(v)
	r.at += uint64(k) + 1
	return r.get(k) | 1<<k
}

// numbers reads len(a) ≤ hi-lo+1 numbers into a.
func (r *bitReader) numbers(a []uint32, lo, hi uint32) {
	for len(a) > 0 {
		if uint64(hi)-uint64(lo)+1 == uint64(len(a)) {
			for i := range a {
				a[i] = lo + uint32(i)
			}
			return
		}
		m := len(a) / 2
		low := lo + uint32(m)
		a[m] = low + uint32(r.code(uint64(hi)-uint64(len(a)-1-m)-uint64(low)+1))
		if m > 0 {
			r.numbers(a[:m], lo, a[m]-1)
		}
		a, lo = a[m+1:], a[m]+1
	}
}
