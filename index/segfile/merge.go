package segfile

// Segments of like size are merged fanIn at a time, so each document is
// written again once for each factor of fanIn that the index is larger than a
// small segment; one of which more than half is gone is written anew.
const fanIn = 8

// Due chooses, of n segments in the order they came, those to be merged, none if
// all is well: neighbours in age where it can, so that documents stay in the
// order they came. Of gives a segment's bytes, and how many of its documents
// are left and gone; one of less than small bytes is small.
func Due(n, small int, of func(i int) (size, live, gone int)) []int {
	tiers := make(map[int][]int)
	for i := range n {
		size, live, gone := of(i)
		if gone > live {
			return []int{i}
		}
		tier := 0
		for size /= small; size > 0; size /= fanIn {
			tier++
		}
		if tiers[tier] = append(tiers[tier], i); len(tiers[tier]) == fanIn {
			return tiers[tier]
		}
	}
	return nil
}
