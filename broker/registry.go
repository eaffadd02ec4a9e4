package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"
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
type registry struct {
	path string
	mu   sync.RWMutex // held while db is replaced; shared by who uses it
	db   *bbolt.DB
}

const registryName = "registry.db"

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
	db, err := openBolt(path)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r := &registry{path: path, db: db}
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

func (r *registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.db.Close()
}

func (r *registry) view(do func(*bbolt.Tx) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.db.View(do)
}

func (r *registry) update(do func(*bbolt.Tx) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.db.Update(do)
}

// How much of the file is to be free, and how many bytes, for compact to be worth
// it, and how many it copies with one wait for the disk.
const (
	compactShare = 3
	compactLeast = 1 << 20
	compactTx    = 8 << 20
)

// compact writes the registry anew if more than a third of its file is free: bbolt
// gives nothing back by itself. Who enters objects waits meanwhile, some seconds for
// a million; who asks is not concerned. A crash leaves the old file or the new one.
func (r *registry) compact() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	st, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	free := int64(r.db.Stats().FreePageN+r.db.Stats().PendingPageN) * int64(r.db.Info().PageSize)
	if free < compactLeast || free*compactShare < st.Size() {
		return nil
	}
	if err := r.copyTo(r.path + ".new"); err != nil {
		os.Remove(r.path + ".new")
		return err
	}
	if err := r.db.Close(); err != nil {
		return err
	}
	err = os.Rename(r.path+".new", r.path)
	db, oerr := openBolt(r.path) // whichever it is now
	if oerr != nil {
		return errors.Join(err, oerr)
	}
	r.db = db
	return errors.Join(err, syncDir(filepath.Dir(r.path)))
}

// copyTo writes what is in use to a new file, which is on disk then.
func (r *registry) copyTo(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	db, err := openBolt(path)
	if err != nil {
		return err
	}
	return errors.Join(bbolt.Compact(db, r.db, compactTx), db.Close())
}

func openBolt(path string) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o666, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// places gives those of sources; new ones are entered, all or none.
func (r *registry) places(paths []string) (map[string]place, error) {
	at := make(map[string]place, len(paths))
	err := r.update(func(tx *bbolt.Tx) error {
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
	return r.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketSources).Put([]byte(path), []byte(p.String()))
	})
}

// begin enters objects that source id gives as pending.
func (r *registry) begin(id uint64, oids []store.OID) error {
	return r.update(func(tx *bbolt.Tx) error {
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
	return r.update(func(tx *bbolt.Tx) error {
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
	err = r.view(func(tx *bbolt.Tx) error {
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
	return r.update(func(tx *bbolt.Tx) error {
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
	err = r.view(func(tx *bbolt.Tx) error {
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
