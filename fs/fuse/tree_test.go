package fuse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/fs"
)

// many is a directory of n Plain files that exist only as numbers: 2 KB each,
// half of it words of a list, so that grep has something to do.
type many struct {
	key   string
	n     int
	size  int
	found func() // told of each look-up; may be nil
}

func (d many) Stat() fs.Stat { return fs.Stat{Path: fs.ID(d.key), Vers: 1, Mode: 0o555} }

func (d many) name(i int) string {
	b := append(make([]byte, 0, 32), d.key...)
	for div := 1000000; div > 0; div /= 10 {
		b = append(b, byte('0'+i/div%10))
	}
	return string(append(b, ".soif"...))
}

func (d many) file(i int) fs.Node { return d.named(i, d.name(i)) }

func (d many) named(i int, name string) fs.Node {
	return numbered{fs.Stat{Path: fs.ID(name), Vers: 1, Mode: 0o444, Size: int64(d.size), Mtime: time.Unix(1e9, 0)}, i}
}

func (d many) Lookup(_ context.Context, name string) (fs.Node, error) {
	if d.found != nil {
		d.found()
	}
	var i int
	rest, ok := strings.CutPrefix(name, d.key)
	if _, err := fmt.Sscanf(rest, "%07d.soif", &i); !ok || err != nil || i >= d.n || d.name(i) != name {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	return d.file(i), nil
}

func (d many) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		i := 0
		if after != "" {
			if rest, ok := strings.CutPrefix(after, d.key); ok {
				fmt.Sscanf(rest, "%07d", &i)
				i++
			}
		}
		for ; i < d.n; i++ {
			name := d.name(i)
			if !yield(fs.Entry{Name: name, Node: d.named(i, name)}, nil) {
				return
			}
		}
	}
}

type numbered struct {
	st fs.Stat
	i  int
}

func (f numbered) Stat() fs.Stat { return f.st }

func (f numbered) content() []byte {
	b := make([]byte, 0, f.st.Size+100)
	for k := f.i; len(b) < int(f.st.Size); k++ {
		b = fmt.Appendf(b, "Keyword-%d{8}:\tharvest gatherer broker %d\n", k%97, k*2654435761%1000003)
	}
	return b[:f.st.Size]
}

func (f numbered) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	return fs.Bytes(f.st, func(context.Context) ([]byte, error) { return f.content(), nil }).Open(ctx, m)
}

func (f numbered) Attributes(context.Context) ([]fs.Attribute, error) {
	return []fs.Attribute{{Name: "type", Value: "FILE"}, {Name: "title", Value: fmt.Sprintf("number %d", f.i)}}, nil
}

// folders is a tree of many spread over 256 folders, as objects/ is.
func folders(n, size int) fs.Dir {
	return fs.Func{
		Path: fs.ID("folders"),
		Vers: func() uint32 { return 1 },
		Look: func(_ context.Context, name string) (fs.Node, error) {
			var i int
			if _, err := fmt.Sscanf(name, "%02x", &i); err != nil || len(name) != 2 {
				return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
			}
			return many{key: name + "_", n: (n + 255) / 256, size: size}, nil
		},
		Each: func(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
			var es []fs.Entry
			for i := range 256 {
				name := fmt.Sprintf("%02x", i)
				es = append(es, fs.Entry{Name: name, Node: many{key: name + "_", n: (n + 255) / 256, size: size}})
			}
			return fs.Sorted(es, after)
		},
	}
}

// disk is a directory in memory that allows everything, whose files are Plain.
type disk struct {
	path  uint64
	owner string
	bus   *fs.Bus

	mu    sync.Mutex
	vers  uint32
	made  int
	mtime time.Time
	nodes map[string]fs.Node
	log   *record
}

// record counts what happened to the handles of a disk's files.
type record struct {
	mu                    sync.Mutex
	opened, closed, flush int
}

func newDisk(name string, bus *fs.Bus) *disk {
	return &disk{path: fs.ID("disk", name), bus: bus, vers: 1, nodes: make(map[string]fs.Node), log: new(record)}
}

func (d *disk) Stat() fs.Stat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fs.Stat{Path: d.path, Vers: d.vers, Mode: 0o755, Owner: d.owner, Mtime: d.mtime}
}

func (d *disk) Set(_ context.Context, c fs.Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Mtime != nil {
		d.mtime = *c.Mtime
	}
	return nil
}

func (d *disk) Lookup(_ context.Context, name string) (fs.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	if f, ok := n.(*diskFile); ok {
		return f.now(), nil
	}
	return n, nil
}

func (d *disk) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	d.mu.Lock()
	defer d.mu.Unlock()
	var es []fs.Entry
	for name, n := range maps.All(d.nodes) {
		if f, ok := n.(*diskFile); ok {
			n = f.now()
		}
		es = append(es, fs.Entry{Name: name, Node: n})
	}
	return fs.Sorted(es, after)
}

