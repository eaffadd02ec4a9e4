package fs

import (
	"strings"
	"testing"

	iofs "io/fs"
)

// TestErrShown: what was refused is shown so that it does nothing to a terminal,
// and not at any length.
func TestErrShown(t *testing.T) {
	e := NewErr(1)
	e.Set("config", "\x1b[2J\xff\u202eé\ttab", iofs.ErrInvalid)
	if got, want := e.text(), "config: invalid argument\n\t\uFFFD[2J\uFFFD\uFFFDé\ttab\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Set("config", strings.Repeat("x", 1<<20), iofs.ErrInvalid)
	if got := e.text(); len(got) > 2*maxShown {
		t.Errorf("got %d bytes of a long line, want about %d", len(got), maxShown)
	}
}
