package gather

import (
	"cmp"
	"context"
	"slices"

	"harvest/gather/crawl"
)

// mostLinked finds the n servers that the most other servers have links to; of
// equals those that have more links, and then those met first.
func (g *Gatherer) mostLinked(ctx context.Context, n int) (top []crawl.Linked, err error) {
	before := func(a, b crawl.Linked) int {
		return cmp.Or(b.From-a.From, b.Links-a.Links, cmp.Compare(a.Server, b.Server))
	}
	for l, err := range g.db.Linked(ctx) {
		if err != nil {
			return nil, err
		}
		if g.db.Server(l.Server).Documents == 0 {
			continue // all were forgotten
		}
		at, _ := slices.BinarySearchFunc(top, l, before)
		if at < n {
			top = slices.Insert(top, at, l)
			top = top[:min(len(top), n)]
		}
	}
	return top, nil
}
