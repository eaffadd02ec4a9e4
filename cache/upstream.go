package cache

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"harvest/cache/http1"
)

// An outgoing is a request to a server, or to another cache.
type outgoing struct {
	location
	method string
	header http1.Header // end to end, without Host
	body   io.Reader    // nil: none
	length int64        // of body, or http1.Chunked
	expect bool         // the client waits for 100 before it sends the body
	via    string       // HOST:PORT of the cache that is asked; "" is the server itself
	host   string       // for Host, where it is not location.host
	dial   string       // HOST:PORT of the server behind an accelerator; "" is location.host
	inform func(*http1.Response)
}

// An unreachable is a server that there was no connection to, or no answer from.
type unreachable struct {
	err     error
	timeout bool
}

func (u *unreachable) Error() string { return u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

func notReached(err error) error {
	var u *unreachable
	if err == nil || errors.As(err, &u) {
		return err
	}
	var t interface{ Timeout() bool }
	return &unreachable{err, errors.As(err, &t) && t.Timeout()}
}

// upstream asks servers, over connections that are kept.
type upstream struct {
	c *Cache

	opened, reused atomic.Int64

	mu     sync.Mutex
	pools  map[string]*pool
	failed map[string]failure // by what is dialled
	closed bool
}

// A failure is why a server could not be reached, and until when that is taken for
// granted.
type failure struct {
	err   error
	until time.Time
}

// A pool is the connections to one server.
type pool struct {
	idle []*serverConn // the longest unused first
	open int
	wait []chan *serverConn // nil is sent for a place that is free
}

type serverConn struct {
	net.Conn
	r       *bufio.Reader
	pool    string
	since   time.Time // it is idle
	kept    bool      // it had a request before
	idled   time.Duration
	dialled time.Duration // connecting took
	sofar   int64         // bytes of the answer's head that came
}

// poolOf says which connections a request can use.
func (o *outgoing) poolOf() string {
	switch {
	case o.via != "":
		return "proxy " + o.via
	case o.dial != "":
		return o.scheme + " " + o.dial + " " + o.location.host
	}
	return o.scheme + " " + o.location.host
}

// do sends a request and reads the head of its answer.
func (u *upstream) do(ctx context.Context, o *outgoing) (*exchange, error) {
	for again := false; ; again = true {
		s, err := u.get(ctx, o, again)
		if err != nil {
			return nil, notReached(err)
		}
		x, err := u.ask(ctx, s, o)
		if err == nil {
			return x, nil
		}
		u.drop(s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A kept connection may have been given up by the server just as the
		// request went out. One that was in use a moment ago was not.
		if again || !s.kept || s.idled < time.Second || s.sofar > 0 || o.body != nil || !isSafe(o.method) {
			return nil, notReached(err)
		}
	}
}

func isSafe(method string) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE"
}

// get finds a connection that is kept, or makes one.
func (u *upstream) get(ctx context.Context, o *outgoing, fresh bool) (*serverConn, error) {
	name := o.poolOf()
	limit := u.c.conf.Load().limits.perServer
	u.mu.Lock()
	if f, ok := u.failed[name]; ok {
		if time.Now().Before(f.until) {
			u.mu.Unlock()
			return nil, f.err
		}
		delete(u.failed, name)
	}
	p := u.pools[name]
	if p == nil {
		p = new(pool)
		u.pools[name] = p
	}
	for !fresh && o.body == nil && len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.idled = time.Since(s.since); s.idled < u.c.conf.Load().limits.idle && s.quiet() {
			u.mu.Unlock()
			s.kept, s.sofar = true, 0
			u.reused.Add(1)
			return s, nil
		}
		s.Close()
		p.open--
	}
	for p.open >= limit && len(p.idle) > 0 { // idle ones that may not be used make room
		p.idle[0].Close()
		p.idle = p.idle[1:]
		p.open--
	}
	if p.open < limit {
		p.open++
		u.mu.Unlock()
		return u.open(ctx, o, name)
	}
	wait := make(chan *serverConn, 1)
	p.wait = append(p.wait, wait)
	u.mu.Unlock()
	select {
	case s := <-wait:
		if s != nil && (fresh || o.body != nil || !s.quiet()) {
			s.Close()
			s = nil
		}
		if s != nil {
			s.kept, s.sofar, s.idled = true, 0, 0
			u.reused.Add(1)
			return s, nil
		}
		return u.open(ctx, o, name)
	case <-ctx.Done():
		u.mu.Lock()
		for i, w := range p.wait {
			if w == wait {
				p.wait = append(p.wait[:i:i], p.wait[i+1:]...)
				u.mu.Unlock()
				return nil, ctx.Err()
			}
		}
		u.mu.Unlock()
		if s := <-wait; s != nil { // it was given meanwhile
			u.put(s)
		} else {
			u.free(name)
		}
		return nil, ctx.Err()
	}
}

