package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	iofs "io/fs"
	"os"
	"path/filepath"

	"harvest/index"
)

// The file MANIFEST says which segments are the index and which of their
// documents are gone. It is replaced as a whole, so an index is always what
// one Apply or one merge made of it. Unsigned varints:
//
//	"harvest block manifest 1\n"
//	grain, 1 if numbers are left out
//	length of the mark, the mark
//	number of the next segment
//	number of segments; for each: its number, how many of its documents are
//	gone, the gaps between their numbers (the first from 0)
//	CRC-32C of all before, 4 bytes
//
// Versions: 1, the first.
const (
	manifestName  = "MANIFEST"
	manifestMagic = "harvest block manifest 1\n"
)

// A manifest as it is read.
type manifest struct {
	grain     Grain
	noNumbers bool
	mark      string
	next      uint64
	segs      []manifestSegment
}

type manifestSegment struct {
	number uint64
	gone   []uint32
}

func segmentPath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("block-%08d", number))
}

func (v *view) encode(grain Grain, noNumbers bool) []byte {
	b := []byte(manifestMagic)
	b = binary.AppendUvarint(b, uint64(grain))
	b = append(b, 0)
	if noNumbers {
		b[len(b)-1] = 1
	}
	b = binary.AppendUvarint(b, uint64(len(v.mark)))
	b = append(b, v.mark...)
	b = binary.AppendUvarint(b, v.next)
	b = binary.AppendUvarint(b, uint64(len(v.parts)))
	for _, p := range v.parts {
		b = binary.AppendUvarint(b, p.number)
		b = binary.AppendUvarint(b, uint64(p.dead))
		var last uint32
		p.gone.each(func(d uint32) bool {
			b = binary.AppendUvarint(b, uint64(d-last))
			last = d
			return true
		})
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// decodeManifest takes any bytes and allocates no more than they can mean.
func decodeManifest(b []byte) (m manifest, err error) {
	if len(b) < len(manifestMagic)+4 || !bytes.HasPrefix(b, []byte(manifestMagic)) {
		return m, corrupt(manifestName, "not a manifest of version 1")
	}
	b, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, castagnoli()) != sum {
		return m, corrupt(manifestName, "bad checksum")
	}
	b = b[len(manifestMagic):]
	short := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			short = true
			return 0
		}
		b = b[n:]
		return v
	}
	m.grain = Grain(number())
	m.noNumbers = number() == 1
	if n := number(); n <= uint64(len(b)) {
		m.mark, b = string(b[:n]), b[n:]
	} else {
		short = true
	}
	m.next = number()
	for n := number(); n > 0 && !short; n-- {
		s := manifestSegment{number: number()}
		var last uint64
		for dead := number(); dead > 0 && !short; dead-- {
			last += number()
			s.gone = append(s.gone, uint32(last))
		}
		m.segs = append(m.segs, s)
	}
	if short || len(b) > 0 {
		return manifest{}, corrupt(manifestName, "bad length")
	}
	return m, nil
}

// load reads the index of a directory; a new one is empty.
func load(dir string, grain Grain, noNumbers bool) (*view, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, iofs.ErrNotExist) {
		return &view{}, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, err
	}
	if m.grain != grain || m.noNumbers != noNumbers {
		return nil, fmt.Errorf("%s: grain %v, without numbers %v: %w", dir, m.grain, m.noNumbers, index.ErrSettings)
	}
	v := &view{mark: m.mark, next: m.next}
	for _, ms := range m.segs {
		path := segmentPath(dir, ms.number)
		s, err := openSegment(path, ms.number, grain)
		if errors.Is(err, iofs.ErrNotExist) {
			return nil, corrupt(path, "the manifest has it, the directory does not")
		}
		if err != nil {
			return nil, err
		}
		for _, d := range ms.gone {
			if d >= s.docs {
				return nil, corrupt(path, "the manifest says document %d of %d is gone", d, s.docs)
			}
		}
		v.parts = append(v.parts, part{segment: s}.without(ms.gone))
	}
	return v, nil
}

// save makes v the index of the directory: segments are synced already. After
// an error, done tells that v may nevertheless be what the disk says.
func (v *view) save(dir string, grain Grain, noNumbers bool) (done bool, err error) {
	if err := syncDir(dir); err != nil { // the names of new segments
		return false, err
	}
	path := filepath.Join(dir, manifestName)
	if err := writeSynced(path+".new", v.encode(grain, noNumbers)); err != nil {
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
