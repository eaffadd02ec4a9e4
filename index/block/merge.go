package block

import (
	"bytes"
	"context"
	"slices"

	"harvest/index/dict"
	"harvest/index/segfile"
)

// A source gives terms in order, keys (with keySpace) before words, with their
// lists in the numbers of a segment to be written.
type source interface {
	next() bool
	term() []byte

	// list appends the places of the term to li, which has what sources
	// before gave, and adds to its count.
	list(li *list) error
	err() error
}

// combine writes the terms of all sources. At Tiny documents become blocks if
// a source knows no better, or there are too many.
func combine(ctx context.Context, turn *segfile.Turn, w *segmentWriter, sources []source) error {
	var live []source
	for _, s := range sources {
		if s.next() {
			live = append(live, s)
		} else if s.err() != nil {
			return s.err()
		}
	}
	var term []byte
	var li list
	for n := 0; len(live) > 0; n++ {
		if n%4096 == 0 {
			if err := turn.Next(ctx); err != nil {
				return err
			}
		}
		least := live[0].term()
		for _, s := range live[1:] {
			if t := s.term(); bytes.Compare(t, least) < 0 {
				least = t
			}
		}
		term = append(term[:0], least...)
		li = list{places: li.places[:0]}
		for i := 0; i < len(live); {
			s := live[i]
			if !bytes.Equal(s.term(), term) {
				i++
				continue
			}
			if err := s.list(&li); err != nil {
				return err
			}
			if s.next() {
				i++
			} else if s.err() != nil {
				return s.err()
			} else {
				live = slices.Delete(live, i, i+1)
			}
		}
		if len(li.places) == 0 { // all documents are gone
			continue
		}
		if !slices.IsSorted(li.places) {
			slices.Sort(li.places)
		}
		li.places = slices.Compact(li.places)
		if err := w.term(term, &li); err != nil {
			return err
		}
	}
	return nil
}

// A workerSource is what a worker's inverter holds.
type workerSource struct {
	w     *worker
	l     *layout // of the segment to be written
	order []uint32
	at    int // behind the term
	units []uint32
}

func newWorkerSource(w *worker, l *layout) *workerSource {
	return &workerSource{w: w, l: l, order: w.sorted()}
}

func (s *workerSource) next() bool {
	s.at++
	return s.at <= len(s.order)
}

func (s *workerSource) entry() *entry { return &s.w.entries[s.order[s.at-1]] }
func (s *workerSource) term() []byte  { return s.w.text(s.entry()) }
func (s *workerSource) err() error    { return nil }

func (s *workerSource) list(li *list) error {
	e := s.entry()
	li.count += e.count
	s.units = s.w.units(e, s.units[:0])
	fine := s.l.starts != nil && s.term()[0] != keySpace
	if s.w.b.grain != Medium {
		for _, u := range s.units {
			li.places = append(li.places, s.w.docs[u])
		}
		return nil
	}
	doc := uint32(0)
	for _, u := range s.units {
		if u < s.w.starts[doc] || int(doc)+1 < len(s.w.starts) && u >= s.w.starts[doc+1] {
			doc = under(s.w.starts, u)
		}
		place := s.w.docs[doc]
		if fine {
			place = s.l.starts[place] + u - s.w.starts[doc]
		}
		li.places = append(li.places, place)
	}
	return nil
}

// write makes a segment of what the workers hold and empties them.
func (b *builder) write(ctx context.Context, path string, l *layout, grain Grain) error {
	if b.grain == Medium {
		b.stretches(l)
	}
	b.words = 0
	var sources []source
	for _, w := range b.workers {
		b.words += w.words
	}
	out, err := createSegment(path, grain, l, &b.census)
	if err != nil {
		return err
	}
	for _, w := range b.workers {
		sources = append(sources, newWorkerSource(w, l))
	}
	if err := combine(ctx, nil, out, sources); err != nil {
		return out.drop(err)
	}
	b.held.Store(0)
	for _, w := range b.workers {
		w.inverter = newInverter()
		w.words, w.next, w.held, w.recent = 0, 0, 0, recent{}
	}
	return out.close()
}

