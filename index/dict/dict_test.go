package dict

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

// build makes a dictionary of sorted terms.
func build(t testing.TB, terms []string, value func(i int) []byte) []byte {
	t.Helper()
	var w bytes.Buffer
	b := NewBuilder(&w)
	for i, s := range terms {
		if got := b.Len(); got != i {
			t.Fatalf("len: got %d, want %d", got, i)
		}
		if err := b.Add([]byte(s), value(i)); err != nil {
			t.Fatal(err)
		}
	}
	n, err := b.Finish()
	if err != nil || n != int64(w.Len()) {
		t.Fatalf("finish: got %d, %v, want %d", n, err, w.Len())
	}
	return w.Bytes()
}

func open(t testing.TB, terms []string, value func(i int) []byte) *Dict {
	t.Helper()
	d, err := Open(build(t, terms, value))
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != len(terms) {
		t.Fatalf("len: got %d, want %d", d.Len(), len(terms))
	}
	return d
}

// small gives values of two or three bytes.
func small(i int) []byte {
	x := uint32(i) * 2654435761
	return []byte{byte(x), byte(x >> 8), byte(x >> 16)}[:2+x>>31]
}

// collection makes lists of terms of different kinds, sorted and distinct.
var collection = map[string]func(r *rand.Rand) []string{
	"none":  func(*rand.Rand) []string { return nil },
	"empty": func(*rand.Rand) []string { return []string{""} },
	"one":   func(*rand.Rand) []string { return []string{"harvest"} },
	"words": func(r *rand.Rand) []string { return many(r, 2500, func() string { return word(r) }) },
	"compounds": func(r *rand.Rand) []string {
		return many(r, 2500, func() string { return word(r) + "." + word(r) + "_" + word(r) })
	},
	"hex": func(r *rand.Rand) []string {
		return many(r, 2500, func() string { return fmt.Sprintf("0x%x", r.Uint64()>>r.IntN(60)) })
	},
	"numbers": func(r *rand.Rand) []string { return many(r, 2500, func() string { return fmt.Sprint(r.IntN(1e7)) }) },
	"bytes":   func(r *rand.Rand) []string { return many(r, 1500, func() string { return noise(r, r.IntN(6), 256) }) },
	"two":     func(r *rand.Rand) []string { return many(r, 1500, func() string { return noise(r, r.IntN(40), 2) }) },
	"long": func(r *rand.Rand) []string {
		return many(r, 300, func() string { return strings.Repeat("a", r.IntN(MaxTerm-8)) + noise(r, r.IntN(8), 256) })
	},
	"same": func(r *rand.Rand) []string {
		return many(r, 1500, func() string { return "always the same " + fmt.Sprint(r.IntN(1e6)) })
	},
}

func many(r *rand.Rand, n int, one func() string) []string {
	var s []string
	for range r.IntN(n) + 1 {
		s = append(s, one())
	}
	sort.Strings(s)
	return slices.Compact(s)
}

func word(r *rand.Rand) string {
	syllables := []string{"ka", "ler", "mu", "tex", "ing", "ed", "re", "un", "tion", "é", "日本", "s", "o"}
	var b strings.Builder
	for range r.IntN(5) + 1 {
		b.WriteString(syllables[r.IntN(len(syllables))])
	}
	return b.String()
}

func noise(r *rand.Rand, n, kinds int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(kinds))
	}
	return string(b)
}

// eachCollection runs a test on every kind of terms, with values of several
// lengths.
func eachCollection(t *testing.T, test func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict)) {
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range collection {
			if !yield(k) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			terms := collection[name](r)
			most := []int{0, 3, 20, 300}[r.IntN(4)]
			values := make([][]byte, len(terms))
			for i := range values {
				values[i] = []byte(noise(r, r.IntN(most+1), 256))
			}
			value := func(i int) []byte { return values[i] }
			test(t, r, terms, value, open(t, terms, value))
		})
	}
}

