package index

import (
	"bytes"
	"cmp"
	"slices"
)

// A candidate is a document that matches, with its score.
type candidate struct {
	score float64
	part  int32
	doc   uint32
	id    ID
	whole bool    // all words of a bag are there
	near  float64 // what their nearness gave

	outside float64 // share of the weight from outside
}

// better is the order of hits: by score, then by ID.
func better(a, b *candidate) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return bytes.Compare(a.id[:], b.id[:]) < 0
}

func compareFound(a, b candidate) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return bytes.Compare(a.id[:], b.id[:])
}

// A top keeps the best limit documents of those it is given, or all if limit
// is 0. While it has a limit it is a heap with the worst of them in front.
type top struct {
	limit int
	heap  []candidate
}

func (t *top) reset(limit int) {
	t.limit = limit
	t.heap = t.heap[:0]
}

// least is the score below which a document is not kept; one that has just
// this score is kept if its ID comes first.
func (t *top) least() float64 {
	if t.limit == 0 || len(t.heap) < t.limit {
		return -1
	}
	return t.heap[0].score
}

func (t *top) add(f candidate) {
	switch {
	case t.limit == 0:
		t.heap = append(t.heap, f)
	case len(t.heap) < t.limit:
		t.heap = append(t.heap, f)
		t.up(len(t.heap) - 1)
	case better(&f, &t.heap[0]):
		t.heap[0] = f
		t.down()
	}
}

func (t *top) up(i int) {
	h := t.heap
	for i > 0 {
		parent := (i - 1) / 2
		if !better(&h[parent], &h[i]) {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (t *top) down() {
	h := t.heap
	for i := 0; ; {
		worst := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < len(h); kid++ {
			if better(&h[worst], &h[kid]) {
				worst = kid
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

// sorted gives the documents in order.
func (t *top) sorted() []candidate {
	slices.SortFunc(t.heap, compareFound)
	return t.heap
}
