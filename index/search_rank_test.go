package index

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"harvest/index/query"
)

// texts is a Source of what is in it.
type texts map[ID][]Field

func (t texts) Text(ctx context.Context, ids []ID, yield func(i int, fields []Field) bool) error {
	for i, id := range ids {
		if f, ok := t[id]; ok && !yield(i, f) {
			break
		}
	}
	return ctx.Err()
}

func bodies(list ...string) (docs []Doc, src texts) {
	src = make(texts)
	for i, s := range list {
		d := Doc{ID: ID{byte(i + 1)}, Fields: []Field{{"body", s}}}
		docs = append(docs, d)
		src[d.ID] = d.Fields
	}
	return docs, src
}

func order(r Results) (out []byte) {
	for _, h := range r.Hits {
		out = append(out, h.ID[0])
	}
	return out
}

type outsideTable map[ID]float64

func (t outsideTable) Weight(id ID) float64 { return t[id] }

// The mixture, computed by hand from scores without it.
func TestExternal(t *testing.T) {
	docs, _ := bodies("x x x a", "x x b c", "x d e f g", "x h i j k l m", "y")
	e := testEngine(t, Settings{}, docs[:2], docs[2:])
	q := query.Word{Text: "x"}
	plain := ask(t, e, q, Options{}).Hits
	if got := order(Results{Hits: plain}); string(got) != "\x01\x02\x03\x04" {
		t.Fatalf("got order %v without weights", got)
	}
	outside := outsideTable{{4}: 1, {3}: 0.5, {2}: math.NaN(), {5}: 1}
	spread := 1 - plain[1].Score/plain[0].Score // a quarter of 4 down
	a0 := 1 - math.Log10(4)/20
	a := a0 + (1-a0)*spread
	r := ask(t, e, q, Options{External: outside, Why: true})
	if r.Total != 4 || len(r.Hits) != 4 {
		t.Fatalf("got %d hits of %d, want 4", len(r.Hits), r.Total)
	}
	for _, h := range r.Hits {
		i := slices.IndexFunc(plain, func(p Hit) bool { return p.ID == h.ID })
		want := a * plain[i].Score / plain[0].Score
		if w := outside[h.ID]; w > 0 {
			want += (1 - a) * w
		}
		sum := 0.0
		for _, p := range h.Why {
			sum += p.Score
		}
		if math.Abs(h.Score-want) > 1e-9 || math.Abs(sum-want) > 1e-9 {
			t.Errorf("document %d: got score %v of parts %v, want %v", h.ID[0], h.Score, h.Why, want)
		}
	}
	page := ask(t, e, q, Options{External: outside, Limit: 2, Offset: 1})
	if !slices.EqualFunc(page.Hits, r.Hits[1:3], func(a, b Hit) bool { return a.ID == b.ID && a.Score == b.Score }) {
		t.Errorf("got page %v, want %v", page.Hits, r.Hits[1:3])
	}
}

func TestMixing(t *testing.T) {
	for _, tt := range []struct {
		matches      int
		spread, want float64
	}{
		{1, 0, 1}, {100, 0, 0.9}, {100, 1, 1}, {100, 0.5, 0.95}, {10_000_000, 0, 2.0 / 3},
	} {
		if got := mixing(tt.matches, tt.spread); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%d matches, spread %v: got %v, want %v", tt.matches, tt.spread, got, tt.want)
		}
	}
}

func TestNth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		list := make([]float64, 1+rnd.IntN(40))
		for i := range list {
			list[i] = float64(rnd.IntN(10))
		}
		sorted := slices.Clone(list)
		slices.Sort(sorted)
		slices.Reverse(sorted)
		n := rnd.IntN(len(list))
		if got := nth(list, n); got != sorted[n] {
			t.Fatalf("%v: got %v in place %d, want %v", sorted, got, n, sorted[n])
		}
	}
}

