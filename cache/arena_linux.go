package cache

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pages gets memory that the garbage collector knows nothing of.
func pages(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func giveBack(b []byte) error {
	if err := unix.Munmap(b); err != nil && err != syscall.EINVAL {
		return err
	}
	return nil
}
