package block

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"harvest/index"
	"harvest/index/dict"
	"harvest/index/segfile"
)

// A segment is a file of documents that were applied or merged together, with
// its words and values. It never changes. Documents are numbered from 0 in the
// order they came; numbers are unsigned varints unless said.
//
// It is a file as package segfile has them, of these sections:
//
//	ids      16 bytes a document
//	sizes    1 byte a document: how long its text is (sizeClass)
//	layout   tiny: for each block how many documents are in it, then a bit
//	         each, whether it was one document from the start; medium: for
//	         each document the number of its stretches
//	keys     lists, lengths, groups (list.go), dictionary (index/dict)
//	words    the same four
//
// The table says, after the sections: grain, documents, exact, blocks, stretches,
// words of the text.
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
const (
	secIDs    = 0
	secSizes  = 1
	secLayout = 2
	secKeys   = 3
	secWords  = 7

	stretchWords  = 256
	maxStretches  = 1 << 12 // of one document; the last holds the rest
	keySpace      = 0       // first byte of keys while words and keys are sorted together
	attributeKind = 'a'
	valueKind     = 'k'
	longKind      = 'l'
	wordKind      = 'w'
)

// files is what they look like. Versions of segments and manifests: 1, with sums of
// whole sections; 2, as the ranked engine has them.
func files() *segfile.Format {
	return &segfile.Format{
		Name: "block", Magic: "harvest block 2\n",
		Sections: []string{
			"ids", "sizes", "layout", "keys: lists", "keys: lengths", "keys: groups", "keys",
			"words: lists", "words: lengths", "words: groups", "words",
		},
		Manifest: "harvest block manifest ", Version: 2,
	}
}

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
	*segfile.Writer
	l     *layout
	meta  []byte
	words bool // keys are done
	dict  *dict.Builder
	spool *segfile.Spool
	lists listWriter
}

// A census is what a segment knows of its documents.
type census struct {
	ids   []byte
	sizes []byte
	words uint64
}

func createSegment(path string, grain Grain, l *layout, c *census) (*segmentWriter, error) {
	f, err := files().Create(path)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{Writer: f, l: l}
	for _, n := range []uint64{uint64(grain), uint64(l.docs), uint64(l.exact), uint64(max(len(l.blocks), 1) - 1), uint64(l.stretches()), c.words} {
		w.meta = binary.AppendUvarint(w.meta, n)
	}
	for _, b := range [][]byte{c.ids, c.sizes, l.encode()} {
		w.section(b)
	}
	w.open("keys")
	return w, nil
}

// section writes one whole.
func (w *segmentWriter) section(b []byte) {
	w.Write(b)
	w.End()
}

func (w *segmentWriter) open(kind string) {
	w.spool = w.NewSpool(kind)
	w.dict = dict.NewBuilder(w.spool)
	w.lists = listWriter{}
}

// term adds a term; its list may be made coarser.
func (w *segmentWriter) term(term []byte, li *list) error {
	l := w.l
	if term[0] == keySpace {
		term = term[1:]
		l = l.fine()
	} else {
		if !w.words {
			w.endSpace()
			w.words = true
			w.open("words")
		}
		if l.coarsen(li); li.blocks {
			li.count = max(li.count, l.exact+1) // which tells it from a list of documents
		}
	}
	w.Fail(w.dict.Add(term, nil))
	w.lists.add(l, li)
	if len(w.lists.bits.b) >= 1<<16 {
		w.Write(w.lists.take())
	}
	return w.Err()
}

// endSpace writes what there is of keys, or of words.
func (w *segmentWriter) endSpace() {
	w.lists.endChunk()
	w.section(w.lists.take())
	w.section(w.lists.lengths)
	w.section(w.lists.groups)
	_, err := w.dict.Finish()
	w.Fail(err)
	w.spool.Section(w.Writer)
}

// close completes the file, or removes it.
func (w *segmentWriter) close() error {
	if w.endSpace(); !w.words {
		w.open("words")
		w.endSpace()
	}
	w.Finish(w.meta)
	return w.Close()
}

// drop gives the file up because of an error.
func (w *segmentWriter) drop(err error) error {
	w.Fail(err)
	w.spool.Close()
	return w.Close()
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
	*segfile.File
	number uint64
	layout
	census
	keys, terms space
	attrs       []string // names, in order

	stems dict.Stems
	names func() *segfile.IDs // of the documents; they are put in order when it is first called
}

// A space is a dictionary and its lists.
type space struct {
	dict  *dict.Dict
	lists *lists
}

func openSegment(path string, number uint64, grain Grain) (*segment, error) {
	f, err := files().Open(path)
	if err != nil {
		return nil, err
	}
	return newSegment(f, number, grain)
}

// newSegment verifies all of a file: a list is read without a look at its sum.
func newSegment(f *segfile.File, number uint64, grain Grain) (*segment, error) {
	if err := verify(f); err != nil {
		return nil, err
	}
	s := &segment{File: f, number: number}
	if !s.meta(grain) {
		return nil, f.Corrupt("table does not fit the file")
	}
	if err := s.keys.open(f, secKeys); err != nil {
		return nil, f.Corrupt("keys: %v", err)
	}
	if err := s.terms.open(f, secWords); err != nil {
		return nil, f.Corrupt("words: %v", err)
	}
	err := s.keys.dict.Prefix([]byte{attributeKind}, func(key, _ []byte, _ int) bool {
		s.attrs = append(s.attrs, string(key[1:]))
		return true
	})
	if err != nil {
		return nil, f.Corrupt("keys: %v", err)
	}
	ids := s.ids
	s.names = sync.OnceValue(func() *segfile.IDs { return segfile.NewIDs(ids, segfile.Order(ids)) })
	return s, nil
}

// verify compares all sums of a file.
func verify(f *segfile.File) error {
	for sec := range files().Sections {
		if err := f.VerifyAgain(sec); err != nil {
			return err
		}
	}
	return nil
}

func (s *segment) meta(grain Grain) bool {
	r := segfile.Reader{B: s.Meta}
	var v [6]uint64
	for i := range v {
		v[i] = r.Uvarint()
	}
	s.ids, s.sizes = s.Section(secIDs), s.Section(secSizes)
	s.words = v[5]
	if r.Bad || len(r.B) > 0 || v[0] != uint64(grain) || len(s.ids) != 16*len(s.sizes) || v[1] != uint64(len(s.sizes)) || v[1] >= 1<<31 || v[2] >= 1<<31 || v[4] >= 1<<32 {
		return false
	}
	s.docs, s.exact = uint32(v[1]), uint32(v[2])
	return s.decode(s.Section(secLayout), v[3], v[4], grain)
}

func (s *space) open(f *segfile.File, sec int) (err error) {
	if s.dict, err = dict.Open(f.Section(sec + 3)); err == nil {
		s.lists, err = openLists(s.dict.Len(), f.Section(sec), f.Section(sec+1), f.Section(sec+2))
	}
	return err
}

func (s *segment) id(doc uint32) index.ID { return index.ID(s.ids[16*doc:]) }

// size is about the length of a document's text.
func (s *segment) size(doc uint32) int64 { return classSize(s.sizes[doc]) }

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
