package essence

import (
	"encoding/binary"
	"io"
)

// A bin reads binary headers at any offset. Past the end there are zeros: what
// is cut gives what there is of it.
type bin struct {
	r    io.ReaderAt
	size int64
}

// maxField is how much is read at a time, whatever length is claimed.
const maxField = 64 << 10

// at is n bytes at an offset, fewer if there are fewer.
func (b *bin) at(off int64, n int) []byte {
	if off < 0 || off >= b.size || n <= 0 {
		return nil
	}
	p := make([]byte, min(int64(min(n, maxField)), b.size-off))
	got, _ := b.r.ReadAt(p, off)
	return p[:got]
}

func (b *bin) has(off int64, s string) bool { return string(b.at(off, len(s))) == s }

// full is n bytes, those that are missing zero.
func (b *bin) full(off int64, n int) []byte {
	p := make([]byte, n)
	copy(p, b.at(off, n))
	return p
}

func (b *bin) u8(off int64) int      { return int(b.full(off, 1)[0]) }
func (b *bin) be16(off int64) int    { return int(binary.BigEndian.Uint16(b.full(off, 2))) }
func (b *bin) be32(off int64) int64  { return int64(binary.BigEndian.Uint32(b.full(off, 4))) }
func (b *bin) be64(off int64) uint64 { return binary.BigEndian.Uint64(b.full(off, 8)) }
func (b *bin) le16(off int64) int    { return int(binary.LittleEndian.Uint16(b.full(off, 2))) }
func (b *bin) le32(off int64) int64  { return int64(binary.LittleEndian.Uint32(b.full(off, 4))) }
func (b *bin) le64(off int64) uint64 { return binary.LittleEndian.Uint64(b.full(off, 8)) }
