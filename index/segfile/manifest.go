package segfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ManifestName is that of the file that says which segments are the index, and
// which of their documents are gone. It is replaced as a whole, so an index is
// always what one change made of it. Unsigned varints:
//
//	the first line: Format.Manifest, the version
//	settings, as the engine has them
//	length of mark, mark
//	number of the next segment
//	number of segments; for each:
//	  its number, bytes, documents, the CRC-32C of its table, how many of its
//	  documents are gone, and these: the gaps between their numbers (the first
//	  from 0) or, if more than an eighth of the documents are gone, a bit each
//	CRC-32C of all before, 4 bytes
const ManifestName = "MANIFEST"

// A Manifest is an index: some segments, by number.
type Manifest struct {
	Settings uint64
	Mark     string
	Next     uint64 // number of the next segment
	Segments []Entry
}

// An Entry is a segment of a manifest.
type Entry struct {
	Number          uint64
	size, docs, sum uint64
	tombstones      *Tombstones
	Gone            []uint32 // as it is read; all below the documents it says there are
}

// Entry gives that of a segment, of so many documents.
func (m *File) Entry(number uint64, docs uint32, t *Tombstones) Entry {
	return Entry{Number: number, size: uint64(len(m.data)), docs: uint64(docs), sum: uint64(m.sum), tombstones: t}
}

func (f *Format) magic() string { return f.Manifest + strconv.Itoa(f.Version) + "\n" }

func (m *Manifest) encode(f *Format) []byte {
	b := binary.AppendUvarint([]byte(f.magic()), m.Settings)
	b = binary.AppendUvarint(b, uint64(len(m.Mark)))
	b = append(b, m.Mark...)
	b = binary.AppendUvarint(b, m.Next)
	b = binary.AppendUvarint(b, uint64(len(m.Segments)))
	for i := range m.Segments {
		e := &m.Segments[i]
		for _, n := range []uint64{e.Number, e.size, e.docs, e.sum, uint64(e.tombstones.Count())} {
			b = binary.AppendUvarint(b, n)
		}
		b = e.tombstones.appendTo(b, e.docs)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// decode takes any bytes and allocates no more than they can mean.
func (m *Manifest) decode(f *Format, b []byte) error {
	magic := []byte(f.magic())
	if bytes.HasPrefix(b, []byte(f.Manifest)) && !bytes.HasPrefix(b, magic) {
		return fmt.Errorf("%s: of another version: %w", ManifestName, ErrSettings)
	}
	if len(b) < len(magic)+4 || !bytes.HasPrefix(b, magic) {
		return corrupt(ManifestName, "not a manifest")
	}
	b, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, castagnoli()) != sum {
		return corrupt(ManifestName, "bad checksum")
	}
	r := Reader{B: b[len(magic):]}
	m.Settings = r.Uvarint()
	m.Mark = string(r.Bytes(r.Uvarint()))
	m.Next = r.Uvarint()
	for n := r.Uvarint(); n > 0 && !r.Bad; n-- {
		e := Entry{Number: r.Uvarint(), size: r.Uvarint(), docs: r.Uvarint(), sum: r.Uvarint()}
		e.Gone = readGone(&r, r.Uvarint(), e.docs)
		m.Segments = append(m.Segments, e)
	}
	if r.Bad || len(r.B) > 0 {
		*m = Manifest{}
		return corrupt(ManifestName, "bad length")
	}
	return nil
}

// Load reads the manifest of a directory; that of a new one is empty. One with
// other settings is an ErrSettings.
func (f *Format) Load(dir string, settings uint64) (m Manifest, err error) {
	b, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if errors.Is(err, iofs.ErrNotExist) {
		return Manifest{Settings: settings}, nil
	}
	if err != nil {
		return m, err
	}
	if err := m.decode(f, b); err != nil {
		return m, err
	}
	if m.Settings != settings {
		return m, fmt.Errorf("%s: settings %d, not %d: %w", ManifestName, m.Settings, settings, ErrSettings)
	}
	return m, nil
}

// OpenEntry opens a segment that the manifest names.
func (f *Format) OpenEntry(dir string, e *Entry) (*File, error) {
	path := f.Path(dir, e.Number)
	m, err := f.Open(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, corrupt(path, "the manifest has it, the directory does not")
	}
	if err == nil && (e.size != uint64(len(m.data)) || e.sum != uint64(m.sum)) {
		return nil, m.Corrupt("it is another than the manifest has")
	}
	return m, err
}

// Has tells whether the segment has the documents that the manifest says.
func (e *Entry) Has(docs uint32) bool { return e.docs == uint64(docs) }

// Save makes m the index of the directory: segments are synced already, and with
// them, on the file systems of Linux, that they are there; the sync of the
// directory at the end makes sure of it before anybody is told. After an error,
// done tells that m may nevertheless be what the disk says.
func (m *Manifest) Save(dir string, f *Format) (done bool, err error) {
	path := filepath.Join(dir, ManifestName)
	if err := writeSynced(path+".new", m.encode(f)); err != nil {
		os.Remove(path + ".new")
		return false, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return true, err
	}
	return true, syncDir(dir)
}

// Check reads the manifest of a directory, where there is one unless nothing
// is to be in it.
func (f *Format) Check(dir string, empty bool) error {
	b, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if empty && errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = new(Manifest).decode(f, b)
	}
	return err
}

// Sweep removes the files of a directory that an index may have left behind:
// those that have gives are its segments. Other names begin with one of also.
func (f *Format) Sweep(dir string, have func(path string) bool, also ...string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		ours := strings.HasPrefix(e.Name(), f.Name+"-") || e.Name() == ManifestName+".new"
		for _, prefix := range also {
			ours = ours || strings.HasPrefix(e.Name(), prefix)
		}
		path := filepath.Join(dir, e.Name())
		if ours && !have(path) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
