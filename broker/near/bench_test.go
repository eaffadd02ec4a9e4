package near

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"harvest/index/segfile"
	"harvest/index/segfiletest"
)

// BenchmarkNear looks new documents up among others, of which one in a hundred
// is near another; HARVEST_NEAR says how many there are.
func BenchmarkNear(b *testing.B) {
	n := 50_000
	if k, err := strconv.Atoi(os.Getenv("HARVEST_NEAR")); err == nil {
		n = k
	}
	r := rand.New(rand.NewPCG(1, 1))
	x := open(b, b.TempDir())
	var last []Doc
	for at := 0; at < n; at += dupsBatch {
		last = last[:0]
		for i := range min(dupsBatch, n-at) {
			d := Doc{Bytes: Bytes{Size: uint64(at + i + 1)}}
			binary.LittleEndian.PutUint64(d.ID[:], r.Uint64())
			for j := 0; j < len(d.Sketch); j += 8 {
				binary.LittleEndian.PutUint64(d.Sketch[j:], r.Uint64())
			}
			if i%100 == 1 {
				d.Sketch = last[i-1].Sketch
				for range 15 {
					d.Sketch[r.IntN(len(d.Sketch))] ^= byte(1 + r.IntN(255))
				}
			}
			last = append(last, d)
		}
		must(b, x.Apply(last, nil, fmt.Sprint(at)))
		for more := true; more; {
			var err error
			more, err = x.Merge(ctx)
			must(b, err)
		}
	}
	st := x.Stats()
	for _, t := range []float64{0.9, 0.8, 0.6, 0.5} {
		b.Run(fmt.Sprintf("docs=%d/t=%v", n, t), func(b *testing.B) {
			i := 0
			for b.Loop() {
				if got, err := x.Near(ctx, &last[i%len(last)].Sketch, t); err != nil || len(got) == 0 {
					b.Fatal(len(got), err)
				}
				i++
			}
			b.ReportMetric(float64(st.Segments), "segments")
			b.ReportMetric(float64(st.Bytes)/float64(n), "disk-B/doc")
		})
	}
	b.Run(fmt.Sprintf("groups/docs=%d", n), func(b *testing.B) {
		for b.Loop() {
			_, err := x.Groups(ctx, 0.8)
			must(b, err)
		}
	})
	b.Run(fmt.Sprintf("open/docs=%d", n), func(b *testing.B) {
		for b.Loop() {
			y, err := Open(x.dir)
			must(b, err)
			must(b, y.EachCopies(ctx, func(Bytes, []ID) bool { return true }))
			y.Close()
		}
	})
}

const dupsBatch = 64 << 10

// FuzzSegment reads anything as a segment, with sums that fit it and without.
// What comes of it is an error of class ErrCorrupt, or can be read.
func FuzzSegment(f *testing.F) {
	path := filepath.Join(f.TempDir(), "segment")
	list := docs{{ID: ID{1}, Bytes: Bytes{Size: 3}, Sketch: sketch("one two three four")}, {ID: ID{2}, Bytes: Bytes{Size: 3}}, {ID: ID{3}, Sketch: sketch("five")}}
	must(f, write(path, list))
	b, err := os.ReadFile(path)
	must(f, err)
	f.Add(b, true, uint16(0), byte(0))
	f.Add(b, false, uint16(100), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, sealed bool, at uint16, by byte) {
		if len(b) > 0 {
			b[int(at)%len(b)] ^= by
		}
		if sealed && !segfiletest.Seal(b, format()) {
			return
		}
		must(t, os.WriteFile(path, b, 0o666))
		s, err := openSegment(path, 1)
		if err != nil {
			if !errors.Is(err, segfile.ErrCorrupt) {
				t.Errorf("got %v, want %v", err, segfile.ErrCorrupt)
			}
			return
		}
		x := &Index{}
		x.cur.Store(&view{parts: []part{{segment: s}}})
		_, err = x.Near(ctx, &list[0].Sketch, 0.5)
		must(t, err)
		_, err = x.Groups(ctx, 0.5)
		must(t, err)
		must(t, x.EachCopies(ctx, func(Bytes, []ID) bool { return true }))
	})
}
