package gather

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"harvest/gather/crawl"
)

// cpu is what the process has used.
func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// benchTrees are real documentation, if it is installed.
var benchTrees = map[string]string{
	"javadoc": "file:///usr/share/doc/openjdk-17-jre-headless/api",
	"python":  "file:///usr/share/doc/python3.11/html",
	"doc":     "file:///usr/share/doc",
}

// BenchmarkTree gathers a file tree, and then looks at it again unchanged.
func BenchmarkTree(b *testing.B) {
	for name, root := range benchTrees {
		b.Run("first/"+name, func(b *testing.B) { benchTree(b, root, false) })
		b.Run("again/"+name, func(b *testing.B) { benchTree(b, root, true) })
	}
}

// BenchmarkSite gathers the site that HARVEST_BENCH_SITE names, whose owner is
// you: without a delay.
func BenchmarkSite(b *testing.B) {
	root := os.Getenv("HARVEST_BENCH_SITE")
	if root == "" {
		b.Skip("HARVEST_BENCH_SITE is not set")
	}
	for b.Loop() {
		g, err := Open(b.TempDir(), "bench", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.setConfig(b.Context(), "root url="+root+" delay=0s urls=unlimited\n"); err != nil {
			b.Fatal(err)
		}
		for _, again := range []string{"first", "again"} {
			v := g.newVisit(g.conf)
			before, start := cpu(), time.Now()
			if err := g.db.Visit(context.Background(), v.plan, g.rt, v, &v.counts); err != nil {
				b.Fatal(err)
			}
			c := &v.counts
			n := float64(c.Fetched.Load() + c.Unchanged.Load())
			b.ReportMetric(n/time.Since(start).Seconds(), again+"-pages/s")
			b.ReportMetric(float64((cpu()-before).Microseconds())/n, again+"-cpu-µs/page")
			b.Logf("%s: fetched %d, unchanged %d, failed %d, excluded %d, %d MB", again, c.Fetched.Load(), c.Unchanged.Load(),
				c.Failed.Load(), c.Excluded.Load(), c.In.Load()/1e6)
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchTree(b *testing.B, root string, again bool) {
	if _, err := os.Stat(root[len("file://"):]); err != nil {
		b.Skip(err)
	}
	var files, in int64
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		g, err := Open(b.TempDir(), "bench", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.setConfig(b.Context(), "root url="+root+"\n"); err != nil {
			b.Fatal(err)
		}
		visit := func() *crawl.Counts {
			v := g.newVisit(g.conf)
			if err := g.db.Visit(context.Background(), v.plan, g.rt, v, &v.counts); err != nil {
				b.Fatal(err)
			}
			return &v.counts
		}
		if again {
			visit()
		}
		before := cpu()
		b.StartTimer()
		c := visit()
		b.StopTimer()
		used += cpu() - before
		files += c.Fetched.Load() + c.Unchanged.Load()
		in += c.In.Load()
		if c.Fetched.Load() != 0 == again || c.Failed.Load() != 0 {
			b.Fatalf("fetched %d, failed %d", c.Fetched.Load(), c.Failed.Load())
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(files)/b.Elapsed().Seconds(), "files/s")
	b.ReportMetric(float64(used.Microseconds())/float64(files), "cpu-µs/file")
	b.ReportMetric(float64(in)/1e6/b.Elapsed().Seconds(), "MB/s")
}
