package view

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/index/query"
)

// The file, of bbolt. ID is the number of a view, 4 bytes; DOC the name of a
// document, 16; SEQ a number that each change of a view gets, 8 bytes; numbers
// have their highest byte first.
//
//	meta     "version": 1; "epoch": 4 random bytes; "mark": up to where it follows
//	         the collection; "manner": what was said of that at Open
//	views    ID: a line of attr=value pairs: name= owner= query= filled=
//	counts   ID: members, those that left and are still in log, and the SEQ that
//	         log begins after, 8 bytes each
//	members  ID DOC: SEQ
//	left     ID DOC: SEQ
//	log      ID SEQ: what happened last to a document, as in Op, and DOC
//	edits    DOC ID: + if it was put in by hand, - if taken out
//	objects  DOC: the ID of each view that it is in
//
// Versions: 1, the first.
const fileVersion = 1

var (
	bucketMeta    = []byte("meta")
	bucketViews   = []byte("views")
	bucketCounts  = []byte("counts")
	bucketMembers = []byte("members")
	bucketLeft    = []byte("left")
	bucketLog     = []byte("log")
	bucketEdits   = []byte("edits")
	bucketObjects = []byte("objects")

	keyVersion, keyEpoch, keyMark, keyManner = []byte("version"), []byte("epoch"), []byte("mark"), []byte("manner")
)

// Open opens the views in a file, which it makes if it is absent. Named stands
// for the manner: views that were filled in another are to be filled again.
// Docs is NewStanding's.
func Open(path string, how Manner, named string, docs func(word string) int) (*Views, error) {
	db, err := bbolt.Open(path, 0o666, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	v := &Views{db: db, all: make(map[uint32]*View), name: make(map[string]*View)}
	v.standing.Store(NewStanding(how, docs))
	err = v.load()
	if err == nil {
		err = v.ask(named)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("views: %w", err)
	}
	return v, nil
}

// Close closes the file.
func (v *Views) Close() error { return v.db.Close() }

func (v *Views) load() error {
	err := v.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketViews, bucketCounts, bucketMembers, bucketLeft, bucketLog, bucketEdits, bucketObjects} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if have := meta.Get(keyVersion); have != nil && (len(have) != 1 || have[0] != fileVersion) {
			return fmt.Errorf("version %v, this program knows %d: %w", have, fileVersion, iofs.ErrInvalid)
		}
		if e := meta.Get(keyEpoch); len(e) == 4 {
			v.epoch = binary.BigEndian.Uint32(e)
		} else {
			v.epoch = rand.Uint32()
			if err := meta.Put(keyEpoch, binary.BigEndian.AppendUint32(nil, v.epoch)); err != nil {
				return err
			}
		}
		if err := meta.Put(keyVersion, []byte{fileVersion}); err != nil {
			return err
		}
		return tx.Bucket(bucketViews).ForEach(func(k, line []byte) error { return v.loadView(tx, k, line) })
	})
	if err != nil {
		return err
	}
	return v.afterLoad()
}

func (v *Views) loadView(tx *bbolt.Tx, k, line []byte) error {
	e, err := ndb.ParseLine(string(line), 1)
	if err != nil || len(k) != 4 {
		return fmt.Errorf("view %x: %w", k, errors.Join(err, iofs.ErrInvalid))
	}
	w := &View{ID: binary.BigEndian.Uint32(k)}
	w.Name, _ = e.Get("name")
	w.Owner, _ = e.Get("owner")
	filled, _ := e.Get("filled")
	w.Filled = filled == "yes"
	if text, _ := e.Get("query"); text != "" {
		if w.Query, err = query.Parse(text); err == nil {
			err = v.standing.Load().Put(w.ID, w.Query)
		}
		if err != nil {
			return fmt.Errorf("view %s: query: %w", w.Name, err)
		}
	}
	c := getCounts(tx, w.ID)
	w.Members = int(c.members)
	if last, _ := lastOf(tx, w.ID); last != nil {
		w.Seq = binary.BigEndian.Uint64(last[4:])
	}
	v.all[w.ID], v.name[w.Name] = w, w
	return nil
}

// ask notes the manner in which the queries are asked from now on.
func (v *Views) ask(named string) error {
	same := false
	err := v.db.View(func(tx *bbolt.Tx) error {
		same = string(tx.Bucket(bucketMeta).Get(keyManner)) == named
		return nil
	})
	if err != nil || same {
		return err
	}
	return v.unfill(keyManner, named)
}

// Use has the queries asked in another manner from now on, as Open does.
func (v *Views) Use(how Manner, named string, docs func(word string) int) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	s := NewStanding(how, docs)
	v.mu.RLock()
	for id, w := range v.all {
		if w.Query == nil {
			continue
		}
		if err := s.Put(id, w.Query); err != nil {
			v.mu.RUnlock()
			return fmt.Errorf("view %s: %w", w.Name, err)
		}
	}
	v.mu.RUnlock()
	v.standing.Store(s)
	return v.ask(named)
}

// Restart says that the collection is to be followed from a mark, whatever came
// before: all views are to be filled again.
func (v *Views) Restart(mark string) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	return v.unfill(keyMark, mark)
}

