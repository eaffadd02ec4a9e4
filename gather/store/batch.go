package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
)

// A Ref is where an object stood when its entry was made.
type Ref struct {
	OID OID
	seq uint64
	at  loc
}

// Ref is what Contents needs of an entry.
func (e *Entry) Ref() Ref { return Ref{e.OID, cmp.Or(e.atSeq, e.Seq), e.at} }

// Contents is Bodies without looking the objects up: they are as they were when
// their entries were made, or, where Compact has moved them, as they are.
func (s *Store) Contents(ctx context.Context, refs []Ref, yield func(i int, body []byte, err error) bool) error {
	list := make([]wanted, len(refs))
	for i, r := range refs {
		list[i] = wanted{i, Entry{OID: r.OID, Seq: r.seq, at: r.at}}
	}
	return s.bodies(ctx, list, yield)
}

// A wanted object is one of those asked for, by its place among them.
type wanted struct {
	i     int
	entry Entry
}

// Bodies calls yield with objects as they are now, each with its place in
// oids, until yield returns false. They come in the order in which they stand
// on disk, so that neighbours cost one read. One that is gone is left out; the
// error of one that cannot be read is yield's to judge. The bytes are yield's
// until it returns, and not to be changed.
func (s *Store) Bodies(ctx context.Context, oids []OID, yield func(i int, body []byte, err error) bool) error {
	list := make([]wanted, 0, len(oids))
	for i, oid := range oids {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := s.Stat(oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, wanted{i, e})
	}
	return s.bodies(ctx, list, yield)
}

func (s *Store) bodies(ctx context.Context, list []wanted, yield func(i int, body []byte, err error) bool) error {
	slices.SortFunc(list, func(a, b wanted) int {
		x, y := a.entry.at, b.entry.at
		return cmp.Or(cmp.Compare(x.seg, y.seg), cmp.Compare(x.off, y.off), cmp.Compare(x.slot, y.slot))
	})
	for _, w := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		body, err := s.body(w.entry)
		if err == errMoved {
			_, body, err = s.read(w.entry.OID)
		}
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("object %s: %w", w.entry.OID, err)
		}
		if !yield(w.i, body, err) {
			break
		}
	}
	return nil
}
