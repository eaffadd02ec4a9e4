package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"

	"harvest/index/dict"
)

// A segment is a mapped file of documents, numbered from 0. It never changes.
// The map goes when the garbage collector finds the segment unused: whoever
// reads from it keeps the segment, or the view it came with, alive
// (runtime.KeepAlive) until after the last read.
//
// The table at the end is verified when the file is opened; everything else by
// pieces of chunkSize when it is first used, once.
type segment struct {
	table
	number uint64
	path   string
	data   []byte
	sums   []byte          // of the chunks, 4 bytes each
	good   []atomic.Uint64 // chunks verified, a bit each

	aside aside // what searches found out

	words atomic.Pointer[dict.Dict] // opened when its section is verified
	vals  atomic.Pointer[dict.Dict]
}

// A segment file holds the words of some documents, numbered from 0 in the
// order they came. It is written once. Numbers in it are unsigned varints where
// nothing else is said, else little endian.
//
//	magic     "harvest index 2\n"
//	postings  of each term in order, then of each key in order, of each of its
//	          lists that is not in the dictionary: positions, documents, as
//	          package posting codes them
//	terms     a dictionary, as package dict codes it, of the words of all
//	          attributes; decode tells what a value is
//	keys      the same of values: the attribute's name, a zero byte, and the byte 0,
//	          which all documents have that have the attribute, or what Keys gives
//	columns   of attributes with keys: the documents in order, 4 bytes each, if
//	          only some have a key and this is shorter; for each of these, or of
//	          all, the ordinal of the first value's first key less that of the key
//	          0, or 0 without one, in as many bits as the largest needs, the first
//	          number lowest; 8 bytes 0
//	ids       ID of each document, 16 bytes
//	order     the documents by ID, 4 bytes each
//	lengths   words of each, 4 bytes
//	norms     Norm of that, 1 byte
//	sums      the CRC-32C of each 65,536 bytes of a section, or what its last has
//	          less; 4 bytes each, in the order of the sections, no sum of this
//	          section itself
//	sum       the CRC-32C of sums, 4 bytes
//	table     of each section where it begins and its bytes; documents; words of
//	          them; number of attributes; for each in order of name: length of the
//	          name, name, documents with it, different values with keys, ordinal
//	          of the key 0, place and bytes of its column in columns, bits of an
//	          entry in it, entries if these have documents, else 0
//	tail      bytes of table, CRC-32C of table, 4 bytes each; "harvest\n"
//
// A position counts the words of an attribute in one document; between two
// values there is a gap of 100.
//
// Of 24,376 manuals, 211.9 MB, with a title and a body each and no keys,
// segments take 24.85 % of the text, 6.66 % without positions (BenchmarkSections):
//
//	postings  21.95   4.07 without positions
//	terms      2.61   2.30, 516,497 of them; those of one document have it inline
//	ids         .18   order .05, lengths .05, norms .01, sums .00
//
// In two segments, of half of them each, it is .11 % more, since words
// are in both.
//
// Versions: 1, of the first engine, a dictionary for each attribute; 2.

// A section is one of a segment's parts.
type section int

const (
	secPostings section = iota
	secTerms
	secKeys
	secColumns
	secIDs
	secOrder
	secLengths
	secNorms
	secSums
	sections
)

func (s section) String() string {
	return [...]string{"postings", "terms", "keys", "columns", "ids", "order", "lengths", "norms", "sums"}[s]
}

const (
	segmentMagic = "harvest index 2\n"
	segmentEnd   = "harvest\n"
	tailSize     = 4 + 4 + len(segmentEnd)
	chunkSize    = 64 << 10
	valueGap     = 100 // positions between two values of an attribute in a document
)

// An extent is a run of bytes.
type extent struct{ at, size uint64 }

// A table is what stands at the end of a segment, read when it is opened.
type table struct {
	sections [sections]extent
	docs     uint32
	text     uint64 // words of all documents
	fields   []field
}

// A field is an attribute that documents of the segment have.
type field struct {
	name     string
	docs     uint32 // documents with it
	values   uint32 // different ones that have keys
	firstKey uint64 // ordinal in the dictionary of keys of that of all documents that have it
	column   extent // in its section; of size 0 if no value has a key
	width    uint64 // bits of an entry
	sparse   uint64 // entries, if only some documents have one; else 0
}

