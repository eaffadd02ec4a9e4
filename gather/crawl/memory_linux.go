package crawl

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"go.etcd.io/bbolt"
)

// heapTable is the size in bytes up to which a table is of Go's heap.
const heapTable = 16 << 10

// newTable returns n zeros, in memory of their own when they are many.
func newTable[T uint16 | uint32 | DocID](n int) []T {
	size := n * int(unsafe.Sizeof(*new(T)))
	if size <= heapTable {
		return make([]T, n)
	}
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Errorf("a table of %d bytes: %w", size, err)) // as the heap does without memory
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// freeTable gives back what newTable returned.
func freeTable[T uint16 | uint32 | DocID](t []T) {
	size := len(t) * int(unsafe.Sizeof(*new(T)))
	if size > heapTable {
		syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&t[0])), uintptr((size+4095)&^4095), 0)
	}
}

// forget unmaps the pages of the database that this process has looked at, once
// they are many. They stay in the page cache and come back at a fault each.
// Without it the kernel, which maps sixteen pages around each one touched, soon
// has the whole file in the process.
func forget(db *bbolt.DB) error { return forgetPast(db, forgetAbove) }

// forgetPast is forget for who looks at much, here and there, and is quicker when
// more of it stays.
func forgetPast(db *bbolt.DB, most int64) error {
	if mapped() < most {
		return nil
	}
	return db.View(func(tx *bbolt.Tx) error {
		forgetIn(tx)
		return nil
	})
}

// forgetIn is forget in the middle of a transaction, which keeps the mapping
// where it is.
func forgetIn(tx *bbolt.Tx) {
	if mapped() >= forgetAbove {
		// Failure costs memory and nothing else.
		syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
	}
}

// forgetAbove is how many bytes of files the process may have mapped, its own
// program among them.
const forgetAbove = 64 << 20

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
