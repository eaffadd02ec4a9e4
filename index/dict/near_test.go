package dict

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// halves are of words within w's errors: those that begin as it does up to cut
// are in the first, those that end as it does from tail in the second.
func halves(w *within, cut, tail int) Halves {
	return Halves{
		Whole: w, Front: &within{word: w.word, k: w.k}, Prefix: []byte(w.word[:cut]), Tail: []byte(w.word[tail:]),
		Most: utf8.RuneCountInString(w.word) + w.k,
	}
}

// TestNear wants of Near what is in either half, once, whatever is kept.
func TestNear(t *testing.T) {
	cuts := 0
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		caches := []*Cache{nil, NewCache(0), NewCache(1 << 12), NewCache(1 << 30), NewCache(1 << 30)}
		for i := range d.chunks {
			d.chunks[i].walked.Store(1 << 40) // so that all is kept that there is room for
		}
		for range 30 {
			word := near(r, terms)
			if len(word) > 60 {
				word = word[:60]
			}
			w := &within{word: word, k: r.IntN(4)}
			h := halves(w, r.IntN(len(word)+1), max(0, len(word)-r.IntN(7)))
			n := utf8.RuneCountInString(word)
			h.Least, h.Most = n-r.IntN(2), n+r.IntN(2)
			cache := caches[r.IntN(len(caches))]
			var got []string
			err := d.Near(cache, h, func(term, v []byte, ord int) bool {
				if !bytes.Equal(v, value(ord)) || terms[ord] != string(term) {
					t.Errorf("%q: got the value or number of another term", term)
				}
				got = append(got, string(term))
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			kept := false
			for i := range d.chunks {
				x, _ := cache.get(slot{&d.chunks[i], tailsKind}, 0)
				kept = kept || x != nil && len(h.Tail) >= TailBytes
			}
			slices.Sort(got)
			var want []string
			for _, s := range terms {
				n := utf8.RuneCountInString(s)
				in := strings.HasPrefix(s, string(h.Prefix)) || strings.HasSuffix(s, string(h.Tail)) && h.Least <= n && n <= h.Most
				if w.accepts(s) && (in || !kept) {
					want = append(want, s)
				} else if w.accepts(s) {
					cuts++
				}
			}
			if len(d.chunks) == 1 && !slices.Equal(got, want) {
				t.Errorf("%q~%d, prefix %q, tail %q: got %d terms, want %d: %.200q, %.200q", word, w.k, h.Prefix, h.Tail, len(got), len(want), got, want)
			}
		}
	})
	if cuts < 100 {
		t.Errorf("got %d terms in no half, too few to say that there are halves", cuts)
	}
}

// TestNearStops wants Near to end when it is told to, in both halves.
func TestNearStops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	terms := many(r, 3000, func() string { return word(r) + "tion" })
	d := open(t, terms, small)
	d.chunks[0].walked.Store(1 << 40)
	cache := NewCache(1 << 30)
	h := halves(&within{word: terms[5], k: 40}, 2, len(terms[5])-4)
	all := 0
	if err := d.Near(cache, h, func(_, _ []byte, _ int) bool { all++; return true }); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{1, 2, all / 2, all - 1} {
		n := 0
		if err := d.Near(cache, h, func(_, _ []byte, _ int) bool { n++; return n < most }); err != nil || n != most {
			t.Errorf("got %d terms, %v, want %d of %d", n, err, most, all)
		}
	}
}

// TestCacheCycle asks for more than fits, all of it in turn, and wants what is
// kept to stay; and what is asked for alone to be kept in the end.
func TestCacheCycle(t *testing.T) {
	chunks := make([]chunk, 5)
	c := NewCache(300)
	ask := func(i int) bool {
		s := slot{&chunks[i], listKind}
		x, keep := c.get(s, 100)
		if x == nil && keep {
			c.put(s, thing(100))
		}
		return x != nil
	}
	hits := 0
	for range 10 {
		for i := range chunks {
			if ask(i) {
				hits++
			}
		}
	}
	if want := 3 * 9; hits != want {
		t.Errorf("in turn: got %d found, want %d", hits, want)
	}
	ask(4)
	ask(4)
	if !ask(4) {
		t.Error("asked for alone: it is not kept")
	}
	s := slot{&chunks[0], tailsKind}
	if _, keep := c.get(s, 250); !keep {
		t.Error("ends: got no room in place of lists")
	}
	if c.put(s, thing(250)); c.taken > c.size || c.kept[s] == nil {
		t.Errorf("ends: got %d bytes kept, want at most %d with them", c.taken, c.size)
	}
}

type thing int64

func (t thing) size() int64 { return int64(t) }

func BenchmarkNear(b *testing.B) {
	d := open0(b, words(b))
	for name, cache := range map[string]*Cache{"kept": NewCache(1 << 30), "ends": NewCache(int64(d.Len()) * 6)} {
		for i := range d.chunks {
			d.chunks[i].walked.Store(1 << 40)
		}
		b.Run(fmt.Sprint("1/", name), func(b *testing.B) {
			var hs []Halves
			for _, w := range []string{"kernel", "serialize", "correspond", "function", "directory"} {
				a := dense(&within{word: w, k: 1})
				n := len(w) / 2
				hs = append(hs, Halves{Whole: a, Front: a, Prefix: []byte(w[:n]), Tail: []byte(w[len(w)-3:]), Least: len(w) - 1, Most: len(w) + 1})
			}
			hits, i := 0, 0
			for b.Loop() {
				d.Near(cache, hs[i%len(hs)], func(_, _ []byte, _ int) bool { hits++; return true })
				i++
			}
			b.ReportMetric(float64(hits)/float64(b.N), "hits")
		})
	}
}
