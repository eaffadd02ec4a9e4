package index

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"harvest/index/segfile"
	"harvest/index/segfiletest"
)

// FuzzSegment reads anything as a segment, with sums that fit it and without.
// What comes of it is an error of class ErrCorrupt, or can be read.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	someIndex(f, dir)
	for name, b := range contents(f, dir) {
		if name != segfile.ManifestName && len(b) < 6_000 {
			f.Add(b, true, uint16(0), byte(0))
		}
	}
	path := filepath.Join(f.TempDir(), "segment")
	f.Fuzz(func(t *testing.T, b []byte, sealed bool, at uint16, by byte) {
		if len(b) > 0 {
			b[int(at)%len(b)] ^= by
		}
		if sealed && !segfiletest.Seal(b, layout()) {
			return
		}
		must(t, os.WriteFile(path, b, 0o666))
		s, err := openSegment(path, 1)
		if err == nil {
			err = s.readAll()
		}
		if err == nil {
			err = (&part{segment: s}).check(t.Context())
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("got %v, want %v", err, ErrCorrupt)
		}
		os.Remove(path)
	})
}

// TestSealed changes bytes of segments and has the sums fit, as FuzzSegment does.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	someIndex(t, dir)
	r := newRandom(t)
	path := filepath.Join(t.TempDir(), "segment")
	read := 0
	for name, b := range contents(t, dir) {
		if name == segfile.ManifestName {
			continue
		}
		for range 300 {
			c := append([]byte(nil), b...)
			for range 1 + r.IntN(3) {
				c[r.IntN(len(c))] = byte(rand.Uint32())
			}
			if !segfiletest.Seal(c, layout()) {
				continue
			}
			must(t, os.WriteFile(path, c, 0o666))
			s, err := openSegment(path, 1)
			if err == nil {
				read++
				err = s.readAll()
			}
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v, want %v", err, ErrCorrupt)
			}
		}
	}
	if read < 300 {
		t.Errorf("got %d segments that could be opened", read)
	}
}
