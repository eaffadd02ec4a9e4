package ninep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

func open(t *testing.T, d fs.Dir, path string, m fs.Mode) fs.Handle {
	t.Helper()
	n, err := fs.Walk(t.Context(), d, path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.(fs.File).Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestClient(t *testing.T) {
	root := newShelf()
	sub := root.dir("sub")
	deep := sub
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("d", i))
		deep = deep.dir(names[i])
	}
	deep.file("bottom", "far down")
	sub.file("hello", "hello, world\n")
	c := dialed(t, root, owner())
	ctx := t.Context()

	if got, want := c.Root().Stat().Path, uint64(fs.RootPath); got != want {
		t.Errorf("root's path: got %d, want %d", got, want)
	}
	n, err := fs.Walk(ctx, c.Root(), "sub/"+strings.Join(names, "/")+"/bottom")
	if err != nil {
		t.Fatal(err)
	}
	b, err := iofs.ReadFile(fs.IO(ctx, c.Root()), "sub/"+strings.Join(names, "/")+"/bottom")
	if string(b) != "far down" || err != nil {
		t.Errorf("42 names down: got %q, %v", b, err)
	}
	if st := n.Stat(); st.Kind != fs.Plain || st.Size != 8 || st.Mode != 0o644 {
		t.Errorf("bottom's stat: got %+v", st)
	}
	for path, class := range map[string]error{
		"nothing":          iofs.ErrNotExist,
		"nothing/below":    iofs.ErrNotExist,
		"sub/hello/within": syscall.ENOTDIR,
	} {
		if _, err := c.lookup(ctx, strings.Split(path, "/")); !errors.Is(err, class) {
			t.Errorf("look up %s: got %v, want %v", path, err, class)
		}
	}

	// Files and directories come, change and go.
	d, err := c.Root().(fs.Maker).Mkdir(ctx, "new", 0o777)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Stat().Mode; got != 0o755 {
		t.Errorf("mode of the new directory: got %o, want the parent's 755", got)
	}
	f, h, err := d.(fs.Creator).Create(ctx, "file", 0o666, fs.Read|fs.Write)
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10) // over three messages
	if n, err := h.WriteAt(ctx, big, 3); n != len(big) || err != nil {
		t.Errorf("write: got %d, %v", n, err)
	}
	got := make([]byte, len(big)+100)
	k, err := h.ReadAt(ctx, got, 3)
	if k != len(big) || err != nil || !bytes.Equal(got[:k], big) {
		t.Errorf("read back: got %d bytes of %d, %v", k, len(big), err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := d.(fs.Creator).Create(ctx, "file", 0o666, fs.Write); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("create again: got %v, want %v", err, iofs.ErrExist)
	}
	if err := c.Root().(fs.Remover).Remove(ctx, "new"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("remove a full directory: got %v, want %v", err, syscall.ENOTEMPTY)
	}
	size, mode, mtime := int64(5), iofs.FileMode(0o600), time.Unix(1e9, 0)
	if err := f.(fs.Setter).Set(ctx, fs.Change{Size: &size, Mode: &mode, Mtime: &mtime}); err != nil {
		t.Error(err)
	}
	now, err := d.Lookup(ctx, "file")
	if err != nil {
		t.Fatal(err)
	}
	if st := now.Stat(); st.Size != size || st.Mode != mode || !st.Mtime.Equal(mtime) {
		t.Errorf("after Set: got %+v", st)
	}
	if err := d.(fs.Setter).Set(ctx, fs.Change{Mode: &mode}); !errors.Is(err, iofs.ErrPermission) {
		t.Errorf("mode of a directory without Setter: got %v, want %v", err, iofs.ErrPermission)
	}
	for _, step := range []struct {
		do   error
		want error
	}{
		{d.(fs.Renamer).Rename(ctx, "file", "other", false), nil},
		{d.(fs.Renamer).Rename(ctx, "file", "other", false), iofs.ErrExist},
		{d.(fs.Renamer).Rename(ctx, "file", "third", false), iofs.ErrNotExist},
		{d.(fs.Remover).Remove(ctx, "other"), nil},
		{d.(fs.Remover).Remove(ctx, "other"), iofs.ErrNotExist},
		{c.Root().(fs.Remover).Remove(ctx, "new"), nil},
	} {
		if !errors.Is(step.do, step.want) {
			t.Errorf("got %v, want %v", step.do, step.want)
		}
	}
	balanced(t, c)
}

