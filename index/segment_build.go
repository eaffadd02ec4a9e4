package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"

	"harvest/index/posting"
)

// A build makes a segment of what inverters hold. Each of them has some of the
// documents, in ascending order.
type build struct {
	in    []*inverter
	names []string // of fields, by the inverters' numbers
	ids   []ID     // of documents
	kind  posting.Kind

	rank    []uint32 // of a field among the segment's
	lengths []uint32
	norms   []byte
}

// inlineMax is the most bytes of a list of one document that stands in the
// dictionary.
const inlineMax = 24

func (b *build) write(ctx context.Context, path string, workers int) error {
	w, err := createSegment(path)
	if err != nil {
		return err
	}
	w.Fail(b.writeAll(ctx, w, workers))
	return w.close()
}

func (b *build) writeAll(ctx context.Context, w *segmentWriter, workers int) error {
	b.fields(w)
	b.measure()
	words := turn{b: b, ordering: ordering{rank: b.rank}, heap: func(x *inverter) *heap { return &x.words }}
	if err := words.run(ctx, w, workers); err != nil {
		return err
	}
	values := turn{b: b, ordering: ordering{rank: b.rank, keys: true}, heap: func(x *inverter) *heap { return &x.values }}
	if err := values.run(ctx, w, workers); err != nil {
		return err
	}
	b.columns(w)
	w.dictionaries()
	w.documents(&docTable{
		n:       len(b.ids),
		ids:     func(yield func(ID)) { each(b.ids, yield) },
		order:   func(yield func(uint32)) { each(orderOf(b.ids), yield) },
		lengths: func(yield func(uint32)) { each(b.lengths, yield) },
		norms:   b.norms,
	})
	return w.Err()
}

func each[T any](list []T, yield func(T)) {
	for _, x := range list {
		yield(x)
	}
}

// fields numbers those that documents have, by name.
func (b *build) fields(w *segmentWriter) {
	list := make([]uint32, 0, len(b.names))
	for f := range b.names {
		if slices.ContainsFunc(b.in, func(x *inverter) bool { return f < len(x.places) && x.places[f].doc != none }) {
			list = append(list, uint32(f))
		}
	}
	slices.SortFunc(list, func(x, y uint32) int { return cmp.Compare(b.names[x], b.names[y]) })
	b.rank = make([]uint32, len(b.names))
	for i, f := range list {
		b.rank[f] = uint32(i)
		w.table.fields = append(w.table.fields, field{name: b.names[f]})
	}
}

func (b *build) measure() {
	b.lengths = make([]uint32, len(b.ids))
	b.norms = make([]byte, len(b.ids))
	for _, x := range b.in {
		for _, d := range x.lengths {
			b.lengths[d.doc] = d.words
			b.norms[d.doc] = Norm(int(d.words))
		}
	}
}

// orderOf are the documents by ID, those of one ID by number.
func orderOf(ids []ID) []uint32 {
	order := make([]uint32, len(ids))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		if c := bytes.Compare(ids[x][:], ids[y][:]); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	})
	return order
}

// columns writes those of all fields.
func (b *build) columns(w *segmentWriter) {
	type entry struct {
		doc   uint32
		value uint64
	}
	lists := make([][]entry, len(w.table.fields))
	for _, x := range b.in {
		for _, c := range x.columns {
			f := b.rank[c.field]
			v := uint64(x.values.ordinal(c.head)) - w.table.fields[f].firstKey
			lists[f] = append(lists[f], entry{c.doc, v})
		}
	}
	for f, list := range lists {
		slices.SortFunc(list, func(x, y entry) int { return cmp.Compare(x.doc, y.doc) })
		highest := uint64(0)
		for _, e := range list {
			highest = max(highest, e.value)
		}
		w.column(&w.table.fields[f], len(b.ids), len(list), highest, func(yield func(uint32, uint64)) {
			for _, e := range list {
				yield(e.doc, e.value)
			}
		})
	}
}

