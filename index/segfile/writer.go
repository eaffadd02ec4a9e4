package segfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A Writer writes a segment, section by section. An error stays; Close gives it.
type Writer struct {
	format *Format
	f      *os.File
	buf    []byte
	err    error

	sum     uint32   // of the chunk at hand
	room    int      // bytes that it takes yet
	sums    []byte   // of those before
	at      uint64   // where the file goes on
	begun   uint64   // where the section at hand begins
	extents []uint64 // of those before: where they begin, their bytes
}

const writeBuffer = 256 << 10

// Create makes a file for a segment; there must be none.
func (f *Format) Create(path string) (*Writer, error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{format: f, f: out, buf: append(make([]byte, 0, len(f.Magic)), f.Magic...), room: chunkSize}
	w.at = uint64(len(f.Magic))
	w.begun = w.at
	return w, nil
}

// Write appends to the section at hand.
func (w *Writer) Write(b []byte) (int, error) {
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
	w.write(b)
	return n, w.err
}

// write writes what has no sum of its own.
func (w *Writer) write(b []byte) {
	if len(w.buf)+len(b) > writeBuffer {
		w.put(w.buf)
		w.buf = w.buf[:0]
	}
	if len(b) > writeBuffer {
		w.put(b)
	} else {
		w.buf = append(w.buf, b...)
	}
}

func (w *Writer) put(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.f.Write(b)
	}
}

func (w *Writer) endChunk() {
	w.sums = binary.LittleEndian.AppendUint32(w.sums, w.sum)
	w.sum, w.room = 0, chunkSize
}

// End ends the section at hand.
func (w *Writer) End() {
	w.extents = append(w.extents, w.begun, w.at-w.begun)
	w.begun = w.at
	if w.room < chunkSize {
		w.endChunk()
	}
}

// Offset is where in the section the next bytes come.
func (w *Writer) Offset() uint64 { return w.at - w.begun }

// Fail keeps the first error there is.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Err is the error that stays.
func (w *Writer) Err() error { return w.err }

// Finish writes the sums, and the table with what the engine says in it, and
// syncs the file. All sections have ended.
func (w *Writer) Finish(meta []byte) {
	if n := len(w.extents) / 2; n != len(w.format.Sections) && w.err == nil {
		panic(fmt.Sprintf("%d sections of %d", n, len(w.format.Sections)))
	}
	le := binary.LittleEndian
	w.write(w.sums)
	w.write(le.AppendUint32(nil, crc32.Checksum(w.sums, castagnoli())))
	var table []byte
	for _, n := range append(w.extents, w.at, uint64(len(w.sums))) {
		table = binary.AppendUvarint(table, n)
	}
	table = append(table, meta...)
	w.write(table)
	tail := le.AppendUint32(nil, uint32(len(table)))
	tail = le.AppendUint32(tail, crc32.Checksum(table, castagnoli()))
	w.write(append(tail, fileEnd...))
	w.put(w.buf)
	if w.err == nil {
		w.err = w.f.Sync()
	}
}

// Close closes the file, and removes it if there was an error.
func (w *Writer) Close() error {
	w.Fail(w.f.Close())
	if w.err != nil {
		os.Remove(w.f.Name())
		return fmt.Errorf("%s: %w", w.f.Name(), w.err)
	}
	return nil
}

// A Spool keeps what will be a section while the file takes another: in memory
// at first, in a file without a name when it is large. An error stays.
type Spool struct {
	path string
	n    uint64
	err  error
	buf  []byte
	f    *os.File
}

const spoolMemory = 4 << 20

// NewSpool makes one for a section of w, which kind tells from others.
func (w *Writer) NewSpool(kind string) *Spool { return &Spool{path: w.f.Name() + "." + kind} }

// Size is how much was written.
func (s *Spool) Size() uint64 { return s.n }

// Err is the error that stays.
func (s *Spool) Err() error { return s.err }

func (s *Spool) Write(b []byte) (int, error) {
	s.n += uint64(len(b))
	if len(s.buf)+len(b) > spoolMemory && s.err == nil {
		s.err = s.spill()
	}
	if s.err != nil {
		return 0, s.err
	}
	s.buf = append(s.buf, b...)
	return len(b), nil
}

func (s *Spool) spill() (err error) {
	if s.f == nil {
		if s.f, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			return err
		}
		if err = os.Remove(s.path); err != nil {
			return err
		}
	}
	_, err = s.f.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Section writes all of it to w as the section at hand, and ends that.
func (s *Spool) Section(w *Writer) {
	if s.f != nil && s.err == nil {
		if _, s.err = s.f.Seek(0, io.SeekStart); s.err == nil {
			_, s.err = io.Copy(w, s.f)
		}
	}
	if s.err == nil {
		w.Write(s.buf)
	}
	w.Fail(s.err)
	w.End()
	s.Close()
}

// Close gives up what is kept.
func (s *Spool) Close() {
	if s.f != nil {
		s.f.Close()
		s.f = nil
	}
	s.buf = nil
}