// quiet reports whether nothing came on an idle connection: neither its end nor an
// answer that nobody asked for.
func (s *serverConn) quiet() bool {
	if s.r.Buffered() > 0 {
		return false
	}
	sc, ok := s.Conn.(syscall.Conn)
	if !ok {
		return true // of TLS nothing can be seen from outside
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && quiet
}

// open makes a connection in a place that was counted.
func (u *upstream) open(ctx context.Context, o *outgoing, name string) (*serverConn, error) {
	conf := u.c.conf.Load()
	dctx, cancel := context.WithTimeout(ctx, conf.limits.connect)
	defer cancel()
	conn, err := u.dial(dctx, o)
	if err != nil {
		u.free(name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = notReached(fmt.Errorf("%s: %w", strings.TrimPrefix(name, "proxy "), err))
		var no forbidden
		if conf.negative > 0 && !errors.As(err, &no) && o.via == "" {
			u.fail(name, err, conf.negative)
		}
		return nil, err
	}
	u.opened.Add(1)
	return &serverConn{Conn: conn, r: bufio.NewReaderSize(conn, 4<<10), pool: name}, nil
}

// maxFailed is how many servers that cannot be reached are remembered.
const maxFailed = 4096

func (u *upstream) fail(name string, err error, d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.failed) >= maxFailed {
		clear(u.failed)
	}
	u.failed[name] = failure{err, time.Now().Add(d)}
}

// dial connects to the server of a request, or to the cache that is asked in its place.
func (u *upstream) dial(ctx context.Context, o *outgoing) (net.Conn, error) {
	if o.via != "" { // the owner named it
		return u.c.dialPlain(ctx, o.via)
	}
	host, port := o.hostPort()
	var conn net.Conn
	var err error
	if o.dial != "" { // so it did this
		conn, err = u.c.dialPlain(ctx, o.dial)
	} else {
		conn, err = u.c.dialServer(ctx, host, port, u.c.conf.Load().ports)
	}
	if err != nil || o.scheme != "https" {
		return conn, err
	}
	t := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: u.c.opt.Roots, NextProtos: []string{"http/1.1"}})
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}

// put takes a connection back that can have another request.
func (u *upstream) put(s *serverConn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.pools[s.pool]
	if u.closed {
		s.Close()
		p.open--
		return
	}
	s.since = time.Now()
	if len(p.wait) > 0 {
		p.wait[0] <- s
		p.wait = p.wait[1:]
		return
	}
	p.idle = append(p.idle, s)
}

// drop closes a connection that is in use.
func (u *upstream) drop(s *serverConn) {
	s.Close()
	u.free(s.pool)
}

// free gives the place of a connection back.
func (u *upstream) free(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.pools[name]
	if len(p.wait) > 0 {
		p.wait[0] <- nil
		p.wait = p.wait[1:]
		return
	}
	p.open--
}

