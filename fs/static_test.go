package fs_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"slices"
	"testing"

	"harvest/fs"
)

func names(t *testing.T, d fs.Dir, after string) []string {
	t.Helper()
	var out []string
	for e, err := range d.List(t.Context(), after) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		out = append(out, e.Name)
	}
	return out
}

func TestStatic(t *testing.T) {
	file := fs.Text(5, func() string { return "" })
	d := fs.Static(2, map[string]fs.Node{"b": file, "a": fs.Static(3, nil), "h": fs.Hidden(file), "c": file})
	if got, want := names(t, d, ""), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := names(t, d, "b"), []string{"c"}; !slices.Equal(got, want) {
		t.Errorf("after b: got %q, want %q", got, want)
	}
	n, err := d.Lookup(t.Context(), "h")
	if err != nil {
		t.Fatalf("h: %v", err)
	}
	if _, ok := n.(fs.File); !ok {
		t.Errorf("h: got a %T, want the node that was hidden", n)
	}
	if _, err := d.Lookup(t.Context(), "x"); !errors.Is(err, iofs.ErrNotExist) || err.Error() != "x: file does not exist" {
		t.Errorf("x: got %v", err)
	}
}

func TestHex(t *testing.T) {
	for digits, count := range map[int]int{1: 16, 2: 256, 3: 4096} {
		d := fs.Hex(2, digits, func(p string) fs.Dir { return fs.Static(fs.ID(p), nil) })
		all := names(t, d, "")
		if len(all) != count || !slices.IsSorted(all) || len(all[0]) != digits {
			t.Errorf("%d digits: got %d names from %q to %q, want %d", digits, len(all), all[0], all[len(all)-1], count)
		}
	}
	d := fs.Hex(2, 2, func(p string) fs.Dir { return fs.Static(fs.ID(p), nil) })
	if got := names(t, d, "fd"); !slices.Equal(got, []string{"fe", "ff"}) {
		t.Errorf("after fd: got %q, want fe ff", got)
	}
	n, err := d.Lookup(t.Context(), "3f")
	if err != nil || n.Stat().Path != fs.ID("3f") {
		t.Errorf("3f: got %v, %v", n, err)
	}
	for _, name := range []string{"", "3", "3F", "3g", "3f0", "é", "0x"} {
		if _, err := d.Lookup(t.Context(), name); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%q: got %v, want ErrNotExist", name, err)
		}
	}
}

func TestSorted(t *testing.T) {
	in := []fs.Entry{{Name: "b"}, {Name: "é"}, {Name: "a"}, {Name: "B"}}
	var got []string
	for e := range fs.Sorted(in, "B") {
		got = append(got, e.Name)
	}
	if want := []string{"a", "b", "é"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClone holds that the open file is the one that was made.
func TestClone(t *testing.T) {
	made := 0
	c := fs.Clone(4, func(context.Context) (fs.File, error) {
		if made == 2 {
			return nil, iofs.ErrPermission
		}
		made++
		return fs.Text(uint64(100+made), func() string { return "n" }), nil
	})
	for want := uint64(101); want <= 102; want++ {
		h, err := c.Open(t.Context(), fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.(fs.Mover).Node().Stat().Path; got != want {
			t.Errorf("got the node %d, want %d", got, want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Open(t.Context(), fs.Read); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("got %v, want the error of the function", err)
	}
	size := int64(0)
	if err := c.(fs.Setter).Set(t.Context(), fs.Change{Size: &size}); err != nil {
		t.Errorf("truncated as > does: %v", err)
	}
}