// unfill has all views filled again, and keeps a value that says why.
func (v *Views) unfill(key []byte, value string) error {
	v.mu.RLock()
	list := make([]View, 0, len(v.all))
	for _, w := range v.all {
		u := *w
		u.Filled = false
		list = append(list, u)
	}
	v.mu.RUnlock()
	return v.change(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(key, []byte(value)) }, list...)
}

// afterLoad finds the parents, and drops what is left of views that are gone.
func (v *Views) afterLoad() error {
	for name, w := range v.name {
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			parent := v.name[name[:i]]
			if parent == nil {
				return fmt.Errorf("view %s is in one that is not there: %w", name, iofs.ErrInvalid)
			}
			w.parent = parent.ID
		}
	}
	var gone []uint32
	err := v.db.View(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{bucketCounts, bucketMembers, bucketLog} {
			c := tx.Bucket(bucket).Cursor()
			for k, _ := c.First(); len(k) >= 4; {
				id := binary.BigEndian.Uint32(k)
				if v.all[id] == nil {
					gone = append(gone, id)
				}
				k, _ = c.Seek(viewKey(id + 1))
			}
		}
		return nil
	})
	for _, id := range gone {
		if err == nil {
			err = v.sweep(id)
		}
	}
	return err
}

// sweep drops all that is kept of a view, some at a time.
func (v *Views) sweep(id uint32) error {
	const some = 5000
	key := viewKey(id)
	for _, bucket := range [][]byte{bucketCounts, bucketMembers, bucketLeft, bucketLog} {
		for more := true; more; {
			err := v.db.Update(func(tx *bbolt.Tx) error {
				c, n := tx.Bucket(bucket).Cursor(), 0
				for k, _ := c.Seek(key); bytes.HasPrefix(k, key) && n < some; k, _ = c.Seek(key) {
					if bytes.Equal(bucket, bucketMembers) {
						if err := putObject(tx, k[4:], without(getObject(tx, k[4:]), id)); err != nil {
							return err
						}
					}
					if err := c.Delete(); err != nil {
						return err
					}
					n++
				}
				more = n == some
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return v.db.Update(func(tx *bbolt.Tx) error { // edits by hand are few
		var list [][]byte
		err := tx.Bucket(bucketEdits).ForEach(func(k, _ []byte) error {
			if bytes.HasSuffix(k, key) {
				list = append(list, bytes.Clone(k))
			}
			return nil
		})
		for _, k := range list {
			if err == nil {
				err = tx.Bucket(bucketEdits).Delete(k)
			}
		}
		return err
	})
}

func viewKey(id uint32) []byte { return binary.BigEndian.AppendUint32(nil, id) }

func putView(tx *bbolt.Tx, w *View) error {
	text := ""
	if w.Query != nil {
		text = w.Query.String()
	}
	filled := "no"
	if w.Filled {
		filled = "yes"
	}
	line := ndb.Format(ndb.Of("name", w.Name), ndb.Of("owner", w.Owner), ndb.Of("query", text), ndb.Of("filled", filled))
	return tx.Bucket(bucketViews).Put(viewKey(w.ID), []byte(line))
}

// counts are those of a view.
type counts struct{ members, left, floor uint64 }

func getCounts(tx *bbolt.Tx, id uint32) (c counts) {
	if b := tx.Bucket(bucketCounts).Get(viewKey(id)); len(b) == 24 {
		c.members, c.left, c.floor = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	}
	return c
}

func putCounts(tx *bbolt.Tx, id uint32, c counts) error {
	b := binary.BigEndian.AppendUint64(nil, c.members)
	b = binary.BigEndian.AppendUint64(b, c.left)
	return tx.Bucket(bucketCounts).Put(viewKey(id), binary.BigEndian.AppendUint64(b, c.floor))
}

// lastOf is the last entry of the log of a view, nil if there is none.
func lastOf(tx *bbolt.Tx, id uint32) (k, entry []byte) {
	c := tx.Bucket(bucketLog).Cursor()
	if k, _ = c.Seek(viewKey(id + 1)); k == nil {
		k, entry = c.Last()
	} else {
		k, entry = c.Prev()
	}
	if !bytes.HasPrefix(k, viewKey(id)) {
		return nil, nil
	}
	return k, entry
}

// getObject is the views that a document is in.
func getObject(tx *bbolt.Tx, doc []byte) (ids []uint32) {
	for b := tx.Bucket(bucketObjects).Get(doc); len(b) >= 4; b = b[4:] {
		ids = append(ids, binary.BigEndian.Uint32(b))
	}
	return ids
}

func putObject(tx *bbolt.Tx, doc []byte, ids []uint32) error {
	if len(ids) == 0 {
		return tx.Bucket(bucketObjects).Delete(doc)
	}
	var b []byte
	for _, id := range ids {
		b = binary.BigEndian.AppendUint32(b, id)
	}
	return tx.Bucket(bucketObjects).Put(bytes.Clone(doc), b)
}

func without(ids []uint32, id uint32) (rest []uint32) {
	for _, i := range ids {
		if i != id {
			rest = append(rest, i)
		}
	}
	return rest
}
