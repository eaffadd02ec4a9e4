package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"
	"syscall"

	"harvest/fs"
)

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
