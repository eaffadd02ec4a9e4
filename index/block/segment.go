package block

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"harvest/index"
	"harvest/index/dict"
)

// A segment is a file of documents that were applied or merged together, with
// its words and values. It never changes. Documents are numbered from 0 in the
// order they came; numbers are unsigned varints unless said.
//
//	"harvest block 1\n"
//	meta     grain, documents, exact, blocks, stretches, words of the text
//	ids      16 bytes a document
//	sizes    1 byte a document: how long its text is (sizeClass)
//	layout   tiny: for each block how many documents are in it, then a bit
//	         each, whether it was one document from the start; medium: for
//	         each document the number of its stretches
//	keys     lists, lengths, groups (list.go), dictionary (index/dict)
//	words    the same four
//	tail     lengths and checksums of the twelve sections (file.go)
//
// The n-th term of a dictionary has the n-th list. A list is the documents a
// term stands in. At tiny, a word of more than exact documents has the blocks
// instead: at most 256 groups of consecutive documents of about equal text
// (coarseness). At medium it is the stretches: a document's words are counted
// through, and each 256 (stretchWords) of them are one.
//
// Words are those of all attributes, but not compounds: those are found by
// their parts and a scan. Words of many digits are hashed (hashed.go). At tiny,
// Chinese and Japanese stand there by characters, each behind "?", and not by
// two: those were a quarter of the words of the manuals. "?" is a term
// too, for all of them, and "!" for words and compounds that may have been cut.
//
// Keys, which list the documents whatever the grain, are the name of an
// attribute behind one of these letters, and for all but "a" behind the length
// of the name too:
//
//	a  have the attribute
//	k  have the value with the key that follows (index.Keys)
//	l  have a value of more than 256 bytes (index.MaxKey)
//	w  have the word that follows in a shorter value
//
// On 24,376 documents of manuals, 212 MB with 297,000 words, the parts of a
// segment of grain tiny take, in percent of the text: see docs/block.6.md.
//
// Versions: 1, the first.
const (
	segmentMagic = "harvest block 1\n"

	secMeta   = 0
	secIDs    = 1
	secSizes  = 2
	secLayout = 3
	secKeys   = 4
	secWords  = 8
	sections  = 12

	stretchWords  = 256
	maxStretches  = 1 << 12 // of one document; the last holds the rest
	keySpace      = 0       // first byte of keys while words and keys are sorted together
	attributeKind = 'a'
	valueKind     = 'k'
	longKind      = 'l'
	wordKind      = 'w'
)

// sizeClass is the length of a text in a byte, to one part in eight.
func sizeClass(n int64) byte {
	if n < 16 {
		return byte(n)
	}
	k := bits.Len64(uint64(n)) - 4
	return byte(min(8*(k+1)+int(n>>k)-8, 255))
}

// classSize is the least length of a class.
func classSize(c byte) int64 {
	if c < 16 {
		return int64(c)
	}
	return int64(8+c%8) << (c/8 - 1)
}

// A segmentWriter writes a segment: its documents when it is made, then terms
// in order, keys before words.
type segmentWriter struct {
	w     *fileWriter
	l     *layout
	space int // secKeys or secWords
	dict  *dict.Builder
	spool *spool
	lists listWriter
	err   error
}

// A census is what a segment knows of its documents.
type census struct {
	ids   []byte
	sizes []byte
	words uint64
}

func createSegment(path string, grain Grain, l *layout, c *census) (*segmentWriter, error) {
	f, err := createFile(path, segmentMagic)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{w: f, l: l, space: secKeys}
	var b []byte
	for _, n := range []uint64{uint64(grain), uint64(l.docs), uint64(l.exact), uint64(max(len(l.blocks), 1) - 1), uint64(l.stretches()), c.words} {
		b = binary.AppendUvarint(b, n)
	}
	f.section(b)
	f.section(c.ids)
	f.section(c.sizes)
	f.section(l.encode())
	w.open(path)
	return w, nil
}

