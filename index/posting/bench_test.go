package posting

import (
	iofs "io/fs"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The benchmarks read the words of the files in CORPUS, or else of 4,000
// documents that are made up.

// words turns texts round: of each word its list, the longest list first, and
// the norm of each document.
func words(tb testing.TB) (lists []list, norms []byte, size int) {
	byWord := make(map[string]list)
	add := func(text string) {
		doc, pos := uint32(len(norms)), uint32(0)
		last := make(map[string]uint32)
		for w := range strings.FieldsFuncSeq(text, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c < 0x80
		}) {
			w = strings.ToLower(w)
			l := byWord[w]
			if n := len(l); n == 0 || l[n-1].doc != doc {
				l = append(l, posting{doc: doc})
				last[w] = 0
			}
			p := &l[len(l)-1]
			p.gaps = append(p.gaps, pos-last[w])
			last[w] = pos
			byWord[w] = l
			pos++
		}
		norms = append(norms, byte(8*bits.Len32(pos)))
		size += len(text)
	}
	if dir := os.Getenv("CORPUS"); dir != "" {
		err := filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			add(string(b))
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	} else {
		made(add)
	}
	for _, l := range byWord {
		lists = append(lists, l)
		var all []uint32 // as one in memory
		for _, p := range l {
			all = append(all, p.gaps...)
		}
		for i, p := range l {
			l[i].gaps, all = all[:len(p.gaps):len(p.gaps)], all[len(p.gaps):]
		}
	}
	slices.SortFunc(lists, func(a, b list) int { return len(b) - len(a) })
	return lists, norms, size
}

// made makes documents of words of which the n-th is about 1/n as frequent as
// the first.
func made(add func(text string)) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := rand.NewZipf(rnd, 1.07, 4, 100_000)
	var text strings.Builder
	for range 4000 {
		text.Reset()
		for range 50 << rnd.IntN(6) {
			for w := word.Uint64() + 1; w > 0; w /= 26 {
				text.WriteByte('a' + byte(w%26))
			}
			text.WriteByte(' ')
		}
		add(text.String())
	}
}

// index is all lists coded.
type index struct {
	lists []coded // the longest first
	norms []byte
	raw   []list
	size  int
}

func newIndex(b *testing.B) (x index) {
	b.Helper()
	x.raw, x.norms, x.size = words(b)
	var e Encoder
	for _, l := range x.raw {
		e.Reset(Positions, x.norms)
		l.addTo(&e, Positions)
		x.lists = append(x.lists, end(&e, Positions, uint32(len(x.norms)), nil))
	}
	return x
}

// Benchmark has all of them, so that the lists are made once.
func Benchmark(b *testing.B) {
	x := newIndex(b)
	b.Run("Encode", x.encode)
	b.Run("Merge", x.merge)
	b.Run("Next", x.next)
	b.Run("Block", x.block)
	b.Run("Freqs", x.blockFreqs)
	b.Run("Positions", x.positions)
	b.Run("And", x.and)
	b.Run("Phrase", x.phrase)
	b.Run("Shallow", x.shallow)
}

// A clock counts the time that the process has a processor, which says more
// than the wall's where others want it too.
type clock float64

func processor(b *testing.B) clock {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return clock(u.Utime.Sec) + clock(u.Utime.Usec)/1e6
}

// ns reports the time since c for one of n things.
func (c clock) ns(b *testing.B, n int, thing string) {
	b.ReportMetric(float64(processor(b)-c)*1e9/float64(n), "cpu-ns/"+thing)
}

// encode also tells the sizes, in percent of the text and in bits, of lists of
// two documents or more, and of those of one as AppendOne makes them.
func (x index) encode(b *testing.B) {
	var e Encoder
	var docs, pos, one, nDocs, nPos int
	c := processor(b)
	for b.Loop() {
		docs, pos, one, nDocs, nPos = 0, 0, 0, 0, 0
		for _, l := range x.raw {
			if len(l) == 1 {
				one += len(AppendOne(nil, Positions, l[0].doc, 0, l[0].gaps))
				continue
			}
			e.Reset(Positions, x.norms)
			for _, p := range l {
				e.Add(p.doc, p.gaps)
				nPos += len(p.gaps)
			}
			nDocs += len(l)
			docs += len(e.Finish())
			pos += len(e.TakePositions())
		}
	}
	c.ns(b, nPos*b.N, "pos")
	percent := func(n int) float64 { return 100 * float64(n) / float64(x.size) }
	b.ReportMetric(percent(docs), "%docs")
	b.ReportMetric(percent(pos), "%pos")
	b.ReportMetric(percent(one), "%one")
	b.ReportMetric(8*float64(docs)/float64(nDocs), "bit/doc")
	b.ReportMetric(8*float64(pos)/float64(nPos), "bit/pos")
}

