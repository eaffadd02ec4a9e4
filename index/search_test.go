package index

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/index/query"
)

// A naive index is documents as lists of words.
type naive struct {
	docs []naiveDoc
	n    map[string]int // documents by word
	text int
}

type naiveDoc struct {
	id     ID
	values map[string][][]string // by attribute: values as words
	words  int
}

func newNaive(docs []Doc) *naive {
	x := &naive{n: make(map[string]int)}
	for i := range docs {
		d := naiveDoc{id: docs[i].ID, values: make(map[string][][]string)}
		seen := make(map[string]bool)
		for _, f := range docs[i].Fields {
			ws := terms(f.Text)
			d.values[f.Name] = append(d.values[f.Name], ws)
			d.words += len(ws)
			for _, w := range ws {
				if !seen[w] {
					seen[w] = true
					x.n[w]++
				}
			}
		}
		x.text += d.words
		x.docs = append(x.docs, d)
	}
	return x
}

func (x *naive) idf(w string) float64 {
	n := float64(x.n[w])
	return math.Log(1 + (float64(len(x.docs))-n+0.5)/(n+0.5))
}

// places are where q stands in a value.
func places(q query.Node, words []string) (out [][2]int) {
	switch q := q.(type) {
	case query.Word:
		return places(query.Phrase(q), words)
	case query.Phrase:
		ws := strings.Fields(q.Text)
		for i := 0; i+len(ws) <= len(words); i++ {
			if slices.Equal(words[i:i+len(ws)], ws) {
				out = append(out, [2]int{i, i + len(ws) - 1})
			}
		}
	case query.Near:
		out = places(q.Nodes[0], words)
		for _, n := range q.Nodes[1:] {
			var next [][2]int
			for _, b := range places(n, words) {
				if slices.ContainsFunc(out, func(a [2]int) bool {
					after, before := b[0]-a[1], a[0]-b[1]
					return after >= 1 && after <= q.Distance || !q.Ordered && before >= 1 && before <= q.Distance
				}) {
					next = append(next, b)
				}
			}
			out = next
		}
	}
	return out
}

func (x *naive) leafIDF(q query.Node) (sum float64) {
	switch q := q.(type) {
	case query.Word:
		return x.idf(q.Text)
	case query.Phrase:
		for _, w := range strings.Fields(q.Text) {
			sum += x.idf(w)
		}
	case query.Near:
		for _, n := range q.Nodes {
			sum += x.leafIDF(n)
		}
	}
	return sum
}

// leaf gives how often q stands in each attribute it is asked of.
func (d *naiveDoc) leaf(q query.Node, attr string, weights map[string]float64) map[string]int {
	out := make(map[string]int)
	for name, values := range d.values {
		if attr != "" && attr != name || attr == "" && weights[name] == 0 {
			continue
		}
		for _, v := range values {
			if n := len(places(q, v)); n > 0 {
				out[name] += n
			}
		}
	}
	return out
}

// match tells whether d matches, and scores each leaf once.
func (x *naive) match(d *naiveDoc, q query.Node, attr string, not bool, weights map[string]float64, scores map[string]float64) bool {
	join := func(all bool, list []query.Node) bool {
		n := 0
		for _, k := range list {
			if x.match(d, k, attr, not, weights, scores) {
				n++
			}
		}
		return n == len(list) || !all && n > 0
	}
	switch q := q.(type) {
	case query.All:
		return true
	case query.And:
		return join(true, q)
	case query.Or:
		return join(false, q)
	case query.Bag:
		return join(false, q)
	case query.Not:
		return !x.match(d, q.Node, attr, true, weights, scores)
	case query.Attr:
		return x.match(d, q.Value, q.Name, not, weights, scores)
	}
	counts := d.leaf(q, attr, weights)
	if !not && len(counts) > 0 {
		sum := 0.0
		length := float64(NormLength(Norm(d.words)))
		for name, n := range counts {
			w := weights[name]
			if w == 0 {
				w = 1
			}
			tf := float64(n)
			sum += w * x.leafIDF(q) * tf * (bm25K1 + 1) / (tf + bm25K1*(1-bm25B+bm25B*length/max(float64(x.text)/float64(len(x.docs)), 1)))
		}
		scores[attr+":"+strings.Join(strings.Fields(strings.Trim(q.String(), `"`)), " ")] = sum
	}
	return len(counts) > 0
}

