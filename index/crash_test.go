package index_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
)

func open(dir string, src index.Source) (*index.Unsearched, error) {
	return index.OpenUnsearched(dir, index.Settings{Memory: 1 << 14, Workers: 1, Source: src})
}

// read compares all that the files hold, and a few answers.
func read(t *testing.T, e *index.Unsearched, h *enginetest.History) {
	t.Helper()
	enginetest.Answers(t, e, h)
	e.Compare(t, func(mark string) map[index.ID]index.Doc { return h.Docs(enginetest.Step(mark)) })
}

func TestKill(t *testing.T) { enginetest.Kill(t, open, read) }

func TestDamageAsked(t *testing.T) {
	enginetest.Fault[*index.Unsearched]{Open: open}.Damage(t, func(e *index.Unsearched) error { return enginetest.Ask(e) })
}

func TestFullDisk(t *testing.T) {
	enginetest.Fault[*index.Unsearched]{Open: open, Read: read}.FullDisk(t)
}

func TestFailingWrite(t *testing.T) {
	enginetest.Fault[*index.Unsearched]{Open: open, Read: read}.FailingWrite(t)
}

// TestFailingManifest has the manifest fail: to be written, as on a full disk;
// to be synced; to be renamed into its place. There is too little
// to be merged meanwhile.
func TestFailingManifest(t *testing.T) {
	h := enginetest.Growing(7, 3)
	for _, tt := range []struct {
		name   string
		before func(path string) error
		class  error
		again  bool // it must be opened again
	}{
		{"write", func(path string) error { return os.Symlink("/dev/full", path+".new") }, syscall.ENOSPC, false},
		{"sync", func(path string) error { return os.Symlink("/dev/null", path+".new") }, syscall.EINVAL, false},
		{"create", func(path string) error { return os.Mkdir(path+".new", 0o777) }, syscall.EISDIR, false},
		{"rename", func(path string) error { return os.MkdirAll(path+"/full", 0o777) }, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			e, err := index.OpenUnsearched(dir, index.Settings{Workers: 1})
			must(t, err)
			defer func() { e.Close() }()
			apply := func(step int) error {
				puts, deletes := h.Changes(step)
				return e.Apply(ctx, index.Docs(puts), deletes, fmt.Sprint(step))
			}
			for step := range 4 {
				must(t, apply(step+1))
			}
			path := filepath.Join(dir, "MANIFEST")
			if tt.again {
				must(t, os.Rename(path, path+".kept"))
			}
			must(t, tt.before(path))
			err = apply(5)
			if err == nil || tt.class != nil && !errors.Is(err, tt.class) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v of %s", err, tt.class, path)
			}
			if e.Mark() != "4" {
				t.Errorf("got mark %q, want 4", e.Mark())
			}
			read(t, e, h)
			if tt.again {
				if err := apply(5); err == nil {
					t.Error("got an Apply after one of which nobody knows")
				}
				must(t, os.RemoveAll(path))
				must(t, os.Rename(path+".kept", path))
				must(t, e.Close())
				e, err = index.OpenUnsearched(dir, index.Settings{Workers: 1})
				must(t, err)
				read(t, e, h)
			}
			must(t, apply(5))
			read(t, e, h)
			must(t, e.Check(ctx))
			must(t, e.Close())
			e.Files(t)
			e, err = index.OpenUnsearched(dir, index.Settings{Workers: 1})
			must(t, err)
			if e.Mark() != "5" {
				t.Errorf("opened again: got mark %q, want 5", e.Mark())
			}
			read(t, e, h)
		})
	}
}
