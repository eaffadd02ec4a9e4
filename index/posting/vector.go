package posting

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

//go:generate go run genunpack.go

// A vector is up to 128 numbers, whose number the reader knows:
//
//	1 byte    w, the bits of most of them; 64 more if there are exceptions
//	packed    the low w bits of each, from the low bits of each byte up
//	          exceptions, numbers of more bits:
//	1 byte    how many
//	1 byte    the bits that all of them have above w
//	a byte    for each its place
//	packed    of each the bits above w
//
// Of all w the one is taken that makes this the shortest.
const (
	widthBits  = 63
	exceptions = 64
)

// appendVector appends the vector of v, which has 1 to 128 numbers, to b.
func appendVector(b []byte, v []uint32) []byte {
	w, exc, over := chooseWidth(v)
	head := byte(w)
	if exc > 0 {
		head |= exceptions
	}
	b = appendPacked(append(b, head), v, w)
	if exc == 0 {
		return b
	}
	b = append(b, byte(exc), byte(over))
	var high [BlockSize]uint32
	n := 0
	for i, x := range v {
		if h := uint64(x) >> w; h != 0 {
			b = append(b, byte(i))
			high[n] = uint32(h)
			n++
		}
	}
	return appendPacked(b, high[:n], over)
}

// chooseWidth gives the best width, the number of exceptions it makes and
// their bits above it.
func chooseWidth(v []uint32) (w, exc, over uint) {
	var have [33]uint // numbers by bits
	var all uint32
	for _, x := range v {
		have[bits.Len32(x)&63]++
		all |= x
	}
	most := uint(bits.Len32(all))
	w = most
	best := packedLen(len(v), w)
	above := uint(0)
	for try := most; try > 0; {
		above += have[try]
		try--
		n := packedLen(len(v), try) + 2 + int(above) + packedLen(int(above), most-try)
		if n < best {
			best, w, exc, over = n, try, above, most-try
		}
	}
	return w, exc, over
}

// packedLen is the number of bytes of n numbers of w bits.
func packedLen(n int, w uint) int { return (n*int(w) + 7) / 8 }

// appendPacked appends the low w bits of each number.
func appendPacked(b []byte, v []uint32, w uint) []byte {
	var acc uint64
	var have uint // bits in acc, fewer than 32
	for _, x := range v {
		acc |= (uint64(x) & (1<<w - 1)) << have
		if have += w; have >= 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(acc))
			acc >>= 32
			have -= 32
		}
	}
	for ; have > 0; have -= min(have, 8) {
		b = append(b, byte(acc))
		acc >>= 8
	}
	return b
}

// A vector that is being read.
type vector struct {
	packed []byte // what is there from the packed numbers on; they may be less
	n      int    // numbers
	w      uint
	exc    []byte // places of exceptions
	high   []byte // like packed
	over   uint
}

// open finds the parts of a vector of n numbers at the beginning of b, and
// gives its length, 0 if it is not there whole.
func (v *vector) open(b []byte, n int) int {
	if len(b) == 0 {
		return 0
	}
	v.n, v.w, v.exc = n, uint(b[0]&widthBits), nil
	v.packed = b[1:]
	end := 1 + packedLen(n, v.w)
	if v.w > 32 || end > len(b) {
		return 0
	}
	if b[0]&exceptions == 0 {
		return end
	}
	if end+2 > len(b) {
		return 0
	}
	exc, over := int(b[end]), uint(b[end+1])
	end += 2
	if exc > n || v.w+over > 32 || end+exc+packedLen(exc, over) > len(b) {
		return 0
	}
	v.exc, v.high, v.over = b[end:end+exc], b[end+exc:], over
	return end + exc + packedLen(exc, over)
}

// at reads the number i of n.
func (v *vector) at(i int) uint32 {
	x := packedAt(v.packed, i, v.w)
	if k := bytes.IndexByte(v.exc, byte(i)); k >= 0 {
		x |= packedAt(v.high, k, v.over) << v.w
	}
	return x
}

// packedAt reads the number i of w bits.
func packedAt(b []byte, i int, w uint) uint32 {
	bit := uint(i) * w
	at := bit >> 3
	if at+8 <= uint(len(b)) {
		return uint32(binary.LittleEndian.Uint64(b[at:]) >> (bit & 7) & (1<<w - 1))
	}
	return uint32(lastBytes(b, at) >> (bit & 7) & (1<<w - 1))
}

// lastBytes is what a load of 64 bits at at gives of those bytes that b has.
func lastBytes(b []byte, at uint) (x uint64) {
	for i := uint(len(b)); i > at; i-- {
		x = x<<8 | uint64(b[i-1])
	}
	return x
}

// decode reads all. What is in out after them is undefined.
func (v *vector) decode(out *[BlockSize]uint32) {
	if v.n > 32 {
		p := v.packed
		if whole := 16 * int(v.w); len(p) < whole { // a short vector at the end of the bytes
			var buf [4 * BlockSize]byte
			copy(buf[:], p)
			p = buf[:]
		}
		unpack(p, v.w, out)
	} else {
		for i := range v.n {
			out[i&(BlockSize-1)] = packedAt(v.packed, i, v.w)
		}
	}
	mask, bit := uint64(1)<<v.over-1, uint(0)
	for _, place := range v.exc {
		at := bit >> 3
		var x uint64
		if at+8 <= uint(len(v.high)) {
			x = binary.LittleEndian.Uint64(v.high[at:])
		} else {
			x = lastBytes(v.high, at)
		}
		out[place&(BlockSize-1)] |= uint32(x>>(bit&7)&mask) << v.w
		bit += v.over
	}
}
