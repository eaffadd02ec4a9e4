package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"golang.org/x/text/encoding/charmap"
)

// A Zip reads a zip archive, a member at a time: by its directory, of which no
// more than one entry is held, or where there is none, as in a file that is cut,
// by the heads that stand before the members. Members that share their bytes with
// others are not read, nor what is encrypted or on another disk.
type Zip struct {
	r      io.ReaderAt
	size   int64
	base   int64 // what stands before the archive, as a program that unpacks it
	memory int64

	dir     *bufio.Reader // nil when there is no directory
	left    int64         // entries of it
	disk    uint16
	comment string
	next    int64 // where the next head is, without a directory

	taken []span // of members that were given, in order, none touching another
	cur   zipEntry
	body  io.ReadCloser
	sum   hash.Hash32
	n     int64
	over  error // what reading the member has come to
}

type span struct{ from, to int64 }

// A zipEntry is where a member is, and how it is packed.
type zipEntry struct {
	Header
	method, flags uint16
	crc           uint32
	at, data      int64 // its head, and its content once that is known
	open          bool  // sizes stand behind it, without a directory
	counted       *countBytes
}

const (
	zipLocal   = "PK\x03\x04"
	zipEntrys  = "PK\x01\x02"
	zipEnd     = "PK\x05\x06"
	zipSpanned = "PK\x07\x08"
	zip64Loc   = "PK\x06\x07"
	zip64End   = "PK\x06\x06"
)

// NewZip finds the directory. Decoders take no more than memory bytes.
func NewZip(r io.ReaderAt, size, memory int64) (*Zip, error) {
	z := &Zip{r: r, size: size, memory: memory, sum: crc32.NewIEEE()}
	tail := make([]byte, min(size, 65536+22+20))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if z.directory(tail) {
		return z, nil
	}
	start := make([]byte, 4)
	_, err := r.ReadAt(start, 0)
	switch {
	case err == nil && string(start) == zipSpanned:
		return nil, unread("the first volume of an archive that has its directory in the last")
	case err != nil || string(start) != zipLocal:
		return nil, damaged("no directory of zip")
	}
	return z, nil
}

// Cut reports whether the archive has no directory: members at its end are missing.
func (z *Zip) Cut() bool { return z.dir == nil }

// Comment is what was written about the archive.
func (z *Zip) Comment() string { return z.comment }

// directory finds the directory by the record that ends the archive.
func (z *Zip) directory(tail []byte) bool {
	for i := bytes.LastIndex(tail, []byte(zipEnd)); i >= 0; i = bytes.LastIndex(tail[:i], []byte(zipEnd)) {
		b := tail[i:]
		if len(b) < 22 || len(b) < 22+int(binary.LittleEndian.Uint16(b[20:])) {
			continue
		}
		u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
		z.disk = binary.LittleEndian.Uint16(b[4:])
		z.left = int64(binary.LittleEndian.Uint16(b[10:]))
		size, at, end := u32(12), u32(16), z.size-int64(len(b))
		z.comment = string(b[22 : 22+int(binary.LittleEndian.Uint16(b[20:]))])
		if i >= 20 && string(tail[i-20:i-16]) == zip64Loc {
			z.zip64(tail[i-20:i], &size, &at, &end)
		}
		z.base = end - size - at
		if z.base < 0 || size < 0 || at < 0 {
			if z.base = 0; at < 0 || size < 0 || at > z.size {
				continue
			}
		}
		var magic [4]byte
		z.r.ReadAt(magic[:], z.base+at)
		if z.left == 0 || string(magic[:]) == zipEntrys {
			z.dir = bufio.NewReaderSize(io.NewSectionReader(z.r, z.base+at, z.size-z.base-at), 16<<10)
			return true
		}
	}
	return false
}

// zip64 takes the larger numbers, from the record that the locator points to.
func (z *Zip) zip64(loc []byte, size, at, end *int64) {
	var b [56]byte
	for _, where := range []int64{int64(binary.LittleEndian.Uint64(loc[8:])), *end - 20 - 56} {
		if where < 0 {
			continue
		}
		if _, err := z.r.ReadAt(b[:], where); err == nil && string(b[:4]) == zip64End {
			z.left = int64(binary.LittleEndian.Uint64(b[32:]))
			*size, *at, *end = int64(binary.LittleEndian.Uint64(b[40:])), int64(binary.LittleEndian.Uint64(b[48:])), where
			return
		}
	}
}

// Next goes to the next member; io.EOF is the end.
func (z *Zip) Next() (*Header, error) {
	if err := z.close(); err != nil {
		return nil, err
	}
	var err error
	if z.dir != nil {
		err = z.entry()
	} else {
		err = z.head()
	}
	if err != nil {
		return nil, err
	}
	h := z.cur.Header
	return &h, nil
}

