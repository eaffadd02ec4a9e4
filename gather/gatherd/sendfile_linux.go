package gatherd

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// sendFile has the kernel send part of a file, at an offset of our own: others
// read the same file at the same time.
func sendFile(conn net.Conn, f *os.File, off, n int64) (sent int64, err error) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return copyFile(conn, f, off, n)
	}
	in, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	out, err := t.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := in.Control(func(from uintptr) { sent, err = pump(out, int(from), off, n) })
	if err = errors.Join(cerr, err); sent == 0 && errors.Is(err, syscall.EINVAL) {
		return copyFile(conn, f, off, n) // of a file system without it
	}
	return sent, err
}

func pump(out syscall.RawConn, from int, off, n int64) (sent int64, err error) {
	werr := out.Write(func(to uintptr) bool {
		for sent < n {
			m, e := syscall.Sendfile(int(to), from, &off, int(n-sent))
			switch {
			case e == syscall.EAGAIN:
				return false
			case e == syscall.EINTR:
				continue
			case e != nil:
				err = os.NewSyscallError("sendfile", e)
			case m == 0:
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return true
			}
			sent += int64(m)
		}
		return true
	})
	return sent, errors.Join(werr, err)
}
