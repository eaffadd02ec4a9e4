package index_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"harvest/index"
)

func opened(t testing.TB, dir string, set index.Settings) *index.Unsearched {
	t.Helper()
	e, err := index.OpenUnsearched(dir, set)
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func doc(id byte, fields ...string) index.Doc {
	d := index.Doc{ID: index.ID{id}}
	for i := 0; i < len(fields); i += 2 {
		d.Fields = append(d.Fields, index.Field{Name: fields[i], Text: fields[i+1]})
	}
	return d
}

// Every byte of every file is vouched for, and the complaint names the file.
func TestCorrupt(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, index.Settings{})
	for i := range byte(3) {
		must(t, e.Apply(ctx, index.Docs([]index.Doc{doc(i, "a", "x y z", "b", "x 3.14")}), nil, "m"))
	}
	must(t, e.Apply(ctx, index.Docs([]index.Doc{doc(7), doc(8)}), nil, "m"))
	must(t, e.Apply(ctx, nil, []index.ID{{7}}, "m"))
	must(t, e.Check(ctx))
	must(t, e.Close())
	files, err := filepath.Glob(dir + "/*")
	must(t, err)
	if len(files) != 5 {
		t.Fatalf("got files %v, want a manifest and 4 segments", files)
	}
	for n, f := range files {
		good, err := os.ReadFile(f)
		must(t, err)
		for i := range good {
			if n > 1 && i%7 > 0 { // the manifest and one segment byte by byte
				continue
			}
			bad := slices.Clone(good)
			bad[i] ^= 0x10
			must(t, os.WriteFile(f, bad, 0o666))
			if err := openAndCheck(dir); !complains(err) || !strings.Contains(err.Error(), filepath.Base(f)) {
				t.Fatalf("%s, byte %d of %d changed: got %v, want %v", filepath.Base(f), i, len(good), err, index.ErrCorrupt)
			}
		}
		for _, n := range []int{0, 1, len(good) / 2, len(good) - 1} {
			must(t, os.WriteFile(f, good[:n], 0o666))
			if err := openAndCheck(dir); !complains(err) {
				t.Errorf("%s cut to %d: got %v, want %v", filepath.Base(f), n, err, index.ErrCorrupt)
			}
		}
		must(t, os.Remove(f))
		if strings.HasSuffix(f, "MANIFEST") { // without it the rest is swept
			must(t, os.WriteFile(f, good, 0o666))
			continue
		}
		if err := openAndCheck(dir); !complains(err) {
			t.Errorf("%s gone: got %v, want %v", filepath.Base(f), err, index.ErrCorrupt)
		}
		must(t, os.WriteFile(f, good, 0o666))
	}
	must(t, openAndCheck(dir))
}

// complains takes ErrSettings too, for a version that is another.
func complains(err error) bool {
	return errors.Is(err, index.ErrCorrupt) || errors.Is(err, index.ErrSettings)
}

func openAndCheck(dir string) error {
	e, err := index.OpenUnsearched(dir, index.Settings{})
	if err != nil {
		return err
	}
	return errors.Join(e.Check(ctx), e.Close())
}

// An index is only opened with the settings it was made with, and the first
// engine's not at all.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, index.Settings{NoPositions: true})
	must(t, e.Apply(ctx, index.Docs([]index.Doc{doc(1, "a", "x")}), nil, "m"))
	must(t, e.Close())
	for _, set := range []index.Settings{{}, {NoPositions: true, NoNumbers: true}} {
		if _, err := index.OpenUnsearched(dir, set); !errors.Is(err, index.ErrSettings) {
			t.Errorf("%+v: got %v, want %v", set, err, index.ErrSettings)
		}
	}
	must(t, opened(t, dir, index.Settings{NoPositions: true}).Close())
	must(t, os.WriteFile(filepath.Join(dir, "MANIFEST"), []byte("harvest manifest 1\n\x00\x00\x00abcd"), 0o666))
	if _, err := index.OpenUnsearched(dir, index.Settings{}); !errors.Is(err, index.ErrSettings) {
		t.Errorf("version 1: got %v, want %v", err, index.ErrSettings)
	}
}

