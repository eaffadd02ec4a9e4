package main

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"harvest/fs"
)

// A door is a way to the tree: 9P, or a mount.
type door interface {
	name() string
	open(ctx context.Context, path string) (io.ReadCloser, error)
	write(ctx context.Context, path, text string) error
	mkdir(ctx context.Context, path string) error
}

// mountDoor is a mounted tree: what cat and echo would do.
type mountDoor string

func (d mountDoor) name() string { return "mount" }

func (d mountDoor) open(_ context.Context, path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), path))
}

func (d mountDoor) write(_ context.Context, path, text string) error {
	f, err := os.OpenFile(filepath.Join(string(d), path), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (d mountDoor) mkdir(_ context.Context, path string) error {
	return os.Mkdir(filepath.Join(string(d), path), 0o755)
}

// nineDoor is a client of 9P.
type nineDoor struct{ root fs.Dir }

func (d nineDoor) name() string { return "9P" }

func (d nineDoor) open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := walkFile(ctx, d.root, path)
	if err != nil {
		return nil, err
	}
	h, err := fs.OpenNode(ctx, f, fs.Read)
	if err != nil {
		return nil, err
	}
	return &handleReader{ctx, h, 0}, nil
}

func (d nineDoor) write(ctx context.Context, path, text string) error {
	return writeFile(ctx, d.root, path, strings.NewReader(text), false)
}

func (d nineDoor) mkdir(ctx context.Context, path string) error {
	p, name, err := parent(ctx, d.root, path)
	if err != nil {
		return err
	}
	m, ok := p.(fs.Maker)
	if !ok {
		return iofs.ErrPermission
	}
	_, err = m.Mkdir(ctx, name, 0o755)
	return err
}

// A handleReader reads a handle from its beginning.
type handleReader struct {
	ctx context.Context // of the measurement that it is opened for
	fs.Handle
	off int64
}

func (r *handleReader) Read(p []byte) (int, error) {
	n, err := r.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	return n, err
}
