package icp

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// listen makes a Conn on an address of the loopback network.
func listen(t testing.TB, ip string) *Conn {
	t.Helper()
	pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 0)))
	if err != nil {
		t.Fatal(err)
	}
	c := New(pc)
	t.Cleanup(func() { c.Close() })
	return c
}

// serve serves a Conn until the test ends.
func serve(t testing.TB, c *Conn, answer func(netip.AddrPort, string) Op) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := c.Serve(ctx, answer); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serve: got %v, want that it was told to end", err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

// holds answers as a cache that holds the URLs with a word in them.
func holds(word string) func(netip.AddrPort, string) Op {
	return func(_ netip.AddrPort, url string) Op {
		if strings.Contains(url, word) {
			return Hit
		}
		return Miss
	}
}

func TestQuery(t *testing.T) {
	a, b := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	b.Source = func(url string) (time.Duration, bool) { return 30 * time.Millisecond, strings.Contains(url, "known") }
	serve(t, a, nil)
	serve(t, b, func(from netip.AddrPort, url string) Op {
		if from != a.Addr() {
			t.Errorf("got a question from %v, want %v", from, a.Addr())
		}
		for _, o := range []Op{Hit, Miss, MissNoFetch, Denied, Err} {
			if strings.HasSuffix(url, "/"+o.String()) {
				return o
			}
		}
		return Miss
	})
	for _, want := range []Op{Hit, Miss, MissNoFetch, Denied, Err} {
		r, err := a.Query(t.Context(), b.Addr(), "http://known/"+want.String())
		if err != nil || r.Op != want || r.From != b.Addr() || !r.HasSource || r.Source != 30*time.Millisecond || r.RTT <= 0 {
			t.Errorf("got %+v, %v, want %v from %v", r, err, want, b.Addr())
		}
	}
	if r, err := a.Query(t.Context(), b.Addr(), "http://other/"); err != nil || r.HasSource {
		t.Errorf("got %+v, %v, want no round trip to the origin", r, err)
	}
	for _, url := range []string{"", "http://a b/", "http://a/\r\n", "http://a/\x00", strings.Repeat("u", MaxURL+1)} {
		if _, err := a.Query(t.Context(), b.Addr(), url); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%.20q: got %v, want it refused", url, err)
		}
	}
	if s := a.Stats(); s.Asked != 6 || s.Heard != 6 || s.Stray != 0 || s.Malformed != 0 {
		t.Errorf("asked: got %+v, want 6 of 6", s)
	}
	if s := b.Stats(); s.Queries != 6 || s.Answered != 6 || s.Hits != 1 || s.Denied != 1 {
		t.Errorf("answered: got %+v, want 6, 1 a hit, 1 refused", s)
	}
}

