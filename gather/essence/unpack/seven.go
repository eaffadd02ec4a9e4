package unpack

import (
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf16"

	"github.com/klauspost/compress/flate"
)

// A Seven reads an archive of 7z. Its header stands at the end, mostly packed
// itself; the members stand one after another in folders, each a chain of
// decoders. Known are copy, LZMA, LZMA2, deflate, bzip2, zstd, delta and the
// filter for programs of x86.
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

// A sevenFolder is a chain of decoders with one output.
type sevenFolder struct {
	coders []sevenCoder
	bonds  [][2]int // input, output
	packed []int    // inputs that the packed streams go to
	sizes  []int64  // of the outputs
	at     int64    // where its packed streams begin
	packs  []int64  // their sizes
	crc    *uint32
	subs   []int64 // sizes of its members
	sums   []*uint32
}

type sevenCoder struct {
	id      string
	in, out int
	props   []byte
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

func (f *sevenFolder) size() int64 {
	for i := range f.sizes {
		if !slices.ContainsFunc(f.bonds, func(b [2]int) bool { return b[1] == i }) {
			return f.sizes[i]
		}
	}
	return 0
}

// sevenBytes is what is left of a header. What asks for more than there is ends
// in a panic of sevenShort, which Seven.header makes an error of.
type sevenBytes struct{ b []byte }

type sevenShort string

func (p *sevenBytes) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		panic(sevenShort("it ends early"))
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *sevenBytes) byte() byte { return p.take(1)[0] }

// number reads a number: as many bits as are set at the start of the first byte
// tell how many bytes follow.
func (p *sevenBytes) number() uint64 {
	first := p.byte()
	v, mask := uint64(0), byte(0x80)
	for i := range 8 {
		if first&mask == 0 {
			return v | uint64(first&(mask-1))<<(8*i)
		}
		v |= uint64(p.byte()) << (8 * i)
		mask >>= 1
	}
	return v
}

// count is a number of things each of which takes a byte or more of the header.
func (p *sevenBytes) count() int { return p.upTo(uint64(len(p.b))) }

func (p *sevenBytes) upTo(most uint64) int {
	n := p.number()
	if n > most {
		panic(sevenShort(fmt.Sprintf("%d things", n)))
	}
	return int(n)
}

func (p *sevenBytes) size64() int64 {
	n := p.number()
	if n > 1<<62 {
		panic(sevenShort("a size"))
	}
	return int64(n)
}

func (p *sevenBytes) want(id uint64) {
	if got := p.number(); got != id {
		panic(sevenShort(fmt.Sprintf("%#x, not %#x", got, id)))
	}
}

// bits reads n bits; all is said by a byte before them, if there may be one.
func (p *sevenBytes) bits(n int, all bool) []bool {
	bits := make([]bool, n)
	if all && p.byte() != 0 {
		for i := range bits {
			bits[i] = true
		}
		return bits
	}
	b := p.take(uint64(n+7) / 8)
	for i := range bits {
		bits[i] = b[i/8]&(0x80>>(i%8)) != 0
	}
	return bits
}

func (p *sevenBytes) digests(n int) []*uint32 {
	sums := make([]*uint32, n)
	for i, has := range p.bits(n, true) {
		if has {
			v := binary.LittleEndian.Uint32(p.take(4))
			sums[i] = &v
		}
	}
	return sums
}

// streams reads what is packed where, and how.
func (p *sevenBytes) streams() (folders []*sevenFolder) {
	var packs []int64
	at := int64(0)
	for {
		switch id := p.number(); id {
		case 0x00:
			return folders
		case 0x06:
			at = p.size64()
			packs = p.packs()
		case 0x07:
			folders = p.unpacked()
			for _, f := range folders {
				if len(f.packed) > len(packs) {
					panic(sevenShort("too few packed streams"))
				}
				f.at, f.packs = at, packs[:len(f.packed)]
				packs = packs[len(f.packed):]
				for _, n := range f.packs {
					if at += n; at < 0 {
						panic(sevenShort("a size"))
					}
				}
				f.subs, f.sums = []int64{f.size()}, []*uint32{f.crc}
			}
		case 0x08:
			p.substreams(folders)
		default:
			panic(sevenShort(fmt.Sprintf("%#x among streams", id)))
		}
	}
}

