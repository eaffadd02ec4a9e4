// Package fstest tests trees: a suite that every fs.Dir passes, and scripts
// that run against a tree directly, over 9P, and mounted.
//
// The suite only needs a Dir, so it also tests the far side of ninep.Dial,
// and of a mount by way of Disk.
package fstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// Options tell the suite what it cannot find out by looking.
type Options struct {
	// Hidden are paths that can be walked to and are not listed.
	Hidden []string
	// Create are paths of directories in which files can be made, written,
	// renamed and removed; Mkdir of those in which directories can be.
	Create, Mkdir []string
	// Skip are paths that are left alone, with all below them.
	Skip []string
	// Max bounds the nodes visited, 10,000 if it is 0. The rest is logged.
	Max int
}

// patience is how long a call may take that must not block.
const patience = 10 * time.Second

// Dir checks that the tree below root keeps the promises of package fs. It
// opens every file that can be read; nothing is changed outside of the
// directories named in opt.
func Dir(t *testing.T, root fs.Dir, opt Options) {
	newSuite(t, root, opt).all(t)
}

func (s *suite) all(t *testing.T) {
	opt := s.opt
	t.Run("tree", func(t *testing.T) { s.at(t).tree() })
	t.Run("hidden", func(t *testing.T) { s.at(t).hidden() })
	for _, p := range opt.Create {
		t.Run("create/"+p, func(t *testing.T) { s.at(t).create(p) })
	}
	for _, p := range opt.Mkdir {
		t.Run("mkdir/"+p, func(t *testing.T) { s.at(t).mkdir(p) })
	}
}

type suite struct {
	testing.TB
	root fs.Dir
	opt  Options
	seen map[uint64]visit
	n    int

	// remote is a tree whose server decides who may do what, and whose nodes
	// are what they were when they were found.
	remote bool
}

// visit is a node where it was found.
type visit struct {
	path string
	node fs.Node
}

func newSuite(tb testing.TB, root fs.Dir, opt Options) *suite {
	if opt.Max == 0 {
		opt.Max = 10_000
	}
	return &suite{TB: tb, root: root, opt: opt, seen: make(map[uint64]visit)}
}

func (s *suite) at(t *testing.T) *suite {
	c := *s
	c.TB = t
	return &c
}

// tree visits every node there is.
func (s *suite) tree() {
	todo := []visit{{"", s.root}}
	for len(todo) > 0 {
		v := todo[0]
		todo = todo[1:]
		if v.path != "" && slices.Contains(s.opt.Skip, v.path) {
			continue
		}
		if s.n++; s.n > s.opt.Max {
			s.Logf("%d nodes and more not visited, after the first %d", len(todo)+1, s.opt.Max)
			return
		}
		s.identity(v)
		switch n := v.node.(type) {
		case fs.Dir:
			for _, e := range s.dir(v.path, n) {
				todo = append(todo, visit{path.Join(v.path, e.Name), e.Node})
			}
		case fs.File:
			s.file(v.path, n)
		default:
			s.Errorf("%s: got a %T, want a Dir or a File", v.path, n)
		}
	}
	s.Logf("%d nodes", s.n)
}

// identity checks what a Stat may say, and that a Path stands for one thing:
// two names may share it, but then all that can be seen is the same.
func (s *suite) identity(v visit) {
	st := v.node.Stat()
	if st.Path == 0 || st.Path == ^uint64(0) || st.Path == fs.RootPath && v.path != "" {
		s.Errorf("%s: path is %#x, which is reserved", v.path, st.Path)
	}
	if st.Mode&^iofs.ModePerm != 0 {
		s.Errorf("%s: got mode %v, want permission bits", v.path, st.Mode)
	}
	if st.Size < 0 {
		s.Errorf("%s: got size %d", v.path, st.Size)
	}
	d, isDir := v.node.(fs.Dir)
	if isDir && st.Size != 0 {
		s.Errorf("%s: got size %d, want 0 for a directory", v.path, st.Size)
	}
	if isDir && st.Kind != fs.Plain {
		s.Errorf("%s: got kind %d of a directory, want Plain", v.path, st.Kind)
	}
	was, ok := s.seen[st.Path]
	if !ok {
		s.seen[st.Path] = v
		return
	}
	wasDir, isDir2 := was.node.(fs.Dir)
	if isDir != isDir2 || was.node.Stat().Kind != st.Kind {
		s.Errorf("%s and %s: different things of the same path %#x", was.path, v.path, st.Path)
		return
	}
	if isDir {
		if got, want := names(s.list(v.path, d, "")), names(s.list(was.path, wasDir, "")); !slices.Equal(got, want) {
			s.Errorf("%s and %s: different directories of the same path %#x", was.path, v.path, st.Path)
		}
		return
	}
	if st.Kind == fs.Plain && st.Vers == was.node.Stat().Vers && readable(st) {
		if !bytes.Equal(s.content(v), s.content(was)) {
			s.Errorf("%s and %s: different content of the same path %#x", was.path, v.path, st.Path)
		}
	}
}

