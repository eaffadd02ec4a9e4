package block

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
)

// someSegments are the files of small indexes of all grains.
func someSegments(t testing.TB) (files [][]byte) {
	t.Helper()
	h := enginetest.NewHistory(3)
	puts, _ := h.Changes(20)
	for grain := Tiny; grain <= Medium; grain++ {
		dir := t.TempDir()
		e, err := Open(dir, index.Settings{Source: h, Workers: 1}, grain)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Apply(t.Context(), index.Docs(puts[:40]), nil, "mark"); err != nil {
			t.Fatal(err)
		}
		e.Close()
		names, err := filepath.Glob(filepath.Join(dir, "block-*"))
		if err != nil || len(names) != 1 {
			t.Fatalf("got files %v, %v, want one", names, err)
		}
		b, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	return files
}

// seal gives a file the sums that its sections have, so that what reads them
// must take them as they are.
func seal(b []byte) {
	body := len(b) - len(fileEnd) - 4 - tailItem*sections
	if body < len(segmentMagic) {
		return
	}
	copy(b, segmentMagic)
	copy(b[len(b)-len(fileEnd):], fileEnd)
	le := binary.LittleEndian
	tail := b[body:]
	at := uint64(len(segmentMagic))
	for i := range sections {
		size := le.Uint64(tail[tailItem*i:])
		if size > uint64(body)-at {
			break
		}
		le.PutUint32(tail[tailItem*i+8:], crc32.Checksum(b[at:at+size], castagnoli()))
		at += size
	}
	le.PutUint32(tail[tailItem*sections:], crc32.Checksum(tail[:tailItem*sections], castagnoli()))
}

// readAll reads all of a segment.
func (s *segment) readAll() error {
	for d := range s.docs {
		var id index.ID
		copy(id[:], s.ids[16*d:])
		s.find(id)
	}
	for _, sp := range []*space{&s.keys, &s.terms} {
		l := &s.layout
		if sp == &s.keys {
			l = s.fine()
		}
		r := sp.lists.reader(l)
		var li list
		c := sp.dict.Cursor()
		for c.Next() {
			r.list(c.Ord(), &li)
		}
		if c.Err() != nil {
			return index.ErrCorrupt
		}
	}
	return nil
}

// FuzzSegment reads anything as a segment, with sums that fit it and without.
func FuzzSegment(f *testing.F) {
	for _, b := range someSegments(f) {
		f.Add(b, true, uint16(0), byte(0))
	}
	path := filepath.Join(f.TempDir(), "segment")
	f.Fuzz(func(t *testing.T, b []byte, sealed bool, at uint16, by byte) {
		readSegment(t, path, b, sealed, int(at), by)
	})
}

func readSegment(t *testing.T, path string, b []byte, sealed bool, at int, by byte) {
	t.Helper()
	if len(b) > 0 {
		b[at%len(b)] ^= by
	}
	if sealed {
		seal(b)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for grain := Tiny; grain <= Medium; grain++ {
		s, err := openSegment(path, 1, grain)
		if err == nil {
			err = s.readAll()
		}
		if err != nil && !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("got %v, want %v", err, index.ErrCorrupt)
		}
	}
}

// TestSealed changes each byte of segments and has the sums fit, as
// FuzzSegment does.
func TestSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	for _, b := range someSegments(t) {
		for at := 0; at < len(b); at += 11 {
			readSegment(t, path, append([]byte(nil), b...), true, at, byte(1+at%255))
		}
	}
}

func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	h := enginetest.NewHistory(3)
	e, err := Open(dir, index.Settings{Source: h, Workers: 1}, Small)
	if err != nil {
		f.Fatal(err)
	}
	for step := range 3 {
		puts, deletes := h.Changes(20 + step)
		if err := e.Apply(f.Context(), index.Docs(puts), deletes, "mark"); err != nil {
			f.Fatal(err)
		}
	}
	e.Close()
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 {
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli()))
		}
		if _, err := decodeManifest(b); err != nil && !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("got %v, want %v", err, index.ErrCorrupt)
		}
	})
}
