package near

import (
	"bytes"
	"encoding/binary"
	"slices"

	"harvest/gather/dup"
	"harvest/index/segfile"
)

// A segment is a file of documents that were applied or merged together. It
// never changes. Documents are numbered from 0 in the order they came; numbers
// are of 4 bytes, little endian, unless said.
//
//	ids       16 bytes a document
//	order     the documents in the order of their IDs
//	bytes     24 bytes a document: MD5 and size, 8 bytes big endian; zeros if not known
//	copies    those documents whose bytes are known, in the order of these
//	sketches  128 bytes a document (gather/dup); zeros of one without words
//	trees     32 times the documents with words, each time in the order of 4 bytes
//	          of their sketches: the first four, the second, and so on
//
// The table says, after the sections, as unsigned varints: documents, copies,
// documents with words. It comes to 304 bytes a document, 300 if its bytes are
// not known.
//
// Versions: 1, the first.
func format() *segfile.Format {
	return &segfile.Format{
		Name: "near", Magic: "harvest near 1\n", Sections: []string{"ids", "order", "bytes", "copies", "sketches", "trees"},
		Manifest: "harvest near manifest ", Version: 1,
	}
}

const (
	secIDs = iota
	secOrder
	secBytes
	secCopies
	secSketches
	secTrees

	idSize, bytesSize, sketchSize = 16, 24, len(dup.Sketch{})
)

type segment struct {
	*segfile.File
	number uint64
	docs   uint32
	worded int // of docs: those with words

	ids              *segfile.IDs
	bytes, copies    []byte
	sketches, sorted []byte
}

func openSegment(path string, number uint64) (*segment, error) {
	f, err := format().Open(path)
	if err != nil {
		return nil, err
	}
	return newSegment(f, number)
}

// newSegment verifies all of a segment, so that look-ups need not.
func newSegment(f *segfile.File, number uint64) (*segment, error) {
	r := segfile.Reader{B: f.Meta}
	docs, copies, worded := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if r.Bad || len(r.B) > 0 || docs > 1<<31 || copies > docs || worded > docs {
		return nil, f.Corrupt("table")
	}
	for s, want := range []uint64{idSize * docs, 4 * docs, bytesSize * docs, 4 * copies, uint64(sketchSize) * docs, dup.Trees * 4 * worded} {
		if uint64(len(f.Section(s))) != want {
			return nil, f.Corrupt("%s: got %d bytes, want %d", format().Sections[s], len(f.Section(s)), want)
		}
		if err := f.VerifySection(s); err != nil {
			return nil, err
		}
	}
	for _, s := range []int{secOrder, secCopies, secTrees} {
		list := f.Section(s)
		for i := 0; i < len(list); i += 4 {
			if binary.LittleEndian.Uint32(list[i:]) >= uint32(docs) {
				return nil, f.Corrupt("%s: a document that is none", format().Sections[s])
			}
		}
	}
	return &segment{
		File: f, number: number, docs: uint32(docs), worded: int(worded), ids: segfile.NewIDs(f.Section(secIDs), f.Section(secOrder)),
		bytes: f.Section(secBytes), copies: f.Section(secCopies), sketches: f.Section(secSketches), sorted: f.Section(secTrees),
	}, nil
}

func (s *segment) bytesOf(doc uint32) []byte {
	return s.bytes[bytesSize*uint64(doc):][:bytesSize]
}

func (s *segment) sketch(doc uint32) *dup.Sketch {
	return (*dup.Sketch)(s.sketches[uint64(sketchSize)*uint64(doc):])
}

// copy is the i-th document of those whose bytes are known.
func (s *segment) copy(i int) uint32 { return binary.LittleEndian.Uint32(s.copies[4*i:]) }

// tree gives the documents in the order of tree i, 4 bytes each.
func (s *segment) tree(i int) tree {
	return tree{s, i, s.sorted[4*i*s.worded:][:4*s.worded]}
}

// A tree is documents in the order of what a tree of their sketches has.
type tree struct {
	*segment
	number int
	list   []byte
}

func (t *tree) at(i int) uint32    { return binary.LittleEndian.Uint32(t.list[4*i:]) }
func (t *tree) keyAt(i int) uint32 { return t.sketch(t.at(i)).Tree(t.number) }

// Rows are documents to be written: by number, in memory or in other segments.
type rows interface {
	len() int
	id(i uint32) []byte
	bytes(i uint32) []byte
	sketch(i uint32) *dup.Sketch
}

