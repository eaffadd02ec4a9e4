package fstest

import (
	"context"
	"errors"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"

	"harvest/fs"
)

// class tells whether err is of one of the classes, as error or as errno.
func class(err error, want ...error) bool {
	return err != nil && slices.ContainsFunc(want, func(w error) bool {
		return errors.Is(err, w) || fs.Errno(err) == fs.Errno(w) && fs.Errno(w) != syscall.EIO
	})
}

// want complains about an error that is not of the class.
func (s *suite) want(what string, err error, classes ...error) {
	s.Helper()
	if !class(err, classes...) {
		s.Errorf("%s: got %v, want %v", what, err, classes[0])
	}
}

// dirAt finds the directory of a path given in Options.
func (s *suite) dirAt(p string) fs.Dir {
	n, err := fs.Walk(s.Context(), s.root, p)
	if err != nil {
		s.Fatal(err)
	}
	d, ok := n.(fs.Dir)
	if !ok {
		s.Fatalf("%s: got a %T, want a Dir", p, n)
	}
	return d
}

// vers gives a directory's version as it is now.
func (s *suite) vers(p string) uint32 { return s.dirAt(p).Stat().Vers }

// moved checks that the version is not what it was.
func (s *suite) moved(p string, was uint32, why string) {
	s.Helper()
	if s.remote && p == "" {
		return // of its root a client knows what it was at attach
	}
	if s.vers(p) == was {
		s.Errorf("%s: version stays %d with a name %s", p, was, why)
	}
}

// forbidden checks that a call by a user who may change nothing is refused.
func (s *suite) forbidden(what string, call func(ctx context.Context) error) {
	s.Helper()
	if s.remote {
		return // it is the connection's user who calls
	}
	s.want(what+" by a user who may change nothing", call(fs.WithUser(s.Context(), reader)), iofs.ErrPermission)
}

// reader is a user who may change nothing.
var reader = &fs.User{Name: "none", ReadOnly: true}

// badNames are names that cannot be given.
var badNames = []string{"", ".", "..", "fstest/a", "fstest\x00", strings.Repeat("n", 256)}

// create makes files in a directory, changes them and takes them away again.
func (s *suite) create(p string) {
	ctx := s.Context()
	d := s.dirAt(p)
	c, ok := d.(fs.Creator)
	if !ok {
		s.Fatalf("%s: a %T does not create files", p, d)
	}
	r, ok := d.(fs.Remover)
	if !ok {
		s.Fatalf("%s: a %T does not remove files", p, d)
	}
	before := names(s.list(p, d, ""))
	vers := s.vers(p)
	f, h, err := c.Create(ctx, "fstest-a", 0o644, fs.Read|fs.Write)
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	s.write(h, "hello, world", 0)
	s.write(h, "W", 7)
	s.reread(h, "hello, World")
	s.done("fstest-a", h)
	s.moved(p, vers, "more")
	s.holds(d, "fstest-a", f.Stat().Path, "hello, World")
	if _, h, err := c.Create(ctx, "fstest-a", 0o644, fs.Write); !errors.Is(err, iofs.ErrExist) {
		s.Errorf("create what is there: got %v, want ErrExist", err)
		if err == nil {
			h.Close()
		}
	}
	for _, name := range badNames {
		if _, h, err := c.Create(ctx, name, 0o644, fs.Write); !class(err, iofs.ErrInvalid, iofs.ErrPermission, iofs.ErrNotExist, iofs.ErrExist, syscall.ENAMETOOLONG, syscall.EISDIR) {
			s.Errorf("create %.20q: got %v, want ErrInvalid", name, err)
			if err == nil {
				h.Close()
			}
		}
	}
	s.modes(d, "fstest-a")
	if rn, ok := d.(fs.Renamer); ok {
		s.rename(d, c, rn)
	}
	s.forbidden("create", func(ctx context.Context) error {
		_, h, err := c.Create(ctx, "fstest-c", 0o644, fs.Write)
		if err == nil {
			h.Close()
		}
		return err
	})
	s.forbidden("remove", func(ctx context.Context) error { return r.Remove(ctx, "fstest-a") })
	vers = s.vers(p)
	if err := r.Remove(ctx, "fstest-a"); err != nil {
		s.Errorf("remove: %v", err)
	}
	s.moved(p, vers, "less")
	s.want("remove what is gone", r.Remove(ctx, "fstest-a"), iofs.ErrNotExist)
	if _, err := d.Lookup(ctx, "fstest-a"); !errors.Is(err, iofs.ErrNotExist) {
		s.Errorf("look-up of what is gone: got %v, want ErrNotExist", err)
	}
	if got := names(s.list(p, d, "")); !slices.Equal(got, before) {
		s.Errorf("%s: got %q, want what there was before, %q", p, got, before)
	}
}

