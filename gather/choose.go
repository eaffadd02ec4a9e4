package gather

import (
	"container/heap"
	"context"
	"iter"
	"slices"

	"harvest/gather/dup"
)

// A verdict is what a selection says of a document.
type verdict uint16

const (
	unstored verdict = iota // there is no object of it
	copied                  // another with the same content is better
	leftOut                 // a line begins with out and takes it
	untaken                 // no line takes it
	beyond                  // one does, but it is past the limit of the whole
	taken                   // by the first line, or all are; taken+i by line i
)

func (v verdict) in() bool { return v >= taken }

// A choice is what a selection says of all documents, by their IDs.
type choice struct {
	cells[verdict]
	sel   *selection
	count map[verdict]int // how many of each, those of lines together as taken
}

// cells holds a value for each document. IDs are counted up from 1, so that an
// array does; it is made in pages for those who leave gaps.
type cells[T any] struct{ pages []*[cellPage]T }

const cellPage = 1 << 12

// cell returns the place of a document's value.
func (c *cells[T]) cell(id uint32) *T {
	n := int(id / cellPage)
	if n >= len(c.pages) {
		c.pages = append(c.pages, make([]*[cellPage]T, n+1-len(c.pages))...)
	}
	if c.pages[n] == nil {
		c.pages[n] = new([cellPage]T)
	}
	return &c.pages[n][id%cellPage]
}

// get returns a document's value, zero if it was never set.
func (c *cells[T]) get(id uint32) (v T) {
	if n := int(id / cellPage); n < len(c.pages) && c.pages[n] != nil {
		v = c.pages[n][id%cellPage]
	}
	return v
}

// A candidate is what a selection sees of a document.
type candidate struct {
	id        uint32
	server    uint32
	url       string
	stored    bool // there is an object of it; else it is only known
	inbound   int  // links from any other document
	inlinks   int  // from documents of other servers
	submitted int
}

// A pick is a candidate while it is compared with others.
type pick struct {
	id             uint32
	manual         bool
	score, inlinks int32
	length         int32
	url            string
}

func (a *pick) before(b *pick, o order) bool {
	switch {
	case o == byScore && a.score != b.score:
		return a.score > b.score
	case o == byInlinks && a.inlinks != b.inlinks:
		return a.inlinks > b.inlinks
	case o == byShortest && a.length != b.length:
		return a.length < b.length
	}
	return a.url < b.url
}

// best keeps the first n of the picks it is given, as a heap with the last of
// them on top.
type best struct {
	n      int
	order  order
	manual bool // what was chosen by hand comes first
	picks  []pick
}

func (b *best) before(x, y *pick) bool {
	if b.manual && x.manual != y.manual {
		return x.manual
	}
	return x.before(y, b.order)
}

func (b *best) Len() int           { return len(b.picks) }
func (b *best) Less(i, j int) bool { return b.before(&b.picks[j], &b.picks[i]) }
func (b *best) Swap(i, j int)      { b.picks[i], b.picks[j] = b.picks[j], b.picks[i] }
func (b *best) Push(x any)         { b.picks = append(b.picks, x.(pick)) }
func (b *best) Pop() any {
	p := b.picks[len(b.picks)-1]
	b.picks = b.picks[:len(b.picks)-1]
	return p
}

// add takes a pick, and returns the one that has no room, if any.
func (b *best) add(p pick) (over pick, full bool) {
	switch {
	case len(b.picks) < b.n:
		heap.Push(b, p)
		return pick{}, false
	case b.before(&p, &b.picks[0]):
		over, b.picks[0] = b.picks[0], p
		heap.Fix(b, 0)
		return over, true
	}
	return p, true
}

// A chooser makes a choice: it reads all candidates once, and holds of them no
// more than what the picks of its lines may need.
type chooser struct {
	*choice
	lines []line
	whole *best // nil without a limit of the whole
	cover bool  // a line wants to know the links
	nodes cells[uint32]
	hits  []int // lines whose conditions the document in hand meets
	seen  int
}

// A line is a rule and what it has picked so far.
type line struct {
	*rule
	servers map[uint32]*best
	top     *best
	cover   []pick
}

// A linker adds to a graph the links between documents, whose nodes it asks for
// by their IDs.
type linker func(ctx context.Context, g *graph, node func(id uint32) (uint32, bool)) error

