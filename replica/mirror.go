package replica

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/store"
)

// A mirror is a set of objects for each of some writers, one of them itself, as far
// as it knows them. What others write it takes only under a head that they signed,
// from whoever has it: step in pull.go is how. Its methods may be called
// concurrently.
//
// Locks are taken in this order: commits, mu. The holder of commits waits for the
// disk; mu is held for moments.
type mirror struct {
	kind   string // of what is signed: mirror or flood
	db     *bbolt.DB
	bodies bodies
	key    ed25519.PrivateKey
	self   Writer
	told   func(event string, pairs ...ndb.Pair)
	taken  func(w Writer, r *Record, body []byte) // hears of each object that is new here; may be nil

	commits sync.Mutex // held while the database and what mu guards change together

	mu        sync.Mutex // guards what follows
	writers   map[Writer]*writer
	masters   map[Writer]bool // whose heads are taken; nil: of any
	forks     map[string]fork // by line
	changed   chan struct{}   // closed and made anew when a head changes
	root      digest          // of all heads
	expiredAt time.Time       // the hour of which it is known what is over
}

// A writer is what is known of one.
type writer struct {
	head    Head // the newest of which all records are here; without a key there is none
	trie    *trie
	count   int64   // records
	filling bool    // records are of no one head
	floor   Version // see table.go
	foreign bool    // it is this one, but what it knows of itself it has from others
	busy    string  // the member from whom its records are being taken
}

// A mirrorConfig is what a mirror is made of.
type mirrorConfig struct {
	kind   string
	db     *bbolt.DB
	bodies bodies
	key    ed25519.PrivateKey
	told   func(event string, pairs ...ndb.Pair)
	taken  func(w Writer, r *Record, body []byte)
}

func newMirror(c mirrorConfig) (*mirror, error) {
	m := &mirror{kind: c.kind, db: c.db, bodies: c.bodies, key: c.key, self: WriterOf(c.key.Public().(ed25519.PublicKey)), told: c.told, taken: c.taken,
		writers: make(map[Writer]*writer), forks: make(map[string]fork), changed: make(chan struct{})}
	if m.told == nil {
		m.told = func(string, ...ndb.Pair) {}
	}
	err := m.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("head")).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if err := m.load(tx, k, v); err != nil {
				return err
			}
		}
		c = tx.Bucket([]byte("fork")).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			_, forks, err := parseHeads(append(bytes.Clone(k), '\n'))
			if err != nil {
				return err
			}
			for _, f := range forks {
				m.forks[f.line()] = f
			}
		}
		return nil
	})
	m.setRoot()
	if w := m.writers[m.self]; err == nil && w != nil && w.filling {
		err = m.resign(w.head.Version, time.Now())
	}
	return m, err
}

// load reads what the database has of a writer.
func (m *mirror) load(tx *bbolt.Tx, k, v []byte) error {
	if len(k) != 8 || len(v) < 13 {
		return fmt.Errorf("head %x: %w", k, iofs.ErrInvalid)
	}
	w := &writer{floor: readVersion(v), filling: v[12]&flagFilling != 0, foreign: v[12]&flagForeign != 0}
	if len(v) > 13 {
		heads, _, err := parseHeads(append(bytes.Clone(v[13:]), '\n'))
		if err != nil || len(heads) != 1 {
			return errors.Join(err, fmt.Errorf("head %x: %w", k, iofs.ErrInvalid))
		}
		w.head = heads[0]
	}
	var err error
	if w.trie, w.count, err = tableOf(tx, Writer(k)).build(); err != nil {
		return err
	}
	if !w.filling && w.trie.sum != w.head.Digest {
		w.filling = true // what is on disk is not what was written: it is walked
		m.told("damaged", ndb.Of("writer", Writer(k)))
	}
	m.writers[Writer(k)] = w
	return nil
}

// setMasters says whose heads are taken; nil is anybody's.
func (m *mirror) setMasters(masters map[Writer]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.masters = masters
}

// A view is what is known of a writer at one moment.
type view struct {
	head    Head
	trie    *trie
	count   int64
	floor   Version
	filling bool
	foreign bool
}

// of gives a view of a writer; of one that is not known it is empty.
func (m *mirror) of(w Writer) view {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.writers[w]
	if x == nil {
		return view{trie: new(trie)}
	}
	return view{x.head, x.trie, x.count, x.floor, x.filling, x.foreign}
}

// heads gives the heads of which all records are here, and the proofs of forks.
func (m *mirror) heads() (heads []Head, forks []fork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.headsLocked()
}

