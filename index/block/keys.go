package block

import (
	"bytes"
	"fmt"
	iofs "io/fs"

	"harvest/index"
	"harvest/index/query"
)

// compare bounds a comparison by keys, if the attribute has them: they are all
// that it looks at.
func (e *evaluator) compare(q query.Node, attr string) bound {
	r, err := index.NewKeyRange(q)
	if err != nil {
		return e.fail(err)
	}
	if attr == "" {
		return e.fail(fmt.Errorf("index/block: query %v outside of an attribute: %w", q, iofs.ErrInvalid))
	}
	if e.s.set.Keys != nil && !e.s.set.Keys(attr) {
		b := e.having(attr)
		b.must.clear()
		return b
	}
	b := e.nothing()
	e.eachKey(attr, r.First(), func(key []byte, ord int) bool {
		if r.Past(key) {
			return false
		}
		if r.Has(key) {
			e.addKeyAt(key, ord, b.must)
		}
		return e.err == nil
	})
	b.may.or(b.must)
	return b
}

// eachKey gives the keys of an attribute's values in order, from first on.
func (e *evaluator) eachKey(attr string, first []byte, yield func(key []byte, ord int) bool) {
	prefix := prefixKey(valueKind, attr)
	c := e.p.keys.dict.Cursor()
	c.Seek(append(prefix[:len(prefix):len(prefix)], first...))
	for c.Next() && bytes.HasPrefix(c.Term(), prefix) {
		if c.Ord()%1024 == 0 && e.ctx.Err() != nil {
			e.fail(e.ctx.Err())
			return
		}
		if !yield(c.Term()[len(prefix):], c.Ord()) {
			return
		}
	}
	if err := c.Err(); err != nil {
		e.fail(e.p.Corrupt("keys: %v", err))
	}
}
