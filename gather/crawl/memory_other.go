//go:build !linux

package crawl

import "go.etcd.io/bbolt"

func newTable[T uint16 | uint32 | DocID](n int) []T { return make([]T, n) }

func freeTable[T uint16 | uint32 | DocID]([]T) {}

func forget(*bbolt.DB) error { return nil }

func forgetPast(*bbolt.DB, int64) error { return nil }

func forgetIn(*bbolt.Tx) {}
