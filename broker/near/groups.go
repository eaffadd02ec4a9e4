package near

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"slices"

	"harvest/gather/dup"
)

func decodeBytes(b []byte) Bytes {
	return Bytes{[16]byte(b), binary.BigEndian.Uint64(b[16:])}
}

// EachCopies calls yield for each group of documents with the same bytes, in the
// order of these, each by ID, until it returns false.
func (x *Index) EachCopies(ctx context.Context, yield func(of Bytes, ids []ID) bool) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	at := make([]int, len(v.parts))
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var least []byte
		for i, p := range v.parts {
			if 4*at[i] < len(p.copies) {
				if b := p.bytesOf(p.copy(at[i])); least == nil || bytes.Compare(b, least) < 0 {
					least = b
				}
			}
		}
		if least == nil {
			return nil
		}
		var ids []ID
		for i, p := range v.parts {
			for ; 4*at[i] < len(p.copies) && bytes.Equal(p.bytesOf(p.copy(at[i])), least); at[i]++ {
				if d := p.copy(at[i]); !p.gone.Has(d) {
					ids = append(ids, p.ids.ID(d))
				}
			}
		}
		if len(ids) < 2 {
			continue
		}
		slices.SortFunc(ids, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		if !yield(decodeBytes(least), ids) {
			return nil
		}
	}
}

// Groups gives the groups of documents that resemble one another by t or more:
// two are of one group if they do, or if each does another of it. It looks at
// all documents, and takes 24 bytes of memory for each.
func (x *Index) Groups(ctx context.Context, t float64) ([][]ID, error) {
	v, err := x.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	g := &grouper{joined: merged(v.parts), bound: dup.Bound(t), rows: rowsFor(t)}
	g.up = make([]uint32, g.len())
	for i := range g.up {
		g.up[i] = uint32(i)
	}
	spare := make([]uint64, g.len())
	list := make([]uint64, 0, g.len())
	for tree := range dup.Trees {
		list = list[:0]
		for i := range uint32(g.len()) {
			if s := g.sketch(i); !s.None() {
				list = append(list, uint64(s.Tree(tree))<<32|uint64(i))
			}
		}
		list, spare = radix(list, spare[:cap(spare)])
		if err := g.tree(ctx, list); err != nil {
			return nil, err
		}
	}
	return g.groups(), nil
}

// A grouper joins documents: up leads from each towards the one that stands for
// its group.
type grouper struct {
	joined
	bound float64
	rows  int
	up    []uint32
	heads []uint32 // of the run at hand
}

func (g *grouper) top(i uint32) uint32 {
	for g.up[i] != i {
		g.up[i] = g.up[g.up[i]]
		i = g.up[i]
	}
	return i
}

// tree joins those of each run of documents that agree in the first rows.
func (g *grouper) tree(ctx context.Context, list []uint64) error {
	shift := 32 + 4*(dup.Rows-g.rows)
	for len(list) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := 1
		for n < len(list) && list[n]>>shift == list[0]>>shift {
			n++
		}
		if n > 1 {
			g.run(ctx, list[:n])
		}
		list = list[n:]
	}
	return nil
}

// run joins documents of a run. Each is compared with one of each group that
// the run has so far, as many as crowd.
func (g *grouper) run(ctx context.Context, list []uint64) {
	g.heads = g.heads[:0]
	for n, k := range list {
		if n%256 == 0 && ctx.Err() != nil {
			return
		}
		i := uint32(k)
		mine, s := g.top(i), g.sketch(i)
		known := false
		for _, h := range g.heads {
			switch other := g.top(h); {
			case other == mine:
				known = true
			case dup.Resemblance(s, g.sketch(h)) >= g.bound:
				known = true
				g.up[max(mine, other)] = min(mine, other)
				mine = min(mine, other)
			}
		}
		if !known && len(g.heads) < crowd {
			g.heads = append(g.heads, i)
		}
	}
}

// groups are those of two or more, in the order of their first documents.
func (g *grouper) groups() (out [][]ID) {
	list := make([]uint64, 0, 1024)
	for i := range g.up {
		if top := g.top(uint32(i)); top != uint32(i) {
			list = append(list, uint64(top)<<32|uint64(i))
		}
	}
	slices.Sort(list)
	for i, k := range list {
		if top := uint32(k >> 32); i == 0 || uint32(list[i-1]>>32) != top {
			out = append(out, []ID{ID(g.id(top))})
		}
		last := len(out) - 1
		out[last] = append(out[last], ID(g.id(uint32(k))))
	}
	return out
}
