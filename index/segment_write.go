package index

import (
	"encoding/binary"
	"io"
	"math/bits"

	"harvest/index/dict"
	"harvest/index/segfile"
)

// A segmentWriter writes a segment file: the postings of all terms as they
// come, then those of all keys, then the other sections. The dictionaries are
// kept aside meanwhile. An error stays.
type segmentWriter struct {
	*segfile.Writer
	table table

	terms, keys *side
	columns     *segfile.Spool
	value, four []byte
}

// A side is a dictionary that is kept aside.
type side struct {
	*segfile.Spool
	b *dict.Builder
}

func createSegment(path string) (*segmentWriter, error) {
	f, err := layout().Create(path)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{Writer: f, columns: f.NewSpool("columns")}
	w.terms, w.keys = w.side("terms"), w.side("keys")
	return w, nil
}

func (w *segmentWriter) side(kind string) *side {
	s := w.NewSpool(kind)
	return &side{s, dict.NewBuilder(s)}
}

// term adds a term, in order; its lists are written.
func (w *segmentWriter) term(term []byte, t *termInfo) {
	w.value = appendValue(w.value[:0], t)
	w.Fail(w.terms.b.Add(term, w.value))
}

// key adds a key, which is what appendKey made, and gives its ordinal.
func (w *segmentWriter) key(key []byte, t *termInfo) int {
	w.value = appendValue(w.value[:0], t)
	w.Fail(w.keys.b.Add(key, w.value))
	return w.keys.b.Len() - 1
}

// dictionaries ends the postings and writes what was kept aside.
func (w *segmentWriter) dictionaries() {
	w.End() // postings
	for _, s := range []*side{w.terms, w.keys} {
		_, err := s.b.Finish()
		w.Fail(err)
		s.Section(w.Writer)
	}
	w.columns.Section(w.Writer)
}

// column writes that of a field. Each calls yield with documents in order, n
// of them, and with what the ordinals of their keys are beyond f.firstKey, at
// most highest and never 0. It may be called twice.
func (w *segmentWriter) column(f *field, docs, n int, highest uint64, each func(yield func(doc uint32, value uint64))) {
	if n == 0 {
		return
	}
	to := w.columns
	at := to.Size()
	f.width = uint64(bits.Len64(highest))
	var b bitWriter
	if uint64(n)*(32+f.width) < uint64(docs)*f.width {
		f.sparse = uint64(n)
		each(func(doc uint32, _ uint64) { b.add(to, uint64(doc), 32) })
		each(func(_ uint32, v uint64) { b.add(to, v, uint(f.width)) })
	} else {
		next := 0
		each(func(doc uint32, v uint64) {
			for ; next < int(doc); next++ {
				b.add(to, 0, uint(f.width))
			}
			b.add(to, v, uint(f.width))
			next++
		})
		for ; next < docs; next++ {
			b.add(to, 0, uint(f.width))
		}
	}
	b.end(to)
	w.Fail(to.Err())
	f.column = extent{at, to.Size() - at}
}

// A bitWriter packs numbers of at most 32 bits.
type bitWriter struct {
	v   uint64
	n   uint
	buf []byte
}

func (b *bitWriter) add(w io.Writer, v uint64, width uint) {
	b.v |= v << b.n
	if b.n += width; b.n >= 32 {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(b.v))
		b.v >>= 32
		b.n -= 32
		if len(b.buf) >= 4096 {
			w.Write(b.buf)
			b.buf = b.buf[:0]
		}
	}
}

// end writes what is left and 8 bytes, so that each number can be read as a
// part of one of 64 bits.
func (b *bitWriter) end(w io.Writer) {
	for ; b.n > 0; b.n -= min(b.n, 8) {
		b.buf = append(b.buf, byte(b.v))
		b.v >>= 8
	}
	w.Write(append(b.buf, make([]byte, 8)...))
}

// A docTable is the documents of a segment that is being written. Its functions
// call yield for each in order of number, order for the numbers in order of ID.
type docTable struct {
	n       int
	ids     func(yield func(ID))
	order   func(yield func(uint32))
	lengths func(yield func(uint32))
	norms   []byte
}

// documents writes the rest of the sections and syncs.
func (w *segmentWriter) documents(d *docTable) {
	d.ids(func(id ID) { w.Write(id[:]) })
	w.End()
	d.order(w.number)
	w.End()
	d.lengths(func(n uint32) {
		w.table.text += uint64(n)
		w.number(n)
	})
	w.End()
	w.Write(d.norms)
	w.End()
	w.table.docs = uint32(d.n)
	w.Finish(w.table.appendTo(nil))
}

func (w *segmentWriter) number(n uint32) {
	w.four = binary.LittleEndian.AppendUint32(w.four[:0], n)
	w.Write(w.four)
}

// close closes the file, and removes it unless it is whole.
func (w *segmentWriter) close() error {
	for _, s := range []*segfile.Spool{w.terms.Spool, w.keys.Spool, w.columns} {
		s.Close()
	}
	return w.Close()
}