// stretches counts those of each document.
func (b *builder) stretches(l *layout) {
	l.starts = make([]uint32, l.docs+1)
	for _, w := range b.workers {
		for i, doc := range w.docs {
			end := w.next
			if i+1 < len(w.starts) {
				end = w.starts[i+1]
			}
			l.starts[doc+1] = end - w.starts[i]
		}
	}
	for i := range l.docs {
		l.starts[i+1] += l.starts[i]
	}
}

// A segmentSource is a segment whose documents get other numbers.
type segmentSource struct {
	*part
	to     *layout
	docs   []uint32 // new numbers; gone for those that have none
	blocks []uint32 // likewise

	words  bool // keys are done
	cursor *dict.Cursor
	lists  listReader
	name   []byte
	li     list
}

const gone = ^uint32(0)

func newSegmentSource(p *part, to *layout, first uint32) *segmentSource {
	s := &segmentSource{part: p, to: to, docs: make([]uint32, p.segment.docs)}
	for d := range s.docs {
		if s.docs[d] = gone; !p.gone.Has(uint32(d)) {
			s.docs[d] = first
			first++
		}
	}
	for b := 0; b+1 < len(p.segment.blocks); b++ {
		place := gone
		for d := p.segment.blocks[b]; d < p.segment.blocks[b+1] && place == gone; d++ {
			if s.docs[d] != gone && to.exact > 0 {
				place = to.blockOf(s.docs[d])
			}
		}
		s.blocks = append(s.blocks, place)
	}
	s.open(&p.segment.keys, p.segment.fine())
	return s
}

func (s *segmentSource) open(sp *space, l *layout) {
	s.cursor = sp.dict.Cursor()
	s.lists = sp.lists.reader(l)
}

func (s *segmentSource) next() bool {
	if s.cursor.Next() {
		s.name = s.name[:0]
		if !s.words {
			s.name = append(s.name, keySpace)
		}
		s.name = append(s.name, s.cursor.Term()...)
		return true
	}
	if s.words || s.cursor.Err() != nil {
		return false
	}
	s.words = true
	s.open(&s.segment.terms, &s.segment.layout)
	return s.next()
}

func (s *segmentSource) term() []byte { return s.name }
func (s *segmentSource) err() error {
	if err := s.cursor.Err(); err != nil {
		return s.Corrupt("%v", err)
	}
	return nil
}

func (s *segmentSource) list(li *list) error {
	if !s.lists.list(s.cursor.Ord(), &s.li) {
		return s.Corrupt("list of %q", s.name)
	}
	n := len(li.places)
	switch {
	case s.li.blocks:
		s.toBlocks(li)
		n = len(li.places)
		for _, b := range s.li.places {
			if b = s.blocks[b]; b != gone {
				li.places = append(li.places, b)
			}
		}
		if len(li.places) > n {
			li.count += s.li.count
		}
		return nil
	case s.words && s.segment.starts != nil:
		s.appendStretches(li)
	default:
		s.appendDocs(li)
	}
	li.count += uint32(len(li.places) - n)
	return nil
}

// toBlocks makes blocks of the documents gathered so far.
func (s *segmentSource) toBlocks(li *list) {
	if !li.blocks {
		count := li.count
		li.count = gone
		s.to.coarsen(li)
		li.count = count
	}
}

func (s *segmentSource) appendDocs(li *list) {
	for _, d := range s.li.places {
		if d = s.docs[d]; d == gone {
			continue
		}
		if li.blocks {
			d = s.to.blockOf(d)
		}
		li.places = append(li.places, d)
	}
}

func (s *segmentSource) appendStretches(li *list) {
	for _, u := range s.li.places {
		doc := under(s.segment.starts, u)
		if d := s.docs[doc]; d != gone {
			li.places = append(li.places, s.to.starts[d]+u-s.segment.starts[doc])
		}
	}
}

// A part is a segment and its documents that are gone. It does not change.
type part struct {
	*segment
	gone *segfile.Tombstones // nil: none
}

func (p *part) live() int { return int(p.segment.docs) - p.gone.Count() }

