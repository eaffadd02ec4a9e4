package fs_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"harvest/fs"
)

// editor does to a directory what an editor's system calls come to.
type editor struct {
	t *testing.T
	d fs.Dir
}

func (e editor) create(name, text string) error {
	f, h, err := e.d.(fs.Creator).Create(e.t.Context(), name, 0o600, fs.Read|fs.Write)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.WriteAt(e.t.Context(), []byte(text), 0); err != nil {
		return err
	}
	mode, now := iofs.FileMode(0o644), time.Now()
	if set, ok := f.(fs.Setter); ok {
		if err := set.Set(e.t.Context(), fs.Change{Mode: &mode, Mtime: &now}); err != nil {
			return err
		}
	}
	return h.Flush(e.t.Context())
}

func (e editor) rename(old, new string) error {
	return e.d.(fs.Renamer).Rename(e.t.Context(), old, new, true)
}

func (e editor) remove(name string) error { return e.d.(fs.Remover).Remove(e.t.Context(), name) }

// land renames a finished file onto the config; who fails to cleans up.
func (e editor) land(tmp string) error {
	err := e.rename(tmp, "config")
	if err != nil {
		e.must(e.remove(tmp))
	}
	return err
}

func (e editor) must(errs ...error) {
	e.t.Helper()
	if err := errors.Join(errs...); err != nil {
		e.t.Fatal(err)
	}
}

func (e editor) has(want ...string) {
	e.t.Helper()
	if got := strings.Join(names(e.t, e.d, ""), " "); got != strings.Join(want, " ") {
		e.t.Errorf("got %q, want %q", got, want)
	}
}

// TestEditors goes through what editors were seen to do to a file they save.
func TestEditors(t *testing.T) {
	tests := []struct {
		name string
		save func(e editor, s *service, text string) error
	}{
		{"sed -i", func(e editor, _ *service, text string) error {
			e.must(e.create("sedAbCdEf", text))
			return e.land("sedAbCdEf")
		}},
		{"sed -i.bak", func(e editor, _ *service, text string) error {
			e.must(e.create("sedAbCdEf", text), e.rename("config", "config.bak"))
			err := e.land("sedAbCdEf")
			e.must(e.remove("config.bak"))
			return err
		}},
		{"vim", func(e editor, s *service, text string) error {
			e.must(e.create(".config.swp", "b0VIM"), e.create("4913", ""), e.remove("4913"), e.rename("config", "config~"))
			if _, err := e.d.Lookup(e.t.Context(), "config"); !errors.Is(err, iofs.ErrNotExist) {
				e.t.Errorf("config, which is renamed: got %v, want ErrNotExist", err)
			}
			_, h, err := e.d.(fs.Creator).Create(e.t.Context(), "config", 0o644, fs.Write)
			e.must(err)
			_, err = h.WriteAt(e.t.Context(), []byte(text), 0)
			e.must(err)
			err = h.Flush(e.t.Context())
			h.Close()
			e.must(e.remove("config~"), e.remove(".config.swp"))
			return err
		}},
		{"vim, no backup", func(e editor, s *service, text string) error {
			e.must(e.create(".config.swp", "b0VIM"))
			err := write(e.t, s.conf, fs.Trunc, text)
			e.must(e.remove(".config.swp"))
			return err
		}},
		{"emacs", func(e editor, s *service, text string) error {
			e.must(e.rename("config", "config~"))
			err := e.create("config", text)
			e.must(e.remove("config~"))
			return err
		}},
		{"install", func(e editor, s *service, text string) error {
			e.must(e.remove("config"))
			return e.create("config", text)
		}},
		{"ed", func(e editor, s *service, text string) error { return write(e.t, s.conf, fs.Trunc, text) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { edit(t, tt.save) }) })
	}
}

func edit(t *testing.T, save func(e editor, s *service, text string) error) {
	s := newService("limit=1\n")
	e := editor{t, s.dir}
	if err := save(e, s, "limit=2\n"); err != nil {
		t.Errorf("a good text: %v", err)
	}
	s.is(t, "limit=2\n")
	e.has("config", "err")
	if err := save(e, s, "limit=lots\n"); !errors.Is(err, iofs.ErrInvalid) {
		t.Errorf("a bad text: got %v, want ErrInvalid", err)
	}
	if got := s.read(); got != "limit=2\n" {
		t.Errorf("in force: got %q after a bad text", got)
	}
	if got, ok := s.rejected(t); got != "limit=lots\n" || !ok {
		t.Errorf("config.rejected: got %q, %t", got, ok)
	}
	if got := text(t, s.refused); !strings.Contains(got, "line 1, column 1: limit: lots is not a number\n\tlimit=lots\n") {
		t.Errorf("err: got %q", got)
	}
	time.Sleep(3 * time.Second) // of the bubble's own clock: a name that is away comes back
	e.has("config", "config.rejected", "err")
	s.is(t, "limit=2\n")
	if err := save(e, s, "limit=3\n"); err != nil {
		t.Errorf("a good text after it: %v", err)
	}
	s.is(t, "limit=3\n")
	e.has("config", "err")
}

