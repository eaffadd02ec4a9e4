package near

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sort"

	"harvest/gather/dup"
)

// rowsFor is how many bins of a tree documents agree in that are compared when t
// is asked for: the most with which 0.99 of those that resemble each other by
// just so much agree in one of the trees.
func rowsFor(t float64) int {
	p := t + (1-t)/16 // that a bin agrees
	for r := dup.Rows; r > 1; r-- {
		if 1-math.Pow(1-math.Pow(p, float64(r)), dup.Trees) >= 0.99 {
			return r
		}
	}
	return 1
}

// crowd is how many documents are looked at in a tree. Where more agree, which is
// what they have from one form, they are to agree in one bin more; where that
// is all of a tree, as of a page that stands there ten thousand times, these are
// enough.
const crowd = 2048

// stretch is where in a tree the documents stand that agree with a key in so
// many rows, or in more if they are a crowd.
func (t *tree) stretch(key uint32, rows int) (from, to int) {
	from, to = 0, t.worded
	for ; ; rows++ {
		low := key &^ (1<<(4*(dup.Rows-rows)) - 1)
		high := low | 1<<(4*(dup.Rows-rows)) - 1
		first := from
		from += sort.Search(to-first, func(i int) bool { return t.keyAt(first+i) >= low })
		step := 1 // most stretches are short
		for step < to-from && t.keyAt(from+step) <= high {
			step *= 2
		}
		to = from + sort.Search(min(step, to-from), func(i int) bool { return t.keyAt(from+i) > high })
		if to-from <= crowd || rows == dup.Rows {
			return from, min(to, from+crowd)
		}
	}
}

// A Match is a document and how much it resembles another.
type Match struct {
	ID ID
	By float64 // an estimate
}

// Near gives the documents that resemble one with such a sketch by t or more,
// the most alike first, that one too if it is there. Of a crowd that are the
// same it is some.
func (x *Index) Near(ctx context.Context, s *dup.Sketch, t float64) (out []Match, err error) {
	v, err := x.view()
	if err != nil || s.None() {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	rows, bound := rowsFor(t), dup.Bound(t)
	for _, p := range v.parts {
		seen := make(map[uint32]struct{})
		for i := range dup.Trees {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			tr := p.tree(i)
			from, to := tr.stretch(s.Tree(i), rows)
			for j := from; j < to; j++ {
				d := tr.at(j)
				if _, ok := seen[d]; ok || p.gone.Has(d) {
					continue
				}
				seen[d] = struct{}{}
				if by := dup.Resemblance(s, p.sketch(d)); by >= bound {
					out = append(out, Match{p.ids.ID(d), by})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.By, a.By), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return out, nil
}

// Get gives a document, and whether it is there.
func (x *Index) Get(id ID) (Doc, bool, error) {
	v, err := x.view()
	if err != nil {
		return Doc{}, false, err
	}
	defer runtime.KeepAlive(v)
	for i := len(v.parts) - 1; i >= 0; i-- {
		p := &v.parts[i]
		if d, ok := p.ids.Find(id); ok && !p.gone.Has(d) {
			return Doc{id, decodeBytes(p.bytesOf(d)), *p.sketch(d)}, true, nil
		}
	}
	return Doc{}, false, nil
}

// Copies gives the documents with those bytes, by ID.
func (x *Index) Copies(of Bytes) (out []ID, err error) {
	v, err := x.view()
	if err != nil || of == (Bytes{}) {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	want := of.encode()
	for _, p := range v.parts {
		n := len(p.copies) / 4
		i := sort.Search(n, func(i int) bool { return bytes.Compare(p.bytesOf(p.copy(i)), want) >= 0 })
		for ; i < n && bytes.Equal(p.bytesOf(p.copy(i)), want); i++ {
			if d := p.copy(i); !p.gone.Has(d) {
				out = append(out, p.ids.ID(d))
			}
		}
	}
	slices.SortFunc(out, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return out, nil
}
