package view

import (
	"bytes"
	"encoding/binary"
	"fmt"
	iofs "io/fs"

	"go.etcd.io/bbolt"

	"harvest/index"
)

// A Record is the last thing that happened to a document in a view.
type Record struct {
	Seq uint64
	Op  Op
	ID  index.ID
}

// Epoch tells these views from others: a number of one epoch says nothing in
// another.
func (v *Views) Epoch() uint32 { return v.epoch }

// Since gives at most n records of a view after a number, in order; from 0 on
// only of members. A number that is no more remembered, or was never given, is
// an error that wraps fs.ErrNotExist.
func (v *Views) Since(name string, after uint64, n int) (list []Record, err error) {
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	err = v.db.View(func(tx *bbolt.Tx) error {
		if after > 0 && (after < getCounts(tx, w.ID).floor || after > tx.Bucket(bucketLog).Sequence()) {
			return fmt.Errorf("view %s: change %d is not remembered: %w", name, after, iofs.ErrNotExist)
		}
		key := viewKey(w.ID)
		c := tx.Bucket(bucketLog).Cursor()
		k, entry := c.Seek(binary.BigEndian.AppendUint64(viewKey(w.ID), after+1))
		for ; bytes.HasPrefix(k, key) && len(list) < n; k, entry = c.Next() {
			r, err := parseRecord(k, entry)
			if err != nil {
				return err
			}
			if after > 0 || r.Op != Left {
				list = append(list, r)
			}
		}
		return nil
	})
	return list, err
}

func parseRecord(k, entry []byte) (Record, error) {
	if len(k) != 12 || len(entry) != 17 {
		return Record{}, fmt.Errorf("record %x is damaged: %w", k, iofs.ErrInvalid)
	}
	return Record{binary.BigEndian.Uint64(k[4:]), Op(entry[0]), index.ID(entry[1:])}, nil
}

// Newest gives the members of a view, those first that joined or changed last.
func (v *Views) Newest(name string) (list []index.ID, err error) {
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	list = make([]index.ID, 0, w.Members)
	err = v.db.View(func(tx *bbolt.Tx) error {
		key := viewKey(w.ID)
		c := tx.Bucket(bucketLog).Cursor()
		back := c.Prev
		if k, _ := c.Seek(viewKey(w.ID + 1)); k == nil {
			back = c.Last
		}
		for k, entry := back(); bytes.HasPrefix(k, key); k, entry = c.Prev() {
			r, err := parseRecord(k, entry)
			if err != nil {
				return err
			}
			if r.Op != Left {
				list = append(list, r.ID)
			}
		}
		return nil
	})
	return list, err
}

// After gives at most n members of a view in the order of their names, from the
// first that is not before one.
func (v *Views) After(name string, from index.ID, n int) (list []index.ID, err error) {
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	err = v.db.View(func(tx *bbolt.Tx) error {
		key := viewKey(w.ID)
		c := tx.Bucket(bucketMembers).Cursor()
		for k, _ := c.Seek(memberKey(w.ID, from)); bytes.HasPrefix(k, key) && len(list) < n; k, _ = c.Next() {
			list = append(list, index.ID(k[4:]))
		}
		return nil
	})
	return list, err
}

// Has tells whether a document is in a view.
func (v *Views) Has(name string, doc index.ID) (yes bool, err error) {
	w, err := v.Get(name)
	if err != nil {
		return false, err
	}
	err = v.db.View(func(tx *bbolt.Tx) error {
		yes = tx.Bucket(bucketMembers).Get(memberKey(w.ID, doc)) != nil
		return nil
	})
	return yes, err
}

// ByHand gives what was done by hand to a view, by document.
func (v *Views) ByHand(name string) (edits map[index.ID]Op, err error) {
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	edits = make(map[index.ID]Op)
	key := viewKey(w.ID)
	err = v.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketEdits).ForEach(func(k, op []byte) error {
			if len(k) == 20 && bytes.HasSuffix(k, key) {
				edits[index.ID(k[:16])] = Op(op[0])
			}
			return nil
		})
	})
	return edits, err
}
