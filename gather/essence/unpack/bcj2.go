package unpack

import (
	"encoding/binary"
	"io"
)

// A bcj2 undoes the filter that 7-Zip has for programs of x86: calls, jumps and what
// is left of the program are three streams, and a fourth, of a range coder, says
// which opcodes have their target in one of the first two, as an absolute address.
type bcj2 struct {
	main, call, jump, coder *source
	probs                   [256 + 2]uint16
	rng, code               uint32
	at                      uint32 // bytes given
	last                    byte
	dest                    [4]byte // of the target that is being given
	left                    int     // bytes of it
	err                     error
}

func newBCJ2(main, call, jump, coder io.Reader) io.Reader {
	b := &bcj2{main: newSource(main), call: newSource(call), jump: newSource(jump), coder: newSource(coder), rng: 0xffffffff}
	for i := range b.probs {
		b.probs[i] = 1 << 10
	}
	for range 5 {
		b.code = b.code<<8 | uint32(b.coder.byte())
	}
	return b
}

func (b *bcj2) Read(p []byte) (n int, err error) {
	for n < len(p) && b.err == nil {
		if b.left > 0 {
			p[n] = b.dest[4-b.left]
			b.left--
		} else if b.main.pos == b.main.end && !b.main.fill() {
			b.err = b.main.err
			break
		} else {
			p[n] = b.main.byte()
			b.opcode(p[n])
		}
		b.last = p[n]
		b.at++
		n++
	}
	if n > 0 {
		return n, nil
	}
	return 0, b.err
}

// opcode looks at a byte of the program that comes after last: whether it is a call
// or a jump whose target comes next.
func (b *bcj2) opcode(c byte) {
	var prob *uint16
	from := b.jump
	switch {
	case c == 0xe8:
		prob, from = &b.probs[b.last], b.call
	case c == 0xe9:
		prob = &b.probs[256]
	case b.last == 0x0f && c&0xf0 == 0x80:
		prob = &b.probs[257]
	default:
		return
	}
	if !b.bit(prob) {
		return
	}
	var addr [4]byte
	for i := range addr {
		addr[i] = from.byte()
	}
	if from.past > 0 || b.coder.past > 4 {
		b.err = io.ErrUnexpectedEOF
		return
	}
	binary.LittleEndian.PutUint32(b.dest[:], binary.BigEndian.Uint32(addr[:])-(b.at+1+4))
	b.left = 4
}

// bit reads of the range coder, as LZMA's does.
func (b *bcj2) bit(prob *uint16) bool {
	bound := b.rng >> 11 * uint32(*prob)
	set := b.code >= bound
	if set {
		b.code -= bound
		b.rng -= bound
		*prob -= *prob >> 5
	} else {
		b.rng = bound
		*prob += (1<<11 - *prob) >> 5
	}
	if b.rng < 1<<24 {
		b.rng <<= 8
		b.code = b.code<<8 | uint32(b.coder.byte())
	}
	return set
}
