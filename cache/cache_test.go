package cache

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A world is a cache with a proxy door, and a server that counts what it is asked.
type world struct {
	tb     testing.TB
	c      *Cache
	server *httptest.Server
	addr   string // of the door
	client *http.Client
	asked  atomic.Int64

	mu      sync.Mutex
	handler http.HandlerFunc
	seen    []*http.Request
	stop    func()
}

const localConfig = "listen addr=127.0.0.1:0\negress allow=127.0.0.0/8\n"

func newWorld(tb testing.TB, conf string, handler http.HandlerFunc) *world {
	w := &world{tb: tb, handler: handler}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.asked.Add(1)
		w.mu.Lock()
		w.seen = append(w.seen, req.Clone(context.Background()))
		h := w.handler
		w.mu.Unlock()
		h(rw, req)
	}))
	tb.Cleanup(w.server.Close)
	w.open(tb.TempDir(), localConfig+conf)
	tb.Cleanup(func() { w.close() })
	return w
}

func (w *world) open(dir, conf string) {
	w.tb.Helper()
	c, err := Open(dir, "main", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		w.tb.Fatal(err)
	}
	if conf != "" {
		if err := c.setConfig(context.Background(), strings.ReplaceAll(conf, "SERVER", w.server.URL)); err != nil {
			w.tb.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	w.c = c
	w.stop = func() {
		cancel()
		wg.Wait()
		if err := c.Close(); err != nil {
			w.tb.Error(err)
		}
	}
	for len(c.doors.addrs()) < len(c.conf.Load().doors) {
		if c.doors.troubles() != nil {
			w.tb.Fatal(c.doors.troubles())
		}
		time.Sleep(time.Millisecond)
	}
	w.addr = ""
	for _, d := range c.conf.Load().doors {
		if d.base == "" {
			w.addr = c.doors.addrs()[d.addr]
		}
	}
	proxy, _ := url.Parse("http://" + w.addr)
	w.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (w *world) close() {
	if w.stop != nil {
		w.client.CloseIdleConnections()
		w.stop()
		w.stop = nil
	}
}

func (w *world) handle(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = h
}

// last is the request that the server saw last.
func (w *world) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

// do asks through the door; header is "Name: value" lines.
func (w *world) do(method, path string, header ...string) (*http.Response, string) {
	w.tb.Helper()
	req, err := http.NewRequest(method, w.server.URL+path, nil)
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.tb.Fatal(err)
	}
	return resp, string(b)
}

func (w *world) get(path string, header ...string) (*http.Response, string) {
	w.tb.Helper()
	return w.do("GET", path, header...)
}

// fresh answers with a body of the path and how often it was asked.
func fresh(life int) http.HandlerFunc {
	var n atomic.Int64
	return func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", life))
		fmt.Fprintf(rw, "%s %d", req.URL.Path, n.Add(1))
	}
}

func TestHit(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	for i := range 3 {
		resp, body := w.get("/a")
		if body != "/a 1" || resp.StatusCode != 200 || resp.ContentLength != 4 {
			t.Errorf("got %d %q, want 200 \"/a 1\"", resp.StatusCode, body)
		}
		cs := resp.Header.Get("Cache-Status")
		if want := "harvest; hit; ttl="; i > 0 && !strings.HasPrefix(cs, want) {
			t.Errorf("got Cache-Status %q, want %s…", cs, want)
		}
		if want := "harvest; fwd=uri-miss; fwd-status=200; stored"; i == 0 && !strings.HasPrefix(cs, want) {
			t.Errorf("got Cache-Status %q, want %s…", cs, want)
		}
		if resp.Header.Get("Age") == "" || !strings.Contains(resp.Header.Get("Via"), w.c.via()) {
			t.Errorf("got Age %q, Via %q", resp.Header.Get("Age"), resp.Header.Get("Via"))
		}
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("got %d fetches, want 1", n)
	}
	if via := w.last().Header.Get("Via"); via != "1.1 "+w.c.via()+" (harvest)" {
		t.Errorf("got Via %q at the server", via)
	}
	if resp, body := w.do("HEAD", "/a"); resp.ContentLength != 4 || body != "" || w.asked.Load() != 1 {
		t.Errorf("HEAD: got length %d, %q and %d fetches", resp.ContentLength, body, w.asked.Load())
	}
}

// TestRestart finds what was kept before.
func TestRestart(t *testing.T) {
	w := newWorld(t, "", fresh(600))
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	w.get("/a")
	w.handle(func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=600")
		rw.Write(large)
	})
	w.get("/large")
	dir := w.c.dir
	w.close()
	w.open(dir, "")
	w.handle(func(rw http.ResponseWriter, req *http.Request) { t.Errorf("%s was fetched again", req.URL) })
	if _, body := w.get("/a"); body != "/a 1" {
		t.Errorf("got %q", body)
	}
	for range 2 {
		if _, body := w.get("/large"); body != string(large) {
			t.Errorf("got %d bytes, want %d, or others", len(body), len(large))
		}
	}
}

