package fuse

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Available tells why this process cannot mount, if it cannot: there is no
// FUSE device, or it is not root and there is no fusermount3.
func Available() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.Close()
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("fusermount3"); err != nil {
			return err
		}
	}
	return nil
}

// Stale tells whether err, of a look at a mount point, says that the server
// that mounted it is dead. Mount replaces such a mount.
func Stale(err error) bool {
	return errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED)
}

// dead tells whether point is a mount whose server is gone. It asks statfs,
// which the kernel always passes on: it answers stat for a while from what it
// still knows of the root.
func dead(point string) bool {
	var st syscall.Statfs_t
	return Stale(syscall.Statfs(point, &st))
}

// Unmount takes away the tree that some process mounted on point. One in use
// is EBUSY; one whose server died goes in any case.
func Unmount(point string) error {
	point, err := filepath.Abs(point)
	if err != nil {
		return err
	}
	if dead(point) {
		return detach(point)
	}
	if !mounted(point) {
		return fmt.Errorf("%s: no tree is mounted there: %w", point, syscall.EINVAL)
	}
	if os.Geteuid() == 0 {
		if err := syscall.Unmount(point, 0); err != nil {
			return fmt.Errorf("%s: %w", point, err)
		}
		return nil
	}
	out, err := exec.Command("fusermount3", "-u", point).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: fusermount3: %w: %s", point, err, strings.TrimSpace(string(out)))
	}
	return nil
}