// Feedback orders what matches by what the best have in common, and finds no
// more.
func TestFeedback(t *testing.T) {
	docs, src := bodies(
		"cache cache cache coherence protocol directory", "cache coherence protocol directory snoop", "cache hidden food squirrel winter",
		"cache coherence snoop directory winter", "coherence protocol directory snoop", "food squirrel", "winter food", "nothing here")
	e := testEngine(t, Settings{Source: src}, docs)
	q := query.Word{Text: "cache"}
	plain, more := ask(t, e, q, Options{}), ask(t, e, q, Options{Feedback: 2, Why: true})
	if got := order(plain); string(got) != "\x01\x02\x03\x04" {
		t.Fatalf("got order %v, want 1 2 3 4 without feedback", got)
	}
	if got := order(more); more.Total != 4 || got[3] != 3 {
		t.Errorf("got order %v of %d, want the squirrels' last of 4", got, more.Total)
	}
	for _, h := range more.Hits {
		sum := 0.0
		for _, p := range h.Why {
			sum += p.Score
		}
		if math.Abs(sum-h.Score) > 1e-9 {
			t.Errorf("document %d: got parts %v of score %v, want them to sum up to it", h.ID[0], h.Why, h.Score)
		}
	}
}

func TestSimilarDocuments(t *testing.T) {
	docs, src := bodies(
		"the cache coherence protocol of the directory", "the coherence protocol and the snoop", "the squirrel and the winter", "the winter food of the squirrel")
	e := testEngine(t, Settings{}, docs)
	for id, want := range map[byte]string{1: "\x01\x02", 3: "\x03\x04"} {
		r, err := e.Similar(context.Background(), src[ID{id}], Options{Limit: 2})
		if err != nil || string(order(r)) != want {
			t.Errorf("like %d: got order %v, %v, want %v", id, order(r), err, []byte(want))
		}
	}
	if r, err := e.Similar(context.Background(), nil, Options{}); err != nil || r.Total != 0 {
		t.Errorf("like nothing: got %d documents, %v", r.Total, err)
	}
}

// A limit that is met is told.
func TestSearchLimits(t *testing.T) {
	var list []string
	for i := range 200 {
		list = append(list, strings.Repeat("Plan ", i%3)+"plan word"+string(rune('a'+i%26)))
	}
	docs, src := bodies(list...)
	e := testEngine(t, Settings{Source: src}, docs)
	all := ask(t, e, query.Wild{Pattern: "word*"}, Options{})
	if all.Total != 200 || all.Cut != "" {
		t.Errorf("got %d documents, cut %q, want 200", all.Total, all.Cut)
	}
	if r := ask(t, e, query.Wild{Pattern: "word*"}, Options{Limits: Limits{Terms: 5}}); r.Total >= 200 || r.Total == 0 || r.Cut == "" {
		t.Errorf("5 words: got %d documents, cut %q", r.Total, r.Cut)
	}
	cased := Options{Case: true}
	if r := ask(t, e, query.Word{Text: "Plan"}, cased); r.Total != 133 || r.Cut != "" {
		t.Errorf("got %d documents, cut %q, want 133", r.Total, r.Cut)
	}
	cased.Limits.Bytes = 100
	if r := ask(t, e, query.Word{Text: "Plan"}, cased); r.Total >= 133 || r.Total == 0 || r.Cut == "" || !r.AtLeast {
		t.Errorf("100 bytes: got %d documents (at least: %v), cut %q", r.Total, r.AtLeast, r.Cut)
	}
}

// A fading context ends after some questions for its end.
type fading struct {
	context.Context
	left int
}

