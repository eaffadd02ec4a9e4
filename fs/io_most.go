package fs

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"syscall"
)

// A MostReader is a Dir that reads a file below it in one exchange: the file whole, or
// as much of it as is wanted. The directories of a remote are such.
type MostReader interface {
	ReadMost(ctx context.Context, path string, most int) ([]byte, error)
}

// ReadMost reads a file of an IO whole, or its first bytes. Of a remote it asks for
// that in one message round, while Open, Read and Close take one each, and one for
// each name on the way.
func (f ioFS) ReadMost(name string, most int) ([]byte, error) {
	b, err := f.readMost(name, most)
	if err != nil {
		return nil, &iofs.PathError{Op: "read", Path: name, Err: err}
	}
	return b, nil
}

func (f ioFS) readMost(name string, most int) ([]byte, error) {
	if !iofs.ValidPath(name) {
		return nil, iofs.ErrInvalid
	}
	if r, ok := f.root.(MostReader); ok {
		return r.ReadMost(f.ctx, name, most)
	}
	n, err := Walk(f.ctx, f.root, name)
	if err != nil {
		return nil, err
	}
	file, ok := n.(File)
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, syscall.EISDIR)
	}
	h, err := OpenNode(f.ctx, file, Read)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return io.ReadAll(io.LimitReader(&handleReader{f.ctx, h, 0}, int64(most)))
}

// handleReader reads a handle from its start.
type handleReader struct {
	ctx context.Context
	h   Handle
	off int64
}

func (r *handleReader) Read(p []byte) (int, error) {
	n, err := r.h.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	return n, err
}
