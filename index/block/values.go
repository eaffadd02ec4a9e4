package block

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"

	"harvest/index"
	"harvest/index/dict"
	"harvest/index/match"
)

// A keyCursor goes through the keys of a prefix in one part.
type keyCursor struct {
	*part
	prefix []byte
	cursor *dict.Cursor
	lists  listReader
	li     list
	key    []byte // at hand, without the prefix; nil at the end
}

func (c *keyCursor) next() error {
	c.key = nil
	if c.cursor.Next() && bytes.HasPrefix(c.cursor.Term(), c.prefix) {
		c.key = c.cursor.Term()[len(c.prefix):]
	}
	if err := c.cursor.Err(); err != nil {
		return c.Corrupt("keys: %v", err)
	}
	return nil
}

// live is the number of documents left that have the key at hand.
func (c *keyCursor) live() (int, error) {
	if !c.lists.list(c.cursor.Ord(), &c.li) {
		return 0, c.Corrupt("list of key %q", c.cursor.Term())
	}
	n := len(c.li.places)
	if c.gone.Count() > 0 {
		for _, doc := range c.li.places {
			if c.gone.Has(doc) {
				n--
			}
		}
	}
	return n, nil
}

// cursors stand at the first keys that begin with prefix, from from on.
func (v *view) cursors(prefix, from []byte) (all []*keyCursor, err error) {
	for i := range v.parts {
		p := &v.parts[i]
		c := &keyCursor{part: p, prefix: prefix, cursor: p.keys.dict.Cursor(), lists: p.keys.lists.reader(p.segment.fine())}
		c.cursor.Seek(append(prefix[:len(prefix):len(prefix)], from...))
		if err := c.next(); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// walk calls yield for each key of some cursors in order, with those that
// stand at it, until it returns false.
func walk(ctx context.Context, all []*keyCursor, yield func(key []byte, at []*keyCursor) (bool, error)) error {
	var key []byte
	var at []*keyCursor
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		all = slices.DeleteFunc(all, func(c *keyCursor) bool { return c.key == nil })
		if len(all) == 0 {
			return nil
		}
		key = append(key[:0], slices.MinFunc(all, func(a, b *keyCursor) int { return bytes.Compare(a.key, b.key) }).key...)
		at = at[:0]
		for _, c := range all {
			if bytes.Equal(c.key, key) {
				at = append(at, c)
			}
		}
		if more, err := yield(key, at); err != nil || !more {
			return err
		}
		for _, c := range at {
			if err := c.next(); err != nil {
				return err
			}
		}
	}
}

// each calls yield for the keys that begin with prefix, from from on, with the
// number of documents left that have them, until it returns false.
func (v *view) each(ctx context.Context, prefix, from []byte, yield func(key []byte, docs int) bool) error {
	all, err := v.cursors(prefix, from)
	if err != nil {
		return err
	}
	return walk(ctx, all, func(key []byte, at []*keyCursor) (bool, error) {
		docs := 0
		for _, c := range at {
			n, err := c.live()
			if err != nil {
				return false, err
			}
			docs += n
		}
		return docs == 0 || yield(key, docs), nil
	})
}

// eachList calls yield for the keys that begin with prefix with the documents
// that have them in each part.
func (v *view) eachList(ctx context.Context, prefix []byte, yield func(n int, p *part, docs []uint32)) error {
	all, err := v.cursors(prefix, nil)
	if err != nil {
		return err
	}
	n := 0
	return walk(ctx, all, func(_ []byte, at []*keyCursor) (bool, error) {
		n++
		for _, c := range at {
			if _, err := c.live(); err != nil {
				return false, err
			}
			yield(n, c.part, c.li.places)
		}
		return true, nil
	})
}

// Values gives the texts; each is kept beside what number or date it may be.
func (e *engine) Values(ctx context.Context, attribute, after string, yield func(index.Value) bool) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	prefix := append(prefixKey(valueKind, index.Attr(attribute)), index.KeyText)
	return v.each(ctx, prefix, []byte(after), func(key []byte, docs int) bool {
		return string(key) == after && after != "" || yield(index.Value{Text: string(key), Docs: docs})
	})
}

// Attributes counts over the documents that are left. Distinct counts the
// values that have keys.
func (e *engine) Attributes(ctx context.Context) ([]index.Attribute, error) {
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	var out []index.Attribute
	if err := v.each(ctx, []byte{attributeKind}, nil, func(key []byte, docs int) bool {
		out = append(out, index.Attribute{Name: string(key), Docs: docs})
		return true
	}); err != nil {
		return nil, err
	}
	for i := range out {
		a := &out[i]
		if n, ok := v.distinct(a.Name); ok {
			a.Distinct = n
			continue
		}
		if err := v.each(ctx, append(prefixKey(valueKind, a.Name), index.KeyText), nil, func([]byte, int) bool {
			a.Distinct++
			return true
		}); err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

// distinct counts an attribute's values by their places in the dictionary,
// where there is but one and nothing is gone.
func (v *view) distinct(name string) (int, bool) {
	if len(v.parts) != 1 || v.parts[0].gone.Count() > 0 {
		return 0, false
	}
	prefix := append(prefixKey(valueKind, name), index.KeyText)
	at := func() int {
		c := v.parts[0].keys.dict.Cursor()
		if c.Seek(prefix); c.Next() {
			return c.Ord()
		}
		return v.parts[0].keys.dict.Len()
	}
	first := at()
	prefix[len(prefix)-1]++
	return at() - first, true
}

// Suggest gives words of the documents that are near word in spelling. How many
// have one that stands in blocks is told with those that are gone.
func (e *engine) Suggest(ctx context.Context, word string, n int) ([]index.Suggestion, error) {
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	out, err := index.Suggestions(ctx, word, n, func(m *match.Pattern, add func([]byte, func() int) bool) error {
		for i := range v.parts {
			p := &v.parts[i]
			c := p.counter()
			err := index.Accepted(p.terms.dict, e.cache, m, nil, func(term, _ []byte, ord int) bool {
				return marked(term) || add(term, func() int { return c.count(ord) })
			})
			if err != nil {
				return p.Corrupt("%v", err)
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("index/block: %w", err)
	}
	return out, err
}

// A counter counts the documents of words.
type counter struct {
	*part
	lists listReader
	docs  set
	li    list
}

func (p *part) counter() *counter {
	return &counter{part: p, lists: p.terms.lists.reader(&p.segment.layout), docs: newSet(p.segment.docs)}
}

// count is about how many documents have the word with an ordinal; 0 if its list
// cannot be read.
func (c *counter) count(ord int) int {
	if !c.lists.list(ord, &c.li) {
		return 0
	}
	if c.li.blocks {
		return int(c.li.count)
	}
	c.docs.clear()
	c.documents(&c.li, c.docs)
	c.docs.without(c.gone.Bits())
	return c.docs.count()
}
