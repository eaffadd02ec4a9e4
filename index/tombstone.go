package index

import "harvest/index/segfile"

// A part is a segment and which of its documents are gone. Both never change.
type part struct {
	*segment
	gone     *segfile.Tombstones // nil: none
	goneText uint64              // words of them
	base     uint32              // of its documents' numbers, if those of a view are counted through
}

// deleted tells whether a document is gone.
func (p *part) deleted(doc uint32) bool { return p.gone.Has(doc) }

func (p *part) live() int { return int(p.docs) - p.gone.Count() }

// without is p less the given documents as well.
func (p part) without(docs []uint32) part {
	p.gone = p.gone.With(docs, p.docs, func(d uint32) { p.goneText += uint64(p.length(d)) })
	return p
}

// each calls yield for the documents that are left, in order.
func (p *part) each(yield func(doc uint32)) {
	for d := range p.docs {
		if !p.gone.Has(d) {
			yield(d)
		}
	}
}

// find is the document with an ID, if it is left.
func (p *part) find(id ID) (uint32, bool) {
	d, ok := p.names.Find(id)
	return d, ok && !p.gone.Has(d)
}
