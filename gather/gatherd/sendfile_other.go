//go:build !linux

package gatherd

import (
	"net"
	"os"
)

func sendFile(conn net.Conn, f *os.File, off, n int64) (int64, error) {
	return copyFile(conn, f, off, n)
}