// content reads a whole file as a new reader would.
func (s *suite) content(v visit) []byte {
	h, err := v.node.(fs.File).Open(s.Context(), fs.Read)
	if err != nil {
		s.Errorf("%s: open: %v", v.path, err)
		return nil
	}
	defer s.done(v.path, h)
	b, err := readAll(s.Context(), h, 64<<10)
	if err != nil {
		s.Errorf("%s: read: %v", v.path, err)
	}
	return b
}

func (s *suite) done(path string, h fs.Handle) {
	if err := h.Flush(s.Context()); err != nil {
		s.Errorf("%s: flush: %v", path, err)
	}
	if err := h.Close(); err != nil {
		s.Errorf("%s: close: %v", path, err)
	}
}

func readable(st fs.Stat) bool { return st.Mode&0o400 != 0 }

// list collects what is listed after a name.
func (s *suite) list(path string, d fs.Dir, after string) []fs.Entry {
	var out []fs.Entry
	for e, err := range d.List(s.Context(), after) {
		if err != nil {
			s.Errorf("%s: list after %q: %v", path, after, err)
			break
		}
		out = append(out, e)
	}
	return out
}

func names(entries []fs.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name
	}
	return out
}

// absent are names that no directory has.
var absent = []string{"", ".", "..", "a/b", "no such name", "nul\x00", strings.Repeat("n", 300)}

// dir checks one directory and gives its entries.
func (s *suite) dir(p string, d fs.Dir) []fs.Entry {
	before := d.Stat()
	entries := s.list(p, d, "")
	paths := make(map[uint64]string)
	for i, e := range entries {
		if slices.Contains(absent, e.Name) || len(e.Name) > 255 || strings.ContainsAny(e.Name, "/\x00") {
			s.Errorf("%s: got the name %q, want one a name can be", p, e.Name)
		}
		if i > 0 && e.Name <= entries[i-1].Name {
			s.Errorf("%s: got %q after %q, want bytewise order", p, e.Name, entries[i-1].Name)
		}
		st := e.Node.Stat()
		if was, ok := paths[st.Path]; ok {
			s.Errorf("%s: %q and %q have the same path %#x", p, was, e.Name, st.Path)
		}
		paths[st.Path] = e.Name
		s.lookup(p, d, e)
	}
	s.resume(p, d, before, names(entries))
	for _, name := range absent {
		n, err := d.Lookup(s.Context(), name)
		if !class(err, iofs.ErrNotExist, iofs.ErrInvalid, syscall.ENAMETOOLONG) {
			s.Errorf("%s: look-up of %.20q: got %v, %v, want ErrNotExist", p, name, n, err)
		}
	}
	for range d.List(s.Context(), "") {
		break // and no more is yielded, or range panics
	}
	s.soon(p+": list with a cancelled context", func(ctx context.Context) {
		for _, err := range d.List(ctx, "") {
			if err != nil && !class(err, context.Canceled) {
				s.Errorf("%s: list with a cancelled context: got %v", p, err)
			}
		}
	})
	return entries
}

// lookup checks that looking a listed name up finds the same node.
func (s *suite) lookup(p string, d fs.Dir, e fs.Entry) {
	n, err := d.Lookup(s.Context(), e.Name)
	if err != nil {
		s.Errorf("%s: look-up of %q, which is listed: %v", p, e.Name, err)
		return
	}
	got, want := n.Stat(), e.Node.Stat()
	_, gotDir := n.(fs.Dir)
	_, wantDir := e.Node.(fs.Dir)
	if got.Path != want.Path || gotDir != wantDir || got.Kind != want.Kind || got.Mode != want.Mode || got.Owner != want.Owner {
		s.Errorf("%s: look-up of %q: got %+v, want %+v as listed", p, e.Name, got, want)
	}
}