// TestCollapse has one fetch for many, each of whom gets bytes as they come.
func TestCollapse(t *testing.T) {
	for _, size := range []int{200_000, 4 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { testCollapse(t, size) })
	}
}

func testCollapse(t *testing.T, size int) {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i*7 + i>>8)
	}
	half := make(chan struct{})
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		rw.Header().Set("Content-Length", fmt.Sprint(size))
		rw.Write(body[:size/2])
		rw.(http.Flusher).Flush()
		<-half
		rw.Write(body[size/2:])
	})
	const clients = 30
	var first, all sync.WaitGroup
	first.Add(clients)
	sums := make([][32]byte, clients)
	for i := range clients {
		all.Go(func() {
			resp, err := w.client.Get(w.server.URL + "/slow")
			if err != nil {
				t.Error(err)
				first.Done()
				return
			}
			defer resp.Body.Close()
			b := make([]byte, size/2)
			if _, err := io.ReadFull(resp.Body, b); err != nil {
				t.Error(err)
			}
			first.Done()
			rest, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			sums[i] = sha256.Sum256(append(b, rest...))
		})
	}
	first.Wait() // all have the first half before the second is sent
	close(half)
	all.Wait()
	for i := range sums {
		if sums[i] != sha256.Sum256(body) {
			t.Fatalf("client %d got another body", i)
		}
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("got %d fetches, want 1", n)
	}
	if _, b := w.get("/slow"); sha256.Sum256([]byte(b)) != sha256.Sum256(body) || w.asked.Load() != 1 {
		t.Errorf("got another body, or %d fetches", w.asked.Load())
	}
}

// TestPrivate lets nobody have what is for one.
func TestPrivate(t *testing.T) {
	var n atomic.Int64
	gate := make(chan struct{})
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		i := n.Add(1)
		if i == 1 {
			<-gate
		}
		rw.Header().Set("Cache-Control", "private, max-age=60")
		fmt.Fprintf(rw, "for %d only", i)
	})
	seen := make(map[string]bool)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, b := w.get("/p")
			mu.Lock()
			defer mu.Unlock()
			if seen[b] {
				t.Errorf("two got %q", b)
			}
			seen[b] = true
		})
	}
	for n.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	all.Wait()
	if len(seen) != 10 {
		t.Errorf("got %d answers, want 10", len(seen))
	}
}

func TestVary(t *testing.T) {
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		rw.Header().Set("Vary", "Accept-Language")
		io.WriteString(rw, "in "+req.Header.Get("Accept-Language"))
	})
	for range 2 {
		for _, l := range []string{"de", "fr", "en"} {
			if _, b := w.get("/v", "Accept-Language: "+l); b != "in "+l {
				t.Errorf("got %q, want in %s", b, l)
			}
		}
	}
	if n := w.asked.Load(); n != 3 {
		t.Errorf("got %d fetches, want 3", n)
	}
}

func TestValidate(t *testing.T) {
	var full atomic.Int64
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=0")
		rw.Header().Set("ETag", `"one"`)
		if req.Header.Get("If-None-Match") == `"one"` {
			rw.WriteHeader(304)
			return
		}
		full.Add(1)
		io.WriteString(rw, "the body")
	})
	for i := range 4 {
		resp, b := w.get("/v")
		if b != "the body" || resp.StatusCode != 200 {
			t.Errorf("got %d %q", resp.StatusCode, b)
		}
		if cs := resp.Header.Get("Cache-Status"); i > 0 && !strings.HasPrefix(cs, "harvest; fwd=stale; fwd-status=304") {
			t.Errorf("got Cache-Status %q", cs)
		}
	}
	if full.Load() != 1 || w.asked.Load() != 4 {
		t.Errorf("got %d bodies of %d fetches, want 1 of 4", full.Load(), w.asked.Load())
	}
	if resp, b := w.get("/v", `If-None-Match: "one"`); resp.StatusCode != 304 || b != "" {
		t.Errorf("got %d %q, want 304", resp.StatusCode, b)
	}
}

