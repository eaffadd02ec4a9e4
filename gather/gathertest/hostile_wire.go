package gathertest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// wireTricks break the protocol.
func wireTricks() []Trick {
	wire := func(f func(w *bufio.Writer, gone func() bool)) func(*Hostile, http.ResponseWriter, *http.Request) {
		return func(h *Hostile, w http.ResponseWriter, r *http.Request) { h.wire(w, f) }
	}
	once := func(text string) func(*Hostile, http.ResponseWriter, *http.Request) {
		return wire(func(w *bufio.Writer, _ func() bool) { w.WriteString(text) })
	}
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	return []Trick{
		{"headers", "a header of lines without end", false, false, wire(func(w *bufio.Writer, gone func() bool) {
			w.WriteString(ok)
			for i := 0; !gone(); i++ {
				fmt.Fprintf(w, "X-Header-%d: %s\r\n", i, strings.Repeat("flood ", 20))
			}
		})},
		{"longheader", "a line of header without end", false, false, wire(func(w *bufio.Writer, gone func() bool) {
			w.WriteString(ok + "X-Header: ")
			for !gone() {
				w.WriteString(strings.Repeat("flood ", 1000))
			}
		})},
		{"cookies", "ten thousand cookies", false, false, cookies},
		{"slowheader", "a header at ten bytes a second", false, false, slowHeader},
		{"interim", "answers that are not the last, without end", false, false, wire(func(w *bufio.Writer, gone func() bool) {
			for !gone() {
				w.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
			}
		})},
		{"chunk", "a chunk whose size is no number", false, false, once(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nfrob\r\nworld\r\n0\r\n\r\n")},
		{"hugechunk", "a chunk that is said to have 2^63 bytes", false, false, once(ok + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nhello")},
		{"trailers", "trailers without end", false, false, wire(func(w *bufio.Writer, gone func() bool) {
			w.WriteString(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
			for i := 0; !gone(); i++ {
				fmt.Fprintf(w, "X-Trailer-%d: flood\r\n", i)
			}
		})},
		{"short", "less than its Content-Length", false, false, once(ok + "Content-Length: 100000\r\n\r\n<title>Short</title>")},
		{"long", "more than its Content-Length", false, false, once(ok + "Content-Length: 20\r\n\r\n<title>Long</title>.." + strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes", 100))},
		{"negative", "a Content-Length below zero", false, false, once(ok + "Content-Length: -1\r\n\r\n<title>Negative</title>")},
		{"twolengths", "two Content-Lengths", false, false, once(ok + "Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello")},
		{"reset", "a connection that breaks in the middle", false, false, reset},
		{"closed", "a connection that is closed without an answer", false, false, once("")},
		{"garbage", "no HTTP at all", false, false, once("\x00\x01\x02SSH-2.0-frob\r\n" + strings.Repeat("\xff", 10_000))},
		{"status", "a status that is no number", false, false, once("HTTP/1.1 abc OK\r\n\r\n")},
		{"status999", "a status that there is not", false, false, once("HTTP/1.1 999 Frob\r\nContent-Length: 0\r\n\r\n")},
		{"oldhttp", "HTTP/0.9", false, false, once("<title>Old</title><p>A page without a header.")},
	}
}

// wire takes the connection over. Gone tells that nobody reads it any more, or
// that a GB has been sent in vain.
func (h *Hostile) wire(w http.ResponseWriter, f func(w *bufio.Writer, gone func() bool)) {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with the connection: what waits to be written is let go
		select {
		case <-h.end:
			c.Close()
		case <-stop:
		}
	}()
	before := h.Sent()
	f(rw.Writer, func() bool { return rw.Flush() != nil || h.Sent()-before > 1<<30 })
	rw.Flush()
}

func cookies(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	for i := range 10_000 {
		http.SetCookie(w, &http.Cookie{Name: fmt.Sprintf("c%d", i), Value: strings.Repeat("v", 10), Path: "/"})
	}
	html(w, "Cookies", "Take one.")
}

func slowHeader(h *Hostile, w http.ResponseWriter, r *http.Request) {
	h.wire(w, func(rw *bufio.Writer, gone func() bool) {
		rw.WriteString("HTTP/1.1 200 OK\r\nX-Slow: ")
		for !gone() && h.pause(r, 1e8) {
			rw.WriteString("a")
		}
	})
}

// reset sends half of a page, and then a reset instead of an end.
func reset(h *Hostile, w http.ResponseWriter, _ *http.Request) {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	fmt.Fprintf(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n<title>Half</title>")
	rw.Flush()
	if t, ok := c.(*countingConn); ok {
		t.SetLinger(0)
	} else if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}