// resume checks that a list goes on after any name, there or not.
func (s *suite) resume(p string, d fs.Dir, before fs.Stat, all []string) {
	try := []string{"", "\x01", "\xff\xff", "no such name"}
	step := len(all)/32 + 1
	for i := 0; i < len(all); i += step {
		try = append(try, all[i], all[i]+"\x01", all[i][:len(all[i])-1])
	}
	if len(all) > 0 {
		try = append(try, all[len(all)-1])
	}
	for _, after := range try {
		i, found := slices.BinarySearch(all, after)
		if found {
			i++
		}
		if got := names(s.list(p, d, after)); !slices.Equal(got, all[i:]) && d.Stat().Vers == before.Vers {
			s.Errorf("%s: list after %q: got %q, want %q", p, after, short(got), short(all[i:]))
		}
	}
}

func short(list []string) []string {
	if len(list) > 8 {
		return append(slices.Clone(list[:8]), fmt.Sprintf("... %d in all", len(list)))
	}
	return list
}

// soon runs f with a cancelled context and complains if it does not return.
func (s *suite) soon(what string, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	s.within(what, func() { f(ctx) })
}

func (s *suite) within(what string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		s.Fatalf("%s: blocks", what)
	}
}

// file checks one file.
func (s *suite) file(p string, f fs.File) {
	st := f.Stat()
	if st.Kind > fs.Control {
		s.Errorf("%s: got kind %d", p, st.Kind)
	}
	if st.Mode&0o222 == 0 {
		if h, err := f.Open(s.Context(), fs.Write); !class(err, iofs.ErrPermission) {
			s.Errorf("%s: opened for writing with mode %v: got %v, want ErrPermission", p, st.Mode, err)
			if err == nil {
				h.Close()
			}
		}
	}
	if !readable(st) {
		return
	}
	if st.Kind == fs.Live {
		s.live(p, f)
		return
	}
	h, err := f.Open(s.Context(), fs.Read)
	if err != nil {
		s.Errorf("%s: open: %v", p, err)
		return
	}
	h2, err := f.Open(s.Context(), fs.Read)
	if err != nil {
		s.Errorf("%s: open twice: %v", p, err)
		s.done(p, h)
		return
	}
	s.reads(p, f, st, h)
	b, err := readAll(s.Context(), h, 64<<10)
	if err != nil {
		s.Errorf("%s: read: %v", p, err)
	}
	s.done(p, h)
	b2, err := readAll(s.Context(), h2, 64<<10)
	if err != nil {
		s.Errorf("%s: read with one of two handles closed: %v", p, err)
	}
	if st.Kind != fs.Control && f.Stat().Vers == st.Vers && !bytes.Equal(b, b2) {
		s.Errorf("%s: two opens of one version read differently: %.40q and %.40q", p, b, b2)
	}
	s.done(p, h2)
}

