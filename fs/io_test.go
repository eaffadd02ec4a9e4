package fs_test

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"iter"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"harvest/fs"
)

// TestIO holds the view of a tree to the standard library's own suite.
func TestIO(t *testing.T) {
	root := fs.Static(fs.RootPath, map[string]fs.Node{
		"README": fs.Text(2, func() string { return "a tree\n" }),
		"empty":  fs.Text(3, func() string { return "" }),
		"d": fs.Static(4, map[string]fs.Node{
			"object": fs.Bytes(fs.Stat{Path: 5, Mode: 0o444, Size: 5}, func(context.Context) ([]byte, error) { return []byte("bytes"), nil }),
			"e":      fs.Static(6, nil),
			"hidden": fs.Hidden(fs.Text(7, func() string { return "psst" })),
		}),
	})
	fsys := fs.IO(t.Context(), root)
	if err := fstest.TestFS(fsys, "README", "empty", "d/object", "d/e"); err != nil {
		t.Error(err)
	}
	if b, err := iofs.ReadFile(fsys, "d/hidden"); string(b) != "psst" || err != nil {
		t.Errorf("d/hidden: got %q, %v", b, err)
	}
	_, err := fsys.Open("d/absent")
	var pe *iofs.PathError
	if !errors.As(err, &pe) || pe.Path != "d/absent" || !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("d/absent: got %v", err)
	}
	if _, err := fsys.Open("README/x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("README/x: got %v, want ENOTDIR", err)
	}
	if _, err := iofs.ReadDir(fsys, "README"); err == nil {
		t.Error("ReadDir of a file: got no error")
	}
	f, err := fsys.Open("README")
	if err != nil {
		t.Fatal(err)
	}
	if off, err := f.(io.Seeker).Seek(-5, io.SeekEnd); off != 2 || err != nil {
		t.Errorf("seek: got %d, %v", off, err)
	}
	if b, err := io.ReadAll(f); string(b) != "tree\n" || err != nil {
		t.Errorf("after seek: got %q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestIOStream reads what has no size.
func TestIOStream(t *testing.T) {
	root := fs.Static(fs.RootPath, map[string]fs.Node{
		"s": fs.Stream(2, 0, func(_ context.Context, w io.Writer) error {
			for range 1000 {
				if _, err := io.WriteString(w, "0123456789\n"); err != nil {
					return err
				}
			}
			return nil
		}),
	})
	b, err := iofs.ReadFile(fs.IO(t.Context(), root), "s")
	if len(b) != 11000 || err != nil {
		t.Errorf("got %d bytes, %v, want 11000", len(b), err)
	}
}

// TestIOUser holds the view to what its user may see.
func TestIOUser(t *testing.T) {
	root := fs.Static(fs.RootPath, map[string]fs.Node{
		"private": searchable{fs.Static(2, map[string]fs.Node{"x": fs.Text(3, func() string { return "" })}), 0o700},
		"write":   fs.Bytes(fs.Stat{Path: 4, Mode: 0o200}, nil),
	})
	fsys := fs.IO(fs.WithUser(t.Context(), &fs.User{Name: "bob"}), root)
	for _, p := range []string{"private", "private/x", "write"} {
		if _, err := fsys.Open(p); !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%s: got %v, want ErrPermission", p, err)
		}
	}
}

// TestIOCancel has a read that waits end with the view's context, and a
// directory stop in the middle.
func TestIOCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fs.NewLog(100)
		ctx, cancel := context.WithCancel(t.Context())
		root := fs.Static(fs.RootPath, map[string]fs.Node{"live": l.Live(2)})
		f, err := fs.IO(ctx, root).Open("live")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			_, err := f.Read(make([]byte, 10))
			got <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

// TestIOReadDir reads a directory in parts, and one that fails.
func TestIOReadDir(t *testing.T) {
	stopped := false
	d := fs.Func{
		Path: fs.RootPath,
		Each: func(context.Context, string) iter.Seq2[fs.Entry, error] {
			return func(yield func(fs.Entry, error) bool) {
				defer func() { stopped = true }()
				for _, name := range []string{"a", "b", "c"} {
					if !yield(fs.Entry{Name: name, Node: fs.Static(fs.ID(name), nil)}, nil) {
						return
					}
				}
				yield(fs.Entry{}, io.ErrUnexpectedEOF)
			}
		},
	}
	f, err := fs.IO(t.Context(), d).Open(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := f.(iofs.ReadDirFile)
	for _, want := range []int{2, 1} {
		list, err := dir.ReadDir(want)
		if len(list) != want || err != nil {
			t.Errorf("got %d, %v, want %d", len(list), err, want)
		}
	}
	if _, err := dir.ReadDir(1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the list's error", err)
	}
	f.Close()
	f, err = fs.IO(t.Context(), d).Open(".")
	if err != nil {
		t.Fatal(err)
	}
	stopped = false
	f.(iofs.ReadDirFile).ReadDir(1)
	if f.Close(); !stopped {
		t.Error("the list goes on after Close")
	}
	if _, err := iofs.ReadDir(fs.IO(t.Context(), d), "."); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("ReadDir: got %v, want the list's error", err)
	}
}
