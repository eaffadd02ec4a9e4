package index

import (
	"context"
	"encoding/binary"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// files is the text files below a folder as documents: the first line is the
// title, all of it the body.
func files(dir string, size *int64) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		n := uint64(0)
		filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			*size += int64(len(text))
			n++
			title, _, _ := strings.Cut(string(text), "\n")
			d := &Doc{Fields: []Field{{"title", title}, {"body", string(text)}}}
			binary.BigEndian.PutUint64(d.ID[:], n)
			if !yield(d, nil) {
				return filepath.SkipAll
			}
			return nil
		})
	}
}

// BenchmarkSections makes an index of the text below CORPUS, or of this module,
// and tells the sizes of its sections. WORKERS and MEMORY (megabytes) set
// these, NOPOS leaves positions out.
func BenchmarkSections(b *testing.B) {
	dir := os.Getenv("CORPUS")
	if dir == "" {
		dir = ".."
	}
	workers, _ := strconv.Atoi(os.Getenv("WORKERS"))
	memory, _ := strconv.ParseInt(os.Getenv("MEMORY"), 10, 64)
	set := Settings{Workers: workers, Memory: memory << 20, NoPositions: os.Getenv("NOPOS") != "", Keys: func(string) bool { return false }}
	var size int64
	for b.Loop() {
		size = 0
		e, err := openEngine(b.TempDir(), set)
		must(b, err)
		e.stop()
		cpu, begin := cpuTime(), time.Now()
		must(b, e.Apply(context.Background(), files(dir, &size), nil, "m"))
		b.ReportMetric(float64(size)/1e6/time.Since(begin).Seconds(), "MB/s")
		b.ReportMetric(float64(size)/1e6/(cpuTime()-cpu).Seconds(), "MB/cpu-s")
		v, err := e.view()
		must(b, err)
		report(b, v, size)
		begin = time.Now()
		if len(v.parts) > 1 {
			must(b, e.mergeOnce(context.Background(), v.parts))
			b.Logf("merge of %d: %v", len(v.parts), time.Since(begin))
			v, err = e.view()
			must(b, err)
			report(b, v, size)
		}
		runtime.KeepAlive(v)
		must(b, e.Close())
	}
	b.SetBytes(size)
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	b.ReportMetric(float64(u.Maxrss)/1e3, "MB-rss")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, v *view, size int64) {
	b.Helper()
	total := 0
	for i := range v.parts {
		total += v.parts[i].Size()
	}
	b.ReportMetric(100*float64(total)/float64(size), "%-of-text")
	b.Logf("%d segments, %.2f %% of %d bytes, %d documents, %d words", len(v.parts), 100*float64(total)/float64(size), size, v.docs, v.text)
	for i := range v.parts {
		p := &v.parts[i]
		var line []string
		for sec := range sections {
			line = append(line, sec.String()+" "+strconv.FormatFloat(100*float64(len(p.section(sec)))/float64(size), 'f', 3, 64))
		}
		b.Logf("%d terms, %s", p.terms().Len(), strings.Join(line, ", "))
	}
}

// BenchmarkMore adds the text below MORE, again and again.
func BenchmarkMore(b *testing.B) {
	dir := os.Getenv("MORE")
	if dir == "" {
		b.Skip("MORE names no folder")
	}
	var puts []Doc
	var size int64
	for d := range files(dir, &size) {
		puts = append(puts, *d)
	}
	e, err := openEngine(b.TempDir(), Settings{Keys: func(string) bool { return false }})
	must(b, err)
	e.stop()
	b.SetBytes(size)
	cpu := cpuTime()
	for b.Loop() {
		must(b, e.Apply(context.Background(), Docs(puts), nil, "m"))
	}
	b.ReportMetric((cpuTime()-cpu).Seconds()*1e3/float64(b.N), "cpu-ms/op")
	must(b, e.Close())
}
