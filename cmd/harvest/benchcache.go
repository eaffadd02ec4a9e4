package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// cacheBench is harvest bench cache: caches side by side before one server.
type cacheBench struct {
	peers   bool
	only    []string
	cells   []string
	rounds  int
	during  time.Duration
	conns   int
	keys    int
	restart int
	work    string

	origin *cacheOrigin
}

// cacheCells are the measurements, in their order.
var cacheCells = []string{"hit", "light", "random", "100k", "10m", "miss", "memory", "collapse"}

func benchCacheCommand() command {
	b := cacheBench{}
	return command{"bench cache", "[--peers] [--cells CELL,…] [--restart N]", "ask object caches on loopback for what they hold and for what they do not", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.BoolVar(&b.peers, "peers", false, "squid, varnish and nginx too, those that are installed")
		fl.StringSliceVar(&b.only, "only", nil, "caches to measure, of those that --peers names")
		fl.StringSliceVar(&b.cells, "cells", cacheCells, "what to measure")
		fl.IntVar(&b.rounds, "rounds", 3, "times each is measured; the median counts")
		fl.DurationVar(&b.during, "time", 3*time.Second, "for each measurement")
		fl.IntVar(&b.conns, "connections", 64, "at once; 8 for 10 MB, 4 for light")
		fl.IntVar(&b.keys, "keys", 100_000, "objects for random and memory")
		fl.IntVar(&b.restart, "restart", 0, "fill a cache with so many objects and start it anew, after SIGTERM and after SIGKILL")
		fl.StringVar(&b.work, "work", "", "folder for what is made, left there (default: a temporary one)")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) > 0 || b.rounds < 1 || b.conns < 1 || b.keys < 1 || b.during <= 0 {
				return usagef("takes no arguments; a round, a connection and a key at least")
			}
			for _, c := range b.cells {
				if !slices.Contains(cacheCells, c) {
					return usagef("--cells: '%s' is none of %s", c, strings.Join(cacheCells, " "))
				}
			}
			return b.run(ctx, std)
		}
	}}
}

