//go:build !linux

package cache

import (
	"io"
	"net"
	"os"
	"time"
)

// sendFile sends n bytes of a file from an offset.
func sendFile(conn *net.TCPConn, f *os.File, off, n int64, silence time.Duration) (sent int64, err error) {
	r := io.NewSectionReader(f, off, n)
	for sent < n && err == nil {
		var k int64
		conn.SetWriteDeadline(time.Now().Add(silence))
		k, err = io.CopyN(struct{ io.Writer }{conn}, r, min(n-sent, 1<<20))
		sent += k
	}
	return sent, err
}
