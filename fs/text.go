package fs

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	iofs "io/fs"
)

// Text is a file whose content is rendered once per open. Render must be
// cheap and must not block: Stat calls it as well, so that the length in a
// listing is true.
func Text(path uint64, render func() string) File { return textFile{path, render} }

type textFile struct {
	path   uint64
	render func() string
}

func (t textFile) Stat() Stat {
	s := t.render()
	return Stat{Path: t.path, Vers: crc32.ChecksumIEEE([]byte(s)), Kind: Made, Mode: 0o444, Size: int64(len(s))}
}

func (t textFile) Open(ctx context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	return Snapshot([]byte(t.render())), nil
}

// Snapshot is a Handle that reads b and takes no writes.
func Snapshot(b []byte) Handle { return snapshot{bytes.NewReader(b)} }

type snapshot struct{ r *bytes.Reader }

func (s snapshot) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	return s.r.ReadAt(p, off)
}
func (snapshot) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (s snapshot) Size() int64               { return s.r.Size() }
func (snapshot) Flush(context.Context) error { return nil }
func (snapshot) Close() error                { return nil }

// Bytes is a Plain file: st gives its size and version, load its content,
// once per open, when it is first read.
func Bytes(st Stat, load func(ctx context.Context) ([]byte, error)) File { return bytesFile{st, load} }

type bytesFile struct {
	st   Stat
	load func(ctx context.Context) ([]byte, error)
}

func (f bytesFile) Stat() Stat { return f.st }

func (f bytesFile) Open(ctx context.Context, m Mode) (Handle, error) {
	if m&Write != 0 {
		return nil, iofs.ErrPermission
	}
	return &loaded{load: f.load, sem: make(chan struct{}, 1)}, nil
}

// loaded reads what load gives; sem is held by whoever is loading, and the
// others wait for it no longer than their own call lasts.
type loaded struct {
	load func(ctx context.Context) ([]byte, error)
	sem  chan struct{}
	done bool
	b    []byte
}

func (l *loaded) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	select {
	case l.sem <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-l.sem }()
	if !l.done {
		b, err := l.load(ctx)
		if err != nil {
			return 0, err
		}
		l.b, l.done = b, true
	}
	if off >= int64(len(l.b)) {
		return 0, io.EOF
	}
	return copy(p, l.b[off:]), nil
}
func (l *loaded) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (l *loaded) Flush(context.Context) error { return nil }
func (l *loaded) Close() error                { return nil }
