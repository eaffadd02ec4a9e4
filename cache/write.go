package cache

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"harvest/cache/http1"
)

// write writes an answer, closes it, and notes it. It reports whether the client
// has it whole and the connection goes on.
func (cc *clientConn) write(q *request, a *answer, keep bool) bool {
	defer a.Close()
	hasBody := a.body != nil && q.method != "HEAD" && a.status != 204 && a.status != 304 && a.status >= 200
	chunked := false
	p := http1.Response{Status: a.status, Reason: a.reason, Header: a.header}
	switch {
	case a.status == 204 || a.status == 304 || a.status < 200:
	case a.length >= 0 && (hasBody || q.method != "HEAD"):
		p.Header.Set("Content-Length", strconv.FormatInt(a.length, 10))
	case q.method == "HEAD":
		if a.v != nil {
			p.Header.Set("Content-Length", strconv.FormatInt(a.v.size, 10))
		}
	case q.minor > 0:
		chunked = true
		p.Header.Add("Transfer-Encoding", "chunked")
	default:
		keep = false
	}
	switch {
	case !keep:
		p.Header.Add("Connection", "close")
	case q.minor == 0:
		p.Header.Add("Connection", "keep-alive")
	}
	cc.out = http1.AppendResponse(cc.out[:0], &p)
	cc.wrote = 0
	err := cc.writeBody(a, hasBody, chunked)
	cc.c.done(q, a, cc.wrote, err)
	return err == nil && keep
}

// writeBody writes the head in cc.out and the body behind it.
func (cc *clientConn) writeBody(a *answer, hasBody, chunked bool) error {
	cc.writes = time.Time{}
	cc.mayWrite(time.Now())
	if m, ok := a.body.(*memBody); hasBody && ok {
		return cc.writeMemory(m)
	}
	if !hasBody {
		_, err := cc.conn.Write(cc.out)
		return err
	}
	if s, ok := a.body.(*storedBody); ok && a.length > 0 {
		if f, at, checked := s.file(); checked {
			if _, err := cc.conn.Write(cc.out); err != nil {
				return err
			}
			n, err := sendFile(cc.conn, f, at, s.end-s.off, cc.c.conf.Load().limits.silence)
			cc.wrote = n
			return err
		}
	}
	return cc.copyBody(a, chunked)
}

// writeMemory writes the head in cc.out and a body in memory.
func (cc *clientConn) writeMemory(m *memBody) (err error) {
	defer runtime.KeepAlive(m)
	cc.wrote = int64(len(m.left))
	if len(m.left) <= maxCopied {
		cc.out = append(cc.out, m.left...)
		_, err = cc.conn.Write(cc.out)
		return err
	}
	two := net.Buffers{cc.out, m.left}
	_, err = two.WriteTo(cc.conn)
	return err
}

// copyBody copies a body as it comes. The first of it goes out with the head, and
// the head does not wait for it.
func (cc *clientConn) copyBody(a *answer, chunked bool) error {
	buf := make([]byte, 32<<10)
	head := cc.out
	if b, ok := a.body.(*flightBody); !ok || !b.ready() {
		if _, err := cc.conn.Write(head); err != nil {
			return err
		}
		head = nil
	}
	for {
		n, err := a.body.Read(buf)
		if n > 0 {
			cc.mayWrite(time.Now())
			out := head
			head = nil
			if chunked {
				out = strconv.AppendInt(out, int64(n), 16)
				out = append(out, '\r', '\n')
			}
			var werr error
			if len(out) > 0 || chunked {
				out = append(out, buf[:n]...)
				if chunked {
					out = append(out, '\r', '\n')
				}
				_, werr = cc.conn.Write(out)
			} else {
				_, werr = cc.conn.Write(buf[:n])
			}
			if werr != nil {
				return werr
			}
			cc.wrote += int64(n)
		}
		switch {
		case err == io.EOF:
			if a.length >= 0 && cc.wrote < a.length {
				return io.ErrUnexpectedEOF
			}
			if chunked {
				head = append(head, "0\r\n\r\n"...)
			}
			if len(head) > 0 {
				_, err := cc.conn.Write(head)
				return err
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// ready reports whether bytes are there to be read, or the end.
func (b *flightBody) ready() bool {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	return b.f.ended || b.f.size > b.off
}

// local answers requests that are about the cache itself: those of Max-Forwards 0.
func (cc *clientConn) local(q *request) *answer {
	if q.method != "TRACE" && q.method != "OPTIONS" {
		return nil
	}
	v, ok := q.header.Get("Max-Forwards")
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return nil
	}
	if n > 0 {
		q.header.Set("Max-Forwards", strconv.FormatUint(n-1, 10))
		return nil
	}
	a := &answer{status: 200, reason: statusText(200), outcome: outcome{how: "local"}}
	a.header = http1.Header{{Name: "Date", Value: time.Now().UTC().Format(http.TimeFormat)}}
	if q.method == "OPTIONS" {
		a.header.Add("Allow", "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT")
		return a
	}
	var h http1.Header
	for _, f := range cc.q.Header { // but what is nobody else's (RFC 9110, 9.3.8)
		if !isSecretField(f.Name) {
			h = append(h, f)
		}
	}
	text := http1.AppendRequest(nil, &http1.Request{Method: q.method, Target: cc.q.Target, Header: h})
	a.header.Add("Content-Type", "message/http")
	a.length, a.body = int64(len(text)), &memBody{left: text}
	return a
}
