package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	iofs "io/fs"
	"math/bits"
	"os"
	"path/filepath"
)

// The file MANIFEST says which segments are the index, and is replaced as a
// whole, so an index is always what one Apply made of it. Unsigned varints:
//
//	"harvest manifest 2\n"
//	settings: 1 without positions, 2 without numbers, added up
//	length of mark, mark
//	number of the next segment
//	number of segments; for each:
//	  its number, bytes, documents, the CRC-32C of its table, how many of its
//	  documents are gone, and these: the gaps between their numbers (the first
//	  from 0) or, if more than an eighth of the documents are gone, a bit each
//	CRC-32C of all before, 4 bytes
//
// Versions: 1, of the first engine; 2, with settings and what segments are.
const (
	manifestName  = "MANIFEST"
	manifestMagic = "harvest manifest 2\n"
	manifestAny   = "harvest manifest "

	withoutPositions = 1
	withoutNumbers   = 2
)

// A manifest as it is read: the segments by number.
type manifest struct {
	settings uint64
	mark     string
	next     uint64
	segs     []manifestSegment
}

type manifestSegment struct {
	number, size, docs, sum uint64
	gone                    []uint32
}

func segmentPath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("segment-%08d", number))
}

func (s *Settings) bits() (b uint64) {
	if s.NoPositions {
		b |= withoutPositions
	}
	if s.NoNumbers {
		b |= withoutNumbers
	}
	return b
}

// encode is the manifest of v.
func (v *view) encode(settings, next uint64) []byte {
	b := binary.AppendUvarint([]byte(manifestMagic), settings)
	b = binary.AppendUvarint(b, uint64(len(v.mark)))
	b = append(b, v.mark...)
	b = binary.AppendUvarint(b, next)
	b = binary.AppendUvarint(b, uint64(len(v.parts)))
	for i := range v.parts {
		p := &v.parts[i]
		for _, n := range []uint64{p.number, uint64(len(p.data)), uint64(p.docs), uint64(p.tableSum()), uint64(p.gone.count())} {
			b = binary.AppendUvarint(b, n)
		}
		b = p.gone.appendTo(b, p.docs)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// sparse tells whether gaps are kept of so many documents that are gone.
func sparse(gone, docs uint64) bool { return gone <= docs/8 }

func (g *gone) appendTo(b []byte, docs uint32) []byte {
	if g == nil {
		return b
	}
	dense := !sparse(uint64(g.n), uint64(docs))
	last := 0
	for i, w := range g.set {
		if dense {
			b = binary.LittleEndian.AppendUint64(b, w)
			continue
		}
		for ; w != 0; w &= w - 1 {
			d := 64*i + bits.TrailingZeros64(w)
			b = binary.AppendUvarint(b, uint64(d-last))
			last = d
		}
	}
	return b
}

// readGone is the inverse; docs is what the manifest says.
func readGone(c *checked, n, docs uint64) (list []uint32) {
	if sparse(n, docs) {
		last := uint64(0)
		for ; n > 0 && !c.bad; n-- {
			last += c.uvarint()
			c.bad = c.bad || last >= docs
			list = append(list, uint32(last))
		}
		return list
	}
	if docs > 8*uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	for i := range (docs + 63) / 64 {
		b := c.bytes(8)
		if c.bad {
			return nil
		}
		for w := binary.LittleEndian.Uint64(b); w != 0; w &= w - 1 {
			d := 64*i + uint64(bits.TrailingZeros64(w))
			c.bad = c.bad || d >= docs
			list = append(list, uint32(d))
		}
	}
	c.bad = c.bad || uint64(len(list)) != n
	return list
}

// decodeManifest takes any bytes and allocates no more than they can mean.
func decodeManifest(b []byte) (m manifest, err error) {
	if bytes.HasPrefix(b, []byte(manifestAny)) && !bytes.HasPrefix(b, []byte(manifestMagic)) {
		return m, fmt.Errorf("%s: of another version: %w", manifestName, ErrSettings)
	}
	if len(b) < len(manifestMagic)+4 || !bytes.HasPrefix(b, []byte(manifestMagic)) {
		return m, fmt.Errorf("%s: not a manifest: %w", manifestName, ErrCorrupt)
	}
	b, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, castagnoli()) != sum {
		return m, fmt.Errorf("%s: bad checksum: %w", manifestName, ErrCorrupt)
	}
	c := checked{b: b[len(manifestMagic):]}
	m.settings = c.uvarint()
	m.mark = string(c.bytes(c.uvarint()))
	m.next = c.uvarint()
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		s := manifestSegment{number: c.uvarint(), size: c.uvarint(), docs: c.uvarint(), sum: c.uvarint()}
		s.gone = readGone(&c, c.uvarint(), s.docs)
		m.segs = append(m.segs, s)
	}
	if c.bad || len(c.b) > 0 {
		return manifest{}, fmt.Errorf("%s: bad length: %w", manifestName, ErrCorrupt)
	}
	return m, nil
}

// load reads the index of a directory; a new one is empty.
func load(dir string, settings uint64) (v *view, next uint64, err error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, iofs.ErrNotExist) {
		return newView("", nil), 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, 0, err
	}
	if m.settings != settings {
		return nil, 0, fmt.Errorf("%s: settings %d, not %d: %w", manifestName, m.settings, settings, ErrSettings)
	}
	var parts []part
	for i := range m.segs {
		p, err := m.segs[i].open(dir)
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, p)
	}
	return newView(m.mark, parts), m.next, nil
}

func (ms *manifestSegment) open(dir string) (part, error) {
	path := segmentPath(dir, ms.number)
	s, err := openSegment(path, ms.number)
	if errors.Is(err, iofs.ErrNotExist) {
		return part{}, corrupt(path, "the manifest has it, the directory does not")
	}
	if err != nil {
		return part{}, err
	}
	if uint64(len(s.data)) != ms.size || uint64(s.docs) != ms.docs || uint64(s.tableSum()) != ms.sum {
		return part{}, corrupt(path, "it is another than the manifest has")
	}
	if len(ms.gone) > 0 { // whose lengths are read
		if err := s.verifySection(secLengths); err != nil {
			return part{}, err
		}
	}
	return part{segment: s}.without(ms.gone), nil
}

// save makes v the index of the directory: segments are synced already, and with
// them, on the file systems of Linux, that they are there; the sync of the
// directory at the end makes sure of it before anybody is told. After an error,
// done tells that v may nevertheless be what the disk says.
func (v *view) save(dir string, settings, next uint64) (done bool, err error) {
	path := filepath.Join(dir, manifestName)
	if err := writeSynced(path+".new", v.encode(settings, next)); err != nil {
		os.Remove(path + ".new")
		return false, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return true, err
	}
	return true, syncDir(dir)
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
