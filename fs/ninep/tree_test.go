package ninep

import (
	"context"
	"io"
	iofs "io/fs"
	"iter"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"harvest/fs"
)

// shelf is a directory in memory in which everything can be done.
type shelf struct {
	path uint64
	mode iofs.FileMode
	bus  *shelfState

	mu    sync.Mutex
	vers  uint32
	names map[string]fs.Node
}

// shelfState is what all of a tree share: what became of its handles.
type shelfState struct {
	mu            sync.Mutex
	last          uint64
	opens, closes int
	flushes       int
	aborts        int
	closedTwice   bool
	refuse        error         // of Flush and writes beginning with "bad"
	slow          chan struct{} // reads of slow files wait for it
	entered       chan struct{} // a read of one has begun
}

func (s *shelfState) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

func newShelf() *shelf {
	st := &shelfState{last: 1000, entered: make(chan struct{}, 10000)}
	return &shelf{path: fs.RootPath, mode: 0o755, bus: st, names: make(map[string]fs.Node)}
}

func (d *shelf) Stat() fs.Stat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fs.Stat{Path: d.path, Vers: d.vers, Mode: d.mode}
}

func (d *shelf) Lookup(_ context.Context, name string) (fs.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.names[name]; n != nil {
		return n, nil
	}
	return nil, iofs.ErrNotExist
}

func (d *shelf) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []fs.Entry
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		all = append(all, fs.Entry{Name: name, Node: d.names[name]})
	}
	return fs.Sorted(all, after)
}

func (d *shelf) put(name string, n fs.Node) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] != nil {
		return iofs.ErrExist
	}
	d.names[name] = n
	d.vers++
	return nil
}

func (d *shelf) Mkdir(_ context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	n := &shelf{path: d.bus.next(), mode: perm, bus: d.bus, names: make(map[string]fs.Node)}
	return n, d.put(name, n)
}

func (d *shelf) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	n := &book{path: d.bus.next(), mode: perm, bus: d.bus}
	if err := d.put(name, n); err != nil {
		return nil, nil, err
	}
	h, err := n.Open(ctx, m)
	return n, h, err
}

func (d *shelf) Remove(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return iofs.ErrNotExist
	}
	if s, ok := n.(*shelf); ok && len(s.names) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(d.names, name)
	d.vers++
	return nil
}

func (d *shelf) Rename(_ context.Context, old, new string, replace bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[old]
	if n == nil {
		return iofs.ErrNotExist
	}
	if d.names[new] != nil && !replace {
		return iofs.ErrExist
	}
	delete(d.names, old)
	d.names[new] = n
	d.vers++
	return nil
}

// book is a file in memory.
type book struct {
	path uint64
	bus  *shelfState
	kind fs.Kind
	most int // bytes that a read gives, if not 0

	mu    sync.Mutex
	mode  iofs.FileMode
	mtime time.Time
	vers  uint32
	b     []byte
}

func (f *book) Stat() fs.Stat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fs.Stat{Path: f.path, Vers: f.vers, Kind: f.kind, Mode: f.mode, Size: int64(len(f.b)), Mtime: f.mtime}
}

func (f *book) Set(_ context.Context, c fs.Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Size != nil {
		if *c.Size > 1<<24 {
			return syscall.EFBIG
		}
		f.b = append(f.b, make([]byte, max(0, int(*c.Size)-len(f.b)))...)[:*c.Size]
	}
	if c.Mode != nil {
		f.mode = *c.Mode
	}
	if c.Mtime != nil {
		f.mtime = *c.Mtime
	}
	f.vers++
	return nil
}

func (f *book) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	f.bus.mu.Lock()
	f.bus.opens++
	f.bus.mu.Unlock()
	if m&fs.Trunc != 0 {
		f.mu.Lock()
		f.b = nil
		f.vers++
		f.mu.Unlock()
	}
	return &bookmark{f: f, m: m}, nil
}

type bookmark struct {
	f      *book
	m      fs.Mode
	closed bool
}

func (h *bookmark) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if slow := h.f.bus.slow; slow != nil && h.f.kind == fs.Live {
		h.f.bus.entered <- struct{}{}
		select {
		case <-slow:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if off >= int64(len(h.f.b)) {
		return 0, io.EOF
	}
	if h.f.most > 0 {
		p = p[:min(len(p), h.f.most)]
	}
	return copy(p, h.f.b[off:]), nil
}

func (h *bookmark) WriteAt(_ context.Context, p []byte, off int64) (int, error) {
	if strings.HasPrefix(string(p), "bad") {
		return 0, h.f.bus.refuse
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.m&fs.Append != 0 {
		off = int64(len(h.f.b))
	}
	if off > 1<<24 {
		return 0, syscall.EFBIG
	}
	h.f.b = append(h.f.b, make([]byte, max(0, int(off)+len(p)-len(h.f.b)))...)
	h.f.vers++
	return copy(h.f.b[off:], p), nil
}

func (h *bookmark) Flush(context.Context) error {
	h.f.bus.mu.Lock()
	defer h.f.bus.mu.Unlock()
	h.f.bus.flushes++
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if strings.HasPrefix(string(h.f.b), "wrong") {
		return h.f.bus.refuse
	}
	return nil
}

func (h *bookmark) Abort() {
	h.f.bus.mu.Lock()
	defer h.f.bus.mu.Unlock()
	h.f.bus.aborts++
	if h.closed {
		h.f.bus.closedTwice = true
	}
}

func (h *bookmark) Close() error {
	h.f.bus.mu.Lock()
	defer h.f.bus.mu.Unlock()
	h.f.bus.closes++
	if h.closed {
		h.f.bus.closedTwice = true
	}
	h.closed = true
	return nil
}

func (d *shelf) file(name, text string) *book {
	f := &book{path: d.bus.next(), mode: 0o644, bus: d.bus, b: []byte(text), vers: 1}
	d.names[name] = f
	return f
}

func (d *shelf) dir(name string) *shelf {
	n := &shelf{path: d.bus.next(), mode: 0o755, bus: d.bus, names: make(map[string]fs.Node)}
	d.names[name] = n
	return n
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve gives a connection to a server of root for the user.
func serve(tb testing.TB, v *Server, root fs.Dir, u *fs.User) net.Conn {
	tb.Helper()
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { v.ServeConn(context.WithoutCancel(tb.Context()), a, root, u) })
	tb.Cleanup(func() { b.Close(); wg.Wait() })
	return b
}

func owner() *fs.User { return &fs.User{Name: "glenda", Owner: true} }

// dialed gives a client of a server of root.
func dialed(tb testing.TB, root fs.Dir, u *fs.User) *Client {
	tb.Helper()
	c, err := NewClient(tb.Context(), serve(tb, NewServer(discard(), Limits{}), root, u), "pipe", DialOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}
