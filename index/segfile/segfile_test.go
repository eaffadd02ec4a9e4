package segfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/index/segfile"
	"harvest/index/segfiletest"
)

func layout() *segfile.Format {
	return &segfile.Format{Name: "part", Magic: "test segment 1\n", Sections: []string{"front", "middle", "back"}, Manifest: "test manifest ", Version: 3}
}

func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a segment of three sections; the middle one is kept aside.
func write(t testing.TB, path string, sections [3][]byte, meta string) {
	t.Helper()
	w, err := layout().Create(path)
	must(t, err)
	s := w.NewSpool("middle")
	for b := range slices.Chunk(sections[1], 70_000) {
		s.Write(b)
	}
	for b := range slices.Chunk(sections[0], 100_001) {
		w.Write(b)
	}
	if w.Offset() != uint64(len(sections[0])) || s.Size() != uint64(len(sections[1])) {
		t.Errorf("got %d and %d bytes, want %d and %d", w.Offset(), s.Size(), len(sections[0]), len(sections[1]))
	}
	w.End()
	s.Section(w)
	w.Write(sections[2])
	w.End()
	w.Finish([]byte(meta))
	must(t, w.Close())
}

func filled(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// What is written is read again, whatever the sizes, and the spool leaves no file.
func TestFile(t *testing.T) {
	r := random(t)
	const chunk = 64 << 10
	for i, n := range [][3]int{{0, 0, 0}, {1, 0, 3}, {chunk, chunk - 1, chunk + 1}, {0, 5 << 20, 2*chunk + 7}, {300_000, 4<<20 + 1, 0}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		want := [3][]byte{filled(r, n[0]), filled(r, n[1]), filled(r, n[2])}
		write(t, path, want, fmt.Sprint("meta ", i))
		f, err := layout().Open(path)
		must(t, err)
		if string(f.Meta) != fmt.Sprint("meta ", i) {
			t.Errorf("got %q, want meta %d", f.Meta, i)
		}
		for s := range want {
			must(t, f.VerifySection(s))
			if !bytes.Equal(f.Section(s), want[s]) {
				t.Errorf("%v: section %d is another", n, s)
			}
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 {
			t.Errorf("%v: got files %v, want one", n, list)
		}
	}
}

// A byte that is another is found by who asks for its piece of 64 KiB, by nobody else.
func TestPieces(t *testing.T) {
	r := random(t)
	path := filepath.Join(t.TempDir(), "x")
	const chunk = 64 << 10
	write(t, path, [3][]byte{filled(r, 3*chunk), filled(r, 10), filled(r, chunk+1)}, "")
	b, err := os.ReadFile(path)
	must(t, err)
	x := segfiletest.Extents(b, layout())["front"]
	b[x.From+chunk+5] ^= 4
	must(t, os.WriteFile(path, b, 0o666))
	f, err := layout().Open(path)
	must(t, err)
	for _, tt := range []struct {
		at, size uint64
		ok       bool
	}{{0, chunk, true}, {2 * chunk, 1, true}, {2*chunk - 1, 0, true}, {chunk, 1, false}, {chunk - 1, 2, false}, {2*chunk - 1, 1, false}} {
		if err := f.Verify(0, tt.at, tt.size); errors.Is(err, segfile.ErrCorrupt) == tt.ok {
			t.Errorf("%d bytes at %d: got %v, want good %v", tt.size, tt.at, err, tt.ok)
		}
	}
	must(t, f.VerifySection(1))
	must(t, f.VerifyAgain(2))
	err = f.VerifyAgain(0)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "front: at byte 65536") {
		t.Errorf("got %v, want the file and the place", err)
	}
}

// Any byte that is another is found by Open or by who verifies all of it.
func TestDamage(t *testing.T) {
	r := random(t)
	path := filepath.Join(t.TempDir(), "x")
	write(t, path, [3][]byte{filled(r, 50), filled(r, 60), filled(r, 70)}, "of the engine")
	b, err := os.ReadFile(path)
	must(t, err)
	try := func(what string, b []byte) {
		t.Helper()
		must(t, os.WriteFile(path, b, 0o666))
		f, err := layout().Open(path)
		for s := 0; err == nil && s < 3; s++ {
			err = f.VerifySection(s)
		}
		if !errors.Is(err, segfile.ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %v and the name", what, err, segfile.ErrCorrupt)
		}
	}
	for at := range b {
		c := slices.Clone(b)
		c[at] ^= 1 << r.IntN(8)
		try(fmt.Sprint("byte ", at), c)
		try(fmt.Sprint("cut to ", at), b[:at])
	}
	try("longer", append(slices.Clone(b), 0))
}

// FuzzFile reads anything as a segment, with sums that fit it and without.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x")
	write(f, path, [3][]byte{{1, 2, 3}, {}, []byte("back")}, "meta")
	b, err := os.ReadFile(path)
	must(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, sealed := range []bool{false, true} {
			if sealed && !segfiletest.Seal(b, layout()) {
				return
			}
			must(t, os.WriteFile(path, b, 0o666))
			m, err := layout().Open(path)
			for s := 0; err == nil && s < 3; s++ {
				err = m.VerifySection(s)
			}
			if err != nil && !errors.Is(err, segfile.ErrCorrupt) {
				t.Errorf("got %v, want %v", err, segfile.ErrCorrupt)
			}
		}
	})
}