// docs are rows in memory.
type docs []Doc

func (d docs) len() int                    { return len(d) }
func (d docs) id(i uint32) []byte          { return d[i].ID[:] }
func (d docs) sketch(i uint32) *dup.Sketch { return &d[i].Sketch }
func (d docs) bytes(i uint32) []byte       { return d[i].Bytes.encode() }

// encode is Bytes as they stand in a segment.
func (b Bytes) encode() []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, bytesSize), b.MD5[:]...), b.Size)
}

// joined are the documents left in several parts, one part after the other.
type joined struct {
	parts []part
	from  []uint64 // of each document its part and its number there
}

func merged(parts []part) joined {
	j := joined{parts: parts}
	for i, p := range parts {
		for d := range p.docs {
			if !p.gone.Has(d) {
				j.from = append(j.from, uint64(i)<<32|uint64(d))
			}
		}
	}
	return j
}

func (j joined) len() int { return len(j.from) }

func (j joined) at(i uint32) (*segment, uint32) {
	return j.parts[j.from[i]>>32].segment, uint32(j.from[i])
}

func (j joined) id(i uint32) []byte {
	s, d := j.at(i)
	id := s.ids.ID(d)
	return id[:]
}

func (j joined) bytes(i uint32) []byte {
	s, d := j.at(i)
	return s.bytesOf(d)
}

func (j joined) sketch(i uint32) *dup.Sketch {
	s, d := j.at(i)
	return s.sketch(d)
}

// write writes a segment. Beside the rows it takes 16 bytes of memory a document.
func write(path string, from rows) error {
	w, err := format().Create(path)
	if err != nil {
		return err
	}
	n := uint32(from.len())
	ids := make([]byte, 0, idSize*int(n))
	for i := range n {
		ids = append(ids, from.id(i)...)
	}
	section(w, ids)
	section(w, segfile.Order(ids))
	ids = nil
	for i := range n {
		w.Write(from.bytes(i))
	}
	w.End()
	copies := writeCopies(w, from)
	for i := range n {
		w.Write(from.sketch(i)[:])
	}
	w.End()
	worded := writeTrees(w, from)
	var meta []byte
	for _, n := range []int{int(n), copies, worded} {
		meta = binary.AppendUvarint(meta, uint64(n))
	}
	w.Finish(meta)
	return w.Close()
}

func section(w *segfile.Writer, b []byte) {
	w.Write(b)
	w.End()
}

func writeCopies(w *segfile.Writer, from rows) int {
	var list []uint32
	none := make([]byte, bytesSize)
	for i := range uint32(from.len()) {
		if !bytes.Equal(from.bytes(i), none) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return bytes.Compare(from.bytes(a), from.bytes(b)) })
	writeList(w, list)
	w.End()
	return len(list)
}

func writeList(w *segfile.Writer, list []uint32) {
	var buf [4096]byte
	for len(list) > 0 {
		n := min(len(list), len(buf)/4)
		for i, d := range list[:n] {
			binary.LittleEndian.PutUint32(buf[4*i:], d)
		}
		w.Write(buf[:4*n])
		list = list[n:]
	}
}

func writeTrees(w *segfile.Writer, from rows) (worded int) {
	var list, spare []uint64
	for i := range uint32(from.len()) {
		if !from.sketch(i).None() {
			worded++
		}
	}
	list, spare = make([]uint64, 0, worded), make([]uint64, worded)
	sorted := make([]uint32, worded)
	for t := range dup.Trees {
		list = list[:0]
		for i := range uint32(from.len()) {
			if s := from.sketch(i); !s.None() {
				list = append(list, uint64(s.Tree(t))<<32|uint64(i))
			}
		}
		list, spare = radix(list, spare)
		for i, k := range list {
			sorted[i] = uint32(k)
		}
		writeList(w, sorted)
	}
	w.End()
	return worded
}

// radix sorts list, of which the lower halves ascend already, by the upper
// halves; it gives what is sorted and what may be used again.
func radix(list, spare []uint64) (sorted, free []uint64) {
	if len(list) < 1<<12 {
		slices.Sort(list)
		return list, spare
	}
	spare = spare[:len(list)]
	for shift := 32; shift < 64; shift += 11 {
		var at [1 << 11]int
		for _, k := range list {
			at[k>>shift&(1<<11-1)]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, k := range list {
			i := k >> shift & (1<<11 - 1)
			spare[at[i]] = k
			at[i]++
		}
		list, spare = spare, list
	}
	return list, spare
}
