package near

import (
	"runtime"

	"harvest/gather/dup"
)

// Among goes through documents in their order and tells of each which one before
// it, that itself is like none before it, it resembles the most, if by t or more:
// its place and the estimate. Of others, and of those that are not there, the
// place is their own.
func (x *Index) Among(ids []ID, t float64) (of []int, by []float64, err error) {
	v, err := x.view()
	if err != nil {
		return nil, nil, err
	}
	defer runtime.KeepAlive(v)
	rows, bound := rowsFor(t), dup.Bound(t)
	shift := 4 * (dup.Rows - rows)
	of, by = make([]int, len(ids)), make([]float64, len(ids))
	sketches := make([]*dup.Sketch, len(ids))
	trees := make(map[uint64][]int32) // tree and key: places of those that are like none before
	for i, id := range ids {
		of[i] = i
		s := v.sketch(id)
		if s == nil || s.None() {
			continue
		}
		sketches[i] = s
		for tree := range dup.Trees {
			for _, j := range trees[uint64(tree)<<32|uint64(s.Tree(tree)>>shift)] {
				if int(j) == of[i] {
					continue
				}
				if r := dup.Resemblance(s, sketches[j]); r >= bound && r > by[i] {
					of[i], by[i] = int(j), r
				}
			}
		}
		if of[i] != i {
			continue
		}
		for tree := range dup.Trees {
			k := uint64(tree)<<32 | uint64(s.Tree(tree)>>shift)
			if list := trees[k]; len(list) < crowd {
				trees[k] = append(list, int32(i))
			}
		}
	}
	return of, by, nil
}

// sketch is that of a document, nil if it is not there.
func (v *view) sketch(id ID) *dup.Sketch {
	for i := len(v.parts) - 1; i >= 0; i-- {
		p := &v.parts[i]
		if d, ok := p.ids.Find(id); ok && !p.gone.Has(d) {
			return p.sketch(d)
		}
	}
	return nil
}
