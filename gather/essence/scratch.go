package essence

import "sync"

// A scratch is memory that summaries are made in, one after another: a page takes
// more of it than all that is told of it. Nothing in a summary is of it.
type scratch struct {
	pages sync.Pool // of *page
	terms sync.Pool // of *terms
}

// maxScratch bounds the documents whose memory is kept for the next.
const maxScratch = 512 << 10

// page is one that has read nothing of a document yet.
func (s *scratch) page(t *htmlTable, doc []byte) *page {
	p, _ := s.pages.Get().(*page)
	if p == nil {
		return newPage(t, doc)
	}
	p.reset(t, doc)
	return p
}

// leave gives a page back, and what it counted.
func (s *scratch) leave(p *page) {
	if len(p.mark.b) > maxScratch {
		return
	}
	if p.counted != nil {
		s.drop(p.counted)
	}
	p.reset(nil, nil)
	s.pages.Put(p)
}

// counter has counted nothing yet.
func (s *scratch) counter() *terms {
	t, _ := s.terms.Get().(*terms)
	if t == nil {
		return newTerms()
	}
	clear(t.slot)
	t.bytes, t.all, t.n, t.text = t.bytes[:0], t.all[:0], 0, 0
	return t
}

// drop gives a counter back, unless it has grown for a long text.
func (s *scratch) drop(t *terms) {
	if len(t.slot) <= 1<<14 {
		s.terms.Put(t)
	}
}

// reset makes a page ready for another document.
func (p *page) reset(t *htmlTable, doc []byte) {
	p.mark.reset(doc, t)
	clear(p.seen)
	clear(p.links)
	*p = page{tab: t, mark: p.mark, para: -1, seen: p.seen, links: p.links[:0], text: p.text[:0], plain: p.plain[:0], title: p.title[:0],
		marked: p.marked[:0], passed: p.passed[:0], open: p.open[:0],
		main: p.main.fresh(), values: p.values.fresh()}
	p.main.start()
}

// fresh is a body without anything in it but memory.
func (b *body) fresh() body {
	return body{nodes: b.nodes[:0], stack: b.stack[:0], lines: b.lines[:0], hints: b.hints}
}

// fresh is a collection without anything in it but memory.
func (c *collection) fresh() collection {
	clear(c.seen)
	return collection{all: c.all[:0], seen: c.seen}
}

// reset makes markup ready for another document.
func (m *markup) reset(doc []byte, t *htmlTable) {
	clear(m.attrs[:cap(m.attrs)])
	*m = markup{b: doc, lastEnd: lastEnd(doc), attrs: m.attrs[:0]}
	if t != nil {
		m.dict = &t.dict
	}
}