// A turn writes the terms of all inverters, or their keys. Ranges of them are
// coded at once, and written in order.
type turn struct {
	b        *build
	ordering ordering
	heap     func(*inverter) *heap
	sorted   [][]sortKey // by inverter
	cuts     [][]int     // by range and inverter: where the range begins
}

// rangeTerms is how many terms a range has, about.
const rangeTerms = 4096

func (t *turn) run(ctx context.Context, w *segmentWriter, workers int) error {
	t.sort(workers)
	t.cut()
	ranges := len(t.cuts) - 1
	if workers = min(workers, ranges); workers <= 1 {
		c := coder{turn: t}
		for i := range ranges {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.code(i, &c.out)
			t.put(w, &c.out)
		}
		return w.Err()
	}
	return t.runAll(ctx, w, workers)
}

// runAll codes ranges on all workers, none further ahead of what is written
// than two for each.
func (t *turn) runAll(ctx context.Context, w *segmentWriter, workers int) error {
	type job struct {
		i    int
		out  *coded
		done chan struct{}
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(jobs)
	for range workers {
		wg.Go(func() {
			c := coder{turn: t}
			for j := range jobs {
				c.code(j.i, j.out)
				close(j.done)
			}
		})
	}
	free := make([]*coded, 2*workers)
	for i := range free {
		free[i] = new(coded)
	}
	var ahead []job
	for i, ranges := 0, len(t.cuts)-1; i < ranges || len(ahead) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i < ranges && len(free) > 0 {
			j := job{i, free[len(free)-1], make(chan struct{})}
			free = free[:len(free)-1]
			i++
			ahead = append(ahead, j)
			select {
			case jobs <- j:
				continue
			case <-ahead[0].done:
				jobs <- j // a worker is free
			}
		}
		j := ahead[0]
		ahead = ahead[1:]
		<-j.done
		t.put(w, j.out)
		free = append(free, j.out)
	}
	return w.Err()
}

func (t *turn) sort(workers int) {
	t.sorted = make([][]sortKey, len(t.b.in))
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, x := range t.b.in {
		one := func() { t.sorted[i] = t.ordering.sorted(t.heap(x)) }
		if workers > 1 {
			wg.Go(one)
		} else {
			one()
		}
	}
}

// cut makes ranges, none of which begins within a term.
func (t *turn) cut() {
	largest := 0
	for i := range t.sorted {
		if len(t.sorted[i]) > len(t.sorted[largest]) {
			largest = i
		}
	}
	begin := make([]int, len(t.sorted))
	t.cuts = append(t.cuts, begin)
	from := t.heap(t.b.in[largest])
	for at := rangeTerms; at < len(t.sorted[largest]); at += rangeTerms {
		e := &from.table[t.sorted[largest][at].n]
		next := make([]int, len(t.sorted))
		for i, list := range t.sorted {
			h := t.heap(t.b.in[i])
			next[i] = sort.Search(len(list), func(j int) bool {
				return t.ordering.term(h, &h.table[list[j].n], from, e) >= 0
			})
		}
		t.cuts = append(t.cuts, next)
	}
	end := make([]int, len(t.sorted))
	for i := range t.sorted {
		end[i] = len(t.sorted[i])
	}
	t.cuts = append(t.cuts, end)
}

// A coded is a range, ready to be written.
type coded struct {
	text  []byte // the terms
	terms []codedTerm
	lists []list // at counts from the beginning of bytes
	bytes []byte
	ones  []byte
	refs  []ref // of keys: who wants to know the ordinal
}

type codedTerm struct {
	docs              uint32
	text, lists, refs int // where those of the next begin
	field             uint32
}

type ref struct{ in, entry uint32 }

func (c *coded) clear() {
	c.text, c.terms, c.lists, c.bytes, c.refs = c.text[:0], c.terms[:0], c.lists[:0], c.bytes[:0], c.refs[:0]
	c.ones = nil
}

