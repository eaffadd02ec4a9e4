package unpack

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// A delta adds to each byte the one some places before.
type delta struct {
	r    io.Reader
	n    int
	hist [256]byte
	at   byte
}

func (d *delta) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	for i := range p[:n] {
		p[i] += d.hist[byte(int(d.at)-d.n)]
		d.hist[d.at] = p[i]
		d.at++
	}
	return n, err
}

// An x86 undoes what makes programs of x86 pack better: the targets of calls and
// jumps, which are relative, were written as absolute ones.
type x86 struct {
	r    io.Reader
	buf  []byte
	done int // bytes of buf that are as they were
	out  int // ... and that were given
	at   uint32
	mask uint32
	last uint32 // place of the last opcode
	err  error
}

func newX86(r io.Reader) *x86 { return &x86{r: r, last: ^uint32(4)} }

func (x *x86) Read(p []byte) (int, error) {
	for x.out == x.done && x.err == nil {
		x.more()
	}
	if x.out == x.done {
		return 0, x.err
	}
	n := copy(p, x.buf[x.out:x.done])
	x.out += n
	return n, nil
}

// more reads and converts; the last 4 bytes wait for those behind them.
func (x *x86) more() {
	x.at += uint32(x.done)
	x.buf = x.buf[:copy(x.buf, x.buf[x.done:])]
	x.done, x.out = 0, 0
	old := len(x.buf)
	x.buf = slices.Grow(x.buf, 16<<10)[:old+16<<10]
	n, err := io.ReadFull(x.r, x.buf[old:])
	x.buf = x.buf[:old+n]
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = io.EOF
	}
	x.err = err
	x.convert()
	if x.err != nil {
		x.done = len(x.buf)
	}
}

func (x *x86) convert() {
	i := 0
	for ; i+4 < len(x.buf); i++ {
		if x.buf[i]&0xfe != 0xe8 {
			continue
		}
		place := x.at + uint32(i)
		gap := place - x.last
		x.last = place
		if gap > 5 {
			x.mask = 0
		} else {
			for range gap {
				x.mask = x.mask & 0x77 << 1
			}
		}
		high := x.buf[i+4]
		if (high == 0 || high == 0xff) && x86Allowed[x.mask>>1&7] && x.mask>>1 < 0x10 {
			i = x.target(i, place)
			continue
		}
		x.mask |= 1
		if high == 0 || high == 0xff {
			x.mask |= 0x10
		}
	}
	x.done = i
}

var x86Allowed = [8]bool{true, true, true, false, true, false, false, false}
var x86Bits = [8]uint32{0, 1, 2, 2, 3, 3, 3, 3}

// target converts one target, and returns the place of its last byte.
func (x *x86) target(i int, place uint32) int {
	b := x.buf[i+1 : i+5]
	v := binary.LittleEndian.Uint32(b)
	to := uint32(0)
	for {
		to = v - (place + 5)
		if x.mask == 0 {
			break
		}
		bit := x86Bits[x.mask>>1&7] * 8
		if high := byte(to >> (24 - bit)); high != 0 && high != 0xff {
			break
		}
		v = to ^ (1<<(32-bit) - 1)
	}
	to &= 0x01ffffff
	if to>>24&1 != 0 {
		to |= 0xff000000
	}
	binary.LittleEndian.PutUint32(b, to)
	x.mask = 0
	return i + 4
}
