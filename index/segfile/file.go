// Package segfile is the files that both engines keep an index in: segments,
// which are written once, mapped, and verified by pieces (File, Writer, Spool); the
// manifest that makes some of them one index (Manifest); and what follows from
// segments that never change: documents that are deleted get a tombstone in the
// manifest (Tombstones), and those that are put again are found by ID (IDs).
// What stands in a section is the engine's.
//
// # Segments
//
// Numbers are unsigned varints where nothing else is said, else little endian.
//
//	magic     of the engine, with the version of its format
//	sections  one behind the other
//	sums      the last section: the CRC-32C of each 65,536 bytes of a section, or what
//	          its last has less; 4 bytes each, in the order of the sections
//	sum       the CRC-32C of sums, 4 bytes
//	table     of each section, sums too, where it begins and its bytes; then what
//	          the engine says of the whole
//	tail      bytes of table, CRC-32C of table, 4 bytes each; "harvest\n"
//
// The table is verified when a file is opened, everything else when it is asked for.
package segfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
)

// ErrCorrupt is the class of an error about files that do not hold what was
// written to them.
var ErrCorrupt = errors.New("index is corrupt")

// ErrSettings is the class of an error about an index that was made with other
// settings, or by another version.
var ErrSettings = errors.New("index was made with other settings")

// A Format is what the files of an engine are called and begin with.
type Format struct {
	Name     string   // of segments, before "-" and the number
	Magic    string   // they begin with
	Sections []string // in order, but for the sums

	Manifest string // the first line of a manifest, up to the version
	Version  int    // that follows
}

// Path names a segment.
func (f *Format) Path(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%08d", f.Name, number))
}

const (
	fileEnd   = "harvest\n"
	tailSize  = 4 + 4 + len(fileEnd)
	chunkSize = 64 << 10
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A File is a segment that is mapped. It never changes. The map goes when the
// garbage collector finds the File unused: whoever reads from it keeps it alive
// (runtime.KeepAlive) until after the last read.
type File struct {
	Path string
	Meta []byte // what the engine says in the table

	format   *Format
	data     []byte
	sections [][]byte        // and the sums
	first    []uint64        // chunk of each of these
	sum      uint32          // of the table
	good     []atomic.Uint64 // chunks verified, a bit each
}

// Open maps a segment and reads its table.
func (f *Format) Open(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < int64(len(f.Magic)+4+tailSize) {
		return nil, corrupt(path, "%d bytes are too few", st.Size())
	}
	data, err := syscall.Mmap(int(in.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	m := &File{Path: path, format: f, data: data}
	runtime.AddCleanup(m, func(b []byte) { syscall.Munmap(b) }, data)
	if err := m.readTable(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *File) readTable() error {
	n := len(m.data)
	tail := m.data[n-tailSize:]
	size := binary.LittleEndian.Uint32(tail)
	m.sum = binary.LittleEndian.Uint32(tail[4:])
	switch magic := m.format.Magic; {
	case !bytes.HasPrefix(m.data, []byte(magic)):
		return m.Corrupt("begins with %q", m.data[:len(magic)])
	case string(tail[8:]) != fileEnd:
		return m.Corrupt("ends with %q", tail[8:])
	case uint64(size)+uint64(tailSize+4+len(magic)) > uint64(n):
		return m.Corrupt("table of %d bytes in %d", size, n)
	}
	body := n - tailSize - int(size)
	table := m.data[body : n-tailSize]
	if got := crc32.Checksum(table, castagnoli()); got != m.sum {
		return m.Corrupt("table: checksum is %08x, the file says %08x", got, m.sum)
	}
	if !m.place(table, uint64(body)-4) {
		return m.Corrupt("table does not fit the file")
	}
	sums := m.sums()
	if got, want := crc32.Checksum(sums, castagnoli()), binary.LittleEndian.Uint32(m.data[body-4:]); got != want {
		return m.Corrupt("sums: checksum is %08x, the file says %08x", got, want)
	}
	m.good = make([]atomic.Uint64, (len(sums)/4+63)/64)
	return nil
}

// place finds the sections, which are to follow one another up to end.
func (m *File) place(table []byte, end uint64) bool {
	r := Reader{B: table}
	at, chunks := uint64(len(m.format.Magic)), uint64(0)
	for range len(m.format.Sections) + 1 {
		begin, size := r.Uvarint(), r.Uvarint()
		if r.Bad || begin != at || size > end-at {
			return false
		}
		m.sections = append(m.sections, m.data[at:at+size:at+size])
		m.first = append(m.first, chunks)
		at += size
		chunks += (size + chunkSize - 1) / chunkSize
	}
	m.Meta = r.B
	return at == end && uint64(len(m.sums())) == 4*m.first[len(m.format.Sections)]
}

func (m *File) sums() []byte { return m.sections[len(m.sections)-1] }

// Size is that of the file.
func (m *File) Size() int { return len(m.data) }

// Section gives a section's bytes.
func (m *File) Section(s int) []byte { return m.sections[s] }

// VerifySection is Verify for all of a section.
func (m *File) VerifySection(s int) error { return m.Verify(s, 0, uint64(len(m.sections[s]))) }

// Verify compares sums of the chunks that hold the bytes of a section, unless
// that was done before.
func (m *File) Verify(s int, at, size uint64) error {
	if size == 0 {
		return nil
	}
	for i := at / chunkSize; i <= (at+size-1)/chunkSize; i++ {
		n := m.first[s] + i
		if bit := uint64(1) << (n % 64); m.good[n/64].Load()&bit == 0 {
			if err := m.verifyChunk(s, i, n); err != nil {
				return err
			}
			m.good[n/64].Or(bit)
		}
	}
	return nil
}

// verifyChunk compares the sum of a section's i-th chunk, the file's n-th.
func (m *File) verifyChunk(s int, i, n uint64) error {
	b := m.sections[s][i*chunkSize:]
	b = b[:min(len(b), chunkSize)]
	want := binary.LittleEndian.Uint32(m.sums()[4*n:])
	if got := crc32.Checksum(b, castagnoli()); got != want {
		return m.Corrupt("%s: at byte %d the checksum is %08x, the file says %08x", m.format.Sections[s], i*chunkSize, got, want)
	}
	return nil
}

// VerifyAgain compares the sums of a section, whether that was done or not.
func (m *File) VerifyAgain(s int) error {
	for i := uint64(0); i*chunkSize < uint64(len(m.sections[s])); i++ {
		if err := m.verifyChunk(s, i, m.first[s]+i); err != nil {
			return err
		}
	}
	return nil
}

// Corrupt is an error of class ErrCorrupt about the file.
func (m *File) Corrupt(format string, arg ...any) error { return corrupt(m.Path, format, arg...) }

func corrupt(path, format string, arg ...any) error {
	return fmt.Errorf("%s: %s: %w", path, fmt.Sprintf(format, arg...), ErrCorrupt)
}

// A Reader reads numbers from bytes that may be anything; once they have not
// held what was asked for it is Bad, and gives zeros.
type Reader struct {
	B   []byte // what is left
	Bad bool
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.B)
	if n <= 0 {
		r.B, r.Bad = nil, true
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Bytes reads n bytes, nil if there are fewer.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.B, r.Bad = nil, true
		return nil
	}
	b := r.B[:n:n]
	r.B = r.B[n:]
	return b
}