// balanced waits until each fid is free once its Rclunk has come, but the
// root's and those that are kept.
func balanced(t *testing.T, c *Client) {
	t.Helper()
	used := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range c.kept {
			if k.users != 0 || k.gone {
				n++
			}
		}
		return n + int(c.fid) - 1 - len(c.fids) - len(c.kept)
	}
	for i := 0; used() != 0; i++ {
		if i == 10000 {
			t.Fatalf("%d fids are in use", used())
		}
		if err := c.do(t.Context(), c.statCall(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// deepTree is a chain of n directories and their names.
func deepTree(root *shelf, n int) (dirs []*shelf, names []string) {
	dirs = append(dirs, root)
	for i := range n {
		names = append(names, fmt.Sprint("d", i))
		dirs = append(dirs, dirs[i].dir(names[i]))
	}
	return dirs, names
}

// TestDeep: what finding a file costs does not grow with its depth.
func TestDeep(t *testing.T) {
	for _, mark := range []bool{true, false} {
		root := newShelf()
		dirs, names := deepTree(root, 500)
		dirs[500].file("f", "far down")
		v := NewServer(discard(), Limits{})
		v.unmark = !mark
		c, err := NewClient(t.Context(), serve(t, v, root, owner()), "pipe", DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		start, n := time.Now(), 0
		// As find does over a mount: each entry is looked up in its directory.
		var find func(d fs.Dir) error
		find = func(d fs.Dir) error {
			n++
			for e, err := range d.List(t.Context(), "") {
				if err != nil {
					return err
				}
				node, err := d.Lookup(t.Context(), e.Name)
				if err != nil {
					return err
				}
				if sub, ok := node.(fs.Dir); !ok {
					n++
				} else if err := find(sub); err != nil {
					return err
				}
			}
			return nil
		}
		err = find(c.Root())
		walks := v.stats.requests[proto.Twalk-100].Load()
		t.Logf("ours %t: %d entries, %d Twalks, %v", mark, n, walks, time.Since(start))
		if n != 502 || err != nil {
			t.Errorf("ours %t: got %d entries, %v, want 502", mark, n, err)
		}
		if walks > 3*502 {
			t.Errorf("ours %t: %d Twalks for %d entries", mark, walks, n)
		}
		for i := 500; i > 0; i -= 7 {
			if _, err := c.lookup(t.Context(), names[:i]); err != nil {
				t.Fatalf("ours %t: depth %d: %v", mark, i, err)
			}
		}
		balanced(t, c)
		if n := v.stats.fids.Load(); n > 1+maxKept {
			t.Errorf("ours %t: the server has %d fids", mark, n)
		}
		c.Close()
	}
}

// TestKept: a kept fid is no more trusted than its age and what this client
// did allow, there is a bound to them, and one the server does not know any
// more is none.
func TestKept(t *testing.T) {
	root := newShelf()
	dirs, names := deepTree(root, 60)
	dirs[60].file("f", "old")
	c := dialed(t, root, owner())
	other := dialed(t, root, owner())
	ctx := t.Context()
	look := func(path ...string) error { _, err := c.lookup(ctx, path); return err }
	file := append(slices.Clip(names), "f")
	warm := func() {
		t.Helper()
		if err := look(file...); err != nil {
			t.Fatal(err)
		}
		if len(c.kept) != 3 {
			t.Fatalf("%d fids are kept, want 3", len(c.kept))
		}
	}
	rename := func(c *Client, at int, old, new string) {
		t.Helper()
		d, err := c.lookup(ctx, names[:at])
		if err != nil {
			t.Fatal(err)
		}
		if err := d.(fs.Renamer).Rename(ctx, old, new, true); err != nil {
			t.Fatal(err)
		}
	}

	// This client's own rename and removal count at once.
	warm()
	rename(c, 20, names[20], "away")
	if err := look(file...); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("after an own rename: got %v, want %v", err, iofs.ErrNotExist)
	}
	rename(c, 20, "away", names[20])
	warm()

	// Another's: what is not found by a kept fid is looked for from the root.
	rename(other, 20, names[20], "away")
	at := dirs[20]
	for _, name := range names[20:] {
		at = at.dir(name)
	}
	at.file("new", "new")
	if err := look(append(slices.Clip(names), "new")...); err != nil {
		t.Errorf("in the directory that replaces a renamed one: got %v", err)
	}
	// and what would be found by one is, once it is old.
	warmed := append(slices.Clip(names), "new")
	rename(other, 20, names[20], "gone")
	c.mu.Lock()
	for _, k := range c.kept {
		k.walked = k.walked.Add(-keptFor)
	}
	c.mu.Unlock()
	if err := look(warmed...); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("renamed by another: got %v, want %v", err, iofs.ErrNotExist)
	}
	rename(other, 20, "away", names[20])
	warm()

	// The server forgets the fids.
	for _, k := range c.kept {
		if err := c.do(ctx, fidCall(proto.Tclunk, k.fid)); err != nil {
			t.Fatal(err)
		}
	}
	warm()
	balanced(t, c)

	// Many at once, in more directories than are kept.
	for i := range maxKept + 50 {
		d := dirs[15].dir(fmt.Sprint("e", i))
		for range 20 {
			d = d.dir("x")
		}
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range maxKept + 50 {
				path := append(slices.Clip(names[:15]), fmt.Sprint("e", (i+w*40)%(maxKept+50)), "x", "x", "x")
				if err := look(path...); err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				if i%50 == 0 {
					c.unkeep(func(*kept) bool { return true })
				}
			}
		})
	}
	all.Wait()
	for i := range maxKept + 50 {
		if err := look(append(slices.Clip(names[:15]), fmt.Sprint("e", i), "x")...); err != nil {
			t.Fatal(err)
		}
	}
	balanced(t, c)
	if len(c.kept) > maxKept {
		t.Errorf("%d fids are kept, more than %d", len(c.kept), maxKept)
	}
}