// some is a segment in dir, of docs documents as far as a manifest is concerned.
func some(t testing.TB, dir string, number uint64) *segfile.File {
	t.Helper()
	path := layout().Path(dir, number)
	write(t, path, [3][]byte{{byte(number)}, {}, {}}, fmt.Sprint(number))
	f, err := layout().Open(path)
	must(t, err)
	return f
}

// A manifest says what was saved, with few documents gone, many and none.
func TestManifest(t *testing.T) {
	r := random(t)
	dir := t.TempDir()
	if m, err := layout().Load(dir, 7); err != nil || len(m.Segments) != 0 {
		t.Fatalf("a new directory: got %v, %v", m, err)
	}
	must(t, layout().Check(dir, true))
	if err := layout().Check(dir, false); err == nil {
		t.Error("got no error of a manifest that is not there")
	}
	const docs = 1000
	want := segfile.Manifest{Settings: 7, Mark: "a\x00mark", Next: 9}
	var gone [][]uint32
	for i, n := range []int{0, 1, docs / 8, docs / 2, docs} {
		list := []uint32{}
		for _, d := range r.Perm(docs)[:n] {
			list = append(list, uint32(d))
		}
		var none *segfile.Tombstones
		ts := none.With(list, docs, nil)
		if ts.Count() != n {
			t.Errorf("got %d gone, want %d", ts.Count(), n)
		}
		want.Segments = append(want.Segments, some(t, dir, uint64(i)).Entry(uint64(i), docs, ts))
		slices.Sort(list)
		gone = append(gone, list)
	}
	done, err := want.Save(dir, layout())
	if !done || err != nil {
		t.Fatalf("got %v, %v", done, err)
	}
	got, err := layout().Load(dir, 7)
	must(t, err)
	if got.Mark != want.Mark || got.Next != 9 || len(got.Segments) != len(gone) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range got.Segments {
		e := &got.Segments[i]
		if !slices.Equal(e.Gone, gone[i]) || !e.Has(docs) || e.Has(docs-1) || e.Number != uint64(i) {
			t.Errorf("segment %d: got %d gone, want %d", e.Number, len(e.Gone), len(gone[i]))
		}
		_, err := layout().OpenEntry(dir, e)
		must(t, err)
	}
	e := &got.Segments[2]
	must(t, os.Rename(layout().Path(dir, 3), layout().Path(dir, 2)))
	if _, err := layout().OpenEntry(dir, e); !errors.Is(err, segfile.ErrCorrupt) {
		t.Errorf("another segment: got %v, want %v", err, segfile.ErrCorrupt)
	}
	if _, err := layout().OpenEntry(dir, &got.Segments[3]); !errors.Is(err, segfile.ErrCorrupt) {
		t.Errorf("no segment: got %v, want %v", err, segfile.ErrCorrupt)
	}
	if _, err := layout().Load(dir, 6); !errors.Is(err, segfile.ErrSettings) {
		t.Errorf("other settings: got %v, want %v", err, segfile.ErrSettings)
	}
	other := layout()
	other.Version = 2
	if _, err := other.Load(dir, 7); !errors.Is(err, segfile.ErrSettings) {
		t.Errorf("another version: got %v, want %v", err, segfile.ErrSettings)
	}
}

func manifest(t testing.TB, dir string) []byte {
	t.Helper()
	var none *segfile.Tombstones
	m := segfile.Manifest{Settings: 1, Mark: "mark", Next: 2, Segments: []segfile.Entry{
		some(t, dir, 0).Entry(0, 100, none.With([]uint32{3, 70}, 100, nil)), some(t, dir, 1).Entry(1, 70, none.With([]uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 69}, 70, nil)),
	}}
	_, err := m.Save(dir, layout())
	must(t, err)
	b, err := os.ReadFile(filepath.Join(dir, segfile.ManifestName))
	must(t, err)
	return b
}

func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	f.Add(manifest(f, dir))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, segfiletest.SealManifest(b)} {
			must(t, os.WriteFile(filepath.Join(dir, segfile.ManifestName), b, 0o666))
			m, err := layout().Load(dir, 1)
			if err != nil && !errors.Is(err, segfile.ErrCorrupt) && !errors.Is(err, segfile.ErrSettings) {
				t.Errorf("got %v, want %v", err, segfile.ErrCorrupt)
			}
			for i := range m.Segments {
				e := &m.Segments[i]
				for _, d := range e.Gone {
					if d == ^uint32(0) || e.Has(d) {
						t.Errorf("document %d of a segment of as many is gone", d)
					}
				}
			}
		}
	})
}

