package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// maxAnswer bounds what a server says to one command, but for data.
const maxAnswer = 64 << 10

// A session is a conversation with a server of ftp, gopher or news: one or more
// connections of which a request has the use, and which end with it.
type session struct {
	dev    *dialer
	scheme string
	wait   time.Duration // for the server's next word

	// mu guards what follows.
	mu    sync.Mutex
	ctx   context.Context // of the request that has it; never nil
	conns []*line
}

// A line is one connection of a session.
type line struct {
	net.Conn
	s    *session
	left int64 // bytes that may still come
	what string
}

var errEnough = errors.New("the server says more than it may")

// use gives the session to a request; the function returned takes it back.
func (s *session) use(ctx context.Context) (back func() bool) {
	s.mu.Lock()
	s.ctx = ctx
	for _, l := range s.conns {
		l.Conn.SetDeadline(time.Time{})
	}
	s.mu.Unlock()
	return context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ctx != ctx { // somebody else's by now
			return
		}
		for _, l := range s.conns {
			l.Conn.SetDeadline(time.Unix(1, 0))
		}
	})
}

// over tells why the request that has the session has ended, nil if it has not.
func (s *session) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return context.Cause(s.ctx)
}

// dial adds a connection to the session. The first is counted, and kept; the
// others are for data and come and go.
func (s *session) dial(addr string, conf *tls.Config) (*line, error) {
	s.mu.Lock()
	ctx, first := s.ctx, len(s.conns) == 0
	s.mu.Unlock()
	var c net.Conn
	var err error
	if first {
		c, err = s.dev.dial(ctx, s.scheme, addr)
	} else {
		ctx, cancel := context.WithTimeout(ctx, s.dev.timeout)
		defer cancel()
		c, err = s.dev.connect(ctx, addr)
	}
	if err != nil {
		return nil, err
	}
	if conf != nil {
		c = tls.Client(c, conf)
	}
	l := &line{Conn: c, s: s, left: maxAnswer, what: "answer"}
	s.mu.Lock()
	s.conns = append(s.conns, l)
	s.mu.Unlock()
	return l, nil
}

// allow begins a command, after which the server may say so much.
func (l *line) allow(n int64, what string) { l.left, l.what = n, what }

func (l *line) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%s: %w", l.what, errEnough)
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	if err := l.deadline(l.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := l.Conn.Read(p)
	l.left -= int64(n)
	return n, l.cause(err)
}

func (l *line) Write(p []byte) (int, error) {
	if err := l.deadline(l.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := l.Conn.Write(p)
	return n, l.cause(err)
}

// deadline gives the server its time. The order matters: a request that ends
// after the look at its context sets a deadline that has passed after this one.
func (l *line) deadline(set func(time.Time) error) error {
	err := set(time.Now().Add(l.s.wait))
	if over := l.s.over(); over != nil {
		return over
	}
	return err
}

// cause tells a request's own end from the network's trouble.
func (l *line) cause(err error) error {
	if err == nil {
		return nil
	}
	if over := l.s.over(); over != nil {
		return over
	}
	return err
}

func (l *line) Close() error {
	l.s.mu.Lock()
	for i, c := range l.s.conns {
		if c == l {
			l.s.conns = append(l.s.conns[:i], l.s.conns[i+1:]...)
			break
		}
	}
	l.s.mu.Unlock()
	return l.Conn.Close()
}

// end closes all connections of the session.
func (s *session) end() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, l := range conns {
		l.Conn.Close()
	}
}

// passing reports whether a refusal, of which there is only the text, is one for
// now.
func passing(text string) bool {
	text = strings.ToLower(text)
	for _, w := range []string{"busy", "later", "too many", "overload", "temporar", "maximum"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