func TestGet(t *testing.T) {
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		for i, s := range terms {
			v, ord, ok := d.Get([]byte(s))
			if !ok || ord != i || !bytes.Equal(v, value(i)) {
				t.Fatalf("get %q: got %x, %d, %v, want %x, %d", s, v, ord, ok, value(i), i)
			}
			term, v, ok := d.At(i, []byte("x"))
			if !ok || string(term) != "x"+s || !bytes.Equal(v, value(i)) {
				t.Fatalf("at %d: got %q, %x, %v, want x%q, %x", i, term, v, ok, s, value(i))
			}
		}
		for range 2000 {
			s := near(r, terms)
			i, want := slices.BinarySearch(terms, s)
			v, ord, ok := d.Get([]byte(s))
			if ok != want || ok && (ord != i || !bytes.Equal(v, value(i))) {
				t.Fatalf("get %q: got %x, %d, %v, want %d, %v", s, v, ord, ok, i, want)
			}
		}
		for _, i := range []int{-1, len(terms)} {
			if _, _, ok := d.At(i, nil); ok {
				t.Errorf("at %d: got a term", i)
			}
		}
	})
}

// near gives a string that is or is not quite a term.
func near(r *rand.Rand, terms []string) string {
	if len(terms) == 0 {
		return noise(r, r.IntN(3), 256)
	}
	b := []byte(terms[r.IntN(len(terms))])
	switch r.IntN(5) {
	case 0:
		b = b[:r.IntN(len(b)+1)]
	case 1:
		b = append(b, byte(r.IntN(256)))
	case 2:
		if len(b) > 0 {
			b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
		}
	case 3:
		b = append(b, 0)
	}
	return string(b)
}

func TestCursor(t *testing.T) {
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		check := func(c *Cursor, i, most int) {
			t.Helper()
			for ; i < len(terms) && most > 0; i, most = i+1, most-1 {
				if !c.Next() {
					t.Fatalf("next: got the end (%v), want %q", c.Err(), terms[i])
				}
				if string(c.Term()) != terms[i] || c.Ord() != i || !bytes.Equal(c.Value(), value(i)) {
					t.Fatalf("next: got %q, %d, %x, want %q, %d, %x", c.Term(), c.Ord(), c.Value(), terms[i], i, value(i))
				}
			}
			if i == len(terms) && c.Next() {
				t.Fatalf("next: got %q, want the end", c.Term())
			}
		}
		c := d.Cursor()
		check(c, 0, len(terms))
		for range 200 {
			s := near(r, terms)
			i, _ := slices.BinarySearch(terms, s)
			c.Seek([]byte(s))
			check(c, i, r.IntN(100))
		}
		if c.Err() != nil {
			t.Error(c.Err())
		}
		c.Reset(d)
		check(c, 0, 100)
	})
}

// found collects what an iteration gives and checks values and ordinals.
type found struct {
	t     *testing.T
	terms []string
	value func(int) []byte
	got   []string
}

func (f *found) yield(term, value []byte, ord int) bool {
	if ord >= len(f.terms) || string(term) != f.terms[ord] || !bytes.Equal(value, f.value(ord)) {
		f.t.Fatalf("got %q, %x, ordinal %d", term, value, ord)
	}
	f.got = append(f.got, string(term))
	return true
}

func (f *found) check(err error, what string, match func(s string) bool) {
	f.t.Helper()
	var want []string
	for _, s := range f.terms {
		if match(s) {
			want = append(want, s)
		}
	}
	i := 0
	for i < len(f.got) && i < len(want) && f.got[i] == want[i] {
		i++
	}
	if err != nil || len(f.got) != len(want) || i < len(want) {
		f.t.Fatalf("%.200s: got %d terms, %v, want %d; after %d: got %.100q, want %.100q",
			what, len(f.got), err, len(want), i, f.got[i:min(i+1, len(f.got))], want[i:min(i+1, len(want))])
	}
}

func TestPrefix(t *testing.T) {
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		for range 100 {
			p := near(r, terms)
			p = p[:r.IntN(len(p)+1)]
			f := &found{t: t, terms: terms, value: value}
			err := d.Prefix([]byte(p), f.yield)
			f.check(err, p, func(s string) bool { return strings.HasPrefix(s, p) })
		}
	})
}

// within accepts what is at most k insertions, deletions and substitutions
// from a word; its states are rows of the table, numbered as they come.
type within struct {
	word string
	k    int
	rows [][]int
	seen map[string]int
}

func (w *within) Start() int {
	row := make([]int, len(w.word)+1)
	for i := range row {
		row[i] = min(i, w.k+1)
	}
	return w.number(row)
}

func (w *within) number(row []int) int {
	if slices.Min(row) > w.k {
		return -1
	}
	b := make([]byte, len(row))
	for i, n := range row {
		b[i] = byte(n)
	}
	k := string(b)
	if n, ok := w.seen[k]; ok {
		return n
	}
	if w.seen == nil {
		w.seen = map[string]int{}
	}
	w.seen[k] = len(w.rows)
	w.rows = append(w.rows, row)
	return len(w.rows) - 1
}