func (p *sevenBytes) packs() []int64 {
	n := p.count()
	packs := make([]int64, n)
	for {
		switch id := p.number(); id {
		case 0x00:
			return packs
		case 0x09:
			for i := range packs {
				packs[i] = p.size64()
			}
		case 0x0a:
			p.digests(n)
		default:
			panic(sevenShort(fmt.Sprintf("%#x among packed streams", id)))
		}
	}
}

func (p *sevenBytes) unpacked() []*sevenFolder {
	p.want(0x0b)
	folders := make([]*sevenFolder, p.count())
	if p.byte() != 0 {
		panic(sevenShort("folders elsewhere"))
	}
	for i := range folders {
		folders[i] = p.folder()
	}
	p.want(0x0c)
	for _, f := range folders {
		for i := range f.sizes {
			f.sizes[i] = p.size64()
		}
	}
	switch id := p.number(); id {
	case 0x00:
		return folders
	case 0x0a:
		for i, sum := range p.digests(len(folders)) {
			folders[i].crc = sum
		}
	default:
		panic(sevenShort(fmt.Sprintf("%#x among folders", id)))
	}
	p.want(0x00)
	return folders
}

func (p *sevenBytes) folder() *sevenFolder {
	f := new(sevenFolder)
	ins, outs := 0, 0
	for range p.upTo(32) {
		flags := p.byte()
		c := sevenCoder{id: string(p.take(uint64(flags & 15))), in: 1, out: 1}
		if flags&0x10 != 0 {
			c.in, c.out = p.upTo(32), p.upTo(32)
		}
		if flags&0x20 != 0 {
			c.props = p.take(p.number())
		}
		ins, outs = ins+c.in, outs+c.out
		f.coders = append(f.coders, c)
	}
	if outs == 0 || ins < outs-1 {
		panic(sevenShort("a folder of nothing"))
	}
	f.sizes = make([]int64, outs)
	for range outs - 1 {
		f.bonds = append(f.bonds, [2]int{p.upTo(uint64(ins)), p.upTo(uint64(outs))})
	}
	n := ins - len(f.bonds)
	if n == 1 {
		for i := range ins {
			if !slices.ContainsFunc(f.bonds, func(b [2]int) bool { return b[0] == i }) {
				f.packed = []int{i}
				break
			}
		}
		return f
	}
	for range n {
		f.packed = append(f.packed, p.upTo(uint64(ins)))
	}
	return f
}

// substreams reads how the output of each folder is divided.
func (p *sevenBytes) substreams(folders []*sevenFolder) {
	id := p.number()
	if id == 0x0d {
		total := uint64(0)
		for _, f := range folders {
			n := p.upTo(maxSevenHeader / 4)
			if total += uint64(n); total > maxSevenHeader/4 {
				panic(sevenShort("too many members"))
			}
			f.subs, f.sums = make([]int64, n), make([]*uint32, n)
			if n == 1 {
				f.sums[0] = f.crc
			}
		}
		id = p.number()
	}
	for _, f := range folders {
		left := f.size()
		for i := range f.subs {
			if i == len(f.subs)-1 {
				f.subs[i] = left
			} else if id == 0x09 {
				f.subs[i] = p.size64()
			}
			if left -= f.subs[i]; left < 0 {
				panic(sevenShort("members longer than their folder"))
			}
		}
	}
	if id == 0x09 {
		id = p.number()
	}
	if id == 0x0a {
		p.substreamSums(folders)
		id = p.number()
	}
	if id != 0 {
		panic(sevenShort(fmt.Sprintf("%#x among members", id)))
	}
}

