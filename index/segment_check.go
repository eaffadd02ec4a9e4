package index

import (
	"bytes"
	"context"

	"harvest/index/dict"
	"harvest/index/posting"
)

// check reads all of a part: the sums of all chunks, anew, the order of terms
// and IDs, and every list.
func (p *part) check(ctx context.Context) error {
	for sec := range sections {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.VerifyAgain(int(sec)); err != nil {
			return err
		}
	}
	for i := 1; i < int(p.docs); i++ {
		a, b := p.id(p.ordered(i-1)), p.id(p.ordered(i))
		if bytes.Compare(a[:], b[:]) > 0 {
			return p.Corrupt("%v: document %d of ID %v after one of %v", secOrder, i, b, a)
		}
	}
	keys, err := p.keys()
	if err != nil {
		return err
	}
	if err := p.checkDictionary(ctx, secTerms, p.terms()); err != nil {
		return err
	}
	return p.checkDictionary(ctx, secKeys, keys)
}

func (p *part) checkDictionary(ctx context.Context, sec section, d *dict.Dict) error {
	var t termInfo
	var r posting.Reader
	var last []byte
	n := 0
	for c := d.Cursor(); ; n++ {
		if !c.Next() {
			if err := c.Err(); err != nil {
				return p.Corrupt("%v: %v", sec, err)
			}
			break
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if n > 0 && bytes.Compare(last, c.Term()) >= 0 {
			return p.Corrupt("%v: %q after %q", sec, c.Term(), last)
		}
		last = append(last[:0], c.Term()...)
		if !p.decode(c.Value(), &t) {
			return p.Corrupt("%v: %q cannot be read", sec, c.Term())
		}
		for i := range t.lists {
			if err := p.checkList(&t.lists[i], &r); err != nil {
				return p.Corrupt("%v: %q: %v", sec, c.Term(), err)
			}
		}
	}
	if n != d.Len() {
		return p.Corrupt("%v: %d terms, it says %d", sec, n, d.Len())
	}
	return nil
}

func (p *part) checkList(l *list, r *posting.Reader) error {
	if err := p.open(l, r, true); err != nil {
		return err
	}
	var positions []uint32
	n := uint32(0)
	for d := r.Next(); d != posting.End; d = r.Next() {
		n++
		if l.kind == posting.Positions {
			positions = r.Positions(positions[:0])
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if n != l.docs {
		return p.Corrupt("%d documents, it says %d", n, l.docs)
	}
	return nil
}