func (w *within) Step(state int, b byte) int {
	old := w.rows[state]
	row := make([]int, len(old))
	row[0] = old[0] + 1
	for i := range w.word {
		cost := 1
		if w.word[i] == b {
			cost = 0
		}
		row[i+1] = min(old[i]+cost, old[i+1]+1, row[i]+1, w.k+1)
	}
	row[0] = min(row[0], w.k+1)
	return w.number(row)
}

func (w *within) Accept(state int) bool { return w.rows[state][len(w.word)] <= w.k }

type liver struct{ *within }

func (l liver) Live(state, from int) int {
	for ; from < 256 && l.Step(state, byte(from)) < 0; from++ {
	}
	return from
}

func (w *within) accepts(s string) bool {
	x := w.Start()
	for i := 0; i < len(s) && x >= 0; i++ {
		x = w.Step(x, s[i])
	}
	return x >= 0 && w.Accept(x)
}

func TestWalk(t *testing.T) {
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		caches := []*Cache{nil, NewCache(0), NewCache(1 << 12), NewCache(1 << 30)}
		for range 10 {
			word, p := near(r, terms), ""
			if len(word) > 60 {
				word = word[:60]
			}
			if r.IntN(3) == 0 {
				p = word[:r.IntN(len(word)+1)]
			}
			w := &within{word: word, k: r.IntN(4)}
			var a Automaton = w
			if r.IntN(2) == 0 {
				a = liver{w}
			}
			f := &found{t: t, terms: terms, value: value}
			err := d.Walk(caches[r.IntN(len(caches))], a, []byte(p), f.yield)
			f.check(err, fmt.Sprintf("%q~%d from %q", word, w.k, p), func(s string) bool { return strings.HasPrefix(s, p) && w.accepts(s) })
		}
	})
}

func TestContains(t *testing.T) {
	eachCollection(t, func(t *testing.T, r *rand.Rand, terms []string, value func(int) []byte, d *Dict) {
		caches := []*Cache{nil, NewCache(0), NewCache(1 << 12), NewCache(1 << 30)}
		for range 100 {
			var any []string
			for range r.IntN(4) {
				s := near(r, terms)
				i := r.IntN(len(s) + 1)
				any = append(any, s[i:i+r.IntN(min(len(s)-i, 6)+1)])
			}
			f := &found{t: t, terms: terms, value: value}
			err := d.Contains(caches[r.IntN(len(caches))], any, f.yield)
			f.check(err, fmt.Sprintf("%q", any), func(s string) bool {
				return slices.ContainsFunc(any, func(l string) bool { return strings.Contains(s, l) })
			})
		}
		for _, c := range caches[1:] {
			if c.taken > c.size {
				t.Errorf("cache: got %d bytes, want at most %d", c.taken, c.size)
			}
			if c.Forget(d); c.taken != 0 || len(c.kept)+len(c.used) != 0 {
				t.Errorf("cache: got %d bytes of %d things after Forget, want none", c.taken, len(c.kept))
			}
		}
	})
}

// TestChunks makes a dictionary of several chunks, by long values.
func TestChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	terms := many(r, 2000, func() string { return word(r) })
	for len(terms) < 700 {
		terms = append(terms, terms[len(terms)-1]+"s")
	}
	long := make([]byte, MaxValue)
	for i := range long {
		long[i] = byte(i * i >> 3)
	}
	value := func(i int) []byte { return long[i%1000 : i%1000+40_000] }
	d := open(t, terms, value)
	if len(d.chunks) < 3 {
		t.Fatalf("chunks: got %d, want 3 or more", len(d.chunks))
	}
	c := d.Cursor()
	for i, s := range terms {
		if v, ord, ok := d.Get([]byte(s)); !ok || ord != i || !bytes.Equal(v, value(i)) {
			t.Fatalf("get %q: got %d, %v", s, ord, ok)
		}
		if !c.Next() || string(c.Term()) != s || c.Ord() != i {
			t.Fatalf("next: got %q, %d, want %q, %d", c.Term(), c.Ord(), s, i)
		}
		if term, _, ok := d.At(i, nil); !ok || string(term) != s {
			t.Fatalf("at %d: got %q, want %q", i, term, s)
		}
	}
	cache := NewCache(int64(d.chunks[0].listSize()) * 3 / 2) // for one of them
	for range 3 {
		f := &found{t: t, terms: terms, value: value}
		err := d.Contains(cache, []string{"mu", "tion"}, f.yield)
		f.check(err, "mu, tion", func(s string) bool { return strings.Contains(s, "mu") || strings.Contains(s, "tion") })
	}
	for _, k := range []int{0, 1, 2} {
		w := &within{word: terms[len(terms)-3], k: k}
		f := &found{t: t, terms: terms, value: value}
		err := d.Walk(cache, w, nil, f.yield)
		f.check(err, "walk", w.accepts)
	}
}

