package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/query"
)

func fields(pairs ...string) (list []index.Field) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, index.Field{Name: pairs[i], Text: pairs[i+1]})
	}
	return list
}

func parse(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// words of the random documents and queries.
var someWords = strings.Fields("alpha beta gamma delta x86_64 don't net/http naïve 東京都 42 3.14 a the of kernel fuse plan9 mount")

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(someWords[r.IntN(len(someWords))] + " ")
	}
	return b.String()
}

func randomQuery(r *rand.Rand, depth int) string {
	word := func() string { return someWords[r.IntN(len(someWords))] }
	if depth == 0 {
		return word()
	}
	sub := func() string { return "(" + randomQuery(r, depth-1) + ")" }
	switch r.IntN(13) {
	case 0:
		return sub() + " and " + sub()
	case 1:
		return sub() + " or " + sub()
	case 2:
		return "not " + sub()
	case 3:
		return "title : " + word()
	case 4:
		return `"` + word() + " " + word() + `"`
	case 5:
		return `title : (` + word() + " or not " + word() + ")"
	case 6:
		forms := []string{"size > N", "size < N", "size = N", "size : N..50", "size : ..N", "size : N..N", "title = alpha and size >= N",
			"size <= N or title >= beta", "size : 2001-01-01..2001-02-01", "not size > N", "title >= gamma"}
		return strings.ReplaceAll(forms[r.IntN(len(forms))], "N", fmt.Sprint(r.IntN(100)))
	case 7:
		return string([]rune(word())[:1]) + "*"
	case 8:
		return word() + " near/3 " + word()
	case 9:
		return "kernle~1"
	case 10:
		return "author : *"
	case 11:
		return "*"
	}
	return word()
}