func (s *suite) write(h fs.Handle, text string, off int64) {
	s.Helper()
	if n, err := h.WriteAt(s.Context(), []byte(text), off); n != len(text) || err != nil {
		s.Errorf("write %q at %d: got %d, %v", text, off, n, err)
	}
}

func (s *suite) reread(h fs.Handle, want string) {
	s.Helper()
	if got, err := readAll(s.Context(), h, 100); string(got) != want || err != nil {
		s.Errorf("read back: got %q, %v, want %q", got, err, want)
	}
}

// holds checks that a name leads to a file of that identity and content.
func (s *suite) holds(d fs.Dir, name string, path uint64, want string) {
	s.Helper()
	n, err := d.Lookup(s.Context(), name)
	if err != nil {
		s.Errorf("%s: %v", name, err)
		return
	}
	if got := n.Stat().Path; got != path {
		s.Errorf("%s: got path %#x, want %#x", name, got, path)
	}
	if got := n.Stat().Size; got != int64(len(want)) {
		s.Errorf("%s: got size %d, want %d", name, got, len(want))
	}
	if got := s.content(visit{name, n}); string(got) != want {
		s.Errorf("%s: got %q, want %q", name, got, want)
	}
	if !slices.Contains(names(s.list("", d, "")), name) {
		s.Errorf("%s: is not listed", name)
	}
}

// modes opens a file, which holds "hello, World", in every way, and
// truncates it.
func (s *suite) modes(d fs.Dir, name string) {
	ctx := s.Context()
	n, err := d.Lookup(ctx, name)
	if err != nil {
		s.Errorf("%s: %v", name, err)
		return
	}
	f := n.(fs.File)
	open := func(m fs.Mode) fs.Handle {
		s.Helper()
		h, err := f.Open(ctx, m)
		if err != nil {
			s.Fatalf("%s: open %04b: %v", name, m, err)
		}
		return h
	}
	h := open(fs.Write | fs.Append)
	s.write(h, "!", 0)
	s.done(name, h)
	s.holds(d, name, f.Stat().Path, "hello, World!")
	h = open(fs.Write | fs.Read | fs.Trunc)
	s.reread(h, "")
	s.write(h, "new", 0)
	s.done(name, h)
	s.holds(d, name, f.Stat().Path, "new")
	set, ok := n.(fs.Setter)
	if !ok {
		s.Errorf("%s: a %T cannot be truncated", name, n)
		return
	}
	for _, tt := range []struct {
		size int64
		want string
	}{{2, "ne"}, {4, "ne\x00\x00"}, {0, ""}} {
		if err := set.Set(ctx, fs.Change{Size: &tt.size}); err != nil {
			s.Errorf("%s: truncate to %d: %v", name, tt.size, err)
			continue
		}
		s.holds(d, name, f.Stat().Path, tt.want)
	}
	size := int64(-1)
	if err := set.Set(ctx, fs.Change{Size: &size}); err == nil {
		s.Errorf("%s: truncate to -1: got no error", name)
	}
	h = open(fs.Write)
	s.write(h, "hello, World", 0)
	s.done(name, h)
}

