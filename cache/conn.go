package cache

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"harvest/cache/http1"
)

// A clientConn is a connection of a client: one goroutine that reads a request,
// answers it, and reads the next.
type clientConn struct {
	c      *Cache
	door   *door
	conn   *net.TCPConn
	addr   netip.Addr
	r      *bufio.Reader
	q      http1.Request // used again for each
	out    []byte        // used again for each head
	bound  time.Time     // the read deadline that is set
	body   *http1.Body   // of the request that is answered, or nil
	wrote  int64         // bytes of the answer's body
	writes time.Time     // when the write deadline was set
}

func newClientConn(c *Cache, d *door, conn *net.TCPConn, addr netip.Addr) *clientConn {
	return &clientConn{c: c, door: d, conn: conn, addr: addr, r: bufio.NewReaderSize(conn, 4<<10)}
}

// serve answers requests until the client or the cache has enough.
func (cc *clientConn) serve() {
	for cc.await() {
		if err := cc.q.Read(cc.r, cc.c.conf.Load().limits.head); err != nil {
			cc.refuse(err)
			return
		}
		if !cc.one() {
			return
		}
	}
}

// await waits for a request. What has begun has to come soon.
func (cc *clientConn) await() bool {
	lim := &cc.c.conf.Load().limits
	now := time.Now()
	if cc.r.Buffered() == 0 {
		// Deadlines are costly to set: one within a second of the right one does.
		if d := now.Add(lim.idle); d.Sub(cc.bound) > min(time.Second, lim.idle/4) || cc.bound.After(d) {
			cc.bound = d
			cc.conn.SetReadDeadline(d)
		}
		if _, err := cc.r.Peek(1); err != nil {
			return false
		}
	}
	b, _ := cc.r.Peek(cc.r.Buffered())
	if !bytes.Contains(b, []byte("\r\n\r\n")) {
		cc.bound = time.Now().Add(lim.headTime)
		cc.conn.SetReadDeadline(cc.bound)
	}
	return true
}

// refuse tells a client what was wrong with its request.
func (cc *clientConn) refuse(err error) {
	var bad *http1.Error
	if !errors.As(err, &bad) {
		return // it went away, or was too slow
	}
	cc.c.count.malformed.Add(1)
	cc.write(&request{method: "GET", minor: 1, client: cc.addr, door: cc.door.kind, began: time.Now()}, failing(bad.Status, "refused", bad.Trouble), false)
	cc.linger()
}

// linger lets a client read the answer before the connection ends, though it is
// still sending.
func (cc *clientConn) linger() {
	cc.conn.CloseWrite()
	cc.conn.SetReadDeadline(time.Now().Add(time.Second))
	io.CopyN(io.Discard, cc.conn, 256<<10)
}

// one answers a request, and reports whether the connection goes on.
func (cc *clientConn) one() bool {
	if done, keep := cc.fast(); done {
		return keep
	}
	began := time.Now()
	keep := cc.keeps()
	q, err := cc.request()
	if err != nil {
		var bad *http1.Error
		if !errors.As(err, &bad) {
			bad = &http1.Error{Status: 400, Trouble: err.Error()}
		}
		cc.write(&request{method: cc.q.Method, url: cc.q.Target, minor: cc.q.Minor, client: cc.addr, door: cc.door.kind, began: began}, failing(bad.Status, "refused", bad.Trouble), false)
		cc.linger()
		return false
	}
	q.began = began
	if q.method == "CONNECT" {
		cc.tunnel(q)
		return false
	}
	if a := cc.local(q); a != nil {
		return cc.finish(q, a, keep)
	}
	ctx, stop := cc.watch(q)
	a := cc.c.answer(ctx, q)
	keep = cc.finish(q, a, keep)
	stop()
	return keep
}

// finish writes an answer and lets the rest of the request's body pass.
func (cc *clientConn) finish(q *request, a *answer, keep bool) bool {
	if cc.body != nil && a.status >= 400 && q.expect {
		keep = false // it may never send what it announced
	}
	if !cc.write(q, a, keep) {
		return false
	}
	if cc.body != nil && keep {
		if !cc.body.Drained(256 << 10) {
			cc.linger()
			return false
		}
	}
	return keep
}

// keeps reports whether the client wants the connection to go on.
func (cc *clientConn) keeps() bool {
	h := cc.q.Header
	if h.HasMember("Connection", "close") {
		return false
	}
	return cc.q.Minor > 0 || h.HasMember("Connection", "keep-alive") || h.HasMember("Proxy-Connection", "keep-alive")
}

