package segment

import (
	"os"

	"golang.org/x/sys/unix"
)

// punch makes a hole in a file. Where the file system cannot, the bytes stay until
// the file goes.
func punch(f *os.File, off, n int64) {
	sc, err := f.SyscallConn()
	if err != nil {
		return
	}
	sc.Control(func(fd uintptr) {
		unix.Fallocate(int(fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}
