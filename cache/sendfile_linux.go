package cache

import (
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxSent is how much of a file is sent between two looks at the clock.
const maxSent = 4 << 20

// sendFile sends n bytes of a file from an offset, without a copy of them here. The
// file's own offset, which others use, is not moved.
func sendFile(conn *net.TCPConn, f *os.File, off, n int64, silence time.Duration) (sent int64, err error) {
	to, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	from, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var serr error
	err = from.Control(func(in uintptr) {
		for sent < n && serr == nil {
			conn.SetWriteDeadline(time.Now().Add(silence))
			werr := to.Write(func(out uintptr) bool {
				k, err := unix.Sendfile(int(out), int(in), &off, int(min(n-sent, maxSent)))
				switch {
				case err == unix.EAGAIN:
					return false
				case err == unix.EINTR:
					return true
				case err != nil:
					serr = os.NewSyscallError("sendfile", err)
				case k == 0:
					serr = os.ErrClosed // the file is shorter than it was
				}
				sent += int64(max(k, 0))
				return true
			})
			if serr == nil {
				serr = werr
			}
		}
	})
	if err == nil {
		err = serr
	}
	return sent, err
}
