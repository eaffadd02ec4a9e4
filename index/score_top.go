package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
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
	return less(&a.id, &b.id)
}

func less(a, b *ID) bool {
	x, y := binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(b[:8])
	if x != y {
		return x < y
	}
	return binary.BigEndian.Uint64(a[8:]) < binary.BigEndian.Uint64(b[8:])
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
		t.up(&f, len(t.heap)-1)
	case better(&f, &t.heap[0]):
		t.down(&f)
	}
}

// takes tells whether add would keep a document.
func (t *top) takes(score float64, id *ID) bool {
	if t.limit == 0 || len(t.heap) < t.limit {
		return true
	}
	worst := &t.heap[0]
	return score > worst.score || score == worst.score && less(id, &worst.id)
}

// up puts f in at i or above it.
func (t *top) up(f *candidate, i int) {
	h := t.heap
	for i > 0 {
		parent := (i - 1) / 2
		if !better(&h[parent], f) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = *f
}

// down puts f in place of the first, or below it.
func (t *top) down(f *candidate) {
	h, i := t.heap, 0
	for {
		kid := 2*i + 1
		if kid >= len(h) {
			break
		}
		if kid+1 < len(h) && better(&h[kid], &h[kid+1]) {
			kid++
		}
		if !better(f, &h[kid]) {
			break
		}
		h[i] = h[kid]
		i = kid
	}
	h[i] = *f
}

// fewSorted is how many are sorted by moving each to its place.
const fewSorted = 16

// sorted gives the documents in order.
func (t *top) sorted() []candidate {
	h := t.heap
	if len(h) > fewSorted {
		slices.SortFunc(h, compareFound)
		return h
	}
	for i := 1; i < len(h); i++ {
		f, j := h[i], i
		for ; j > 0 && better(&f, &h[j-1]); j-- {
			h[j] = h[j-1]
		}
		h[j] = f
	}
	return h
}