// rename moves fstest-a about; it is back at the end.
func (s *suite) rename(d fs.Dir, c fs.Creator, rn fs.Renamer) {
	ctx := s.Context()
	n, err := d.Lookup(ctx, "fstest-a")
	if err != nil {
		s.Errorf("rename: %v", err)
		return
	}
	path := n.Stat().Path
	if err := rn.Rename(ctx, "fstest-a", "fstest-b", false); err != nil {
		s.Errorf("rename: %v", err)
		return
	}
	s.holds(d, "fstest-b", path, "hello, World")
	_, err = d.Lookup(ctx, "fstest-a")
	s.want("look-up of the old name", err, iofs.ErrNotExist)
	s.want("rename of what is gone", rn.Rename(ctx, "fstest-a", "fstest-c", false), iofs.ErrNotExist)
	_, h, err := c.Create(ctx, "fstest-a", 0o600, fs.Write)
	if err != nil {
		s.Errorf("create under the old name: %v", err)
		return
	}
	s.write(h, "other", 0)
	s.done("fstest-a", h)
	s.want("rename onto what is there", rn.Rename(ctx, "fstest-b", "fstest-a", false), iofs.ErrExist)
	s.holds(d, "fstest-b", path, "hello, World")
	for _, name := range badNames {
		if err := rn.Rename(ctx, "fstest-b", name, true); err == nil {
			s.Errorf("rename to %.20q: got no error", name)
		}
	}
	s.forbidden("rename", func(ctx context.Context) error { return rn.Rename(ctx, "fstest-b", "fstest-a", true) })
	if err := rn.Rename(ctx, "fstest-b", "fstest-b", true); err != nil {
		s.Errorf("rename to itself: %v", err)
	}
	if err := rn.Rename(ctx, "fstest-b", "fstest-a", true); err != nil {
		s.Errorf("rename with replace: %v", err)
		return
	}
	s.holds(d, "fstest-a", path, "hello, World")
	_, err = d.Lookup(ctx, "fstest-b")
	s.want("look-up of the old name", err, iofs.ErrNotExist)
}

// mkdir makes a directory and takes it away again.
func (s *suite) mkdir(p string) {
	ctx := s.Context()
	d := s.dirAt(p)
	m, ok := d.(fs.Maker)
	if !ok {
		s.Fatalf("%s: a %T does not make directories", p, d)
	}
	before := names(s.list(p, d, ""))
	vers := s.vers(p)
	made, err := m.Mkdir(ctx, "fstest", 0o755)
	if err != nil {
		s.Fatalf("mkdir: %v", err)
	}
	s.moved(p, vers, "more")
	n, err := d.Lookup(ctx, "fstest")
	if err != nil {
		s.Fatalf("look-up of what was made: %v", err)
	}
	if _, ok := n.(fs.Dir); !ok || n.Stat().Path != made.Stat().Path {
		s.Errorf("look-up of what was made: got a %T of path %#x, want a Dir of path %#x", n, n.Stat().Path, made.Stat().Path)
	}
	if got := names(s.list(p, d, "")); !slices.Contains(got, "fstest") {
		s.Errorf("%s: got %q, want fstest among them", p, got)
	}
	_, err = m.Mkdir(ctx, "fstest", 0o755)
	s.want("mkdir of what is there", err, iofs.ErrExist)
	for _, name := range badNames {
		if _, err := m.Mkdir(ctx, name, 0o755); err == nil {
			s.Errorf("mkdir %.20q: got no error", name)
		}
	}
	s.forbidden("mkdir", func(ctx context.Context) error {
		_, err := m.Mkdir(ctx, "fstest-b", 0o755)
		return err
	})
	r, ok := d.(fs.Remover)
	if !ok {
		return
	}
	if err := r.Remove(ctx, "fstest"); err != nil {
		s.Errorf("remove: %v", err)
	}
	s.want("remove what is gone", r.Remove(ctx, "fstest"), iofs.ErrNotExist)
	if got := names(s.list(p, d, "")); !slices.Equal(got, before) {
		s.Errorf("%s: got %q, want what there was before, %q", p, got, before)
	}
}
