// Package scan is an index.Engine without an index: it keeps which documents
// there are, and reads all of them for each search. It is exact, has nothing
// to build or merge, and is quick enough for some thousand documents; and it
// shows how little an engine must be (docs/index.6.md).
//
// The directory has one file of bbolt, documents: the bucket ids with the IDs, the
// bucket mark with the mark under the version, "1".
package scan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"harvest/index"
	"harvest/index/query"
)

type engine struct {
	db  *bbolt.DB
	set index.Settings
}

var ids, mark, version = []byte("ids"), []byte("mark"), []byte("1")

// Open opens the index in dir, which it makes if it is absent; set.Source is
// needed. One process at a time may have it open.
func Open(dir string, set index.Settings) (index.Engine, error) {
	if set.Source == nil {
		return nil, fmt.Errorf("index/scan: %s: without a source: %w", dir, iofs.ErrInvalid)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(dir, "documents"), 0o666, &bbolt.Options{Timeout: time.Second})
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(ids)
			_, merr := tx.CreateBucketIfNotExists(mark)
			return errors.Join(err, merr)
		})
	}
	if errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum) || errors.Is(err, berrors.ErrVersionMismatch) {
		err = fmt.Errorf("%w: %w", index.ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("index/scan: %w", err)
	}
	return &engine{db, set}, nil
}

// wrap gives errors the class that others know.
func wrap(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = iofs.ErrClosed
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("index/scan: %w", err)
}

func (e *engine) Apply(ctx context.Context, puts iter.Seq2[*index.Doc, error], deletes []index.ID, to string) error {
	return wrap(e.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(ids)
		for _, id := range deletes {
			if err := b.Delete(id[:]); err != nil {
				return err
			}
		}
		if puts == nil {
			puts = index.Docs(nil)
		}
		for d, err := range puts {
			if err = errors.Join(err, ctx.Err()); err == nil {
				err = b.Put(bytes.Clone(d.ID[:]), nil)
			}
			if err != nil {
				return err
			}
		}
		return tx.Bucket(mark).Put(version, []byte(to))
	}))
}

func (e *engine) Mark() (at string) {
	e.db.View(func(tx *bbolt.Tx) error { // of one that is closed there is none
		at = string(tx.Bucket(mark).Get(version))
		return nil
	})
	return at
}

func (e *engine) documents() (all []index.ID, err error) {
	return all, wrap(e.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(ids).ForEach(func(k, _ []byte) error {
			if len(k) != len(index.ID{}) {
				return fmt.Errorf("%s: %w", e.db.Path(), index.ErrCorrupt)
			}
			all = append(all, index.ID(k))
			return nil
		})
	}))
}

// each reads all documents, in any order.
func (e *engine) each(ctx context.Context, yield func(id index.ID, fields []index.Field)) error {
	all, err := e.documents()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	err = e.set.Source.Text(ctx, all, func(i int, fields []index.Field) bool {
		yield(all[i], fields)
		return ctx.Err() == nil
	})
	return errors.Join(err, ctx.Err())
}

// Search finds the documents that q matches, by ID unless opt.Rank is RankValue.
// They have no score.
func (e *engine) Search(ctx context.Context, q query.Node, opt index.Options) (r index.Results, err error) {
	if _, err := index.Compile(q, opt); err != nil {
		return r, err
	}
	if q, err = e.settle(ctx, q, opt); err != nil {
		return r, err
	}
	hits, size, err := e.find(ctx, q, opt)
	if err != nil {
		return r, err
	}
	r.Total = len(hits)
	hits = hits[min(opt.Offset, len(hits)):]
	if opt.Limit > 0 {
		hits = hits[:min(opt.Limit, len(hits))]
	}
	for _, h := range hits {
		r.Hits = append(r.Hits, index.Hit{ID: h.id})
	}
	r.Plan = []string{fmt.Sprintf("text: bytes %d, matches %d", size, r.Total)}
	return r, nil
}

// A found document with what it is sorted by.
type found struct {
	id  index.ID
	key []byte // nil: it has none
}

func (e *engine) find(ctx context.Context, q query.Node, opt index.Options) (hits []found, size int64, err error) {
	m, err := index.Compile(q, opt)
	if err != nil {
		return nil, 0, err
	}
	if e.set.NoNumbers {
		m.WithoutNumbers()
	}
	sorted := opt.Rank == index.RankValue
	err = e.each(ctx, func(id index.ID, fields []index.Field) {
		for i := range fields {
			size += int64(len(fields[i].Text))
		}
		if m.Match(fields) {
			h := found{id: id}
			if sorted {
				h.key = least(fields, index.Attr(opt.Sort))
			}
			hits = append(hits, h)
		}
	})
	slices.SortFunc(hits, func(a, b found) int {
		by := bytes.Compare(a.key, b.key)
		switch {
		case (a.key == nil) != (b.key == nil):
			by = -by // those without a key come last
		case opt.Reverse:
			by = -by
		}
		return cmp.Or(by, bytes.Compare(a.id[:], b.id[:]))
	})
	return hits, size, err
}

// least is the least key of an attribute's values.
func least(fields []index.Field, attr string) (key []byte) {
	for _, f := range fields {
		if index.Attr(f.Name) == attr {
			index.Keys(nil, f.Text, func(k []byte) bool {
				if key == nil || bytes.Compare(k, key) < 0 {
					key = slices.Clone(k)
				}
				return true
			})
		}
	}
	return key
}