func (b *cacheBench) run(ctx context.Context, std std) (err error) {
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if b.origin, err = newCacheOrigin(2 * time.Second); err != nil {
		return err
	}
	defer b.origin.close()
	peers, err := b.start(ctx, work, std)
	for _, p := range peers {
		defer p.stop(syscall.SIGTERM)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%d rounds of %v, %d connections; %d objects of 1 KB for random and memory\n\n", b.rounds, b.during, b.conns, b.keys)
	if b.wants("memory") || b.wants("random") {
		if err := b.fill(ctx, peers, std); err != nil {
			return err
		}
	}
	for _, cell := range b.cells {
		if cell == "memory" || cell == "collapse" {
			continue
		}
		if err := b.cell(ctx, cell, peers, std); err != nil {
			return err
		}
	}
	if b.wants("collapse") {
		if err := b.collapse(ctx, peers, std); err != nil {
			return err
		}
	}
	if b.restart > 0 {
		return b.restarts(ctx, work, std)
	}
	return nil
}

func (b *cacheBench) wants(cell string) bool { return slices.Contains(b.cells, cell) }

// start starts those that are to be measured.
func (b *cacheBench) start(ctx context.Context, work string, std std) (up []*cachePeer, err error) {
	for _, p := range cachePeers() {
		switch {
		case len(b.only) > 0 && !slices.Contains(b.only, p.name), p.program != "" && !b.peers && len(b.only) == 0:
			continue
		}
		if _, err := p.installed(); err != nil {
			fmt.Fprintf(std.err, "harvest: bench cache: %v: it is left out\n", err)
			continue
		}
		if err := p.start(ctx, work, b.origin.addr(), std); err != nil {
			return up, err
		}
		up = append(up, p)
	}
	if len(up) == 0 {
		err = usagef("--only: there is nothing to measure")
	}
	return up, err
}

// load is what is asked of a peer.
func (b *cacheBench) load(p *cachePeer) *cacheLoad {
	l := &cacheLoad{addr: p.addr, host: b.origin.addr(), conns: b.conns, during: b.during}
	if p.forward {
		l.base = "http://" + b.origin.addr()
	}
	return l
}

// fill asks for each object once, and tells what that costs in memory.
func (b *cacheBench) fill(ctx context.Context, peers []*cachePeer, std std) error {
	rows := [][]string{{"memory", "MB before", "MB full", "bytes an object", "filled a second", "failed"}}
	for _, p := range peers {
		before := p.memory()
		l := b.load(p)
		l.count = int64(b.keys)
		l.path = func(_, i int) string { return fmt.Sprintf("/u/%d", i) }
		r := l.run(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Second) // for what it still writes
		full := p.memory()
		rows = append(rows, []string{p.name, fmt.Sprint(before >> 20), fmt.Sprint(full >> 20), fmt.Sprint((full - before) / int64(b.keys)), fmt.Sprintf("%.0f", r.rate()), fmt.Sprint(r.failed)})
	}
	table(std.out, rows)
	fmt.Fprintln(std.out)
	return nil
}

// A cacheCell is one measurement of one peer.
type cacheCell struct {
	rate, mbs, cpu, p50, p99 float64 // µs, of the last three
	failed                   int64
}

// cell measures all peers in turn, round after round.
func (b *cacheBench) cell(ctx context.Context, cell string, peers []*cachePeer, std std) error {
	got := make(map[string][]cacheCell)
	for round := range b.rounds {
		for _, p := range peers {
			got[p.name] = append(got[p.name], b.one(ctx, cell, round, p))
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{cell, "requests/s", "MB/s", "cpu µs", "p50 µs", "p99 µs", "failed"}}
	for _, p := range peers {
		m := got[p.name]
		med := func(f func(cacheCell) float64) string {
			all := make([]float64, len(m))
			for i := range m {
				all[i] = f(m[i])
			}
			slices.Sort(all)
			return fmt.Sprintf("%.4g", all[len(all)/2])
		}
		var failed int64
		for _, c := range m {
			failed += c.failed
		}
		rows = append(rows, []string{p.name, med(func(c cacheCell) float64 { return c.rate }), med(func(c cacheCell) float64 { return c.mbs }),
			med(func(c cacheCell) float64 { return c.cpu }), med(func(c cacheCell) float64 { return c.p50 }), med(func(c cacheCell) float64 { return c.p99 }), fmt.Sprint(failed)})
	}
	table(std.out, rows)
	fmt.Fprintln(std.out)
	return nil
}

// one asks a peer in one way for a while.
func (b *cacheBench) one(ctx context.Context, cell string, round int, p *cachePeer) cacheCell {
	l := b.load(p)
	path := map[string]string{"hit": "/1k", "light": "/1k", "100k": "/100k", "10m": "/10m"}[cell]
	l.path = func(int, int) string { return path }
	switch cell {
	case "light":
		l.conns = 4
	case "10m":
		l.conns = min(8, b.conns)
	case "random":
		l.path = func(int, int) string { return fmt.Sprintf("/u/%d", rand.IntN(b.keys)) }
	case "miss":
		tag := rand.Uint32()
		l.path = func(w, i int) string { return fmt.Sprintf("/u/m%d-%x-%d-%d", round, tag, w, i) }
	}
	if path != "" { // it has it, and had it asked for since
		warm := *l
		warm.conns, warm.count = 1, 3
		warm.run(ctx)
	}
	before := p.cpu()
	r := l.run(ctx)
	used := p.cpu() - before
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return cacheCell{rate: r.rate(), mbs: float64(r.bytes) / r.took.Seconds() / 1e6, cpu: us(used) / float64(max(r.requests, 1)),
		p50: us(r.times.quantile(.5)), p99: us(r.times.quantile(.99)), failed: r.failed}
}

// collapse has twenty clients, 20 ms apart, ask for one object that takes the
// origin two seconds.
func (b *cacheBench) collapse(ctx context.Context, peers []*cachePeer, std std) error {
	const clients, apart = 20, 20 * time.Millisecond
	rows := [][]string{{"collapse", "fetches", "late first byte ms", "failed"}}
	for _, p := range peers {
		before := b.origin.slow.Load()
		path := fmt.Sprintf("/slow/%d", rand.Uint32())
		var mu sync.Mutex
		var firsts []time.Duration
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * apart)
				first, err := b.firstByte(ctx, p, path)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && i >= clients/2 { // when the first has had some
					firsts = append(firsts, first)
				} else if err != nil {
					firsts = append(firsts, -1)
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return err
		}
		failed := 0
		firsts = slices.DeleteFunc(firsts, func(d time.Duration) bool {
			if d < 0 {
				failed++
			}
			return d < 0
		})
		slices.Sort(firsts)
		late := "-"
		if len(firsts) > 0 {
			late = fmt.Sprintf("%.1f", firsts[len(firsts)/2].Seconds()*1e3)
		}
		rows = append(rows, []string{p.name, fmt.Sprint(b.origin.slow.Load() - before), late, fmt.Sprint(failed)})
	}
	table(std.out, rows)
	fmt.Fprintln(std.out)
	return nil
}

// firstByte asks for an object, and tells how long its first byte took.
func (b *cacheBench) firstByte(ctx context.Context, p *cachePeer, path string) (first time.Duration, err error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(60 * time.Second))
	begin := time.Now()
	l := b.load(p)
	if _, err := fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: %s\r\n\r\n", l.base, path, l.host); err != nil {
		return 0, err
	}
	n, ok, err := readCacheAnswer(bufio.NewReaderSize(c, 64<<10), func() { first = time.Since(begin) })
	if err == nil && (!ok || n != int64(cacheSizes["slow"])) {
		err = errors.New("another answer")
	}
	return first, err
}

