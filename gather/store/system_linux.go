package store

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// forget unmaps the pages of the index that this process has looked at. They
// stay in the page cache and come back at a fault each; without it the kernel,
// which maps sixteen pages around each one touched, soon has the whole file in
// the process, some 400 MB of a million objects. The transaction keeps bbolt from
// moving the mapping meanwhile.
func (s *Store) forget(tx *bbolt.Tx) {
	// Failure costs memory and nothing else.
	syscall.Syscall(syscall.SYS_MADVISE, s.db.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}

// system names this boot of the kernel and the mount that dir is on, "" if they
// cannot be told.
func system(dir string) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st)
	if err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d", strings.TrimSpace(string(boot)), st.Mnt_id)
}
