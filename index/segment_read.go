package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"harvest/index/dict"
	"harvest/index/posting"
	"harvest/index/segfile"
)

// A termInfo is what the dictionary says of a term or a key.
type termInfo struct {
	docs  uint32 // documents that have it in any attribute
	lists []list // by field; a key has one, of field 0
}

// A list says where the documents are that have a term in one attribute.
type list struct {
	field     int // in segment.fields
	kind      posting.Kind
	docs      uint32 // documents
	one       []byte // the list of the one document, for posting.ResetOne, or nil, then:
	at        uint64 // in the postings section: positions, then documents
	positions uint64 // bytes of these
	documents uint64 // and of those
}

// lookup finds a term, whole words and compounds alike. It allocates nothing
// if t has been used before.
func (s *segment) lookup(term []byte, t *termInfo) bool {
	value, _, ok := s.terms().Get(term)
	return ok && s.decode(value, t)
}

// terms is the dictionary of all attributes' terms.
func (s *segment) terms() *dict.Dict { return s.words.Load() }

// keys is the dictionary of values: the attribute's name, a zero byte, and a
// key. The key of no bytes but keyAny is that of all documents that have the
// attribute. A key's list is of kind posting.Docs.
func (s *segment) keys() (*dict.Dict, error) {
	if d := s.vals.Load(); d != nil {
		return d, nil
	}
	if err := s.verifySection(secKeys); err != nil {
		return nil, err
	}
	d, err := dict.Open(s.section(secKeys))
	if err != nil {
		return nil, s.Corrupt("%v: %v", secKeys, err)
	}
	s.vals.Store(d)
	return d, nil
}

// keyAny is the kind byte of the key that all values have.
const keyAny = 0

// appendKey appends what a key of an attribute is in the dictionary of keys.
func appendKey(dst []byte, attribute string, key ...byte) []byte {
	return append(append(append(dst, attribute...), 0), key...)
}

// ready verifies what lookup, norm, id and find read. The segments of a view
// that engine.view gave are ready.
func (s *segment) ready() error {
	if s.words.Load() != nil {
		return nil
	}
	for _, sec := range []section{secTerms, secIDs, secOrder, secLengths, secNorms} {
		if err := s.verifySection(sec); err != nil {
			return err
		}
	}
	for i := range int(s.docs) {
		if d := s.ordered(i); d >= s.docs {
			return s.Corrupt("%v: document %d of %d", secOrder, d, s.docs)
		}
	}
	d, err := dict.Open(s.section(secTerms))
	if err != nil {
		return s.Corrupt("%v: %v", secTerms, err)
	}
	s.words.Store(d)
	return nil
}

// A dictionary value is, in unsigned varints,
//
//	one list:   its head * 2, the list
//	several:    how many * 2 + 1, documents that have the term in any of them,
//	            then of each the head, if it is inline its length, the list
//	head:       field * 8 + kind * 2 + 1 if the list is inline
//	the list:   inline as posting.AppendOne has it, else documents, offset in
//	            the postings, bytes of positions (of kind Positions only), bytes
//	            of documents
func (s *segment) decode(value []byte, t *termInfo) bool {
	t.lists = t.lists[:0]
	c := segfile.Reader{B: value}
	n := uint64(1)
	head := c.Uvarint()
	several := head&1 != 0
	if several {
		n = head >> 1
		t.docs = uint32(c.Uvarint())
	}
	for i := uint64(0); i < n && !c.Bad; i++ {
		h := head >> 1
		if several {
			h = c.Uvarint()
		}
		l := list{field: int(h >> 3), kind: posting.Kind(h >> 1 & 3)}
		if h&1 != 0 {
			l.docs = 1
			if l.one = c.B; several {
				l.one = c.Bytes(c.Uvarint())
			}
		} else {
			l.docs, l.at = uint32(c.Uvarint()), c.Uvarint()
			if l.kind == posting.Positions {
				l.positions = c.Uvarint()
			}
			l.documents = c.Uvarint()
		}
		c.Bad = c.Bad || uint64(l.field) >= uint64(len(s.fields)) || l.docs > s.docs
		t.lists = append(t.lists, l)
	}
	if !several && !c.Bad {
		t.docs = t.lists[0].docs
	}
	return !c.Bad
}

// appendValue is the inverse of decode.
func appendValue(dst []byte, t *termInfo) []byte {
	several := len(t.lists) > 1
	if several {
		dst = binary.AppendUvarint(dst, uint64(len(t.lists))<<1|1)
		dst = binary.AppendUvarint(dst, uint64(t.docs))
	}
	for i := range t.lists {
		l := &t.lists[i]
		h := uint64(l.field)<<3 | uint64(l.kind)<<1
		if l.one != nil {
			h |= 1
		}
		if !several {
			h <<= 1
		}
		dst = binary.AppendUvarint(dst, h)
		switch {
		case l.one != nil && several:
			dst = append(binary.AppendUvarint(dst, uint64(len(l.one))), l.one...)
		case l.one != nil:
			dst = append(dst, l.one...)
		default:
			dst = binary.AppendUvarint(dst, uint64(l.docs))
			dst = binary.AppendUvarint(dst, l.at)
			if l.kind == posting.Positions {
				dst = binary.AppendUvarint(dst, l.positions)
			}
			dst = binary.AppendUvarint(dst, l.documents)
		}
	}
	return dst
}

