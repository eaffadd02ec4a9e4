package gather

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"harvest/gather/crawl"
)

// A linked is a server that others link to.
type linked struct {
	server uint32
	from   int // servers that do
	links  int // from their documents to its
}

// maxPairs bounds how many pairs of servers are in memory at once, 8 bytes each.
const maxPairs = 4 << 20

// maxParts bounds how often the links are read: past 64 x 2 million pairs memory
// grows.
const maxParts = 64

// mostLinked finds the n servers that the most other servers link to.
func (g *Gatherer) mostLinked(ctx context.Context, n int) ([]linked, error) {
	var servers cells[uint32]
	for d, err := range g.db.Documents(ctx, "") {
		if err != nil {
			return nil, err
		}
		*servers.cell(uint32(d.ID)) = uint32(d.Server)
	}
	return countLinked(ctx, g.db.Links, &servers, n, maxPairs)
}

// countLinked counts exactly, in bounded memory: the pairs of servers are made in
// one pass over the links, and if there are more than fit, in two, each of half
// the servers that are linked to, or four, ...
func countLinked(ctx context.Context, links func(context.Context) iter.Seq2[crawl.Link, error], servers *cells[uint32], n, most int) ([]linked, error) {
	for parts := uint32(1); ; parts *= 2 {
		t := &linkCount{servers: servers, n: n, most: most, parts: parts}
		whole := true
		for t.part = 0; t.part < parts && whole; t.part++ {
			var err error
			if whole, err = t.pass(links(ctx)); err != nil {
				return nil, err
			}
		}
		if whole {
			return t.top, ctx.Err()
		}
	}
}

// A linkCount is one attempt: in so many parts.
type linkCount struct {
	servers     *cells[uint32]
	n, most     int
	part, parts uint32
	pairs       []uint64 // to and from
	links       cells[uint32]
	top         []linked // the first so far, in order
}

// pass counts one part; it is false when its pairs are too many.
func (t *linkCount) pass(links iter.Seq2[crawl.Link, error]) (bool, error) {
	t.pairs, t.links = t.pairs[:0], cells[uint32]{}
	for l, err := range links {
		if err != nil {
			return false, err
		}
		from := t.servers.get(uint32(l.From))
		for _, id := range l.To {
			to := t.servers.get(uint32(id))
			if from == to || from == 0 || to == 0 || to*2654435761>>16%t.parts != t.part {
				continue
			}
			*t.links.cell(to)++
			if t.pairs = append(t.pairs, uint64(to)<<32|uint64(from)); len(t.pairs) < t.most {
				continue
			}
			if t.compact(); len(t.pairs) <= t.most/2 {
				continue
			}
			if t.parts < maxParts {
				return false, nil
			}
			t.most = 2 * len(t.pairs)
		}
	}
	t.compact()
	for i := 0; i < len(t.pairs); {
		to, j := uint32(t.pairs[i]>>32), i
		for j < len(t.pairs) && uint32(t.pairs[j]>>32) == to {
			j++
		}
		t.add(linked{to, j - i, int(t.links.get(to))})
		i = j
	}
	return true, nil
}

// compact leaves each pair once.
func (t *linkCount) compact() {
	slices.Sort(t.pairs)
	t.pairs = slices.Compact(t.pairs)
}

// add puts a server where it belongs among the first.
func (t *linkCount) add(l linked) {
	i, _ := slices.BinarySearchFunc(t.top, l, func(a, b linked) int {
		return cmp.Or(b.from-a.from, b.links-a.links, cmp.Compare(a.server, b.server))
	})
	if i < t.n {
		t.top = slices.Insert(t.top, i, l)
		t.top = t.top[:min(len(t.top), t.n)]
	}
}
