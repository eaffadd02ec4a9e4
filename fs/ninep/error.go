package ninep

import (
	"errors"
	iofs "io/fs"
	"strings"
	"syscall"

	"harvest/fs"
)

// What goes wrong with fids; v9fs knows the words.
const (
	errFid    = fidError("fid unknown or out of range")
	errFidUse = fidError("fid already in use")
	errBadUse = fidError("bad use of fid")
)

// A fidError is a client's mistake about its fids.
type fidError string

func (e fidError) Error() string { return string(e) }
func (e fidError) Unwrap() error { return syscall.EBADF }

// ename is the text of an Rerror: exactly the words by which v9fs and others
// know the errno of err's class.
func ename(err error) string {
	var f fidError
	if errors.As(err, &f) {
		return string(f)
	}
	e := fs.Errno(err)
	switch e {
	case syscall.EBADF:
		return string(errFid)
	case syscall.ESPIPE:
		return "bad offset in directory read"
	}
	s := e.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

// refusal is the text of an Rerror for what a file had to say about the text
// written to it. The message itself goes out, unless there is none beyond the
// class, or the matter is the system's and programs act on the class.
func refusal(err error) string {
	var f fidError
	switch e := fs.Errno(err); e {
	case syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG,
		syscall.EINTR, syscall.ETIMEDOUT, syscall.EAGAIN, syscall.ENOTDIR, syscall.EISDIR:
		return ename(err)
	default:
		if errors.As(err, &f) || bare(err) {
			return ename(err)
		}
	}
	return fs.Short(err)
}

// bare tells whether err says no more than its class.
func bare(err error) bool {
	switch err {
	case iofs.ErrExist, iofs.ErrNotExist, iofs.ErrInvalid, iofs.ErrPermission, iofs.ErrClosed:
		return true
	}
	_, ok := err.(syscall.Errno)
	return ok
}

// A remoteError is an Rerror, with the class that its text stands for.
type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() []error {
	if e.errno == syscall.EINVAL {
		return []error{e.errno, iofs.ErrInvalid}
	}
	return []error{e.errno}
}

// words are the words of other servers, and those of Go at the end of ours.
var words = []struct {
	text  string
	errno syscall.Errno
}{
	{"file does not exist", syscall.ENOENT},
	{"file not found", syscall.ENOENT},
	{"not found", syscall.ENOENT},
	{"does not exist", syscall.ENOENT},
	{"directory entry not found", syscall.ENOENT},
	{"file already exists", syscall.EEXIST},
	{"file or directory already exists", syscall.EEXIST},
	{"permission denied", syscall.EACCES},
	{"wstat prohibited", syscall.EPERM},
	{"wstat not allowed", syscall.EPERM},
	{"create prohibited", syscall.EACCES},
	{"read only file system", syscall.EROFS},
	{"directory not empty", syscall.ENOTEMPTY},
	{"not a directory", syscall.ENOTDIR},
	{"file is a directory", syscall.EISDIR},
	{"file in use", syscall.ETXTBSY},
	{"file busy", syscall.EBUSY},
	{"fid unknown or out of range", syscall.EBADF},
	{"unknown fid", syscall.EBADF},
	{"fid already in use", syscall.EBADF},
	{"bad use of fid", syscall.EBADF},
	{"bad offset in directory read", syscall.ESPIPE},
	{"i/o error", syscall.EIO},
	{"interrupted", syscall.EINTR},
	{"context canceled", syscall.EINTR},
	{"context deadline exceeded", syscall.ETIMEDOUT},
	{"invalid argument", syscall.EINVAL},
}

// fromText makes an error of an Rerror's text: of the errno whose words it
// is or, after a colon, ends with; and otherwise of EINVAL.
func fromText(text string) error {
	e := &remoteError{text, syscall.EINVAL}
	s := strings.ToLower(text)
	// "thing: trouble", with what an errno or Go says of the trouble.
	tail := s[strings.LastIndex(s, ": ")+1:]
	tail = strings.TrimSpace(tail)
	for _, k := range words {
		if s == k.text || tail == k.text {
			e.errno = k.errno
			return e
		}
	}
	for n := syscall.Errno(1); n < 134; n++ {
		if t := strings.ToLower(n.Error()); s == t || tail == t {
			e.errno = n
			return e
		}
	}
	return e
}