// merge writes what is left of parts as one segment.
func merge(ctx context.Context, turn *segfile.Turn, parts []part, path string, grain Grain, coarse coarseness) error {
	var c census
	for i := range parts {
		p := &parts[i]
		for d := range p.segment.docs {
			if !p.gone.Has(d) {
				c.ids = append(c.ids, p.ids[16*d:16*d+16]...)
				c.sizes = append(c.sizes, p.sizes[d])
			}
		}
		c.words += p.left()
	}
	l := &layout{docs: uint32(len(c.sizes))}
	switch grain {
	case Tiny:
		l.divide(coarse, c.sizes, parts)
	case Medium:
		l.starts = []uint32{0}
		for i := range parts {
			p := &parts[i]
			for d := range p.segment.docs {
				if !p.gone.Has(d) {
					l.starts = append(l.starts, l.starts[len(l.starts)-1]+p.starts[d+1]-p.starts[d])
				}
			}
		}
	}
	w, err := createSegment(path, grain, l, &c)
	if err != nil {
		return err
	}
	var sources []source
	first := uint32(0)
	for i := range parts {
		sources = append(sources, newSegmentSource(&parts[i], l, first))
		first += uint32(parts[i].live())
	}
	if err := combine(ctx, turn, w, sources); err != nil {
		return w.drop(err)
	}
	return w.close()
}

// left is about how many words of the text are left.
func (p *part) left() uint64 {
	if p.gone.Count() == 0 {
		return p.words
	}
	return uint64(float64(p.words) * float64(p.live()) / float64(p.segment.docs))
}

// A coarseness says which words have blocks at Tiny: those in more documents
// than exact, and than one in share of them; and how many blocks there are.
//
// On the 212 MB of manuals the lists take 1.11 % of the text if words in more
// than one document of 32 have blocks, 1.42 % with 8, 1.60 % with 2, and answers
// that need no text are hundreds of times as fast.
type coarseness struct {
	exact, share uint32
	blocks       int
}

func tiny() coarseness { return coarseness{exact: 32, share: 2, blocks: 256} }

// divide makes blocks of documents of these sizes. Where a part has blocks of
// its own, one ends at the end of one of those only, for there it is not known
// which of its documents have a word.
func (l *layout) divide(c coarseness, sizes []byte, parts []part) {
	l.exact = max(c.exact, l.docs/c.share)
	ends := newSet(l.docs) // the last documents of blocks
	fresh := newSet(l.docs)
	doc := uint32(0)
	for i := range parts {
		doc = parts[i].ends(ends, fresh, doc)
	}
	for ; doc < l.docs; doc++ {
		ends.add(doc)
		fresh.add(doc)
	}
	var all, at int64
	for _, size := range sizes {
		all += classSize(size) + 1
	}
	l.blocks = []uint32{0}
	for d := range l.docs {
		at += classSize(sizes[d]) + 1
		if ends.has(d) && (l.docs <= uint32(c.blocks) || at*int64(c.blocks) >= all*int64(len(l.blocks)) || d+1 == l.docs) {
			l.blocks = append(l.blocks, d+1)
		}
	}
	l.alone = newSet(uint32(len(l.blocks)))
	for b := 0; b+1 < len(l.blocks); b++ {
		if d := l.blocks[b]; l.blocks[b+1] == d+1 && fresh.has(d) {
			l.alone.add(uint32(b))
		}
	}
}

// ends adds the last of each block's documents that are left to ends, and
// those to fresh that have been blocks of their own from the start. They get
// numbers from doc on.
func (p *part) ends(ends, fresh set, doc uint32) uint32 {
	if p.segment.exact == 0 {
		for range p.live() {
			ends.add(doc)
			fresh.add(doc)
			doc++
		}
		return doc
	}
	for b := 0; b+1 < len(p.segment.blocks); b++ {
		from := doc
		for d := p.segment.blocks[b]; d < p.segment.blocks[b+1]; d++ {
			if !p.gone.Has(d) {
				doc++
			}
		}
		if doc > from {
			ends.add(doc - 1)
			if p.alone.has(uint32(b)) {
				fresh.add(from)
			}
		}
	}
	return doc
}
