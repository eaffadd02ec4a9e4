package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/soif"
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

// A row is the state of one object, or that it was deleted.
type row struct {
	Entry
	gone bool
	op   soif.Op // of the last change
}

func (r *row) append(dst []byte) []byte {
	for _, v := range []uint64{r.Seq, r.Seq - r.Body, uint64(r.at.seg), uint64(r.at.off), uint64(r.at.slot), uint64(r.Size)} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendVarint(dst, r.Updated.Unix())
	dst = binary.AppendUvarint(dst, uint64(seconds(r.TTL)))
	dst = append(dst, r.Hash[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Type)))
	dst = append(dst, r.Type...)
	return append(dst, r.URL...)
}

func parseRow(oid OID, b []byte) (row, error) {
	p := parser{b: b}
	var r row
	r.OID = oid
	r.Seq = p.uvarint()
	r.Body = r.Seq - p.uvarint()
	r.at.seg, r.at.off, r.at.slot = uint32(p.uvarint()), uint32(p.uvarint()), uint32(p.uvarint())
	r.Size = int64(p.uvarint())
	r.Updated = time.Unix(p.varint(), 0).UTC()
	r.TTL = duration(p.uvarint())
	copy(r.Hash[:], p.bytes(16))
	r.Type = string(p.bytes(p.uvarint()))
	r.URL = string(p.b)
	r.op = soif.Update
	if r.Body < r.Seq {
		r.op = soif.Refresh
	}
	if p.bad {
		return row{}, fmt.Errorf("index of object %s: %w", oid, ErrDamaged)
	}
	return r, nil
}

func appendTomb(dst []byte, r *row) []byte {
	dst = binary.AppendUvarint(dst, r.Seq)
	dst = binary.AppendVarint(dst, r.Updated.Unix())
	return append(dst, r.URL...)
}

func parseTomb(oid OID, b []byte) (row, error) {
	p := parser{b: b}
	r := row{gone: true, op: soif.Delete}
	r.OID = oid
	r.Seq = p.uvarint()
	r.Updated = time.Unix(p.varint(), 0).UTC()
	r.URL = string(p.b)
	if p.bad {
		return row{}, fmt.Errorf("index of deleted object %s: %w", oid, ErrDamaged)
	}
	return r, nil
}

// A frameInfo is a frame as the index knows it.
type frameInfo struct {
	seg, off uint32
	length   int
	meta     int
	raw      int64 // bytes of the objects
	live     int64 // of those that are not dead
	count    int
	base     uint64
	dead     []byte // a bit a change, lowest first; nil when all live
}

func (f *frameInfo) key() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, f.seg), f.off)
}

func (f *frameInfo) append(dst []byte) []byte {
	for _, v := range []uint64{uint64(f.length), uint64(f.meta), uint64(f.raw), uint64(f.live), uint64(f.count), f.base} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, f.dead...)
}

func parseFrameInfo(k, b []byte) (frameInfo, error) {
	if len(k) != 8 {
		return frameInfo{}, fmt.Errorf("index of frames: %w", ErrDamaged)
	}
	f := frameInfo{seg: binary.BigEndian.Uint32(k), off: binary.BigEndian.Uint32(k[4:])}
	p := parser{b: b}
	f.length, f.meta = int(p.uvarint()), int(p.uvarint())
	f.raw, f.live = int64(p.uvarint()), int64(p.uvarint())
	f.count, f.base = int(p.uvarint()), p.uvarint()
	if len(p.b) > 0 {
		f.dead = bytes.Clone(p.b)
	}
	if p.bad {
		return f, fmt.Errorf("index of frame %08x %d: %w", f.seg, f.off, ErrDamaged)
	}
	return f, nil
}

// isDead reports whether the object of a change is no longer the latest.
func (f *frameInfo) isDead(slot int) bool {
	return slot/8 < len(f.dead) && f.dead[slot/8]&(1<<(slot%8)) != 0
}

func (f *frameInfo) kill(slot uint32, size int64) {
	if f.isDead(int(slot)) {
		return
	}
	if f.dead == nil {
		f.dead = make([]byte, (f.count+7)/8)
	}
	f.dead[slot/8] |= 1 << (slot % 8)
	f.live -= size
}

// killAll marks all objects dead, as they are in a frame whose objects are still
// elsewhere.
func (f *frameInfo) killAll() {
	f.dead, f.live = make([]byte, (f.count+7)/8), 0
	for i := range f.dead {
		f.dead[i] = 0xff
	}
}

