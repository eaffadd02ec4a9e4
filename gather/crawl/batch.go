package crawl

import (
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// A batch is one transaction of the writer. It enters documents, and gathers up
// what belongs to the same record until its end.
type batch struct {
	f      *DB
	tx     *bbolt.Tx
	doc    *bbolt.Bucket
	queue  *bbolt.Bucket
	first  DocID                // the first that is entered
	fresh  []uint64             // the hashes of those that are
	gone   []DocID              // those that are not any more
	own    map[ServerID][]DocID // to be added to the lists of servers
	in     map[DocID]ref        // links to documents, more or less,
	ties   map[tie]int          // and those between servers
	server map[DocID]ServerID   // of documents that were looked up, 0 when it is not known
	roots  bool                 // one has changed
	slab   []byte               // of records, which are bbolt's until the end of the transaction
}

// update runs one transaction of the writer. When it fails, memory is what the
// database is.
func (f *DB) update(do func(b *batch) error) error {
	var own map[ServerID][]DocID
	err := f.db.Update(func(tx *bbolt.Tx) error {
		f.mu.Lock()
		first := f.last + 1
		f.mu.Unlock()
		b := &batch{f: f, tx: tx, doc: tx.Bucket(docBucket), queue: tx.Bucket(queueBucket), first: first,
			own: make(map[ServerID][]DocID), in: make(map[DocID]ref), ties: make(map[tie]int), server: make(map[DocID]ServerID)}
		b.doc.FillPercent = 0.9 // entering appends; a record that was fetched is longer
		if err := do(b); err != nil {
			return err
		}
		own = b.own
		return b.end()
	})
	f.mu.Lock()
	for id := range own {
		if err == nil {
			f.servers[id-1].listed = f.servers[id-1].own
		}
	}
	f.mu.Unlock()
	if err != nil {
		if again := f.load(); again != nil {
			f.lg.Error("database", "err", again)
		}
	}
	return err
}

// read reads the record of a document.
func (b *batch) read(id DocID) (Doc, bool) { return b.f.read(b.tx, id) }

// put writes the record of a document.
func (b *batch) put(d *Doc) error {
	f := b.f
	f.mu.Lock()
	root := 0
	if d.Root != 0 {
		r := f.root(d.Root)
		root, b.roots = r.number, b.roots || r.dirty
	}
	path := d.URL[len(f.servers[d.Server-1].Origin):]
	f.mu.Unlock()
	if cap(b.slab)-len(b.slab) < 1024 {
		b.slab = make([]byte, 0, 64<<10)
	}
	n := len(b.slab)
	b.slab = d.append(b.slab, root, path)
	return b.doc.Put(docKey(d.ID), b.slab[n:len(b.slab):len(b.slab)])
}

// enter begins the record of a document that is not known. Of a server that is
// asked for one document after another it comes at the end of the queue, unless
// it is only heard of.
func (b *batch) enter(d *Doc) error {
	if err := b.enterUnlisted(d); err != nil {
		return err
	}
	b.list(d)
	return nil
}

// enterUnlisted is enter for one that is asked for when a listing says so.
func (b *batch) enterUnlisted(d *Doc) error {
	f := b.f
	origin := Origin(d.URL)
	hash := f.known.hash(d.URL)
	f.mu.Lock()
	d.Server = f.server(origin)
	f.last++
	d.ID = f.last
	f.change(d.Server).Documents++
	f.mu.Unlock()
	f.known.set(hash, d.ID)
	b.fresh = append(b.fresh, hash)
	return b.put(d)
}

// list adds a document to the list of its server. In that of a disk there are
// none: walks find them, or they are in hand.
func (b *batch) list(d *Doc) {
	if d.State != Heard && polite(Origin(d.URL)) {
		b.own[d.Server] = append(b.own[d.Server], d.ID)
	}
}

// remove forgets a document.
func (b *batch) remove(d *Doc) error {
	f := b.f
	if err := b.dequeue(d); err != nil {
		return err
	}
	if err := b.links(d, nil); err != nil {
		return err
	}
	if err := b.sum(d, [16]byte{}); err != nil {
		return err
	}
	if err := b.lose(d); err != nil {
		return err
	}
	for _, name := range [][]byte{handBucket, goneBucket} {
		if err := b.tx.Bucket(name).Delete(docKey(d.ID)); err != nil {
			return err
		}
	}
	if err := b.note(d.ID, ""); err != nil {
		return err
	}
	f.known.set(f.known.hash(d.URL), 0)
	f.mu.Lock()
	f.change(d.Server).Documents--
	f.mu.Unlock()
	b.gone = append(b.gone, d.ID)
	return b.doc.Delete(docKey(d.ID))
}

// sum notes that a document is now stored with an MD5, or with none.
func (b *batch) sum(d *Doc, md5 [16]byte) error {
	s := b.tx.Bucket(sumBucket)
	if d.MD5 != md5 && d.MD5 != [16]byte{} {
		if err := s.Delete(append(d.MD5[:], docKey(d.ID)...)); err != nil {
			return err
		}
	}
	if d.MD5 = md5; md5 == [16]byte{} {
		return nil
	}
	return s.Put(append(md5[:], docKey(d.ID)...), nil)
}

// links writes what a document refers to, in any order.
func (b *batch) links(d *Doc, to []DocID) error {
	slices.Sort(to)
	to = slices.Compact(to)
	l := b.tx.Bucket(linkBucket)
	l.FillPercent = 0.9
	old := l.Get(docKey(d.ID))
	was, err := decodeLinks(d.ID, old)
	if err != nil {
		was = nil // as good as none
	}
	if slices.Equal(was, to) {
		return nil
	}
	b.recount(d, was, to)
	if len(to) == 0 {
		return l.Delete(docKey(d.ID))
	}
	return l.Put(docKey(d.ID), appendLinks(nil, d.ID, to))
}

// end writes what has been gathered up.
func (b *batch) end() error {
	if err := b.writeSeen(); err != nil {
		return err
	}
	if err := b.writeOwn(); err != nil {
		return err
	}
	if err := b.writeRefs(); err != nil {
		return err
	}
	if b.roots {
		if err := b.f.putRoots(b.tx); err != nil {
			return err
		}
	}
	return b.f.putServers(b.tx)
}

// writeSeen writes the hashes of the documents entered, and strikes those that
// are gone.
func (b *batch) writeSeen() error {
	s := b.tx.Bucket(seenBucket)
	s.FillPercent = 1
	at := func(id DocID) (key []byte, i int) {
		return docKey((id - 1) / seenStep), int((id-1)%seenStep) * 8
	}
	for id, fresh := b.first, b.fresh; len(fresh) > 0; {
		key, i := at(id)
		v := append(make([]byte, 0, 8*seenStep), s.Get(key)...)
		if len(v) > i {
			v = v[:i]
		}
		v = append(v, make([]byte, i-len(v))...)
		n := min(len(fresh), seenStep-i/8)
		for _, h := range fresh[:n] {
			v = binary.BigEndian.AppendUint64(v, h)
		}
		if err := s.Put(key, v); err != nil {
			return err
		}
		id, fresh = id+DocID(n), fresh[n:]
	}
	slices.Sort(b.gone)
	for gone := b.gone; len(gone) > 0; {
		key, _ := at(gone[0])
		v := slices.Clone(s.Get(key))
		for len(gone) > 0 {
			k, i := at(gone[0])
			if string(k) != string(key) {
				break
			}
			if len(v) >= i+8 {
				clear(v[i : i+8])
			}
			gone = gone[1:]
		}
		if err := s.Put(key, v); err != nil {
			return err
		}
	}
	return nil
}

// ownStep is how many documents are in one record of a server's list.
const ownStep = 128

func ownKey(s ServerID, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(make([]byte, 0, 8), uint32(s)), n/ownStep)
}

