package main

import (
	"context"
	"errors"
	iofs "io/fs"
	"iter"
	"log/slog"

	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/bench"
)

// documents are a corpus as it is indexed: its files, or an object store made
// of them, in which a Broker has its texts.
type documents struct {
	*bench.Corpus
	store *store.Store // or nil
}

func openDocuments(dir, stored string) (*documents, error) {
	c, err := bench.OpenCorpus(dir)
	if err != nil || stored == "" {
		return &documents{Corpus: c}, err
	}
	st, err := store.Open(stored, slog.New(slog.DiscardHandler), store.Options{})
	return &documents{c, st}, err
}

func (d *documents) Close() error {
	if d.store == nil {
		return nil
	}
	return d.store.Close()
}

// Docs gives the documents in the order of the files, which is the order in
// which they came into the store.
func (d *documents) Docs(ctx context.Context, seen func(n int)) iter.Seq2[*index.Doc, error] {
	if d.store == nil {
		return d.Corpus.Docs(ctx, seen)
	}
	return func(yield func(*index.Doc, error) bool) {
		n := 0
		for rec, err := range d.store.Changes(ctx, store.Cursor{}) {
			var doc index.Doc
			if err == nil {
				doc.ID = index.ID(rec.Entry.OID)
				doc.Fields, err = d.stored(rec.Entry.OID)
			}
			if !yield(&doc, err) || err != nil {
				return
			}
			n++
			seen(n)
		}
	}
}

// stored are the fields of an object.
func (d *documents) stored(oid store.OID) ([]index.Field, error) {
	body, _, err := d.store.Get(oid)
	if err != nil {
		return nil, err
	}
	o, _, err := soif.Parse(body, soif.Limits{})
	return []index.Field{{Name: "title", Text: o.Text("Title")}, {Name: "body", Text: o.Text("Body")}}, err
}

// Text is index.Source.
func (d *documents) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	if d.store == nil {
		return d.Corpus.Text(ctx, ids, yield)
	}
	for i, id := range ids {
		fields, err := d.stored(store.OID(id))
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !yield(i, fields) {
			return nil
		}
	}
	return nil
}

// fillStore makes an object of each document.
func fillStore(ctx context.Context, c *bench.Corpus, dir string, seen func(n int)) (err error) {
	st, err := store.Open(dir, slog.New(slog.DiscardHandler), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var batch []store.Change
	n, size := 0, 0
	for d, err := range c.Docs(ctx, nil) {
		if err != nil {
			return err
		}
		o := soif.Object{Type: "FILE", URL: "file:///" + c.Names[n]}
		o.Add("Title", []byte(d.Fields[0].Text))
		o.Add("Body", []byte(d.Fields[1].Text))
		batch = append(batch, store.Change{Op: soif.Update, OID: store.OID(d.ID), URL: o.URL, Body: o.Append(nil)})
		size += len(d.Fields[1].Text)
		if n++; n == len(c.Names) || len(batch) == 500 || size > 8<<20 {
			if _, err := st.Apply(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
			seen(n)
		}
	}
	return nil
}