func (f *frameInfo) revive(slot uint32, size int64) {
	if !f.isDead(int(slot)) {
		return
	}
	f.dead[slot/8] &^= 1 << (slot % 8)
	f.live += size
	if f.live == f.raw {
		f.dead = nil
	}
}

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

// enter puts a table into the index.
func (s *Store) enter(t *table) error {
	s.mu.RLock()
	f := s.filter // only who enters adds to it
	s.mu.RUnlock()
	fresh := 0
	err := s.updateIndex(func(b buckets, tx *bbolt.Tx) error {
		e := entering{b: b, filter: f, forget: func() { s.forget(tx) }, dead: slices.Clone(t.dead)}
		if err := e.rows(t); err != nil {
			return err
		}
		fresh = e.fresh
		for _, step := range []func() error{e.log, e.names, e.expiries, func() error { return e.frames(t) }} {
			e.forget()
			if err := step(); err != nil {
				return err
			}
		}
		for _, m := range t.times {
			if err := b.time.Put(number(uint64(m.second)), number(m.before)); err != nil {
				return err
			}
		}
		return b.putTotals(&t.meta, t.end, s.epoch)
	})
	return errors.Join(err, s.know(t, fresh))
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

// entering collects what a table changes in each bucket, so that each is changed
// in the order of its keys.
type entering struct {
	b              buckets
	filter         *filter
	forget         func()
	fresh          int // rows of which the index had nothing
	dead           []corpse
	logDel         []uint64
	logPut         []logEntry
	expDel, expPut [][]byte
	urlDel, urlPut []nameEntry
}

type logEntry struct {
	seq uint64
	oid OID
}

type nameEntry struct {
	key string
	oid OID
}

// forgetEvery is how many look-ups are made between two calls of forget. Each may
// have the kernel map 64 KB.
const forgetEvery = 128

func (e *entering) rows(t *table) error {
	oids := make([]OID, 0, len(t.rows))
	for oid := range t.rows {
		oids = append(oids, oid)
	}
	slices.SortFunc(oids, func(a, b OID) int { return bytes.Compare(a[:], b[:]) })
	for i, oid := range oids {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		var old row
		var ok bool
		if !e.filter.lacks(oid) {
			var err error
			if old, ok, err = e.b.state(oid); err != nil {
				return err
			}
		}
		if !ok {
			e.fresh++
		}
		if err := e.row(t.rows[oid], old, ok); err != nil {
			return err
		}
	}
	return nil
}

// row enters one row in the place of an old one, if there was one.
func (e *entering) row(r *row, old row, had bool) error {
	if had && old.Seq >= r.Seq {
		return nil // what is here is later, as when a segment is read a second time
	}
	if had {
		e.logDel = append(e.logDel, old.Seq)
	}
	hadObject := had && !old.gone
	if hadObject {
		e.dead = append(e.dead, corpse{old.at, old.Size})
		if !old.Expires().IsZero() {
			e.expDel = append(e.expDel, expiryKey(&old))
		}
		if r.gone || r.URL != old.URL {
			e.urlDel = append(e.urlDel, nameEntry{urlKey(old.URL), r.OID})
		}
	}
	e.logPut = append(e.logPut, logEntry{r.Seq, r.OID})
	if r.gone {
		if hadObject {
			if err := e.b.obj.Delete(r.OID[:]); err != nil {
				return err
			}
		}
		return e.b.tomb.Put(r.OID[:], appendTomb(nil, r))
	}
	if had && old.gone {
		if err := e.b.tomb.Delete(r.OID[:]); err != nil {
			return err
		}
	}
	if !r.Expires().IsZero() {
		e.expPut = append(e.expPut, expiryKey(r))
	}
	if !hadObject || r.URL != old.URL {
		e.urlPut = append(e.urlPut, nameEntry{urlKey(r.URL), r.OID})
	}
	return e.b.obj.Put(r.OID[:], r.append(nil))
}

func (e *entering) log() error {
	slices.Sort(e.logDel)
	for _, seq := range e.logDel {
		if err := e.b.log.Delete(number(seq)); err != nil {
			return err
		}
	}
	slices.SortFunc(e.logPut, func(a, b logEntry) int { return cmp.Compare(a.seq, b.seq) })
	for _, l := range e.logPut {
		if err := e.b.log.Put(number(l.seq), l.oid[:]); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) names() error {
	byKey := func(a, b nameEntry) int { return cmp.Compare(a.key, b.key) }
	slices.SortFunc(e.urlDel, byKey)
	for i, n := range e.urlDel {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		if err := deleteName(e.b.url, n.key, n.oid); err != nil {
			return err
		}
	}
	slices.SortFunc(e.urlPut, byKey)
	for i, n := range e.urlPut {
		if i%forgetEvery == forgetEvery-1 {
			e.forget()
		}
		if err := putName(e.b.url, n.key, n.oid); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) expiries() error {
	slices.SortFunc(e.expDel, bytes.Compare)
	for _, k := range e.expDel {
		if err := e.b.expiry.Delete(k); err != nil {
			return err
		}
	}
	slices.SortFunc(e.expPut, bytes.Compare)
	for _, k := range e.expPut {
		if err := e.b.expiry.Put(k, nil); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) frames(t *table) error {
	for i := range t.frames {
		if err := e.b.frame.Put(t.frames[i].key(), t.frames[i].append(nil)); err != nil {
			return err
		}
	}
	return e.b.bury(e.dead)
}

// bury marks objects dead in their frames.
func (b buckets) bury(dead []corpse) error {
	return b.mark(dead, (*frameInfo).kill)
}

// mark does something to objects in their frames, each of which is read and
// written once.
func (b buckets) mark(objects []corpse, do func(f *frameInfo, slot uint32, size int64)) error {
	slices.SortFunc(objects, func(x, y corpse) int {
		return cmp.Or(cmp.Compare(x.seg, y.seg), cmp.Compare(x.off, y.off))
	})
	for len(objects) > 0 {
		at := frameInfo{seg: objects[0].seg, off: objects[0].off}
		v := b.frame.Get(at.key())
		if v == nil {
			return fmt.Errorf("index without frame %08x %d: %w", at.seg, at.off, ErrDamaged)
		}
		f, err := parseFrameInfo(at.key(), v)
		if err != nil {
			return err
		}
		for len(objects) > 0 && objects[0].seg == f.seg && objects[0].off == f.off {
			do(&f, objects[0].slot, objects[0].size)
			objects = objects[1:]
		}
		if err := b.frame.Put(f.key(), f.append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// flush enters all changes made so far into the index. Readers in the order of
// keys call it first; single look-ups need not.
func (s *Store) flush() error {
	s.mu.RLock()
	idle := s.active.n == 0 && s.entering == nil
	s.mu.RUnlock()
	if idle {
		return nil
	}
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	return s.flushLocked()
}

// flushLocked is flush for who holds indexMu. A table that could not be entered
// stays, is still read, and is tried again the next time.
func (s *Store) flushLocked() error {
	for range 2 {
		s.mu.Lock()
		if s.entering == nil && s.active.n > 0 {
			s.active.meta, s.active.end = s.totals, s.end
			s.entering, s.active = s.active, newTable()
		}
		t := s.entering
		s.mu.Unlock()
		if t == nil {
			return nil
		}
		if err := s.enter(t); err != nil {
			return err
		}
		s.digests.changed(t)
		s.mu.Lock()
		s.entering = nil
		s.mu.Unlock()
	}
	return nil
}

// runIndex enters what is pending when there is enough of it, or soon after
// changes cease. It ends when the store is closed, which waits for it.
func (s *Store) runIndex() {
	defer close(s.indexDone)
	idle := time.NewTimer(time.Hour)
	for {
		enough := false
		select {
		case <-s.closing:
			idle.Stop()
			return
		case <-s.dirty:
			idle.Reset(idleFlush)
			s.mu.RLock()
			enough = s.active.n >= s.opt.Pending
			s.mu.RUnlock()
			if !enough {
				continue
			}
		case <-idle.C:
		}
		if err := s.rest(enough); err != nil {
			s.lg.Warn("store index", "dir", s.dir, "err", err, slog.Int("pending", s.pending()))
			idle.Reset(retryFlush)
		}
	}
}

// rest enters what is pending, and unless there is more to come sees it to the
// disk.
func (s *Store) rest(more bool) error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if err := s.flushLocked(); err != nil || more {
		return err
	}
	return s.settle()
}

const (
	idleFlush  = 500 * time.Millisecond
	retryFlush = 5 * time.Second
)

func (s *Store) pending() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.active.n
	if s.entering != nil {
		n += s.entering.n
	}
	return n
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
	for _, t := range v.tables {
		if t == nil {
			continue
		}
		if r, ok := t.rows[oid]; ok {
			v.s.mu.RUnlock()
			return *r, true, nil
		}
	}
	// The table that was entered last is in the filter, or in v.tables.
	lacks := v.s.filter.lacks(oid)
	v.s.mu.RUnlock()
	if lacks {
		return row{}, false, nil
	}
	return v.buckets.state(oid)
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
