package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf16"
)

// An ISO reads an image of ISO 9660, with the names of Rock Ridge or else of
// Joliet. Folders are read one after another, each entry when it is its turn.
type ISO struct {
	r    io.ReaderAt
	size int64
	wide bool // names are Joliet's

	dirs []isoDir          // that are to be read
	seen map[uint32]bool   // where folders that were read begin
	rec  *io.SectionReader // of the folder that is read
	off  int64
	dir  string
	deep int

	body *io.SectionReader
}

type isoDir struct {
	at, size uint32
	path     string
	depth    int
}

const (
	isoSector  = 2048
	maxISODirs = 1 << 16
	maxISODeep = 64
)

// IsISO reports whether an image has a volume descriptor.
func IsISO(r io.ReaderAt) bool {
	var b [6]byte
	_, err := r.ReadAt(b[:], 16*isoSector)
	return err == nil && string(b[1:]) == "CD001"
}

// NewISO reads the volume descriptors.
func NewISO(r io.ReaderAt, size int64) (*ISO, error) {
	i := &ISO{r: r, size: size, seen: make(map[uint32]bool)}
	found := false
	for s := int64(16); s < 32; s++ {
		b := make([]byte, isoSector)
		if _, err := r.ReadAt(b, s*isoSector); err != nil {
			break
		}
		if string(b[1:6]) != "CD001" || b[0] == 255 {
			break
		}
		root := isoDir{at: binary.LittleEndian.Uint32(b[158:]), size: binary.LittleEndian.Uint32(b[166:])}
		joliet := b[0] == 2 && b[88] == '%' && b[89] == '/' && strings.ContainsRune("@CE", rune(b[90]))
		switch {
		case b[0] == 1:
			i.dirs, found = []isoDir{root}, true
		case joliet && !i.rockRidge():
			i.dirs, i.wide = []isoDir{root}, true
		}
	}
	if !found {
		return nil, damaged("no volume of ISO 9660")
	}
	return i, nil
}

// rockRidge tells whether the root's first entry bears its mark.
func (i *ISO) rockRidge() bool {
	if len(i.dirs) == 0 {
		return false
	}
	b := make([]byte, 256)
	n, _ := i.r.ReadAt(b, int64(i.dirs[0].at)*isoSector)
	return n > 34 && bytes.Contains(b[34:min(n, max(int(b[0]), 34))], []byte("SP\x07\x01"))
}

// Next goes to the next file; io.EOF is the end.
func (i *ISO) Next() (*Header, error) {
	i.body = nil
	for {
		if i.rec == nil {
			if len(i.dirs) == 0 {
				return nil, io.EOF
			}
			i.enter()
			continue
		}
		b, err := i.record()
		if err != nil {
			i.rec = nil
			if errors.Is(err, io.EOF) {
				continue
			}
			return nil, err
		}
		if h := i.entry(b); h != nil {
			return h, nil
		}
	}
}

// enter begins the next folder, unless it was read.
func (i *ISO) enter() {
	d := i.dirs[0]
	i.dirs = i.dirs[1:]
	if i.seen[d.at] || len(i.seen) > maxISODirs || d.depth > maxISODeep {
		return
	}
	i.seen[d.at] = true
	i.rec = io.NewSectionReader(i.r, int64(d.at)*isoSector, min(int64(d.size), max(i.size-int64(d.at)*isoSector, 0)))
	i.off, i.dir, i.deep = 0, d.path, d.depth
}

// record reads a folder's next record; none spans sectors.
func (i *ISO) record() ([]byte, error) {
	for {
		var n [1]byte
		if _, err := i.rec.ReadAt(n[:], i.off); err != nil {
			return nil, err
		}
		if n[0] == 0 {
			i.off += isoSector - i.off%isoSector
			continue
		}
		b := make([]byte, n[0])
		if _, err := i.rec.ReadAt(b, i.off); err != nil {
			return nil, cut(err)
		}
		i.off += int64(n[0])
		if len(b) < 34 || 33+int(b[32]) > len(b) {
			return nil, damaged("a folder of ISO 9660")
		}
		return b, nil
	}
}

// entry is the file that a record is about; nil if it is none.
func (i *ISO) entry(b []byte) *Header {
	at, size := binary.LittleEndian.Uint32(b[2:]), binary.LittleEndian.Uint32(b[10:])
	id := b[33 : 33+int(b[32])]
	if len(id) == 1 && id[0] < 2 { // the folder itself, and the one above
		return nil
	}
	rest := b[33+len(id):]
	if len(id)%2 == 0 && len(rest) > 0 { // filled up to an even length
		rest = rest[1:]
	}
	name := i.name(id, rest)
	full := path.Join(i.dir, name)
	if b[25]&2 != 0 {
		if len(i.dirs) < maxISODirs {
			i.dirs = append(i.dirs, isoDir{at, size, full, i.deep + 1})
		}
		return nil
	}
	if i.isLink(rest) {
		return &Header{Name: full}
	}
	h := &Header{Name: full, Size: int64(size), Packed: int64(size), Regular: b[25]&0x80 == 0,
		Modified: time.Date(1900+int(b[18]), time.Month(b[19]), int(b[20]), int(b[21]), int(b[22]), int(b[23]), 0, time.FixedZone("", int(int8(b[24]))*900))}
	from := int64(at) * isoSector
	if !h.Regular {
		h.Regular, h.Err = true, unread("in several extents")
	} else if from+int64(size) > i.size {
		h.Err = damaged("longer than the image")
	}
	i.body = io.NewSectionReader(i.r, from, int64(size))
	return h
}

// name is a file's name, by Rock Ridge if it says one.
func (i *ISO) name(id, use []byte) string {
	if i.wide {
		u := make([]uint16, len(id)/2)
		for j := range u {
			u[j] = binary.BigEndian.Uint16(id[2*j:])
		}
		return strings.TrimSuffix(string(utf16.Decode(u)), ";1")
	}
	long := ""
	for _, f := range i.uses(use) {
		if string(f[:2]) == "NM" && len(f) > 5 {
			long += string(f[5:])
		}
	}
	if long != "" {
		return long
	}
	name, _, _ := strings.Cut(string(id), ";")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// uses are the fields that systems add to a record, with those that had no room in
// it: as many as one more record, in up to 8 places.
func (i *ISO) uses(b []byte) (all [][]byte) {
	for range 8 {
		var next []byte
		for len(b) >= 4 && b[2] >= 4 && int(b[2]) <= len(b) {
			f := b[:b[2]]
			b = b[b[2]:]
			if string(f[:2]) == "CE" && len(f) >= 28 {
				le := binary.LittleEndian.Uint32
				next = make([]byte, min(le(f[20:]), isoSector))
				n, _ := i.r.ReadAt(next, int64(le(f[4:]))*isoSector+int64(le(f[12:])))
				next = next[:n]
				continue
			}
			all = append(all, f)
		}
		if b = next; b == nil {
			break
		}
	}
	return all
}

// isLink tells a symbolic link, or a device, by its mode.
func (i *ISO) isLink(use []byte) bool {
	for _, f := range i.uses(use) {
		if string(f[:2]) == "PX" && len(f) >= 8 {
			return binary.LittleEndian.Uint32(f[4:])&0o170000 != 0o100000
		}
	}
	return false
}

// Read reads of the file.
func (i *ISO) Read(p []byte) (int, error) {
	if i.body == nil {
		return 0, io.EOF
	}
	return i.body.Read(p)
}
