package fs_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
)

// A lamp is a service that is lit while it runs, and hard to put out.
type lamp struct {
	name   string
	lit    chan struct{} // closed when it runs,
	dimmed chan struct{} // when it was told to end,
	out    chan struct{} // and by the test, when it is to
	stays  error
	closed bool
}

func (l *lamp) Files() fs.Dir {
	return fs.Static(fs.ID("lamp", l.name), map[string]fs.Node{"name": fs.Text(fs.ID("lamp", l.name, "name"), func() string { return l.name + "\n" })})
}

func (l *lamp) Run(ctx context.Context) error {
	close(l.lit)
	<-ctx.Done()
	close(l.dimmed)
	<-l.out
	return ctx.Err()
}

func (l *lamp) Removable() error { return l.stays }

func (l *lamp) Close() error {
	if l.closed {
		return errors.New("closed twice")
	}
	l.closed = true
	return nil
}

func lamps(t *testing.T, dir string) *fs.Services[*lamp] {
	t.Helper()
	all, err := fs.OpenServices(dir, fs.ServicesOptions[*lamp]{Name: "lamp", Noun: "lamp", Log: slog.New(slog.DiscardHandler), Bus: new(fs.Bus),
		Open: func(path, name string) (*lamp, error) {
			if _, err := os.Stat(filepath.Join(path, "broken")); err == nil {
				return nil, fmt.Errorf("lamp %s: no light", name)
			}
			return &lamp{name: name, lit: make(chan struct{}), dimmed: make(chan struct{}), out: make(chan struct{})}, os.MkdirAll(path, 0o755)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mkdir(t *testing.T, all *fs.Services[*lamp], name string) error {
	_, err := all.Files().(fs.Maker).Mkdir(t.Context(), name, 0o755)
	return err
}

func rmdir(t *testing.T, all *fs.Services[*lamp], name string) error {
	return all.Files().(fs.Remover).Remove(t.Context(), name)
}

// TestServices: services are made, run, found again and removed; what cannot be
// opened is left alone and shown, and what a removal has left goes.
func TestServices(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bad/broken", ".removing-x/y", ".removed-x/y", "not a name/z"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all := lamps(t, dir)
	if err := errors.Join(mkdir(t, all, "a"), mkdir(t, all, "b")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"a": iofs.ErrExist, "bad": iofs.ErrExist, "": iofs.ErrInvalid, ".x": iofs.ErrInvalid, "a/b": iofs.ErrInvalid, strings.Repeat("x", 65): iofs.ErrInvalid} {
		if err := mkdir(t, all, name); !errors.Is(err, want) {
			t.Errorf("mkdir %q: got %v, want %v", name, err, want)
		}
	}
	b, err := iofs.ReadFile(fs.IO(t.Context(), all.Files()), "bad/status")
	if want := "state=failing\nerr='lamp bad: no light'\n"; err != nil || string(b) != want {
		t.Errorf("bad/status: got %q, %v, want %q", b, err, want)
	}
	if err := rmdir(t, all, "bad"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("rmdir bad: got %v, want not empty", err)
	}
	a, err := all.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	a.stays = syscall.EBUSY
	if err := rmdir(t, all, "a"); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "lamp a: ") {
		t.Errorf("rmdir a: got %v, want busy", err)
	}
	fstest.Dir(t, all.Files(), fstest.Options{Mkdir: []string{"."}})
	if err := all.Close(); err != nil {
		t.Error(err)
	}
	all = lamps(t, dir)
	var names []string
	for e := range all.Files().List(t.Context(), "") {
		names = append(names, e.Name)
	}
	if got, want := strings.Join(names, " "), "a b bad"; got != want {
		t.Errorf("opened again: got %s, want %s", got, want)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".rem*"))
	if len(left) > 0 {
		t.Errorf("left: %s", left)
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
	if err := mkdir(t, all, "c"); !errors.Is(err, iofs.ErrClosed) {
		t.Errorf("mkdir after Close: got %v, want closed", err)
	}
}

// TestServicesRemove: a name is taken as long as anything of its service is there;
// meanwhile others are served, and Close waits.
func TestServicesRemove(t *testing.T) {
	dir := t.TempDir()
	all := lamps(t, dir)
	if err := mkdir(t, all, "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { all.Run(ctx) })
	a, _ := all.Get("a")
	<-a.lit
	if err := mkdir(t, all, "late"); err != nil {
		t.Fatal(err)
	}
	late, _ := all.Get("late")
	<-late.lit // one that is made while Run runs runs as well
	removed := make(chan error, 1)
	go func() { removed <- rmdir(t, all, "a") }()
	<-a.dimmed
	if err := mkdir(t, all, "a"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("mkdir of what is being removed: got %v, want busy", err)
	}
	_, gone := all.Get("a")
	for what, err := range map[string]error{"rmdir": rmdir(t, all, "a"), "get": gone} {
		if !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s of what is being removed: got %v, want that it does not exist", what, err)
		}
	}
	for e := range all.Files().List(t.Context(), "") {
		if e.Name != "late" {
			t.Errorf("%s is listed while it is being removed", e.Name)
		}
	}
	close(a.out)
	if err := <-removed; err != nil || !a.closed {
		t.Errorf("rmdir: got %v, closed %t", err, a.closed)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("after rmdir: got %v, want nothing there", err)
	}
	if err := mkdir(t, all, "a"); err != nil {
		t.Errorf("mkdir after rmdir: %v", err)
	}
	again, _ := all.Get("a")
	close(late.out)
	close(again.out)
	cancel()
	wg.Wait()
	if err := all.Close(); err != nil || !late.closed || !again.closed {
		t.Errorf("got %v, closed %t and %t", err, late.closed, again.closed)
	}
}