func (m *mirror) headsLocked() (heads []Head, forks []fork) {
	for _, w := range m.writers {
		if !w.filling && w.head.Key != nil {
			heads = append(heads, w.head)
		}
	}
	for _, f := range m.forks {
		forks = append(forks, f)
	}
	sortHeads(heads)
	slices.SortFunc(forks, func(a, b fork) int { return bytes.Compare([]byte(a.line()), []byte(b.line())) })
	return heads, forks
}

// setRoot makes the digest of all heads, and tells who waits. Called with mu held, or
// before there is anybody.
func (m *mirror) setRoot() {
	heads, forks := m.headsLocked()
	h := sha256.New()
	for i := range heads {
		// What a writer has, not when it said so.
		fmt.Fprintf(h, "%s %s %x\n", heads[i].Writer(), heads[i].Version, heads[i].Digest)
	}
	for i := range forks {
		fmt.Fprintln(h, forks[i].line())
	}
	root := digest(h.Sum(nil))
	if len(heads)+len(forks) == 0 {
		root = digest{}
	}
	if root != m.root {
		m.root = root
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// wait returns the digest of all heads as soon as it is another.
func (m *mirror) wait(ctx context.Context, old digest) (digest, error) {
	for {
		m.mu.Lock()
		root, changed := m.root, m.changed
		m.mu.Unlock()
		if root != old {
			return root, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return root, ctx.Err()
		}
	}
}

func (m *mirror) rootNow() digest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.root
}

// A publication is an object to publish; without a body it is gone.
type publication struct {
	oid     store.OID
	body    []byte
	updated time.Time
	ttl     time.Duration
}

// maxPublish bounds what is signed at a time. Names are random, so of many records each
// dirties pages of its own in the database: the more at a time, the fewer are written
// again and again.
const maxPublish = 1 << 15

// publish makes objects this writer's, or takes them back, signs that, and has it on
// disk when it returns. What changes nothing is left out, and of an OID the last counts.
func (m *mirror) publish(ctx context.Context, list []publication, now time.Time) (n int, err error) {
	last := make(map[store.OID]int, len(list))
	for i, p := range list {
		last[p.oid] = i
	}
	if len(last) < len(list) {
		i := -1
		list = slices.DeleteFunc(slices.Clone(list), func(p publication) bool { i++; return last[p.oid] != i })
	}
	for len(list) > 0 {
		some := list[:min(len(list), maxPublish)]
		list = list[len(some):]
		k, err := m.publishSome(ctx, some, now)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (m *mirror) publishSome(ctx context.Context, list []publication, now time.Time) (int, error) {
	m.commits.Lock()
	defer m.commits.Unlock()
	v := m.of(m.self)
	head := Head{Version: v.head.Version, Time: now.Unix()}
	if v.foreign || head.Epoch == 0 {
		head.Epoch++ // more may have been written in this one
	}
	var recs, changes []Record
	var objects [][]byte
	err := m.db.View(func(tx *bbolt.Tx) error {
		t := tableOf(tx, m.self)
		for _, p := range list {
			r := p.record()
			old, ok, err := t.get(p.oid)
			if err != nil {
				return err
			}
			if r.gone() && !ok || !r.gone() && ok && old.Hash == r.Hash && old.Updated == r.Updated && old.TTL == r.TTL {
				continue
			}
			head.Seq++
			r.Version = head.Version
			changes = append(changes, r)
			if !r.gone() && m.shows(tx, m.self, &r) {
				recs, objects = append(recs, r), append(objects, p.body)
			}
		}
		return nil
	})
	if err != nil || len(changes) == 0 {
		return 0, err
	}
	if err := m.putBodies(ctx, recs, objects); err != nil {
		return 0, err
	}
	err = m.commit(ctx, m.self, changes, outcome{sign: func(t *trie, count int64) *Head {
		head.Digest, head.Count = t.sum, count
		head.sign(m.kind, m.key)
		return &head
	}}, now)
	return len(changes), err
}

func (p *publication) record() Record {
	r := Record{OID: p.oid}
	if p.body != nil {
		r.Hash, r.Size = sha256.Sum256(p.body), uint32(len(p.body))
		r.Updated, r.TTL = uint32(max(p.updated.Unix(), 0)), uint32(min(max(p.ttl/time.Second, 0), 1<<32-1))
	}
	return r
}

func (m *mirror) putBodies(ctx context.Context, recs []Record, objects [][]byte) error {
	if len(recs) == 0 {
		return nil
	}
	list := make([]*Record, len(recs))
	for i := range recs {
		list[i] = &recs[i]
	}
	return m.bodies.put(ctx, list, objects)
}

// shows tells whether a writer's record is the one of all writers' that counts.
func (m *mirror) shows(tx *bbolt.Tx, w Writer, r *Record) bool {
	o, ow, ok := m.other(tx, w, r.OID)
	return !ok || r.wins(w, &o, ow)
}

// other finds the record of an OID that counts when one writer's does not.
func (m *mirror) other(tx *bbolt.Tx, not Writer, oid store.OID) (best Record, bw Writer, ok bool) {
	m.mu.Lock()
	all := make([]Writer, 0, len(m.writers))
	for w := range m.writers {
		if w != not {
			all = append(all, w)
		}
	}
	m.mu.Unlock()
	for _, w := range all {
		if r, has, err := tableOf(tx, w).get(oid); err == nil && has && (!ok || r.wins(w, &best, bw)) {
			best, bw, ok = r, w, true
		}
	}
	return best, bw, ok
}

// An outcome is what a writer's records are after a commit.
type outcome struct {
	sign    func(t *trie, count int64) *Head // gives the head they are under; nil: the writer is being filled
	floor   Version                          // tombstones of before may be missing
	foreign bool
}

// commit makes changes to the records of a writer. Objects that came with them are
// stored already; those that are gone are removed before it is known that they are,
// so that a crash may leave one to be fetched, and none that comes back. It is called with commits held.
func (m *mirror) commit(ctx context.Context, w Writer, changes []Record, o outcome, now time.Time) error {
	v := m.of(w)
	gone, want, err := m.unshown(w, changes)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		if err := m.bodies.remove(ctx, gone); err != nil {
			return err
		}
	}
	n := writer{head: v.head, floor: v.floor, filling: true, foreign: o.foreign}
	if n.floor.less(o.floor) {
		n.floor = o.floor
	}
	err = m.db.Update(func(tx *bbolt.Tx) error {
		t := tableOf(tx, w)
		n.trie, n.count = t.after(v.trie, v.count, changes)
		if o.sign != nil {
			h := o.sign(n.trie, n.count)
			if h.Digest != n.trie.sum || h.Count != n.count {
				return errUnequal
			}
			n.head, n.filling = *h, false
		}
		for i := range changes {
			if err := t.put(&changes[i], uint32(now.Unix())); err != nil {
				return err
			}
		}
		for _, oid := range want {
			if err := tx.Bucket([]byte("want")).Put(oid[:], nil); err != nil {
				return err
			}
		}
		return m.save(tx, w, &n)
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.writers[w]; old != nil {
		n.busy = old.busy
	}
	m.writers[w] = &n
	m.setRoot()
	return nil
}

// errUnequal says that records do not lead to what was signed.
var errUnequal = fmt.Errorf("records are not those of the head: %w", iofs.ErrInvalid)

// What the database has of a writer besides its head.
const (
	flagFilling = 1 << iota
	flagForeign
)

// save enters a writer's state.
func (m *mirror) save(tx *bbolt.Tx, w Writer, n *writer) error {
	b := append(appendVersion(nil, n.floor), 0)
	if n.filling {
		b[12] |= flagFilling
	}
	if n.foreign {
		b[12] |= flagForeign
	}
	if n.head.Key != nil {
		b = append(b, n.head.line()...)
	}
	return tx.Bucket([]byte("head")).Put(w[:], b)
}

// unshown gives the objects that are not to be shown any more once changes are made
// to a writer's records, and those that are then to be shown and are not here: that of
// another writer, or one that was lost between its coming and now.
func (m *mirror) unshown(w Writer, changes []Record) (gone, want []store.OID, err error) {
	shown := make([]*Record, 0, len(changes))
	err = m.db.View(func(tx *bbolt.Tx) error {
		for i := range changes {
			r := &changes[i]
			o, ow, ok := m.other(tx, w, r.OID)
			switch {
			case r.gone() && !ok:
				gone = append(gone, r.OID)
				continue
			case ok && !r.gone() && r.Hash != o.Hash:
				m.told("contended", ndb.Of("oid", r.OID), ndb.Of("writer", w), ndb.Of("other", ow))
			}
			if r.gone() || ok && !r.wins(w, &o, ow) {
				r = &o
			}
			shown = append(shown, r)
		}
		return nil
	})
	for _, r := range shown { // not in the transaction: has may need one
		if !m.bodies.has(r) {
			gone, want = append(gone, r.OID), append(want, r.OID)
		}
	}
	return gone, want, err
}

// takeFork keeps the proof that a writer has forked.
func (m *mirror) takeFork(a, b Head) error {
	if a.Writer() != b.Writer() || !a.forks(&b) || a.verify(m.kind) != nil || b.verify(m.kind) != nil {
		return fmt.Errorf("fork of writer %s: no proof: %w", a.Writer(), iofs.ErrInvalid)
	}
	if bytes.Compare(a.Digest[:], b.Digest[:]) > 0 {
		a, b = b, a
	}
	f := fork{a, b}
	m.commits.Lock()
	defer m.commits.Unlock()
	m.mu.Lock()
	known := len(m.forks) >= maxForks
	for _, o := range m.forks {
		known = known || o[0].Writer() == a.Writer() // one proof is enough
	}
	m.mu.Unlock()
	if known {
		return nil
	}
	if err := m.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("fork")).Put([]byte(f.line()), nil) }); err != nil {
		return err
	}
	m.told("fork", ndb.Of("writer", a.Writer()), ndb.Of("version", a.Version))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forks[f.line()] = f
	m.setRoot()
	return nil
}

// recall is what a writer does that hears of more from itself than it knows, as when
// its disk is an old one: it goes on in an epoch that is not in use.
func (m *mirror) recall(h *Head, now time.Time) error {
	m.commits.Lock()
	defer m.commits.Unlock()
	v := m.of(m.self)
	if !h.newer(&v.head) || h.verify(m.kind) != nil {
		return nil
	}
	return m.resign(h.Version, now)
}

// resign has this writer go on in an epoch after a version, with what is here. It is
// called with commits held, or before there is anybody.
func (m *mirror) resign(heard Version, now time.Time) error {
	v := m.of(m.self)
	n := writer{trie: v.trie, count: v.count}
	n.head = Head{Version: Version{heard.Epoch + 1, max(heard.Seq, v.head.Seq) + 1}, Time: now.Unix(), Count: v.count, Digest: v.trie.sum}
	n.floor = n.head.Version // what was written since then is not in the log
	n.head.sign(m.kind, m.key)
	if err := m.db.Update(func(tx *bbolt.Tx) error { return m.save(tx, m.self, &n) }); err != nil {
		return err
	}
	m.told("epoch", ndb.Of("writer", m.self), ndb.Of("had", v.head.Version), ndb.Of("heard", heard), ndb.Of("now", n.head.Version))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writers[m.self] = &n
	m.setRoot()
	return nil
}

// preview is the digests of a writer, and the number of its records, once changes are
// made to them.
func (m *mirror) preview(w Writer, v view, changes []Record) (t *trie, count int64, err error) {
	err = m.db.View(func(tx *bbolt.Tx) error {
		t, count = tableOf(tx, w).after(v.trie, v.count, changes)
		return nil
	})
	return t, count, err
}

// want notes objects that no peer had when their records came.
func (m *mirror) want(list []*Record) error {
	if len(list) == 0 {
		return nil
	}
	return m.db.Update(func(tx *bbolt.Tx) (err error) {
		for _, r := range list {
			err = errors.Join(err, tx.Bucket([]byte("want")).Put(r.OID[:], nil))
		}
		return err
	})
}

// maxWants is how many of them are asked for at a time.
const maxWants = 1000

// wanted gives some of the objects that are wanted, by the writers whose records
// count, and forgets those that are not wanted any more.
func (m *mirror) wanted(now time.Time) (map[Writer][]*Record, error) {
	all := make(map[Writer][]*Record)
	var over []*Record
	err := m.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("want")).Cursor()
		n := 0
		for k, _ := c.First(); k != nil && n < maxWants; k, _ = c.Next() {
			r, w, ok := m.other(tx, Writer{}, store.OID(k))
			if !ok || r.expired(now) {
				over = append(over, &Record{OID: store.OID(k)})
				continue
			}
			all[w] = append(all[w], &r)
			n++
		}
		return nil
	})
	if err != nil || len(over) == 0 {
		return all, err
	}
	return all, m.drop(over)
}

