package store

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"

	"harvest/fs"
)

// A whole is since/0 of one moment, read at any offset: what frames an update
// stream, and the snapshot between.
type whole struct {
	sn         *Snapshot
	head, tail []byte
	size       int64 // of what is between
	body       func(p []byte, off int64) (int, error)
}

// whole returns since/0, or since/0.zst, or nil when that has to be made.
func (s *Store) whole(zstd bool) (w *whole, err error) {
	sn, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	defer func() {
		if w == nil {
			err = errors.Join(err, sn.Close())
		}
	}()
	head, tail, err := sn.framing()
	if err != nil {
		return nil, err
	}
	if !zstd {
		return &whole{sn, head, tail, sn.Size(), sn.ReadAt}, nil
	}
	if err := sn.settle(); err != nil || sn.Ready() < 0 {
		return nil, err
	}
	if len(head) > 0 {
		head = storedZstd(head)
	}
	return &whole{sn, head, storedZstd(tail), sn.Ready(), sn.ReadZstdAt}, nil
}

func (w *whole) ReadAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < int64(len(w.head)) {
		n = copy(p, w.head[off:])
		off += int64(n)
	}
	if at := off - int64(len(w.head)); n < len(p) && at >= 0 && at < w.size {
		m, err := w.body(p[n:min(int64(len(p)), int64(n)+w.size-at)], at)
		n += m
		off += int64(m)
		if err != nil && err != io.EOF {
			return n, err
		}
	}
	if at := off - int64(len(w.head)) - w.size; n < len(p) && at >= 0 {
		n += copy(p[n:], w.tail[min(at, int64(len(w.tail))):])
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Size is that of the head, what is between, and the tail.
func (w *whole) Size() int64 { return int64(len(w.head)) + w.size + int64(len(w.tail)) }

func (w *whole) WriteAt(context.Context, []byte, int64) (int, error) { return 0, iofs.ErrPermission }
func (w *whole) Flush(context.Context) error                         { return nil }
func (w *whole) Close() error                                        { return w.sn.Close() }

// wholeFile is since/0 or since/0.zst: made when it is opened, and read from what
// is there unless much has to be packed first.
type wholeFile struct {
	fs.File // that which is made
	s       *Store
	zstd    bool
}

func (f wholeFile) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	w, err := f.s.whole(f.zstd)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return f.File.Open(ctx, m)
	}
	return w, nil
}
