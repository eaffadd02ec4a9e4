package index

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"slices"

	"harvest/index/dict"
)

// A segmentWriter writes a segment file: the postings of all terms as they
// come, then those of all keys, then the other sections. The dictionaries are
// kept aside meanwhile. An error stays.
type segmentWriter struct {
	f     *os.File
	buf   []byte
	err   error
	table table

	sum   uint32 // of the chunk at hand
	room  int    // bytes that it takes yet
	sums  []byte // of those before
	begun uint64 // where the section begins
	at    uint64 // where the file goes on

	terms, keys, columns side
	value, four          []byte
}

const writeBuffer = 256 << 10

func createSegment(path string) (*segmentWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{f: f, buf: append(make([]byte, 0, len(segmentMagic)), segmentMagic...), room: chunkSize}
	w.at = uint64(len(segmentMagic))
	w.begun = w.at
	w.terms.init(path + ".terms")
	w.keys.init(path + ".keys")
	w.columns.init(path + ".columns")
	return w, nil
}

// Write appends to the section at hand.
func (w *segmentWriter) Write(b []byte) (int, error) {
	n := len(b)
	w.at += uint64(n)
	for rest := b; len(rest) > 0; {
		k := min(w.room, len(rest))
		w.sum = crc32.Update(w.sum, castagnoli(), rest[:k])
		rest = rest[k:]
		if w.room -= k; w.room == 0 {
			w.endChunk()
		}
	}
	if len(w.buf)+n > writeBuffer {
		w.flush()
	}
	if n > writeBuffer {
		w.put(b)
	} else {
		w.buf = append(w.buf, b...)
	}
	return n, w.err
}

func (w *segmentWriter) flush() {
	w.put(w.buf)
	w.buf = w.buf[:0]
}

func (w *segmentWriter) put(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.f.Write(b)
	}
}

func (w *segmentWriter) endChunk() {
	w.sums = binary.LittleEndian.AppendUint32(w.sums, w.sum)
	w.sum, w.room = 0, chunkSize
}

// end ends the section at hand, which is sec.
func (w *segmentWriter) end(sec section) {
	w.table.sections[sec] = extent{w.begun, w.at - w.begun}
	w.begun = w.at
	if w.room < chunkSize {
		w.endChunk()
	}
}

// offset is where in the postings the next bytes come.
func (w *segmentWriter) offset() uint64 { return w.at - w.begun }

// term adds a term, in order; its lists are written.
func (w *segmentWriter) term(term []byte, t *termInfo) {
	w.value = appendValue(w.value[:0], t)
	w.fail(w.terms.b.Add(term, w.value))
}

// key adds a key, which is what appendKey made, and gives its ordinal.
func (w *segmentWriter) key(key []byte, t *termInfo) int {
	w.value = appendValue(w.value[:0], t)
	w.fail(w.keys.b.Add(key, w.value))
	return w.keys.b.Len() - 1
}

func (w *segmentWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// dictionaries ends the postings and writes what was kept aside.
func (w *segmentWriter) dictionaries() {
	w.end(secPostings)
	w.fail(w.terms.finish())
	w.fail(w.terms.copy(w))
	w.end(secTerms)
	w.fail(w.keys.finish())
	w.fail(w.keys.copy(w))
	w.end(secKeys)
	w.fail(w.columns.copy(w))
	w.end(secColumns)
}

// column writes that of a field. Each calls yield with documents in order, n
// of them, and with what the ordinals of their keys are beyond f.firstKey, at
// most highest and never 0. It may be called twice.
func (w *segmentWriter) column(f *field, docs, n int, highest uint64, each func(yield func(doc uint32, value uint64))) {
	if n == 0 {
		return
	}
	to := &w.columns
	at := to.n
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
	w.fail(to.err)
	f.column = extent{at, to.n - at}
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
	w.end(secIDs)
	d.order(w.number)
	w.end(secOrder)
	d.lengths(func(n uint32) {
		w.table.text += uint64(n)
		w.number(n)
	})
	w.end(secLengths)
	w.Write(d.norms)
	w.end(secNorms)
	w.table.docs = uint32(d.n)
	w.finish()
}

func (w *segmentWriter) number(n uint32) {
	w.four = binary.LittleEndian.AppendUint32(w.four[:0], n)
	w.Write(w.four)
}

func (w *segmentWriter) finish() {
	sums := slices.Clone(w.sums)
	w.Write(sums)
	w.end(secSums)
	le := binary.LittleEndian
	table := w.table.appendTo(nil)
	w.Write(le.AppendUint32(nil, crc32.Checksum(sums, castagnoli())))
	w.Write(table)
	tail := le.AppendUint32(nil, uint32(len(table)))
	tail = le.AppendUint32(tail, crc32.Checksum(table, castagnoli()))
	w.Write(append(tail, segmentEnd...))
	w.flush()
	if w.err == nil {
		w.err = w.f.Sync()
	}
}

// close closes the file, and removes it unless it is whole.
func (w *segmentWriter) close() error {
	for _, s := range []*side{&w.terms, &w.keys, &w.columns} {
		s.close()
	}
	w.fail(w.f.Close())
	if w.err != nil {
		os.Remove(w.f.Name())
		return fmt.Errorf("%s: %w", w.f.Name(), w.err)
	}
	return nil
}

// A side keeps a section, which may be a dictionary, while the file takes
// something else: in memory at first, in a file of its own when it is large.
type side struct {
	b    *dict.Builder
	n    uint64
	err  error
	buf  []byte
	path string
	f    *os.File
}

const sideBuffer = 4 << 20

func (s *side) init(path string) {
	s.path = path
	s.b = dict.NewBuilder(s)
}

// Write does not fail twice.
func (s *side) Write(b []byte) (int, error) {
	s.n += uint64(len(b))
	if len(s.buf)+len(b) > sideBuffer && s.err == nil {
		s.err = s.spill()
	}
	if s.err != nil {
		return 0, s.err
	}
	s.buf = append(s.buf, b...)
	return len(b), nil
}

func (s *side) spill() (err error) {
	if s.f == nil {
		if s.f, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			return err
		}
	}
	_, err = s.f.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// finish ends the dictionary.
func (s *side) finish() error {
	_, err := s.b.Finish()
	return err
}

// copy writes all of it to w.
func (s *side) copy(w io.Writer) error {
	if s.err != nil {
		return s.err
	}
	if s.f != nil {
		if _, err := s.f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(w, s.f); err != nil {
			return err
		}
	}
	_, err := w.Write(s.buf)
	return err
}

func (s *side) close() {
	if s.f != nil {
		s.f.Close()
		os.Remove(s.path)
	}
}
