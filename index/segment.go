package index

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"harvest/index/dict"
	"harvest/index/segfile"
)

// A segment is a file of documents, numbered from 0. It never changes. Whoever
// reads from it keeps the segment, or the view it came with, alive
// (runtime.KeepAlive) until after the last read.
//
// The table at the end is verified when the file is opened; everything else by
// pieces when it is first used, once.
type segment struct {
	*segfile.File
	table
	number uint64
	names  *segfile.IDs // of the documents

	aside aside // what searches found out

	words atomic.Pointer[dict.Dict] // opened when its section is verified
	vals  atomic.Pointer[dict.Dict]
}

// A segment file holds the words of some documents, numbered from 0 in the
// order they came. It is written once. Numbers in it are unsigned varints where
// nothing else is said, else little endian.
//
// It is a file as package segfile has them, of these sections:
//
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
// The table says, after the sections: documents; words of them; number of
// attributes; for each in order of name: length of the name, name, documents with
// it, different values with keys, ordinal of the key 0, place and bytes of its
// column in columns, bits of an entry in it, entries if these have documents,
// else 0.
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
	sections
)

func (s section) String() string { return layout().Sections[s] }

// layout is that of the files. Versions of segments: 1, of the first engine; 2. Of
// manifests: 1, of the first engine; 2, with settings and what segments are.
func layout() *segfile.Format {
	return &segfile.Format{
		Name: "segment", Magic: "harvest index 2\n",
		Sections: []string{"postings", "terms", "keys", "columns", "ids", "order", "lengths", "norms"},
		Manifest: "harvest manifest ", Version: 2,
	}
}

const valueGap = 100 // positions between two values of an attribute in a document

// An extent is a run of bytes.
type extent struct{ at, size uint64 }

// A table is what the engine says at the end of a segment, read when it is opened.
type table struct {
	docs   uint32
	text   uint64 // words of all documents
	fields []field
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
	c := segfile.Reader{B: b}
	docs := c.Uvarint()
	t.docs, t.text = uint32(docs), c.Uvarint()
	for n := c.Uvarint(); n > 0 && !c.Bad; n-- {
		f := field{name: string(c.Bytes(c.Uvarint()))}
		f.docs, f.values, f.firstKey = uint32(c.Uvarint()), uint32(c.Uvarint()), c.Uvarint()
		f.column = extent{c.Uvarint(), c.Uvarint()}
		f.width, f.sparse = c.Uvarint(), c.Uvarint()
		t.fields = append(t.fields, f)
	}
	return !c.Bad && len(c.B) == 0 && docs <= 1<<31
}

// fits tells whether the table is one of the sections there are, so that nobody
// who goes by it reads outside.
func (s *segment) fits() bool {
	n := int(s.docs)
	for sec, want := range map[section]int{secIDs: 16 * n, secOrder: 4 * n, secLengths: 4 * n, secNorms: n} {
		if len(s.section(sec)) != want {
			return false
		}
	}
	for i := range s.fields {
		if !s.holdsColumn(&s.fields[i], uint64(len(s.section(secColumns)))) {
			return false
		}
	}
	return slices.IsSortedFunc(s.fields, func(a, b field) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
}

// holdsColumn checks that of a field; 8 bytes more than the entries take let
// any of them be read as one word.
func (t *table) holdsColumn(f *field, all uint64) bool {
	x := f.column
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

// section gives a section's bytes.
func (s *segment) section(sec section) []byte { return s.Section(int(sec)) }

// verify compares sums of the bytes of a section, unless that was done before.
func (s *segment) verify(sec section, at, size uint64) error { return s.Verify(int(sec), at, size) }

func (s *segment) verifySection(sec section) error { return s.VerifySection(int(sec)) }

// openSegment maps a segment and reads its table.
func openSegment(path string, number uint64) (*segment, error) {
	f, err := layout().Open(path)
	if err != nil {
		return nil, err
	}
	return newSegment(f, number)
}

func newSegment(f *segfile.File, number uint64) (*segment, error) {
	s := &segment{File: f, number: number}
	if !s.read(f.Meta) || !s.fits() {
		return nil, f.Corrupt("table does not fit the file")
	}
	s.names = segfile.NewIDs(s.section(secIDs), s.section(secOrder))
	return s, nil
}