// An error of the sequence, and a context that ends, leave nothing behind.
func TestApplyFails(t *testing.T) {
	e := opened(t, t.TempDir(), index.Settings{Memory: 1 << 12})
	must(t, e.Apply(ctx, index.Docs([]index.Doc{doc(1, "a", "x")}), nil, "1"))
	trouble := errors.New("trouble")
	for _, ends := range []error{trouble, context.Canceled} {
		ctx, cancel := context.WithCancel(ctx)
		err := e.Apply(ctx, func(yield func(*index.Doc, error) bool) {
			for i := range 3000 {
				d := doc(byte(i), "a", strings.Repeat(fmt.Sprint("w", i, " "), 100))
				if i < 2999 {
					if !yield(&d, nil) {
						return
					}
				} else if cancel(); ends == trouble {
					yield(nil, trouble)
				} else {
					yield(&d, nil)
				}
			}
		}, []index.ID{{1}}, "2")
		cancel()
		if !errors.Is(err, ends) {
			t.Errorf("got %v, want %v", err, ends)
		}
		e.Files(t)
		e.Compare(t, func(string) map[index.ID]index.Doc {
			return map[index.ID]index.Doc{{1}: doc(1, "a", "x")}
		})
	}
}

// Whoever applies, closes, lists and checks at once meets no other error than
// that of a closed index. It is the race detector that looks on.
func TestAtOnce(t *testing.T) {
	e := opened(t, t.TempDir(), index.Settings{Memory: 1 << 12})
	var wg sync.WaitGroup
	for n := range byte(4) {
		wg.Go(func() {
			for i := range 30 {
				err := e.Apply(ctx, index.Docs([]index.Doc{doc(n, "a", fmt.Sprint("x y ", i)), doc(byte(i), "b", "z")}), []index.ID{{n + 1}}, "m")
				_, listed := e.Attributes(ctx)
				for _, err := range []error{err, listed, e.Values(ctx, "a", "", func(index.Value) bool { return true }), e.Check(ctx), e.Settle(ctx)} {
					if err != nil && !errors.Is(err, iofs.ErrClosed) {
						t.Error(err)
					}
				}
				if n == 0 && i == 25 {
					e.Close()
				}
			}
		})
	}
	wg.Wait()
}

// Opening reads the tables only.
func TestOpenReadsLittle(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, index.Settings{})
	var puts []index.Doc
	for i := range 200 {
		puts = append(puts, doc(byte(i), "a", strings.Repeat(fmt.Sprint("word", i, " "), 500)))
	}
	must(t, e.Apply(ctx, index.Docs(puts), nil, "m"))
	must(t, e.Close())
	segment, _ := filepath.Glob(dir + "/segment-*")
	b, err := os.ReadFile(segment[0])
	must(t, err)
	b[20] ^= 1 // among the postings
	must(t, os.WriteFile(segment[0], b, 0o666))
	e = opened(t, dir, index.Settings{})
	if _, err := e.Attributes(ctx); err != nil {
		t.Errorf("got %v, want postings untouched", err)
	}
	if err := e.Check(ctx); !errors.Is(err, index.ErrCorrupt) || !strings.Contains(err.Error(), "postings") {
		t.Errorf("got %v, want %v about the postings", err, index.ErrCorrupt)
	}
}

// Documents of many attributes without a text to speak of fill no batch, and
// yet no more attributes come together than can be told apart.
func TestManyAttributes(t *testing.T) {
	const docs, each = 5, 60_000
	var list []index.Doc
	for i := range docs {
		d := doc(byte(i))
		for j := range each {
			d.Fields = append(d.Fields, index.Field{Name: fmt.Sprintf("a%d", i*each+j)})
		}
		list = append(list, d)
	}
	e, err := index.Open(t.TempDir(), index.Settings{Workers: 2})
	must(t, err)
	defer e.Close()
	must(t, e.Apply(ctx, index.Docs(list), nil, "m"))
	got, err := e.Attributes(ctx)
	must(t, err)
	if len(got) != docs*each {
		t.Errorf("got %d attributes, want %d", len(got), docs*each)
	}
	for _, a := range got {
		if a.Docs != 1 {
			t.Fatalf("got attribute %s in %d documents, want 1", a.Name, a.Docs)
		}
	}
}
