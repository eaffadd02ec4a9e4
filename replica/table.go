package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/store"
)

// # The database
//
// What is known of all writers is in one bbolt file. Keys begin with the writer's 8
// bytes, so that each has a stretch of its own; numbers are big-endian.
//
//	rec    writer OID → what follows the OID in a record
//	log    writer epoch[4] seq[8] OID → nothing, or of a tombstone its time[4]
//	tomb   writer OID → epoch[4] seq[8] of its tombstone
//	head   writer → floor epoch[4] seq[8], 1 if it is being filled, line of its head
//	fork   line of two heads → nothing
//	want   OID → nothing                   of objects that no member had yet
//	body   OID → object                    of floods, which need no store
//	place  source → cursor
//	from   OID → source                    of what was collected
//	meta   format, key, …
//
// The log has one entry of each record and of each tombstone: what changed after a
// version is all that follows it. The floor is the version before which tombstones
// may be missing.
const format = "1"

var buckets = []string{"rec", "log", "tomb", "head", "fork", "want", "body", "place", "from", "meta"}

func openTable(path string, sync bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoSync: !sync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte("meta"))
		switch f := meta.Get([]byte("format")); {
		case f == nil:
			return meta.Put([]byte("format"), []byte(format))
		case string(f) != format:
			return fmt.Errorf("format %.20q, not %s: %w", f, format, iofs.ErrInvalid)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func appendVersion(dst []byte, v Version) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, v.Epoch), v.Seq)
}

func readVersion(b []byte) Version {
	return Version{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])}
}

// A table is the records of one writer, in a transaction.
type table struct {
	w              Writer
	rec, log, tomb *bbolt.Bucket
}

func tableOf(tx *bbolt.Tx, w Writer) table {
	return table{w, tx.Bucket([]byte("rec")), tx.Bucket([]byte("log")), tx.Bucket([]byte("tomb"))}
}

func (t table) key(rest ...byte) []byte { return append(bytes.Clone(t.w[:]), rest...) }

func (t table) logKey(v Version, oid store.OID) []byte {
	return append(appendVersion(t.key(), v), oid[:]...)
}

func (t table) get(oid store.OID) (r Record, ok bool, err error) {
	b := t.rec.Get(t.key(oid[:]...))
	if b == nil {
		return r, false, nil
	}
	r, err = parseRest(oid, b)
	return r, err == nil, err
}

// each calls f with the records under a prefix of OIDs, in order.
func (t table) each(prefix []byte, f func(r *Record) error) error {
	at := t.key(prefix...)
	c := t.rec.Cursor()
	for k, v := c.Seek(at); bytes.HasPrefix(k, at); k, v = c.Next() {
		r, err := parseRest(store.OID(k[len(t.w):]), v)
		if err != nil {
			return err
		}
		if err := f(&r); err != nil {
			return err
		}
	}
	return nil
}

// records gives the records under a prefix as they are hashed and sent.
func (t table) records(prefix []byte) []byte {
	var b []byte
	at := t.key(prefix...)
	c := t.rec.Cursor()
	for k, v := c.Seek(at); bytes.HasPrefix(k, at); k, v = c.Next() {
		b = append(append(b, k[len(t.w):]...), v...)
	}
	return b
}

// put enters a change. A tombstone is kept with the time.
func (t table) put(r *Record, now uint32) error {
	key := t.key(r.OID[:]...)
	if old, ok, err := t.get(r.OID); err != nil {
		return err
	} else if ok {
		if err := t.log.Delete(t.logKey(old.Version, r.OID)); err != nil {
			return err
		}
	}
	if b := t.tomb.Get(key); len(b) == 12 {
		if err := errors.Join(t.log.Delete(t.logKey(readVersion(b), r.OID)), t.tomb.Delete(key)); err != nil {
			return err
		}
	}
	at := t.logKey(r.Version, r.OID)
	if r.gone() {
		return errors.Join(t.rec.Delete(key), t.tomb.Put(key, appendVersion(nil, r.Version)), t.log.Put(at, binary.BigEndian.AppendUint32(nil, now)))
	}
	return errors.Join(t.rec.Put(key, r.appendRest(nil)), t.log.Put(at, nil))
}