// choose applies the selection. docs yields each document once, in an order that
// only tells which of equals a cover takes; those that are copies of better ones already have their verdict in
// c. links is asked once, and only if a line has cover=.
func (s *selection) choose(ctx context.Context, docs iter.Seq2[candidate, error], links linker, c *choice) error {
	h := &chooser{choice: c}
	c.sel, c.count = s, make(map[verdict]int)
	for _, r := range s.rules {
		l := line{rule: r}
		if r.shortest > 0 {
			l.servers = make(map[uint32]*best)
		}
		if r.limit > 0 {
			l.top = &best{n: r.limit, order: r.order}
		}
		h.cover = h.cover || r.cover > 0
		h.lines = append(h.lines, l)
	}
	if s.limit > 0 {
		h.whole = &best{n: s.limit, order: s.order, manual: true}
	}
	for d, err := range docs {
		if err != nil {
			return err
		}
		h.see(&d)
		if h.seen++; h.seen%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := h.finish(ctx, links); err != nil {
		return err
	}
	h.tally()
	return nil
}

// see tries the lines on one document.
func (h *chooser) see(d *candidate) {
	if h.cover {
		*h.nodes.cell(d.id) = uint32(h.seen) + 1
	}
	if !d.stored || h.get(d.id) == copied {
		return
	}
	v := h.cell(d.id)
	*v = untaken
	for _, r := range h.sel.out {
		if r.meets(d) {
			*v = leftOut
			return
		}
	}
	p := pick{id: d.id, url: d.url, inlinks: int32(min(d.inlinks, 1<<30)), length: int32(pathLen(d.url))}
	if h.whole != nil || h.limits() {
		p.score = int32(min(dup.ScoreOf(d.url, d.inbound, d.submitted).Sum(), 1<<30))
	}
	if len(h.lines) == 0 {
		h.emit(0, p)
		return
	}
	h.hits = h.hits[:0]
	for i := range h.lines {
		if l := &h.lines[i]; l.meets(d) {
			p.manual = p.manual || l.urls != nil
			h.hits = append(h.hits, i)
		}
	}
	for _, i := range h.hits {
		h.try(i, p, d.server)
	}
}

// limits reports whether a line has an order of its own to keep.
func (h *chooser) limits() bool {
	return slices.ContainsFunc(h.lines, func(l line) bool { return l.top != nil })
}

// try gives a document to a line whose conditions it meets.
func (h *chooser) try(i int, p pick, server uint32) {
	switch l := &h.lines[i]; {
	case l.servers != nil:
		b := l.servers[server]
		if b == nil {
			b = &best{n: l.shortest, order: byShortest}
			l.servers[server] = b
		}
		b.add(p)
	case l.rule.cover > 0:
		l.cover = append(l.cover, p)
	case l.top != nil:
		l.top.add(p)
	default:
		h.emit(i, p)
	}
}

// finish emits what could not be decided before all had been seen.
func (h *chooser) finish(ctx context.Context, links linker) error {
	var g *graph
	for i := range h.lines {
		l := &h.lines[i]
		if l.rule.cover > 0 && g == nil {
			g = newGraph(h.seen)
			if err := links(ctx, g, h.node); err != nil {
				return err
			}
		}
		if l.rule.cover > 0 {
			if err := h.covers(ctx, i, g); err != nil {
				return err
			}
			continue
		}
		for _, b := range l.servers {
			for _, p := range b.picks {
				if l.top != nil {
					l.top.add(p)
				} else {
					h.emit(i, p)
				}
			}
		}
		if l.top != nil {
			for _, p := range l.top.picks {
				h.emit(i, p)
			}
		}
	}
	return nil
}

// node is a document's number in the graph.
func (h *chooser) node(id uint32) (uint32, bool) {
	n := h.nodes.get(id)
	return n - 1, n != 0
}

// covers emits what a line with cover= picks.
func (h *chooser) covers(ctx context.Context, i int, g *graph) error {
	l := &h.lines[i]
	byNode := make(map[uint32]pick, len(l.cover))
	nodes := make([]uint32, 0, len(l.cover))
	for _, p := range l.cover {
		n, _ := h.node(p.id)
		byNode[n] = p
		nodes = append(nodes, n)
	}
	got, err := g.cover(ctx, nodes, l.rule.cover, l.radius)
	if err != nil {
		return err
	}
	for _, n := range got {
		h.emit(i, byNode[n])
	}
	return nil
}

// emit takes a document into the collection by a line, the first of which is
// remembered, as far as the whole has room.
func (h *chooser) emit(i int, p pick) {
	v := h.cell(p.id)
	switch by := taken + verdict(i); {
	case v.in():
		*v = min(*v, by)
		return
	case *v == beyond:
		return // by another line; it is no better by this one
	default:
		*v = by
	}
	if h.whole == nil {
		return
	}
	if over, full := h.whole.add(p); full {
		*h.cell(over.id) = beyond
	}
}

// tally counts the verdicts.
func (h *choice) tally() {
	for _, page := range h.pages {
		if page == nil {
			continue
		}
		for _, v := range page {
			if v != unstored {
				h.count[min(v, taken)]++
			}
		}
	}
}

// pathLen is the length of what follows the host of a URL.
func pathLen(url string) int {
	_, path := dup.SplitHost(url)
	return len(path)
}
