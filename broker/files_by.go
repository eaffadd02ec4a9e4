package broker

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"harvest/fs"
	"harvest/index"
	"harvest/index/query"
)

// The tree of by/:
//
//	by/
//		ATTRIBUTE/
//			VALUE/      what q/ has for the objects with that value
//				by/ …   (not listed) the same, among those
//
// A value is written as a query is in q; what has no object is not there.

// byDir is by/, at the top or of a value.
type byDir struct {
	b      *Broker
	within query.Node // nil at the top
}

func (b *Broker) byID(within query.Node, parts ...string) uint64 {
	text := ""
	if within != nil {
		text = within.String()
	}
	return b.id(append([]string{"by", text}, parts...)...)
}

func (d byDir) Stat() fs.Stat { return fs.Stat{Path: d.b.byID(d.within), Mode: 0o555} }

func (d byDir) Lookup(ctx context.Context, name string) (fs.Node, error) {
	attr := index.Attr(name)
	if name == "" {
		return nil, notExist(name)
	}
	n, err := d.b.count(ctx, query.Attr{Name: attr, Value: query.All{}}, 1)
	if err != nil || n == 0 || attr != name {
		return nil, cmpErr(err, name)
	}
	return byAttr{d.b, d.within, attr}, nil
}

// cmpErr is an error, or that there is no such name.
func cmpErr(err error, name string) error {
	if err != nil {
		return fmt.Errorf("by: %w", err)
	}
	return notExist(name)
}

func (d byDir) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	names, err := d.b.sorting(ctx)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, fmt.Errorf("by: %w", err)) }
	}
	var list []fs.Entry
	for _, name := range names {
		if name != "" && !strings.ContainsAny(name, "/\x00") {
			list = append(list, fs.Entry{Name: name, Node: byAttr{d.b, d.within, name}})
		}
	}
	return fs.Sorted(list, after)
}

// byAttr is by/ATTRIBUTE.
type byAttr struct {
	b      *Broker
	within query.Node
	attr   string
}

func (d byAttr) Stat() fs.Stat { return fs.Stat{Path: d.b.byID(d.within, d.attr), Mode: 0o555} }

func (d byAttr) Lookup(ctx context.Context, name string) (fs.Node, error) {
	value := unescape(name)
	if strings.HasPrefix(name, ".") || strings.TrimSpace(value) == "" {
		return nil, notExist(name)
	}
	q := hasValue(d.within, d.attr, value)
	n, err := d.b.count(ctx, q, 1)
	if err != nil || n == 0 {
		return nil, cmpErr(err, name)
	}
	return byValue{d.b, q}, nil
}

func (d byAttr) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	values, err := d.b.valuesOf(ctx, d.within, d.attr)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, fmt.Errorf("by: %w", err)) }
	}
	var list []fs.Entry
	for _, v := range values {
		if name := escape(v.Text); name != "" && len(name) <= maxName {
			list = append(list, fs.Entry{Name: name, Node: byValue{d.b, hasValue(d.within, d.attr, v.Text)}})
		}
	}
	return fs.Sorted(list, after)
}

// byValue is by/ATTRIBUTE/VALUE: the answer to its query, which is asked by who
// looks into it.
type byValue struct {
	b *Broker
	q query.Node
}

func (d byValue) Stat() fs.Stat {
	h := d.b.hold()
	defer h.release()
	return fs.Stat{Path: d.b.namedID("query", d.q.String(), h.Mark(), ""), Mode: 0o555}
}

func (d byValue) files(ctx context.Context) (fs.Dir, error) {
	a, err := d.b.queries.again(ctx, d.q.String(), false, func() (*answer, error) { return d.b.answer(ctx, d.q, plain(), 1) })
	if err != nil {
		return nil, fmt.Errorf("by: %w", err)
	}
	return a.files(""), nil
}

func (d byValue) Lookup(ctx context.Context, name string) (fs.Node, error) {
	if name == "by" {
		return byDir{d.b, d.q}, nil
	}
	files, err := d.files(ctx)
	if err != nil {
		return nil, err
	}
	return files.Lookup(ctx, name)
}

func (d byValue) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	files, err := d.files(ctx)
	if err != nil {
		return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, err) }
	}
	return files.List(ctx, after)
}
