package thin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"harvest/index"
	"hash/crc32"
	"os"
	"runtime"
	"sort"
	"syscall"
)

// A segment file holds the words of some documents, numbered from 0 in the
// order they came. It is written once. Integers are unsigned varints where
// nothing else is said, else little endian.
//
//	magic     "harvest index 1\n"
//	postings  for each word, in the order of the words:
//	            documents: for each, gap to the one before (the first counts
//	                       from -1), occurrences, bytes of its positions
//	            positions: for each document, for each occurrence, the gap to
//	                       the one before (the first from 0)
//	words     for each attribute in order of name, its words in order, in
//	          blocks of 16: bytes shared with the word before, length of the
//	          rest, the rest, number of documents, bytes of documents, bytes of
//	          positions. The first of a block shares nothing and is preceded by
//	          the offset of its postings; those of the others follow it.
//	blocks    the offset of each block, 8 bytes
//	values    for each attribute, for each value: gap of its document to the
//	          one before (the first from 0), 8 bytes of hash of the value
//	fields    for each attribute: length of name, name, words, blocks, values,
//	          offset of its values
//	docs      ID of each document, 16 bytes; number of its words, 4 bytes each;
//	          the documents' numbers in order of ID, 4 bytes each
//	footer    see below
//
// A position counts the words of an attribute in one document; between two
// values there is a gap of 100. The 14,300 text files of Go's own tree, 106 MB,
// take a third of that in segments (CORPUS=/usr/local/go, BenchmarkApply).
//
// Versions: 1, the first.
const (
	segmentMagic = "harvest index 1\n"
	segmentEnd   = "harvest"
	blockWords   = 16
	valueGap     = 100
)

// The footer is fixed: offsets of blocks, values, fields and docs, numbers of
// documents, blocks and fields, the CRC-32C of all before, and the end mark.
type footer struct {
	Blocks, Values, Fields, Docs uint64
	NDocs, NBlocks, NFields      uint32
	CRC                          uint32
	End                          [8]byte
}

const footerSize = 4*8 + 4*4 + 8

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A segment is a mapped file. The map goes when the garbage collector finds
// the segment unused: whoever reads from data keeps the segment alive.
type segment struct {
	number uint64
	data   []byte
	footer
	fields []field // by name
}

type field struct {
	name       string
	words      int
	block      int // its first
	blocks     int
	values     int
	valuesFrom uint64
}

func corrupt(path, format string, arg ...any) error {
	return fmt.Errorf("%s: %s: %w", path, fmt.Sprintf(format, arg...), index.ErrCorrupt)
}

func openSegment(path string, number uint64) (*segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < int64(len(segmentMagic)+footerSize) {
		return nil, corrupt(path, "%d bytes are too few", st.Size())
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	s := &segment{number: number, data: data}
	runtime.AddCleanup(s, func(b []byte) { syscall.Munmap(b) }, data)
	if err := s.check(path); err != nil {
		return nil, err
	}
	return s, s.readFields(path)
}

func (s *segment) check(path string) error {
	if !bytes.HasPrefix(s.data, []byte(segmentMagic)) {
		return corrupt(path, "begins with %q", s.data[:len(segmentMagic)])
	}
	at := len(s.data) - footerSize
	if _, err := binary.Decode(s.data[at:], binary.LittleEndian, &s.footer); err != nil {
		return corrupt(path, "footer: %v", err)
	}
	if string(s.End[:len(segmentEnd)]) != segmentEnd {
		return corrupt(path, "ends with %q", s.End[:])
	}
	if sum := crc32.Checksum(s.data[:len(s.data)-12], castagnoli()); sum != s.CRC {
		return corrupt(path, "checksum is %08x, the file says %08x", sum, s.CRC)
	}
	return nil
}

// readFields reads the table of attributes; the sum of the file was right.
func (s *segment) readFields(path string) error {
	c := cursor{s.data[s.Fields:s.Docs]}
	block := 0
	for range s.NFields {
		name := string(c.bytes(int(c.uvarint())))
		f := field{name: name, words: int(c.uvarint()), block: block, blocks: int(c.uvarint()),
			values: int(c.uvarint()), valuesFrom: c.uvarint()}
		block += f.blocks
		s.fields = append(s.fields, f)
	}
	if block != int(s.NBlocks) {
		return corrupt(path, "%d blocks of words, the attributes have %d", s.NBlocks, block)
	}
	return nil
}

func (s *segment) field(name string) (field, bool) {
	i := sort.Search(len(s.fields), func(i int) bool { return s.fields[i].name >= name })
	if i == len(s.fields) || s.fields[i].name != name {
		return field{}, false
	}
	return s.fields[i], true
}

func (s *segment) id(doc uint32) (id index.ID) {
	copy(id[:], s.data[s.Docs+uint64(doc)*16:])
	return id
}

// length is the number of words of a document.
func (s *segment) length(doc uint32) uint32 {
	return binary.LittleEndian.Uint32(s.data[s.Docs+uint64(s.NDocs)*16+uint64(doc)*4:])
}

// find gives the number of the document with the ID.
func (s *segment) find(id index.ID) (uint32, bool) {
	order := s.data[s.Docs+uint64(s.NDocs)*20:]
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(order[i*4:]) }
	n := int(s.NDocs)
	i := sort.Search(n, func(i int) bool {
		other := s.id(at(i))
		return bytes.Compare(other[:], id[:]) >= 0
	})
	if i == n || s.id(at(i)) != id {
		return 0, false
	}
	return at(i), true
}