// entry reads an entry of the directory.
func (z *Zip) entry() error {
	if z.left <= 0 {
		return io.EOF
	}
	z.left--
	var b [46]byte
	if _, err := io.ReadFull(z.dir, b[:]); err != nil {
		return cut(err)
	}
	if string(b[:4]) != zipEntrys {
		return damaged("directory of zip")
	}
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
	text := make([]byte, int(u16(28))+int(u16(30))+int(u16(32)))
	if _, err := io.ReadFull(z.dir, text); err != nil {
		return cut(err)
	}
	name, extra := text[:u16(28)], text[u16(28):][:u16(30)]
	e := zipEntry{method: u16(10), flags: u16(8), crc: uint32(u32(16)), at: u32(42), data: -1}
	e.Header = Header{Name: zipName(name, e.flags), Packed: u32(20), Size: u32(24), Modified: dosTime(u16(14), u16(12))}
	e.extra(extra)
	e.Regular = !strings.HasSuffix(e.Name, "/")
	if mode := u32(38) >> 16; u16(4)>>8 == 3 && mode&0o170000 != 0 && mode&0o170000 != 0o100000 {
		e.Regular = false
	}
	z.cur = e
	if z.cur.Regular {
		z.cur.Err = z.readable(u16(34))
	}
	return nil
}

// readable tells whether the member in hand can be read, and takes its bytes.
func (z *Zip) readable(disk uint16) error {
	e := &z.cur
	if disk != z.disk && disk != 0xffff {
		return unread("on disk %d of several", disk+1)
	}
	if e.flags&1 != 0 {
		return unread("encrypted")
	}
	e.at += z.base
	var b [30]byte
	if _, err := z.r.ReadAt(b[:], e.at); err != nil || string(b[:4]) != zipLocal {
		return damaged("no head of the member")
	}
	e.data = e.at + 30 + int64(binary.LittleEndian.Uint16(b[26:])) + int64(binary.LittleEndian.Uint16(b[28:]))
	if e.Packed < 0 || e.Size < 0 || e.Packed > z.size-e.data {
		return damaged("longer than the archive")
	}
	if !z.take(span{e.at, e.data + e.Packed}) {
		return unread("its bytes are those of another member too")
	}
	return nil
}

// take notes the bytes of a member; false means that some are taken.
func (z *Zip) take(s span) bool {
	i, _ := slices.BinarySearchFunc(z.taken, s, func(a, b span) int {
		if a.to <= b.from {
			return -1
		}
		return 1
	})
	if i < len(z.taken) && z.taken[i].from < s.to {
		return false
	}
	before := i > 0 && z.taken[i-1].to == s.from
	behind := i < len(z.taken) && z.taken[i].from == s.to
	switch {
	case before && behind:
		z.taken[i-1].to = z.taken[i].to
		z.taken = slices.Delete(z.taken, i, i+1)
	case before:
		z.taken[i-1].to = s.to
	case behind:
		z.taken[i].from = s.from
	default:
		z.taken = slices.Insert(z.taken, i, s)
	}
	return true
}

// head reads the head before a member, where there is no directory.
func (z *Zip) head() error {
	var b [30]byte
	if _, err := z.r.ReadAt(b[:], z.next); err != nil {
		return cut(err)
	}
	if string(b[:4]) != zipLocal {
		return io.ErrUnexpectedEOF
	}
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
	text := make([]byte, int(u16(26))+int(u16(28)))
	if _, err := z.r.ReadAt(text, z.next+30); err != nil {
		return cut(err)
	}
	e := zipEntry{method: u16(8), flags: u16(6), crc: uint32(u32(14)), at: z.next, data: z.next + 30 + int64(len(text))}
	e.Header = Header{Name: zipName(text[:u16(26)], e.flags), Packed: u32(18), Size: u32(22), Modified: dosTime(u16(12), u16(10))}
	e.extra(text[u16(26):])
	e.Regular = !strings.HasSuffix(e.Name, "/")
	e.open = e.flags&8 != 0
	switch {
	case e.flags&1 != 0:
		e.Err = unread("encrypted")
	case e.open && e.method != 8:
		e.Err = unread("its length stands behind it")
	}
	if e.open && e.Err != nil || e.Packed < 0 || e.Packed > z.size-e.data && !e.open {
		z.next = z.size // nobody knows where the next is
		if e.Err == nil {
			e.Packed = z.size - e.data
		}
	} else if !e.open {
		z.next = e.data + e.Packed
	}
	z.cur = e
	return nil
}

// extra takes sizes and places of zip64, and the time of Unix.
func (e *zipEntry) extra(b []byte) {
	for len(b) >= 4 {
		id, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		b = b[4:]
		if n > len(b) {
			return
		}
		f := b[:n]
		b = b[n:]
		switch {
		case id == 1:
			for _, v := range []*int64{&e.Size, &e.Packed, &e.at} {
				if *v == 0xffffffff && len(f) >= 8 {
					*v = int64(binary.LittleEndian.Uint64(f))
					f = f[8:]
				}
			}
		case id == 0x5455 && n >= 5 && f[0]&1 != 0:
			e.Modified = unix(int64(binary.LittleEndian.Uint32(f[1:])))
		}
	}
}

