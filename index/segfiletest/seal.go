// Package segfiletest helps to test what reads segments: it takes files apart
// and gives damaged ones sums that fit.
package segfiletest

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"harvest/index/segfile"
)

// An Extent is where a part of a file is.
type Extent struct{ From, To int }

const (
	end   = "harvest\n"
	tail  = 8 + len(end)
	chunk = 64 << 10
)

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// table is where that of a file is, if there is room for one.
func table(b []byte, f *segfile.Format) (x Extent, ok bool) {
	n := len(b)
	if n < len(f.Magic)+4+tail {
		return x, false
	}
	size := uint64(binary.LittleEndian.Uint32(b[n-tail:]))
	if size+uint64(len(f.Magic)+4+tail) > uint64(n) {
		return x, false
	}
	return Extent{n - tail - int(size), n - tail}, true
}

// Extents are those of a file's parts: "magic", the sections, "sums", and
// "table" for all behind them; fewer of one that is damaged.
func Extents(b []byte, f *segfile.Format) map[string]Extent {
	parts := map[string]Extent{"magic": {0, len(f.Magic)}}
	x, ok := table(b, f)
	if !ok {
		return nil
	}
	r := segfile.Reader{B: b[x.From:x.To]}
	for _, name := range append(slices.Clone(f.Sections), "sums") {
		at, size := r.Uvarint(), r.Uvarint()
		if r.Bad || at > uint64(x.From-4) || size > uint64(x.From-4)-at {
			return parts
		}
		parts[name] = Extent{int(at), int(at + size)}
	}
	parts["table"] = Extent{parts["sums"].To, len(b)}
	return parts
}

// Seal gives a segment the sums that its bytes have, so that what reads them
// must take them as they are. It tells whether there is room for any.
func Seal(b []byte, f *segfile.Format) bool {
	x, ok := table(b, f)
	if !ok {
		return false
	}
	copy(b, f.Magic)
	copy(b[len(b)-len(end):], end)
	le := binary.LittleEndian
	le.PutUint32(b[len(b)-tail+4:], sum(b[x.From:x.To]))
	parts := Extents(b, f)
	sums, ok := parts["sums"]
	if !ok {
		return true
	}
	at := sums.From
	for _, name := range f.Sections {
		for c := range slices.Chunk(b[parts[name].From:parts[name].To], chunk) {
			if at+4 > sums.To {
				return true
			}
			le.PutUint32(b[at:], sum(c))
			at += 4
		}
	}
	le.PutUint32(b[x.From-4:], sum(b[sums.From:sums.To]))
	return true
}

// SealManifest is b with the checksum that it has.
func SealManifest(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	b = slices.Clone(b)
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], sum(b[:n]))
	return b
}