// reads checks that a handle reads the same at any offset, in any size.
func (s *suite) reads(p string, f fs.File, st fs.Stat, h fs.Handle) {
	ctx := s.Context()
	whole, err := readAll(ctx, h, 64<<10)
	if err != nil {
		s.Errorf("%s: read: %v", p, err)
		return
	}
	size := int64(len(whole))
	after := f.Stat()
	if after.Vers == st.Vers && after.Size == st.Size {
		known := st.Kind == fs.Plain || st.Kind == fs.Growing
		if size != st.Size && (known || st.Size != 0 && st.Kind == fs.Made) {
			s.Errorf("%s: got size %d, want %d, the length of its content", p, st.Size, size)
		}
	}
	if st.Kind == fs.Growing {
		whole = whole[:min(size, st.Size)]
	}
	few := 7 + len(whole)/100
	if got, err := readAll(ctx, h, few); err != nil || !bytes.HasPrefix(got, whole) {
		s.Errorf("%s: read by %d bytes: got %.40q (%v), want %.40q", p, few, got, err, whole)
	}
	for range 8 {
		if size == 0 {
			break
		}
		off := rand.Int64N(size)
		buf := make([]byte, 1+rand.IntN(100))
		n, err := h.ReadAt(ctx, buf, off)
		if err != nil && err != io.EOF || n == 0 || !bytes.HasPrefix(whole[min(off, int64(len(whole))):], buf[:n]) && st.Kind != fs.Growing {
			s.Errorf("%s: %d bytes at %d: got %.40q, %v", p, len(buf), off, buf[:n], err)
		}
	}
	buf := make([]byte, 10)
	for _, off := range []int64{size, size + 1, 1 << 40, 1<<63 - 1} {
		if st.Kind == fs.Growing && off <= size+1 {
			continue
		}
		if n, err := h.ReadAt(ctx, buf, off); n != 0 || err != io.EOF {
			s.Errorf("%s: read at %d of %d bytes: got %d, %v, want EOF", p, off, size, n, err)
		}
	}
	if n, err := h.ReadAt(ctx, buf, -1); n != 0 || err == nil || err == io.EOF {
		s.Errorf("%s: read at -1: got %d, %v, want an error", p, n, err)
	}
	if n, err := h.ReadAt(ctx, nil, 0); n != 0 || err != nil && err != io.EOF {
		s.Errorf("%s: read of no bytes: got %d, %v", p, n, err)
	}
	s.soon(p+": read with a cancelled context", func(ctx context.Context) {
		if _, err := h.ReadAt(ctx, make([]byte, 10), 0); err != nil && err != io.EOF && !class(err, context.Canceled) {
			s.Errorf("%s: read with a cancelled context: got %v", p, err)
		}
	})
	s.together(p, h, whole)
}

// together reads with one handle from several goroutines, for the race
// detector, and for handles that keep a position where they should not.
func (s *suite) together(p string, h fs.Handle, whole []byte) {
	if len(whole) == 0 {
		return
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			b, err := readAll(s.Context(), h, 512+len(whole)/50)
			if err == nil && !bytes.HasPrefix(b, whole) {
				err = fmt.Errorf("got %.40q, want %.40q", b, whole)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			s.Errorf("%s: concurrent reads of one handle: %v", p, err)
		}
	}
}

// readAll reads from the start to the end, at most step bytes a read.
func readAll(ctx context.Context, h fs.Handle, step int) ([]byte, error) {
	var out []byte
	buf := make([]byte, step)
	for empty := 0; ; {
		n, err := h.ReadAt(ctx, buf, int64(len(out)))
		out = append(out, buf[:n]...)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if n == 0 {
			if empty++; empty == 100 {
				return out, io.ErrNoProgress
			}
		}
	}
}

// live checks that a read that waits ends with its context, and that another
// one can follow.
func (s *suite) live(p string, f fs.File) {
	h, err := f.Open(s.Context(), fs.Read)
	if err != nil {
		s.Errorf("%s: open: %v", p, err)
		return
	}
	defer s.done(p, h)
	for range 2 {
		ctx, cancel := context.WithCancel(s.Context())
		var rerr error
		time.AfterFunc(10*time.Millisecond, cancel) // most likely blocked by then; it must end either way
		s.within(p+": read of a live file after its context ended", func() {
			for rerr == nil {
				_, rerr = h.ReadAt(ctx, make([]byte, 4096), 0)
			}
		})
		cancel()
		if !class(rerr, context.Canceled) {
			s.Errorf("%s: cancelled read: got %v, want context.Canceled", p, rerr)
		}
	}
}

// hidden checks what is walked to and not listed.
func (s *suite) hidden() {
	for _, p := range s.opt.Hidden {
		n, err := fs.Walk(s.Context(), s.root, p)
		if err != nil {
			s.Errorf("hidden: %v", err)
			continue
		}
		up, err := fs.Walk(s.Context(), s.root, path.Dir(p))
		if err != nil {
			s.Errorf("hidden: %v", err)
			continue
		}
		if slices.Contains(names(s.list(p, up.(fs.Dir), "")), path.Base(p)) {
			s.Errorf("%s: is listed, want it hidden", p)
		}
		s.identity(visit{p, n})
		if d, ok := n.(fs.Dir); ok {
			s.dir(p, d)
		} else {
			s.file(p, n.(fs.File))
		}
	}
}