func TestBuilderRefuses(t *testing.T) {
	for _, x := range []struct {
		name        string
		term, value []byte
	}{
		{"the same", []byte("b"), nil},
		{"less", []byte("a"), nil},
		{"long term", bytes.Repeat([]byte("c"), MaxTerm+1), nil},
		{"long value", []byte("c"), make([]byte, MaxValue+1)},
	} {
		b := NewBuilder(new(bytes.Buffer))
		if err := b.Add([]byte("b"), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Add(x.term, x.value); err == nil {
			t.Errorf("%s: got no error", x.name)
		}
	}
	b := NewBuilder(new(bytes.Buffer))
	if err := b.Add(bytes.Repeat([]byte("c"), MaxTerm), make([]byte, MaxValue)); err != nil {
		t.Error(err)
	}
}

type full struct{}

func (full) Write(p []byte) (int, error) { return 0, errors.New("no space") }

func TestBuilderWriteFails(t *testing.T) {
	b := NewBuilder(full{})
	if err := b.Add([]byte("b"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Finish(); err == nil || err.Error() != "no space" {
		t.Errorf("got %v, want no space", err)
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	terms := many(r, 2500, func() string { return "always the same " + word(r) })
	d := open(t, terms, small)
	k := []byte(terms[len(terms)/2])
	var c Cursor
	c.Reset(d)
	c.Seek(k)
	if n := testing.AllocsPerRun(100, func() {
		d.Get(k)
		c.Reset(d)
		c.Seek(k)
		c.Next()
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// TestDamage changes bytes: nothing may panic, and what is found is in order.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for _, name := range []string{"words", "bytes", "long"} {
		data := build(t, collection[name](r), small)
		for range 60 {
			b := bytes.Clone(data)
			for range r.IntN(3) + 1 {
				b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
			}
			if r.IntN(4) == 0 {
				b = b[:r.IntN(len(b))]
			}
			everything(t, b)
		}
	}
}

// everything uses all of a dictionary that may be damaged.
func everything(t testing.TB, data []byte) {
	d, err := Open(data)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("open: got %v, want %v", err, ErrCorrupt)
		}
		return
	}
	n := 0
	count := func(term, value []byte, ord int) bool { n++; return n < 1<<12 }
	for _, s := range []string{"", "a", "kaler", "mutexing", "\xff\xff", "aaaaaaaaaaaaaaaaaaaaa"} {
		d.Get([]byte(s))
		d.At(len(s)*50, nil)
		c, cache := d.Cursor(), NewCache(1<<20)
		for c.Seek([]byte(s)); c.Next() && c.Ord() < 1<<12; {
			_, _ = c.Term(), c.Value()
		}
		for _, err := range []error{
			c.Err(),
			d.Prefix([]byte(s), count),
			d.Walk(nil, &within{word: s, k: 1}, nil, count),
			d.Walk(cache, &within{word: s, k: 1}, nil, count),
			d.Near(nearCache(d), halves(&within{word: s, k: 1}, len(s)/2, len(s)/2), count),
			d.Contains(nil, []string{s}, count),
			d.Contains(cache, []string{s, "x"}, count),
		} {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v, want %v", err, ErrCorrupt)
			}
		}
	}
}

func FuzzDict(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"none", "empty", "one", "words", "numbers"} {
		terms := collection[name](r)
		f.Add(build(f, terms[:min(len(terms), 100)], small))
	}
	f.Fuzz(func(t *testing.T, data []byte) { everything(t, data) })
}

// nearCache is a cache in which the ends of d's terms will be kept.
func nearCache(d *Dict) *Cache {
	for i := range d.chunks {
		d.chunks[i].walked.Store(1 << 40)
	}
	return NewCache(1 << 20)
}
