package fstest

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"harvest/fs"
)

// Disk is a folder of the kernel's file system, a mounted tree above all, as
// a Dir: what the suite and the scripts do to it goes through system calls.
// Path is the inode number; files are Live if named *.live or *.wait, else
// Made, whatever the tree behind the mount calls them. It acts as the
// process's own user.
func Disk(path string) fs.Dir { return diskDir{diskNode{path}} }

type diskNode struct{ path string }

func (n diskNode) Stat() fs.Stat {
	var st unix.Stat_t
	if err := unix.Lstat(n.path, &st); err != nil {
		return fs.Stat{}
	}
	out := stat(&st)
	if strings.HasSuffix(n.path, ".live") || strings.HasSuffix(n.path, ".wait") {
		out.Kind = fs.Live
	}
	return out
}

func stat(st *unix.Stat_t) fs.Stat {
	out := fs.Stat{Path: st.Ino, Kind: fs.Made, Mode: iofs.FileMode(st.Mode & 0o777), Size: st.Size, Mtime: time.Unix(st.Mtim.Unix())}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		out.Kind, out.Size = fs.Plain, 0
	}
	return out
}

func (n diskNode) Set(_ context.Context, c fs.Change) error {
	if c.Size != nil {
		if err := os.Truncate(n.path, *c.Size); err != nil {
			return err
		}
	}
	if c.Mode != nil {
		if err := os.Chmod(n.path, *c.Mode); err != nil {
			return err
		}
	}
	if c.Mtime != nil {
		return os.Chtimes(n.path, time.Time{}, *c.Mtime)
	}
	return nil
}

type diskDir struct{ diskNode }

// Stat has the names' checksum for a version, since times are too coarse.
func (d diskDir) Stat() fs.Stat {
	st := d.diskNode.Stat()
	if f, err := os.Open(d.path); err == nil {
		list, _ := f.Readdirnames(-1)
		f.Close()
		st.Vers = crc32.ChecksumIEEE([]byte(strings.Join(list, "\x00")))
	}
	return st
}

func (d diskDir) at(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", &iofs.PathError{Op: "look-up", Path: name, Err: iofs.ErrInvalid}
	}
	return filepath.Join(d.path, name), nil
}

func (d diskDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	p, err := d.at(name)
	if err != nil {
		return nil, err
	}
	i, err := os.Lstat(p)
	if err != nil {
		return nil, err
	}
	return nodeOf(p, i.IsDir()), nil
}

func nodeOf(p string, dir bool) fs.Node {
	if dir {
		return diskDir{diskNode{p}}
	}
	return diskFile{diskNode{p}}
}

// List keeps the kernel's order, which is what is to be tested.
func (d diskDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		f, err := os.Open(d.path)
		if err != nil {
			yield(fs.Entry{}, err)
			return
		}
		defer f.Close()
		for {
			list, err := f.ReadDir(1000)
			for _, e := range list {
				if e.Name() > after && !yield(fs.Entry{Name: e.Name(), Node: nodeOf(filepath.Join(d.path, e.Name()), e.IsDir())}, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
		}
	}
}

func (d diskDir) Mkdir(_ context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	p, err := d.at(name)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(p, perm); err != nil {
		return nil, err
	}
	return diskDir{diskNode{p}}, nil
}

func (d diskDir) Create(_ context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	p, err := d.at(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(p, flags(m)|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, nil, err
	}
	return diskFile{diskNode{p}}, diskHandle{f: f}, nil
}

func (d diskDir) Remove(_ context.Context, name string) error {
	p, err := d.at(name)
	if err != nil {
		return err
	}
	return os.Remove(p)
}

func (d diskDir) Rename(_ context.Context, old, new string, replace bool) error {
	from, err := d.at(old)
	to, err2 := d.at(new)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if replace {
		return os.Rename(from, to)
	}
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

type diskFile struct{ diskNode }

// flags are those of open(2).
func flags(m fs.Mode) int {
	f := os.O_RDONLY
	switch {
	case m&fs.Read != 0 && m&fs.Write != 0:
		f = os.O_RDWR
	case m&fs.Write != 0:
		f = os.O_WRONLY
	}
	if m&fs.Trunc != 0 {
		f |= os.O_TRUNC
	}
	if m&fs.Append != 0 {
		f |= os.O_APPEND
	}
	return f
}

// Open asks for what the mode bits give even as root, who is let by.
func (f diskFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 && f.Stat().Mode&0o222 == 0 {
		return nil, &iofs.PathError{Op: "open", Path: f.path, Err: iofs.ErrPermission}
	}
	file, err := os.OpenFile(f.path, flags(m), 0)
	if err != nil {
		return nil, err
	}
	return diskHandle{file, f.Stat().Kind == fs.Live}, nil
}

type diskHandle struct {
	f    *os.File
	live bool
}

func (h diskHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off > math.MaxInt64-int64(len(p)) {
		return 0, io.EOF // the kernel would say EINVAL
	}
	if h.live {
		return h.wait(ctx, p)
	}
	return pread(int(h.f.Fd()), p, off)
}

func pread(fd int, p []byte, off int64) (int, error) {
	n, err := unix.Pread(fd, p, off)
	for err == unix.EINTR {
		n, err = unix.Pread(fd, p, off)
	}
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// wait reads a live file. A read that the kernel holds cannot be called back
// from here: if ctx ends first the goroutine stays until the mount is gone,
// with a descriptor of its own.
func (h diskHandle) wait(ctx context.Context, p []byte) (int, error) {
	fd, err := unix.Dup(int(h.f.Fd()))
	if err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	buf := make([]byte, len(p))
	done := make(chan result, 1)
	go func() {
		defer unix.Close(fd)
		n, err := pread(fd, buf, 0)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(p, buf[:r.n]), r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (h diskHandle) WriteAt(_ context.Context, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(int(h.f.Fd()), p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Flush closes a duplicate, which is when the kernel asks the server.
func (h diskHandle) Flush(context.Context) error {
	fd, err := unix.Dup(int(h.f.Fd()))
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func (h diskHandle) Close() error {
	err := h.f.Close()
	if slices.Contains([]error{syscall.EINVAL, syscall.EACCES}, errors.Unwrap(err)) {
		return nil // what Flush told already
	}
	return err
}
