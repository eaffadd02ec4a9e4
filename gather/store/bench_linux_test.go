package store

import (
	"io/fs"
	"syscall"
)

func blocks(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
