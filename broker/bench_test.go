package broker

import (
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// gathered is a store of 50,000 pieces, or as many as HARVEST_OBJECTS says, of 1.4
// KB of the text files below the folder that CORPUS names, those under 1 MB; or of
// 2,000 objects of 4 KB.
func gathered(b *testing.B, w *world) (n int, size int64) {
	g := w.gatherer("gather/web")
	var batch []store.Change
	add := func(o *soif.Object) {
		batch = append(batch, update(o))
		n++
		size += int64(len(batch[len(batch)-1].Body))
		if len(batch) == 500 {
			apply(b, g, batch...)
			batch = nil
		}
	}
	const piece = 1400
	most := 50_000
	if m, err := strconv.Atoi(os.Getenv("HARVEST_OBJECTS")); err == nil {
		most = m
	}
	if dir := os.Getenv("CORPUS"); dir != "" {
		filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
			if st, _ := os.Stat(path); err == nil && e.Type().IsRegular() && st.Size() < 1<<20 {
				if text, err := os.ReadFile(path); err == nil && utf8.Valid(text) {
					for i := 0; i < len(text) && n < most; i += piece {
						add(object(fmt.Sprintf("file://%s#%d", path, i), e.Name(), string(text[i:min(i+piece, len(text))])))
					}
				}
			}
			return nil
		})
	} else {
		rng := rand.New(rand.NewPCG(1, 2))
		zipf := rand.NewZipf(rng, 1.1, 10, 100_000)
		for i := range 2000 {
			var t strings.Builder
			for t.Len() < 4<<10 {
				fmt.Fprintf(&t, "w%x ", zipf.Uint64())
			}
			add(object(fmt.Sprintf("http://a/%d", i), t.String()[:20], t.String()))
		}
	}
	apply(b, g, batch...)
	return n, size
}

// BenchmarkCollect collects and indexes everything of a Gatherer here: the
// stream, the store with its syncs, the index with its.
func BenchmarkCollect(b *testing.B) {
	w := newWorld(b)
	n, size := gathered(b, w)
	b.SetBytes(size)
	cpu := cpuTime()
	for b.Loop() {
		br := w.broker(b.TempDir(), "source path=gather/web\n")
		must(b, br.Collect(ctx, "gather/web"))
		if got := br.index.Stats().Docs; got != n {
			b.Fatalf("got %d objects indexed, want %d", got, n)
		}
		must(b, br.Close())
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(n)/float64(b.N), "cpu-µs/object")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "MB-memory")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWalk walks to q/QUERY and reads its files, the index unmoved.
func BenchmarkWalk(b *testing.B) {
	w := newWorld(b)
	gathered(b, w)
	br := w.broker(b.TempDir(), "source path=gather/web\n")
	must(b, br.Collect(ctx, "gather/web"))
	d := br.Files()
	common, rare := "w1", "wfff"
	if os.Getenv("CORPUS") != "" {
		common, rare = "the", "mutex"
	}
	for _, q := range []string{common, rare} {
		for _, file := range []string{"hits", "summary", "soif", ""} {
			b.Run(q+"/"+file, func(b *testing.B) {
				for b.Loop() {
					if file == "" {
						list(b, d, "q/"+q)
					} else {
						b.SetBytes(int64(len(read(b, d, "q/"+q+"/"+file))))
					}
				}
			})
		}
		n := 0
		b.Run(q+"/first", func(b *testing.B) { // each a search
			for b.Loop() {
				n++
				walk(b, d, fmt.Sprintf("q/%s or zz%d", q, n))
			}
		})
	}
}

// BenchmarkDocuments reads everything as an index is fed, in the order of the
// changes, and as its Source, in an order that is none.
func BenchmarkDocuments(b *testing.B) {
	w := newWorld(b)
	_, size := gathered(b, w)
	br := w.broker(b.TempDir(), "source path=gather/web\n")
	must(b, br.Collect(ctx, "gather/web"))
	var (
		oids []store.OID
		refs []store.Ref
	)
	for rec, err := range br.store.Changes(ctx, store.Cursor{}) {
		must(b, err)
		oids, refs = append(oids, rec.Entry.OID), append(refs, rec.Entry.Ref())
	}
	b.Run("feed", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for d, err := range br.documents(ctx, &feeding{puts: refs, seqs: make([]uint64, len(refs))}) {
				must(b, err)
				_ = d
			}
		}
	})
	ids := make([]index.ID, len(oids))
	for i, j := range rand.Perm(len(oids)) {
		ids[i] = index.ID(oids[j])
	}
	b.Run("source", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			must(b, texts{br}.Text(ctx, ids, func(int, []index.Field) bool { return true }))
		}
	})
}
