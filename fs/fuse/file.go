package fuse

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fuse"

	"harvest/fs"
)

// maxStore is the length of Plain files whose content goes into the page
// cache with the open, which saves the request to read it.
const maxStore = 64 << 10

// file is an open file. Its mode decides, with the kind of the node, whether
// it goes through the page cache.
type file struct {
	n      *node
	h      fs.Handle
	m      fs.Mode
	cached bool
}

func (f *file) close(lg *slog.Logger) {
	if err := f.h.Close(); err != nil {
		lg.Debug("close", "err", err)
	}
}

// mode is what the flags of open(2) ask for.
func mode(flags uint32) fs.Mode {
	m := fs.Read
	switch flags & syscall.O_ACCMODE {
	case syscall.O_WRONLY:
		m = fs.Write
	case syscall.O_RDWR:
		m = fs.Read | fs.Write
	}
	if m&fs.Write != 0 && flags&syscall.O_TRUNC != 0 {
		m |= fs.Trunc
	}
	if m&fs.Write != 0 && flags&syscall.O_APPEND != 0 {
		m |= fs.Append
	}
	return m
}

func (t *tree) Open(cancel <-chan struct{}, in *gofuse.OpenIn, out *gofuse.OpenOut) gofuse.Status {
	t.count.open.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.open(ctx, in.NodeId, mode(in.Flags), out))
}

// open asks the tree for the node again, where that costs nothing, so that
// the file is what stands there now. If that is not what the kernel was told
// the answer is ESTALE: the kernel then looks the name up and comes again.
func (t *tree) open(ctx context.Context, id uint64, m fs.Mode, out *gofuse.OpenOut) error {
	n := t.node(id)
	if n == nil {
		return syscall.ESTALE
	}
	fn := t.of(n)
	if t.opt.Bus != nil {
		now, err := t.again(ctx, n)
		if err != nil && !errors.Is(err, errGone) {
			return err
		}
		if (err != nil || t.differs(n, now.Stat())) && t.stale(n) {
			return syscall.ESTALE
		}
		fn = now
	}
	f, ok := fn.(fs.File)
	if !ok {
		return syscall.EISDIR
	}
	h, err := f.Open(ctx, m)
	if err != nil {
		if errors.Is(err, iofs.ErrNotExist) && t.stale(n) {
			return syscall.ESTALE
		}
		return err
	}
	st := fn.Stat()
	if mv, ok := h.(fs.Mover); ok && mv.Node().Stat().Path == st.Path {
		// It knows what it opened, which may be newer than the look-up.
		if st = mv.Node().Stat(); t.differs(n, st) && t.stale(n) {
			if err := h.Close(); err != nil {
				return err
			}
			return syscall.ESTALE
		}
	}
	t.opened(ctx, n, st, h, m, out)
	return nil
}

// differs tells whether the kernel knows another version of a Plain file.
func (t *tree) differs(n *node, st fs.Stat) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return st.Kind == fs.Plain && (n.vers != st.Vers || n.size != st.Size)
}

// stale tells whether the kernel may be sent to look n up. It does so once in
// an open(2), so it is not if it just has.
func (t *tree) stale(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.told != 0 && time.Now().UnixNano()-n.told > int64(20*time.Millisecond)
}

// opened makes the open file and says how the kernel is to treat it. The page
// cache of an inode is of one version: while somebody reads another through
// it, an open goes past it.
func (t *tree) opened(ctx context.Context, n *node, st fs.Stat, h fs.Handle, m fs.Mode, out *gofuse.OpenOut) {
	f := &file{n: n, h: h, m: m}
	store := false
	t.mu.Lock()
	if t.files == nil { // the mount is gone; only Close is left to do
		t.mu.Unlock()
		f.close(t.lg)
		return
	}
	if m&fs.Write == 0 {
		out.OpenFlags |= gofuse.FOPEN_NOFLUSH
	}
	same := n.pages && n.pageOf == st.Vers
	switch {
	case st.Kind != fs.Plain || m&fs.Write != 0 || n.size != st.Size || n.vers != st.Vers:
		out.OpenFlags |= gofuse.FOPEN_DIRECT_IO
	case same:
		f.cached = true
		out.OpenFlags |= gofuse.FOPEN_KEEP_CACHE
		t.count.kept.Add(1)
	case n.cached > 0:
		out.OpenFlags |= gofuse.FOPEN_DIRECT_IO
	default:
		f.cached = true
		store = !n.pages && st.Size > 0 && st.Size <= maxStore
		n.pages, n.pageOf = true, st.Vers
	}
	if f.cached {
		n.cached++
	}
	if m&fs.Write != 0 {
		n.pages = false
	}
	n.opens++
	t.lastFh++
	out.Fh = t.lastFh
	t.files[out.Fh] = f
	t.mu.Unlock()
	if store && t.store(ctx, n.id, st.Size, h) {
		out.OpenFlags |= gofuse.FOPEN_KEEP_CACHE
	}
}

