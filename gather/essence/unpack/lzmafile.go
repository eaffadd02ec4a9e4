package unpack

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// An LZMA reads a *.lzma file, or a stream of LZMA or LZMA2 in an archive. Its
// memory is what its dictionary holds, at most what the caller allows.
type LZMA struct {
	d    *lzma
	left int64 // bytes to come, < 0 when a mark ends them
	err  error

	two  bool  // LZMA2
	raw  int64 // bytes of the chunk that are not compressed
	need byte  // what the next chunk has to begin anew: see chunk
}

// NewLZMA reads the header of a *.lzma file. One whose dictionary is larger than
// memory is an ErrUnread.
func NewLZMA(r io.Reader, memory int64) (*LZMA, error) {
	src := newSource(r)
	var h [13]byte
	if _, err := io.ReadFull(src, h[:]); err != nil {
		return nil, cut(err)
	}
	size := int64(binary.LittleEndian.Uint64(h[5:]))
	if size < -1 {
		return nil, damaged("a size of %d", uint64(size))
	}
	return rawLZMA(src, h[:5], size, memory)
}

// rawLZMA decodes a stream that has its properties elsewhere.
func rawLZMA(src *source, props []byte, size, memory int64) (*LZMA, error) {
	if len(props) != 5 {
		return nil, damaged("%d bytes of properties", len(props))
	}
	dict := int64(binary.LittleEndian.Uint32(props[1:]))
	if size >= 0 {
		dict = min(dict, size)
	}
	if dict > memory {
		return nil, unread("a dictionary of %d bytes", dict)
	}
	d := newLZMA(src, dict)
	if err := d.props(props[0]); err != nil {
		return nil, err
	}
	d.reset()
	if err := d.start(); err != nil {
		return nil, err
	}
	return &LZMA{d: d, left: size}, nil
}

// newLZMA2 decodes a stream of LZMA2 with a dictionary of a size.
func newLZMA2(src *source, dict, memory int64) (*LZMA, error) {
	if dict > memory {
		return nil, unread("a dictionary of %d bytes", dict)
	}
	return &LZMA{d: newLZMA(src, dict), two: true, need: needDict}, nil
}

func (z *LZMA) Read(p []byte) (int, error) {
	for z.err == nil && len(p) > 0 {
		n := 0
		if n, z.err = z.some(p); n > 0 {
			return n, nil
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, z.err
}

// some decodes some bytes, perhaps none.
func (z *LZMA) some(p []byte) (int, error) {
	if z.two && z.left == 0 && z.raw == 0 {
		if err := z.chunk(); err != nil {
			return 0, err
		}
	}
	if z.raw > 0 {
		return z.plain(p)
	}
	if z.left == 0 || z.d.ended {
		return 0, z.end()
	}
	n := len(p)
	if z.left > 0 {
		n = int(min(int64(n), z.left))
	}
	b, err := z.d.decode(n)
	copy(p, b)
	if z.left > 0 {
		z.left -= int64(len(b))
	}
	return len(b), err
}

// end tells whether a stream has ended where it should.
func (z *LZMA) end() error {
	switch {
	case z.two:
		return nil // the next chunk says
	case z.left > 0:
		return damaged("%d bytes short", z.left)
	case z.d.run > 0:
		return damaged("a match past the end")
	case z.d.src.past > 0:
		return cut(z.d.src.err)
	}
	return io.EOF
}

// What a chunk of LZMA2 begins anew.
const (
	needNothing = iota
	needProps   // the properties are not known yet
	needDict    // nothing is
)

// chunk reads the head of a chunk of LZMA2.
func (z *LZMA) chunk() error {
	d, src := z.d, z.d.src
	c := src.byte()
	switch {
	case src.past > 0:
		return cut(src.err)
	case c == 0:
		return io.EOF
	case c == 1 || c >= 0xe0:
		d.total = 0 // nothing before this can be copied
	case c > 2 && c < 0x80, z.need == needDict:
		return damaged("chunk %#x of LZMA2", c)
	}
	size := int64(src.byte())<<8 | int64(src.byte())
	if c < 0x80 {
		z.raw = size + 1
		z.need = min(z.need, needProps)
		return nil
	}
	z.left = int64(c&0x1f)<<16 + size + 1
	src.byte()
	src.byte()
	if c >= 0xc0 {
		if err := d.props(src.byte()); err != nil {
			return err
		}
		if d.lc+d.lp > 4 {
			return damaged("properties of LZMA2")
		}
	} else if z.need == needProps {
		return damaged("chunk %#x of LZMA2", c)
	}
	z.need = needNothing
	if c >= 0xa0 {
		d.reset()
	}
	d.run = 0
	return d.start()
}

// plain copies bytes that are not compressed, through the dictionary.
func (z *LZMA) plain(p []byte) (int, error) {
	d := z.d
	d.room()
	n := int(min(int64(len(p)), z.raw, int64(len(d.dict)-d.pos)))
	n, err := io.ReadFull(d.src, d.dict[d.pos:d.pos+n])
	copy(p, d.dict[d.pos:d.pos+n])
	d.pos += n
	d.total += int64(n)
	z.raw -= int64(n)
	if err != nil {
		err = cut(err)
	}
	return n, err
}

// A Lzip reads a *.lz file, which may have several members one after another.
type Lzip struct {
	src    *source
	memory int64
	z      *LZMA
	sum    uint32
	n      int64
	err    error
}

// NewLzip reads the first header.
func NewLzip(r io.Reader, memory int64) (*Lzip, error) {
	l := &Lzip{src: newSource(r), memory: memory}
	return l, l.begin()
}

// begin reads a member's header.
func (l *Lzip) begin() error {
	var h [6]byte
	if _, err := io.ReadFull(l.src, h[:]); err != nil {
		return cut(err)
	}
	if string(h[:5]) != "LZIP\x01" {
		return damaged("no header of lzip")
	}
	bits := uint32(h[5] & 0x1f)
	if bits < 12 || bits > 29 {
		return damaged("a dictionary of 2^%d", bits)
	}
	size := uint32(1)<<bits - uint32(1)<<bits/16*uint32(h[5]>>5)
	props := binary.LittleEndian.AppendUint32([]byte{93}, size) // 3 bits of context, 2 of position
	l.sum, l.n = 0, 0
	var err error
	l.z, err = rawLZMA(l.src, props, -1, l.memory)
	return err
}

func (l *Lzip) Read(p []byte) (int, error) {
	for l.err == nil {
		n, err := l.z.Read(p)
		l.sum = crc32.Update(l.sum, crc32.IEEETable, p[:n])
		l.n += int64(n)
		if errors.Is(err, io.EOF) {
			err = l.next()
		}
		l.err = err
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
	return 0, l.err
}

// next checks a member and goes on to the one after it; what is no member after
// the last is none of ours.
func (l *Lzip) next() error {
	var t [20]byte
	if _, err := io.ReadFull(l.src, t[:]); err != nil {
		return cut(err)
	}
	if binary.LittleEndian.Uint32(t[:]) != l.sum || int64(binary.LittleEndian.Uint64(t[4:])) != l.n {
		return damaged("wrong checksum")
	}
	if l.src.pos == l.src.end && !l.src.fill() {
		return l.src.err
	}
	if l.src.buf[l.src.pos] != 'L' {
		return io.EOF
	}
	return l.begin()
}