// TestRefusals: what a file says of a write, a sync and a close arrives.
func TestRefusals(t *testing.T) {
	root := newShelf()
	root.file("f", "")
	root.bus.refuse = fs.Class(errors.New("line 3: unknown word 'wat'"), iofs.ErrInvalid)
	c := dialed(t, root, owner())
	ctx := t.Context()
	check := func(what string, err error) {
		t.Helper()
		if err == nil || err.Error() != "line 3: unknown word 'wat'" || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	h := open(t, c.Root(), "f", fs.Write)
	_, err := h.WriteAt(ctx, []byte("bad"), 0)
	check("write", err)
	if err := h.Flush(ctx); err != nil {
		t.Errorf("flush of nothing: got %v", err)
	}
	if _, err := h.WriteAt(ctx, []byte("wrong"), 0); err != nil {
		t.Error(err)
	}
	check("flush", h.Flush(ctx))
	check("close", h.Close())
	if root.bus.closes != 1 || root.bus.closedTwice {
		t.Errorf("closes: got %d, want 1", root.bus.closes)
	}

	// Classes keep the words that other clients know.
	root.bus.refuse = fmt.Errorf("store: %w", syscall.ENOSPC)
	h = open(t, c.Root(), "f", fs.Write)
	if _, err = h.WriteAt(ctx, []byte("bad"), 0); err == nil || err.Error() != "No space left on device" || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: got %v", err)
	}
	root.bus.refuse = fmt.Errorf("root x: %w", iofs.ErrNotExist)
	if _, err = h.WriteAt(ctx, []byte("bad"), 0); err == nil || err.Error() != "root x: file does not exist" || !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("missing root: got %v", err)
	}
	h.Close()
}