func TestStale(t *testing.T) {
	broken := atomic.Bool{}
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		if broken.Load() {
			rw.WriteHeader(503)
			return
		}
		rw.Header().Set("Date", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat))
		rw.Header().Set("Cache-Control", map[string]string{"/sie": "max-age=1, stale-if-error=600", "/must": "max-age=1, must-revalidate", "/swr": "max-age=1, stale-while-revalidate=600"}[req.URL.Path])
		rw.Header().Set("ETag", `"x"`)
		io.WriteString(rw, "good")
	})
	for _, p := range []string{"/sie", "/must", "/swr"} {
		w.get(p)
	}
	resp, b := w.get("/swr")
	if cs := resp.Header.Get("Cache-Status"); b != "good" || !strings.HasPrefix(cs, "harvest; hit; ttl=-") {
		t.Errorf("got %q %q", b, cs)
	}
	for w.asked.Load() < 4 { // asked behind the answer
		time.Sleep(time.Millisecond)
	}
	broken.Store(true)
	if resp, b := w.get("/sie"); resp.StatusCode != 200 || b != "good" {
		t.Errorf("got %d %q, want what is stale", resp.StatusCode, b)
	}
	if resp, _ := w.get("/must"); resp.StatusCode != 503 && resp.StatusCode != 504 {
		t.Errorf("got %d, want the failure", resp.StatusCode)
	}
	w.server.CloseClientConnections()
	w.server.Listener.Close()
	if resp, b := w.get("/sie"); resp.StatusCode != 200 || b != "good" {
		t.Errorf("unreachable: got %d %q, want what is stale", resp.StatusCode, b)
	}
	if resp, _ := w.get("/must"); resp.StatusCode != 502 && resp.StatusCode != 504 {
		t.Errorf("unreachable: got %d, want 502 or 504", resp.StatusCode)
	}
	before := w.c.up.opened.Load()
	if resp, _ := w.get("/other"); resp.StatusCode != 502 || w.c.up.opened.Load() != before {
		t.Errorf("got %d after %d connections", resp.StatusCode, w.c.up.opened.Load()-before)
	}
}

func TestRanges(t *testing.T) {
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		rw.Header().Set("ETag", `"r"`)
		n := map[string]int{"/small": 1000, "/large": len(large)}[req.URL.Path]
		rw.Header().Set("Content-Length", fmt.Sprint(n))
		rw.Write(large[:n])
	})
	for _, path := range []string{"/small", "/large"} {
		for _, tt := range []struct {
			ask    string
			status int
			a, b   int
		}{{"bytes=10-19", 206, 10, 20}, {"bytes=900-", 206, 900, -1}, {"bytes=-7", 206, -7, -1}, {"bytes=5-5", 206, 5, 6}, {"bytes=99999999-", 416, 0, 0}} {
			whole := large[:map[string]int{"/small": 1000, "/large": len(large)}[path]]
			a, b := tt.a, tt.b
			if a < 0 {
				a += len(whole)
			}
			if b < 0 {
				b = len(whole)
			}
			resp, body := w.get(path, "Range: "+tt.ask)
			if resp.StatusCode != tt.status || tt.status == 206 && body != string(whole[a:b]) {
				t.Errorf("%s %s: got %d and %d bytes, want %d and %d", path, tt.ask, resp.StatusCode, len(body), tt.status, b-a)
			}
		}
		resp, body := w.get(path, "Range: bytes=0-1,5-6")
		if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges") || strings.Count(body, "Content-Range: bytes ") != 2 {
			t.Errorf("%s: got %d %q %q", path, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
	}
	if n := w.asked.Load(); n != 2 {
		t.Errorf("got %d fetches, want 2", n)
	}
}

func TestInvalidate(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	w.get("/a")
	w.get("/b")
	w.handle(func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Location", "/b")
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(rw, "%s %s", req.Method, body)
	})
	req, _ := http.NewRequest("PUT", w.server.URL+"/a", strings.NewReader("news"))
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(b) != "PUT news" {
		t.Errorf("got %q", b)
	}
	w.handle(fresh(60))
	for _, p := range []string{"/a", "/b"} {
		if resp, _ := w.get(p); strings.Contains(resp.Header.Get("Cache-Status"), "hit") {
			t.Errorf("%s is a hit after a PUT", p)
		}
	}
}

