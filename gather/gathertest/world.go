// Package gathertest has what a Gatherer is tried on: a world of many small
// hosts that watch how they are treated, and hosts that mean harm.
//
// All of it is served on loopback, by the process that asks for it, and is
// made up as it is asked for. What is told of visitors is what the servers saw.
package gathertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A World is many hosts, each of a few pages, linked to one another. Every host
// has an address of its own on loopback, so that none is taken for another, and
// all are served by one process.
type World struct {
	Hosts int           // 1 to 1<<22
	Pages int           // of each host, its home page included
	Words int           // of each page; 0 is 200
	Slow  time.Duration // Crawl-delay of every tenth host; whole seconds, 0 is none

	port      string
	server    *http.Server
	listeners []net.Listener
	done      chan error
	hosts     []hostLog
}

// A hostLog is what one host saw.
type hostLog struct {
	mu       sync.Mutex
	requests int
	pages    int
	robots   int
	at       int             // requests in hand
	most     int             // of them at once
	last     time.Time       // when the last began
	gaps     []time.Duration // between the starts of two requests
}

// crawlDelay is what the robots.txt of a host asks for, 0 if nothing.
func (w *World) crawlDelay(i int) time.Duration {
	if i%10 == 7 {
		return w.Slow
	}
	return 0
}

// Start serves the world until Close. It needs a file descriptor for each host.
func (w *World) Start(ctx context.Context) error {
	w.hosts = make([]hostLog, w.Hosts)
	w.port = "0"
	var lc net.ListenConfig
	for i := range w.Hosts {
		l, err := lc.Listen(ctx, "tcp", address(i)+":"+w.port)
		if err != nil {
			for _, l := range w.listeners {
				l.Close()
			}
			return fmt.Errorf("host %d of %d: %w", i+1, w.Hosts, err)
		}
		if i == 0 {
			w.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		}
		w.listeners = append(w.listeners, l)
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: time.Minute, ErrorLog: quiet()}
	w.done = make(chan error, len(w.listeners))
	for _, l := range w.listeners {
		go func() { w.done <- w.server.Serve(l) }() // Close waits for all
	}
	return nil
}

// Close ends the world.
func (w *World) Close() error {
	err := w.server.Close()
	for range w.listeners {
		if e := <-w.done; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// address is that of the i-th host.
func address(i int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+i>>16, i>>8&255, i&255)
}

// Home is the URL of the home page of the i-th host.
func (w *World) Home(i int) string { return "http://" + address(i) + ":" + w.port + "/" }

// host finds out which host is asked, by the address it is asked at.
func (w *World) host(r *http.Request) (int, bool) {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return 0, false
	}
	ip := a.IP.To4()
	if ip == nil {
		return 0, false
	}
	i := int(ip[1]-1)<<16 | int(ip[2])<<8 | int(ip[3])
	return i, i >= 0 && i < len(w.hosts)
}

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	i, ok := w.host(r)
	if !ok {
		http.NotFound(rw, r)
		return
	}
	h := &w.hosts[i]
	h.begin(time.Now())
	defer h.end()
	if r.URL.Path == "/robots.txt" {
		h.count(&h.robots)
		fmt.Fprintf(rw, "User-agent: *\nDisallow: /private/\n")
		if d := w.crawlDelay(i); d > 0 {
			fmt.Fprintf(rw, "Crawl-delay: %d\n", int(d.Seconds()))
		}
		return
	}
	page := 0
	if r.URL.Path != "/" {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/p"), ".html"))
		if err != nil || n < 1 || n >= w.Pages {
			http.NotFound(rw, r)
			return
		}
		page = n
	}
	h.count(&h.pages)
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Set("ETag", fmt.Sprintf(`"%d-%d"`, i, page))
	if r.Header.Get("If-None-Match") == rw.Header().Get("ETag") {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	w.page(rw, i, page)
}

// page writes the n-th page of the i-th host: words that are its own, and links
// to two more of its pages and, at home, to four more hosts and one page that
// robots.txt forbids. From any home page all are reached.
func (w *World) page(to io.Writer, i, n int) {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><title>Page %d of host %d</title>\n<h1>Host %d</h1>\n<p>", n, i, i)
	words := w.Words
	if words == 0 {
		words = 200
	}
	for k, x := 0, uint64(i)*1000003+uint64(n)*7919+1; k < words; k++ {
		x = x*6364136223846793005 + 1442695040888963407
		b.WriteString(syllables[x>>33%uint64(len(syllables))])
		b.WriteString(syllables[x>>45%uint64(len(syllables))])
		b.WriteByte(' ')
	}
	for _, m := range []int{2*n + 1, 2*n + 2} {
		if m < w.Pages {
			fmt.Fprintf(&b, "\n<p><a href=/p%d.html>page %d</a>", m, m)
		}
	}
	if n == 0 {
		for _, m := range []int{4*i + 1, 4*i + 2, 4*i + 3, 4*i + 4} {
			if m < w.Hosts {
				fmt.Fprintf(&b, "\n<p><a href=%s>host %d</a>", w.Home(m), m)
			}
		}
		b.WriteString("\n<p><a href=/private/x.html>private</a>")
	}
	io.WriteString(to, b.String())
}

var syllables = []string{"ra", "mo", "ti", "lun", "sek", "ora", "ban", "fi", "gel", "tor", "wi", "nas", "pul", "dre", "kam", "ol"}

// begin notes a request.
func (h *hostLog) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at++; h.at > h.most {
		h.most = h.at
	}
	if h.requests > 0 {
		h.gaps = append(h.gaps, now.Sub(h.last))
	}
	h.requests++
	h.last = now
}

func (h *hostLog) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at--
}

func (h *hostLog) count(n *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n++
}

// Seen is what the hosts of a World saw.
type Seen struct {
	Hosts      int // that were asked anything
	Requests   int
	Pages      int
	Robots     int           // requests for robots.txt
	Early      int           // requests sooner after the last than allowed
	AtOnce     int           // hosts that had more than one request in hand
	Shortest   time.Duration // between two requests to one host
	Violations int           // Early + AtOnce
}

// Seen tells what happened so far to hosts that want a delay between the starts
// of two requests, and one request at a time. One part in a hundred is given to
// the clocks and queues between the visitor and the host.
func (w *World) Seen(delay time.Duration) (s Seen) {
	for i := range w.hosts {
		h := &w.hosts[i]
		h.mu.Lock()
		least := max(delay, w.crawlDelay(i))
		least -= least / 100
		if h.requests > 0 {
			s.Hosts++
		}
		s.Requests, s.Pages, s.Robots = s.Requests+h.requests, s.Pages+h.pages, s.Robots+h.robots
		for k, gap := range h.gaps {
			// What comes before robots.txt has been read can know nothing of it.
			if s.Shortest == 0 || gap < s.Shortest {
				s.Shortest = gap
			}
			if gap < least && (k > 0 || gap < delay-delay/100) {
				s.Early++
			}
		}
		if h.most > 1 {
			s.AtOnce++
		}
		h.mu.Unlock()
	}
	s.Violations = s.Early + s.AtOnce
	return s
}