// errFar says that a version is too far away for its changes to be told one by one.
var errFar = fmt.Errorf("walk sum: %w", iofs.ErrNotExist)

// since gives what changed after a version, up to a number of records.
func (t table) since(v Version, most int) (all []Record, err error) {
	c := t.log.Cursor()
	at := append(appendVersion(t.key(), v), bytes.Repeat([]byte{0xff}, 16)...)
	for k, dead := c.Seek(at); bytes.HasPrefix(k, t.w[:]) && len(k) == 36; k, dead = c.Next() {
		if bytes.Equal(k, at) {
			continue
		}
		if len(all) == most {
			return nil, fmt.Errorf("more than %d changes after %s: %w", most, v, errFar)
		}
		r := Record{OID: store.OID(k[20:]), Version: readVersion(k[8:])}
		if len(dead) == 0 {
			if r, _, err = t.get(r.OID); err != nil {
				return nil, err
			}
		} else if v == (Version{}) {
			continue // who has nothing has nothing to drop
		}
		all = append(all, r)
	}
	return all, nil
}

// forget drops the tombstones of before a time, and gives the version before which
// there may be some missing.
func (t table) forget(before uint32) (floor Version, n int, err error) {
	var keys [][]byte
	c := t.tomb.Cursor()
	for k, v := c.Seek(t.w[:]); bytes.HasPrefix(k, t.w[:]); k, v = c.Next() {
		at := t.logKey(readVersion(v), store.OID(k[8:]))
		if b := t.log.Get(at); len(b) == 4 && binary.BigEndian.Uint32(b) < before {
			keys = append(keys, bytes.Clone(k), at)
			if d := readVersion(v); floor.less(d) {
				floor = d
			}
		}
	}
	for i := 0; i < len(keys); i += 2 {
		if err := errors.Join(t.tomb.Delete(keys[i]), t.log.Delete(keys[i+1])); err != nil {
			return floor, n, err
		}
		n++
	}
	return floor, n, nil
}

// build makes the digests of all records.
func (t table) build() (*trie, int64, error) {
	leaves := make(map[[2]byte]digest)
	var leaf []byte
	var at [2]byte
	var n int64
	err := t.each(nil, func(r *Record) error {
		if p := [2]byte(r.OID[:2]); p != at {
			leaves[at] = hashLeaf(leaf)
			leaf, at = leaf[:0], p
		}
		leaf = r.append(leaf)
		n++
		return nil
	})
	leaves[at] = hashLeaf(leaf)
	return new(trie).with(leaves), n, err
}

// after is the digests, and the number of records, once changes are made to them.
func (t table) after(old *trie, count int64, changes []Record) (*trie, int64) {
	byLeaf := make(map[[2]byte]map[store.OID]*Record)
	for i := range changes {
		p := [2]byte(changes[i].OID[:2])
		if byLeaf[p] == nil {
			byLeaf[p] = make(map[store.OID]*Record)
		}
		byLeaf[p][changes[i].OID] = &changes[i]
	}
	leaves := make(map[[2]byte]digest, len(byLeaf))
	for p, m := range byLeaf {
		was := t.records(p[:])
		b := mergeLeaf(was, m)
		leaves[p] = hashLeaf(b)
		count += int64(len(b)-len(was)) / recordSize
	}
	return old.with(leaves), count
}

// mergeLeaf makes changes to the records of a leaf.
func mergeLeaf(was []byte, m map[store.OID]*Record) []byte {
	recs := make([]*Record, 0, len(m))
	for _, r := range m {
		if !r.gone() {
			recs = append(recs, r)
		}
	}
	sortByOID(recs)
	b := make([]byte, 0, len(was)+len(recs)*recordSize)
	for ; len(was) > 0; was = was[recordSize:] {
		oid := store.OID(was[:16])
		for len(recs) > 0 && bytes.Compare(recs[0].OID[:], oid[:]) < 0 {
			b = recs[0].append(b)
			recs = recs[1:]
		}
		if m[oid] == nil {
			b = append(b, was[:recordSize]...)
		}
	}
	for _, r := range recs {
		b = r.append(b)
	}
	return b
}

func sortByOID(recs []*Record) {
	slices.SortFunc(recs, func(a, b *Record) int { return bytes.Compare(a.OID[:], b.OID[:]) })
}
