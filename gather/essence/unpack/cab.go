package unpack

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
)

// A Cab reads a cabinet of Windows: files stand one after another in folders, and
// a folder is a row of blocks of 32 KiB at most. Read are stored folders and MSZIP;
// of LZX and Quantum, and of what goes on in another cabinet, it is told.
type Cab struct {
	r       io.ReaderAt
	size    int64
	folders []cabFolder
	reserve int64 // bytes before the content of a block
	at      int64 // of the next file
	files   int   // left

	folder int // that is open
	in     *cabBlocks
	left   int64 // of the file
}

// A cabFolder is where its blocks begin, how many there are and how they are packed.
type cabFolder struct {
	at     int64
	blocks int
	method uint16
}

const (
	cabStored, cabMSZIP, cabQuantum, cabLZX = 0, 1, 2, 3
	cabWindow                               = 32 << 10
	cabNext, cabPrev, cabReserve            = 2, 1, 4
	cabUTF8                                 = 0x80
)

// NewCab reads the head of a cabinet.
func NewCab(r io.ReaderAt, size, _ int64) (*Cab, error) {
	var b [36]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, cut(err)
	}
	if string(b[:4]) != "MSCF" || b[25] != 1 {
		return nil, damaged("header of a cabinet")
	}
	half := func(at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }
	c := &Cab{r: r, size: size, at: int64(binary.LittleEndian.Uint32(b[16:])), files: half(28), folder: -1}
	folders, flags, at, extra := half(26), half(30), int64(36), int64(0)
	if flags&cabReserve != 0 {
		var more [4]byte
		if _, err := r.ReadAt(more[:], at); err != nil {
			return nil, cut(err)
		}
		at += 4 + int64(binary.LittleEndian.Uint16(more[:]))
		extra, c.reserve = int64(more[2]), int64(more[3])
	}
	for _, flag := range []int{cabPrev, cabNext} { // names of a cabinet, and of its disk
		for range 2 {
			if flags&flag == 0 {
				continue
			}
			name, err := c.text(at)
			if err != nil {
				return nil, err
			}
			at += int64(len(name)) + 1
		}
	}
	for range folders {
		var f [8]byte
		if _, err := r.ReadAt(f[:], at); err != nil {
			return nil, cut(err)
		}
		c.folders = append(c.folders, cabFolder{int64(binary.LittleEndian.Uint32(f[:])), int(binary.LittleEndian.Uint16(f[4:])), binary.LittleEndian.Uint16(f[6:]) & 15})
		at += 8 + extra
	}
	return c, nil
}

// text is what stands at a place up to the first zero.
func (c *Cab) text(at int64) (string, error) {
	b := make([]byte, 257)
	n, err := c.r.ReadAt(b, at)
	s := cString(b[:n])
	switch {
	case len(s) < n:
		return s, nil
	case n == len(b):
		return "", damaged("a name in a cabinet")
	}
	return "", cut(err)
}

// Next goes to the next file; io.EOF is the end.
func (c *Cab) Next() (*Header, error) {
	if c.files == 0 {
		return nil, io.EOF
	}
	var b [16]byte
	if _, err := c.r.ReadAt(b[:], c.at); err != nil {
		return nil, cut(err)
	}
	name, err := c.text(c.at + int64(len(b)))
	if err != nil {
		return nil, err
	}
	c.at, c.files = c.at+int64(len(b)+len(name))+1, c.files-1
	half := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	h := &Header{Size: int64(binary.LittleEndian.Uint32(b[:])), Packed: -1, Modified: dosTime(half(10), half(12)), Regular: true}
	h.Name = zipName([]byte(name), (half(14)&cabUTF8)<<4) // the flag of zip
	c.left = h.Size
	if h.Err = c.open(int(half(8)), int64(binary.LittleEndian.Uint32(b[4:]))); h.Err != nil {
		c.left = 0
	}
	return h, nil
}

// open goes to a place in a folder.
func (c *Cab) open(folder int, at int64) error {
	if folder >= 0xfffd {
		return unread("it goes on in another volume")
	}
	if folder >= len(c.folders) {
		return damaged("a folder that is not there")
	}
	f := c.folders[folder]
	switch f.method {
	case cabStored, cabMSZIP:
	case cabLZX:
		return unread("packed by LZX")
	case cabQuantum:
		return unread("packed by Quantum")
	default:
		return unread("of method %d", f.method)
	}
	if c.folder != folder {
		c.folder, c.in = folder, &cabBlocks{c: c, f: f, at: f.at}
	}
	if at < c.in.given {
		return unread("its bytes are those of another member too")
	}
	return skip(c.in, at-c.in.given)
}

// Read reads of the file.
func (c *Cab) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); c.left > 0 {
		err = cut(err)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// cabBlocks is the content of a folder.
type cabBlocks struct {
	c     *Cab
	f     cabFolder
	at    int64 // of the next block
	given int64
	out   []byte // of the block, what is left
	past  []byte // what came last
	z     io.ReadCloser
}

func (b *cabBlocks) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.f.blocks == 0 {
			return 0, io.EOF
		}
		b.f.blocks--
		if err := b.block(); err != nil {
			b.f.blocks = 0
			return 0, err
		}
	}
	n := copy(p, b.out)
	b.out, b.given = b.out[n:], b.given+int64(n)
	return n, nil
}

// block reads the next one.
func (b *cabBlocks) block() error {
	var head [8]byte
	if _, err := b.c.r.ReadAt(head[:], b.at); err != nil {
		return cut(err)
	}
	packed, size := int64(binary.LittleEndian.Uint16(head[4:])), int(binary.LittleEndian.Uint16(head[6:]))
	at := b.at + 8 + b.c.reserve
	b.at = at + packed
	switch {
	case size == 0:
		return unread("it goes on in another volume")
	case size > cabWindow:
		return damaged("a block of %d bytes", size)
	}
	in := io.NewSectionReader(b.c.r, at, packed)
	out := make([]byte, size)
	if b.f.method == cabStored {
		if _, err := io.ReadFull(in, out); err != nil {
			return cut(err)
		}
		b.out = out
		return nil
	}
	var mark [2]byte
	if _, err := io.ReadFull(in, mark[:]); err != nil || string(mark[:]) != "CK" {
		return damaged("a block of MSZIP")
	}
	if b.z == nil {
		b.z = flate.NewReaderDict(in, b.past)
	} else if err := b.z.(flate.Resetter).Reset(in, b.past); err != nil {
		return err
	}
	if _, err := io.ReadFull(b.z, out); err != nil {
		return cut(err)
	}
	b.out, b.past = out, append(b.past, out...)
	b.past = b.past[max(0, len(b.past)-cabWindow):]
	return nil
}
