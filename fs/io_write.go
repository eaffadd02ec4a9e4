package fs

import (
	"io"
	iofs "io/fs"
	"os"
)

// OpenFile opens a file of an IO with flags as os.OpenFile has them, of which
// those for creating mean nothing: a tree's files are there or are made by their
// directory. One opened for writing is an io.Writer too.
func (f ioFS) OpenFile(name string, flag int, _ iofs.FileMode) (iofs.File, error) {
	n, err := f.node("open", name)
	if err != nil {
		return nil, err
	}
	file, ok := n.(File)
	if !ok {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: iofs.ErrInvalid}
	}
	h, err := OpenNode(f.ctx, file, modeOf(flag))
	if err != nil {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
	}
	return &ioFile{ctx: f.ctx, h: h, info: info{name, n}}, nil
}

func modeOf(flag int) (m Mode) {
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		m = Write
	case os.O_RDWR:
		m = Read | Write
	default:
		m = Read
	}
	if flag&os.O_TRUNC != 0 {
		m |= Trunc
	}
	if flag&os.O_APPEND != 0 {
		m |= Append
	}
	return m
}

// Write writes all of p where the last Read or Write ended.
func (f *ioFile) Write(p []byte) (done int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for done < len(p) {
		n, err := f.h.WriteAt(f.ctx, p[done:], f.off)
		done += n
		f.off += int64(n)
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrShortWrite
		}
	}
	return done, nil
}
