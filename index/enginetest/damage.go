package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// Damage changes some files of an index in all sorts of places and wants each
// change to be found by Open or Check, an ErrCorrupt with the name of the file.
// Ask is then called for what could be opened: what it gives is to be right or
// an ErrCorrupt.
func (f Fault[E]) Damage(t *testing.T, ask func(e E) error) {
	dir := t.TempDir()
	seed := uint64(number("SEED", int(time.Now().UnixNano())))
	t.Logf("SEED=%d", seed)
	h := NewHistory(seed)
	e := f.open(t, dir, h)
	for step := range 21 { // the 20th changes most
		if err := f.step(e, h, step+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// A merge that Close cuts off leaves what the next Open removes; damage to
	// that is none.
	e = f.open(t, dir, h)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	look := func() error {
		e, err := f.Open(dir, h)
		if err != nil {
			return err
		}
		defer e.Close()
		err = e.Check(ctx)
		if other := ask(e); other != nil && (err == nil || !errors.Is(other, index.ErrCorrupt)) {
			return fmt.Errorf("asked: %w", other)
		}
		return err
	}
	whole := contents(t, dir)
	r := rand.New(rand.NewPCG(seed, 1))
	names := slices.Sorted(maps.Keys(whole))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(len(names), 4)] {
		path := filepath.Join(dir, name)
		for what, b := range spoilt(r, whole[name]) {
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
			err := look()
			if !errors.Is(err, index.ErrCorrupt) && !errors.Is(err, index.ErrSettings) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: got %v, want an error of class %v that names it", name, what, err, index.ErrCorrupt)
			}
			for name, b := range whole { // an Open may have removed what it took for left over
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := look(); err != nil {
		t.Errorf("whole again: %v", err)
	}
}

// spoilt are ways to damage a file, by what is wrong.
func spoilt(r *rand.Rand, b []byte) map[string][]byte {
	out := make(map[string][]byte)
	flip := func(at int) {
		c := slices.Clone(b)
		c[at] ^= 1 << r.IntN(8)
		out[fmt.Sprintf("byte %d of %d flipped", at, len(b))] = c
	}
	for at := range min(len(b), 8) {
		flip(at)
		flip(len(b) - 1 - at)
	}
	for range 12 {
		flip(r.IntN(len(b)))
	}
	for _, n := range []int{0, 1, len(b) / 3, len(b) - 1} {
		out[fmt.Sprintf("cut to %d of %d", n, len(b))] = b[:n]
	}
	out["longer"] = append(slices.Clone(b), 0)
	for from := 0; from < len(b); from += max(len(b)/8, 1) {
		c := slices.Clone(b)
		clear(c[from:min(from+len(b)/8+1, len(b))])
		if !bytes.Equal(c, b) {
			out[fmt.Sprintf("an eighth from %d of %d zeroed", from, len(b))] = c
		}
	}
	return out
}

// contents are those of a directory's files.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, f := range list {
		if all[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Ask asks an engine all sorts of things, for Damage.
func Ask(e index.Engine) error {
	var all []error
	for _, text := range []string{"*", "w1", "w1 w2 w3", `"w1 w2"`, "w*1", "/w[12]/", "wx~1", "the.compound", "title : w2 and not w4", "size > 500", "size = 7"} {
		q, err := query.Parse(text)
		if err == nil {
			_, err = e.Search(ctx, q, index.Options{})
		}
		all = append(all, err)
	}
	_, err := e.Attributes(ctx)
	all = append(all, err, e.Values(ctx, "size", "", func(index.Value) bool { return true }))
	_, err = e.Suggest(ctx, "w11", 3)
	for _, err := range append(all, err) {
		if err != nil && !errors.Is(err, index.ErrCorrupt) {
			return err
		}
	}
	return errors.Join(all...)
}
