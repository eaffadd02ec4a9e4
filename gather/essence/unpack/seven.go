package unpack

import (
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"unicode/utf16"
)

// A Seven reads an archive of 7z. Its header stands at the end, mostly packed
// itself; the members stand one after another in folders, each a chain of
// decoders. Known are copy, LZMA, LZMA2, deflate, deflate64, bzip2, zstd, delta
// and the filters for programs of x86.
type Seven struct {
	r      io.ReaderAt
	size   int64
	memory int64

	folders []*sevenFolder
	files   sevenFiles
	file    int // next
	folder  int // whose streams are being read
	sub     int // streams of it that were given

	in   io.Reader // of the folder
	err  error     // why it cannot be read
	left int64     // of the member
	crc  uint32
	has  bool // crc is known
	sum  hash.Hash32
}

// sevenFiles are the names and the rest, as they stand in the header.
type sevenFiles struct {
	n            int
	names        []byte // UTF-16, each ended by a zero
	empty        []bool
	emptyFile    []bool
	modified     []byte
	hasModified  []bool
	attributes   []byte
	hasAttribute []bool
}

// maxSevenHeader bounds the header, and with it what is held of an archive.
const maxSevenHeader = 32 << 20

// NewSeven reads the header. Decoders take no more than memory bytes.
func NewSeven(r io.ReaderAt, size, memory int64) (*Seven, error) {
	s := &Seven{r: r, size: size, memory: memory, folder: -1, sum: crc32.NewIEEE()}
	var h [32]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return nil, cut(err)
	}
	if string(h[:6]) != "7z\xbc\xaf\x27\x1c" {
		return nil, damaged("no magic of 7z")
	}
	at, n := binary.LittleEndian.Uint64(h[12:]), binary.LittleEndian.Uint64(h[20:])
	switch {
	case crc32.ChecksumIEEE(h[12:]) != binary.LittleEndian.Uint32(h[8:]):
		return nil, damaged("wrong checksum")
	case n == 0:
		return s, nil
	case n > maxSevenHeader:
		return nil, unread("a header of %d bytes", n)
	case at > uint64(size) || at+n+32 > uint64(size):
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, int64(at)+32); err != nil {
		return nil, cut(err)
	}
	if crc32.ChecksumIEEE(b) != binary.LittleEndian.Uint32(h[28:]) {
		return nil, damaged("wrong checksum of the header")
	}
	return s, s.header(b)
}

// header reads the header, unpacking it as often as it is packed.
func (s *Seven) header(b []byte) (err error) {
	defer func() {
		if r := recover(); r != nil { // sevenBytes gives up so
			short, ok := r.(sevenShort)
			if !ok {
				panic(r)
			}
			err = damaged("header of 7z: %s", string(short))
		}
	}()
	for range 4 {
		p := &sevenBytes{b}
		switch id := p.number(); id {
		case 0x01:
			s.main(p)
			return nil
		case 0x17:
			folders := p.streams()
			if len(folders) != 1 || folders[0].size() > maxSevenHeader {
				return unread("a header in %d folders", len(folders))
			}
			in, err := s.open(folders[0])
			if err != nil {
				return err
			}
			b, err = io.ReadAll(io.LimitReader(in, folders[0].size()))
			if err != nil {
				return cut(err)
			}
			if c := folders[0].crc; c != nil && *c != crc32.ChecksumIEEE(b) {
				return damaged("wrong checksum of the header")
			}
		default:
			return damaged("header of 7z: %#x", id)
		}
	}
	return damaged("a header packed again and again")
}

// Next goes to the next member; io.EOF is the end.
func (s *Seven) Next() (*Header, error) {
	if s.left > 0 && s.err == nil {
		if _, err := io.Copy(io.Discard, s); err != nil && s.err == nil && !errors.Is(err, ErrDamaged) {
			s.err = err
		}
	}
	s.left = 0
	f := &s.files
	if s.file >= f.n {
		return nil, io.EOF
	}
	h := &Header{Name: f.name(), Packed: -1, Regular: true}
	i := s.file
	s.file++
	if len(f.hasModified) > 0 && f.hasModified[i] && len(f.modified) >= 8 {
		h.Modified = unix(int64(binary.LittleEndian.Uint64(f.modified)/1e7) - 11644473600)
		f.modified = f.modified[8:]
	}
	if len(f.hasAttribute) > 0 && f.hasAttribute[i] && len(f.attributes) >= 4 {
		a := binary.LittleEndian.Uint32(f.attributes)
		f.attributes = f.attributes[4:]
		if mode := a >> 16; a&0x8000 != 0 && mode&0o170000 != 0o100000 {
			h.Regular = false
		}
	}
	if len(f.empty) > 0 && f.empty[i] {
		file := len(f.emptyFile) > 0 && f.emptyFile[0]
		if len(f.emptyFile) > 0 {
			f.emptyFile = f.emptyFile[1:]
		}
		h.Regular = h.Regular && file
		s.has = false
		return h, nil
	}
	return h, s.member(h)
}

// name takes the next name off.
func (f *sevenFiles) name() string {
	var u []uint16
	for len(f.names) >= 2 {
		c := binary.LittleEndian.Uint16(f.names)
		f.names = f.names[2:]
		if c == 0 {
			break
		}
		if len(u) < maxLongName {
			u = append(u, c)
		}
	}
	return string(utf16.Decode(u))
}

// member sets the reader to the next stream.
func (s *Seven) member(h *Header) error {
	for s.folder < 0 || s.sub >= len(s.folders[s.folder].subs) {
		if s.folder+1 >= len(s.folders) {
			return damaged("more members than streams")
		}
		s.folder++
		s.sub = 0
		if len(s.folders[s.folder].subs) > 0 {
			s.in, s.err = s.open(s.folders[s.folder])
		}
	}
	f := s.folders[s.folder]
	s.left = f.subs[s.sub]
	s.has = f.sums[s.sub] != nil
	if s.has {
		s.crc = *f.sums[s.sub]
	}
	s.sub++
	s.sum.Reset()
	h.Size, h.Err = s.left, s.err
	return nil
}

// Read reads of the member, and at its end checks its sum.
func (s *Seven) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	s.sum.Write(p[:n])
	s.left -= int64(n)
	switch {
	case s.left > 0 && err != nil:
		s.err = cut(err)
		return n, s.err
	case s.left == 0 && s.has && s.sum.Sum32() != s.crc:
		return n, damaged("wrong checksum")
	}
	return n, nil
}