func (w *segmentWriter) open(path string) {
	w.spool = &spool{path: path + ".terms"}
	w.dict = dict.NewBuilder(w.spool)
	w.lists = listWriter{}
}

// term adds a term; its list may be made coarser.
func (w *segmentWriter) term(term []byte, li *list) error {
	if w.err != nil {
		return w.err
	}
	l := w.l
	if term[0] == keySpace {
		term = term[1:]
		l = l.fine()
	} else {
		if w.space == secKeys {
			w.endSpace()
		}
		if l.coarsen(li); li.blocks {
			li.count = max(li.count, l.exact+1) // which tells it from a list of documents
		}
	}
	if w.err == nil {
		w.err = w.dict.Add(term, nil)
	}
	w.lists.add(l, li)
	if len(w.lists.bits.b) >= 1<<16 {
		w.w.Write(w.lists.take())
	}
	return w.err
}

func (w *segmentWriter) endSpace() {
	w.lists.endChunk()
	w.w.Write(w.lists.take())
	w.w.end()
	w.w.section(w.lists.lengths)
	w.w.section(w.lists.groups)
	_, err := w.dict.Finish()
	if err == nil {
		err = w.spool.to(w.w)
	}
	if w.err == nil {
		w.err = err
	}
	if w.space == secKeys {
		w.space = secWords
		w.open(w.w.f.Name())
	}
}

// close completes the file, or removes it.
func (w *segmentWriter) close() error {
	if w.space == secKeys {
		w.endSpace()
	}
	w.endSpace()
	if w.err != nil {
		w.drop()
		return w.err
	}
	return w.w.close()
}

func (w *segmentWriter) drop() {
	w.spool.close()
	w.w.drop()
}

// fine is the layout of keys: lists of documents, however many.
func (l *layout) fine() *layout { return &layout{docs: l.docs} }

func (l *layout) stretches() uint32 {
	if l.starts == nil {
		return 0
	}
	return l.starts[l.docs]
}

func (l *layout) encode() (b []byte) {
	for i := 1; i < len(l.blocks); i++ {
		b = binary.AppendUvarint(b, uint64(l.blocks[i]-l.blocks[i-1]))
	}
	for i := 0; i < len(l.blocks)-1; i += 8 {
		b = append(b, byte(l.alone[i/64]>>(i%64)))
	}
	for i := 1; i < len(l.starts); i++ {
		b = binary.AppendUvarint(b, uint64(l.starts[i]-l.starts[i-1]))
	}
	return b
}

// decode reads what encode wrote for so many blocks and stretches. There are
// no more than documents of the ones, 4,096 times that of the others.
func (l *layout) decode(b []byte, blocks, stretches uint64, grain Grain) bool {
	number := func(most uint64) (uint32, bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			return 0, false
		}
		b = b[n:]
		return uint32(v), true
	}
	fill := func(n uint64, most uint64) ([]uint32, bool) {
		a := make([]uint32, 1, n+1)
		for range n {
			v, ok := number(most)
			if !ok {
				return nil, false
			}
			a = append(a, a[len(a)-1]+v)
		}
		return a, true
	}
	ok := true
	if l.exact > 0 {
		if blocks > uint64(l.docs) {
			return false
		}
		if l.blocks, ok = fill(blocks, uint64(l.docs)); !ok || l.blocks[blocks] != l.docs {
			return false
		}
		n := int(blocks+7) / 8
		if len(b) < n {
			return false
		}
		l.alone = newSet(uint32(blocks))
		for i, v := range b[:n] {
			l.alone[i/8] |= uint64(v) << (i % 8 * 8)
		}
		b = b[n:]
	}
	if grain == Medium { // of documents without words there may be no stretch
		l.starts, ok = fill(uint64(l.docs), maxStretches)
		ok = ok && uint64(l.starts[l.docs]) == stretches
	}
	return ok && len(b) == 0
}

// A segment of an index.
type segment struct {
	*mapped
	number uint64
	layout
	census
	keys, terms space
	names       []string // of the attributes, in order

	stems stems
	once  sync.Once
	order []uint32 // documents by ID
}

