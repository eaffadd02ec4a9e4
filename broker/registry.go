package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/store"
)

// The registry is the file registry.db, of bbolt:
//
//	meta     "version": 1
//	sources  path of a source: a line of attr=value pairs: id= of the source,
//	         cursor= after which to read on, last= time of that, asked= for what
//	objects  OID: id of the source that gave the object last, 8 bytes, and when it
//	         was seen first, in Unix seconds, 4 bytes
//	pending  number of a batch, 8 bytes: id of the source, and the OIDs of objects
//	         that it gives
//
// Objects are entered as pending, a batch of them, then stored, and then settled,
// which is remembered in memory: OIDs are random, and to enter a batch among a
// million objects writes a page for each. When many are settled they are entered
// in the order of their OIDs, and no more pending. What a crash leaves pending is
// settled at the next start by what the store has. An object that leaves the store
// leaves the registry when the index follows (follow.go).
//
// Versions: 1, the first, had in pending OID: id of the source; 2 had no time in
// objects, and what it has entered was seen first at no time; 3.
type registry struct {
	path string
	mu   sync.RWMutex // held while db is replaced; shared by who uses it
	db   *bbolt.DB

	changing sync.Mutex // held while something is begun, settled or merged
	begun    int        // batches that are not settled; under changing

	freshMu sync.Mutex
	fresh   map[store.OID]given // settled, and not yet among objects
}

const registryName = "registry.db"

var (
	bucketMeta    = []byte("meta")
	bucketSources = []byte("sources")
	bucketObjects = []byte("objects")
	bucketPending = []byte("pending")
)

const registryVersion = 3

// How many objects are settled in memory, 3 MB, and how many of them are entered in
// one transaction: as they are in order it touches few pages.
const (
	manyFresh   = 64 << 10
	freshAtOnce = 8 << 10
)

func openRegistry(path string) (*registry, error) {
	db, err := openBolt(path)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r := &registry{path: path, db: db, fresh: make(map[store.OID]given)}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketSources, bucketObjects, bucketPending} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get([]byte("version")); v != nil && (len(v) != 1 || v[0] == 0 || v[0] > registryVersion) {
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
	err := r.merge()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(err, r.db.Close())
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

// advance says that all up to p.cursor is stored.
func (r *registry) advance(path string, p place) error {
	return r.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketSources).Put([]byte(path), []byte(p.String()))
	})
}

// begin enters objects that source id gives as pending.
func (r *registry) begin(id uint64, oids []store.OID) error {
	if len(oids) == 0 {
		return nil
	}
	value := binary.BigEndian.AppendUint64(make([]byte, 0, 8+16*len(oids)), id)
	for _, oid := range oids {
		value = append(value, oid[:]...)
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.begun++
	return r.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketPending)
		n, err := b.NextSequence()
		if err != nil {
			return err
		}
		return b.Put(binary.BigEndian.AppendUint64(nil, n), value)
	})
}

// settle notes of objects that were begun who gave those that the store has.
func (r *registry) settle(id uint64, oids []store.OID, has func(store.OID) (bool, error)) error {
	if len(oids) == 0 {
		return nil
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	for _, oid := range oids {
		if err := r.note(oid, id, has); err != nil {
			return err
		}
	}
	r.begun--
	if len(r.fresh) < manyFresh { // it changes under changing only
		return nil
	}
	return r.enter()
}

func (r *registry) note(oid store.OID, id uint64, has func(store.OID) (bool, error)) error {
	there, err := has(oid)
	if err != nil {
		return err
	}
	if !there {
		id = 0
	}
	r.freshMu.Lock()
	at := uint32(time.Now().Unix())
	if was, ok := r.fresh[oid]; ok && was.id != 0 {
		at = was.seen
	}
	r.fresh[oid] = given{id, at}
	r.freshMu.Unlock()
	return nil
}

// recover settles what a crash has left pending, of version 1 too.
func (r *registry) recover(has func(store.OID) (bool, error)) error {
	given := make(map[store.OID]uint64)
	err := r.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketPending).ForEach(func(k, v []byte) error {
			switch {
			case len(k) == 16 && len(v) == 8:
				given[store.OID(k)] = binary.BigEndian.Uint64(v)
				return nil
			case len(k) != 8 || len(v)%16 != 8:
				return errors.New("registry: what is pending is damaged")
			}
			id := binary.BigEndian.Uint64(v)
			for v = v[8:]; len(v) > 0; v = v[16:] {
				given[store.OID(v[:16])] = id
			}
			return nil
		})
	})
	for oid, id := range given {
		if err == nil {
			err = r.note(oid, id, has)
		}
	}
	if err != nil {
		return err
	}
	return r.merge()
}

