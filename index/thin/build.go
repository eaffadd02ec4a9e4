package thin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"harvest/index"
	"hash"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"
)

// A segmentWriter writes the sections of a segment file in order: begin
// attribute, its words, its values, …, then the documents.
type segmentWriter struct {
	f      *os.File
	w      *bufio.Writer
	sum    hash.Hash32
	at     uint64
	dict   []byte   // the words section, kept until the postings are written
	blocks []uint64 // offsets in dict
	values []byte   // the values section
	fields []field
	last   []byte // word before, of the same block
	doc    uint32 // of the last value
	buf    []byte
}

func createSegment(path string) (*segmentWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	sum := crc32.New(castagnoli())
	w := &segmentWriter{f: f, w: bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<18), sum: sum}
	w.write([]byte(segmentMagic))
	return w, nil
}

// write keeps the first error in the bufio.Writer.
func (w *segmentWriter) write(b []byte) {
	w.w.Write(b)
	w.at += uint64(len(b))
}

func (w *segmentWriter) attribute(name string) {
	w.fields = append(w.fields, field{name: name, block: len(w.blocks), valuesFrom: uint64(len(w.values))})
	w.doc = 0
}

// word adds a word of the attribute; words come in order.
func (w *segmentWriter) word(word []byte, docs int, documents, positions []byte) {
	f := &w.fields[len(w.fields)-1]
	shared := 0
	if f.words%blockWords == 0 {
		w.blocks = append(w.blocks, uint64(len(w.dict)))
		w.dict = binary.AppendUvarint(w.dict, w.at)
		f.blocks++
	} else {
		for shared < min(len(word), len(w.last)) && word[shared] == w.last[shared] {
			shared++
		}
	}
	w.dict = binary.AppendUvarint(w.dict, uint64(shared))
	w.dict = binary.AppendUvarint(w.dict, uint64(len(word)-shared))
	w.dict = append(w.dict, word[shared:]...)
	w.dict = binary.AppendUvarint(w.dict, uint64(docs))
	w.dict = binary.AppendUvarint(w.dict, uint64(len(documents)))
	w.dict = binary.AppendUvarint(w.dict, uint64(len(positions)))
	w.last = append(w.last[:0], word...)
	f.words++
	w.write(documents)
	w.write(positions)
}

// value adds a value of the attribute; documents come in order.
func (w *segmentWriter) value(doc uint32, sum uint64) {
	w.fields[len(w.fields)-1].values++
	w.values = binary.AppendUvarint(w.values, uint64(doc-w.doc))
	w.values = binary.LittleEndian.AppendUint64(w.values, sum)
	w.doc = doc
}

// close writes the rest and syncs. Without an error the file is whole.
func (w *segmentWriter) close(ids []index.ID, lengths []uint32) error {
	err := w.finish(ids, lengths)
	if e := w.f.Close(); err == nil {
		err = e
	}
	return err
}

func (w *segmentWriter) finish(ids []index.ID, lengths []uint32) error {
	le := binary.LittleEndian
	dict := w.at
	w.write(w.dict)
	var f footer
	f.Blocks = w.at
	for _, at := range w.blocks {
		w.write(le.AppendUint64(w.buf[:0], dict+at))
	}
	f.Values = w.at
	w.write(w.values)
	f.Fields = w.at
	for _, a := range w.fields {
		w.buf = append(binary.AppendUvarint(w.buf[:0], uint64(len(a.name))), a.name...)
		for _, n := range []int{a.words, a.blocks, a.values} {
			w.buf = binary.AppendUvarint(w.buf, uint64(n))
		}
		w.write(binary.AppendUvarint(w.buf, f.Values+a.valuesFrom))
	}
	f.Docs = w.at
	f.NDocs, f.NBlocks, f.NFields = uint32(len(ids)), uint32(len(w.blocks)), uint32(len(w.fields))
	order := make([]uint32, len(ids))
	for i := range ids {
		order[i] = uint32(i)
		w.write(ids[i][:])
	}
	for _, n := range lengths {
		w.write(le.AppendUint32(w.buf[:0], n))
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(ids[a][:], ids[b][:]) })
	for _, n := range order {
		w.write(le.AppendUint32(w.buf[:0], n))
	}
	copy(f.End[:], segmentEnd)
	tail, err := binary.Append(nil, le, &f)
	if err != nil {
		return err
	}
	w.write(tail[:len(tail)-12])
	if err := w.w.Flush(); err != nil {
		return err
	}
	w.write(le.AppendUint32(nil, w.sum.Sum32()))
	w.write(f.End[:])
	if err := w.w.Flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

