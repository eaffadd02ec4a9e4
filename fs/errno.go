package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
	"unicode/utf8"
)

// MaxError is the length of an error text that 9P clients keep.
const MaxError = 127

// Errno gives the class of err as an errno; 0 for nil, EIO for no class.
func Errno(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e
	case errors.Is(err, iofs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, iofs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, iofs.ErrPermission):
		return syscall.EACCES
	case errors.Is(err, iofs.ErrInvalid):
		return syscall.EINVAL
	case errors.Is(err, iofs.ErrClosed):
		return syscall.EBADF
	case errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.Is(err, context.Canceled):
		return syscall.EINTR
	case errors.Is(err, errors.ErrUnsupported):
		return syscall.EOPNOTSUPP
	}
	return syscall.EIO
}

// classed is an error that gained a class.
type classed struct {
	error
	class error
}

func (c classed) Unwrap() []error { return []error{c.error, c.class} }

// Class gives err a class unless it has one: its text stays what it was.
func Class(err, class error) error {
	if err == nil || Errno(err) != syscall.EIO || errors.Is(err, syscall.EIO) {
		return err
	}
	return classed{err, class}
}

// Short is the text of err on one line, cut to MaxError bytes at a rune.
func Short(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(s) <= MaxError {
		return s
	}
	n := MaxError - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func notExist(name string) error { return fmt.Errorf("%s: %w", name, iofs.ErrNotExist) }
func denied(name string) error   { return fmt.Errorf("%s: %w", name, iofs.ErrPermission) }
