package essence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"unicode/utf16"
)

// maxMembers bounds the names that are looked at to tell a container's type.
const maxMembers = 4096

// zipNames are the names of a zip archive's members whose headers stand in head,
// which is the archive's beginning, and of its index if it ends there. Nothing
// is unpacked: a header is found by its mark, for the size of what is before it
// may be unknown.
func zipNames(head []byte) []string {
	var all []string
	for off := 0; len(all) < maxMembers; {
		i := bytes.Index(head[off:], []byte("PK"))
		if i < 0 || off+i+30 > len(head) {
			break
		}
		off += i
		h, at := head[off:], 0
		switch string(h[2:4]) {
		case "\x03\x04":
			at = 30
		case "\x01\x02":
			at = 46
		default:
			off += 2
			continue
		}
		if len(h) < at {
			break
		}
		size := int(binary.LittleEndian.Uint16(h[at-4:]))
		if at == 46 {
			size = int(binary.LittleEndian.Uint16(h[28:]))
		}
		if size == 0 || size > 1024 || at+size > len(h) {
			off += 2
			continue
		}
		all = append(all, string(h[at:at+size]))
		off += at + size
	}
	return all
}

// oleNames are the names in the directory of a compound file, that of all its
// streams and storages. The directory may stand anywhere; all of the content is
// taken if it is not in its head.
func (s *sight) oleNames() []string {
	names, err := oleDirectory(bytes.NewReader(s.head))
	if err == nil || s.w == nil || s.c.rest == nil {
		return names
	}
	r, _, err := s.w.whole(s.c)
	if err != nil {
		return names
	}
	names, _ = oleDirectory(r)
	return names
}

var errOLE = errors.New("it is no compound file")

// oleDirectory reads the names of a compound file's directory: sectors in a
// chain, each the successor that the allocation table says.
func oleDirectory(r io.ReaderAt) (names []string, err error) {
	var h [512]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return nil, err
	}
	shift := binary.LittleEndian.Uint16(h[30:])
	if shift != 9 && shift != 12 {
		return nil, errOLE
	}
	size := int64(1) << shift
	buf := make([]byte, size)
	sector := binary.LittleEndian.Uint32(h[48:])
	seen := make([]uint32, 0, 16)
	for sector < 0xfffffffa && len(names) < maxMembers && !slices.Contains(seen, sector) {
		seen = append(seen, sector)
		if _, err := r.ReadAt(buf, (int64(sector)+1)*size); err != nil {
			return names, err
		}
		for e := buf; len(e) >= 128; e = e[128:] {
			if n := oleName(e[:128]); n != "" {
				names = append(names, n)
			}
		}
		if sector, err = oleNext(r, h[:], size, sector); err != nil {
			return names, err
		}
	}
	return names, nil
}

// oleName is the name of a directory entry, "" if it is free.
func oleName(e []byte) string {
	n := int(binary.LittleEndian.Uint16(e[64:]))
	if e[66] == 0 || n < 2 || n > 64 {
		return ""
	}
	u := make([]uint16, 0, 32)
	for i := 0; i+2 < n; i += 2 {
		u = append(u, binary.LittleEndian.Uint16(e[i:]))
	}
	return string(utf16.Decode(u))
}

// oleNext is the sector that follows another. Only the part of the allocation
// table that the header names is looked at: a directory past the first 7 MB of
// a file is told by what stands before it.
func oleNext(r io.ReaderAt, h []byte, size int64, sector uint32) (uint32, error) {
	per := uint32(size / 4)
	at := sector / per
	if at >= 109 {
		return 0xfffffffe, nil
	}
	table := binary.LittleEndian.Uint32(h[76+4*at:])
	if table >= 0xfffffffa {
		return 0, errOLE
	}
	var next [4]byte
	if _, err := r.ReadAt(next[:], (int64(table)+1)*size+int64(sector%per)*4); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(next[:]), nil
}
