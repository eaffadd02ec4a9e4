package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	iofs "io/fs"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// bodies keep objects. Those of a mirror are a store, whose files are its tree; a
// flood's are in its database.
type bodies interface {
	put(ctx context.Context, recs []*Record, objects [][]byte) error // they are on disk when it returns
	remove(ctx context.Context, oids []store.OID) error
	get(oid store.OID) ([]byte, error) // one that is not there wraps fs.ErrNotExist
	has(r *Record) bool                // whether it is the object of the record
}

// storeBodies keeps objects in a store.
type storeBodies struct{ s *store.Store }

func (b storeBodies) put(ctx context.Context, recs []*Record, objects [][]byte) error {
	changes := make([]store.Change, len(recs))
	for i, r := range recs {
		changes[i] = store.Change{Op: soif.Update, OID: r.OID, Body: objects[i], TTL: time.Duration(r.TTL) * time.Second}
		if r.Updated > 0 {
			changes[i].Updated = time.Unix(int64(r.Updated), 0)
		}
	}
	_, err := b.s.Apply(ctx, changes)
	return err
}

func (b storeBodies) remove(ctx context.Context, oids []store.OID) error {
	changes := make([]store.Change, len(oids))
	for i, oid := range oids {
		changes[i] = store.Change{Op: soif.Delete, OID: oid}
	}
	_, err := b.s.Apply(ctx, changes)
	return err
}

func (b storeBodies) get(oid store.OID) ([]byte, error) {
	body, _, err := b.s.Get(oid)
	return body, err
}

// has goes by the half of the hash that a store keeps: 128 bits of a hash that was
// checked when the object was stored.
func (b storeBodies) has(r *Record) bool {
	e, err := b.s.Stat(r.OID)
	return err == nil && e.Size == int64(r.Size) && bytes.Equal(e.Hash[:], r.Hash[:len(e.Hash)])
}

// tableBodies keeps objects in the database.
type tableBodies struct{ db *bbolt.DB }

func (b tableBodies) put(_ context.Context, recs []*Record, objects [][]byte) error {
	return b.db.Update(func(tx *bbolt.Tx) (err error) {
		for i, r := range recs {
			err = errors.Join(err, tx.Bucket([]byte("body")).Put(r.OID[:], objects[i]))
		}
		return err
	})
}

func (b tableBodies) remove(_ context.Context, oids []store.OID) error {
	return b.db.Update(func(tx *bbolt.Tx) (err error) {
		for _, oid := range oids {
			err = errors.Join(err, tx.Bucket([]byte("body")).Delete(oid[:]))
		}
		return err
	})
}

func (b tableBodies) get(oid store.OID) (body []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket([]byte("body")).Get(oid[:])
		if v == nil {
			return iofs.ErrNotExist
		}
		body = bytes.Clone(v)
		return nil
	})
	return body, err
}

func (b tableBodies) has(r *Record) bool {
	body, err := b.get(r.OID)
	return err == nil && sha256.Sum256(body) == r.Hash
}