// open begins to read a list. Who wants r.Positions says so. The error is of
// class ErrCorrupt; r.Err is to be asked after the last document all the same.
func (s *segment) open(l *list, r *posting.Reader, positions bool) error {
	if l.one != nil {
		r.ResetOne(l.kind, l.one, s.docs)
		return nil
	}
	b := s.section(secPostings)
	all := uint64(len(b))
	if l.positions > all || l.documents > all || l.at > all-l.positions || l.at+l.positions > all-l.documents {
		return s.Corrupt("%v: list outside", secPostings)
	}
	from, size := l.at+l.positions, l.documents
	if positions {
		from, size = l.at, l.positions+l.documents
	}
	if err := s.verify(secPostings, from, size); err != nil {
		return err
	}
	mid := l.at + l.positions
	r.Reset(l.kind, b[mid:mid+l.documents], b[l.at:mid], int(l.docs), s.docs)
	return nil
}

// norm is the class of a document's length; see Norm.
func (s *segment) norm(doc uint32) byte { return s.section(secNorms)[doc] }

// norms are those of all documents.
func (s *segment) norms() []byte { return s.section(secNorms) }

// length is the number of a document's words.
func (s *segment) length(doc uint32) uint32 {
	return binary.LittleEndian.Uint32(s.section(secLengths)[4*doc:])
}

func (s *segment) id(doc uint32) ID { return s.names.ID(doc) }

// ordered is the document whose ID is the i-th in order.
func (s *segment) ordered(i int) uint32 { return s.names.At(i) }

// field is the number of an attribute.
func (s *segment) field(attribute string) (int, bool) {
	return slices.BinarySearchFunc(s.fields, attribute, func(f field, name string) int {
		return bytes.Compare([]byte(f.name), []byte(name))
	})
}

// A column gives the first key of each document's first value of an attribute.
type column struct {
	first  int // field.firstKey
	width  uint
	docs   []byte // 4 bytes each, in order, if not all documents have an entry
	values []byte // of width bits: 0 for none, or ordinal - first
	n      int
}

// column is that of a field. The zero column has no keys.
func (s *segment) column(f int) (column, error) {
	fd := &s.fields[f]
	if fd.column.size == 0 {
		return column{}, nil
	}
	if err := s.verify(secColumns, fd.column.at, fd.column.size); err != nil {
		return column{}, err
	}
	b := s.section(secColumns)[fd.column.at:][:fd.column.size]
	c := column{first: int(fd.firstKey), width: uint(fd.width), n: int(s.docs)}
	if fd.sparse > 0 {
		c.n = int(fd.sparse)
		c.docs, b = b[:4*c.n], b[4*c.n:]
	}
	c.values = b
	return c, nil
}

// ord is the ordinal of the document's key in the dictionary of keys.
func (c *column) ord(doc uint32) (int, bool) {
	i := int(doc)
	if c.docs != nil {
		i = sort.Search(c.n, func(i int) bool { return c.doc(i) >= doc })
		if i == c.n || c.doc(i) != doc {
			return 0, false
		}
	}
	return c.at(i)
}

// at is the ordinal of the i-th entry.
func (c *column) at(i int) (int, bool) {
	if i >= c.n {
		return 0, false
	}
	bit := uint(i) * c.width
	v := binary.LittleEndian.Uint64(c.values[bit>>3:]) >> (bit & 7) & (1<<c.width - 1)
	return c.first + int(v), v > 0
}

// doc is the document of the i-th entry.
func (c *column) doc(i int) uint32 {
	if c.docs == nil {
		return uint32(i)
	}
	return binary.LittleEndian.Uint32(c.docs[4*i:])
}

// Norm is the class of a length in words, a byte, and NormLength the length
// it stands for: exact up to 31, then within a 32nd part; above half a
// million words all lengths are the same.
func Norm(words int) byte {
	if words < 32 {
		return byte(max(words, 0))
	}
	shift := bits.Len(uint(words)) - 5
	if shift > 14 {
		return 255
	}
	return byte(16*(shift+1) + words>>shift - 16)
}

// NormLength is the length in words that a norm stands for.
func NormLength(norm byte) int {
	if norm < 32 {
		return int(norm)
	}
	shift := int(norm)/16 - 1
	return (16+int(norm)%16)<<shift + 1<<shift/2
}
