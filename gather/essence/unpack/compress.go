package unpack

import "io"

// A Z reads what compress(1) writes, *.Z: a byte of flags after the magic, then
// codes of 9 to 16 bits, low bits first. Codes come in groups of eight, and a
// group that a change of width cuts short is filled up to its length.
type Z struct {
	src       *source
	maxBits   uint
	block     bool // code 256 empties the table
	bits      uint
	group     int // codes of the group that are still to come
	prefix    []uint16
	suffix    []byte
	free      int // next code to be given
	last      int // code before, -1 at the start
	firstByte byte
	stack     []byte // of a code, backwards
	hold      uint32 // bits that were read
	held      uint
	err       error
}

const clearCode = 256

// NewZ reads the header. Memory is 300 KiB at most.
func NewZ(r io.Reader) (*Z, error) {
	z := &Z{src: newSource(r), last: -1}
	a, b, flags := z.src.byte(), z.src.byte(), z.src.byte()
	if z.src.err != nil {
		return nil, cut(z.src.err)
	}
	if a != 0x1f || b != 0x9d {
		return nil, damaged("no magic of compress")
	}
	z.maxBits, z.block = uint(flags&0x1f), flags&0x80 != 0
	if z.maxBits < 9 || z.maxBits > 16 || flags&0x60 != 0 {
		return nil, damaged("codes of %d bits", z.maxBits)
	}
	z.prefix = make([]uint16, 1<<z.maxBits)
	z.suffix = make([]byte, 1<<z.maxBits)
	for i := range 256 {
		z.suffix[i] = byte(i)
	}
	z.clear()
	return z, nil
}

func (z *Z) clear() {
	z.bits, z.group, z.free, z.last = 9, 8, 256, -1
	if z.block {
		z.free = clearCode + 1
	}
}

func (z *Z) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(z.stack) == 0 {
			if z.err == nil {
				z.err = z.next()
			}
			if z.err != nil {
				break
			}
			continue
		}
		for n < len(p) && len(z.stack) > 0 {
			p[n] = z.stack[len(z.stack)-1]
			z.stack = z.stack[:len(z.stack)-1]
			n++
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, z.err
}

// code reads a code; io.EOF is the end.
func (z *Z) code() (int, error) {
	for z.held < z.bits {
		b := z.src.byte()
		if z.src.err != nil && z.src.pos == z.src.end {
			return 0, z.src.err // what is left are bits that fill the last byte
		}
		z.hold |= uint32(b) << z.held
		z.held += 8
	}
	c := int(z.hold & (1<<z.bits - 1))
	z.hold >>= z.bits
	z.held -= z.bits
	if z.group--; z.group == 0 {
		z.group = 8
	}
	return c, nil
}

// align drops what fills the group of codes up.
func (z *Z) align() error {
	for z.group != 8 {
		if _, err := z.code(); err != nil {
			return err
		}
	}
	return nil
}

// next puts the bytes of the next code on the stack.
func (z *Z) next() error {
	if z.free >= 1<<z.bits && z.bits < z.maxBits {
		if err := z.align(); err != nil {
			return err
		}
		z.bits++
	}
	c, err := z.code()
	if err != nil {
		return err
	}
	if c == clearCode && z.block {
		err := z.align()
		z.clear()
		return err
	}
	in := c
	switch {
	case z.last < 0 && c > 255, c > z.free, c == z.free && z.last < 0:
		return damaged("code %d of %d", c, z.free)
	case c == z.free:
		z.stack = append(z.stack, z.firstByte)
		c = z.last
	}
	for c > 255 {
		z.stack = append(z.stack, z.suffix[c])
		c = int(z.prefix[c])
	}
	z.firstByte = byte(c)
	z.stack = append(z.stack, z.firstByte)
	if z.last >= 0 && z.free < 1<<z.maxBits {
		z.prefix[z.free], z.suffix[z.free] = uint16(z.last), z.firstByte
		z.free++
	}
	z.last = in
	return nil
}
