package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"harvest/index/query"
)

// TestOrdered asks for ranges of very many keys, in queries of comparisons alone and
// with words, and compares with what the texts say.
func TestOrdered(t *testing.T) {
	const n = 3000
	r := rand.New(rand.NewPCG(1, 2))
	docs := make([]Doc, n)
	sizes, times := make([][]int, n), make([]int, n)
	for i := range docs {
		docs[i].ID = ID{byte(r.Uint32()), byte(r.Uint32()), byte(i >> 8), byte(i)}
		word := "odd"
		if i%2 == 0 {
			word = "even"
		}
		docs[i].Fields = []Field{{Name: "body", Text: word}}
		for range r.IntN(3) { // none, one or two
			size := r.IntN(5000)
			sizes[i] = append(sizes[i], size)
			docs[i].Fields = append(docs[i].Fields, Field{Name: "size", Text: strconv.Itoa(size)})
		}
		times[i] = 100_000_000 + r.IntN(1_000_000_000)
		docs[i].Fields = append(docs[i].Fields, Field{Name: "when", Text: strconv.Itoa(times[i])})
	}
	e := testEngine(t, Settings{}, docs)
	gone := make([]bool, n)
	var deletes []ID
	for i := 0; i < n; i += 7 {
		gone[i] = true
		deletes = append(deletes, docs[i].ID)
	}
	if err := e.Apply(t.Context(), nil, deletes, "later"); err != nil {
		t.Fatal(err)
	}
	any := func(list []int, ok func(int) bool) bool { return slices.ContainsFunc(list, ok) }
	for range 60 {
		low, high, at := r.IntN(5000), r.IntN(5000), 100_000_000+r.IntN(1_000_000_000)
		cases := []struct {
			text string
			ok   func(i int) bool
		}{
			{fmt.Sprintf("size > %d", low), func(i int) bool { return any(sizes[i], func(s int) bool { return s > low }) }},
			{fmt.Sprintf("size <= %d and when >= %d", low, at), func(i int) bool { return any(sizes[i], func(s int) bool { return s <= low }) && times[i] >= at }},
			{fmt.Sprintf("size : %d..%d or when < %d", low, high, at), func(i int) bool {
				return any(sizes[i], func(s int) bool { return s >= low && s <= high }) || times[i] < at
			}},
			{fmt.Sprintf("size >= %d and not when > %d", low, at), func(i int) bool { return any(sizes[i], func(s int) bool { return s >= low }) && times[i] <= at }},
			{fmt.Sprintf("not size < %d", low), func(i int) bool { return !any(sizes[i], func(s int) bool { return s < low }) }},
			{fmt.Sprintf("body : even and when > %d", at), func(i int) bool { return i%2 == 0 && times[i] > at }},
			{fmt.Sprintf("size = %d or size > %d", low, high), func(i int) bool { return any(sizes[i], func(s int) bool { return s == low || s > high }) }},
		}
		for _, c := range cases {
			q, err := query.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			var want []ID
			for i := range docs {
				if !gone[i] && c.ok(i) {
					want = append(want, docs[i].ID)
				}
			}
			sameIDs(t, c.text, ask(t, e, q, Options{}), want, len(want))
			sameIDs(t, c.text, ask(t, e, q, Options{Limit: 10, Count: true}), want, 10)
		}
	}
}

// sameIDs checks the first hits and how many there are; of hits without a score those
// with the least IDs come first.
func sameIDs(t *testing.T, text string, got Results, want []ID, first int) {
	t.Helper()
	if got.Total != len(want) {
		t.Fatalf("%s: got %d documents, want %d", text, got.Total, len(want))
	}
	if len(got.Hits) > 0 && got.Hits[0].Score > 0 {
		return // the order is that of words
	}
	want = slices.SortedFunc(slices.Values(want), func(a, b ID) int { return slices.Compare(a[:], b[:]) })
	want = want[:min(first, len(want))]
	if len(got.Hits) != len(want) {
		t.Fatalf("%s: got %d hits, want %d", text, len(got.Hits), len(want))
	}
	for i := range want {
		if got.Hits[i].ID != want[i] {
			t.Fatalf("%s: hit %d: got %v, want %v", text, i, got.Hits[i].ID, want[i])
		}
	}
}
