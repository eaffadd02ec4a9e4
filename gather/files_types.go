package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"sync"
	"syscall"

	"harvest/fs"
	"harvest/gather/essence"
	"harvest/gather/store"
)

// The directory types/ of a Gatherer, which docs/gather.4.md describes, and
// trace/:
//
//	types/kinds …   a file for each table of Essence: checked when written, the
//	                program's own text where nothing is set
//	types/err       what was refused last
//	types/list      the types, with how many objects are of each
//	types/try       takes a document, reads as its object and its trace
//	trace/3f/3fa9…  how an object came about, a line a decision

// typesNodes adds them, and what files_summarize.go has in types/.
func (g *Gatherer) typesNodes(nodes map[string]fs.Node) {
	err := fs.NewErr(g.id("types", "err"))
	dir := map[string]fs.Node{"err": err}
	g.broughtNodes(dir, err)
	dir["list"] = fs.Stream(g.id("types", "list"), 0, table(g.writeTypes))
	dir["try"] = newTryFile(g, err)
	for _, name := range essence.TableNames() {
		dir[name] = g.tableText(name, err)
	}
	nodes["types"] = fs.Static(g.id("types"), dir)
	nodes["trace"] = fs.Hex(g.id("trace"), 2, func(prefix string) fs.Dir {
		return fs.Func{
			Path: g.id("trace", prefix),
			Look: func(_ context.Context, name string) (fs.Node, error) { return g.lookTrace(prefix, name) },
			Each: func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
				return g.eachTrace(ctx, prefix, after)
			},
		}
	})
}

// tableText is the file of a table. One that is removed, or emptied, has the
// program's own text again.
func (g *Gatherer) tableText(name string, err *fs.Err) fs.Node {
	read := func() string { return g.types.get(name) }
	return fs.Config(g.id("types", name), err, read, func(ctx context.Context, text string) error {
		if name == "access" {
			if err := essence.CheckAccess(ctx, text); err != nil {
				return err
			}
		}
		return g.types.setFrom(name, text, fs.UserOf(ctx).Local)
	}).Removable()
}

// traceFile is the trace of an object, rendered once per open.
func (g *Gatherer) traceFile(e store.Entry) fs.Node {
	return fs.Text(g.id("trace", e.OID.String()), func() string {
		text, err := g.traceOf(e.URL)
		if err != nil {
			return "" // the object says what it is, and nothing is known of how
		}
		return text
	})
}

func (g *Gatherer) lookTrace(prefix, name string) (fs.Node, error) {
	oid, err := store.ParseOID(name)
	if err != nil || !strings.HasPrefix(name, prefix) {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	e, err := g.store.Stat(oid)
	if err != nil {
		return nil, err
	}
	return g.traceFile(e), nil
}

func (g *Gatherer) eachTrace(ctx context.Context, prefix, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		for e, err := range g.store.Scan(ctx, prefix, hexStart(after)) {
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			if name := e.OID.String(); name > after && !yield(fs.Entry{Name: name, Node: g.traceFile(e)}, nil) {
				return
			}
		}
	}
}

// hexStart is the hex digits that any name begins with, 32 at most: what follows
// the name follows them.
func hexStart(name string) string {
	n := 0
	for n < len(name) && n < 32 && strings.IndexByte("0123456789abcdef", name[n]) >= 0 {
		n++
	}
	return name[:n]
}

// A tryFile summarizes what is written to it. Each writer has a document of its
// own: who reads through the same open file reads the answer to that, all others
// the answer to the last.
type tryFile struct {
	path uint64
	g    *Gatherer
	err  *fs.Err

	mu   sync.Mutex
	last string
	vers uint32
}

func newTryFile(g *Gatherer, err *fs.Err) *tryFile {
	return &tryFile{path: g.id("types", "try"), g: g, err: err, last: tryUsage}
}

func (f *tryFile) Stat() fs.Stat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fs.Stat{Path: f.path, Vers: f.vers, Kind: fs.Control, Mode: 0o666, Size: int64(len(f.last))}
}

func (f *tryFile) Open(context.Context, fs.Mode) (fs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &tryHandle{f: f, answer: []byte(f.last)}, nil
}

// Set takes any new size or time: truncation means nothing here.
func (f *tryFile) Set(_ context.Context, ch fs.Change) error { return noMode(ch, 0o666) }

// A tryHandle collects a document until it is read, or closed.
type tryHandle struct {
	f *tryFile

	// mu is held while the document is summarized: reads wait for it.
	mu     sync.Mutex
	doc    []byte
	dirty  bool  // written, and not summarized yet
	base   int64 // where the answer begins for a reader who goes on where it wrote
	answer []byte
	failed error
}

func (h *tryHandle) WriteAt(_ context.Context, p []byte, _ int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		h.doc, h.failed = h.doc[:0], nil
	}
	if len(h.doc)+len(p) > maxTried {
		h.doc, h.dirty = nil, false
		err := fmt.Errorf("longer than %d bytes: %w", maxTried, syscall.EFBIG)
		h.f.err.Set("try", "", err)
		return 0, err
	}
	h.doc, h.dirty = append(h.doc, p...), true
	return len(p), nil
}

// make summarizes what was written. mu is held.
func (h *tryHandle) make(ctx context.Context) error {
	if !h.dirty {
		return h.failed
	}
	h.dirty = false
	text, err := h.f.g.try(ctx, h.doc)
	h.base = int64(len(h.doc))
	h.failed = fs.Class(err, iofs.ErrInvalid)
	h.f.err.Set("try", "", h.failed)
	if err != nil {
		return h.failed
	}
	h.answer, h.doc = []byte(text), nil
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.f.last, h.f.vers = text, h.f.vers+1
	return nil
}

// ReadAt reads the answer. A shell that writes and reads by one descriptor reads
// from where it wrote last; all others from the start.
func (h *tryHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if err := h.make(ctx); err != nil {
		return 0, err
	}
	if off < h.base {
		h.base = 0
	}
	if off -= h.base; off >= int64(len(h.answer)) {
		return 0, io.EOF
	}
	return copy(p, h.answer[off:]), nil
}

func (h *tryHandle) Flush(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.make(ctx)
	if errors.Is(err, context.Canceled) {
		h.failed = nil
	}
	return err
}

func (h *tryHandle) Close() error { return nil }

// Abort forgets the document of a writer who has vanished.
func (h *tryHandle) Abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doc, h.dirty = nil, false
}
