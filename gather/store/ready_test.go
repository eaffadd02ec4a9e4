package store

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// checkGzip reads the collection as changes in gzip, once as any writer gets it
// and once from the copy that is ready by then.
func checkGzip(t *testing.T, s *Store, want []byte) {
	t.Helper()
	for range 2 {
		var packed sentFiles
		if err := s.WriteSinceGzip(ctx, &packed, Cursor{}); err != nil {
			t.Fatal(err)
		}
		zr, err := gzip.NewReader(&packed.Buffer)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("since/0.gz: got %d bytes %v, want the %d of since/0", len(got), err, len(want))
		}
	}
}

// checkWhole reads since/0 and since/0.zst in pieces of any length.
func checkWhole(t *testing.T, s *Store, want []byte) {
	t.Helper()
	for _, packed := range []bool{false, true} {
		w, err := s.whole(packed)
		if err != nil || w == nil {
			t.Fatalf("whole, packed %t: got %v, %v", packed, w, err)
		}
		defer w.Close()
		var all []byte
		for n := 1; ; n = (n*7 + 3) % 5000 {
			p := make([]byte, n)
			m, err := w.ReadAt(ctx, p, int64(len(all)))
			all = append(all, p[:m]...)
			if err == io.EOF {
				break
			}
			if err != nil || m != n {
				t.Fatalf("packed %t, at %d: got %d of %d bytes, %v", packed, len(all), m, n, err)
			}
		}
		if packed {
			d, err := zstd.NewReader(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if all, err = d.DecodeAll(all, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(all, want) {
			t.Fatalf("packed %t: got %d bytes, want the %d of since/0", packed, len(all), len(want))
		}
		if n, err := w.ReadAt(ctx, make([]byte, 1), 1<<40); n != 0 || err != io.EOF {
			t.Errorf("far behind the end: got %d, %v", n, err)
		}
	}
}

// sentFiles is what a connection would be given, and how much of it as files.
type sentFiles struct {
	bytes.Buffer
	files int64
}

func (s *sentFiles) WriteFile(f *os.File, off, n int64) error {
	s.files += n
	_, err := io.Copy(&s.Buffer, io.NewSectionReader(f, off, n))
	return err
}

// What is ready goes out as it lies on disk, and is the same collection.
func TestReady(t *testing.T) {
	s := opened(t, Options{Frame: 512})
	for i := range 100 {
		apply(t, s, update("http://h/"+string(rune('a'+i%26))+string(rune('a'+i/26)), "text of an object"))
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	var since bytes.Buffer
	if err := s.WriteSince(ctx, &since, Cursor{}); err != nil {
		t.Fatal(err)
	}
	for i, wantFiles := range []bool{false, true} { // the first time each frame is looked at
		var w sentFiles
		if err := s.WriteSinceZstd(ctx, &w, Cursor{}); err != nil {
			t.Fatal(err)
		}
		size := int64(w.Len())
		zr, err := zstd.NewReader(&w.Buffer)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, since.Bytes()) {
			t.Errorf("round %d: got %d bytes %v, want the %d of since/0", i, len(got), err, since.Len())
		}
		zr.Close()
		if (w.files > size*8/10) != wantFiles {
			t.Errorf("round %d: %d of %d bytes went as files, want most: %t", i, w.files, size, wantFiles)
		}
	}
	checkGzip(t, s, since.Bytes())
	apply(t, s, update("http://h/aa", "changed"))
	since.Reset()
	if err := s.WriteSince(ctx, &since, Cursor{}); err != nil {
		t.Fatal(err)
	}
	before := s.gzip.size
	checkGzip(t, s, since.Bytes())
	if grown := s.gzip.size - before; grown > before/10 {
		t.Errorf("after one change %d bytes were packed again, of %d", grown, before)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "gzip-*")); len(left) != 0 {
		t.Errorf("files are left: %q", left)
	}
}

// The copy is made anew when most of it is dead, and who reads the old one reads
// it to its end.
func TestGzipCopyAnew(t *testing.T) {
	s := opened(t, Options{Frame: 256})
	apply(t, s, update("http://h/a", "1"), update("http://h/b", "2"))
	sn, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer sn.Close()
	file, all, err := s.gzip.members(ctx, sn)
	if err != nil {
		t.Fatal(err)
	}
	s.gzip.dead = 10 << 20
	var since bytes.Buffer
	if err := s.WriteSince(ctx, &since, Cursor{}); err != nil {
		t.Fatal(err)
	}
	checkGzip(t, s, since.Bytes())
	if s.gzip.file == file || s.gzip.dead != 0 {
		t.Error("the copy was not made anew")
	}
	if n, err := io.Copy(io.Discard, io.NewSectionReader(file.f, all[0].off, all[0].n)); err != nil || n != all[0].n {
		t.Errorf("the old copy: got %d bytes %v, want %d", n, err, all[0].n)
	}
	if err := file.release(); err != nil {
		t.Error(err)
	}
	if _, err := file.f.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("the old copy is still open after its last reader")
	}
}