// merge enters what is settled among the objects.
func (r *registry) merge() error {
	r.changing.Lock()
	defer r.changing.Unlock()
	return r.enter()
}

// enter is merge for who holds changing. As long as a batch is begun, or was not
// settled because of an error, all that is pending stays so: to settle a batch once
// more at the next start does no harm.
func (r *registry) enter() error {
	list := make([]entry, 0, len(r.fresh))
	for oid, g := range r.fresh {
		list = append(list, entry{oid, g})
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b entry) int { return compareOID(a.oid, b.oid) })
	for some := range slices.Chunk(list, freshAtOnce) {
		if err := r.update(func(tx *bbolt.Tx) error { return putEntries(tx.Bucket(bucketObjects), some) }); err != nil {
			return err
		}
	}
	if r.begun == 0 {
		if err := r.update(emptyPending); err != nil {
			return err
		}
	}
	r.freshMu.Lock()
	clear(r.fresh)
	r.freshMu.Unlock()
	return nil
}

func emptyPending(tx *bbolt.Tx) error {
	n := tx.Bucket(bucketPending).Sequence()
	if err := tx.DeleteBucket(bucketPending); err != nil {
		return err
	}
	b, err := tx.CreateBucket(bucketPending)
	if err != nil {
		return err
	}
	return b.SetSequence(n)
}

func putEntries(b *bbolt.Bucket, list []entry) (err error) {
	for i := 0; i < len(list) && err == nil; i++ {
		if e := &list[i]; e.id == 0 {
			err = b.Delete(e.oid[:])
		} else {
			err = b.Put(e.oid[:], e.since(b.Get(e.oid[:])).append(nil))
		}
	}
	return err
}

// owner is the id of the source that gave an object, 0 if none did.
func (r *registry) owner(oid store.OID) (id uint64, err error) {
	r.freshMu.Lock()
	g, ok := r.fresh[oid]
	r.freshMu.Unlock()
	if ok {
		return g.id, nil
	}
	err = r.view(func(tx *bbolt.Tx) error {
		g, _ = parseGiven(tx.Bucket(bucketObjects).Get(oid[:]))
		return nil
	})
	return g.id, err
}

// drop forgets objects.
func (r *registry) drop(oids []store.OID) error {
	if len(oids) == 0 {
		return nil
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.freshMu.Lock()
	for _, oid := range oids {
		delete(r.fresh, oid)
	}
	r.freshMu.Unlock()
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

// after gives up to n entries after an OID, in order; from the first if oid is
// nil; of all that are settled by then.
func (r *registry) after(oid *store.OID, n int) (out []entry, err error) {
	if err := r.merge(); err != nil {
		return nil, err
	}
	err = r.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketObjects).Cursor()
		k, v := c.First()
		if oid != nil {
			if k, v = c.Seek(oid[:]); k != nil && store.OID(k) == *oid {
				k, v = c.Next()
			}
		}
		for ; k != nil && len(out) < n; k, v = c.Next() {
			g, ok := parseGiven(v)
			if len(k) != 16 || !ok {
				return errors.New("registry: an entry is damaged")
			}
			out = append(out, entry{store.OID(k), g})
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
