package index_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// amongDocs are n documents of few words.
func amongDocs(r *rand.Rand, n int) (docs []index.Doc) {
	words := strings.Fields("fuse mount kernel wire plan nine page the of")
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[int(float64(len(words))*r.Float64()*r.Float64())] + " ")
		}
		return b.String()
	}
	for i := range n {
		docs = append(docs, index.Doc{ID: index.ID{byte(i), byte(i >> 8)}, Fields: []index.Field{
			{Name: "title", Text: text(1 + r.IntN(3))}, {Name: "body", Text: text(1 + r.IntN(40))}, {Name: "pages", Text: fmt.Sprint(i)}}})
	}
	return docs
}

func openWith(t *testing.T, docs []index.Doc) index.Engine {
	t.Helper()
	e, err := index.Open(t.TempDir(), index.Settings{})
	must(t, err)
	t.Cleanup(func() { e.Close() })
	for len(docs) > 0 { // in several segments
		n := min(len(docs), 100)
		must(t, e.Apply(ctx, index.Docs(docs[:n]), nil, fmt.Sprint(len(docs))))
		docs = docs[n:]
	}
	return e
}

// censusOf is what the words of all documents say, counted one by one.
func censusOf(docs []index.Doc) *index.Among {
	among := &index.Among{Docs: len(docs), Count: make(map[string]int)}
	for _, d := range docs {
		seen := make(map[string]bool)
		for _, f := range d.Fields {
			index.Words(f.Text, func(w *index.Word) bool {
				if !w.Whole {
					among.Words++
					if word := string(w.Text); !seen[word] {
						seen[word] = true
						among.Count[word]++
					}
				}
				return true
			})
		}
	}
	return among
}

// The parts of a collection, asked with what is known of all of it, give each
// document the score that one index of everything gives it.
func TestAmongPartsScoreAsOne(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	docs := amongDocs(rand.New(rand.NewPCG(seed, 1)), 600)
	among := censusOf(docs)
	whole := openWith(t, docs)
	parts := []index.Engine{openWith(t, docs[:50]), openWith(t, docs[50:200]), openWith(t, docs[200:])}
	for _, text := range []string{"fuse", "nine page", "title : plan", "mount and not kernel", "fuse mount wire", `"plan nine"`, "page near/3 plan"} {
		q, err := query.Parse(text)
		must(t, err)
		best := 0 // all
		if _, ok := q.(query.Bag); ok {
			best = 100 // of which all are looked at for nearness
		}
		scores := func(e index.Engine, among *index.Among, best int, into map[index.ID]float64) {
			r, err := e.Search(ctx, q, index.Options{Among: among, Limit: best})
			must(t, err)
			for _, h := range r.Hits {
				into[h.ID] = h.Score
			}
		}
		want, got, local := make(map[index.ID]float64), make(map[index.ID]float64), make(map[index.ID]float64)
		scores(whole, among, best, want)
		for _, p := range parts {
			scores(p, among, 0, got)
			scores(p, nil, 0, local)
		}
		if len(got) < len(want) || best == 0 && len(got) > len(want) || len(want) == 0 {
			t.Fatalf("%s: got %d hits, want %d", text, len(got), len(want))
		}
		differ := false
		for id, w := range want {
			if math.Abs(got[id]-w) > 1e-6*w {
				t.Fatalf("%s: document %v: got score %v, want %v", text, id, got[id], w)
			}
			differ = differ || math.Abs(local[id]-w) > 1e-3*w
		}
		if !differ {
			t.Errorf("%s: the parts by themselves give the same scores, so this tells nothing", text)
		}
	}
}

// Terms counts as one who reads everything, and its bounds are no less than any
// score.
func TestTerms(t *testing.T) {
	docs := amongDocs(rand.New(rand.NewPCG(7, 7)), 700)
	e := openWith(t, docs)
	want := censusOf(docs)
	last, found := "", 0
	must(t, e.(index.Lister).Terms(ctx, func(term *index.Term) bool {
		word := string(term.Word)
		if word <= last {
			t.Errorf("got %q after %q", word, last)
		}
		last = word
		found++
		if term.Docs != want.Count[word] {
			t.Errorf("%s: got %d documents, want %d", word, term.Docs, want.Count[word])
		}
		n := float64(want.Count[word])
		idf := math.Log(1 + (float64(len(docs))-n+0.5)/(n+0.5))
		for _, in := range term.Attrs {
			q := query.Attr{Name: in.Attr, Value: query.Word{Text: word}}
			r, err := e.Search(ctx, q, index.Options{Limit: 1, Count: true})
			must(t, err)
			if r.Total != in.Docs {
				t.Errorf("%s: got %d documents, want %d", q, in.Docs, r.Total)
			}
			if best := r.Hits[0].Score; best > in.Most*idf*(1+1e-9) || in.Docs <= 100 && best < in.Most*idf*(1-1e-6) {
				t.Errorf("%s: got a bound of %v, want the best score, %v", q, in.Most*idf, best)
			}
		}
		return true
	}))
	if found != len(want.Count) {
		t.Errorf("got %d words, want %d", found, len(want.Count))
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.(index.Lister).Terms(stopped, func(*index.Term) bool { return true }); err == nil {
		t.Error("got no error of a listing that was cancelled")
	}
}

func TestKinds(t *testing.T) {
	e := openWith(t, []index.Doc{
		{ID: index.ID{1}, Fields: []index.Field{{Name: "size", Text: "100"}, {Name: "when", Text: "2001-02-03"}, {Name: "author", Text: "Smith"}, {Name: "ratio", Text: "-0.5"}}},
		{ID: index.ID{2}, Fields: []index.Field{{Name: "size", Text: "7"}, {Name: "when", Text: "1999"}, {Name: "author", Text: "5"}, {Name: "ratio", Text: "2"}}},
		{ID: index.ID{3}, Fields: []index.Field{{Name: "size", Text: "100"}}},
	})
	list, err := e.(index.Kinder).Kinds(ctx)
	must(t, err)
	got := make(map[string]index.Kind)
	for _, k := range list {
		got[k.Name] = k
	}
	if k := got["size"]; k.Docs != 3 || k.Distinct != 2 || k.Numbers != 2 || k.Whole != 2 || k.Low != 7 || k.High != 100 {
		t.Errorf("size: got %+v, want 2 whole numbers from 7 to 100", k)
	}
	if k := got["when"]; k.Dates != 2 || !k.First.Equal(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)) || k.Last.Year() != 2001 {
		t.Errorf("when: got %+v, want 2 dates from 1999 to 2001", k)
	}
	if k := got["author"]; k.Distinct != 2 || k.Numbers != 1 {
		t.Errorf("author: got %+v, want 2 values, one of them a number", k)
	}
	if k := got["ratio"]; k.Numbers != 2 || k.Whole != 1 || k.Low != -0.5 {
		t.Errorf("ratio: got %+v, want 2 numbers from -0.5, one of them whole", k)
	}
}
