package gather

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"harvest/fs"
	"harvest/fs/ndb"
)

// exportNodes adds the files of export.
func (g *Gatherer) exportNodes(nodes map[string]fs.Node, err *fs.Err, bus *fs.Bus) {
	nodes["manual"] = g.manualDir(err, bus)
	nodes["warc"] = warcDir{g}
}

// exportFigures are what status tells of export.
func (g *Gatherer) exportFigures() []ndb.Pair {
	all := g.stage.figures()
	if n := g.manual.n.Load(); n > 0 {
		all = append(all, ndb.Of("manual", n))
	}
	return append(all, g.export.figures()...)
}

// warcDir is the folder of WARC files, as it is on disk. Those that are full can
// be removed.
type warcDir struct{ g *Gatherer }

func (d warcDir) Stat() fs.Stat {
	st := fs.Stat{Path: d.g.id("warc"), Mode: 0o755}
	if info, err := os.Stat(d.g.archive.folder()); err == nil {
		st.Mtime = info.ModTime()
		st.Vers = uint32(st.Mtime.UnixNano() >> 10)
	}
	return st
}

// open says that a file is still being written.
const warcOpen = ".open"

func (d warcDir) file(name string) (fs.Node, error) {
	path := filepath.Join(d.g.archive.folder(), name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || name != filepath.Base(path) || name[0] == '.' {
		return nil, fmt.Errorf("warc/%.60s: %w", name, iofs.ErrNotExist)
	}
	st := fs.Stat{Path: d.g.id("warc", name), Mode: 0o444, Size: info.Size(), Mtime: info.ModTime()}
	if strings.HasSuffix(name, warcOpen) {
		st.Kind = fs.Growing
	}
	return warcFile{st, path}, nil
}

func (d warcDir) Lookup(_ context.Context, name string) (fs.Node, error) { return d.file(name) }

func (d warcDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	all, err := os.ReadDir(d.g.archive.folder())
	if errors.Is(err, iofs.ErrNotExist) {
		err = nil
	}
	return func(yield func(fs.Entry, error) bool) {
		if err != nil {
			yield(fs.Entry{}, err)
			return
		}
		for _, e := range all { // os.ReadDir sorts them
			if e.Name() <= after {
				continue
			}
			n, err := d.file(e.Name())
			if err != nil {
				continue // gone meanwhile, or none of ours
			}
			if !yield(fs.Entry{Name: e.Name(), Node: n}, nil) {
				return
			}
		}
	}
}

// Remove removes a file that is full.
func (d warcDir) Remove(ctx context.Context, name string) error {
	if err := fs.UserOf(ctx).May(d.Stat(), fs.MayWrite); err != nil {
		return err
	}
	if _, err := d.file(name); err != nil {
		return err
	}
	if strings.HasSuffix(name, warcOpen) {
		return fmt.Errorf("warc/%s: it is being written: %w", name, iofs.ErrPermission)
	}
	return os.Remove(filepath.Join(d.g.archive.folder(), name))
}

// A warcFile is one on disk.
type warcFile struct {
	st   fs.Stat
	path string
}

func (f warcFile) Stat() fs.Stat { return f.st }

func (f warcFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	o, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	return warcHandle{o}, nil
}

type warcHandle struct{ f *os.File }

func (h warcHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return h.f.ReadAt(p, off)
}

func (warcHandle) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (warcHandle) Flush(context.Context) error { return nil }
func (h warcHandle) Close() error              { return h.f.Close() }