// A term is a word of a segment and where its postings are.
type term struct {
	word      []byte // valid until the next
	docs      int
	documents []byte
	positions []byte
}

// terms reads the words of one block, or of blocks in a row.
type termReader struct {
	s    *segment
	c    cursor
	left int // words to come
	n    int // words read
	at   uint64
	term
}

// next reads the next word; false at the end.
func (r *termReader) next() bool {
	if r.left == 0 {
		return false
	}
	if r.n%blockWords == 0 {
		r.at = r.c.uvarint()
		r.word = r.word[:0]
	}
	shared, rest := int(r.c.uvarint()), int(r.c.uvarint())
	r.word = append(r.word[:shared], r.c.bytes(rest)...)
	r.docs = int(r.c.uvarint())
	documents, positions := r.c.uvarint(), r.c.uvarint()
	r.documents = r.s.data[r.at : r.at+documents]
	r.at += documents
	r.positions = r.s.data[r.at : r.at+positions]
	r.at += positions
	r.n++
	r.left--
	return true
}

func (s *segment) blockAt(i int) cursor {
	return cursor{s.data[binary.LittleEndian.Uint64(s.data[s.Blocks+uint64(i)*8:]):s.Blocks]}
}

// words reads all words of an attribute.
func (s *segment) words(f field) *termReader {
	if f.words == 0 { // only empty values; there is no block
		return &termReader{}
	}
	return &termReader{s: s, c: s.blockAt(f.block), left: f.words}
}

// lookup finds a word of an attribute.
func (s *segment) lookup(f field, word string) (term, bool) {
	i := sort.Search(f.blocks, func(i int) bool { return string(s.firstOf(f.block+i)) > word }) - 1
	if i < 0 {
		return term{}, false
	}
	r := termReader{s: s, c: s.blockAt(f.block + i), left: min(blockWords, f.words-i*blockWords)}
	for r.next() {
		if c := bytes.Compare(r.word, []byte(word)); c >= 0 {
			return r.term, c == 0
		}
	}
	return term{}, false
}

// firstOf is the first word of a block.
func (s *segment) firstOf(block int) []byte {
	c := s.blockAt(block)
	c.uvarint() // offset
	c.uvarint() // shared
	return c.bytes(int(c.uvarint()))
}

// A postingReader goes through the documents of a term.
type postingReader struct {
	docs      cursor
	positions cursor
	doc       uint32
	count     int
	where     []byte // encoded positions
}

func (t *term) postings() postingReader {
	return postingReader{docs: cursor{t.documents}, positions: cursor{t.positions}, doc: ^uint32(0)}
}

func (p *postingReader) next() bool {
	if len(p.docs.b) == 0 {
		return false
	}
	p.doc += uint32(p.docs.uvarint())
	p.count = int(p.docs.uvarint())
	p.where = p.positions.bytes(int(p.docs.uvarint()))
	return true
}

// at appends the positions in the document to dst.
func (p *postingReader) at(dst []uint32) []uint32 {
	var pos uint32
	for c := (cursor{p.where}); len(c.b) > 0; {
		pos += uint32(c.uvarint())
		dst = append(dst, pos)
	}
	return dst
}

// A cursor reads what a checksum vouches for, so what is not there panics.
type cursor struct{ b []byte }

func (c *cursor) uvarint() uint64 {
	if c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.b)
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes(n int) []byte {
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}
