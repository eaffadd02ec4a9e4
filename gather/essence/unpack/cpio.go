package unpack

import (
	"bufio"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
)

// A Cpio reads an archive of cpio(1), in its forms newc and crc (070701, 070702),
// odc (070707) and the old one of 16-bit words, in either order of bytes.
type Cpio struct {
	r         *bufio.Reader
	left, pad int64
}

// NewCpio begins at the first member.
func NewCpio(r io.Reader) *Cpio { return &Cpio{r: bufio.NewReader(r)} }

// A cpioHead is what all forms tell.
type cpioHead struct {
	mode, sec, name, size int64
	align                 int64 // of name and content
	at                    int64 // bytes of the header
}

// Next goes to the next member; io.EOF is the end.
func (c *Cpio) Next() (*Header, error) {
	if err := skip(c.r, c.left+c.pad); err != nil {
		return nil, err
	}
	c.left, c.pad = 0, 0
	f, err := c.head()
	if err != nil {
		return nil, err
	}
	if f.name < 1 || f.name > maxLongName || f.size < 0 {
		return nil, damaged("header of cpio")
	}
	b := make([]byte, f.name)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, cut(err)
	}
	if err := skip(c.r, fillUp(f.at+f.name, f.align)); err != nil {
		return nil, err
	}
	c.left, c.pad = f.size, fillUp(f.size, f.align)
	name := strings.TrimRight(string(b), "\x00")
	if name == "TRAILER!!!" && f.size == 0 {
		c.left, c.pad = 0, 0
		return nil, io.EOF
	}
	return &Header{Name: name, Size: f.size, Packed: f.size, Modified: unix(f.sec), Regular: f.mode&0o170000 == 0o100000}, nil
}

// fillUp is how many bytes follow n up to a multiple of align.
func fillUp(n, align int64) int64 { return (align - n%align) % align }

func (c *Cpio) head() (f cpioHead, err error) {
	magic, err := c.r.Peek(6)
	if err != nil {
		if err == io.EOF && len(magic) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return f, err
	}
	switch {
	case string(magic) == "070701" || string(magic) == "070702":
		return c.fields(16, 110, []int{14, 46, 94, 54}, 8, 4)
	case string(magic) == "070707":
		return c.fields(8, 76, []int{18, 48, 59, 65}, 0, 1)
	case magic[0] == 0xc7 && magic[1] == 0x71:
		return c.words(binary.LittleEndian)
	case magic[0] == 0x71 && magic[1] == 0xc7:
		return c.words(binary.BigEndian)
	}
	return f, damaged("no magic of cpio")
}

// fields reads a header of text, whose mode, time, size of the name and size
// stand at some places: numbers of width digits, or as odc has them.
func (c *Cpio) fields(base, n int, at []int, width int, align int64) (f cpioHead, err error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return f, cut(err)
	}
	widths := []int{width, width, width, width}
	if base == 8 {
		widths = []int{6, 11, 6, 11}
	}
	for i, to := range []*int64{&f.mode, &f.sec, &f.name, &f.size} {
		if *to, err = strconv.ParseInt(string(b[at[i]:at[i]+widths[i]]), base, 64); err != nil {
			return f, damaged("header of cpio")
		}
	}
	f.align, f.at = align, int64(n)
	return f, nil
}

// words reads a header of 16-bit words; numbers of two have the high one first.
func (c *Cpio) words(order binary.ByteOrder) (f cpioHead, err error) {
	b := make([]byte, 26)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return f, cut(err)
	}
	w := func(i int) int64 { return int64(order.Uint16(b[2*i:])) }
	return cpioHead{mode: w(3), sec: w(8)<<16 | w(9), name: w(10), size: w(11)<<16 | w(12), align: 2, at: 26}, nil
}

// Read reads of the member.
func (c *Cpio) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.left > 0 {
		err = cut(err)
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}