// put writes a range.
func (t *turn) put(w *segmentWriter, c *coded) {
	base := w.Offset()
	w.Write(c.bytes)
	var info termInfo
	text, lists, refs := 0, 0, 0
	var key []byte
	for i := range c.terms {
		e := &c.terms[i]
		info.docs, info.lists = e.docs, c.lists[lists:e.lists]
		for j := range info.lists {
			info.lists[j].at += base
		}
		term := c.text[text:e.text]
		if t.ordering.keys {
			f := &w.table.fields[e.field]
			key = append(appendKey(key[:0], f.name), term...)
			t.counted(w, f, e, term, w.key(key, &info), c.refs[refs:e.refs])
		} else {
			w.term(term, &info)
		}
		text, lists, refs = e.text, e.lists, e.refs
	}
}

// counted notes the ordinal of a key.
func (t *turn) counted(w *segmentWriter, f *field, e *codedTerm, key []byte, ord int, refs []ref) {
	switch key[0] {
	case keyAny:
		f.docs, f.firstKey = e.docs, uint64(ord)
	case KeyText:
		f.values++
	}
	for _, r := range refs {
		h := &t.b.in[r.in].values
		h.setOrdinal(&h.table[r.entry], uint32(ord))
	}
}

// A coder codes terms. One goroutine uses it.
type coder struct {
	*turn
	out     coded
	enc     posting.Encoder
	streams []stream
	gaps    []uint32
	group   []ref // entries of one term
	at, end []int
	stamp   []uint32 // by document: the number of the last term in several fields that it has
	stamps  uint32
}

// code codes the i-th range.
func (c *coder) code(i int, out *coded) {
	out.clear()
	c.at = append(c.at[:0], c.cuts[i]...)
	c.end = c.cuts[i+1]
	for c.next() {
		c.term(out)
	}
}

// next gathers the entries of the first term that is left.
func (c *coder) next() bool {
	var least *entry
	var of *heap
	for i, at := range c.at {
		if at == c.end[i] {
			continue
		}
		h := c.heap(c.b.in[i])
		if e := &h.table[c.sorted[i][at].n]; least == nil || c.ordering.term(h, e, of, least) < 0 {
			least, of = e, h
		}
	}
	c.group = c.group[:0]
	if least == nil {
		return false
	}
	for i := range c.at {
		h := c.heap(c.b.in[i])
		for ; c.at[i] < c.end[i]; c.at[i]++ {
			n := c.sorted[i][c.at[i]].n
			if e := &h.table[n]; e != least && c.ordering.term(h, e, of, least) != 0 {
				break
			}
			c.group = append(c.group, ref{uint32(i), n})
		}
	}
	return true
}

func (c *coder) entry(r ref) *entry { return &c.heap(c.b.in[r.in]).table[r.entry] }

func (c *coder) rankOf(r ref) uint32 { return c.b.rank[c.entry(r).field()] }

// term codes the lists of the group's term.
func (c *coder) term(out *coded) {
	first := c.entry(c.group[0])
	begin := len(out.text)
	out.text = c.heap(c.b.in[c.group[0].in]).word(out.text, first)
	kind := c.b.kind
	switch {
	case c.ordering.keys:
		kind = posting.Docs
		out.refs = append(out.refs, c.group...)
	case isCompound(out.text[begin:]):
		kind = posting.Freqs
	}
	if len(c.group) > 1 && len(c.b.in) > 1 && !c.ordering.keys {
		slices.SortStableFunc(c.group, func(x, y ref) int { return cmp.Compare(c.rankOf(x), c.rankOf(y)) })
	}
	several := !c.ordering.keys && c.rankOf(c.group[0]) != c.rankOf(c.group[len(c.group)-1])
	if several {
		c.newStamp()
	}
	docs := uint32(0)
	for i := 0; i < len(c.group); {
		j := i + 1
		for j < len(c.group) && c.rankOf(c.group[j]) == c.rankOf(c.group[i]) {
			j++
		}
		l, fresh := c.list(out, kind, c.group[i:j], several)
		if l.field = int(c.rankOf(c.group[i])); c.ordering.keys {
			l.field = 0
		}
		out.lists = append(out.lists, l)
		docs += fresh
		i = j
	}
	out.terms = append(out.terms, codedTerm{docs, len(out.text), len(out.lists), len(out.refs), c.rankOf(c.group[0])})
}