// zipName is a name as text: UTF-8, or what the first PCs had.
func zipName(b []byte, flags uint16) string {
	if flags&0x800 == 0 && !utf8.Valid(b) {
		if t, err := charmap.CodePage437.NewDecoder().Bytes(b); err == nil {
			b = t
		}
	}
	return strings.ReplaceAll(string(b), "\\", "/")
}

// dosTime is a date and a time of MS-DOS, whose zone nobody knows.
func dosTime(date, clock uint16) time.Time {
	if date == 0 {
		return time.Time{}
	}
	return time.Date(1980+int(date>>9), time.Month(date>>5&15), int(date&31), int(clock>>11), int(clock>>5&63), int(clock&31)*2, 0, time.UTC)
}

// Read reads of the member, and at its end checks its sum.
func (z *Zip) Read(p []byte) (int, error) {
	if z.over == nil && z.body == nil {
		z.over = z.open()
	}
	if z.over != nil {
		return 0, z.over
	}
	n, err := z.body.Read(p)
	z.sum.Write(p[:n])
	z.n += int64(n)
	if errors.Is(err, io.EOF) {
		err = z.check()
	}
	z.over = err
	return n, err
}

func (z *Zip) open() error {
	e := &z.cur
	if !e.Regular {
		return io.EOF
	}
	if e.Err != nil {
		return e.Err
	}
	z.sum.Reset()
	z.n = 0
	in := io.Reader(io.NewSectionReader(z.r, e.data, e.Packed))
	if e.open {
		e.counted = &countBytes{r: bufio.NewReader(io.NewSectionReader(z.r, e.data, z.size-e.data))}
		in = e.counted
	}
	var err error
	z.body, err = z.decoder(e, in)
	return err
}

// decoder unpacks by a method.
func (z *Zip) decoder(e *zipEntry, in io.Reader) (io.ReadCloser, error) {
	switch e.method {
	case 0:
		return io.NopCloser(in), nil
	case 8:
		return flate.NewReader(in), nil
	case 9:
		return io.NopCloser(newDeflate64(in)), nil
	case 12:
		return io.NopCloser(bzip2.NewReader(in)), nil
	case 14:
		src := newSource(in)
		src.byte()
		src.byte()
		n := int(src.byte()) | int(src.byte())<<8
		props := make([]byte, min(n, 5))
		if _, err := io.ReadFull(src, props); err != nil {
			return nil, cut(err)
		}
		size := e.Size
		if e.flags&2 != 0 {
			size = -1
		}
		l, err := rawLZMA(src, props, size, z.memory)
		return io.NopCloser(l), err
	case 93:
		return newZstd(in, z.memory)
	case 95:
		x, err := xz.NewReader(in, uint32(min(z.memory, 1<<30)))
		return io.NopCloser(x), err
	}
	return nil, unread("%smethod %d of zip", zipMethods(e.method), e.method)
}

// zipMethods names the methods that are not read.
func zipMethods(m uint16) string {
	switch m {
	case 1:
		return "shrunk, "
	case 2, 3, 4, 5:
		return "reduced, "
	case 6:
		return "imploded, "
	case 94:
		return "MP3, "
	case 96:
		return "JPEG, "
	case 97:
		return "WavPack, "
	case 98:
		return "PPMd, "
	case 99:
		return "encrypted, "
	}
	return ""
}

// newZstd reads zstd in one goroutine, within memory.
func newZstd(in io.Reader, memory int64) (io.ReadCloser, error) {
	m := uint64(max(memory, 1<<20))
	d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(m), zstd.WithDecoderMaxMemory(m))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// check compares a member that was read to its end with what was said of it.
func (z *Zip) check() error {
	e := &z.cur
	if e.open {
		var b [16]byte
		at := e.data + e.counted.n
		n, _ := z.r.ReadAt(b[:], at)
		if n >= 4 && string(b[:4]) == "PK\x07\x08" {
			e.crc, z.next = binary.LittleEndian.Uint32(b[4:]), at+16
		} else {
			e.crc, z.next = binary.LittleEndian.Uint32(b[:]), at+12
		}
	} else if z.n != e.Size {
		return damaged("%d bytes, not %d", z.n, e.Size)
	}
	if z.sum.Sum32() != e.crc {
		return damaged("wrong checksum")
	}
	return io.EOF
}

// close ends the member; without a directory what follows one whose length is not
// told is found by reading it.
func (z *Zip) close() error {
	if z.cur.open && z.cur.Err == nil && z.cur.Name != "" {
		if _, err := io.Copy(io.Discard, z); err != nil {
			z.next = z.size
		}
	}
	if z.body != nil {
		z.body.Close()
	}
	z.body, z.over, z.cur = nil, nil, zipEntry{}
	return nil
}

// countBytes counts what a decoder takes that reads byte by byte, and so no more
// than it needs.
type countBytes struct {
	r *bufio.Reader
	n int64
}

func (c *countBytes) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *countBytes) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