// sweep closes connections that nobody used for long, and forgets what is over.
func (u *upstream) sweep(idle time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for name, p := range u.pools {
		for len(p.idle) > 0 && now.Sub(p.idle[0].since) > idle {
			p.idle[0].Close()
			p.idle = p.idle[1:]
			p.open--
		}
		if p.open == 0 && len(p.wait) == 0 {
			delete(u.pools, name)
		}
	}
	for name, f := range u.failed {
		if now.After(f.until) {
			delete(u.failed, name)
		}
	}
}

// close closes what is idle; what is in use is closed when it is given back.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.sweep(-1)
}

// ask sends a request on a connection and reads the head of the answer.
func (u *upstream) ask(ctx context.Context, s *serverConn, o *outgoing) (*exchange, error) {
	lim := &u.c.conf.Load().limits
	x := &exchange{u: u, s: s, silence: lim.silence, asked: time.Now()}
	x.stop = context.AfterFunc(ctx, func() { s.SetDeadline(time.Unix(1, 0)) })
	err := x.send(o, lim.answer)
	if err == nil {
		err = x.head(o, lim)
	}
	if err != nil {
		x.stop()
		x.stopBody(s)
		var bad *http1.Error
		if errors.As(x.bad, &bad) || errors.Is(x.bad, errTooLarge) { // it never got all of the request
			err = x.bad
		}
		return nil, err
	}
	return x, nil
}

// An exchange is the answer of a server, up to the end of its body.
type exchange struct {
	*http1.Response
	length int64 // of the body, or as BodyLength tells
	asked  time.Time
	came   time.Time

	u       *upstream
	s       *serverConn // nil once it was given back
	r       io.Reader
	stop    func() bool
	sent    chan error // told, and closed, when the body of the request is sent; nil: there is none
	body    io.Reader  // of the request
	bad     error      // what was wrong with it, once sent was told
	silence time.Duration
	bound   time.Time // of the read that is next
	close   func() error

	from      string // who gave it, as it is logged: a code and a neighbour
	proxyOnly bool   // it is not kept here
	read      int64
	note      func(n int64, err error) // told at the end; may be nil
}

// send writes the request; its body is sent beside the reading of the answer.
func (x *exchange) send(o *outgoing, answer time.Duration) error {
	q := http1.Request{Method: o.method, Target: o.target, Header: make(http1.Header, 0, len(o.header)+4)}
	if o.via != "" {
		q.Target = o.location.String()
	}
	host := o.host
	if host == "" {
		host = o.location.host
	}
	q.Header.Add("Host", host)
	q.Header = append(q.Header, o.header...)
	switch {
	case o.body != nil && o.length == http1.Chunked:
		q.Header.Add("Transfer-Encoding", "chunked")
	case o.body != nil || o.method == "POST" || o.method == "PUT" || o.method == "PATCH":
		q.Header.Add("Content-Length", fmt.Sprint(o.length))
	}
	if o.expect && o.body != nil {
		q.Header.Add("Expect", "100-continue")
	}
	x.s.SetDeadline(x.asked.Add(answer))
	if _, err := x.s.Write(http1.AppendRequest(make([]byte, 0, 512), &q)); err != nil {
		return err
	}
	if o.body != nil && !o.expect {
		x.sendBody(o)
	}
	return nil
}

// sendBody sends the body of a request while the answer is awaited: a server may
// answer before it has all of it.
func (x *exchange) sendBody(o *outgoing) {
	x.sent, x.body = make(chan error, 1), o.body
	s, body := x.s, &sentBody{Reader: o.body}
	go func() { // finish and stopBody wait for it
		w := io.Writer(s)
		var end io.Closer
		if o.length == http1.Chunked {
			c := http1.ChunkWriter{W: s}
			w, end = c, c
		}
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, 32<<10))
		switch {
		case body.err != nil: // there is nothing to wait for: the server will not have it whole
			x.bad = body.err
			s.SetDeadline(time.Unix(1, 0))
		case err == nil && end != nil:
			err = end.Close()
		}
		x.sent <- err
		close(x.sent)
	}()
}

