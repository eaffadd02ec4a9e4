package gathertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hostile is a web of servers that mean harm, one for each trick that a whole
// server can play and one for all that need only a page. Every trick has a path
// of its own, so that whoever tells of a URL tells which it was.
type Hostile struct {
	Tricks []Trick

	servers []*http.Server
	done    chan error
	home    string
	origins map[string]string // of tricks that have one, by name
	end     chan struct{}     // closed by Close: what hangs is let go
	sent    atomic.Int64

	mu       sync.Mutex
	requests map[string]int // by trick
}

// A Trick is one way to do harm.
type Trick struct {
	Name  string
	About string
	// Server is true when it needs a server of its own.
	Server bool
	// Endless tricks make up new URLs for as long as someone asks.
	Endless bool
	serve   func(h *Hostile, w http.ResponseWriter, r *http.Request)
}

// NewHostile has all tricks, or those that are named.
func NewHostile(names ...string) *Hostile {
	h := &Hostile{origins: make(map[string]string), end: make(chan struct{}), requests: make(map[string]int)}
	for _, t := range slices.Concat(endlessTricks(), redirectTricks(), bodyTricks(), markupTricks(), wireTricks(), serverTricks()) {
		if len(names) == 0 || slices.Contains(names, t.Name) {
			h.Tricks = append(h.Tricks, t)
		}
	}
	return h
}

// Start serves until Close.
func (h *Hostile) Start(ctx context.Context) (err error) {
	var lc net.ListenConfig
	h.done = make(chan error, len(h.Tricks)+1)
	serve := func(handler http.HandlerFunc) (string, error) {
		l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: quiet(), MaxHeaderBytes: 1 << 20}
		h.servers = append(h.servers, s)
		go func() { h.done <- s.Serve(counting{l, &h.sent}) }() // Close waits for all
		return "http://" + l.Addr().String(), nil
	}
	if h.home, err = serve(h.page); err != nil {
		return err
	}
	for i := range h.Tricks {
		t := &h.Tricks[i]
		if !t.Server {
			continue
		}
		h.origins[t.Name], err = serve(func(w http.ResponseWriter, r *http.Request) {
			h.count(t.Name)
			t.serve(h, w, r)
		})
		if err != nil {
			return errors.Join(err, h.Close())
		}
	}
	return nil
}

// Close ends all servers, and with them what hangs.
func (h *Hostile) Close() (err error) {
	close(h.end)
	for _, s := range h.servers {
		err = errors.Join(err, s.Close())
	}
	for range h.servers {
		if e := <-h.done; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Roots are where to begin, one for each server.
func (h *Hostile) Roots() []string {
	roots := []string{h.home + "/"}
	for _, t := range h.Tricks {
		if t.Server {
			roots = append(roots, h.origins[t.Name]+"/")
		}
	}
	return roots
}

// URL is where a trick is played.
func (h *Hostile) URL(name string) string {
	if o := h.origins[name]; o != "" {
		return o + "/"
	}
	return h.home + "/" + name + "/"
}

// Requests is how many there were for a trick so far.
func (h *Hostile) Requests(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests[name]
}

// Sent is how many bytes all servers have sent so far.
func (h *Hostile) Sent() int64 { return h.sent.Load() }

func (h *Hostile) count(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests[name]++
}

// page serves the home page, which names all tricks that are pages, and those.
func (h *Hostile) page(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if name == "" {
		html(w, "Home", "Where harm is done.")
		for _, t := range h.Tricks {
			if !t.Server {
				fmt.Fprintf(w, "<p><a href=/%s/>%s</a>\n", t.Name, t.About)
			}
		}
		fmt.Fprint(w, "<p><a href=/honest.html>an honest page</a>\n")
		return
	}
	for _, t := range h.Tricks {
		if !t.Server && t.Name == name {
			h.count(name)
			t.serve(h, w, r)
			return
		}
	}
	if r.URL.Path == "/honest.html" {
		html(w, "An honest page", "It is to be gathered, whatever stands beside it.")
		return
	}
	http.NotFound(w, r)
}

// html begins a page.
func html(w http.ResponseWriter, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>%s</title>\n<p>%s\n", url.PathEscape(title), text)
}

// hang waits until nobody wants an answer any more.
func (h *Hostile) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-h.end:
	}
}

// pause waits a while, and reports whether there is anyone left to wait for.
func (h *Hostile) pause(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-h.end:
		return false
	case <-t.C:
		return true
	}
}

// counting counts what goes out by the connections of a listener.
type counting struct {
	net.Listener
	n *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{c.(*net.TCPConn), l.n}, nil
}

type countingConn struct {
	*net.TCPConn
	n *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.n.Add(int64(n))
	return n, err
}