// request makes the request of what was read.
func (cc *clientConn) request() (*request, error) {
	q := &request{method: strings.Clone(cc.q.Method), client: cc.addr, door: cc.door.kind, minor: cc.q.Minor}
	if err := cc.locate(q); err != nil {
		return nil, err
	}
	q.header = cc.q.Header.Forwarded()
	q.header.Del("Host")
	cc.body = nil
	if cc.q.Length != 0 {
		if most := cc.c.conf.Load().limits.body; cc.q.Length > most {
			return nil, &http1.Error{Status: 413, Trouble: "the body is too large"}
		}
		cc.body = http1.NewBody(cc.r, cc.q.Length, true)
		q.body, q.length = &requestBody{cc: cc, left: cc.c.conf.Load().limits.body}, cc.q.Length
		q.expect = cc.q.Header.HasMember("Expect", "100-continue")
	}
	if cc.q.Minor > 0 {
		q.inform = cc.inform
	}
	return q, nil
}

// locate finds the URL that is asked for.
func (cc *clientConn) locate(q *request) error {
	target := cc.q.Target
	if q.method == "CONNECT" {
		if cc.door.base != "" {
			return &http1.Error{Status: 405, Trouble: "this is no proxy"}
		}
		host, err := canonicalHost(target, "")
		if err != nil || !strings.Contains(target, ":") {
			return &http1.Error{Status: 400, Trouble: "CONNECT takes HOST:PORT"}
		}
		q.location, q.url = location{"", host, ""}, host
		return nil
	}
	if strings.Contains(target, "://") && target[0] != '/' {
		l, err := parseURL(target)
		if err != nil {
			return err
		}
		if cc.door.base != "" && !cc.door.host { // its own URLs, whatever they say
			target = l.target
		} else {
			q.setLocation(l)
			return cc.behind(q)
		}
	}
	star := target == "*" && q.method == "OPTIONS"
	switch {
	case target[0] != '/' && !star:
		return &http1.Error{Status: 400, Trouble: "the target is no URL"}
	case cc.door.base == "":
		return &http1.Error{Status: 400, Trouble: "this is a proxy: the target has to be a whole URL"}
	}
	base := cc.door.base
	if cc.door.host {
		host, err := canonicalHost(cc.q.Header.Text("Host"), "http")
		if err != nil {
			return &http1.Error{Status: 400, Trouble: "Host: " + err.Error()}
		}
		base = "http://" + host
	}
	if star {
		target = "/"
	}
	l, err := parseURL(base + target)
	if err != nil {
		return err
	}
	q.setLocation(l)
	if star {
		q.target = "*"
	}
	return cc.behind(q)
}

// behind says which server is behind an accelerator.
func (cc *clientConn) behind(q *request) error {
	if cc.door.base == "" {
		return nil
	}
	l, err := parseURL(cc.door.base)
	if err != nil {
		return err
	}
	if q.location.scheme != "http" && q.location.scheme != "https" {
		return &http1.Error{Status: 400, Trouble: "this is no proxy"}
	}
	host, port := l.hostPort()
	q.location.scheme = l.scheme
	q.dial = net.JoinHostPort(host, strconv.Itoa(int(port)))
	return nil
}

// A requestBody is the body of a client's request on its way to the server.
type requestBody struct {
	cc   *clientConn
	left int64
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.cc.conn.SetReadDeadline(time.Now().Add(b.cc.c.conf.Load().limits.silence))
	b.cc.bound = time.Time{}
	n, err := b.cc.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// Close ends a Read that waits. The connection is of no more use then.
func (b *requestBody) Close() error { return b.cc.conn.SetReadDeadline(time.Unix(1, 0)) }

// inform relays a head that comes before the answer.
func (cc *clientConn) inform(p *http1.Response) {
	n := http1.Response{Status: p.Status, Reason: p.Reason, Header: p.Header.Forwarded()}
	cc.conn.SetWriteDeadline(time.Now().Add(cc.c.conf.Load().limits.silence))
	cc.conn.Write(http1.AppendResponse(nil, &n))
}

// patience is how long a request is answered before anybody looks whether its
// client is still there.
const patience = 20 * time.Millisecond

// watch gives a context that ends when the client goes away while it is answered.
// stop ends the watching.
func (cc *clientConn) watch(q *request) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if q.body != nil { // whoever reads that sees it
		return ctx, cancel
	}
	done := make(chan struct{})
	t := time.AfterFunc(patience, func() { // stop waits for it
		defer close(done)
		cc.conn.SetReadDeadline(time.Time{})
		if _, err := cc.r.Peek(1); err != nil {
			cancel()
		}
	})
	return ctx, func() {
		if !t.Stop() {
			cc.conn.SetReadDeadline(time.Unix(1, 0))
			<-done
			cc.conn.SetReadDeadline(time.Time{})
			cc.bound = time.Time{}
		}
		cancel()
	}
}
