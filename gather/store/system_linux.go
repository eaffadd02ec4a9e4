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
// the process, some 400 MB of a million objects: what Options.Mapped is against,
// counted with the program itself. The transaction keeps bbolt from
// moving the mapping meanwhile. Each page that comes back costs more than to ask
// how many there are, so as long as they are few they stay.
func (s *Store) forget(tx *bbolt.Tx) {
	if mapped() < s.opt.Mapped {
		return
	}
	// Failure costs memory and nothing else.
	syscall.Syscall(syscall.SYS_MADVISE, s.db.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}

// mapped returns how many bytes of files are mapped into the process, and are
// there; when that cannot be told, very many.
func mapped() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	var size, resident, shared int64
	if err == nil {
		_, err = fmt.Sscan(string(b), &size, &resident, &shared)
	}
	if err != nil {
		return 1 << 62
	}
	return shared * int64(os.Getpagesize())
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