// appendTo writes the table: unsigned varints, with names as length and bytes.
func (t *table) appendTo(b []byte) []byte {
	for _, x := range t.sections {
		b = binary.AppendUvarint(b, x.at)
		b = binary.AppendUvarint(b, x.size)
	}
	for _, n := range []uint64{uint64(t.docs), t.text, uint64(len(t.fields))} {
		b = binary.AppendUvarint(b, n)
	}
	for i := range t.fields {
		f := &t.fields[i]
		b = binary.AppendUvarint(b, uint64(len(f.name)))
		b = append(b, f.name...)
		for _, n := range []uint64{uint64(f.docs), uint64(f.values), f.firstKey, f.column.at, f.column.size, f.width, f.sparse} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// read is the inverse of appendTo; it takes any bytes.
func (t *table) read(b []byte) bool {
	c := checked{b: b}
	for i := range t.sections {
		t.sections[i] = extent{c.uvarint(), c.uvarint()}
	}
	docs := c.uvarint()
	t.docs, t.text = uint32(docs), c.uvarint()
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		f := field{name: string(c.bytes(c.uvarint()))}
		f.docs, f.values, f.firstKey = uint32(c.uvarint()), uint32(c.uvarint()), c.uvarint()
		f.column = extent{c.uvarint(), c.uvarint()}
		f.width, f.sparse = c.uvarint(), c.uvarint()
		t.fields = append(t.fields, f)
	}
	return !c.bad && len(c.b) == 0 && docs <= 1<<31
}

// holds tells whether the table fits a file of size bytes, so that nobody who
// goes by it reads outside.
func (t *table) holds(size uint64) bool {
	at := uint64(len(segmentMagic))
	for _, x := range t.sections {
		if x.at != at || x.size > size || at+x.size > size {
			return false
		}
		at += x.size
	}
	n := uint64(t.docs)
	for s, want := range map[section]uint64{secIDs: 16 * n, secOrder: 4 * n, secLengths: 4 * n, secNorms: n, secSums: 4 * t.chunks(sections)} {
		if t.sections[s].size != want {
			return false
		}
	}
	for i := range t.fields {
		if !t.holdsColumn(&t.fields[i]) {
			return false
		}
	}
	return slices.IsSortedFunc(t.fields, func(a, b field) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
}

// holdsColumn checks that of a field; 8 bytes more than the entries take let
// any of them be read as one word.
func (t *table) holdsColumn(f *field) bool {
	x, all := f.column, t.sections[secColumns].size
	if x.size == 0 {
		return true
	}
	n := uint64(t.docs)
	size := uint64(0)
	if f.sparse > 0 {
		n, size = f.sparse, 4*f.sparse
	}
	return f.width <= 32 && n <= uint64(t.docs) && x.size <= all && x.at <= all-x.size && x.size == size+columnBytes(n, f.width)
}

func columnBytes(n, width uint64) uint64 { return (n*width+7)/8 + 8 }

// chunks is the number of those in the sections before sec. Each section
// begins a new one.
func (t *table) chunks(sec section) (n uint64) {
	for s := range min(sec, secSums) {
		n += (t.sections[s].size + chunkSize - 1) / chunkSize
	}
	return n
}

func (s *segment) readTable() error {
	n := len(s.data)
	tail := s.data[n-tailSize:]
	size, sum := binary.LittleEndian.Uint32(tail), binary.LittleEndian.Uint32(tail[4:])
	switch {
	case !bytes.HasPrefix(s.data, []byte(segmentMagic)):
		return corrupt(s.path, "begins with %q", s.data[:len(segmentMagic)])
	case string(tail[8:]) != segmentEnd:
		return corrupt(s.path, "ends with %q", tail[8:])
	case uint64(size)+uint64(tailSize+len(segmentMagic)) > uint64(n):
		return corrupt(s.path, "table of %d bytes in %d", size, n)
	}
	body := n - tailSize - int(size)
	b := s.data[body : n-tailSize]
	if got := crc32.Checksum(b, castagnoli()); got != sum {
		return corrupt(s.path, "table: checksum is %08x, the file says %08x", got, sum)
	}
	if !s.read(b) || !s.holds(uint64(body)) || s.sections[secSums].at+s.sections[secSums].size != uint64(body)-4 {
		return corrupt(s.path, "table does not fit the file")
	}
	s.sums = s.section(secSums)
	if got, want := crc32.Checksum(s.sums, castagnoli()), binary.LittleEndian.Uint32(s.data[body-4:]); got != want {
		return corrupt(s.path, "%v: checksum is %08x, the file says %08x", secSums, got, want)
	}
	s.good = make([]atomic.Uint64, (len(s.sums)/4+63)/64)
	return nil
}

// section gives a section's bytes.
func (s *segment) section(sec section) []byte {
	x := s.sections[sec]
	return s.data[x.at : x.at+x.size : x.at+x.size]
}

func (s *segment) verifySection(sec section) error {
	return s.verify(sec, 0, s.sections[sec].size)
}

// verify compares sums of the chunks that hold the bytes of a section, unless
// that was done before.
func (s *segment) verify(sec section, at, size uint64) error {
	if size == 0 {
		return nil
	}
	first := s.chunks(sec)
	for i := at / chunkSize; i <= (at+size-1)/chunkSize; i++ {
		n := first + i
		if bit := uint64(1) << (n % 64); s.good[n/64].Load()&bit == 0 {
			if err := s.verifyChunk(sec, i, n); err != nil {
				return err
			}
			s.good[n/64].Or(bit)
		}
	}
	return nil
}

// verifyChunk compares the sum of a section's i-th chunk, the file's n-th.
func (s *segment) verifyChunk(sec section, i, n uint64) error {
	b := s.section(sec)[i*chunkSize:]
	b = b[:min(len(b), chunkSize)]
	want := binary.LittleEndian.Uint32(s.sums[4*n:])
	if got := crc32.Checksum(b, castagnoli()); got != want {
		return corrupt(s.path, "%v: at byte %d the checksum is %08x, the file says %08x", sec, i*chunkSize, got, want)
	}
	return nil
}

// A checked cursor reads bytes that may be anything.
type checked struct {
	b   []byte
	bad bool
}

func (c *checked) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *checked) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func corrupt(path, format string, arg ...any) error {
	return fmt.Errorf("%s: %s: %w", path, fmt.Sprintf(format, arg...), ErrCorrupt)
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// openSegment maps a segment and reads its table.
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
	if st.Size() < int64(len(segmentMagic)+tailSize) {
		return nil, corrupt(path, "%d bytes are too few", st.Size())
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	s := &segment{number: number, path: path, data: data}
	runtime.AddCleanup(s, func(b []byte) { syscall.Munmap(b) }, data)
	if err := s.readTable(); err != nil {
		return nil, err
	}
	return s, nil
}

// tableSum is the checksum that stands in the tail.
func (s *segment) tableSum() uint32 {
	return binary.LittleEndian.Uint32(s.data[len(s.data)-tailSize+4:])
}
