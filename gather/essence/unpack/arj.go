package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// An ARJ reads an archive of arj: a header for the whole, then members one after
// another. Read are stored ones and all four methods; encrypted ones and those that
// go on in another volume are told of.
type ARJ struct {
	r    *bufio.Reader
	data io.LimitedReader
	m    io.Reader
}

// The fields of a header that are read, and its flags.
const (
	arjFlags, arjMethod, arjType       = 4, 5, 6
	arjTime, arjPacked, arjSize, arjCR = 8, 12, 16, 20
	arjLeast                           = 30 // bytes
	arjGarbled, arjVolume, arjExtended = 0x01, 0x04, 0x08
	maxARJHeader                       = 2600
)

// NewARJ reads the archive's header.
func NewARJ(r io.Reader) (*ARJ, error) {
	a := &ARJ{r: bufio.NewReader(r), m: eof{}}
	b, err := a.header()
	if err == nil && b == nil {
		err = damaged("header of arj")
	}
	return a, err
}

// header reads a header, nil at the end.
func (a *ARJ) header() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(a.r, head[:]); err != nil {
		return nil, cut(err)
	}
	size := int(binary.LittleEndian.Uint16(head[2:]))
	switch {
	case head[0] != 0x60 || head[1] != 0xea || size > maxARJHeader:
		return nil, damaged("header of arj")
	case size == 0:
		return nil, nil
	}
	b := make([]byte, size+4)
	if _, err := io.ReadFull(a.r, b); err != nil {
		return nil, cut(err)
	}
	b, sum := b[:size], binary.LittleEndian.Uint32(b[size:])
	if crc32.ChecksumIEEE(b) != sum || size < arjLeast || int(b[0]) < arjLeast || int(b[0]) > size {
		return nil, damaged("header of arj")
	}
	for {
		if _, err := io.ReadFull(a.r, head[:2]); err != nil {
			return nil, cut(err)
		}
		more := binary.LittleEndian.Uint16(head[:])
		if more == 0 {
			return b, nil
		}
		if err := skip(a.r, int64(more)+4); err != nil {
			return nil, err
		}
	}
}

// Next goes to the next member; io.EOF is the end.
func (a *ARJ) Next() (*Header, error) {
	if err := skip(&a.data, a.data.N); err != nil {
		return nil, err
	}
	b, err := a.header()
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, io.EOF
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	name, _, _ := bytes.Cut(b[b[0]:], []byte{0})
	h := &Header{Name: pcName(string(name)), Size: int64(word(arjSize)), Packed: int64(word(arjPacked)),
		Modified: dosTime(uint16(word(arjTime)>>16), uint16(word(arjTime))), Regular: b[arjType] <= 1}
	a.data = io.LimitedReader{R: a.r, N: h.Packed}
	want := word(arjCR)
	sum := uint32(0)
	check := func(r io.Reader, size int64) io.Reader {
		return &checked{r: r, left: size, ok: size == 0, sum: func(p []byte) bool {
			sum = crc32.Update(sum, crc32.IEEETable, p)
			return sum == want
		}}
	}
	switch method := b[arjMethod]; {
	case b[arjFlags]&arjGarbled != 0:
		h.Err = unread("encrypted")
	case b[arjFlags]&(arjVolume|arjExtended) != 0:
		h.Err = unread("it goes on in another volume")
	case !h.Regular:
	case method == 0:
		a.m = check(&a.data, min(h.Size, h.Packed))
	case method <= 3:
		a.m = check(newLZH(&a.data, lzhA, h.Size), h.Size)
	case method == 4:
		a.m = check(newARJFast(&a.data, h.Size), h.Size)
	default:
		h.Err = unread("of method %d", method)
	}
	if h.Err != nil {
		a.m = failing{h.Err}
	}
	return h, nil
}

// Read reads of the member.
func (a *ARJ) Read(p []byte) (int, error) { return a.m.Read(p) }

// An arjFast is what method 4 writes: lengths and distances in a code of fixed
// classes.
type arjFast struct {
	in   bits
	left int64
	window
}

func newARJFast(r io.Reader, size int64) io.Reader {
	return &arjFast{in: bits{r: bufio.NewReader(r)}, left: size, window: newWindow(lzhA.window)}
}

func (z *arjFast) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if z.left <= 0 {
			return n, io.EOF
		}
		if z.run == 0 {
			if length := z.class(0, 7); length == 0 {
				p[n] = z.put(byte(z.in.take(8)))
				n, z.left = n+1, z.left-1
				if z.in.err != nil {
					return n - 1, z.in.err
				}
				continue
			} else {
				z.run = length - 1 + lzhMatch
			}
			if z.back = z.class(9, 13) + 1; z.back > len(z.past) {
				return n, damaged("a match from before the window")
			}
			if z.in.err != nil {
				return n, z.in.err
			}
		}
		p[n] = z.copied()
		n, z.left = n+1, z.left-1
	}
	return n, nil
}

// class reads a number: ones say of how many bits it is, and what is added.
func (z *arjFast) class(least, most int) int {
	n, plus := least, 0
	for ; n < most && z.in.take(1) == 1; n++ {
		plus += 1 << n
	}
	return plus + z.in.take(n)
}
