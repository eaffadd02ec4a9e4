package broker

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"harvest/index"
	"harvest/index/query"
)

// The collection by attribute: every value of an attribute is a query, alone or
// joined with others.

// hasValue is the query for a value of an attribute; within is what it is joined
// with, or nil.
func hasValue(within query.Node, attr, value string) query.Node {
	q := query.Node(query.Attr{Name: attr, Value: query.Compare{Op: "=", Value: value}})
	switch w := within.(type) {
	case nil:
		return q
	case query.And:
		return append(slices.Clone(w), q)
	}
	return query.And{within, q}
}

// manyValues is how many values an attribute may have to be listed: what has
// more does not sort objects, but names them.
const manyValues = 10_000

// sorting are the attributes that sort objects, by name.
func (b *Broker) sorting(ctx context.Context) (names []string, err error) {
	var all []index.Attribute
	err = b.using(func(h *held) (err error) {
		all, err = h.Attributes(ctx)
		return err
	})
	for _, a := range all {
		if a.Distinct <= manyValues {
			names = append(names, a.Name)
		}
	}
	return names, err
}

// count is how many objects a query finds; with one it is known that there are
// some.
func (b *Broker) count(ctx context.Context, q query.Node, limit int) (n int, err error) {
	b.settle(ctx)
	err = b.using(func(h *held) error {
		r, err := h.Search(ctx, q, index.Options{Rank: index.RankNone, Limit: limit})
		n = len(r.Hits)
		return err
	})
	return n, err
}

// valuesOf gives the values of an attribute that objects have which a query
// finds, nil for all, and how many have them: by what is less work, to look at
// each object or at each value. More than manyValues are an error.
func (b *Broker) valuesOf(ctx context.Context, within query.Node, attr string) ([]index.Value, error) {
	var all []index.Value
	err := b.using(func(h *held) error {
		all = all[:0]
		return h.Values(ctx, attr, "", func(v index.Value) bool {
			all = append(all, v)
			return len(all) <= manyValues
		})
	})
	if err == nil && len(all) > manyValues {
		err = fmt.Errorf("%s: more than %d values: %w", attr, manyValues, errMany)
	}
	if err != nil || within == nil {
		return all, err
	}
	hits, err := b.search(ctx, within)
	if err != nil {
		return nil, err
	}
	if len(hits) < len(all) {
		list, err := b.valuesIn(ctx, hits, []index.Attribute{{Name: attr}})
		return list[attr], err
	}
	return b.valuesLeft(ctx, within, attr, all)
}

// errMany is of lists that would be too long.
var errMany = fmt.Errorf("too many to list: %w", syscall.E2BIG)

// search gives all objects that a query finds, in no order.
func (b *Broker) search(ctx context.Context, q query.Node) (hits []index.Hit, err error) {
	err = b.using(func(h *held) error {
		r, err := h.Search(ctx, q, index.Options{Rank: index.RankNone})
		hits = r.Hits
		return err
	})
	return hits, err
}

// valuesIn reads objects, and gives for each attribute the values that they have.
func (b *Broker) valuesIn(ctx context.Context, hits []index.Hit, attrs []index.Attribute) (map[string][]index.Value, error) {
	count := make(map[string]map[string]int)
	for _, a := range attrs {
		count[a.Name] = make(map[string]int)
	}
	ids := make([]index.ID, len(hits))
	for i := range hits {
		ids[i] = hits[i].ID
	}
	type value struct{ attr, text string }
	see := func(_ int, fields []index.Field) bool {
		seen := make(map[value]bool)
		for _, f := range fields {
			attr := index.Attr(f.Name)
			if count[attr] == nil {
				continue
			}
			if text := textKey(f.Text); text != "" && !seen[value{attr, text}] {
				seen[value{attr, text}] = true
				count[attr][text]++
			}
		}
		return true
	}
	err := b.inLane(ctx, func(ctx context.Context) error {
		for some := range slices.Chunk(ids, 256) { // between which others may go first
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := (texts{b}).Text(ctx, some, see); err != nil {
				return err
			}
		}
		return nil
	})
	lists := make(map[string][]index.Value, len(count))
	for attr, values := range count {
		for text, n := range values {
			lists[attr] = append(lists[attr], index.Value{Text: text, Docs: n})
		}
	}
	return lists, err
}

// textKey is a value as Values of an index give it, "" if they do not.
func textKey(value string) (text string) {
	index.Keys(nil, value, func(key []byte) bool {
		if key[0] == index.KeyText {
			text = string(key[1:])
		}
		return true
	})
	return text
}

// valuesLeft asks for each value whether it is there, and how often.
func (b *Broker) valuesLeft(ctx context.Context, within query.Node, attr string, all []index.Value) (left []index.Value, err error) {
	for _, v := range all {
		if v.Docs, err = b.count(ctx, hasValue(within, attr, v.Text), 0); err != nil {
			return nil, err
		}
		if v.Docs > 0 {
			left = append(left, v)
		}
	}
	return left, nil
}

// narrowing is how many values an attribute may have to be one to narrow an
// answer by.
const narrowing = 1000

// writeRefine writes what an answer can be narrowed by: for each attribute that
// has not too many values, those of the hits, the most frequent first: attribute,
// value, hits. A value that all hits have is left out, and so is an attribute of
// which no two have the same.
func (p page) writeRefine(ctx context.Context, w io.Writer) error {
	return p.write(w, func(w *bufio.Writer) error {
		if p.far != nil {
			return p.writeFarRefine(ctx, w)
		}
		var attrs []index.Attribute
		err := p.b.using(func(h *held) (err error) {
			attrs, err = h.Attributes(ctx)
			return err
		})
		if err != nil {
			return err
		}
		hits, err := p.b.search(ctx, p.manner.ask(p.q))
		if err != nil {
			return err
		}
		attrs = slices.DeleteFunc(attrs, func(a index.Attribute) bool { return a.Distinct > narrowing })
		count, err := p.b.refinements(ctx, p.manner.ask(p.q), hits, attrs)
		if err != nil {
			return err
		}
		for _, a := range attrs {
			values := slices.DeleteFunc(count[a.Name], func(v index.Value) bool { return v.Docs == len(hits) })
			slices.SortFunc(values, func(a, b index.Value) int {
				return cmp.Or(b.Docs-a.Docs, strings.Compare(a.Text, b.Text))
			})
			if len(hits) > 1 && len(values) > 0 && values[0].Docs == 1 {
				continue // it names them
			}
			for _, v := range values {
				fmt.Fprintf(w, "%s\t%s\t%d\n", a.Name, oneLine(v.Text, 500), v.Docs)
			}
		}
		return nil
	})
}

// refinements counts the values of attributes among hits: by what is less work,
// to look at each object or at each value.
func (b *Broker) refinements(ctx context.Context, q query.Node, hits []index.Hit, attrs []index.Attribute) (map[string][]index.Value, error) {
	work := 0
	for _, a := range attrs {
		work += a.Distinct
	}
	if len(hits) <= work {
		return b.valuesIn(ctx, hits, attrs)
	}
	count := make(map[string][]index.Value)
	for _, a := range attrs {
		values, err := b.valuesOf(ctx, q, a.Name)
		if err != nil {
			return nil, err
		}
		count[a.Name] = values
	}
	return count, nil
}