// store puts the content of a file that the kernel has no page of into the
// page cache. It is the one note that may be sent inside a request: nothing
// else can hold a lock of a page that is not there.
func (t *tree) store(ctx context.Context, id uint64, size int64, h fs.Handle) bool {
	b := make([]byte, size+1)
	n, err := readFull(ctx, h, b)
	if err != io.EOF || int64(n) != size {
		return false
	}
	t.count.store.Add(1)
	return t.raw.InodeNotifyStoreCache(id, 0, b[:n]) == gofuse.OK
}

// readFull reads from the start of h until b is full or there is an error.
func readFull(ctx context.Context, h fs.Handle, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := h.ReadAt(ctx, b[n:], int64(n))
		n += m
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}

func (t *tree) Create(cancel <-chan struct{}, in *gofuse.CreateIn, name string, out *gofuse.CreateOut) gofuse.Status {
	t.count.create.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	return t.status(t.create(ctx, in, name, out))
}

// create makes a file. If somebody else has made it since the kernel looked,
// that is an error only for who wanted to be the one (O_EXCL).
func (t *tree) create(ctx context.Context, in *gofuse.CreateIn, name string, out *gofuse.CreateOut) error {
	up, d, err := t.dirOf(in.NodeId)
	if err != nil {
		return err
	}
	c, ok := d.(fs.Creator)
	if !ok {
		return iofs.ErrPermission
	}
	m := mode(in.Flags)
	fn, h, err := c.Create(ctx, name, iofs.FileMode(in.Mode).Perm(), m)
	if errors.Is(err, iofs.ErrExist) && in.Flags&syscall.O_EXCL == 0 {
		if err := t.lookup(ctx, in.NodeId, name, &out.EntryOut); err != nil {
			return err
		}
		if err := t.open(ctx, out.NodeId, m, &out.OpenOut); err != nil {
			t.Forget(out.NodeId, 1)
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	n, err := t.enter(up, name, fn, &out.EntryOut, t.notes.Load())
	if err != nil {
		h.Close()
		return err
	}
	t.opened(ctx, n, fn.Stat(), h, m, &out.OpenOut)
	return nil
}

func (t *tree) file(fh uint64) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[fh]
}

func (t *tree) Read(cancel <-chan struct{}, in *gofuse.ReadIn, buf []byte) (gofuse.ReadResult, gofuse.Status) {
	t.count.read.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return nil, gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	f := t.file(in.Fh)
	if f == nil {
		return nil, gofuse.Status(syscall.EBADF)
	}
	n, err := f.read(ctx, buf, int64(in.Offset))
	if err != nil {
		return nil, t.status(err)
	}
	return gofuse.ReadResultData(buf[:n]), gofuse.OK
}

// read fills buf for the page cache, to which a short read is the end; past
// it, and of what waits, it gives what there is. What was read is given,
// whatever came after it.
func (f *file) read(ctx context.Context, buf []byte, off int64) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := f.h.ReadAt(ctx, buf[n:], off+int64(n))
		n += m
		switch {
		case err == io.EOF, n > 0 && (err != nil || !f.cached):
			return n, nil
		case err != nil:
			return 0, err
		case m == 0 && len(buf) > 0:
			return n, nil
		}
	}
	return n, nil
}

func (t *tree) Write(cancel <-chan struct{}, in *gofuse.WriteIn, data []byte) (uint32, gofuse.Status) {
	t.count.write.Add(1)
	c, ctx := t.begin(cancel, in.Uid)
	if c == nil {
		return 0, gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	f := t.file(in.Fh)
	if f == nil {
		return 0, gofuse.Status(syscall.EBADF)
	}
	n, err := f.h.WriteAt(ctx, data, int64(in.Offset))
	if err != nil && n == 0 {
		return 0, t.status(err)
	}
	return uint32(n), gofuse.OK
}

func (t *tree) Flush(cancel <-chan struct{}, in *gofuse.FlushIn) gofuse.Status {
	t.count.flush.Add(1)
	return t.flush(cancel, in.Uid, in.Fh)
}

// Fsync is a Flush too: whoever asks for durability says that the text is
// whole, and wants to hear of it.
func (t *tree) Fsync(cancel <-chan struct{}, in *gofuse.FsyncIn) gofuse.Status {
	t.count.flush.Add(1)
	return t.flush(cancel, in.Uid, in.Fh)
}

func (t *tree) flush(cancel <-chan struct{}, uid uint32, fh uint64) gofuse.Status {
	c, ctx := t.begin(cancel, uid)
	if c == nil {
		return gofuse.Status(syscall.ENOTCONN)
	}
	defer c.end()
	f := t.file(fh)
	if f == nil {
		return gofuse.Status(syscall.EBADF)
	}
	return t.status(f.h.Flush(ctx))
}

// Release comes once for each Open; what the kernel leaves open at the end
// of the mount tree.end closes.
func (t *tree) Release(_ <-chan struct{}, in *gofuse.ReleaseIn) {
	t.count.release.Add(1)
	t.mu.Lock()
	f := t.files[in.Fh]
	if f != nil {
		delete(t.files, in.Fh)
		f.n.opens--
		if f.cached {
			f.n.cached--
		}
		if f.m&fs.Write != 0 {
			f.n.pages = false
		}
		t.drop(f.n)
	}
	t.mu.Unlock()
	if f != nil {
		f.close(t.lg)
	}
}
