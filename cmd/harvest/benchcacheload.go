package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A cacheOrigin is the server behind the caches: /1k, /100k and /10m, /u/N of 1 KB
// for any N, and /slow/N of 1 MB over as long as it is told, all good for a day.
type cacheOrigin struct {
	l     net.Listener
	drip  time.Duration
	heads map[string][]byte // of the answer, by the first part of the path
	body  []byte            // of the largest; the others are its beginning
	asked atomic.Int64
	slow  atomic.Int64
	done  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

var cacheSizes = map[string]int{"1k": 1 << 10, "u": 1 << 10, "100k": 100 << 10, "10m": 10 << 20, "slow": 1 << 20}

func newCacheOrigin(drip time.Duration) (*cacheOrigin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &cacheOrigin{l: l, drip: drip, heads: make(map[string][]byte), conns: make(map[net.Conn]bool)}
	o.body = make([]byte, cacheSizes["10m"])
	for i := range o.body {
		o.body[i] = byte(i * 7 / 5)
	}
	for name, n := range cacheSizes {
		o.heads[name] = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n"+
			"Last-Modified: Mon, 02 Nov 2026 00:00:00 GMT\r\nCache-Control: public, max-age=86400\r\n\r\n", time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), n)
	}
	o.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns[c] = true
			o.mu.Unlock()
			o.done.Go(func() { o.serve(c) })
		}
	})
	return o, nil
}

func (o *cacheOrigin) addr() string { return o.l.Addr().String() }

func (o *cacheOrigin) close() {
	o.l.Close()
	o.mu.Lock()
	for c := range o.conns {
		c.Close()
	}
	o.mu.Unlock()
	o.done.Wait()
}

func (o *cacheOrigin) serve(c net.Conn) {
	defer func() {
		c.Close()
		o.mu.Lock()
		delete(o.conns, c)
		o.mu.Unlock()
	}()
	body := o.body
	for r := bufio.NewReaderSize(c, 8<<10); ; {
		name, err := readCachePath(r)
		if err != nil {
			return
		}
		o.asked.Add(1)
		head, n := o.heads[name], cacheSizes[name]
		switch {
		case head == nil:
			_, err = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		case name == "slow":
			o.slow.Add(1)
			err = o.sendSlowly(c, head, body[:n])
		default:
			b := net.Buffers{head, body[:n]}
			_, err = b.WriteTo(c)
		}
		if err != nil {
			return
		}
	}
}

// sendSlowly sends a body in twenty pieces.
func (o *cacheOrigin) sendSlowly(c net.Conn, head, body []byte) error {
	if _, err := c.Write(head); err != nil {
		return err
	}
	t := time.NewTicker(o.drip / 20)
	defer t.Stop()
	for piece := range slices.Chunk(body, (len(body)+19)/20) {
		if _, err := c.Write(piece); err != nil {
			return err
		}
		<-t.C
	}
	return nil
}

// readCachePath reads the head of a request and returns the first part of its path.
func readCachePath(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	f := bytes.Fields(line)
	if len(f) < 2 {
		return "", errors.New("no request")
	}
	path := bytes.TrimPrefix(f[1], []byte("/"))
	name, _, _ := bytes.Cut(path, []byte("/"))
	first := string(name)
	for {
		if line, err = r.ReadSlice('\n'); err != nil || len(line) <= 2 {
			return first, err
		}
	}
}

// A cacheLoad asks one cache from some connections at once.
type cacheLoad struct {
	addr   string // of the cache
	base   string // http://HOST:PORT of the origin, for a forward proxy
	host   string
	conns  int
	during time.Duration
	count  int64                 // in place of during: so many requests
	path   func(w, i int) string // of the ith request of connection w; of all connections if there is a count
}

// A cacheLoaded is what came of it.
type cacheLoaded struct {
	requests, failed, bytes int64
	took                    time.Duration
	times                   latencies
}

