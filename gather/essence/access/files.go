package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"slices"

	"harvest/fs"
	"harvest/gather/catalog"
	"harvest/gather/soif"
)

// The tree:
//
//	as/text/OID     the text of an object
//	as/FORMAT/OID   the object in another format: bibtex, csv, iafa, jsonl, …
//	as/METHOD/OID   what the object's own method says
//
// Folders of methods do not list objects. Besides what all objects have as/ lists
// the methods that its owner gives to objects; those that came with an object are
// found by its attributes, Access-Method-METHOD.

// A Source is where objects are.
type Source struct {
	ID    func(part ...string) uint64
	Get   func(ctx context.Context, oid string) (soif.Object, error)
	Text  func(ctx context.Context, o *soif.Object) (string, error) // of one without Full-Text; may be nil
	Wrong func(path string, err error)                              // hears of methods that failed; may be nil
	Names func() []string                                           // methods to list, which some objects have; may be nil
}

// Files is the directory as/.
func Files(s Source) fs.Dir { return asDir{s} }

// Text is what an object says of itself, for one that has no Full-Text.
func Text(o *soif.Object) string {
	out := ""
	for _, name := range []string{"Title", "Author", "Abstract", "Description", "Headings", "Comments", "Keywords"} {
		for v := range o.Values(name) {
			if len(v) > 0 {
				out += string(v) + "\n\n"
			}
		}
	}
	return out
}

type asDir struct{ s Source }

func (d asDir) Stat() fs.Stat { return fs.Stat{Path: d.s.ID("as"), Mode: 0o555} }

func (d asDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	if !IsName(name) {
		return nil, fmt.Errorf("as/%.64s: %w", name, iofs.ErrNotExist)
	}
	return methodDir{d.s, name}, nil
}

func (d asDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	var all []fs.Entry
	names := append(catalog.Formats(), "text")
	if d.s.Names != nil {
		names = append(names, d.s.Names()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		all = append(all, fs.Entry{Name: name, Node: methodDir{d.s, name}})
	}
	return fs.Sorted(all, after)
}

// methodDir is one method: it knows every object, and lists none.
type methodDir struct {
	s    Source
	name string
}

func (d methodDir) Stat() fs.Stat { return fs.Stat{Path: d.s.ID("as", d.name), Mode: 0o555} }

func (d methodDir) List(context.Context, string) iter.Seq2[fs.Entry, error] {
	return func(func(fs.Entry, error) bool) {}
}

// Lookup finds an object that has the method.
func (d methodDir) Lookup(ctx context.Context, oid string) (fs.Node, error) {
	o, err := d.s.Get(ctx, oid)
	if err != nil {
		return nil, err
	}
	_, own := o.Get(Prefix + d.name)
	_, format := catalogFormat(d.name)
	if !own && !format && d.name != "text" {
		return nil, fmt.Errorf("as/%s/%s: the object has no such method: %w", d.name, oid, iofs.ErrNotExist)
	}
	return fs.Stream(d.s.ID("as", d.name, oid), 0, func(ctx context.Context, w io.Writer) error { return d.view(ctx, w, oid) }), nil
}

func catalogFormat(name string) (string, bool) {
	for _, f := range catalog.Formats() {
		if f == name {
			return f, true
		}
	}
	return "", false
}

// view writes what the method says of the object as it is now. The object's own
// comes before those that all have.
func (d methodDir) view(ctx context.Context, w io.Writer, oid string) error {
	o, err := d.s.Get(ctx, oid)
	if err != nil {
		return err
	}
	if _, own := o.Get(Prefix + d.name); own {
		text, err := Run(ctx, &o, d.name)
		if err != nil && ctx.Err() == nil && d.s.Wrong != nil {
			d.s.Wrong("as/"+d.name+"/"+oid, err)
		}
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		return err
	}
	if f, ok := catalogFormat(d.name); ok {
		Remove(&o)
		out, err := catalog.NewWriter(f, w)
		if err == nil {
			err = errors.Join(out.Write(&o), out.Close())
		}
		return err
	}
	if full, ok := o.Get("Full-Text"); ok {
		_, err := w.Write(append(full, '\n'))
		return err
	}
	if d.s.Text != nil {
		text, err := d.s.Text(ctx, &o)
		if err != nil {
			if d.s.Wrong != nil {
				d.s.Wrong("as/text/"+oid, err)
			}
			return err
		}
		if text != "" {
			_, err = io.WriteString(w, text)
			return err
		}
	}
	_, err = io.WriteString(w, Text(&o))
	return err
}
