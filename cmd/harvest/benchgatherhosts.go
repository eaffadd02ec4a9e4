package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"harvest/gather/gathertest"
)

// world gathers many small hosts politely; they count what was not.
func (b *gatherBench) world(ctx context.Context, args []string, std std) (err error) {
	if len(args) > 0 {
		return usagef("hosts takes no arguments")
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	w := &gathertest.World{Hosts: b.hosts, Pages: b.pages, Slow: 2 * b.delay.Truncate(time.Second)}
	if err := w.Start(ctx); err != nil {
		return fmt.Errorf("%d hosts: %w; with fewer files open, take fewer --hosts", b.hosts, err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	conf := fmt.Sprintf("root url=%s hosts=%d delay=%s urls=unlimited\n", w.Home(0), b.hosts, b.delay)
	dir := filepath.Join(work, "gatherer")
	if err := b.begin(dir, conf); err != nil {
		return err
	}
	r, err := b.child(ctx, "first", dir, std)
	if err != nil {
		return err
	}
	s := w.Seen(b.delay)
	r.counts(std.out)
	fmt.Fprintln(std.out)
	table(std.out, [][]string{
		gatherHead("pages", "hosts", "requests", "robots.txt", "too early", "two at once", "shortest gap"),
		append(r.row(s.Pages), strconv.Itoa(s.Hosts), strconv.Itoa(s.Requests), strconv.Itoa(s.Robots), strconv.Itoa(s.Early),
			strconv.Itoa(s.AtOnce), s.Shortest.Round(time.Millisecond).String()),
	})
	return nil
}

// traps gathers what is behind traps.html, until the Gatherer ends by itself or
// has had long enough.
func (b *gatherBench) traps(ctx context.Context, args []string, std std) (err error) {
	if len(args) > 0 {
		return usagef("traps takes no arguments")
	}
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	n, err := emptySite(filepath.Join(work, "site"))
	if err != nil {
		return err
	}
	dir := filepath.Join(work, "gatherer")
	if err := b.begin(dir, "root url=http://"+n.addr+"/traps.html delay=0s urls=unlimited\n"); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	r, log, err := b.visitSite(limited, n, "first", dir, std)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(std.out, "did not end by itself in %s: %d requests\n", b.most, log.requests)
		return nil
	}
	if err != nil {
		return err
	}
	r.counts(std.out)
	for _, p := range []string{"/trap/", "/busy", "/loop", "/slow", "/soft404/"} {
		fmt.Fprintf(std.out, "%s: %d requests, %s\n", p, log.count(p), log.rest(p))
	}
	fmt.Fprintln(std.out)
	table(std.out, [][]string{siteHead(), append(r.row(log.pages), log.row()...)})
	return nil
}