// restarts fills a cache of ours, ends it, and tells how long it takes until it
// serves what it had.
func (b *cacheBench) restarts(ctx context.Context, work string, std std) error {
	p := &cachePeer{name: "restart", forward: true, conf: oursConf + "memory=64M disk=64G\n"}
	if err := p.start(ctx, work, b.origin.addr(), std); err != nil {
		return err
	}
	defer func() { p.stop(os.Kill) }()
	l := b.load(p)
	l.count = int64(b.restart)
	l.path = func(_, i int) string { return fmt.Sprintf("/u/r%d", i) }
	empty := p.memory()
	r := l.run(ctx)
	fmt.Fprintf(std.out, "restart: %d objects in %.1f s (%.0f a second), %d failed, %d B of memory an object\n", b.restart, r.took.Seconds(), r.rate(), r.failed, (p.memory()-empty-64<<20)/int64(b.restart))
	rows := [][]string{{"restart", "first answer ms", "had", "of asked", "MB after"}}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if sig == syscall.SIGKILL {
			time.Sleep(2 * time.Second) // what was written is not the newest any more
		}
		p.stop(sig)
		begin := time.Now()
		if err := p.start(ctx, work, b.origin.addr(), std); err != nil {
			return err
		}
		took := time.Since(begin)
		before := b.origin.asked.Load()
		l := b.load(p)
		l.count = min(10_000, int64(b.restart))
		l.path = func(int, int) string { return fmt.Sprintf("/u/r%d", rand.IntN(b.restart)) }
		got := l.run(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		missed := b.origin.asked.Load() - before
		rows = append(rows, []string{cmp.Or(map[syscall.Signal]string{syscall.SIGTERM: "after SIGTERM"}[sig], "after SIGKILL"), fmt.Sprintf("%.0f", took.Seconds()*1e3),
			fmt.Sprint(got.requests - missed), fmt.Sprint(l.count), fmt.Sprint(p.memory() >> 20)})
	}
	table(std.out, rows)
	return nil
}
