package main

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"harvest/index"
	"harvest/index/bench"
)

// forgetPages has the kernel drop from memory what it holds of the files below
// some folders. Names and sizes of files stay known, and so do pages that some
// process has mapped or that are not written yet.
func forgetPages(folders ...string) error {
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			return forgetFile(path)
		})
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func forgetFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return &iofs.PathError{Op: "fadvise", Path: path, Err: err}
	}
	return nil
}

// askCold asks each query once, of an index that is opened for it while nothing
// of index and texts is in memory. Opening counts.
func (b *indexBench) askCold(ctx context.Context, kind benchKind, dir, path string, set index.Settings, queries []bench.Query, std std) (out []sample, err error) {
	shown := newProgress(std.err, kind.name+" cold", len(queries))
	defer shown.end()
	for n, q := range queries {
		s, ok, err := b.askOnce(ctx, kind, dir, path, set, q)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
		shown.show(n + 1)
	}
	return out, nil
}

func (b *indexBench) askOnce(ctx context.Context, kind benchKind, dir, path string, set index.Settings, q bench.Query) (s sample, ok bool, err error) {
	node, err := q.Node()
	if err != nil {
		return s, false, err
	}
	texts := dir
	if b.store != "" {
		texts = b.store
	}
	if err := forgetPages(path, texts); err != nil {
		return s, false, err
	}
	begin := time.Now()
	e, err := kind.open(path, set)
	if err != nil {
		return s, false, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	r, err := e.Search(ctx, node, kind.options())
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, iofs.ErrInvalid) {
		return s, false, nil
	}
	return sample{q, time.Since(begin), r.Total}, true, err
}
