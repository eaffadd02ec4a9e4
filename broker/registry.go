package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// The registry is the file registry.db, of bbolt:
//
//	meta     "version": 1
//	sources  path of a source: a line of attr=value pairs: id= of the source,
//	         cursor= after which to read on, last= time of that, asked= for what
//	objects  OID: id of the source that gave the object last, 8 bytes
//	pending  OID: the same, for objects that are being given to the store
//
// An object is entered as pending, then stored, then settled: what a crash
// leaves pending is settled at the next start by what the store has. An object
// that leaves the store leaves the registry when the index follows (follow.go).
//
// Versions: 1, the first.
type registry struct{ db *bbolt.DB }

var (
	bucketMeta    = []byte("meta")
	bucketSources = []byte("sources")
	bucketObjects = []byte("objects")
	bucketPending = []byte("pending")
)

const registryVersion = 1

// A place is how far a source was read.
type place struct {
	id     uint64
	cursor string // "0": from the start
	last   time.Time
	print  string // of what was asked for
}

func openRegistry(path string) (*registry, error) {
	db, err := bbolt.Open(path, 0o666, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r := &registry{db}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketSources, bucketObjects, bucketPending} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get([]byte("version")); v != nil && (len(v) != 1 || v[0] != registryVersion) {
			return fmt.Errorf("version %v, this program knows %d: %w", v, registryVersion, iofs.ErrInvalid)
		}
		return meta.Put([]byte("version"), []byte{registryVersion})
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("registry: %w", err)
	}
	return r, nil
}

func (r *registry) Close() error { return r.db.Close() }

// places gives those of sources; new ones are entered, all or none.
func (r *registry) places(paths []string) (map[string]place, error) {
	at := make(map[string]place, len(paths))
	err := r.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketSources)
		for _, path := range paths {
			if v := b.Get([]byte(path)); v != nil {
				p, err := parsePlace(string(v))
				if err != nil {
					return sourceError(path, err)
				}
				at[path] = p
				continue
			}
			id, err := b.NextSequence()
			if err != nil {
				return err
			}
			at[path] = place{id: id, cursor: "0"}
			if err := b.Put([]byte(path), []byte(at[path].String())); err != nil {
				return sourceError(path, err)
			}
		}
		return nil
	})
	return at, err
}

func (p place) String() string {
	return ndb.Format(ndb.Of("id", p.id), ndb.Of("cursor", p.cursor), ndb.Of("last", p.last), ndb.Of("asked", p.print))
}

func parsePlace(text string) (p place, err error) {
	e, err := ndb.ParseLine(text, 1)
	if err != nil {
		return p, err
	}
	id, _ := e.Pair("id")
	n, err := e.Int(id)
	if err != nil {
		return p, err
	}
	p.id = uint64(n)
	p.cursor, _ = e.Get("cursor")
	last, _ := e.Get("last")
	p.last, _ = time.Parse(time.RFC3339, last)
	p.print, _ = e.Get("asked")
	return p, nil
}

// advance says that all up to p.cursor is stored.
func (r *registry) advance(path string, p place) error {
	return r.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketSources).Put([]byte(path), []byte(p.String()))
	})
}

// begin enters objects that source id gives as pending.
func (r *registry) begin(id uint64, oids []store.OID) error {
	return r.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketPending)
		for _, oid := range oids {
			if err := b.Put(oid[:], binary.BigEndian.AppendUint64(nil, id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle enters the pending objects that the store has, and forgets the rest.
func (r *registry) settle(has func(store.OID) (bool, error)) error {
	return r.db.Update(func(tx *bbolt.Tx) error {
		pending, objects := tx.Bucket(bucketPending), tx.Bucket(bucketObjects)
		if k, _ := pending.Cursor().First(); k == nil {
			return nil
		}
		err := pending.ForEach(func(k, v []byte) error {
			yes, err := has(store.OID(k))
			if err != nil {
				return err
			}
			if !yes {
				return objects.Delete(k)
			}
			return objects.Put(k, v)
		})
		if err != nil {
			return err
		}
		if err := tx.DeleteBucket(bucketPending); err != nil {
			return err
		}
		_, err = tx.CreateBucket(bucketPending)
		return err
	})
}

// owner is the id of the source that gave an object, 0 if none did.
func (r *registry) owner(oid store.OID) (id uint64, err error) {
	err = r.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bucketObjects).Get(oid[:]); len(v) == 8 {
			id = binary.BigEndian.Uint64(v)
		}
		return nil
	})
	return id, err
}

// drop forgets objects.
func (r *registry) drop(oids []store.OID) error {
	if len(oids) == 0 {
		return nil
	}
	return r.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketObjects)
		for _, oid := range oids {
			if err := b.Delete(oid[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// An entry of the registry: an object and the id of its source.
type entry struct {
	oid store.OID
	id  uint64
}

// after gives up to n entries after an OID, in order; from the first if oid is
// nil.
func (r *registry) after(oid *store.OID, n int) (out []entry, err error) {
	err = r.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketObjects).Cursor()
		k, v := c.First()
		if oid != nil {
			if k, v = c.Seek(oid[:]); k != nil && store.OID(k) == *oid {
				k, v = c.Next()
			}
		}
		for ; k != nil && len(out) < n; k, v = c.Next() {
			if len(k) != 16 || len(v) != 8 {
				return errors.New("registry: an entry is damaged")
			}
			out = append(out, entry{store.OID(k), binary.BigEndian.Uint64(v)})
		}
		return nil
	})
	return out, err
}

// each gives all entries in order, without a transaction over the yield.
func (r *registry) each(yield func(entry) error) error {
	const some = 4096
	var last *store.OID
	for {
		list, err := r.after(last, some)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, e := range list {
			if err := yield(e); err != nil {
				return err
			}
		}
		last = &list[len(list)-1].oid
	}
}
