//go:build !linux

package crawl

import "go.etcd.io/bbolt"

func newTable[T uint64 | DocID](n int) []T { return make([]T, n) }

func freeTable[T uint64 | DocID]([]T) {}

func forget(*bbolt.DB) error { return nil }

func forgetPast(*bbolt.DB, int64) error { return nil }

func forgetIn(*bbolt.Tx) {}