// A space is a dictionary and its lists.
type space struct {
	dict  *dict.Dict
	lists *lists
}

func openSegment(path string, number uint64, grain Grain) (*segment, error) {
	m, err := openFile(path, segmentMagic, sections)
	if err != nil {
		return nil, err
	}
	s := &segment{mapped: m, number: number}
	if !s.meta(grain) {
		return nil, corrupt(path, "meta: does not fit the file")
	}
	if err := s.keys.open(m.sections[secKeys:]); err != nil {
		return nil, corrupt(path, "keys: %v", err)
	}
	if err := s.terms.open(m.sections[secWords:]); err != nil {
		return nil, corrupt(path, "words: %v", err)
	}
	err = s.keys.dict.Prefix([]byte{attributeKind}, func(key, _ []byte, _ int) bool {
		s.names = append(s.names, string(key[1:]))
		return true
	})
	if err != nil {
		return nil, corrupt(path, "keys: %v", err)
	}
	return s, nil
}

func (s *segment) meta(grain Grain) bool {
	b := s.sections[secMeta]
	var v [6]uint64
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return false
		}
		b = b[n:]
	}
	s.ids, s.sizes = s.sections[secIDs], s.sections[secSizes]
	s.words = v[5]
	if v[0] != uint64(grain) || v[1]*16 != uint64(len(s.ids)) || v[1] != uint64(len(s.sizes)) || v[1] >= 1<<31 || v[2] >= 1<<31 || v[4] >= 1<<32 {
		return false
	}
	s.docs, s.exact = uint32(v[1]), uint32(v[2])
	return s.decode(s.sections[secLayout], v[3], v[4], grain)
}

func (s *space) open(sec [][]byte) (err error) {
	if s.dict, err = dict.Open(sec[3]); err == nil {
		s.lists, err = openLists(s.dict.Len(), sec[0], sec[1], sec[2])
	}
	return err
}

func (s *segment) id(doc uint32) index.ID { return index.ID(s.ids[16*doc:]) }

// size is about the length of a document's text.
func (s *segment) size(doc uint32) int64 { return classSize(s.sizes[doc]) }

// find gives the document with an ID. An ID that stands there twice is that
// of the last, the others being gone from the start.
func (s *segment) find(id index.ID) (uint32, bool) {
	s.once.Do(func() { s.order = byID(s.ids) })
	i, _ := slices.BinarySearchFunc(s.order, id, func(doc uint32, id index.ID) int {
		return cmp.Or(bytes.Compare(s.ids[16*doc:16*doc+16], id[:]), -1) // behind equals
	})
	if i == 0 || s.id(s.order[i-1]) != id {
		return 0, false
	}
	return s.order[i-1], true
}

// byID gives the documents in the order of their IDs, equal ones in their own.
func byID(ids []byte) []uint32 {
	order := make([]uint32, len(ids)/16)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(bytes.Compare(ids[16*a:16*a+16], ids[16*b:16*b+16]), cmp.Compare(a, b))
	})
	return order
}

// documents adds the documents of a list to a set.
func (l *layout) documents(li *list, to set) {
	switch {
	case li.blocks:
		for _, b := range li.places {
			to.addRange(l.blocks[b], l.blocks[b+1])
		}
	case l.starts != nil:
		for i := 0; i < len(li.places); {
			doc := under(l.starts, li.places[i])
			to.add(doc)
			for i++; i < len(li.places) && li.places[i] < l.starts[doc+1]; i++ {
			}
		}
	default:
		for _, doc := range li.places {
			to.add(doc)
		}
	}
}

// certain adds the documents of a list that are sure to have its term.
func (l *layout) certain(li *list, to set) {
	if !li.blocks {
		l.documents(li, to)
		return
	}
	for _, b := range li.places {
		if l.alone.has(b) {
			to.addRange(l.blocks[b], l.blocks[b+1])
		}
	}
}
