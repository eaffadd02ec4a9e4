package index_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/bench"
)

// corpus is the folder that CORPUS names, else 1,000 files of 8 KB of words
// with frequencies as 1/rank. harvest bench index measures the same things
// with processes of their own, and memory.
func corpus(b *testing.B) *bench.Corpus {
	b.Helper()
	dir := os.Getenv("CORPUS")
	if dir == "" {
		dir = generated(b)
	}
	c, err := bench.OpenCorpus(dir)
	must(b, err)
	b.Logf("CORPUS=%s: %d files, %.1f MB", os.Getenv("CORPUS"), len(c.Names), float64(c.Bytes)/1e6)
	return c
}

func generated(b *testing.B) string {
	dir := b.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 10, 200_000)
	for i := range 1000 {
		var t strings.Builder
		for t.Len() < 8<<10 {
			for range 5 + rng.IntN(8) {
				t.WriteString(letters(zipf.Uint64()) + " ")
			}
			t.WriteString("\n")
		}
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d", i)), []byte(t.String()), 0o666))
	}
	return dir
}

// letters writes a number as a word.
func letters(n uint64) (w string) {
	for n += 16; n > 0; n /= 16 {
		w += "babedofigulamenopirosusatevuzaje"[n%16*2:][:2]
	}
	return w
}

func built(b *testing.B, c *bench.Corpus, set index.Settings) index.Engine {
	b.Helper()
	set.Source = c
	e, err := index.Open(b.TempDir(), set)
	must(b, err)
	must(b, e.Apply(ctx, c.Docs(ctx, nil), nil, "all"))
	return e
}

func BenchmarkBuild(b *testing.B) {
	c := corpus(b)
	for _, bm := range []struct {
		name string
		set  index.Settings
	}{
		{"full", index.Settings{}},
		{"full/workers=1", index.Settings{Workers: 1}},
		{"nopositions", index.Settings{NoPositions: true}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(c.Bytes)
			b.ReportAllocs()
			for b.Loop() {
				e := built(b, c, bm.set)
				b.ReportMetric(float64(e.Stats().Bytes)/float64(c.Bytes)*100, "%-of-text")
				must(b, e.Close())
			}
		})
	}
}

// BenchmarkSearch asks the queries of one class after the other, for the best
// ten; QUERIES names a file of them.
func BenchmarkSearch(b *testing.B) {
	c := corpus(b)
	queries, err := bench.Choose(ctx, c, 10)
	if name := os.Getenv("QUERIES"); name != "" {
		f, ferr := os.Open(name)
		must(b, ferr)
		defer f.Close()
		queries, err = bench.ReadQueries(f)
	}
	must(b, err)
	e := built(b, c, index.Settings{})
	defer e.Close()
	for _, class := range bench.Classes() {
		b.Run(class, func(b *testing.B) { searchClass(b, e, queries, class) })
	}
}

func searchClass(b *testing.B, e index.Engine, queries []bench.Query, class string) {
	opt := index.Options{Weight: bench.Weight, Limit: 10}
	i, hits, asked := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		for queries[i%len(queries)].Class != class {
			if i++; i > 2*len(queries) && asked == 0 {
				b.Skipf("no query of this class")
			}
		}
		n, err := queries[i%len(queries)].Node()
		must(b, err)
		r, err := e.Search(ctx, n, opt)
		must(b, err)
		opt.Buf = r.Hits
		hits += r.Total
		asked++
		i++
	}
	b.ReportMetric(float64(hits)/float64(asked), "hits")
}

// BenchmarkAdd replaces 100 documents, durably; each is searchable then.
func BenchmarkAdd(b *testing.B) {
	c := corpus(b)
	e := built(b, c, index.Settings{})
	defer e.Close()
	some := bench.Corpus{Dir: c.Dir}
	for i := range 100 {
		some.Names = append(some.Names, c.Names[i*len(c.Names)/100])
	}
	for b.Loop() {
		must(b, e.Apply(ctx, some.Docs(ctx, nil), nil, "more"))
	}
	if got := e.Stats().Docs; got != len(c.Names) {
		b.Errorf("got %d documents, want %d", got, len(c.Names))
	}
}
