package gatherd

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A sender writes to a connection, whose reader has to take something every
// while, and all of it at no less than minRate in the long run.
type sender struct {
	conn  net.Conn
	idle  time.Duration
	sent  int64
	began time.Time // of the stream that is being sent
	some  int64     // bytes of it
	err   error

	buf *[]byte // of a stream: what is small goes out together
}

// A piece of less than small is put together with others in a buffer of gather.
const (
	small  = 16 << 10
	gather = 64 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, gather); return &b }}

// Bounds of how slowly a reader may read: it holds a place that others want.
const (
	minRate = 1 << 10 // bytes a second
	chunk   = 1 << 20 // what is given the kernel between two looks at the clock
)

func newSender(c net.Conn, idle time.Duration) *sender {
	return &sender{conn: c, idle: idle, began: time.Now()}
}

// wait is called before a command is waited for.
func (s *sender) wait() {
	s.began, s.some = time.Now(), 0
	s.conn.SetDeadline(s.began.Add(s.idle)) // a connection that is closed tells at the read
}

// next is called before something is written.
func (s *sender) next() error {
	now := time.Now()
	if age := now.Sub(s.began); s.err == nil && age > s.idle && float64(s.some) < minRate*age.Seconds() {
		s.err = fmt.Errorf("the reader takes %d bytes in %v: %w", s.some, age.Round(time.Second), os.ErrDeadlineExceeded)
	}
	if s.err == nil {
		s.err = s.conn.SetWriteDeadline(now.Add(s.idle))
	}
	return s.err
}

func (s *sender) count(n int64, err error) {
	s.sent += n
	s.some += n
	if err != nil && s.err == nil {
		s.err = err
	}
}

// Write sends bytes, or while a stream is sent keeps a few for the next.
func (s *sender) Write(p []byte) (int, error) {
	if s.buf != nil && len(p) < small {
		if err := s.room(len(p)); err != nil {
			return 0, err
		}
		*s.buf = append(*s.buf, p...)
		return len(p), nil
	}
	if err := s.flush(); err != nil {
		return 0, err
	}
	return s.send(p)
}

func (s *sender) send(p []byte) (n int, err error) {
	for n < len(p) {
		if err := s.next(); err != nil {
			return n, err
		}
		m, err := s.conn.Write(p[n:min(len(p), n+chunk)])
		s.count(int64(m), err)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// room makes sure that n bytes more have a place in the buffer.
func (s *sender) room(n int) error {
	if s.err == nil && len(*s.buf)+n > gather {
		return s.flush()
	}
	return s.err
}

func (s *sender) flush() error {
	if s.buf == nil || len(*s.buf) == 0 || s.err != nil {
		return s.err
	}
	_, err := s.send(*s.buf)
	*s.buf = (*s.buf)[:0]
	return err
}

// WriteFile sends part of a file.
func (s *sender) WriteFile(f *os.File, off, n int64) error {
	if s.buf != nil && n < small {
		if err := s.room(int(n)); err != nil {
			return err
		}
		at := len(*s.buf)
		*s.buf = (*s.buf)[:at+int(n)]
		_, err := f.ReadAt((*s.buf)[at:], off)
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	for n > 0 {
		if err := s.next(); err != nil {
			return err
		}
		m, err := sendFile(s.conn, f, off, min(n, chunk))
		s.count(m, err)
		if err != nil {
			return err
		}
		off, n = off+m, n-m
	}
	return nil
}

// copyFile is sendFile where the kernel has none.
func copyFile(conn net.Conn, f *os.File, off, n int64) (int64, error) {
	m, err := io.Copy(conn, io.NewSectionReader(f, off, n))
	if err == nil && m < n {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// begin says that a stream is to come, whose pieces need not go out one by one.
func (s *sender) begin() {
	s.buf = buffers.Get().(*[]byte)
	if t, ok := s.conn.(*net.TCPConn); ok {
		t.SetNoDelay(false) // else it is only slower
	}
}

// end sends what of a stream is still here.
func (s *sender) end() error {
	err := s.flush()
	*s.buf = (*s.buf)[:0]
	buffers.Put(s.buf)
	s.buf = nil
	if t, ok := s.conn.(*net.TCPConn); ok {
		t.SetNoDelay(true)
	}
	return err
}

// linger ends the connection so that what was sent arrives. What the client has
// said and nobody has read would make the kernel drop it.
func (s *sender) linger() {
	c, ok := s.conn.(interface{ CloseWrite() error })
	if !ok || s.err != nil || c.CloseWrite() != nil {
		return
	}
	s.conn.SetReadDeadline(time.Now().Add(min(s.idle, 5*time.Second)))
	io.Copy(io.Discard, io.LimitReader(s.conn, 1<<20)) // whatever comes of it
}
