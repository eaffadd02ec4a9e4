package fs_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"harvest/fs"
)

func TestErrno(t *testing.T) {
	_, notThere := os.Stat(filepath.Join(t.TempDir(), "absent"))
	tests := []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{iofs.ErrNotExist, syscall.ENOENT},
		{iofs.ErrExist, syscall.EEXIST},
		{iofs.ErrPermission, syscall.EACCES},
		{iofs.ErrInvalid, syscall.EINVAL},
		{iofs.ErrClosed, syscall.EBADF},
		{context.Canceled, syscall.EINTR},
		{context.DeadlineExceeded, syscall.ETIMEDOUT},
		{errors.ErrUnsupported, syscall.EOPNOTSUPP},
		{errors.New("no class"), syscall.EIO},
		{syscall.ENOTEMPTY, syscall.ENOTEMPTY},
		{fmt.Errorf("a: %w", syscall.EBUSY), syscall.EBUSY},
		{fmt.Errorf("a: %w", iofs.ErrNotExist), syscall.ENOENT},
		{notThere, syscall.ENOENT},
		{fmt.Errorf("%w, %w", errors.New("no class"), iofs.ErrExist), syscall.EEXIST},
	}
	for _, tt := range tests {
		if got := fs.Errno(tt.err); got != tt.want {
			t.Errorf("Errno(%v): got %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestClass(t *testing.T) {
	if err := fs.Class(nil, iofs.ErrInvalid); err != nil {
		t.Errorf("of nil: got %v", err)
	}
	plain := errors.New("bad line")
	err := fs.Class(plain, iofs.ErrInvalid)
	if err.Error() != "bad line" || !errors.Is(err, iofs.ErrInvalid) || !errors.Is(err, plain) || fs.Errno(err) != syscall.EINVAL {
		t.Errorf("of an error without: got %v of errno %v", err, fs.Errno(err))
	}
	for _, has := range []error{iofs.ErrNotExist, syscall.ENOSPC, syscall.EIO} {
		if err := fs.Class(has, iofs.ErrInvalid); err != has {
			t.Errorf("of %v: got %v, want it unchanged", has, err)
		}
	}
}

func TestShort(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, s := range []string{"", "short", "two\nlines", long, long[:fs.MaxError-1], "x" + long} {
		got := fs.Short(errors.New(s))
		if len(got) > fs.MaxError || !utf8.ValidString(got) || strings.Contains(got, "\n") {
			t.Errorf("Short(%.20q): got %q of %d bytes", s, got, len(got))
		}
		if len(s) <= fs.MaxError && got != strings.ReplaceAll(s, "\n", " ") {
			t.Errorf("Short(%q): got %q, want all of it", s, got)
		}
		if len(s) > fs.MaxError && (len(got) < fs.MaxError-4 || !strings.HasSuffix(got, "…")) {
			t.Errorf("Short(%.20q): got %q, want as much as fits and an ellipsis", s, got)
		}
	}
}