// merge merges two halves of each list of 128 documents or more.
func (x index) merge(b *testing.B) {
	var e Encoder
	var r Reader
	n := 0
	for b.Loop() {
		n = 0
		for _, c := range x.long() {
			e.Reset(Positions, nil)
			for range 2 {
				c.reset(&r)
				if err := e.Merge(&r, nil, e.next); err != nil {
					b.Fatal(err)
				}
			}
			n += len(e.Finish()) + len(e.TakePositions())
		}
	}
	b.SetBytes(int64(n))
}

// long are the lists of full blocks.
func (x index) long() []coded {
	n := slices.IndexFunc(x.lists, func(c coded) bool { return c.count < BlockSize })
	return x.lists[:n]
}

// each goes through all long lists.
func (x index) each(b *testing.B, read func(r *Reader) int) {
	var r Reader
	b.ReportAllocs()
	n, begin := 0, processor(b)
	for b.Loop() {
		n = 0
		for _, c := range x.long() {
			c.reset(&r)
			n += read(&r)
		}
	}
	begin.ns(b, n*b.N, "number")
}

func (x index) next(b *testing.B) {
	x.each(b, func(r *Reader) (n int) {
		for d := r.Next(); d != End; d = r.Next() {
			n++
		}
		return n
	})
}

func (x index) block(b *testing.B) {
	x.each(b, func(r *Reader) (n int) {
		for d := r.NextBlock(); d != End; d = r.NextBlock() {
			n += r.n - r.i
		}
		return n
	})
}

func (x index) blockFreqs(b *testing.B) {
	x.each(b, func(r *Reader) (n int) {
		for d := r.NextBlock(); d != End; d = r.NextBlock() {
			_, freqs := r.Block()
			n += len(freqs)
		}
		return n
	})
}

func (x index) positions(b *testing.B) {
	var buf []uint32
	x.each(b, func(r *Reader) (n int) {
		for d := r.Next(); d != End; d = r.Next() {
			buf = r.Positions(buf[:0])
			n += len(buf)
		}
		return n
	})
}

// pairs are lists of about a thousand documents and more.
func (x index) pairs() (out [][2]coded) {
	n := slices.IndexFunc(x.lists, func(c coded) bool { return c.count < len(x.norms)/25 })
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		out = append(out, [2]coded{x.lists[rnd.IntN(n)], x.lists[rnd.IntN(n)]})
	}
	return out
}

// both calls found for each document of both lists.
func both(a, b *Reader, found func()) {
	for d := a.Next(); d != End; {
		e := b.Advance(d)
		if e == d {
			found()
			d = a.Next()
		} else {
			d = a.Advance(e)
		}
	}
}

func (x index) and(b *testing.B) {
	x.query(b, func(p, q *Reader) (n int) {
		both(p, q, func() { n++ })
		return n
	})
}

// query runs f on pairs of lists and tells how much they have in common.
func (x index) query(b *testing.B, f func(p, q *Reader) int) {
	pairs := x.pairs()
	var p, q Reader
	b.ReportAllocs()
	n, docs := 0, 0
	begin := processor(b)
	for i := 0; b.Loop(); i++ {
		c := pairs[i%len(pairs)]
		if c[0].count > c[1].count {
			c[0], c[1] = c[1], c[0]
		}
		c[0].reset(&p)
		c[1].reset(&q)
		n += f(&p, &q)
		docs += c[0].count + c[1].count
	}
	begin.ns(b, b.N, "pair")
	b.ReportMetric(float64(n)/float64(b.N), "found/op")
	b.ReportMetric(float64(docs)/float64(b.N), "docs/op")
}

func (x index) phrase(b *testing.B) {
	var bufP, bufQ []uint32
	x.query(b, func(p, q *Reader) (n int) {
		both(p, q, func() {
			bufP, bufQ = p.Positions(bufP[:0]), q.Positions(bufQ[:0])
			i := 0
			for _, at := range bufP {
				for i < len(bufQ) && bufQ[i] <= at {
					i++
				}
				if i < len(bufQ) && bufQ[i] == at+1 {
					n++
					break
				}
			}
		})
		return n
	})
}

// shallow looks at the impacts of all blocks of the longest list.
func (x index) shallow(b *testing.B) {
	var r Reader
	b.ReportAllocs()
	n, begin := 0, processor(b)
	for b.Loop() {
		x.lists[0].reset(&r)
		n = 0
		for d, _ := r.Shallow(0); d != End; d, _ = r.Shallow(d + 1) {
			n++
		}
	}
	begin.ns(b, b.N*n, "block")
}