// A sentBody tells the trouble of reading a body from that of sending it.
type sentBody struct {
	io.Reader
	err error
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// expectPatience is how long a body waits for the server's 100.
const expectPatience = time.Second

// head reads the head of the answer, and passes on those that come before it.
func (x *exchange) head(o *outgoing, lim *limits) error {
	if o.expect && o.body != nil {
		x.s.SetReadDeadline(time.Now().Add(expectPatience))
		_, err := x.s.r.Peek(1)
		x.s.SetReadDeadline(time.Now().Add(lim.answer))
		var t net.Error
		if errors.As(err, &t) && t.Timeout() {
			o.informed(&http1.Response{Status: 100, Reason: "Continue"})
			x.sendBody(o)
		}
	}
	for n := 0; ; n++ {
		p, err := http1.ReadResponse(x.s.r, http1.Limits{Line: 64 << 10, Head: 256 << 10, Fields: 1024})
		if x.s.r.Buffered() > 0 || err == nil {
			x.s.sofar = 1
		}
		switch {
		case err == io.EOF:
			return errors.New("the server closed the connection without an answer")
		case err != nil:
			return err
		case p.Status == 101 || n > maxInformed:
			return fmt.Errorf("the server answers %d", p.Status)
		case p.Status < 200:
			if p.Status == 100 && o.expect && o.body != nil && x.sent == nil {
				o.informed(p)
				x.sendBody(o)
			} else if p.Status != 100 {
				o.informed(p)
			}
			continue
		}
		if x.length, err = p.BodyLength(o.method); err != nil {
			return err
		}
		x.Response, x.came, x.r = p, time.Now(), http1.NewBody(x.s.r, x.length, false)
		x.bound = x.came
		return nil
	}
}

// maxInformed is how many heads may come before the one that counts.
const maxInformed = 16

func (o *outgoing) informed(p *http1.Response) {
	if o.inform != nil {
		o.inform(p)
	}
}

// Read reads the body. At its end the connection is given back.
func (x *exchange) Read(p []byte) (int, error) {
	if x.s == nil {
		if x.r != nil {
			return x.r.Read(p)
		}
		return 0, io.EOF
	}
	if now := time.Now(); x.bound.Sub(now) < x.silence/2 {
		x.bound = now.Add(x.silence)
		x.s.SetReadDeadline(x.bound)
	}
	n, err := x.r.Read(p)
	x.read += int64(n)
	switch {
	case err == io.EOF:
		x.noted(nil)
		x.finish()
	case err != nil:
		x.noted(err)
	}
	return n, err
}

// noted tells, once, how it ended.
func (x *exchange) noted(err error) {
	if x.note != nil {
		x.note(x.read, err)
		x.note = nil
	}
}

// finish gives the connection back, to be used again if it can be.
func (x *exchange) finish() {
	s := x.s
	x.s, x.r = nil, nil
	keep := x.stop() && x.length != http1.UntilClose && x.Minor > 0 && !x.Header.HasMember("Connection", "close") && s.r.Buffered() == 0
	if x.sent != nil {
		select {
		case err := <-x.sent:
			keep = keep && err == nil
		default: // it answered, and does not want the rest
			keep = false
			x.stopBody(s)
		}
	}
	if keep {
		x.u.put(s)
	} else {
		x.u.drop(s)
	}
}

// Close gives up what was not read.
func (x *exchange) Close() error {
	if x.close != nil {
		return x.close()
	}
	if x.s == nil {
		return nil
	}
	if b, ok := x.r.(*http1.Body); ok && x.length == 0 && b.Drained(0) {
		x.noted(nil)
		x.finish()
		return nil
	}
	s := x.s
	x.s, x.r = nil, nil
	x.noted(nil)
	x.stop()
	x.stopBody(s)
	x.u.drop(s)
	return nil
}

// stopBody ends the sending of a request's body, wherever it waits.
func (x *exchange) stopBody(s *serverConn) {
	if x.sent == nil {
		return
	}
	s.SetDeadline(time.Unix(1, 0))
	if c, ok := x.body.(io.Closer); ok {
		c.Close()
	}
	<-x.sent
}