func (x *naive) search(q query.Node, weights map[string]float64) (out []Hit) {
	for i := range x.docs {
		d := &x.docs[i]
		scores := make(map[string]float64)
		if x.match(d, q, "", false, weights, scores) {
			h := Hit{ID: d.id}
			for _, v := range scores {
				h.Score += v
			}
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out
}

// A maker makes documents and queries.
type maker struct {
	*rand.Rand
	words []string
}

func newMaker(t testing.TB) *maker {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SEED=%d", seed)
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 400 { // the last are rare enough for sparse lists
		m.words = append(m.words, fmt.Sprintf("w%c", 'a'+i%26)+strings.Repeat("x", i/26))
	}
	return m
}

// word prefers the first ones, much.
func (m *maker) word() string {
	f := m.Float64()
	return m.words[int(f*f*f*float64(len(m.words)))]
}

func (m *maker) text(n int) string {
	var b strings.Builder
	for range m.IntN(n) {
		b.WriteString(m.word() + " ")
	}
	return b.String()
}

func (m *maker) docs(n int) (out []Doc) {
	for range n {
		d := Doc{}
		for i := range d.ID {
			d.ID[i] = byte(m.IntN(256))
		}
		for range 1 + m.IntN(3) {
			name := []string{"title", "body", "body", "other"}[m.IntN(4)]
			d.Fields = append(d.Fields, Field{name, m.text(60)})
		}
		out = append(out, d)
	}
	return out
}

func (m *maker) leaf() query.Node {
	switch m.IntN(6) {
	case 0:
		return query.Phrase{Text: m.word() + " " + m.word()}
	case 1:
		return query.Near{Nodes: []query.Node{query.Word{Text: m.word()}, query.Word{Text: m.word()}}, Distance: 1 + m.IntN(5), Ordered: m.IntN(2) == 0}
	}
	return query.Word{Text: m.word()}
}

func (m *maker) query(depth int) query.Node {
	if depth == 0 {
		return m.leaf()
	}
	var list []query.Node
	for range 2 + m.IntN(3) {
		list = append(list, m.query(depth-1))
	}
	switch m.IntN(6) {
	case 0, 1:
		return query.And(list[:2])
	case 2, 3:
		return query.Or(list)
	case 4:
		return query.Not{Node: list[0]}
	}
	return query.Attr{Name: []string{"title", "body", "other"}[m.IntN(3)], Value: m.leaf()}
}

func testEngine(t testing.TB, set Settings, docs ...[]Doc) *engine {
	t.Helper()
	e, err := Open(t.TempDir(), set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	for i, d := range docs {
		if err := e.Apply(context.Background(), Docs(d), nil, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	return e.(*engine)
}

func ask(t testing.TB, e Engine, q query.Node, opt Options) Results {
	t.Helper()
	r, err := e.Search(context.Background(), q, opt)
	if err != nil {
		t.Fatalf("%v: %v", q, err)
	}
	return r
}

func parse(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// sameHits compares hits with scores that may differ by rounding, and so hits
// that may have changed places.
func sameHits(got, want []Hit) string {
	if len(got) != len(want) {
		return fmt.Sprintf("got %d hits, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i].Score-want[i].Score) > 1e-9 {
			return fmt.Sprintf("hit %d: got score %v, want %v", i, got[i].Score, want[i].Score)
		}
		if got[i].ID != want[i].ID {
			j := slices.IndexFunc(want, func(h Hit) bool { return h.ID == got[i].ID })
			if j < 0 || math.Abs(want[j].Score-got[i].Score) > 1e-9 {
				return fmt.Sprintf("hit %d: got %v, want %v", i, got[i], want[i])
			}
		}
	}
	return ""
}

func rounds(t testing.TB, n int) int {
	if r, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
		t.Logf("ROUNDS=%d in place of %d", r, n)
		return r
	}
	return n
}

// The best few are the first of all, and all are what the formula says.
func TestSearchRandom(t *testing.T) {
	m := newMaker(t)
	weights := map[string]float64{"title": 3, "body": 1}
	opt := Options{Weight: func(a string) float64 { return weights[a] }}
	for range rounds(t, 1) {
		docs := m.docs(2000)
		x := newNaive(docs)
		e := testEngine(t, Settings{}, docs[:1500], docs[1500:1900], docs[1900:])
		for range 100 {
			q := m.query(m.IntN(3))
			all := ask(t, e, q, opt)
			if diff := sameHits(all.Hits, x.search(q, weights)); diff != "" {
				t.Fatalf("%v: %s", q, diff)
			}
			if all.Total != len(all.Hits) || all.AtLeast {
				t.Fatalf("%v: got total %d, %v, want %d", q, all.Total, all.AtLeast, len(all.Hits))
			}
			checkPages(t, m, e, q, opt, all)
			checkWhy(t, e, q, opt, all)
		}
	}
}

func checkPages(t *testing.T, m *maker, e Engine, q query.Node, opt Options, all Results) {
	t.Helper()
	for range 3 {
		opt := opt
		opt.Offset, opt.Limit, opt.Count = m.IntN(20), 1+m.IntN(20), m.IntN(2) == 0
		r := ask(t, e, q, opt)
		want := all.Hits[min(opt.Offset, len(all.Hits)):]
		want = want[:min(opt.Limit, len(want))]
		if !slices.EqualFunc(r.Hits, want, func(a, b Hit) bool { return a.ID == b.ID && a.Score == b.Score }) {
			t.Fatalf("%v: offset %d, limit %d: got %v, want exactly %v", q, opt.Offset, opt.Limit, r.Hits, want)
		}
		if opt.Count && (r.Total != all.Total || r.AtLeast) || r.Total > all.Total || !r.AtLeast && r.Total != all.Total {
			t.Fatalf("%v: got total %d (at least: %v), want %d", q, r.Total, r.AtLeast, all.Total)
		}
	}
}

// The parts of a score sum up to it.
func checkWhy(t *testing.T, e Engine, q query.Node, opt Options, all Results) {
	t.Helper()
	opt.Why, opt.Plan, opt.Limit = true, true, 20
	r := ask(t, e, q, opt)
	for i, h := range r.Hits {
		sum := 0.0
		for _, p := range h.Why {
			sum += p.Score
		}
		if math.Abs(sum-h.Score) > 1e-9 || h.Score != all.Hits[i].Score {
			t.Fatalf("%v: got parts %+v of score %v, want them to sum up to %v", q, h.Why, h.Score, all.Hits[i].Score)
		}
	}
	if len(r.Plan) == 0 {
		t.Fatalf("%v: got no plan", q)
	}
}