// What Match says is what each query says by itself.
func TestMatchIsEachQuery(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	weight := func(attr string) float64 {
		if attr == "url" {
			return 0
		}
		return 1
	}
	for i, opt := range []index.Options{{Weight: weight}, {Weight: weight, Stem: func(w string) string { return strings.TrimSuffix(w, "a") }}, {Weight: weight}} {
		noNumbers := i == 2
		s := NewStanding(Manner{opt, noNumbers}, nil)
		each := make(map[uint32]*index.Matcher)
		for range 400 {
			id := uint32(r.IntN(300)) // some stand in place of others
			q := parse(t, randomQuery(r, r.IntN(4)))
			if r.IntN(5) == 0 {
				s.Drop(id)
				delete(each, id)
				continue
			}
			if err := s.Put(id, q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			m, err := index.Compile(q, opt)
			if err != nil {
				t.Fatal(err)
			}
			if noNumbers {
				m.WithoutNumbers()
			}
			each[id] = m
		}
		for range 300 {
			doc := fields("url", "http://alpha/", "title", randomText(r), "full-text", randomText(r)+randomText(r), "size", fmt.Sprint(r.IntN(100)))
			if r.IntN(2) == 0 {
				doc = append(doc, index.Field{Name: "Author", Text: randomText(r)})
			}
			got, _ := s.Match(doc)
			var want []uint32
			for id, m := range each {
				if m.Match(doc) {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%v: got %v, want %v", doc, got, want)
			}
		}
	}
}

// A query is tried only on documents that have what it needs.
func TestFewAreTried(t *testing.T) {
	s := NewStanding(Manner{}, func(word string) int {
		if word == "common" {
			return 1000
		}
		return 1
	})
	for i, text := range []string{"common and rare", "title : fuse", `"the common cold"`, "size > 5", "a or b", "not c", "/x.*y/", "rare and not common"} {
		if err := s.Put(uint32(i), parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		doc   []index.Field
		tried int
	}{
		{fields("text", "common"), 2},                // not c, /x.*y/
		{fields("text", "common rare"), 4},           // and both with rare
		{fields("text", "fuse"), 2},                  // not in the title
		{fields("title", "fuse", "size", "1"), 3},    // the title; the size is too little
		{fields("title", "box", "size", "6"), 3},     // the size
		{fields("text", "b a"), 3},                   // a or b, once
		{fields("text", "the common cold is in"), 3}, // by the or cold
	} {
		if _, tried := s.Match(c.doc); tried != c.tried {
			t.Errorf("%v: got %d tried, want %d", c.doc, tried, c.tried)
		}
	}
	if all, bare := s.Len(); all != 8 || bare != 2 {
		t.Errorf("got %d, %d bare, want 8, 2", all, bare)
	}
	for i := range 8 {
		s.Drop(uint32(i))
	}
	if len(s.words)+len(s.attrs)+len(s.spans)+len(s.bare)+len(s.all) != 0 {
		t.Errorf("something is left of queries that were dropped: %v %v", s.words, s.attrs)
	}
}

func TestPutRefuses(t *testing.T) {
	s := NewStanding(Manner{}, nil)
	if err := s.Put(1, parse(t, "fuse")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(1, query.Regexp{Expr: "("}); err == nil {
		t.Error("a bad expression stands")
	}
	if ids, _ := s.Match(fields("text", "fuse")); !slices.Equal(ids, []uint32{1}) {
		t.Errorf("got %v, want what stood", ids)
	}
}

// BenchmarkMatch is what a new object of 1,000 words costs where so many
// queries stand: two words joined, of which one may be of an attribute.
func BenchmarkMatch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%d", int(20000*r.ExpFloat64()/5)) }
	for _, n := range []int{100, 10_000, 100_000} {
		s := NewStanding(Manner{}, nil)
		for i := range n {
			text := word() + " and " + word()
			switch i % 4 {
			case 0:
				text = "type : pdf and author : " + word()
			case 1:
				text += " and not " + word()
			}
			if err := s.Put(uint32(i), parse(b, text)); err != nil {
				b.Fatal(err)
			}
		}
		var text strings.Builder
		for range 1000 {
			text.WriteString(word() + " ")
		}
		doc := fields("url", "http://x/y", "type", "PDF", "author", word(), "title", word()+" "+word(), "full-text", text.String())
		b.Run(fmt.Sprintf("queries=%d", n), func(b *testing.B) {
			var tried, found int
			for b.Loop() {
				ids, n := s.Match(doc)
				tried, found = n, len(ids)
			}
			b.ReportMetric(float64(tried), "tried")
			b.ReportMetric(float64(found), "found")
		})
	}
}

// BenchmarkMatchRanges is the same where all queries are ranges of sizes and
// dates, of which one in a thousand or so holds a value.
func BenchmarkMatchRanges(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		r := rand.New(rand.NewPCG(1, 2))
		s := NewStanding(Manner{}, nil)
		for i := range n {
			low := r.IntN(1_000_000)
			text := fmt.Sprintf("size : %d..%d", low, low+r.IntN(2000))
			switch i % 4 {
			case 0:
				month := fmt.Sprintf("20%02d-%02d", r.IntN(100), 1+r.IntN(12))
				text = "date : " + month + "-01.." + month + "-05"
			case 1:
				text = fmt.Sprintf("author = smith%d", r.IntN(n))
			case 2:
				text += " and date > 2001-01-01"
			}
			if err := s.Put(uint32(i), parse(b, text)); err != nil {
				b.Fatal(err)
			}
		}
		doc := fields("size", "500000", "date", "2026-03-02", "author", "smith7", "title", "a title of some words", "full-text", strings.Repeat("words of a text ", 100))
		b.Run(fmt.Sprintf("queries=%d", n), func(b *testing.B) {
			var tried, found int
			for b.Loop() {
				ids, n := s.Match(doc)
				tried, found = n, len(ids)
			}
			b.ReportMetric(float64(tried), "tried")
			b.ReportMetric(float64(found), "found")
		})
	}
}
