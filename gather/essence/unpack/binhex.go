package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"time"
)

// A MacFile is a file of a Macintosh in one of the forms that other systems keep:
// its data is read, its resources are not.
type MacFile struct {
	Header
	r    io.Reader
	left int64
	sum  func() (got, want uint16, err error)
}

const binhexMark = "(This file must be converted with BinHex"

// IsBinHex reports whether a text has the line that BinHex 4 begins with.
func IsBinHex(head []byte) bool { return bytes.Contains(head, []byte(binhexMark)) }

// NewBinHex reads up to the data of a file in BinHex 4: after the mark, text
// between colons that holds 6 bits a character, runs of bytes as 0x90 and a count.
func NewBinHex(r io.Reader) (*MacFile, error) {
	b := bufio.NewReader(r)
	if err := binhexStart(b); err != nil {
		return nil, err
	}
	h := &hexBytes{r: b}
	crc := uint16(0)
	in := &summed{h, &crc}
	var n [1]byte
	if _, err := io.ReadFull(in, n[:]); err != nil {
		return nil, cut(err)
	}
	rest := make([]byte, int(n[0])+1+4+4+2+4+4)
	if _, err := io.ReadFull(in, rest); err != nil {
		return nil, cut(err)
	}
	var want [2]byte
	if _, err := io.ReadFull(h, want[:]); err != nil {
		return nil, cut(err)
	}
	if n[0] == 0 || n[0] > 63 || crc != binary.BigEndian.Uint16(want[:]) {
		return nil, damaged("header of BinHex")
	}
	size := int64(binary.BigEndian.Uint32(rest[len(rest)-8:]))
	crc = 0
	m := &MacFile{Header: Header{Name: macName(rest[:n[0]]), Size: size, Packed: -1, Regular: true}, r: in, left: size}
	m.sum = func() (uint16, uint16, error) {
		_, err := io.ReadFull(h, want[:])
		return crc, binary.BigEndian.Uint16(want[:]), err
	}
	return m, nil
}

// binhexStart finds the first colon behind the mark.
func binhexStart(b *bufio.Reader) error {
	for {
		line, err := b.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte(binhexMark)) {
			break
		}
		if err != nil && err != bufio.ErrBufferFull {
			return cut(err)
		}
	}
	for {
		c, err := b.ReadByte()
		switch {
		case err != nil:
			return cut(err)
		case c == ':':
			return nil
		case c != '\n' && c != '\r' && c != ' ' && c != '\t':
			return damaged("no colon after the mark of BinHex")
		}
	}
}

// A hexBytes undoes the characters of BinHex and its runs.
type hexBytes struct {
	r    *bufio.Reader
	bits uint
	hold uint32
	last byte
	run  int
	err  error
}

const hexDigits = "!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr"

// raw is the next byte before runs are undone.
func (h *hexBytes) raw() (byte, error) {
	for h.bits < 8 {
		c, err := h.r.ReadByte()
		if err != nil {
			return 0, cut(err)
		}
		if c == '\n' || c == '\r' {
			continue
		}
		v := bytes.IndexByte([]byte(hexDigits), c)
		if v < 0 {
			if c == ':' {
				return 0, io.ErrUnexpectedEOF
			}
			return 0, damaged("character %q of BinHex", c)
		}
		h.hold, h.bits = h.hold<<6|uint32(v), h.bits+6
	}
	h.bits -= 8
	return byte(h.hold >> h.bits), nil
}

func (h *hexBytes) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && h.err == nil {
		if h.run > 0 {
			h.run--
			p[n] = h.last
			n++
			continue
		}
		b, err := h.raw()
		if err == nil && b == 0x90 {
			var count byte
			if count, err = h.raw(); err == nil && count > 0 {
				h.run = int(count) - 1
				continue
			}
		}
		if h.err = err; err == nil {
			h.last, p[n] = b, b
			n++
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, h.err
}

// A summed reader keeps the sum of what is read, CRC-16 of the CCITT.
type summed struct {
	r   io.Reader
	crc *uint16
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for _, b := range p[:n] {
		*s.crc = crc16(*s.crc, b)
	}
	return n, err
}

func crc16(c uint16, b byte) uint16 {
	c ^= uint16(b) << 8
	for range 8 {
		if c&0x8000 != 0 {
			c = c<<1 ^ 0x1021
		} else {
			c <<= 1
		}
	}
	return c
}

// IsMacBinary reports whether a beginning is that of a file in MacBinary: a header
// of 128 bytes with the name, the lengths and, since its second form, a sum.
func IsMacBinary(head []byte) bool {
	if len(head) < 128 || head[0] != 0 || head[1] == 0 || head[1] > 63 || head[74] != 0 || head[82] != 0 {
		return false
	}
	crc := uint16(0)
	for _, b := range head[:124] {
		crc = crc16(crc, b)
	}
	return crc == binary.BigEndian.Uint16(head[124:]) && crc != 0
}

// NewMacBinary reads the header.
func NewMacBinary(r io.Reader) (*MacFile, error) {
	var h [128]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, cut(err)
	}
	if !IsMacBinary(h[:]) {
		return nil, damaged("header of MacBinary")
	}
	if err := skip(r, fillUp(int64(binary.BigEndian.Uint16(h[120:])), 128)+int64(binary.BigEndian.Uint16(h[120:]))); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(h[83:]))
	return &MacFile{Header: Header{Name: macName(h[2 : 2+h[1]]), Size: size, Packed: size, Regular: true, Modified: macTime(binary.BigEndian.Uint32(h[95:]))},
		r: r, left: size}, nil
}

// macTime counts from 1904, in nobody knows which zone.
func macTime(sec uint32) time.Time { return unix(int64(sec) - 2082844800) }

// Read reads of the data, and at its end checks its sum.
func (m *MacFile) Read(p []byte) (int, error) {
	if m.left == 0 {
		if m.sum != nil {
			got, want, err := m.sum()
			m.sum = nil
			if err != nil {
				return 0, cut(err)
			}
			if got != want {
				return 0, damaged("wrong checksum")
			}
		}
		return 0, io.EOF
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	if m.left -= int64(n); m.left > 0 {
		return n, cut(err)
	}
	return n, nil
}
