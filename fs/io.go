package fs

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"path"
	"sync"
	"syscall"
	"time"
)

// IO shows a tree as a standard io/fs.FS, for whoever only reads files. All
// its calls are made under ctx, as io/fs has no room for one: cancelling it
// ends every blocked read. The FS also implements iofs.StatFS and
// iofs.ReadDirFS; its files io.ReaderAt and io.Seeker, its directories
// iofs.ReadDirFile.
func IO(ctx context.Context, d Dir) iofs.FS { return ioFS{ctx, d} }

// ioFS keeps a context against the house's rule, for the reason IO gives.
type ioFS struct {
	ctx  context.Context
	root Dir
}

func (f ioFS) node(op, name string) (Node, error) {
	if !iofs.ValidPath(name) {
		return nil, &iofs.PathError{Op: op, Path: name, Err: iofs.ErrInvalid}
	}
	n, err := Walk(f.ctx, f.root, name)
	if err != nil {
		return nil, &iofs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

func (f ioFS) Open(name string) (iofs.File, error) {
	n, err := f.node("open", name)
	if err != nil {
		return nil, err
	}
	i := info{path.Base(name), n}
	switch n := n.(type) {
	case Dir:
		if err := UserOf(f.ctx).May(n.Stat(), MayRead); err != nil {
			return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
		}
		return &ioDir{ctx: f.ctx, d: n, info: i}, nil
	case File:
		h, err := OpenNode(f.ctx, n, Read)
		if err != nil {
			return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
		}
		return &ioFile{ctx: f.ctx, h: h, info: i}, nil
	}
	return nil, &iofs.PathError{Op: "open", Path: name, Err: fmt.Errorf("a %T is neither file nor directory", n)}
}

func (f ioFS) Stat(name string) (iofs.FileInfo, error) {
	n, err := f.node("stat", name)
	if err != nil {
		return nil, err
	}
	return info{path.Base(name), n}, nil
}

func (f ioFS) ReadDir(name string) ([]iofs.DirEntry, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	d, ok := file.(*ioDir)
	if !ok {
		return nil, &iofs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return d.ReadDir(-1)
}

// info is a node with its name, as iofs.FileInfo and iofs.DirEntry.
type info struct {
	name string
	node Node
}

func (i info) Name() string { return i.name }
func (i info) Size() int64  { return i.node.Stat().Size }
func (i info) Mode() iofs.FileMode {
	m := i.node.Stat().Mode
	if _, ok := i.node.(Dir); ok {
		m |= iofs.ModeDir
	}
	return m
}
func (i info) ModTime() time.Time           { return i.node.Stat().Mtime }
func (i info) IsDir() bool                  { return i.Mode().IsDir() }
func (i info) Sys() any                     { return i.node.Stat() }
func (i info) Type() iofs.FileMode          { return i.Mode().Type() }
func (i info) Info() (iofs.FileInfo, error) { return i, nil }

type ioFile struct {
	ctx  context.Context
	h    Handle
	info info

	mu  sync.Mutex
	off int64
}

func (f *ioFile) Stat() (iofs.FileInfo, error) { return f.info, nil }

func (f *ioFile) Close() error {
	err := f.h.Flush(f.ctx)
	if cerr := f.h.Close(); err == nil {
		err = cerr
	}
	return err
}

func (f *ioFile) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.h.ReadAt(f.ctx, p, f.off)
	f.off += int64(n)
	return n, err
}

func (f *ioFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := f.h.ReadAt(f.ctx, p[done:], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrNoProgress
		}
	}
	return done, nil
}

func (f *ioFile) Seek(off int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		off += f.off
	case io.SeekEnd:
		off += f.info.Size()
	}
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	f.off = off
	return off, nil
}

// ioDir pulls its entries from one List as they are asked for.
type ioDir struct {
	ctx  context.Context
	d    Dir
	info info
	next func() (Entry, error, bool)
	stop func()
}

func (d *ioDir) Stat() (iofs.FileInfo, error) { return d.info, nil }

func (d *ioDir) Read([]byte) (int, error) {
	return 0, &iofs.PathError{Op: "read", Path: d.info.name, Err: syscall.EISDIR}
}

func (d *ioDir) Close() error {
	if d.stop != nil {
		d.stop()
	}
	return nil
}

func (d *ioDir) ReadDir(n int) ([]iofs.DirEntry, error) {
	if d.next == nil {
		d.next, d.stop = iter.Pull2(d.d.List(d.ctx, ""))
	}
	var out []iofs.DirEntry
	for n <= 0 || len(out) < n {
		e, err, ok := d.next()
		if !ok {
			if n > 0 && len(out) == 0 {
				return nil, io.EOF
			}
			return out, nil
		}
		if err != nil {
			return out, &iofs.PathError{Op: "readdir", Path: d.info.name, Err: err}
		}
		out = append(out, info{e.Name, e.Node})
	}
	return out, nil
}