// A builder turns documents round: from words by document to documents by word.
type builder struct {
	fields  map[string]*fieldBuilder
	ids     []index.ID
	lengths []uint32
	doc     uint32
}

type fieldBuilder struct {
	words  map[string]*postings
	values []value
	doc    uint32 // the last with a value here
	pos    uint32 // the next position in it
}

type value struct {
	doc uint32
	sum uint64
}

// postings of one word; those of the document at hand are still being counted.
type postings struct {
	documents, positions []byte
	docs                 int
	doc                  uint32 // being counted
	last                 uint32 // before that
	count                int
	from                 int // of its positions
	pos                  uint32
}

func (p *postings) add(doc, pos uint32) {
	if p.count == 0 || p.doc != doc {
		p.flush()
		p.doc, p.pos, p.from = doc, 0, len(p.positions)
	}
	p.positions = binary.AppendUvarint(p.positions, uint64(pos-p.pos))
	p.pos = pos
	p.count++
}

func (p *postings) flush() {
	if p.count == 0 {
		return
	}
	p.documents = appendPosting(p.documents, p.doc-p.last, p.count, len(p.positions)-p.from)
	p.last = p.doc
	p.docs++
	p.count = 0
}

func appendPosting(b []byte, gap uint32, count, bytes int) []byte {
	b = binary.AppendUvarint(b, uint64(gap))
	b = binary.AppendUvarint(b, uint64(count))
	return binary.AppendUvarint(b, uint64(bytes))
}

func newBuilder() *builder { return &builder{fields: make(map[string]*fieldBuilder)} }

func (b *builder) add(d *index.Doc) {
	b.doc = uint32(len(b.ids))
	b.ids = append(b.ids, d.ID)
	var length uint32
	for i := range d.Fields {
		length += b.field(&d.Fields[i])
	}
	b.lengths = append(b.lengths, length)
}

// field adds one value and gives the number of its words.
func (b *builder) field(v *index.Field) (n uint32) {
	name := index.Attr(v.Name)
	f := b.fields[name]
	if f == nil {
		f = &fieldBuilder{words: make(map[string]*postings), doc: ^uint32(0)}
		b.fields[name] = f
	}
	if f.doc == b.doc {
		f.pos += valueGap
	} else {
		f.doc, f.pos = b.doc, 0
	}
	f.values = append(f.values, value{b.doc, sumOf(v.Text)})
	Words(v.Text, func(word []byte, _, _ int) bool {
		p := f.words[string(word)]
		if p == nil {
			p = &postings{last: ^uint32(0)}
			f.words[string(word)] = p
		}
		p.add(b.doc, f.pos)
		f.pos++
		n++
		return true
	})
	return n
}

func sumOf(text string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, text)
	return h.Sum64()
}

// write makes the segment file.
func (b *builder) write(ctx context.Context, path string) error {
	w, err := createSegment(path)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(b.fields))
	for name := range b.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			w.f.Close()
			return err
		}
		b.fields[name].write(w, name)
	}
	return w.close(b.ids, b.lengths)
}

func (f *fieldBuilder) write(w *segmentWriter, name string) {
	type entry struct {
		word string
		*postings
	}
	list := make([]entry, 0, len(f.words))
	for word, p := range f.words {
		list = append(list, entry{word, p})
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.word, b.word) })
	w.attribute(name)
	for _, e := range list {
		e.flush()
		w.word([]byte(e.word), e.docs, e.documents, e.positions)
	}
	slices.SortStableFunc(f.values, func(a, b value) int { return cmp.Compare(a.doc, b.doc) })
	for _, v := range f.values {
		w.value(v.doc, v.sum)
	}
}
