package index

import (
	"sync/atomic"

	"harvest/index/dict"
)

// A part is a segment and which of its documents are gone. Both never change.
type part struct {
	*segment
	gone *gone  // nil: none
	base uint32 // of its documents' numbers, if those of a view are counted through
}

// deleted tells whether a document is gone.
func (p *part) deleted(doc uint32) bool { return p.gone.has(doc) }

// A gone is a set of documents that are. It never changes once it is in a part.
type gone struct {
	set []uint64
	n   int
}

func (g *gone) has(doc uint32) bool { return g != nil && g.set[doc/64]&(1<<(doc%64)) != 0 }

// A view is the index at one time. It never changes once it is the current
// one, so a search needs no lock:
//
//	v, err := e.view()
//	if err != nil { … }
//	defer runtime.KeepAlive(v) // the files stay mapped until here
type view struct {
	parts []part
	docs  int   // of all parts, those gone as well: the N of scores
	text  int64 // their words: text/docs is the mean length
	mark  string
}

// An engine is the Engine that Open gives.
type engine struct {
	dir   string
	set   Settings
	cur   atomic.Pointer[view]
	cache *dict.Cache // lists of terms, for patterns
}