// putWanted stores objects that were wanted, but for those of which there is another
// version by now.
func (m *mirror) putWanted(ctx context.Context, recs []*Record, objects [][]byte) error {
	m.commits.Lock()
	defer m.commits.Unlock()
	var now []*Record
	var bodies [][]byte
	err := m.db.View(func(tx *bbolt.Tx) error {
		for i, r := range recs {
			if o, _, ok := m.other(tx, Writer{}, r.OID); ok && o == *r {
				now, bodies = append(now, r), append(bodies, objects[i])
			}
		}
		return nil
	})
	if err != nil || len(now) == 0 {
		return err
	}
	return m.bodies.put(ctx, now, bodies)
}

// unwant forgets those that are here now.
func (m *mirror) unwant(list []*Record) error {
	return m.drop(slices.DeleteFunc(list, func(r *Record) bool { return !m.bodies.has(r) }))
}

func (m *mirror) drop(list []*Record) error {
	return m.db.Update(func(tx *bbolt.Tx) (err error) {
		for _, r := range list {
			err = errors.Join(err, tx.Bucket([]byte("want")).Delete(r.OID[:]))
		}
		return err
	})
}

// public is the key by which others know this writer.
func (m *mirror) public() ed25519.PublicKey { return m.key.Public().(ed25519.PublicKey) }
