package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/gather/soif"
)

// prose is the text of comments in the Go distribution, which is English, a
// line each.
func prose(tb testing.TB, limit int) [][]byte {
	var lines [][]byte
	size := 0
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skipf("go env GOROOT: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/testdata/") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		for line := range bytes.Lines(b) {
			if text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("// ")); ok && len(text) > 40 {
				lines = append(lines, bytes.Clone(text)) // and not the file
				size += len(text)
			}
		}
		if size > limit {
			return filepath.SkipAll
		}
		return nil
	})
	if len(lines) < 1000 {
		tb.Skip("no source of the Go distribution to take text from")
	}
	return lines
}

// A corpus makes objects of about 2 KB: a page's URL and attributes, and ten to
// thirty lines of text that stand together somewhere in the prose.
type corpus struct {
	lines [][]byte
	r     *rand.Rand
	n     int
}

func (c *corpus) next() Change {
	c.n++
	url := fmt.Sprintf("http://www%d.example.org/docs/%s/%x.html", c.r.IntN(1000), word(c.line()), c.n*7919)
	o := soif.Object{Type: "FILE", URL: url}
	now := time.Now().Unix()
	add := func(name, value string) { o.Add(name, []byte(value)) }
	add("Title", string(c.line()))
	add("Type", "HTML")
	add("Update-Time", strconv.FormatInt(now, 10))
	add("Last-Modification-Time", strconv.FormatInt(now-int64(c.r.IntN(1e7)), 10))
	add("Time-to-Live", "2592000")
	add("Refresh-Rate", "604800")
	add("Gatherer-Name", "bench")
	add("MD5", fmt.Sprintf("%016x%016x", c.r.Uint64(), c.r.Uint64()))
	var text []byte
	at := c.r.IntN(len(c.lines) - 60)
	for size := 1100 + c.r.IntN(1000); len(text) < size; at = (at + 1) % len(c.lines) {
		text = append(append(text, c.lines[at]...), '\n')
	}
	add("File-Size", strconv.Itoa(4*len(text)))
	o.Add("Full-Text", text)
	return Change{Op: soif.Update, OID: ID(url, "bench"), Body: o.Append(nil)}
}

func (c *corpus) line() []byte { return c.lines[c.r.IntN(len(c.lines))] }

func word(line []byte) string {
	w, _, _ := bytes.Cut(line, []byte(" "))
	return strings.Map(func(r rune) rune {
		if r < 'A' || r > 'z' {
			return -1
		}
		return r
	}, string(w))
}

// memory returns figures of /proc/self/status in bytes.
func memory(field string) float64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var n float64
		if rest, ok := strings.CutPrefix(sc.Text(), field+":"); ok {
			fmt.Sscan(rest, &n)
			return n * 1024
		}
	}
	return 0
}

// BenchmarkStore loads HARVEST_OBJECTS objects (100,000) of 2 KB in calls of
// 500, and then measures what the store has to do with that many in it. Each
// figure is a metric of its own; ns/op means nothing.
//
//	HARVEST_OBJECTS=1000000 go test -run '^$' -bench Store -benchtime 1x ./gather/store
func BenchmarkStore(b *testing.B) {
	n := 100_000
	if v, err := strconv.Atoi(os.Getenv("HARVEST_OBJECTS")); err == nil {
		n = v
	}
	b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
		for range b.N {
			benchStore(b, n)
		}
	})
}

func benchStore(b *testing.B, n int) {
	c := &corpus{lines: prose(b, 8<<20), r: rand.New(rand.NewPCG(1, 2))}
	dir := b.TempDir()
	s := open(b, dir, Options{})
	defer func() { shut(b, s) }()

	// The objects are made in advance of each call and not timed.
	var spent, burnt time.Duration
	peak := 0.0
	batch := make([]Change, 500)
	var some []OID
	for i := 0; i < n; i += len(batch) {
		for j := range batch {
			batch[j] = c.next()
		}
		some = append(some, batch[0].OID)
		start, used := time.Now(), cpuTime()
		apply(b, s, batch...)
		spent += time.Since(start)
		burnt += cpuTime() - used
		if i%10000 == 0 {
			peak = max(peak, memory("VmRSS"))
		}
	}
	start := time.Now()
	if err := s.flush(); err != nil {
		b.Fatal(err)
	}
	spent += time.Since(start)
	st, err := s.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/spent.Seconds(), "load-objects/s")
	b.ReportMetric(float64(burnt.Microseconds())/float64(n), "load-cpu-µs/object")
	b.ReportMetric(peak/1e6, "load-peak-RSS-MB")
	b.ReportMetric(float64(st.Bytes)/float64(n), "bytes/object")
	b.ReportMetric(100*float64(diskUsage(b, dir))/float64(st.Bytes), "du-%")
	index, _ := os.Stat(filepath.Join(dir, indexName))
	b.ReportMetric(100*float64(index.Size())/float64(st.Bytes), "index-%")

	timed := func(unit string, times int, f func(i int)) {
		start := time.Now()
		for i := range times {
			f(i)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/float64(times), unit)
	}
	timed("digest-first-µs", 1, func(int) { s.Digest("") })
	timed("get-µs", 5000, func(i int) {
		if _, _, err := s.Get(some[(i*7919)%len(some)]); err != nil {
			b.Fatal(err)
		}
	})
	timed("stat-µs", 5000, func(i int) {
		if _, err := s.Stat(some[(i*7919)%len(some)]); err != nil {
			b.Fatal(err)
		}
	})
	timed("apply-one-µs", 50, func(int) { apply(b, s, c.next()) })
	// What since/TIME asks, of which the last hundred changes are later: as a
	// minute after the load, when little has changed since.
	at := s.Cursor()
	for range 100 {
		apply(b, s, c.next())
	}
	timed("since-100-µs", 20, func(int) {
		var w bytes.Buffer
		if err := s.WriteSince(ctx, &w, at); err != nil {
			b.Fatal(err)
		}
	})
	timed("cursor-of-time-µs", 20, func(int) {
		if _, err := s.ParseCursor(time.Now().Add(-60 * time.Second).UTC().Format(time.RFC3339)); err != nil {
			b.Fatal(err)
		}
	})
	timed("digest-again-µs", 1, func(int) { s.Digest("") })
	timed("list-256-of-url-µs", 20, func(int) {
		k := 0
		for _, err := range s.Names(ctx, "http", "") {
			if err != nil {
				b.Fatal(err)
			}
			if k++; k == 256 {
				break
			}
		}
	})
	timed("soif.zst-µs", 1, func(int) {
		var w countWriter
		if err := s.WriteZstd(context.Background(), &w); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100*float64(w)/float64(st.Bytes), "soif.zst-%")
	})
	b.ReportMetric(memory("VmHWM")/1e6, "peak-RSS-MB")
	start = time.Now()
	shut(b, s)
	s = open(b, dir, Options{})
	b.ReportMetric(float64(time.Since(start).Microseconds()), "reopen-µs")
	shut(b, s)
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		b.Fatal(err)
	}
	start = time.Now()
	s = open(b, dir, Options{})
	b.ReportMetric(time.Since(start).Seconds(), "new-index-s")
}

type countWriter int64

func (w *countWriter) Write(p []byte) (int, error) {
	*w += countWriter(len(p))
	return len(p), nil
}

// diskUsage is what du says: blocks, not lengths.
func diskUsage(tb testing.TB, dir string) (n int64) {
	files, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			tb.Fatal(err)
		}
		n += blocks(info)
	}
	return n
}