func (p *sevenBytes) substreamSums(folders []*sevenFolder) {
	n := 0
	known := func(f *sevenFolder) bool { return len(f.subs) == 1 && f.crc != nil }
	for _, f := range folders {
		if !known(f) {
			n += len(f.subs)
		}
	}
	sums := p.digests(n)
	for _, f := range folders {
		if !known(f) {
			sums = sums[copy(f.sums, sums[:len(f.subs)]):]
		}
	}
}

// main reads the header proper.
func (s *Seven) main(p *sevenBytes) {
	for {
		switch id := p.number(); id {
		case 0x00:
			return
		case 0x02:
			for p.number() != 0 {
				p.take(p.number())
			}
		case 0x03:
			p.streams()
		case 0x04:
			s.folders = p.streams()
		case 0x05:
			s.files = p.files()
		default:
			panic(sevenShort(fmt.Sprintf("%#x", id)))
		}
	}
}

func (p *sevenBytes) files() (f sevenFiles) {
	f.n = p.count()
	for {
		id := p.number()
		if id == 0 {
			return f
		}
		b := &sevenBytes{p.take(p.number())}
		switch id {
		case 0x0e:
			f.empty = b.bits(f.n, false)
		case 0x0f:
			n := 0
			for _, e := range f.empty {
				if e {
					n++
				}
			}
			f.emptyFile = b.bits(n, false)
		case 0x11:
			if b.byte() == 0 {
				f.names = b.b
			}
		case 0x14:
			f.hasModified = b.bits(f.n, true)
			if b.byte() == 0 {
				f.modified = b.b
			}
		case 0x15:
			f.hasAttribute = b.bits(f.n, true)
			if b.byte() == 0 {
				f.attributes = b.b
			}
		}
	}
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

// open puts a folder's decoders together.
func (s *Seven) open(f *sevenFolder) (io.Reader, error) {
	for _, c := range f.coders {
		switch {
		case c.id == "\x06\xf1\x07\x01":
			return nil, unread("encrypted")
		case c.in != 1 || c.out != 1:
			return nil, unread("method %x of 7z", c.id)
		}
	}
	if len(f.packed) != 1 || f.packed[0] >= len(f.coders) || f.at > s.size-32-f.packs[0] {
		return nil, damaged("a folder past the archive")
	}
	in := io.Reader(io.NewSectionReader(s.r, 32+f.at, f.packs[0]))
	at := f.packed[0]
	memory := s.memory
	for range f.coders {
		var err error
		if in, err = f.coders[at].open(in, f.sizes[at], &memory); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(f.bonds, func(b [2]int) bool { return b[1] == at })
		if i < 0 {
			return in, nil
		}
		if at = f.bonds[i][0]; at >= len(f.coders) {
			break
		}
	}
	return nil, damaged("a folder whose decoders go round")
}

func (c *sevenCoder) open(in io.Reader, size int64, memory *int64) (io.Reader, error) {
	switch c.id {
	case "\x00":
		return in, nil
	case "\x21":
		if len(c.props) != 1 || c.props[0] > 40 {
			return nil, damaged("properties of LZMA2")
		}
		dict := min(int64(2|c.props[0]&1)<<(c.props[0]/2+11), max(size, 1<<12))
		z, err := newLZMA2(newSource(in), dict, *memory)
		*memory -= dict
		return z, err
	case "\x03\x01\x01":
		z, err := rawLZMA(newSource(in), c.props, size, *memory)
		if len(c.props) == 5 {
			*memory -= min(int64(binary.LittleEndian.Uint32(c.props[1:])), size)
		}
		return z, err
	case "\x04\x01\x08":
		return flate.NewReader(in), nil
	case "\x04\x02\x02":
		return bzip2.NewReader(in), nil
	case "\x04\xf7\x11\x01":
		return newZstd(in, *memory)
	case "\x03":
		if len(c.props) != 1 {
			return nil, damaged("properties of delta")
		}
		return &delta{r: in, n: int(c.props[0]) + 1}, nil
	case "\x03\x03\x01\x03", "\x04":
		return newX86(in), nil
	}
	return nil, unread("method %x of 7z", c.id)
}
