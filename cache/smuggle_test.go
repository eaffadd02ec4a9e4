package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A vector is a request as bytes. Those who read it otherwise than the cache find
// another request in it, for /smuggled. $U is the URL of the server without its
// path, or nothing at an accelerator, and $H its host and port.
type vector struct{ name, text string }

const smuggled = "GET $U/smuggled HTTP/1.1\r\nHost: $H\r\n\r\n"

var refused = []vector{
	{"length and chunks", "POST $U/a HTTP/1.1\r\nHost: $H\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{"chunks and length", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled},
	{"chunks in HTTP/1.0", "POST $U/a HTTP/1.0\r\nHost: $H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{"two lengths", "POST $U/a HTTP/1.1\r\nHost: $H\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello" + smuggled},
	{"a list of lengths", "POST $U/a HTTP/1.1\r\nHost: $H\r\nContent-Length: 0, 5\r\n\r\nhello" + smuggled},
	{"a length with a sign", "POST $U/a HTTP/1.1\r\nHost: $H\r\nContent-Length: +5\r\n\r\nhello" + smuggled},
	{"a coding that is not known", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled},
	{"chunks not last", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + smuggled},
	{"two hosts", "GET $U/a HTTP/1.1\r\nHost: $H\r\nHost: other.example\r\n\r\n" + smuggled},
	{"no host", "GET $U/a HTTP/1.1\r\n\r\n" + smuggled},
	{"a bare CR", "GET $U/a HTTP/1.1\r\nHost: $H\r\nFoo: a\rContent-Length: 100\r\n\r\n" + smuggled},
	{"a bare LF", "GET $U/a HTTP/1.1\r\nHost: $H\r\nFoo: a\nContent-Length: 100\r\n\r\n" + smuggled},
	{"a folded line", "GET $U/a HTTP/1.1\r\nHost: $H\r\nFoo: a\r\n Content-Length: 100\r\n\r\n" + smuggled},
	{"a blank before the colon", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled},
	{"a blank in the target", "GET $U/a b HTTP/1.1\r\nHost: $H\r\n\r\n" + smuggled},
	{"a NUL", "GET $U/a HTTP/1.1\r\nHost: $H\r\nFoo: a\x00b\r\n\r\n" + smuggled},
	{"a user in the URL", "GET http://user@$H/a HTTP/1.1\r\nHost: $H\r\n\r\n" + smuggled},
	{"a chunk of no size", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n" + smuggled},
}

var served = []vector{
	{"another host beside a whole URL", "GET http://$H/a HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"},
	{"chunks with extensions and trailers", "POST $U/a HTTP/1.1\r\nHost: $H\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nContent-Length: 100\r\n\r\n"},
}

// TestSmuggling holds both doors to refusing what two may read in two ways, and to
// closing the connection; what is served the server gets in one way only.
func TestSmuggling(t *testing.T) {
	s := newRecorder(t)
	c := testCache(t, "listen addr=127.0.0.1:0\naccel addr=127.0.0.2:0 url=http://"+s.addr+"\negress allow=127.0.0.0/8\n")
	t.Cleanup(func() { c.Close() })
	addrs := c.doors.addrs()
	for door, addr := range map[string]string{"proxy": addrs["127.0.0.1:0"], "accel": addrs["127.0.0.2:0"]} {
		url := ""
		if door == "proxy" {
			url = "http://" + s.addr
		}
		fill := strings.NewReplacer("$U", url, "$H", s.addr)
		for _, v := range refused {
			got, closed := exchangeRaw(t, addr, fill.Replace(v.text))
			status, _, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), " ")
			if !slices.Contains([]string{"400", "501", "505"}, status) || strings.Count(got, "HTTP/1.1 ") != 1 || !closed {
				t.Errorf("%s: %s: got %.80q, closed %v, want one refusal and the end", door, v.name, got, closed)
			}
			if whole := s.taken(); len(whole) > 0 {
				t.Errorf("%s: %s: the server got %q, want nothing", door, v.name, whole)
			}
		}
		for _, v := range served {
			got, _ := exchangeRaw(t, addr, fill.Replace(v.text))
			whole := s.taken()
			if !strings.HasPrefix(got, "HTTP/1.1 200 ") || len(whole) != 1 {
				t.Errorf("%s: %s: got %.80q, and the server %q, want it served once", door, v.name, got, whole)
				continue
			}
			if strings.Count(whole[0], "Host: ") != 1 || !strings.Contains(whole[0], "Host: "+s.addr+"\r\n") || strings.Contains(whole[0], "100") || strings.Contains(whole[0], "a=") {
				t.Errorf("%s: %s: the server got %q, want one host and one way to read it", door, v.name, whole[0])
			}
		}
	}
	if n := len(refused) + len(served); n != 20 {
		t.Errorf("got %d vectors, want 20", n)
	}
}

// exchangeRaw sends bytes and returns all that comes back, and whether the other
// side ended it.
func exchangeRaw(t *testing.T, addr, text string) (got string, closed bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return string(b), err == nil
}

// A recorder is a server that keeps the whole requests it gets, as bytes.
type recorder struct {
	addr string
	mu   sync.Mutex
	all  []string
}

func newRecorder(t *testing.T) *recorder {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &recorder{addr: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return s
}

// serve answers each request that is whole.
func (s *recorder) serve(c net.Conn) {
	defer c.Close()
	var seen bytes.Buffer
	for r := bufio.NewReader(io.TeeReader(c, &seen)); ; {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		}
		s.mu.Lock()
		s.all = append(s.all, seen.String())
		s.mu.Unlock()
		seen.Reset()
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

func (s *recorder) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}