// TestUpload sends a body of unknown length, that is answered before it ends.
func TestUpload(t *testing.T) {
	w := newWorld(t, "", func(rw http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		fmt.Fprint(rw, n)
	})
	pr, pw := io.Pipe()
	go func() {
		for range 100 {
			pw.Write(make([]byte, 10_000))
		}
		pw.Close()
	}()
	resp, err := w.client.Post(w.server.URL+"/up", "text/plain", pr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "1000000" {
		t.Errorf("got %q, want 1000000", b)
	}
}

// TestEgress refuses what is not for clients.
func TestEgress(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	if err := w.c.setConfig(context.Background(), "listen addr=127.0.0.1:0\n"); err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{w.server.URL + "/x", "http://localhost:" + port(w.server.URL) + "/", "http://169.254.169.254/latest/", "http://10.0.0.1/", "http://[::1]:8080/", "http://[::ffff:127.0.0.1]:8080/", "http://example.org:22/", "http://0.0.0.0:8080/"} {
		resp, err := w.client.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s: got %d, want 403", u, resp.StatusCode)
		}
	}
	if n := w.asked.Load(); n != 0 {
		t.Errorf("got %d fetches, want none", n)
	}
}

func port(u string) string { return u[strings.LastIndexByte(u, ':')+1:] }

// raw sends text to the door and returns what comes.
func (w *world) raw(text string) string {
	w.tb.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(conn, text)
	conn.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(conn)
	if err != nil && len(b) == 0 {
		w.tb.Fatal(err)
	}
	return string(b)
}

// TestStrict refuses what two programs could read in two ways, and closes.
func TestStrict(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	host := strings.TrimPrefix(w.server.URL, "http://")
	head := "GET " + w.server.URL + "/a HTTP/1.1\r\nHost: " + host + "\r\n"
	next := "GET " + w.server.URL + "/smuggled HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	for _, text := range []string{
		head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
		head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + next,
		head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + next,
		head + " folded: yes\r\n\r\n" + next,
		head + "X: a\rb\r\n\r\n" + next,
		"GET " + w.server.URL + "/a HTTP/1.1\nHost: " + host + "\n\n" + next,
		"GET http://me@" + host + "/a HTTP/1.1\r\nHost: " + host + "\r\n\r\n" + next,
		"GET /a HTTP/1.1\r\nHost: " + host + "\r\n\r\n" + next,
	} {
		got := w.raw(text)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") && !strings.HasPrefix(got, "HTTP/1.1 501 ") || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%.100q: got %.60q, want one refusal", text, got)
		}
	}
	if n := w.asked.Load(); n != 0 {
		t.Errorf("got %d fetches, want none", n)
	}
	if got := w.raw(head + "\r\n" + next); strings.Count(got, "HTTP/1.1 200 ") != 2 {
		t.Errorf("two requests at once: got %q", got)
	}
	if got := w.raw("GET http://" + host + "/a HTTP/1.0\r\n\r\n"); !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("got %q", got)
	}
	if got := w.raw(strings.Replace(head, "Host: "+host, "Host: elsewhere.example", 1) + "\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || w.last().Host != host {
		t.Errorf("got %q; the server saw %q", got, w.last().Host)
	}
}