// isCompound tells a compound's term: it has a byte that is no letter or digit.
func isCompound(term []byte) bool {
	for _, c := range term {
		if class[c] < '0' && class[c] != wide {
			return true
		}
	}
	return false
}

func (c *coder) newStamp() {
	if c.stamps++; c.stamp == nil || c.stamps == 0 {
		c.stamp, c.stamps = make([]uint32, len(c.b.ids)), 1
	}
}

// list codes the list of a term in one field, of all inverters. It gives the
// number of documents that did not have the term in a field before, if that
// is asked for, else of all.
func (c *coder) list(out *coded, kind posting.Kind, from []ref, several bool) (l list, fresh uint32) {
	l = list{kind: kind}
	for len(c.streams) < len(from) {
		c.streams = append(c.streams, stream{})
	}
	streams := c.streams[:len(from)]
	for i, r := range from {
		s := &streams[i]
		s.b, s.buf = c.heap(c.b.in[r.in]).chain(s.buf, c.entry(r))
		s.at, s.doc = 0, none
		s.next()
	}
	c.enc.Reset(kind, c.b.norms)
	for {
		s := &streams[0]
		for i := range streams[1:] {
			if streams[i+1].doc < s.doc {
				s = &streams[i+1]
			}
		}
		if s.doc == none {
			break
		}
		l.docs++
		doc := s.doc
		freq := c.take(s, kind)
		if !several || c.stamp[doc] != c.stamps {
			fresh++
		}
		if several {
			c.stamp[doc] = c.stamps
		}
		if l.docs == 1 && ended(streams) && c.inline(out, &l, doc, freq) {
			return l, fresh
		}
		if kind == posting.Positions {
			c.enc.Add(doc, c.gaps)
		} else {
			c.enc.AddFreq(doc, freq)
		}
	}
	l.at = uint64(len(out.bytes))
	documents := c.enc.Finish()
	positions := c.enc.TakePositions()
	l.positions, l.documents = uint64(len(positions)), uint64(len(documents))
	out.bytes = append(append(out.bytes, positions...), documents...)
	return l, fresh
}

func ended(streams []stream) bool {
	for i := range streams {
		if streams[i].doc != none {
			return false
		}
	}
	return true
}

// inline puts the list of one document into the dictionary, unless it is long.
func (c *coder) inline(out *coded, l *list, doc, freq uint32) bool {
	n := len(out.ones)
	ones := posting.AppendOne(out.ones, l.kind, doc, freq, c.gaps)
	if len(ones)-n > inlineMax {
		return false
	}
	out.ones = ones
	l.one = ones[n:len(ones):len(ones)]
	return true
}

// take reads the occurrences in the stream's document, the gaps between them
// into c.gaps if there are positions, and goes to its next document.
func (c *coder) take(s *stream, kind posting.Kind) (freq uint32) {
	c.gaps = c.gaps[:0]
	if kind == posting.Positions {
		for s.at < len(s.b) {
			v := uint32(s.b[s.at])
			if v&1 != 0 {
				break
			}
			if s.at++; v >= 0x80 {
				v = s.rest(v)
			}
			c.gaps = append(c.gaps, v>>1)
		}
		freq = uint32(len(c.gaps))
	} else {
		for freq = 1; s.at < len(s.b) && s.b[s.at] == 0; s.at++ {
			freq++
		}
	}
	s.next()
	return freq
}

// A stream reads a chain.
type stream struct {
	b   []byte
	buf []byte // memory for b
	at  int
	doc uint32 // none after the last
}

func (s *stream) next() {
	if s.at == len(s.b) {
		s.doc = none
		return
	}
	v := uint32(s.b[s.at])
	if s.at++; v >= 0x80 {
		v = s.rest(v)
	}
	s.doc += v >> 1
}

// rest reads on in a varint.
func (s *stream) rest(v uint32) uint32 {
	v &= 0x7f
	for shift := 7; ; shift += 7 {
		c := s.b[s.at]
		s.at++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}