// TestAway has a config whose name is taken away come back by itself.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService("limit=1\n")
		e := editor{t, s.dir}
		e.must(e.remove("config"))
		e.has("err")
		if _, err := s.dir.Lookup(t.Context(), "config"); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("look-up: got %v, want ErrNotExist", err)
		}
		if err := e.remove("config"); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("remove again: got %v, want ErrNotExist", err)
		}
		if err := e.rename("config", "x"); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("rename: got %v, want ErrNotExist", err)
		}
		if got := s.read(); got != "limit=1\n" {
			t.Errorf("in force: got %q", got)
		}
		time.Sleep(3 * time.Second) // of the bubble's own clock
		e.has("config", "err")
		s.is(t, "limit=1\n")
	})
}

func TestScratchBounds(t *testing.T) {
	s := newService("")
	e := editor{t, s.dir}
	held, h, err := s.dir.(fs.Creator).Create(t.Context(), "held", 0o600, fs.Write)
	e.must(err)
	defer h.Close()
	for i := range 100 {
		e.must(e.create(fmt.Sprintf("tmp%02d", i), "x"))
	}
	got := names(t, s.dir, "")
	if len(got) != 32+2 || got[len(got)-1] != "tmp99" {
		t.Errorf("got %d names to %q, want the newest of the scratch files, 32, and two more", len(got), got[len(got)-1])
	}
	n, err := s.dir.Lookup(t.Context(), "held")
	if err != nil || n.Stat().Path != held.Stat().Path {
		t.Errorf("the one that is open: got %v, want it to stay", err)
	}
	for _, off := range []int64{fs.MaxConfig, 1<<63 - 1, -1} {
		if n, err := h.WriteAt(t.Context(), []byte("xx"), off); n != 0 || fs.Errno(err) != syscall.EFBIG {
			t.Errorf("write at %d: got %d, %v, want EFBIG", off, n, err)
		}
	}
	var open []fs.Handle
	for i := range 40 {
		_, h, err := s.dir.(fs.Creator).Create(t.Context(), fmt.Sprintf("open%02d", i), 0o600, fs.Write)
		if err != nil {
			if fs.Errno(err) != syscall.ENOSPC || i != 31 {
				t.Errorf("number %d: got %v, want ENOSPC for number 31", i, err)
			}
			break
		}
		open = append(open, h)
	}
	if len(open) != 31 {
		t.Errorf("got %d open ones, want 31 beside the first", len(open))
	}
	for _, h := range open {
		h.Close()
	}
}

// TestScratchNames has names that are taken or cannot be.
func TestScratchNames(t *testing.T) {
	s := newService("limit=1\n")
	e := editor{t, s.dir}
	for _, name := range []string{"config", "err"} {
		if err := e.create(name, "x"); !errors.Is(err, iofs.ErrExist) {
			t.Errorf("create %s: got %v, want ErrExist", name, err)
		}
	}
	if err := e.remove("err"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("remove err: got %v, want ErrPermission", err)
	}
	for _, to := range []string{"config", "x"} {
		if err := e.rename("err", to); !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("rename err to %s: got %v, want ErrPermission", to, err)
		}
	}
	e.must(e.create("x", "limit=2\n"))
	if err := e.rename("x", "err"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("rename onto err: got %v, want ErrPermission", err)
	}
	if err := s.dir.(fs.Renamer).Rename(t.Context(), "x", "config", false); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("rename onto config without replace: got %v, want ErrExist", err)
	}
	s.is(t, "limit=1\n")

	// A file of one's own may stand where a rejected text is shown.
	e.must(e.create("config.rejected", "mine"))
	if err := write(t, s.conf, fs.Trunc, "limit=lots\n"); err == nil {
		t.Fatal("a bad text: got no error")
	}
	e.has("config", "config.rejected", "err", "x")
	if got, _ := s.rejected(t); got != "mine" {
		t.Errorf("config.rejected: got %q, want the file that was made", got)
	}
	e.must(e.remove("config.rejected"))
	if got, ok := s.rejected(t); got != "limit=lots\n" || !ok {
		t.Errorf("config.rejected: got %q, %t, want what was refused", got, ok)
	}
	e.must(e.remove("config.rejected"))
	e.has("config", "err", "x")
}

// TestScratchUsers keeps other users' hands off.
func TestScratchUsers(t *testing.T) {
	s := newService("limit=1\n")
	bob := fs.WithUser(context.Background(), &fs.User{Name: "bob"})
	c := s.dir.(fs.Creator)
	if _, _, err := c.Create(bob, "x", 0o600, fs.Write); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("create: got %v, want ErrPermission", err)
	}
	if err := s.dir.(fs.Remover).Remove(bob, "config"); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("remove: got %v, want ErrPermission", err)
	}
	editor{t, s.dir}.must(editor{t, s.dir}.create("x", "limit=2\n"))
	if err := s.dir.(fs.Renamer).Rename(bob, "x", "config", true); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("rename: got %v, want ErrPermission", err)
	}
	s.is(t, "limit=1\n")
}
