package cache

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"harvest/cache/http1"
)

// tunnel connects the client with a server, and lets pass what they say.
func (cc *clientConn) tunnel(q *request) {
	c := cc.c
	conf := c.conf.Load()
	host, port := q.hostPort()
	ctx, cancel := context.WithTimeout(c.life, conf.limits.connect)
	defer cancel()
	var conn net.Conn
	err := error(nil)
	if c.loops(q.header) {
		err = forbidden{"the request has been here before"}
	} else {
		conn, err = c.dialServer(ctx, host, port, conf.tunnels)
	}
	if err != nil {
		var no forbidden
		status, how := 502, "failed"
		if errors.As(err, &no) {
			status, how = 403, "refused"
		} else if ctx.Err() != nil {
			status = 504
		}
		cc.write(q, failing(status, how, err.Error()), false)
		return
	}
	defer conn.Close()
	c.count.tunnels.Add(1)
	cc.conn.SetDeadline(time.Time{})
	cc.out = http1.AppendResponse(cc.out[:0], &http1.Response{Status: 200, Reason: "Connection established", Header: http1.Header{{Name: "Via", Value: "1.1 " + c.via() + " (harvest)"}}})
	if _, err := cc.conn.Write(cc.out); err != nil {
		return
	}
	stop := context.AfterFunc(c.life, func() { conn.Close(); cc.conn.Close() })
	defer stop()
	bytes := cc.both(conn.(*net.TCPConn), conf.limits.silence)
	c.done(q, &answer{status: 200, outcome: outcome{how: "tunnel"}}, bytes, nil)
}

// both copies both ways until both ends are done, or nothing came for long.
func (cc *clientConn) both(server *net.TCPConn, silence time.Duration) (down int64) {
	var moved atomic.Int64
	moved.Store(time.Now().UnixNano())
	pass := func(to, from *net.TCPConn) (n int64) {
		n = passOn(to, from, &moved, 5*silence)
		return n
	}
	var up sync.WaitGroup
	up.Go(func() {
		if b, _ := cc.r.Peek(cc.r.Buffered()); len(b) > 0 { // sent with the head
			if _, err := server.Write(b); err != nil {
				server.Close()
				return
			}
		}
		pass(server, cc.conn)
	})
	down = pass(cc.conn, server)
	up.Wait()
	return down
}

// passOn copies one way. At the end the other side is told; at a failure, or when
// nothing has passed either way for long, both are closed.
func passOn(to, from *net.TCPConn, moved *atomic.Int64, most time.Duration) (n int64) {
	buf := make([]byte, 32<<10)
	for {
		from.SetReadDeadline(time.Unix(0, moved.Load()).Add(most))
		k, err := from.Read(buf)
		if k > 0 {
			moved.Store(time.Now().UnixNano())
			to.SetWriteDeadline(time.Now().Add(most))
			if _, werr := to.Write(buf[:k]); werr != nil {
				to.Close()
				from.Close()
				return n
			}
			n += int64(k)
		}
		switch {
		case err == io.EOF:
			to.CloseWrite()
			return n
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, moved.Load())) < most:
		case err != nil:
			to.Close()
			from.Close()
			return n
		}
	}
}
