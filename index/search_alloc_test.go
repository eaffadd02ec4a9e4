package index

import (
	"context"
	"testing"

	"harvest/index/query"
)

// A search of words allocates nothing once there is a searcher.
func TestSearchAllocs(t *testing.T) {
	if raceOn {
		t.Skip("allocations are counted without the race detector: with it a sync.Pool forgets at random")
	}
	m := newMaker(t)
	docs := m.docs(3000)
	e := testEngine(t, Settings{}, docs[:2000], docs[2000:])
	weights := func(a string) float64 { return map[string]float64{"title": 3, "body": 1}[a] }
	opt := Options{Weight: weights, Limit: 10, Buf: make([]Hit, 0, 10)}
	a, b, rare := query.Word{Text: m.words[0]}, query.Word{Text: m.words[1]}, query.Word{Text: m.words[39]}
	for _, q := range []query.Node{
		a, rare, query.And{a, b}, query.And{rare, a}, query.And{a, query.Not{Node: rare}},
		query.Attr{Name: "title", Value: a}, query.Or{a, b},
	} {
		got := testing.AllocsPerRun(20, func() {
			if _, err := e.Search(context.Background(), q, opt); err != nil {
				t.Error(err)
			}
		})
		if got > 0 {
			t.Errorf("%v: got %v allocations, want none", q, got)
		}
	}
}
