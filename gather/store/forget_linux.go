package store

import (
	"syscall"

	"go.etcd.io/bbolt"
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
