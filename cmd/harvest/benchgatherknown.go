package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather"
)

// replace is strings.NewReplacer, in one.
func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// known has a Gatherer learn of many URLs on many servers, then measures what
// holding them takes: one that begins anew, until it has counted its queue.
func (b *gatherBench) known(ctx context.Context, args []string, std std) (err error) {
	if len(args) > 0 {
		return usagef("known takes no arguments")
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	dir := filepath.Join(work, "gatherer")
	// Home pages are all asked for before any server has its second turn.
	conf := fmt.Sprintf("root url=%s hosts=%d urls=unlimited delay=10s\n", fakeHome(0), b.hosts)
	if err := b.begin(dir, conf); err != nil {
		return err
	}
	rows := [][]string{{"run", "URLs", "servers", "s", "cpu s", "µs a URL", "until it works, s", "peak MB", "resident MB", "on disk MB", "bytes a URL"}}
	for _, name := range []string{"learn", "start"} {
		r, err := b.fakeChild(ctx, name, dir, std)
		if err != nil {
			return err
		}
		urls := number(r.count, "urls")
		cpu := (r.user + r.system).Seconds()
		rows = append(rows, []string{name, strconv.Itoa(urls), strconv.Itoa(number(r.count, "servers")), fmt.Sprintf("%.1f", r.wall.Seconds()), fmt.Sprintf("%.1f", cpu),
			fmt.Sprintf("%.1f", cpu*1e6/float64(max(urls, 1))), fmt.Sprintf("%.1f", micro(r.count, "asked").Seconds()), strconv.Itoa(r.peak >> 10), strconv.Itoa(number(r.count, "resident") >> 10),
			fmt.Sprintf("%.0f", float64(r.bytes)/1e6), fmt.Sprintf("%.0f", float64(r.bytes)/float64(max(urls, 1)))})
	}
	table(std.out, rows)
	return nil
}

// fakeChild runs the process that fake is.
func (b *gatherBench) fakeChild(ctx context.Context, name, dir string, std std) (gathering, error) {
	return b.process(ctx, name, dir, []string{"bench", "gather", "fake", "--hosts", strconv.Itoa(b.hosts), "--urls", strconv.Itoa(b.urls)}, std)
}

// A fakeWeb answers for servers that there are not: their home pages have links
// to the next servers, and to pages of their own.
type fakeWeb struct {
	hosts, links int
	learnt       chan struct{} // closed when every home page was asked for
	first        chan struct{} // closed at the first request

	mu    sync.Mutex
	homes map[string]bool
}

func fakeHome(i int) string { return fmt.Sprintf("http://h%06d.example/", i) }

func (f *fakeWeb) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		close(f.first)
		f.first = nil
	}
	status, body := http.StatusNotFound, ""
	if req.URL.Path == "/" {
		status, body = http.StatusOK, f.home(req.URL.Hostname())
	}
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// home makes up a home page. mu is held.
func (f *fakeWeb) home(host string) string {
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(host, "h"), ".example"))
	if err != nil {
		return ""
	}
	if !f.homes[host] {
		f.homes[host] = true
		if len(f.homes) == f.hosts {
			close(f.learnt)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<title>Home of %s</title>", host)
	for k := 4*i + 1; k <= 4*i+4 && k < f.hosts; k++ {
		fmt.Fprintf(&b, "<a href=%s>x</a>", fakeHome(k))
	}
	for k := range f.links {
		fmt.Fprintf(&b, "<a href=/documents/of/%d/page-%d.html>x</a>", k%97, k)
	}
	return b.String()
}

// fake is the process: a Gatherer of a web that is made up. One that knows
// nothing yet learns all of it; one that knows it begins where it was.
func (b *gatherBench) fake(ctx context.Context, args []string, std std) (err error) {
	if len(args) != 1 {
		return usagef("name the folder of one Gatherer")
	}
	web := &fakeWeb{hosts: b.hosts, links: max(b.urls/b.hosts-1, 0), learnt: make(chan struct{}), first: make(chan struct{}), homes: make(map[string]bool)}
	asked, learn := web.first, true
	if _, err := os.Stat(filepath.Join(args[0], "store")); err == nil {
		learn = false
	}
	lg := slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	from, begin := processorTime(), time.Now()
	g, err := gather.Open(args[0], benchName, lg, gather.Options{Version: version, Transport: web})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	t := &trial{root: g.Files(), std: std}
	if err := t.write(ctx, "ctl", "run"); err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended) // waited for below
		g.Run(run)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if learn {
		err = until(ctx, asked)
	} else {
		err = t.queued(ctx) // no server may be due yet
	}
	if err != nil {
		return err
	}
	waited := time.Since(begin)
	if learn {
		if err := until(ctx, web.learnt); err != nil {
			return err
		}
	}
	if err := t.write(ctx, "ctl", "stop"); err != nil { // what is in hand is kept
		return err
	}
	used := processorTime().sub(from)
	peak, resident := processMemory("self", "VmHWM"), processMemory("self", "VmRSS")
	wall := time.Since(begin)
	urls, err := lines(ctx, t, "queue")
	if err != nil {
		return err
	}
	servers, err := lines(ctx, t, "hosts")
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out, ndb.Format(ndb.Of("wall", wall.Microseconds()), ndb.Of("asked", waited.Microseconds()), ndb.Of("user", used.user.Microseconds()),
		ndb.Of("system", used.system.Microseconds()), ndb.Of("peak", peak), ndb.Of("resident", resident), ndb.Of("urls", urls), ndb.Of("servers", servers)))
	return nil
}

// queued waits until the Gatherer has counted what it is to do.
func (t *trial) queued(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for number(readStatus(ctx, t.root), "queued") == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func until(ctx context.Context, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lines counts those of a table.
func lines(ctx context.Context, t *trial, name string) (n int, err error) {
	f, err := walkFile(ctx, t.root, name)
	if err != nil {
		return 0, err
	}
	return n, copyFile(ctx, writerFunc(func(p []byte) {
		n += strings.Count(string(p), "\n")
	}), f)
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
