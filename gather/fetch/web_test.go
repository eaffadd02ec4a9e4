package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// pack codes a text.
func pack(t testing.TB, code, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch code {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriterLevel(&b, 1)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCodings(t *testing.T) {
	text := strings.Repeat("a text that is said again. ", 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Accept-Encoding"); got != accepted {
			t.Errorf("Accept-Encoding: got %q, want %q", got, accepted)
		}
		codes := strings.TrimPrefix(req.URL.Path, "/")
		b := []byte(text)
		switch codes {
		case "plain", "klingon":
		case "belied":
			codes = "gzip"
		case "broken":
			b = pack(t, "gzip", text)
			b = b[:len(b)/2]
			codes = "gzip"
		case "empty":
			b, codes = nil, "gzip"
		default:
			for c := range strings.SplitSeq(codes, ",") {
				b = pack(t, c, string(b))
			}
		}
		w.Header().Set("ETag", `"`+codes+`"`)
		if codes != "plain" {
			w.Header().Set("Content-Encoding", codes)
		}
		w.Write(b)
	}))
	defer s.Close()
	c := newClient(t, Options{})
	for _, codes := range []string{"plain", "gzip", "x-gzip", "br", "zstd", "gzip,br", "zstd,gzip", "belied"} {
		for range 2 { // with a decoder that was used before
			resp, body := c.get(s.URL + "/" + codes)
			if body != text {
				t.Errorf("%s: got %d bytes, want %d", codes, len(body), len(text))
			}
			if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("ETag") == "" {
				t.Errorf("%s: got %v", codes, resp.Header)
			}
		}
	}
	if resp, body := c.get(s.URL + "/klingon"); body != text || resp.Header.Get("Content-Encoding") != "klingon" {
		t.Errorf("a coding that is not known: got %d bytes, %v", len(body), resp.Header)
	}
	if _, body := c.get(s.URL + "/empty"); body != "" {
		t.Errorf("empty: got %d bytes", len(body))
	}
	if _, _, err := c.try(t.Context(), s.URL+"/broken"); err == nil {
		t.Error("a coded body that ends too soon: got no error")
	}
}

// bomb is what decodes to n bytes, of any coding.
func bomb(t testing.TB, code string, n int) []byte {
	t.Helper()
	return pack(t, code, strings.Repeat("\x00", n))
}

// TestBombs: bodies that grow without end are ended, by what comes out of them.
func TestBombs(t *testing.T) {
	const size = 16 << 20
	packed := make(map[string][]byte)
	for _, code := range []string{"gzip", "br", "zstd"} {
		packed[code] = bomb(t, code, size)
	}
	packed["gzip,gzip"] = pack(t, "gzip", string(packed["gzip"]))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		code := req.URL.Path[1:]
		w.Header().Set("Content-Encoding", code)
		w.Write(packed[code])
	}))
	defer s.Close()
	c := newClient(t, Options{})
	for code, b := range packed {
		resp, err := c.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", s.URL+"/"+code, nil))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		// What may come out is the minimum, the ratio's share, and what was in a
		// decoder's hands.
		if most := max(ratioMin, int64(len(b))*200) + 1<<20; err == nil || n > most {
			t.Errorf("%s: got %d bytes of %d packed in %d, %v, want an end by %d", code, n, size, len(b), err, most)
		}
	}
}

