package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// # The index
//
// The index is a bbolt file, index.db. All it holds can be read in the segments
// too, so it may be deleted: Open makes it anew. Keys are big-endian, values
// varints unless said otherwise.
//
//	obj     OID → seq, seq-body, segment, offset, slot, size, updated, ttl,
//	              hash[16], length of type, type, URL
//	tomb    OID → seq, time, URL             of deleted objects
//	log     seq[8] → OID                     one of each object and tombstone
//	expiry  time[8] seq[8] → nothing         of objects that have a time to live
//	url     path → OID                       the tree of URLs, see name.go
//	frame   segment[4] offset[4] → length, length of meta, bytes of objects, of
//	              live ones, count of changes, least seq, bits of the dead ones
//	time    Unix second[8] → number of the last change before it
//	meta    name → number[8], but vers: 256 numbers
//
// A change is in the log of the segments before it is here: Apply appends to the
// active segment, waits for the disk, and enters the change in a table in memory,
// which readers look at first. Every few thousand changes, and soon after they
// cease, the table is entered here in one transaction together with the place in
// the segments it reaches to (meta check.segment, check.offset). Open enters what
// comes after that place.
//
// Why not a transaction each Apply: OIDs are random, so each object dirties a page
// of its own in obj, and bbolt then writes 4 KB for 200 bytes, and waits twice
// for the disk. See docs/store.6.md for what was measured.
const (
	// indexVersion is the version of the index that is written; one of another
	// version is made anew. History:
	//
	//	1  November 2026: as above
	indexVersion = 1

	indexName = "index.db"
)

var bucketNames = []string{"obj", "tomb", "log", "expiry", "url", "frame", "time", "meta"}

// A corpse is an object in a segment that is no longer the latest.
type corpse struct {
	loc
	size int64
}

// A place is a position in the segments.
type place struct{ seg, off uint32 }

// A table holds changes that are in the segments and not yet in the index.
type table struct {
	rows   map[OID]*row
	n      int // changes, of which some replaced others
	dead   []corpse
	frames []frameInfo
	times  []timeMark
	meta   totals
	end    place
}

// A timeMark says which change was the last before a second.
type timeMark struct {
	second int64
	before uint64
}

func newTable() *table { return &table{rows: make(map[OID]*row)} }

// totals are the counts that move with each change.
type totals struct {
	seq     uint64
	objects int64
	bytes   int64
	dead    int64 // bytes of dead objects in all segments
	tombs   int64
	tree    uint64 // the last change that made or removed a name
	second  int64  // the last second in the time index
	vers    [256]uint64
}

