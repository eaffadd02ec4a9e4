package thin_test

import (
	"context"
	"encoding/binary"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"harvest/index"
	"harvest/index/thin"
)

// corpus is a folder's text files under 1 MB, if CORPUS names one, else 3,000
// documents of 6 KB of words with frequencies as 1/rank.
func corpus(b *testing.B) (docs []index.Doc, size int64) {
	add := func(title, text string) {
		d := index.Doc{Fields: []index.Field{{Name: "title", Text: title}, {Name: "type", Text: "text"}, {Name: "full-text", Text: text}}}
		binary.BigEndian.PutUint32(d.ID[:], uint32(len(docs)))
		docs = append(docs, d)
		size += int64(len(text))
	}
	if dir := os.Getenv("CORPUS"); dir != "" {
		filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
			if st, _ := os.Stat(path); err == nil && e.Type().IsRegular() && st.Size() < 1<<20 {
				if text, err := os.ReadFile(path); err == nil && utf8.Valid(text) {
					add(path, string(text))
				}
			}
			return nil
		})
		return docs, size
	}
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 10, 200_000)
	for range 3000 {
		var t strings.Builder
		for t.Len() < 6<<10 {
			fmt.Fprintf(&t, "w%x ", zipf.Uint64())
		}
		add(t.String()[:20], t.String())
	}
	return docs, size
}

// applyAll applies docs as a broker does, at most 8 MB at a time.
func applyAll(b *testing.B, e index.Engine, docs []index.Doc) {
	for len(docs) > 0 {
		n, size := 0, 0
		for n < len(docs) && size < 8<<20 {
			size += len(docs[n].Fields[2].Text)
			n++
		}
		must(b, e.Apply(ctx, index.Docs(docs[:n]), nil, "m"))
		docs = docs[n:]
	}
}

func BenchmarkApply(b *testing.B) {
	docs, size := corpus(b)
	b.SetBytes(size)
	for b.Loop() {
		e := open(b, b.TempDir())
		applyAll(b, e, docs)
		st := e.Stats()
		b.ReportMetric(float64(st.Bytes)/float64(size)*100, "%-of-text")
		b.ReportMetric(float64(st.Docs), "docs")
		e.Close()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(int64(m.Sys)-size)/1e6, "MB-beside-corpus")
}

func BenchmarkWords(b *testing.B) {
	docs, size := corpus(b)
	b.SetBytes(size)
	for b.Loop() {
		for i := range docs {
			thin.Words(docs[i].Fields[2].Text, func([]byte, int, int) bool { return true })
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	docs, _ := corpus(b)
	e := open(b, b.TempDir())
	applyAll(b, e, docs)
	texts := []string{"w1", "w1 w2 w3", `"w1 w2"`, "w1 not w3", "w1 or w2 or w3 or w4", "wfff", "not w0", "title : w1"}
	if os.Getenv("CORPUS") != "" {
		texts = []string{"the", "return value error", `"if err"`, "the not of", "file or read or open or close", "mutex", "not the", "title : test"}
	}
	for _, text := range texts {
		q := parse(b, text)
		b.Run(text, func(b *testing.B) {
			var r index.Results
			for b.Loop() {
				var err error
				r, err = e.Search(context.Background(), q, index.Options{})
				must(b, err)
			}
			b.ReportMetric(float64(r.Total), "hits")
		})
	}
}

// BenchmarkApplyOne replaces one document of many, durably.
func BenchmarkApplyOne(b *testing.B) {
	docs, _ := corpus(b)
	e := open(b, b.TempDir())
	applyAll(b, e, docs)
	n := 0
	for b.Loop() {
		n++
		must(b, e.Apply(ctx, index.Docs(docs[n%len(docs):][:1]), nil, "m"))
	}
	b.ReportMetric(float64(len(docs)), "docs")
	b.ReportMetric(float64(e.Stats().Segments), "segments")
}