// hostile serves what a function writes on a connection.
func hostile(t testing.TB, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestHeaderFlood(t *testing.T) {
	var sent atomic.Int64
	addr := hostile(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return // an answer before the question is refused for that
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for i := 0; sent.Load() <= 64<<20; i++ {
			n, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	c := newClient(t, Options{})
	_, _, err := c.try(t.Context(), "http://"+addr+"/")
	if err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("got %v, want a refusal of the header", err)
	}
	if n := sent.Load(); n > 64<<20 { // the sockets' buffers may hold half of that
		t.Errorf("%d bytes were taken before", n)
	}
}

// TestDrip: a body that comes drop by drop is ended, while one that is read
// slowly is not.
func TestDrip(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/all" {
			w.Write(make([]byte, 100_000))
			return
		}
		for {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			select {
			case <-stop:
				return
			case <-req.Context().Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}))
	defer s.Close()
	defer close(stop)
	c := newClient(t, Options{Grace: 100 * time.Millisecond, Rate: 10_000})
	began := time.Now()
	_, body, err := c.try(t.Context(), s.URL+"/drip")
	if err == nil || !strings.Contains(err.Error(), "slower than 10000 bytes a second") {
		t.Errorf("got %d bytes, %v, want it named slow", len(body), err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
	// This one takes longer than the server may, but it is not the server's doing.
	c = newClient(t, Options{Grace: time.Second, Rate: 1 << 40})
	resp, err := c.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", s.URL+"/all", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := 0
	for buf := make([]byte, 10_000); ; {
		m, err := resp.Body.Read(buf)
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		<-time.After(125 * time.Millisecond) // busy with what was read
	}
	if n != 100_000 {
		t.Errorf("got %d bytes, want 100000", n)
	}
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1": false, "127.255.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.1": false, "169.254.169.254": false,
		"172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "192.0.0.8": false, "198.18.0.1": false, "203.0.113.7": false,
		"224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"1.1.1.1": true, "172.32.0.1": true, "100.128.0.1": true, "93.184.215.14": true, "192.0.1.1": true,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:1.1.1.1": true, "::127.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::a00:1": false, "64:ff9b::1.1.1.1": true, "64:ff9b:1::1": false,
		"2002:7f00:1::": false, "2002:a00:1::1": false, "2002:101:101::1": true, "2001::1": false, "2001:db8::1": false, "100::1": false, "5f00::1": false,
		"2606:4700:4700::1111": true, "2a00:1450::1": true,
	} {
		if err := checkPublic(netip.MustParseAddr(addr)); (err == nil) != want {
			t.Errorf("%s: got %v, want it public: %t", addr, err, want)
		}
	}

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, "private") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	looked := func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "rebound.example.org" {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, errors.New("no such host")
	}
	c := newClient(t, Options{Lookup: looked})
	// Somebody trusted has made a connection, which is not for the others.
	if _, body := c.get("http://rebound.example.org:" + port + "/"); body != "private" {
		t.Fatalf("got %q", body)
	}
	for _, host := range []string{"127.0.0.1", "rebound.example.org", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		for _, scheme := range []string{"http", "https", "ftp", "gopher", "nntp"} {
			_, _, err := c.try(Public(t.Context()), scheme+"://"+host+":"+port+"/")
			if !errors.Is(err, iofs.ErrPermission) || !strings.Contains(err.Error(), "is not public") {
				t.Errorf("%s to %s: got %v, want the address refused", scheme, host, err)
			}
		}
	}
	for _, u := range []string{"file:///etc/passwd", "mbox:///var/mail/root/"} {
		if resp, _, err := c.try(Public(t.Context()), u); err != nil || resp.StatusCode != 403 {
			t.Errorf("%s: got %v, want 403", u, err)
		}
	}
	viaProxy := newClient(t, Options{Proxy: s.URL})
	for _, host := range []string{"127.0.0.1", "localhost", "x.localhost.", "[::1]"} {
		if _, _, err := viaProxy.try(Public(t.Context()), "http://"+host+"/"); !errors.Is(err, iofs.ErrPermission) {
			t.Errorf("%s through a proxy: got %v, want it refused", host, err)
		}
	}
}

func TestCookies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/set":
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes", Path: "/"})
		case "/flood":
			for i := range 500 {
				http.SetCookie(w, &http.Cookie{Name: fmt.Sprint("c", i), Value: "x", Path: "/"})
			}
			http.SetCookie(w, &http.Cookie{Name: "long", Value: strings.Repeat("x", 5000), Path: "/"})
		}
		fmt.Fprint(w, len(req.Cookies()))
	}))
	defer s.Close()
	c := newClient(t, Options{Cookies: true})
	c.get(s.URL + "/set")
	if _, body := c.get(s.URL + "/"); body != "1" {
		t.Errorf("got %s cookies back, want 1", body)
	}
	if _, body := newClient(t, Options{Cookies: true}).get(s.URL + "/"); body != "0" {
		t.Errorf("another run: got %s cookies, want none", body)
	}
	c.get(s.URL + "/flood")
	if _, body := c.get(s.URL + "/"); body != "50" {
		t.Errorf("a flood: got %s cookies back, want 50", body)
	}
	d := newClient(t, Options{})
	d.get(s.URL + "/set")
	if _, body := d.get(s.URL + "/"); body != "0" {
		t.Errorf("without cookies: got %s back, want none", body)
	}
}