// writeOwn adds the documents entered to the lists of their servers.
func (b *batch) writeOwn() error {
	f := b.f
	own := b.tx.Bucket(ownBucket)
	for i, id := range slices.Sorted(maps.Keys(b.own)) {
		if i%1000 == 999 {
			forgetIn(b.tx)
		}
		f.mu.Lock()
		s := f.change(id)
		n := s.own
		s.own += uint32(len(b.own[id]))
		if s.done == n && (f.visit == nil || s.visit < f.visit.state.Number) {
			s.done = s.own // it was gone through: that it grows leaves nothing of it to the next visit
		}
		f.mu.Unlock()
		for docs := b.own[id]; len(docs) > 0; {
			key, i := ownKey(id, n), int(n%ownStep)*4
			old := own.Get(key)
			v := append(make([]byte, 0, 4*ownStep), old[:min(i, len(old))]...)
			v = append(v, make([]byte, i-len(v))...)
			take := min(len(docs), ownStep-i/4)
			for _, d := range docs[:take] {
				v = binary.BigEndian.AppendUint32(v, uint32(d))
			}
			if err := own.Put(key, v); err != nil {
				return err
			}
			n, docs = n+uint32(take), docs[take:]
		}
	}
	return nil
}

// readOwn returns the documents of a server's list from one on, as many as are
// in the same record.
func readOwn(tx *bbolt.Tx, s ServerID, from uint32, ids []DocID) []DocID {
	v := tx.Bucket(ownBucket).Get(ownKey(s, from))
	for i := int(from%ownStep) * 4; i+4 <= len(v); i += 4 {
		ids = append(ids, DocID(binary.BigEndian.Uint32(v[i:])))
	}
	return ids
}
