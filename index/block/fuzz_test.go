package block

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
	"harvest/index/segfiletest"
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

// readAll reads all of a segment.
func (s *segment) readAll() error {
	for d := range s.docs {
		s.names().Find(s.id(d))
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
	if sealed && !segfiletest.Seal(b, files()) {
		return
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
