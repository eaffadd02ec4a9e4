package ninep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

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
	// Each fid but the root's comes back, once its Rclunk has.
	free := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.fids) == int(c.fid)-1
	}
	for i := 0; !free(); i++ {
		if i == 10000 {
			t.Fatalf("fids: %d of %d are free", len(c.fids), c.fid-1)
		}
		if err := c.do(ctx, c.statCall(0)); err != nil {
			t.Fatal(err)
		}
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
