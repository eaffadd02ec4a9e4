package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"harvest/index"
)

// Mark is what the last Apply said, "" before the first.
func (v *Views) Mark() (mark string, err error) {
	err = v.db.View(func(tx *bbolt.Tx) error {
		mark = string(tx.Bucket(bucketMeta).Get(keyMark))
		return nil
	})
	return mark, err
}

// Apply takes changes of the collection up to a mark, at most one of each
// document, and gives what they do to views. It is on disk when it returns, all
// of it or, with an error, none. The same changes once more do no harm.
func (v *Views) Apply(mark string, changes []Change) ([]Event, error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	match := make([][]uint32, len(changes))
	for i := range changes {
		if changes[i].Fields != nil {
			match[i], _ = v.standing.Load().Match(changes[i].Fields)
		}
	}
	return v.commit(func(c *commit) error {
		for i := range changes {
			if err := c.change(&changes[i], match[i]); err != nil {
				return err
			}
		}
		return c.tx.Bucket(bucketMeta).Put(keyMark, []byte(mark))
	})
}

// A commit is a transaction that changes members.
type commit struct {
	v      *Views
	tx     *bbolt.Tx
	counts map[uint32]*counts
	last   map[uint32]uint64 // the SEQ of views that changed
	events []Event
}

// commit runs f in one, and then shows what came of it.
func (v *Views) commit(f func(c *commit) error) ([]Event, error) {
	var c *commit
	err := v.db.Update(func(tx *bbolt.Tx) error {
		c = &commit{v: v, tx: tx, counts: make(map[uint32]*counts), last: make(map[uint32]uint64)}
		if err := f(c); err != nil {
			return err
		}
		for id, n := range c.counts {
			if err := c.trim(id, n); err != nil {
				return err
			}
			if err := putCounts(tx, id, *n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, n := range c.counts {
		old := v.all[id]
		if old == nil {
			continue
		}
		w := *old
		w.Members, w.Seq = int(n.members), max(old.Seq, c.last[id])
		v.all[id], v.name[w.Name] = &w, &w
	}
	return c.events, nil
}

// change is what a change of one document does, which the queries in match do.
func (c *commit) change(ch *Change, match []uint32) error {
	doc := ch.ID[:]
	was := getObject(c.tx, doc)
	var is []uint32
	if ch.Fields != nil {
		hand, err := c.hand(doc)
		if err != nil {
			return err
		}
		is = c.v.members(match, hand)
	}
	for _, id := range was {
		if !slices.Contains(is, id) {
			if err := c.enter(id, Left, ch.ID); err != nil {
				return err
			}
		}
	}
	for _, id := range is {
		op := Joined
		if slices.Contains(was, id) {
			op = Changed
		}
		if err := c.enter(id, op, ch.ID); err != nil {
			return err
		}
	}
	if slices.Equal(was, is) {
		return nil
	}
	return putObject(c.tx, doc, is)
}

// hand is what was done by hand to a document, by view.
func (c *commit) hand(doc []byte) (map[uint32]Op, error) {
	var m map[uint32]Op
	cur := c.tx.Bucket(bucketEdits).Cursor()
	for k, op := cur.Seek(doc); bytes.HasPrefix(k, doc); k, op = cur.Next() {
		if len(k) != 20 || len(op) != 1 {
			return nil, fmt.Errorf("edit %x is damaged", k)
		}
		if m == nil {
			m = make(map[uint32]Op)
		}
		m[binary.BigEndian.Uint32(k[16:])] = Op(op[0])
	}
	return m, nil
}

// members are the views that a document is in, in the order of their numbers,
// when it matches the queries of some and this was done to it by hand.
func (v *Views) members(match []uint32, hand map[uint32]Op) (is []uint32) {
	if len(match)+len(hand) == 0 {
		return nil
	}
	may := make(map[uint32]struct{}, len(match))
	for _, id := range match {
		if hand[id] != Left {
			may[id] = struct{}{}
		}
	}
	for id, op := range hand {
		if op == Joined {
			may[id] = struct{}{}
		}
	}
	in := make(map[uint32]bool, len(may))
	for _, w := range v.order(may) {
		if w.parent == 0 || in[w.parent] {
			in[w.ID] = true
			is = append(is, w.ID)
		}
	}
	slices.Sort(is)
	return is
}

func memberKey(id uint32, doc index.ID) []byte { return append(viewKey(id), doc[:]...) }

func (c *commit) count(id uint32) *counts {
	n := c.counts[id]
	if n == nil {
		have := getCounts(c.tx, id)
		n = &have
		c.counts[id] = n
	}
	return n
}

// enter puts what happened to a document in a view in place of what did before.
func (c *commit) enter(id uint32, op Op, doc index.ID) error {
	n, key, log := c.count(id), memberKey(id, doc), c.tx.Bucket(bucketLog)
	members, left := c.tx.Bucket(bucketMembers), c.tx.Bucket(bucketLeft)
	for _, b := range []*bbolt.Bucket{members, left} {
		seq := b.Get(key)
		if seq == nil {
			continue
		}
		if err := log.Delete(append(viewKey(id), seq...)); err != nil {
			return err
		}
		if err := b.Delete(key); err != nil {
			return err
		}
		if b == members {
			n.members--
		} else {
			n.left--
		}
	}
	seq, err := log.NextSequence()
	if err != nil {
		return err
	}
	at := binary.BigEndian.AppendUint64(nil, seq)
	if op == Left {
		n.left++
		err = left.Put(key, at)
	} else {
		n.members++
		err = members.Put(key, at)
	}
	if err != nil {
		return err
	}
	c.last[id] = seq
	if w := c.v.byID(id); w != nil {
		c.events = append(c.events, Event{w.Name, op, doc})
	}
	return log.Put(append(viewKey(id), at...), append([]byte{byte(op)}, doc[:]...))
}

func (v *Views) byID(id uint32) *View {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.all[id]
}

// A log forgets who left, oldest first, when those are more than its members and
// more than this: to half of it. Cursors from before are refused then.
const manyLeft = 10_000

func (c *commit) trim(id uint32, n *counts) error {
	bound := max(manyLeft, n.members)
	if n.left <= bound {
		return nil
	}
	key := viewKey(id)
	var old [][]byte // a cursor is not to be trusted after a Delete
	cur := c.tx.Bucket(bucketLog).Cursor()
	for k, entry := cur.Seek(key); bytes.HasPrefix(k, key) && n.left-uint64(len(old)) > bound/2; k, entry = cur.Next() {
		if Op(entry[0]) == Left {
			old = append(old, slices.Concat(k, entry[1:]))
		}
	}
	for _, both := range old {
		if err := c.tx.Bucket(bucketLog).Delete(both[:12]); err != nil {
			return err
		}
		if err := c.tx.Bucket(bucketLeft).Delete(append(viewKey(id), both[12:]...)); err != nil {
			return err
		}
	}
	if len(old) > 0 {
		n.left -= uint64(len(old))
		n.floor = binary.BigEndian.Uint64(old[len(old)-1][4:])
	}
	return nil
}

// fillTogether is how many documents are filled in with one wait for the disk.
const fillTogether = 5000

// Fill makes the members of a view those that match its query now, which docs
// are, and what was done by hand. Whatever changes after the mark of the index
// that was asked comes with Apply: no Apply may be of a later one. Told is given
// the events.
func (v *Views) Fill(ctx context.Context, name string, docs []index.ID, told func([]Event)) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	w, err := v.Get(name)
	if err != nil {
		return err
	}
	all, err := v.considered(w.ID, docs)
	if err != nil {
		return err
	}
	matches := make(map[index.ID]struct{}, len(docs))
	for _, d := range docs {
		matches[d] = struct{}{}
	}
	for some := range slices.Chunk(all, fillTogether) {
		if err := ctx.Err(); err != nil {
			return err
		}
		events, err := v.commit(func(c *commit) error {
			for _, doc := range some {
				_, ok := matches[doc]
				if err := c.refill(&w, doc, ok); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		told(events)
	}
	if w, err = v.Get(name); err != nil {
		return err
	}
	w.Filled = true
	return v.change(nothing, w)
}

// considered are the documents that match, those that are members, and those
// put in by hand: in order, each once.
func (v *Views) considered(id uint32, docs []index.ID) ([]index.ID, error) {
	all := slices.Clone(docs)
	key := viewKey(id)
	err := v.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketMembers).Cursor()
		for k, _ := c.Seek(key); bytes.HasPrefix(k, key); k, _ = c.Next() {
			all = append(all, index.ID(k[4:]))
		}
		return tx.Bucket(bucketEdits).ForEach(func(k, op []byte) error {
			if bytes.HasSuffix(k, key) && len(k) == 20 && Op(op[0]) == Joined && tx.Bucket(bucketObjects).Get(k[:16]) != nil {
				all = append(all, index.ID(k[:16]))
			}
			return nil
		})
	})
	slices.SortFunc(all, func(a, b index.ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(all), err
}

// refill decides whether one document is in a view.
func (c *commit) refill(w *View, doc index.ID, match bool) error {
	was := getObject(c.tx, doc[:])
	hand, err := c.hand(doc[:])
	if err != nil {
		return err
	}
	in := match && hand[w.ID] != Left || hand[w.ID] == Joined
	if w.parent != 0 && !slices.Contains(was, w.parent) {
		in = false
	}
	switch is := slices.Contains(was, w.ID); {
	case in && !is:
		if err := c.enter(w.ID, Joined, doc); err != nil {
			return err
		}
		at, _ := slices.BinarySearchFunc(was, w.ID, cmp.Compare[uint32])
		return putObject(c.tx, doc[:], slices.Insert(was, at, w.ID))
	case !in && is:
		if err := c.enter(w.ID, Left, doc); err != nil {
			return err
		}
		return putObject(c.tx, doc[:], without(was, w.ID))
	}
	return nil
}

// Edit puts a document into a view by hand (Joined), takes it out (Left), or
// leaves it to the query again (0). Fields are the document as it is.
func (v *Views) Edit(name string, op Op, doc Change) ([]Event, error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	match, _ := v.standing.Load().Match(doc.Fields)
	return v.commit(func(c *commit) error {
		key := append(slices.Clone(doc.ID[:]), viewKey(w.ID)...)
		edits := c.tx.Bucket(bucketEdits)
		err := edits.Delete(key)
		if err == nil && op != 0 {
			err = edits.Put(key, []byte{byte(op)})
		}
		if err != nil {
			return err
		}
		return c.change(&doc, match)
	})
}