// TestManifestDamage changes each byte of a manifest, and cuts it at each.
func TestManifestDamage(t *testing.T) {
	dir := t.TempDir()
	b := manifest(t, dir)
	for at := range b {
		c := slices.Clone(b)
		c[at] ^= 0x41
		for _, c := range [][]byte{c, b[:at]} {
			must(t, os.WriteFile(filepath.Join(dir, segfile.ManifestName), c, 0o666))
			if _, err := layout().Load(dir, 1); !errors.Is(err, segfile.ErrCorrupt) && !errors.Is(err, segfile.ErrSettings) {
				t.Errorf("byte %d: got %v, want %v", at, err, segfile.ErrCorrupt)
			}
		}
	}
}

// Sweep removes what the index does not have and leaves what is not its own.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"part-00000001", "part-00000002", "part-00000002.terms", "MANIFEST", "MANIFEST.new", "run-3", "other"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	must(t, layout().Sweep(dir, func(path string) bool { return path == layout().Path(dir, 1) }, "run-"))
	list, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if want := []string{"MANIFEST", "other", "part-00000001"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// ids makes IDs of letters.
func ids(letters string) *segfile.IDs {
	var b []byte
	for i := range letters {
		b = append(append(b, letters[i]), make([]byte, 15)...)
	}
	return segfile.NewIDs(b, segfile.Order(b))
}

// IDs finds what a search through all of them finds.
func TestIDs(t *testing.T) {
	r := random(t)
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(r.IntN(20))
		}
		return string(b)
	}
	for range 300 {
		x, y := word(r.IntN(40)), word(1+r.IntN(4))
		a, b := ids(x), ids(y)
		for c := byte('a'); c <= 'z'; c++ {
			d, ok := a.Find([16]byte{c})
			if want := strings.LastIndexByte(x, c); ok != (want >= 0) || ok && int(d) != want {
				t.Errorf("%q, %c: got %d %v, want %d", x, c, d, ok, want)
			}
		}
		var doubles, displaced, last []uint32
		for i := range x {
			if strings.LastIndexByte(x, x[i]) > i {
				doubles = append(doubles, uint32(i))
			} else if strings.IndexByte(y, x[i]) >= 0 {
				last = append(last, uint32(i))
			}
			if strings.IndexByte(y, x[i]) >= 0 {
				displaced = append(displaced, uint32(i))
			}
		}
		if got := sorted(a.Doubles()); !slices.Equal(got, doubles) {
			t.Errorf("%q: got doubles %v, want %v", x, got, doubles)
		}
		// Earlier ones of an ID are doubles, and gone already.
		got := slices.DeleteFunc(sorted(a.Displaced(b)), func(d uint32) bool { return slices.Contains(doubles, d) })
		if !slices.Equal(slices.Compact(got), last) {
			t.Errorf("%q by %q: got %v, want %v of %v", x, y, got, last, displaced)
		}
	}
}

func sorted(l []uint32) []uint32 {
	l = slices.Clone(l)
	slices.Sort(l)
	return l
}

// Lost are those that went while two segments were merged.
func TestLost(t *testing.T) {
	var none *segfile.Tombstones
	x := ids("abcdef")
	was := none.With([]uint32{0}, 6, nil)
	now := was.With([]uint32{2, 4}, 6, nil)
	merged := ids("bcdefxyz")
	if got, want := x.Lost(was, now, false, merged), []uint32{1, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := x.Lost(was, nil, true, merged), []uint32{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("all: got %v, want %v", got, want)
	}
	if was.Count() != 1 || was.Has(2) {
		t.Errorf("got tombstones that changed: %d", was.Count())
	}
}

// Due merges eight neighbours of like size, or one that is mostly gone.
func TestDue(t *testing.T) {
	type seg = struct{ size, live, gone int }
	small := make([]seg, 7)
	for i := range small {
		small[i] = seg{100, 10, 1}
	}
	for _, tt := range []struct {
		segs []seg
		want []int
	}{
		{nil, nil},
		{small, nil},
		{append(slices.Clone(small), seg{5000, 10, 0}), nil},
		{append(append(slices.Clone(small), seg{5000, 10, 0}), seg{10, 1, 0}), []int{0, 1, 2, 3, 4, 5, 6, 8}},
		{[]seg{{5000, 9, 0}, {900, 4, 5}}, []int{1}},
	} {
		got := segfile.Due(len(tt.segs), 1000, func(i int) (int, int, int) { return tt.segs[i].size, tt.segs[i].live, tt.segs[i].gone })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %v, want %v", tt.segs, got, tt.want)
		}
	}
}
