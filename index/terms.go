package index

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"

	"harvest/index/dict"
	"harvest/index/posting"
)

// A Term is what an index knows of a word in all documents, those that are
// deleted too until a merge drops them.
type Term struct {
	Word  []byte
	Whole bool // a compound, whose parts are words too
	Docs  int  // documents with it
	Attrs []TermIn
}

// A TermIn is what is known of a word in one attribute. Most is no less than what
// any document has there of a score: tf*(k1+1)/(tf + k1*…), before weight and idf.
type TermIn struct {
	Attr string
	Docs int
	Most float64
}

// A Lister is an Engine that lists its words.
type Lister interface {
	// Terms calls yield for all words in order, until it returns false. A Term
	// is valid until the next.
	Terms(ctx context.Context, yield func(*Term) bool) error
}

var _ Lister = (*engine)(nil)

// A termCursor goes through the words of one part.
type termCursor struct {
	*part
	cursor *dict.Cursor
	word   []byte // at hand, nil at the end
	info   termInfo
	r      posting.Reader
}

func (c *termCursor) next() error {
	c.word = nil
	if c.cursor.Next() {
		c.word = c.cursor.Term()
		return nil
	}
	if err := c.cursor.Err(); err != nil {
		return c.Corrupt("%v: %v", secTerms, err)
	}
	return nil
}

// Terms merges the dictionaries of all parts.
func (e *engine) Terms(ctx context.Context, yield func(*Term) bool) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	if err := v.terms(ctx, yield); err != nil && ctx.Err() == nil {
		return fmt.Errorf("index: %w", err)
	}
	return ctx.Err()
}

func (v *view) terms(ctx context.Context, yield func(*Term) bool) error {
	var list []*termCursor
	for i := range v.parts {
		c := &termCursor{part: &v.parts[i], cursor: v.parts[i].terms().Cursor()}
		if err := c.next(); err != nil {
			return err
		}
		list = append(list, c)
	}
	k := saturation(v.census(nil).mean)
	var t Term
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		list = slices.DeleteFunc(list, func(c *termCursor) bool { return c.word == nil })
		if len(list) == 0 {
			return nil
		}
		least := slices.MinFunc(list, func(a, b *termCursor) int { return bytes.Compare(a.word, b.word) })
		t.Word = append(t.Word[:0], least.word...)
		t.Whole, t.Docs, t.Attrs = compound(t.Word), 0, t.Attrs[:0]
		for _, c := range list {
			if !bytes.Equal(c.word, t.Word) {
				continue
			}
			if err := c.count(&t, k); err != nil {
				return err
			}
			if err := c.next(); err != nil {
				return err
			}
		}
		if !yield(&t) {
			return nil
		}
	}
}

// count adds what the part knows of the word at hand.
func (c *termCursor) count(t *Term, k *[256]float64) error {
	if !c.decode(c.cursor.Value(), &c.info) {
		return c.Corrupt("%v: term %q", secTerms, t.Word)
	}
	t.Docs += int(c.info.docs)
	for i := range c.info.lists {
		l := &c.info.lists[i]
		most, err := c.most(l, k)
		if err != nil {
			return err
		}
		name := c.fields[l.field].name
		at := slices.IndexFunc(t.Attrs, func(a TermIn) bool { return a.Attr == name })
		if at < 0 {
			at = len(t.Attrs)
			t.Attrs = append(t.Attrs, TermIn{Attr: name})
		}
		a := &t.Attrs[at]
		a.Docs += int(l.docs)
		a.Most = max(a.Most, most)
	}
	return nil
}

// most looks at each document of a short list, and at the bounds that a long one
// has.
func (c *termCursor) most(l *list, k *[256]float64) (most float64, err error) {
	if err := c.open(l, &c.r, false); err != nil {
		return 0, err
	}
	add := func(freq uint32, norm byte) {
		f := float64(freq)
		most = max(most, f*(bm25K1+1)/(f+k[norm]))
	}
	if l.docs > posting.BlockSize {
		for _, im := range c.r.MaxImpacts() {
			add(im.Freq, im.Norm)
		}
	} else {
		norms := c.norms()
		for d := c.r.Next(); d != posting.End; d = c.r.Next() {
			add(c.r.Freq(), norms[d])
		}
	}
	if err := c.r.Err(); err != nil {
		return 0, c.Corrupt("%v: %v", secPostings, err)
	}
	return most, nil
}
