package unpack

import "io"

// A deflate64 unpacks what PKWARE calls enhanced deflating: deflate (RFC 1951) with
// a window of 64 KiB, two more codes of distances, and a last code of lengths that
// has 16 bits of its own. Input that ends early, and codes that are none, are
// errors; what came before them is given.
type deflate64 struct {
	in     *source
	bits   uint32
	n      uint // of them
	window [1 << 16]byte
	at     int // where the next byte goes
	given  int // up to where bytes were given

	final  bool
	state  int // what the block is; 0 before one
	stored int // bytes left of a stored block
	lit    prefixCode
	dist   prefixCode
	length int // left of a copy
	back   int
	wrote  int // bytes in all, up to the size of the window
	err    error
}

const (
	betweenBlocks = iota
	inStored
	inCodes
)

func newDeflate64(in io.Reader) io.Reader { return &deflate64{in: newSource(in)} }

func (d *deflate64) Read(p []byte) (int, error) {
	for d.given == d.at && d.err == nil {
		d.at, d.given = d.at&(len(d.window)-1), d.at&(len(d.window)-1)
		d.more()
	}
	if d.given < d.at {
		n := copy(p, d.window[d.given:d.at])
		d.given += n
		return n, nil
	}
	return 0, d.err
}

// more unpacks up to the end of the window, or sets err.
func (d *deflate64) more() {
	for d.at < len(d.window) && d.err == nil {
		switch {
		case d.length > 0:
			d.copy()
		case d.state == inStored && d.stored > 0:
			d.put(byte(d.take(8)))
			d.stored--
		case d.state == inCodes:
			d.symbol()
		case d.final:
			d.err = io.EOF
		default:
			d.block()
		}
		if d.in.past > 4 {
			d.err = io.ErrUnexpectedEOF
		}
	}
}

func (d *deflate64) put(b byte) {
	d.window[d.at] = b
	d.at++
	d.wrote = min(d.wrote+1, len(d.window))
}

func (d *deflate64) copy() {
	for d.length > 0 && d.at < len(d.window) {
		d.put(d.window[(d.at-d.back)&(len(d.window)-1)])
		d.length--
	}
}

// take is the next n bits, of 16 at most.
func (d *deflate64) take(n uint) int {
	for d.n < n {
		d.bits |= uint32(d.in.byte()) << d.n
		d.n += 8
	}
	v := d.bits & (1<<n - 1)
	d.bits >>= n
	d.n -= n
	return int(v)
}

// block reads the beginning of a block.
func (d *deflate64) block() {
	d.final = d.take(1) == 1
	switch d.take(2) {
	case 0:
		d.take(d.n & 7)
		n := d.take(16)
		if n != ^d.take(16)&0xffff {
			d.err = damaged("length of a stored block")
		}
		d.state, d.stored = inStored, n
	case 1:
		d.state = inCodes
		d.fixed()
	case 2:
		d.state = inCodes
		d.dynamic()
	default:
		d.err = damaged("kind of a block")
	}
}

func (d *deflate64) fixed() {
	var lengths [288]byte
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	d.lit.make(lengths[:])
	for i := range 32 {
		lengths[i] = 5
	}
	d.dist.make(lengths[:32])
}

// dynamic reads the codes of a block, whose lengths are coded themselves.
func (d *deflate64) dynamic() {
	nlit, ndist, n := d.take(5)+257, d.take(5)+1, d.take(4)+4
	var order = [19]byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	var first [19]byte
	for _, i := range order[:n] {
		first[i] = byte(d.take(3))
	}
	var code prefixCode
	if !code.make(first[:]) {
		d.err = damaged("codes of lengths")
		return
	}
	var lengths [288 + 32]byte
	for i := 0; i < nlit+ndist && d.err == nil && d.in.past == 0; {
		s := d.code(&code)
		v, times := byte(s), 1
		switch s {
		case -1:
			d.err = damaged("a code that is none")
			return
		case 16:
			if i == 0 {
				d.err = damaged("a length before the first")
				return
			}
			v, times = lengths[i-1], 3+d.take(2)
		case 17:
			v, times = 0, 3+d.take(3)
		case 18:
			v, times = 0, 11+d.take(7)
		}
		if i+times > nlit+ndist {
			d.err = damaged("more lengths than codes")
			return
		}
		for range times {
			lengths[i] = v
			i++
		}
	}
	if !d.lit.make(lengths[:nlit]) || !d.dist.make(lengths[nlit:nlit+ndist]) {
		d.err = damaged("codes of a block")
	}
}

// Lengths 257 … 285 and distances: what each begins at is what those before it
// reach, by their extra bits.
var (
	lengthBits   = [29]byte{8: 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 16}
	lengthStart  = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 3}
	distanceBits = func(c int) uint { return uint(max(c/2-1, 0)) }
)

func distanceStart(c int) int {
	if c < 2 {
		return c + 1
	}
	return (2+c&1)<<distanceBits(c) + 1
}

// symbol reads a byte, or a length and a distance, or the end of the block.
func (d *deflate64) symbol() {
	switch s := d.code(&d.lit); {
	case s < 0 || s > 285:
		d.err = damaged("a code that is none")
	case s < 256:
		d.put(byte(s))
	case s == 256:
		d.state = betweenBlocks
	default:
		s -= 257
		length := int(lengthStart[s]) + d.take(uint(lengthBits[s]))
		c := d.code(&d.dist)
		if c < 0 {
			d.err = damaged("a code that is none")
			return
		}
		if d.back = distanceStart(c) + d.take(distanceBits(c)); d.back > d.wrote {
			d.err = damaged("a distance past the beginning")
			return
		}
		d.length = length
	}
}

// A prefixCode is a canonical code of up to 15 bits: how many codes there are of
// each length, and their symbols in order.
type prefixCode struct {
	counts  [16]int
	symbols [288]uint16
}

// make makes the code of the lengths of its codes; false means that there are more
// than there can be.
func (c *prefixCode) make(lengths []byte) bool {
	*c = prefixCode{}
	for _, n := range lengths {
		c.counts[n&15]++
	}
	left := 1
	var offset [16]int
	for n := 1; n < 16; n++ {
		if left = 2*left - c.counts[n]; left < 0 {
			return false
		}
		if n < 15 {
			offset[n+1] = offset[n] + c.counts[n]
		}
	}
	for s, n := range lengths {
		if n != 0 {
			c.symbols[offset[n]] = uint16(s)
			offset[n]++
		}
	}
	return true
}

// code reads a symbol, bit by bit; -1 is none.
func (d *deflate64) code(c *prefixCode) int {
	code, first, index := 0, 0, 0
	for n := 1; n < 16; n++ {
		code |= d.take(1)
		count := c.counts[n]
		if code-count < first {
			return int(c.symbols[index+code-first])
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return -1
}
