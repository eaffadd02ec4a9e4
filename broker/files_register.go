package broker

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"syscall"

	"harvest/fs"
)

// registerFile takes SOIF objects that describe services; what one open file is
// written counts when it is closed, and it reads as nothing. What is wrong with
// the objects so far is refused at the write, since few hear of it at the close.
type registerFile struct{ b *Broker }

func (f registerFile) Stat() fs.Stat {
	return fs.Stat{Path: f.b.id("register"), Kind: fs.Control, Mode: 0o666}
}

func (f registerFile) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return &registering{Handle: fs.Snapshot(nil), b: f.b}, nil
}

// Set takes the truncation that a shell's > is.
func (f registerFile) Set(context.Context, fs.Change) error { return nil }

// A registering is the open file.
type registering struct {
	fs.Handle
	b *Broker

	mu   sync.Mutex
	text []byte
}

func (h *registering) WriteAt(_ context.Context, p []byte, _ int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.text)+len(p) > registerMax {
		err := fmt.Errorf("more than %d bytes at a time: %w", registerMax, syscall.EFBIG)
		h.b.shown.complain("register", "", err)
		return 0, err
	}
	text := append(h.text, p...)
	if err := h.b.checkRegistrations(text); err != nil {
		h.b.shown.complain("register", "", err)
		return 0, err
	}
	h.text = text
	return len(p), nil
}

// Flush registers what was written; what is refused stands in err as well.
func (h *registering) Flush(ctx context.Context) error {
	h.mu.Lock()
	text := h.text
	h.text = nil
	h.mu.Unlock()
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	err := h.b.Register(ctx, bytes.NewReader(text))
	h.b.shown.complain("register", "", err)
	return err
}
