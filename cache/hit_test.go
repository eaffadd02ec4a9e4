package cache

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkHit asks for one object of 1 KB over kept connections.
func BenchmarkHit(b *testing.B) {
	for _, access := range []string{"all", "none"} {
		b.Run("access="+access, func(b *testing.B) { benchmarkHit(b, "access="+access+"\n") })
	}
}

func benchmarkHit(b *testing.B, conf string) {
	w := newWorld(b, conf, func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=600")
		rw.Write(make([]byte, 1024))
	})
	w.get("/k")
	text := "GET " + w.server.URL + "/k HTTP/1.1\r\nHost: " + strings.TrimPrefix(w.server.URL, "http://") + "\r\n\r\n"
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		size := 0
		for pb.Next() {
			if _, err := io.WriteString(conn, text); err != nil {
				b.Error(err)
				return
			}
			if size == 0 {
				size = first(b, r)
			} else if _, err := r.Discard(size); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// first reads an answer and tells how many bytes all like it have.
func first(b *testing.B, r *bufio.Reader) int {
	n := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		n += len(line)
		if line == "\r\n" {
			break
		}
	}
	r.Discard(1024)
	return n + 1024
}

// TestHitAllocations holds the shortest way to few allocations.
func TestHitAllocations(t *testing.T) {
	w := newWorld(t, "access=none\n", fresh(600))
	w.get("/k")
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text := "GET " + w.server.URL + "/k HTTP/1.1\r\nHost: x\r\n\r\n"
	b := make([]byte, 4096)
	n := testing.AllocsPerRun(200, func() {
		io.WriteString(conn, text)
		if k, err := conn.Read(b); err != nil || !strings.HasPrefix(string(b[:k]), "HTTP/1.1 200 ") {
			t.Fatal(fmt.Errorf("%q: %v", b[:k], err))
		}
	})
	if n > 8 {
		t.Errorf("got %.0f allocations a hit, both ends, want at most 8", n)
	}
}