func openIndex(dir string) (*bbolt.DB, error) {
	db, err := bbolt.Open(filepath.Join(dir, indexName), 0o640, &bbolt.Options{
		Timeout:      time.Second, // the store's own lock is held: nobody else has it
		NoSync:       true,        // see trust.go
		NoGrowSync:   true,
		FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		if b == nil {
			return nil // new
		}
		if v := getNumber(b, "version"); v != indexVersion {
			return fmt.Errorf("index of version %d: %w", v, ErrDamaged)
		}
		for _, n := range bucketNames {
			if tx.Bucket([]byte(n)) == nil {
				return fmt.Errorf("index without %s: %w", n, ErrDamaged)
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// begun reports whether the index has ever been written to the end.
func begun(db *bbolt.DB) (yes bool, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		yes = b != nil && getNumber(b, "check.segment") != 0
		return nil
	})
	return yes, err
}

func getNumber(b *bbolt.Bucket, name string) uint64 {
	v := b.Get([]byte(name))
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func putNumber(b *bbolt.Bucket, name string, v uint64) error {
	return b.Put([]byte(name), number(v))
}

func number(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func expiryKey(r *row) []byte {
	return binary.BigEndian.AppendUint64(number(uint64(r.Expires().Unix())), r.Seq)
}

// buckets are the index within a transaction.
type buckets struct {
	obj, tomb, log, expiry, url, frame, time, meta *bbolt.Bucket
}

func bucketsOf(tx *bbolt.Tx) buckets {
	get := func(n string) *bbolt.Bucket { return tx.Bucket([]byte(n)) }
	return buckets{get("obj"), get("tomb"), get("log"), get("expiry"), get("url"), get("frame"), get("time"), get("meta")}
}

func makeBuckets(tx *bbolt.Tx) (buckets, error) {
	for _, n := range bucketNames {
		if _, err := tx.CreateBucketIfNotExists([]byte(n)); err != nil {
			return buckets{}, err
		}
	}
	b := bucketsOf(tx)
	// These three are only added to at their end.
	b.log.FillPercent, b.frame.FillPercent, b.time.FillPercent = 0.95, 0.95, 0.95
	b.expiry.FillPercent = 0.9
	return b, putNumber(b.meta, "version", indexVersion)
}

// state returns the latest state of an object, of a deleted one too.
func (b buckets) state(oid OID) (r row, ok bool, err error) {
	if v := b.obj.Get(oid[:]); v != nil {
		r, err = parseRow(oid, v)
		return r, true, err
	}
	if v := b.tomb.Get(oid[:]); v != nil {
		r, err = parseTomb(oid, v)
		return r, true, err
	}
	return row{}, false, nil
}

func (b buckets) putTotals(m *totals, end place, epoch uint32) error {
	vers := make([]byte, 0, 8*len(m.vers))
	for _, v := range m.vers {
		vers = binary.BigEndian.AppendUint64(vers, v)
	}
	err := b.meta.Put([]byte("vers"), vers)
	for name, v := range map[string]uint64{
		"seq": m.seq, "objects": uint64(m.objects), "bytes": uint64(m.bytes), "dead": uint64(m.dead),
		"tombstones": uint64(m.tombs), "tree": m.tree, "second": uint64(m.second), "epoch": uint64(epoch),
		"check.segment": uint64(end.seg), "check.offset": uint64(end.off),
	} {
		err = errors.Join(err, putNumber(b.meta, name, v))
	}
	return err
}

func (b buckets) totals() (m totals, end place, epoch uint32) {
	get := func(name string) uint64 { return getNumber(b.meta, name) }
	m = totals{seq: get("seq"), objects: int64(get("objects")), bytes: int64(get("bytes")), dead: int64(get("dead")),
		tombs: int64(get("tombstones")), tree: get("tree"), second: int64(get("second"))}
	vers := b.meta.Get([]byte("vers"))
	for i := range m.vers {
		if len(vers) == 8*len(m.vers) {
			m.vers[i] = binary.BigEndian.Uint64(vers[8*i:])
		}
	}
	return m, place{uint32(get("check.segment")), uint32(get("check.offset"))}, uint32(get("epoch"))
}

// A view is the index at one moment together with the tables of that moment.
type view struct {
	buckets
	s      *Store
	tables [2]*table // the newest first; the second may be nil
}

// view runs f in a short read transaction. The tables are taken before it
// begins: a change is in them or was in the index by then.
func (s *Store) view(f func(v view) error) error {
	s.mu.RLock()
	v := view{s: s, tables: [2]*table{s.active, s.entering}}
	s.mu.RUnlock()
	return s.db.View(func(tx *bbolt.Tx) error {
		if s.looks.Add(1) >= forgetEvery {
			s.looks.Store(0)
			s.forget(tx)
		}
		v.buckets = bucketsOf(tx)
		return f(v)
	})
}

// state returns the latest state of an object, of a deleted one too.
func (v view) state(oid OID) (row, bool, error) {
	v.s.mu.RLock()
	if r := v.recent(oid); r != nil {
		v.s.mu.RUnlock()
		return *r, true, nil
	}
	// The table that was entered last is in the filter, or in v.tables.
	lacks := v.s.filter.lacks(oid)
	v.s.mu.RUnlock()
	if lacks {
		return row{}, false, nil
	}
	return v.buckets.state(oid)
}

// recent returns the row of an object that is in a table, or nil. Called with mu
// held.
func (v view) recent(oid OID) *row {
	for _, t := range v.tables {
		if t != nil && t.rows[oid] != nil {
			return t.rows[oid]
		}
	}
	return nil
}

// find returns the row of an object that is there. A damaged one is as if absent
// but for a line in the log.
func (v view) find(oid OID) (row, bool) {
	r, ok, err := v.state(oid)
	if err != nil {
		v.s.lg.Error("store index", "dir", v.s.dir, "err", err)
	}
	return r, ok && err == nil && !r.gone
}