// TestMany has many questions open at once, answered in no order.
func TestMany(t *testing.T) {
	a, b := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	serve(t, a, nil)
	serve(t, b, holds("even"))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 20 {
				url, want := fmt.Sprintf("http://even/%d/%d", i, n), Hit
				if (i+n)%2 == 1 {
					url, want = fmt.Sprintf("http://odd/%d/%d", i, n), Miss
				}
				if r, err := a.Query(t.Context(), b.Addr(), url); err != nil || r.Op != want {
					t.Errorf("%s: got %v, %v, want %v", url, r.Op, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestStray has answers come that are nearly those that were asked for.
func TestStray(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1"), listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	serve(t, a, nil)
	replies := make(chan Reply, 10)
	if err := a.Ask(b.Addr(), "http://a/", func(r Reply) { replies <- r }); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, MaxMessage)
	n, _, err := b.pc.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parse(buf[:n])
	if err != nil || q.Op != Query || q.URL != "http://a/" || !q.WantSource {
		t.Fatalf("got %+v, %v, want the question", q, err)
	}
	for _, s := range []struct {
		by *Conn
		m  Message
	}{
		{c, Message{Op: Hit, Number: q.Number, URL: q.URL}},
		{b, Message{Op: Hit, Number: q.Number + 1, URL: q.URL}},
		{b, Message{Op: Hit, Number: q.Number + places, URL: q.URL}},
		{b, Message{Op: Hit, Number: q.Number, URL: "http://b/"}},
		{b, Message{Op: SourceEcho, Number: q.Number, URL: q.URL}},
		{b, Message{Op: HitObject, Number: q.Number, URL: q.URL, Object: []byte("object")}}, // this one counts
		{b, Message{Op: Miss, Number: q.Number, URL: q.URL}},
	} {
		if err := s.by.send(s.m, a.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	if r := <-replies; r.Op != Hit || r.From != b.Addr() {
		t.Errorf("got %+v, want the hit of %v", r, b.Addr())
	}
	serve(t, c, holds("x"))
	if _, err := a.Query(t.Context(), c.Addr(), "http://x/"); err != nil { // all before it has been read
		t.Fatal(err)
	}
	if s := a.Stats(); s.Stray != 6 || s.Heard != 2 || len(replies) != 0 {
		t.Errorf("got %+v and %d more answers, want 6 stray, 2 heard, none", s, len(replies))
	}
}

// TestSilent asks one that says nothing, and forgets the oldest questions.
func TestSilent(t *testing.T) {
	a, b := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	serve(t, a, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := a.Query(ctx, b.Addr(), "http://a/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	var heard bool
	first := Message{Op: Hit, Number: a.next + 1, URL: "http://first/"}
	if err := a.Ask(b.Addr(), first.URL, func(Reply) { heard = true }); err != nil {
		t.Fatal(err)
	}
	for range places {
		a.Ask(b.Addr(), "http://more/", func(Reply) {})
	}
	if a.heard(first, b.Addr()); heard {
		t.Errorf("got an answer to a question %d ago, want it forgotten", places)
	}
	if len(a.open) != places {
		t.Errorf("got %d places, want %d", len(a.open), places)
	}
}

// TestEcho sends a SECHO to a port that sends back what it gets.
func TestEcho(t *testing.T) {
	a, b := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	serve(t, a, nil)
	replies := make(chan Reply, 1)
	if err := a.Echo(b.Addr(), "http://a/", func(r Reply) { replies <- r }); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, MaxMessage)
	n, from, err := b.pc.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.pc.WriteToUDPAddrPort(buf[:n], from); err != nil {
		t.Fatal(err)
	}
	if r := <-replies; r.Op != SourceEcho || r.From != b.Addr() {
		t.Errorf("got %+v, want the echo", r)
	}
}

// TestMalformed sends what is no message, and goes on to serve.
func TestMalformed(t *testing.T) {
	a, b := listen(t, "127.0.0.1"), listen(t, "127.0.0.1")
	serve(t, a, nil)
	serve(t, b, holds("a"))
	for _, m := range [][]byte{nil, {1}, make([]byte, 20), make([]byte, 20000)} {
		if _, err := a.pc.WriteToUDPAddrPort(m, b.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := a.Query(t.Context(), b.Addr(), "http://a/"); err != nil || r.Op != Hit {
		t.Errorf("got %v, %v, want a hit", r.Op, err)
	}
	if s := b.Stats(); s.Malformed != 4 || s.Queries != 1 {
		t.Errorf("got %+v, want 4 malformed and a query", s)
	}
}

// TestLimit holds each address to its rate, and refusals to a hundredth of it.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit{rate: 10_000}
		a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
		count := func(a netip.Addr, d time.Duration, each float64) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Microsecond) {
				if l.take(a, time.Now(), each) {
					n++
				}
			}
			return n
		}
		if n := count(a, time.Second, 1); n != 11_000 && n != 10_999 {
			t.Errorf("got %d in the first second, want 10,000 and the 1,000 that may come at once", n)
		}
		if n := count(b, time.Second, 100); n != 110 && n != 109 {
			t.Errorf("got %d refusals of another, want 110", n)
		}
	})
}

// TestSpoofed has more addresses come than are held.
func TestSpoofed(t *testing.T) {
	l, now := limit{rate: 1000}, time.Now()
	var addr []netip.Addr
	for i := range maxPeers + 10 {
		addr = append(addr, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	for i, a := range addr {
		if got, want := l.take(a, now, 1), i < maxPeers; got != want {
			t.Fatalf("address %d: got %v, want %v", i, got, want)
		}
	}
	if len(l.by) > maxPeers || !l.take(addr[maxPeers], now.Add(time.Second), 1) || len(l.by) != 1 {
		t.Errorf("got %d held, want the idle forgotten for the new", len(l.by))
	}
}

// TestServeEnds has Serve return by each way it can.
func TestServeEnds(t *testing.T) {
	a := listen(t, "127.0.0.1")
	ctx, cancel := context.WithCancelCause(t.Context())
	end, why := make(chan error), errors.New("enough")
	go func() { end <- a.Serve(ctx, nil) }()
	cancel(why)
	if err := <-end; !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	b := listen(t, "127.0.0.1")
	go func() { end <- b.Serve(t.Context(), nil) }()
	b.Close()
	if err := <-end; err != nil {
		t.Errorf("closed: got %v, want nil", err)
	}
}

// BenchmarkQuery asks over loopback and answers in the same process.
func BenchmarkQuery(b *testing.B) {
	for _, c := range []int{1, 16} {
		b.Run(fmt.Sprintf("open=%d", c), func(b *testing.B) {
			from, to := listen(b, "127.0.0.1"), listen(b, "127.0.0.1")
			to.Rate = 1e9
			serve(b, from, nil)
			serve(b, to, holds("a"))
			benchmark(b, c, from, to.Addr())
		})
	}
}

// benchmark asks c at a time and tells the rate and the median round trip.
func benchmark(b *testing.B, c int, from *Conn, to netip.AddrPort) {
	took := make([]time.Duration, b.N)
	next := make(chan int, 1024)
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range c {
		wg.Go(func() {
			for i := range next {
				r, err := from.Query(b.Context(), to, "http://www.example.org/a/page.html")
				if err != nil || r.Op != Hit {
					b.Errorf("got %v, %v, want a hit", r.Op, err)
				}
				took[i] = r.RTT
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
	b.ReportMetric(float64(took[b.N/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[b.N*99/100].Nanoseconds()), "p99-ns")
}
