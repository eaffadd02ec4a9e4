package dict

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"testing"
)

// words are the lines of the file that DICT_TERMS names, or 100,000 made up.
func words(b *testing.B) []string {
	var s []string
	if name := os.Getenv("DICT_TERMS"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		s = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	} else {
		r := rand.New(rand.NewPCG(1, 2))
		for range 100_000 {
			s = append(s, word(r)+word(r))
		}
	}
	sort.Strings(s)
	out := s[:0]
	for i, w := range s {
		if i == 0 || w != out[len(out)-1] {
			out = append(out, w)
		}
	}
	return out
}

func size(b *testing.B, d *Dict, bytes int) {
	b.ReportMetric(float64(bytes)/float64(d.Len()), "B/term")
}

func BenchmarkGet(b *testing.B) {
	terms := words(b)
	data := build(b, terms, small)
	d, err := Open(data)
	if err != nil {
		b.Fatal(err)
	}
	k := make([][]byte, 1<<12)
	for i := range k {
		k[i] = []byte(terms[rand.IntN(len(terms))])
	}
	i := 0
	for b.Loop() {
		if _, _, ok := d.Get(k[i&(len(k)-1)]); !ok {
			b.Fatalf("get %s", k[i&(len(k)-1)])
		}
		i++
	}
	size(b, d, len(data))
}

func BenchmarkBuild(b *testing.B) {
	terms := words(b)
	for b.Loop() {
		build(b, terms, small)
	}
}

func BenchmarkCursor(b *testing.B) {
	terms := words(b)
	d := open0(b, terms)
	for b.Loop() {
		n := 0
		c := d.Cursor()
		for c.Next() {
			n++
		}
		if n != len(terms) || c.Err() != nil {
			b.Fatal(n, c.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(terms)), "ns/term")
}

func BenchmarkOpen(b *testing.B) {
	data := build(b, words(b), small)
	for b.Loop() {
		if _, err := Open(data); err != nil {
			b.Fatal(err)
		}
	}
}

func open0(b *testing.B, terms []string) *Dict {
	d, err := Open(build(b, terms, small))
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func BenchmarkWalk(b *testing.B) {
	d := open0(b, words(b))
	for _, k := range []int{1, 2} {
		for name, cache := range map[string]*Cache{"kept": NewCache(1 << 30), "not": nil} {
			b.Run(fmt.Sprint(k, "/", name), func(b *testing.B) {
				var as []*within
				for _, w := range []string{"kernel", "mutex", "serialize", "correspond", "function", "directory"} {
					as = append(as, &within{word: w, k: k})
				}
				hits, i := 0, 0
				for b.Loop() {
					d.Walk(cache, dense(as[i%len(as)]), nil, func(_, _ []byte, _ int) bool { hits++; return true })
					i++
				}
				b.ReportMetric(float64(hits)/float64(b.N), "hits")
			})
		}
	}
}

// A table is an automaton with all its steps at hand.
type table struct {
	next   [][256]int32
	accept []bool
}

var tables = map[*within]*table{}

func dense(w *within) *table {
	if t := tables[w]; t != nil {
		return t
	}
	t := &table{}
	w.Start()
	for s := 0; s < len(w.rows); s++ {
		var row [256]int32
		for b := range row {
			row[b] = int32(w.Step(s, byte(b)))
		}
		t.next = append(t.next, row)
		t.accept = append(t.accept, w.Accept(s))
	}
	tables[w] = t
	return t
}

func (t *table) Start() int                 { return 0 }
func (t *table) Step(state int, b byte) int { return int(t.next[state][b]) }
func (t *table) Accept(state int) bool      { return t.accept[state] }

func BenchmarkContains(b *testing.B) {
	d := open0(b, words(b))
	for _, l := range []string{"mutex", "_lock"} {
		for name, cache := range map[string]*Cache{"kept": NewCache(1 << 30), "not": nil} {
			b.Run(strings.Trim(l, "_")+"/"+name, func(b *testing.B) {
				hits := 0
				for b.Loop() {
					d.Contains(cache, []string{l}, func(term, _ []byte, _ int) bool {
						if !bytes.Contains(term, []byte(l)) {
							b.Fatal(term)
						}
						hits++
						return true
					})
				}
				b.ReportMetric(float64(hits)/float64(b.N), "hits")
			})
		}
	}
}