func (r *cacheLoaded) rate() float64 { return float64(r.requests) / r.took.Seconds() }

// latencies counts durations in buckets of a sixteenth of their size.
type latencies [64 * 16]int64

func (l *latencies) add(d time.Duration) {
	n := max(uint64(d), 16)
	e := bits.Len64(n) - 5
	l[e*16+int(n>>e)-16]++
}

// quantile is the upper end of the bucket that a share of them reaches.
func (l *latencies) quantile(q float64) time.Duration {
	var all, sum int64
	for _, n := range l {
		all += n
	}
	for i, n := range l {
		if sum += n; all > 0 && float64(sum) >= q*float64(all) {
			return time.Duration((i%16 + 17) << (i / 16))
		}
	}
	return 0
}

func (l *cacheLoad) run(ctx context.Context) cacheLoaded {
	begin := time.Now()
	var left atomic.Int64
	left.Store(l.count)
	until := begin.Add(l.during)
	more := func(i int) (int, bool) {
		if l.count > 0 {
			n := left.Add(-1)
			return int(l.count - 1 - n), n >= 0 && ctx.Err() == nil
		}
		return i + 1, time.Now().Before(until) && ctx.Err() == nil
	}
	all := make([]cacheLoaded, l.conns)
	var wg sync.WaitGroup
	for w := range l.conns {
		wg.Go(func() { l.worker(w, &all[w], more) })
	}
	wg.Wait()
	sum := cacheLoaded{took: time.Since(begin)}
	for i := range all {
		sum.requests += all[i].requests
		sum.failed += all[i].failed
		sum.bytes += all[i].bytes
		for j, n := range all[i].times {
			sum.times[j] += n
		}
	}
	return sum
}

// worker asks over one connection, made again when it ends.
func (l *cacheLoad) worker(w int, r *cacheLoaded, more func(int) (int, bool)) {
	var c net.Conn
	var in *bufio.Reader
	var out []byte
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for i, ok := more(-1); ok; i, ok = more(i) {
		begin := time.Now()
		if c == nil {
			var err error
			if c, err = net.DialTimeout("tcp", l.addr, 10*time.Second); err != nil {
				r.failed++
				c = nil
				continue
			}
			in = bufio.NewReaderSize(c, 64<<10)
		}
		out = append(append(append(out[:0], "GET "...), l.base...), l.path(w, i)...)
		out = append(append(append(out, " HTTP/1.1\r\nHost: "...), l.host...), "\r\n\r\n"...)
		c.SetDeadline(begin.Add(30 * time.Second))
		_, err := c.Write(out)
		var n int64
		var ok bool
		if err == nil {
			n, ok, err = readCacheAnswer(in, nil)
		}
		if err != nil || !ok {
			r.failed++
			c.Close()
			c = nil
			continue
		}
		r.requests++
		r.bytes += n
		r.times.add(time.Since(begin))
	}
}

// readCacheAnswer reads an answer with a length, and tells when its first byte of
// body came, if anyone asks.
func readCacheAnswer(in *bufio.Reader, first func()) (n int64, ok bool, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, false, err
	}
	ok = len(line) > 12 && string(line[9:12]) == "200"
	n = -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return 0, false, err
		}
		if len(line) <= 2 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && (line[0]|0x20) == 'c' && strings.EqualFold(string(line[:len(name)]), name) {
			if n, err = strconv.ParseInt(strings.TrimSpace(string(line[len(name):])), 10, 64); err != nil {
				return 0, false, err
			}
		}
	}
	if n < 0 {
		return 0, false, errors.New("no length")
	}
	if first != nil && n > 0 {
		if _, err := in.Peek(1); err != nil {
			return 0, false, err
		}
		first()
	}
	for left := n; left > 0; {
		d, err := in.Discard(int(min(left, 1<<20)))
		left -= int64(d)
		if err != nil {
			return 0, false, err
		}
	}
	return n, ok, nil
}