func TestConnect(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	ask := "CONNECT " + l.Addr().String() + " HTTP/1.1\r\nHost: x\r\n\r\n"
	if got := w.raw(ask); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("got %q, want 403", got)
	}
	if err := w.c.setConfig(context.Background(), localConfig+"connect="+port(l.Addr().String())+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := w.raw(ask + "there and back"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasSuffix(got, "\r\n\r\nthere and back") {
		t.Errorf("got %q", got)
	}
}

// TestLoop answers a request that has been here with 508.
func TestLoop(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	if resp, _ := w.get("/a", "Via: 1.1 other, 1.1 "+w.c.via()+" (harvest)"); resp.StatusCode != 508 {
		t.Errorf("got %d, want 508", resp.StatusCode)
	}
	if resp, _ := w.get("/a", "CDN-Loop: "+w.c.via()+"; v=1"); resp.StatusCode != 508 {
		t.Errorf("got %d, want 508", resp.StatusCode)
	}
}

func TestAccel(t *testing.T) {
	w := newWorld(t, "accel addr=127.0.0.2:0 url=SERVER\n", fresh(60))
	door := ""
	for _, d := range w.c.conf.Load().doors {
		if d.base != "" {
			door = w.c.doors.addrs()[d.addr]
		}
	}
	for range 3 {
		resp, err := http.Get("http://" + door + "/a")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "/a 1" {
			t.Errorf("got %q", b)
		}
	}
	if _, b := w.get("/a"); b != "/a 1" { // the same URL through the other door
		t.Errorf("got %q", b)
	}
	if h := w.last().Host; "http://"+h != w.server.URL || w.asked.Load() != 1 {
		t.Errorf("got Host %q and %d fetches", h, w.asked.Load())
	}
}

// TestAbort lets a fetch go on, or not, when its client is gone.
func TestAbort(t *testing.T) {
	for _, tt := range []struct {
		sent, size int
		want       string
	}{{600_000, 1_000_000, "continued"}, {100_000, 10_000_000, "dropped"}, {9_000_000, 10_000_000, "continued"}} {
		gone := make(chan struct{})
		w := newWorld(t, "quick left=1K\n", func(rw http.ResponseWriter, req *http.Request) {
			rw.Header().Set("Cache-Control", "max-age=60")
			rw.Header().Set("Content-Length", fmt.Sprint(tt.size))
			rw.Write(make([]byte, tt.sent))
			rw.(http.Flusher).Flush()
			<-gone
			rw.Write(make([]byte, tt.size-tt.sent))
		})
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "GET", w.server.URL+"/x", nil)
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(resp.Body, make([]byte, tt.sent))
		cancel()
		resp.Body.Close()
		w.wait(func() bool { return w.told(tt.want) })
		close(gone)
		if tt.want == "continued" {
			w.wait(func() bool { return w.c.isHeld(keyOf(w.server.URL + "/x")) })
		}
		w.close()
	}
}

// told reports whether events have one.
func (w *world) told(event string) bool {
	h, err := w.c.events.File(2).Open(context.Background(), 1)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer h.Close()
	b := make([]byte, 1<<20)
	n, _ := h.ReadAt(context.Background(), b, 0)
	return bytes.Contains(b[:n], []byte("event="+event))
}

func (w *world) wait(ok func() bool) {
	w.tb.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.tb.Fatal("it does not come")
		}
	}
}

// TestRoundTrip is the door of callers in the process.
func TestRoundTrip(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	client := &http.Client{Transport: w.c}
	for range 2 {
		resp, err := client.Get(w.server.URL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "/a 1" || resp.ContentLength != 4 {
			t.Errorf("got %q, length %d", b, resp.ContentLength)
		}
	}
	if _, err := client.Get("http://127.0.0.1:1025/"); err == nil {
		t.Error("got an answer of nobody")
	}
}

// TestOver lets a body pass that is too large to be kept, without end.
func TestOver(t *testing.T) {
	const size = 24 << 20
	w := newWorld(t, "object=2M\n", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		b := make([]byte, 64<<10)
		for range size / len(b) {
			if _, err := rw.Write(b); err != nil {
				return
			}
		}
	})
	_, b := w.get("/x")
	if len(b) != size || w.c.isHeld(keyOf(w.server.URL+"/x")) {
		t.Errorf("got %d bytes, kept %v", len(b), w.c.isHeld(keyOf(w.server.URL+"/x")))
	}
	w.wait(func() bool { return w.c.store.Stats().Disk < 1<<20 })
}

// TestSurplus takes no answer that nobody asked for.
func TestSurplus(t *testing.T) {
	w := newWorld(t, "", fresh(60))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=9\r\n\r\n"+req.URL.Path[:2]+"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=9\r\n\r\nwrong")
				}
			}()
		}
	}()
	for _, p := range []string{"/a", "/b", "/c"} {
		resp, err := w.client.Get("http://" + l.Addr().String() + p)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != p {
			t.Errorf("got %q, want %q", b, p)
		}
	}
}

// TestFailures keeps errors for a while, if it is told to.
func TestFailures(t *testing.T) {
	w := newWorld(t, "failures=1m\n", func(rw http.ResponseWriter, req *http.Request) {
		status := map[string]int{"/404": 404, "/500": 500, "/401": 401}[req.URL.Path]
		rw.WriteHeader(status)
	})
	for _, tt := range []struct {
		path    string
		fetches int64
	}{{"/404", 1}, {"/500", 1}, {"/401", 2}} {
		before := w.asked.Load()
		w.get(tt.path)
		w.get(tt.path)
		if n := w.asked.Load() - before; n != tt.fetches {
			t.Errorf("%s: got %d fetches, want %d", tt.path, n, tt.fetches)
		}
	}
}
