package crawl

import (
	"bytes"
	"context"
	"iter"
	"slices"
)

// Copies yields the documents stored whose bytes had the same MD5 as those of
// another, together and ascending, MD5 by MD5.
func (f *DB) Copies(ctx context.Context) iter.Seq2[[]DocID, error] {
	return func(yield func([]DocID, error) bool) {
		type sum struct {
			md5 [16]byte
			id  DocID
		}
		var sums []sum
		for d, err := range f.Documents(ctx, "") {
			if err != nil {
				yield(nil, err)
				return
			}
			if d.State == Stored && d.MD5 != [16]byte{} {
				sums = append(sums, sum{d.MD5, d.ID})
			}
		}
		slices.SortStableFunc(sums, func(a, b sum) int { return bytes.Compare(a.md5[:], b.md5[:]) })
		for len(sums) > 0 {
			n := 1
			for n < len(sums) && sums[n].md5 == sums[0].md5 {
				n++
			}
			if n > 1 {
				same := make([]DocID, n)
				for i := range same {
					same[i] = sums[i].id
				}
				slices.Sort(same)
				if !yield(same, nil) {
					return
				}
			}
			sums = sums[n:]
		}
	}
}