// TestReadAhead reads in every way and finds the file each time.
func TestReadAhead(t *testing.T) {
	root := newShelf()
	big := make([]byte, 6<<20+123)
	for i := range big {
		big[i] = byte(i>>8) ^ byte(i*7)
	}
	f := root.file("big", string(big))
	c := dialed(t, root, owner())
	ctx := t.Context()
	for _, step := range []int{1000, 32 << 10, 300 << 10, 1 << 20, 3 << 20, 7 << 20} {
		h := open(t, c.Root(), "big", fs.Read)
		p := make([]byte, step)
		for off := 0; ; {
			n, err := h.ReadAt(ctx, p, int64(off))
			if !bytes.Equal(p[:n], big[off:off+n]) {
				t.Fatalf("step %d: wrong bytes at %d", step, off)
			}
			off += n
			if err == io.EOF {
				if off != len(big) {
					t.Errorf("step %d: ended at %d, want %d", step, off, len(big))
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if step == 1000 && off > 2<<20 && off < 3<<20 {
				off = 4 << 20 // leave the sequence
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}

	// A server may give less than it was asked for, anywhere.
	f.most = 100_000
	for _, step := range []int{64 << 10, 3 << 20} {
		h := open(t, c.Root(), "big", fs.Read)
		p := make([]byte, step)
		for off := 0; off < len(big); {
			n, err := h.ReadAt(ctx, p, int64(off))
			if err != nil || n == 0 || !bytes.Equal(p[:n], big[off:off+n]) {
				t.Fatalf("short reads, step %d: %d bytes at %d are wrong: %v", step, n, off, err)
			}
			off += n
		}
		h.Close()
	}
	f.most = 0

	// Reading in sequence past a write, and past an end that moved.
	f.Set(ctx, fs.Change{Size: ptr(int64(4 << 20))})
	h := open(t, c.Root(), "big", fs.Read|fs.Write)
	p := make([]byte, 1<<20)
	var off int64
	for range 3 {
		n, err := h.ReadAt(ctx, p, off)
		if err != nil {
			t.Fatal(err)
		}
		off += int64(n)
	}
	if _, err := h.WriteAt(ctx, []byte("new words"), off); err != nil {
		t.Fatal(err)
	}
	if n, err := h.ReadAt(ctx, p, off); err != nil || !strings.HasPrefix(string(p[:n]), "new words") {
		t.Errorf("after a write: got %q, %v", p[:min(n, 9)], err)
	}
	for off < 4<<20 {
		n, err := h.ReadAt(ctx, p, off)
		if err != nil {
			t.Fatal(err)
		}
		off += int64(n)
	}
	if n, err := h.ReadAt(ctx, p, off); n != 0 || err != io.EOF {
		t.Errorf("at the end: got %d, %v", n, err)
	}
	f.mu.Lock()
	f.b = append(f.b, "grown"...)
	f.mu.Unlock()
	if n, err := h.ReadAt(ctx, p, off); err != nil || string(p[:n]) != "grown" {
		t.Errorf("after growing: got %q, %v", p[:n], err)
	}
	h.Close()
}

func ptr[T any](v T) *T { return &v }

// TestCancel: a call's context ends it and nothing else.
func TestCancel(t *testing.T) {
	root := newShelf()
	root.bus.slow = make(chan struct{})
	f := root.file("events", "it happened\n")
	f.kind = fs.Live
	root.file("plain", "x")
	c := dialed(t, root, owner())
	h := open(t, c.Root(), "events", fs.Read)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := h.ReadAt(ctx, make([]byte, 100), 0)
		done <- err
	}()
	<-root.bus.entered
	if b, err := iofs.ReadFile(fs.IO(t.Context(), c.Root()), "plain"); string(b) != "x" || err != nil {
		t.Errorf("beside a blocked read: got %q, %v", b, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled read: got %v", err)
	}

	// The tag is free, and what the read did not take is still there.
	go func() {
		p := make([]byte, 100)
		n, err := h.ReadAt(t.Context(), p, 0)
		if string(p[:n]) != "it happened\n" {
			err = fmt.Errorf("read %q, %v", p[:n], err)
		}
		done <- err
	}()
	<-root.bus.entered
	close(root.bus.slow)
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.Close()
}

// TestDead: a lost connection ends every call.
func TestDead(t *testing.T) {
	root := newShelf()
	root.bus.slow = make(chan struct{})
	f := root.file("events", "")
	f.kind = fs.Live
	v := NewServer(discard(), Limits{})
	nc := serve(t, v, root, owner())
	c, err := NewClient(t.Context(), nc, "pipe", DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, c.Root(), "events", fs.Read)
	done := make(chan error)
	go func() {
		_, err := h.ReadAt(t.Context(), make([]byte, 100), 0)
		done <- err
	}()
	<-root.bus.entered
	nc.Close()
	if err := <-done; err == nil || !strings.HasPrefix(err.Error(), "pipe: connection lost: ") || !errors.Is(err, syscall.EIO) {
		t.Errorf("read: got %v, class %v, want the lost connection, of class EIO", err, fs.Errno(err))
	}
	<-c.Done()
	if _, err := c.Root().Lookup(t.Context(), "events"); err == nil {
		t.Error("look-up without a connection worked")
	}
	if err := h.Close(); err == nil {
		t.Error("close without a connection worked")
	}
	c.Close()
}
