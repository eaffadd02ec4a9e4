package unpack

import (
	"encoding/binary"
	"io"
)

// A Zoo reads an archive of zoo: a chain of entries, each of which says where its
// content and the next entry stand. Read are stored members and those of method 2,
// which is that of -lh5-; those of method 1 (LZW, before 1991) are told of.
type Zoo struct {
	r    io.ReaderAt
	size int64
	next int64
	m    io.Reader
}

const (
	zooTag   = 0xfdc4a7dc
	zooEntry = 51 // bytes of an entry of type 1
	zooMore  = 58 // of type 2, before its names
)

// NewZoo reads the head of the archive.
func NewZoo(r io.ReaderAt, size, _ int64) (*Zoo, error) {
	var b [34]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, cut(err)
	}
	if binary.LittleEndian.Uint32(b[20:]) != zooTag {
		return nil, damaged("header of zoo")
	}
	return &Zoo{r: r, size: size, next: int64(binary.LittleEndian.Uint32(b[24:])), m: eof{}}, nil
}

// Next goes to the next member; io.EOF is the end. Entries stand one behind the
// other, so that a chain cannot be endless.
func (a *Zoo) Next() (*Header, error) {
	for {
		at := a.next
		b := make([]byte, zooMore+2*256)
		n, err := a.r.ReadAt(b, at)
		if n < zooEntry {
			return nil, cut(err)
		}
		b = b[:n]
		if binary.LittleEndian.Uint32(b) != zooTag {
			return nil, damaged("entry of zoo")
		}
		if a.next = int64(binary.LittleEndian.Uint32(b[6:])); a.next == 0 {
			return nil, io.EOF
		}
		if a.next <= at {
			return nil, damaged("entry of zoo")
		}
		if b[30] == 0 { // it is not deleted
			return a.entry(b), nil
		}
	}
}

func (a *Zoo) entry(b []byte) *Header {
	word := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
	half := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	h := &Header{Name: pcName(zooName(b)), Size: word(20), Packed: word(24), Modified: dosTime(half(14), half(16)), Regular: true}
	data := io.NewSectionReader(a.r, min(word(10), a.size), h.Packed)
	switch b[5] {
	case 0:
		a.m = sum16(data, min(h.Size, h.Packed), half(18))
	case 2:
		a.m = sum16(newLZH(data, lzh5, h.Size), h.Size, half(18))
	default:
		h.Err = unread("of method %d", b[5])
		a.m = failing{h.Err}
	}
	return h
}

// zooName is the name of an entry, the long one where there is one.
func zooName(b []byte) string {
	name := cString(b[38:zooEntry])
	if b[4] < 2 || len(b) < zooMore {
		return name
	}
	file, dir := int(b[56]), int(b[57])
	if zooMore+file+dir > len(b) {
		return name
	}
	if file > 0 {
		name = cString(b[zooMore : zooMore+file])
	}
	if folder := cString(b[zooMore+file : zooMore+file+dir]); folder != "" {
		name = folder + "/" + name
	}
	return name
}

// cString is a text up to the first zero.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Read reads of the member.
func (a *Zoo) Read(p []byte) (int, error) { return a.m.Read(p) }