func (d *disk) changed(name string) {
	d.vers++
	d.bus.Entry(d.path, name)
}

func (d *disk) Mkdir(_ context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[name] != nil {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	d.made++
	n := newDisk(fmt.Sprint(d.path, d.made), d.bus)
	n.log, n.owner = d.log, d.owner
	d.nodes[name] = n
	d.changed(name)
	return n, nil
}

func (d *disk) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[name] != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, iofs.ErrExist)
	}
	d.made++
	f := &diskFile{d: d, path: fs.ID(fmt.Sprint(d.path, d.made, "file")), mode: perm, mtime: time.Now(), owner: d.owner}
	d.nodes[name] = f
	d.changed(name)
	h, err := f.Open(ctx, m)
	return f, h, err
}

func (d *disk) Remove(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[name]
	if n == nil {
		return fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	if sub, ok := n.(*disk); ok && len(sub.nodes) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(d.nodes, name)
	d.changed(name)
	return nil
}

func (d *disk) Rename(_ context.Context, old, new string, replace bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[old] == nil {
		return fmt.Errorf("%s: %w", old, iofs.ErrNotExist)
	}
	if d.nodes[new] != nil && !replace {
		return fmt.Errorf("%s: %w", new, iofs.ErrExist)
	}
	d.nodes[new] = d.nodes[old]
	delete(d.nodes, old)
	d.changed(old)
	d.changed(new)
	return nil
}

type diskFile struct {
	d     *disk
	path  uint64
	owner string

	mu    sync.Mutex
	vers  uint32
	mode  iofs.FileMode
	mtime time.Time
	data  []byte
}

// diskNow is a file as it was when it was looked up: Stat does not follow.
type diskNow struct {
	*diskFile
	st fs.Stat
}

func (f *diskFile) now() fs.Node { return diskNow{f, f.Stat()} }

func (n diskNow) Stat() fs.Stat { return n.st }

func (f *diskFile) Stat() fs.Stat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fs.Stat{Path: f.path, Vers: f.vers, Mode: f.mode, Size: int64(len(f.data)), Mtime: f.mtime, Owner: f.owner}
}

// put is a change that comes from elsewhere, told on the bus or not.
func (f *diskFile) put(text string, told bool) {
	f.mu.Lock()
	f.data, f.mtime = []byte(text), time.Now()
	f.vers++
	f.mu.Unlock()
	if told {
		f.d.bus.Changed(f.path)
	}
}

func (f *diskFile) Set(_ context.Context, c fs.Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Size != nil {
		f.data = append(f.data, make([]byte, max(0, int(*c.Size)-len(f.data)))...)[:*c.Size]
		f.vers++
	}
	if c.Mode != nil {
		f.mode = *c.Mode
	}
	if c.Mtime != nil {
		f.mtime = *c.Mtime
	}
	return nil
}

func (f *diskFile) Attributes(context.Context) ([]fs.Attribute, error) {
	return []fs.Attribute{{Name: "type", Value: "FILE"}, {Name: "empty", Value: ""}}, nil
}

func (f *diskFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m&fs.Trunc != 0 {
		f.data = nil
		f.vers++
	}
	f.d.log.mu.Lock()
	f.d.log.opened++
	f.d.log.mu.Unlock()
	return &diskHandle{f: f, m: m, snap: f.data}, nil
}

// A diskHandle opened for reading alone reads what was there at its opening.
type diskHandle struct {
	f    *diskFile
	m    fs.Mode
	snap []byte
	once sync.Once
}

func (h *diskHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	data := h.snap
	if h.m&fs.Write != 0 {
		data = h.f.data
	}
	if off >= int64(len(data)) {
		return 0, io.EOF
	}
	return copy(p, data[off:]), nil
}

func (h *diskHandle) WriteAt(_ context.Context, p []byte, off int64) (int, error) {
	f := h.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.m&fs.Append != 0 {
		off = int64(len(f.data))
	}
	data := bytes.Clone(f.data) // what others have open stays as it is
	data = append(data, make([]byte, max(0, int(off)+len(p)-len(data)))...)
	copy(data[off:], p)
	f.data, f.mtime = data, time.Now()
	f.vers++
	return len(p), nil
}

func (h *diskHandle) Flush(context.Context) error {
	h.f.d.log.mu.Lock()
	defer h.f.d.log.mu.Unlock()
	h.f.d.log.flush++
	return nil
}

func (h *diskHandle) Close() error {
	err := fmt.Errorf("closed twice: %w", iofs.ErrClosed)
	h.once.Do(func() { err = nil })
	h.f.d.log.mu.Lock()
	defer h.f.d.log.mu.Unlock()
	h.f.d.log.closed++
	return err
}