func (f *fading) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever a search is when its context ends, it says so, and is none the
// worse for the next.
func TestSearchCancelled(t *testing.T) {
	m := newMaker(t)
	docs := m.docs(2500)
	src := make(texts)
	for _, d := range docs {
		src[d.ID] = d.Fields
	}
	e := testEngine(t, Settings{Source: src}, docs[:2000], docs[2000:])
	for _, text := range []string{"wa", "wa and wb", "not wz", "wa wb wc", `"wa wb"`, "w*", "/w[a-f]/ and wa~1", "/w. w/t", "wa near wb"} {
		q := parse(t, text)
		for _, opt := range []Options{{}, {Limit: 10}, {Rank: RankNone}, {Rank: RankValue, Sort: "title"}, {Feedback: 3, Limit: 5}} {
			want := ask(t, e, q, opt)
			for n := 0; ; n = n*3/2 + 1 {
				r, err := e.Search(&fading{context.Background(), n}, q, opt)
				if err == nil {
					if r.Total != want.Total || len(r.Hits) != len(want.Hits) {
						t.Errorf("%s: got %d hits of %d, want %d of %d", text, len(r.Hits), r.Total, len(want.Hits), want.Total)
					}
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("%s after %d: got %v, want %v", text, n, err, context.Canceled)
				}
			}
		}
	}
}

// What stands as the query has it comes before what allows errors do, however
// often that stands.
func TestExactFirst(t *testing.T) {
	docs, src := bodies("kernal kernal kernal kernal", "kernel one two three", "kernels kernels one two", "other one two three")
	e := testEngine(t, Settings{Source: src}, docs)
	for _, tt := range []struct {
		text string
		opt  Options
	}{
		{"kernel~1", Options{Why: true, Plan: true}}, {"kernel", Options{Errors: 1}}, {"kernel~1 or nothing", Options{}},
		{"body : kernel~1", Options{}}, {"kernel~1", Options{Limit: 1}}, {"kernel~2 zzz", Options{}},
	} {
		q, err := query.Parse(tt.text)
		must(t, err)
		r := ask(t, e, q, tt.opt)
		if r.Total != 3 && tt.opt.Limit == 0 || r.Hits[0].ID != (ID{2}) {
			t.Errorf("%s: got %d hits, %v first, want 3, %v", tt.text, r.Total, r.Hits[0].ID, ID{2})
		}
		if tt.opt.Plan && !strings.Contains(strings.Join(r.Plan, "\n"), "\nkernel: documents 1, without errors: it only scores") {
			t.Errorf("got plan %q", r.Plan)
		}
	}
	if r := ask(t, e, query.And{query.All{}, query.Not{Node: query.Fuzzy{Text: "kernel", Errors: 1}}}, Options{}); r.Total != 1 || r.Hits[0].Score != 0 {
		t.Errorf("under a not: got %+v, want one hit that scores nothing", r)
	}
}

// Patterns score where case counts as they do where it does not.
func TestCasedPatterns(t *testing.T) {
	docs, src := bodies("Kern one two three", "Kernel Kernels Kerning one", "kernel kernel kernel kernel", "other one two three")
	e := testEngine(t, Settings{Source: src}, docs)
	for _, text := range []string{"Kern*", "/Kern[a-z]*/", "Kern~2"} {
		q, err := query.Parse(text)
		must(t, err)
		r := ask(t, e, q, Options{Case: true, Why: true})
		if len(r.Hits) < 2 || r.Hits[0].Score <= r.Hits[1].Score || r.Hits[0].Score == 0 {
			t.Errorf("%s: got %+v, want two or more hits with scores", text, r.Hits)
		}
		for _, h := range r.Hits {
			if h.ID == (ID{3}) {
				t.Errorf("%s: got the one in small letters", text)
			}
		}
	}
}

// Without numbers what is joined with one is found whole, not as a phrase.
func TestWithoutNumbers(t *testing.T) {
	docs, src := bodies("an x86_64 of 1984", "3.14 x86 64")
	for _, set := range []Settings{{Source: src, NoNumbers: true}, {Source: src, NoNumbers: true, NoPositions: true}} {
		e := testEngine(t, set, docs)
		for text, want := range map[string]int{"x86_64": 0, "x86_64~0": 1, "x86_*": 1, "x86": 2, "1984": 0, "3.14": 0, `"of 1984"`: 0} {
			q, err := query.Parse(text)
			must(t, err)
			if r := ask(t, e, q, Options{}); r.Total != want {
				t.Errorf("%+v: %s: got %d hits, want %d", set, text, r.Total, want)
			}
		}
	}
}