// TestWire: passwords reach their server and proxy, and not what wraps the wire.
func TestWire(t *testing.T) {
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		proxied.Add(1)
		if req.Header.Get("Proxy-Authorization") != "Basic cDpx" { // p:q
			t.Errorf("the proxy was told %q", req.Header.Get("Proxy-Authorization"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set(Via, "local") // nobody's to set
		w.Header().Set("X-Harvest-Partial", "x")
		user, password, _ := req.BasicAuth()
		w.Write(pack(t, "gzip", user+" "+password+" "+req.URL.String()))
	}))
	defer proxy.Close()
	secrets, err := ParseSecrets("auth host=site.example.org user=me password='a b' path=/in/\nproxy user=p password=q\n")
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	wrap := func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") != "" || req.Header.Get("Accept-Encoding") == "" {
				t.Errorf("the wrapper sees %v", req.Header)
			}
			resp, err := next.RoundTrip(req)
			if err == nil {
				raw, err = io.ReadAll(resp.Body)
				resp.Body = io.NopCloser(bytes.NewReader(raw))
			}
			return resp, err
		})
	}
	c := newClient(t, Options{Secrets: secrets, Proxy: proxy.URL, Wrap: wrap})
	for path, want := range map[string]string{"/in/a": "me a b", "/in": " ", "/in/../out": " ", "/out": " "} {
		resp, body := c.get("http://site.example.org" + path)
		if body != want+" http://site.example.org"+path {
			t.Errorf("%s: got %q, want %q told", path, body, want)
		}
		if resp.Header.Get(Via) != "net" || resp.Header.Get(Partial) != "" {
			t.Errorf("a server has set %v", resp.Header)
		}
		if len(raw) < 2 || raw[0] != 0x1f {
			t.Errorf("the wrapper sees %q, want it coded", raw)
		}
	}
	if proxied.Load() != 4 {
		t.Errorf("got %d requests at the proxy, want 4", proxied.Load())
	}
	for _, s := range []string{"ftp://proxy/", "http://", "http://me:secret@proxy:8080", "proxy:8080"} {
		if err := CheckProxy(s); !errors.Is(err, iofs.ErrInvalid) || strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), "secrets") {
			t.Errorf("proxy %s: got %v, want a refusal", s, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestVersions: HTTP/2 where a server has it, one connection for all.
func TestVersions(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, req.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, Options{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	for range 3 {
		if _, body := c.get(s.URL + "/"); body != "HTTP/2.0" {
			t.Errorf("got %s, want HTTP/2.0", body)
		}
	}
	if n := c.Stats()["http"]; n.Opened != 1 || n.Reused != 2 {
		t.Errorf("got %+v, want 1 opened and 2 reused", n)
	}
	_, _, err := newClient(t, Options{}).try(t.Context(), s.URL+"/")
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) {
		t.Errorf("a certificate of nobody's: got %v, want a refusal", err)
	}
}

// TestVia: with a cache handed in nothing else is asked.
func TestVia(t *testing.T) {
	var asked []string
	c := newClient(t, Options{Via: roundTrip(func(req *http.Request) (*http.Response, error) {
		asked = append(asked, req.URL.Scheme)
		return http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept")), req)
	})})
	for _, scheme := range []string{"http", "ftp", "gopher", "nntp"} {
		if resp, body := c.get(scheme + "://site.example.org/"); body != "kept" || resp.Header.Get(Via) != "cache" {
			t.Errorf("%s: got %q from %s", scheme, body, resp.Header.Get(Via))
		}
	}
	if got := strings.Join(asked, " "); got != "http ftp gopher nntp" {
		t.Errorf("got %s asked", got)
	}
}
