package block

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"syscall"

	"harvest/index"
)

// A file of an index is its magic, sections one behind the other, and a tail:
// for each section its length (8 bytes) and CRC-32C (4), then the CRC-32C of
// the tail up to here and "hv$\n".
const (
	fileEnd  = "hv$\n"
	tailItem = 8 + 4
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func corrupt(path, format string, arg ...any) error {
	return fmt.Errorf("%s: %s: %w", path, fmt.Sprintf(format, arg...), index.ErrCorrupt)
}

// A fileWriter writes a file. Errors are kept for close.
type fileWriter struct {
	f    *os.File
	w    *bufio.Writer
	tail []byte
	sum  uint32 // of the section being written
	size uint64 // likewise
	all  int64  // bytes of ended sections
}

func createFile(path, magic string) (*fileWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	w := &fileWriter{f: f, w: bufio.NewWriterSize(f, 1<<16)}
	w.w.WriteString(magic)
	return w, nil
}

// Write adds to the section.
func (w *fileWriter) Write(b []byte) (int, error) {
	w.sum = crc32.Update(w.sum, castagnoli(), b)
	w.size += uint64(len(b))
	return w.w.Write(b)
}

func (w *fileWriter) end() {
	w.tail = binary.LittleEndian.AppendUint64(w.tail, w.size)
	w.tail = binary.LittleEndian.AppendUint32(w.tail, w.sum)
	w.all += int64(w.size)
	w.sum, w.size = 0, 0
}

// section writes one whole.
func (w *fileWriter) section(b []byte) {
	w.Write(b)
	w.end()
}

// close makes the file complete and durable; without an error it is.
func (w *fileWriter) close() error {
	w.tail = binary.LittleEndian.AppendUint32(w.tail, crc32.Checksum(w.tail, castagnoli()))
	w.w.Write(w.tail)
	w.w.WriteString(fileEnd)
	err := w.w.Flush()
	if err == nil {
		err = w.f.Sync()
	}
	if e := w.f.Close(); err == nil {
		err = e
	}
	return err
}

// drop gives the file up.
func (w *fileWriter) drop() {
	w.f.Close()
	os.Remove(w.f.Name())
}

// A mapped file: its sections, whose sums were found right. The bytes stay
// mapped until the value is collected.
type mapped struct {
	path     string
	data     []byte
	sections [][]byte
}

func openFile(path, magic string, sections int) (*mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() == 0 {
		return nil, corrupt(path, "empty")
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	m := &mapped{path: path, data: data}
	runtime.AddCleanup(m, func(b []byte) { syscall.Munmap(b) }, data)
	return m, m.parse(magic, sections)
}

// parse finds the sections and checks their sums.
func (m *mapped) parse(magic string, sections int) error {
	if !bytes.HasPrefix(m.data, []byte(magic)) {
		return corrupt(m.path, "begins with %q, want %q", m.data[:min(len(m.data), len(magic))], magic)
	}
	body := len(m.data) - len(fileEnd) - 4 - tailItem*sections
	if body < len(magic) || !bytes.HasSuffix(m.data, []byte(fileEnd)) {
		return corrupt(m.path, "no end")
	}
	tail := m.data[body : len(m.data)-len(fileEnd)]
	tail, sum := tail[:len(tail)-4], binary.LittleEndian.Uint32(tail[len(tail)-4:])
	if crc32.Checksum(tail, castagnoli()) != sum {
		return corrupt(m.path, "tail: bad checksum")
	}
	at := uint64(len(magic))
	for ; len(tail) > 0; tail = tail[tailItem:] {
		size := binary.LittleEndian.Uint64(tail)
		if size > uint64(body)-at {
			return corrupt(m.path, "section %d: %d bytes of %d", len(m.sections), size, uint64(body)-at)
		}
		m.sections = append(m.sections, m.data[at:at+size:at+size])
		at += size
	}
	if at != uint64(body) {
		return corrupt(m.path, "%d bytes in no section", uint64(body)-at)
	}
	return m.check()
}

// check compares the sums of the sections.
func (m *mapped) check() error {
	tail := m.data[len(m.data)-len(fileEnd)-4-tailItem*len(m.sections):]
	for i, s := range m.sections {
		want := binary.LittleEndian.Uint32(tail[tailItem*i+8:])
		if got := crc32.Checksum(s, castagnoli()); got != want {
			return corrupt(m.path, "section %d: checksum is %08x, the file says %08x", i, got, want)
		}
	}
	return nil
}

// A spool keeps what will be a section while another is written: in memory,
// and from spoolMemory on in a file.
type spool struct {
	path string
	buf  bytes.Buffer
	f    *os.File
	err  error
}

const spoolMemory = 4 << 20

func (s *spool) Write(b []byte) (int, error) {
	if s.buf.Len()+len(b) > spoolMemory {
		s.flush()
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.buf.Write(b)
}

func (s *spool) flush() {
	if s.err == nil && s.f == nil {
		s.f, s.err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
		if s.err == nil {
			os.Remove(s.path)
		}
	}
	if s.err == nil {
		_, s.err = s.f.Write(s.buf.Bytes())
	}
	s.buf.Reset()
}

// to moves all of it to w, as a section.
func (s *spool) to(w *fileWriter) error {
	if s.f != nil && s.err == nil {
		if _, s.err = s.f.Seek(0, io.SeekStart); s.err == nil {
			_, s.err = io.Copy(w, s.f)
		}
	}
	if s.err == nil {
		_, s.err = s.buf.WriteTo(w)
	}
	w.end()
	s.close()
	return s.err
}

func (s *spool) close() {
	if s.f != nil {
		s.f.Close()
		s.f = nil
	}
}
