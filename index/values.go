package index

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"harvest/index/dict"
	"harvest/index/posting"
)

// A valueCursor goes through the values of an attribute in one part.
type valueCursor struct {
	*part
	cursor *dict.Cursor
	key    []byte // at hand, nil at the end; without the attribute's name
	info   termInfo
	r      posting.Reader
}

// values are cursors that stand at the first key of an attribute above after,
// in all parts that have it.
func (v *view) values(attribute string, after []byte) (list []*valueCursor, err error) {
	for i := range v.parts {
		p := &v.parts[i]
		if _, ok := p.field(attribute); !ok {
			continue
		}
		keys, err := p.keys()
		if err != nil {
			return nil, err
		}
		c := &valueCursor{part: p, cursor: keys.Cursor()}
		c.cursor.Seek(appendKey(nil, attribute, after...))
		if err := c.next(attribute); err != nil {
			return nil, err
		}
		if bytes.Equal(c.key, after) {
			if err := c.next(attribute); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

func (c *valueCursor) next(attribute string) error {
	c.key = nil
	if !c.cursor.Next() {
		if err := c.cursor.Err(); err != nil {
			return c.Corrupt("%v: %v", secKeys, err)
		}
		return nil
	}
	if t := c.cursor.Term(); len(t) > len(attribute)+1 && t[len(attribute)] == 0 && string(t[:len(attribute)]) == attribute {
		c.key = t[len(attribute)+1:]
	}
	return nil
}

// live is the number of documents left that have the key at hand.
func (c *valueCursor) live() (n int, err error) {
	if !c.decode(c.cursor.Value(), &c.info) {
		return 0, c.Corrupt("%v: key %q", secKeys, c.cursor.Term())
	}
	if c.gone.Count() == 0 {
		return int(c.info.docs), nil
	}
	if err := c.open(&c.info.lists[0], &c.r, false); err != nil {
		return 0, err
	}
	for d := c.r.Next(); d != posting.End; d = c.r.Next() {
		if !c.deleted(d) {
			n++
		}
	}
	if err := c.r.Err(); err != nil {
		return 0, c.Corrupt("%v: %v", secPostings, err)
	}
	return n, nil
}

// each calls yield for the keys of an attribute above after, with the number
// of documents, until it returns false.
func (v *view) each(ctx context.Context, attribute string, after []byte, yield func(key []byte, docs int) bool) error {
	list, err := v.values(attribute, after)
	if err != nil {
		return err
	}
	var key []byte
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		list = slices.DeleteFunc(list, func(c *valueCursor) bool { return c.key == nil })
		if len(list) == 0 {
			return nil
		}
		least := slices.MinFunc(list, func(a, b *valueCursor) int { return bytes.Compare(a.key, b.key) })
		key = append(key[:0], least.key...)
		docs := 0
		for _, c := range list {
			if !bytes.Equal(c.key, key) {
				continue
			}
			n, err := c.live()
			if err != nil {
				return err
			}
			docs += n
			if err := c.next(attribute); err != nil {
				return err
			}
		}
		if docs > 0 && !yield(key, docs) {
			return nil
		}
	}
}

// Values gives the texts; each is kept beside what number or date it may be.
func (e *engine) Values(ctx context.Context, attribute, after string, yield func(Value) bool) error {
	v, err := e.view()
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(v)
	from := append([]byte{KeyText}, after...)
	if err := v.each(ctx, Attr(attribute), from, func(key []byte, docs int) bool {
		return key[0] != KeyText || yield(Value{Text: string(key[1:]), Docs: docs})
	}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("index: %w", err)
	}
	return ctx.Err()
}

// An attributesOnce keeps what Attributes found out about a view.
type attributesOnce struct {
	mu   sync.Mutex
	list []Attribute
	done bool
}

// Attributes counts over the documents that are left. It goes through all
// values, once for each Apply and merge.
func (e *engine) Attributes(ctx context.Context) ([]Attribute, error) {
	v, err := e.view()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	v.attributes.mu.Lock()
	defer v.attributes.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !v.attributes.done {
		list, err := v.countAttributes(ctx)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("index: %w", err)
			}
			return nil, err
		}
		v.attributes.list, v.attributes.done = list, true
	}
	return slices.Clone(v.attributes.list), nil
}

func (v *view) countAttributes(ctx context.Context) (out []Attribute, err error) {
	var names []string
	for i := range v.parts {
		for j := range v.parts[i].fields {
			names = append(names, v.parts[i].fields[j].name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a := Attribute{Name: name}
		if p := v.only(name); p != nil {
			f, _ := p.field(name)
			a.Docs, a.Distinct = int(p.fields[f].docs), int(p.fields[f].values)
		} else if err := v.each(ctx, name, nil, func(key []byte, docs int) bool {
			switch key[0] {
			case keyAny:
				a.Docs = docs
			case KeyText:
				a.Distinct++
			}
			return true
		}); err != nil {
			return nil, err
		}
		if a.Docs > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}

// only is the part that alone has an attribute, if nothing is gone from it.
func (v *view) only(name string) (only *part) {
	for i := range v.parts {
		p := &v.parts[i]
		if _, ok := p.field(name); ok {
			if only != nil || p.gone.Count() > 0 {
				return nil
			}
			only = p
		}
	}
	return only
}
