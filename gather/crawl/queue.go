package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"syscall"

	"go.etcd.io/bbolt"
)

// Flags of an entry of the queue.
const (
	byHand  = 1 << iota // asked for by its URL: no links are followed
	anyhow              // whatever is known of it
	seedURL             // a root or leaf
	outside             // asked for by a stranger
)

// enqueue has a document fetched before what its server's list holds, or, with
// no flags, where the order of the search puts it; and writes its record.
func (b *batch) enqueue(d *Doc, order Search, flags byte) error {
	if d.queued != nil && flags&(byHand|anyhow) != 0 { // with other flags, at the front
		if err := b.dequeue(d); err != nil {
			return err
		}
	}
	if d.queued == nil {
		seq, err := b.queue.NextSequence()
		if err != nil {
			return err
		}
		depth := uint32(d.Depth) + 1
		if flags != 0 {
			depth = 0
		} else if order == Depth {
			depth, seq = ^depth, ^seq
		}
		d.queued = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, depth), seq)
		v := append([]byte{flags}, docKey(d.ID)...)
		if err := b.queue.Put(queueKey(d.Server, d.queued), v); err != nil {
			return err
		}
	}
	return b.put(d)
}

func (b *batch) dequeue(d *Doc) error {
	if d.queued == nil {
		return nil
	}
	err := b.queue.Delete(queueKey(d.Server, d.queued))
	d.queued = nil
	return err
}

func queueKey(s ServerID, order []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 16), uint32(s)), order...)
}

// front calls do with the entries of the queue for a server, in their order,
// until it says that it has enough.
func front(tx *bbolt.Tx, s ServerID, do func(key string, flags byte, id DocID) bool) {
	prefix := queueKey(s, nil)
	c := tx.Bucket(queueBucket).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) == 16 && len(v) == 5 && !do(string(k), v[0], DocID(binary.BigEndian.Uint32(v[1:]))) {
			return
		}
	}
}

// Add queues canonical URLs to be fetched whatever is known of them, by the
// visit that runs or by the next. A document that belongs to no root stays until
// it is forgotten.
func (f *DB) Add(ctx context.Context, urls ...string) error {
	return f.add(byHand|anyhow, urls)
}

// Submit queues canonical URLs that strangers ask for: as Add does, but that
// they are counted, and that no private address is asked for them.
func (f *DB) Submit(ctx context.Context, urls ...string) error {
	return f.add(byHand|anyhow|outside, urls)
}

func (f *DB) add(flags byte, urls []string) error {
	var fresh []ServerID
	err := f.update(func(b *batch) error {
		fresh = nil
		for _, u := range urls {
			d, known := f.lookup(b.tx, u)
			if !known {
				d = Doc{URL: u, State: New}
			}
			if flags&outside != 0 {
				d.Submitted++
			}
			if err := b.byHand(&d, flags, &fresh); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deep = true
	if f.visit != nil {
		f.visit.added(fresh)
	}
	return nil
}

func (b *batch) byHand(d *Doc, flags byte, fresh *[]ServerID) error {
	if d.State == Heard {
		d.State = New
		b.list(d)
	}
	if d.ID == 0 {
		if err := b.enter(d); err != nil {
			return err
		}
	}
	if d.Root == 0 && !polite(Origin(d.URL)) {
		if err := b.tx.Bucket(handBucket).Put(docKey(d.ID), nil); err != nil {
			return err
		}
	}
	if !d.Queued() {
		*fresh = append(*fresh, d.Server)
	}
	return b.enqueue(d, Breadth, flags)
}

// Forget drops what is known of a document. If a visit finds it again, it is a
// new one. An unknown one is an error that wraps iofs.ErrNotExist.
func (f *DB) Forget(ctx context.Context, url string) error {
	var refused error // before anything was changed
	err := f.update(func(b *batch) error {
		d, known := f.lookup(b.tx, url)
		if !known {
			refused = fmt.Errorf("%s: %w", url, iofs.ErrNotExist)
			return nil
		}
		if d.Queued() || f.inHand(&d) { // by now, or soon, in the hands of a visit that counts on it
			refused = fmt.Errorf("%s: in the queue: %w", url, syscall.EBUSY)
			return nil
		}
		f.left(&d)
		return b.remove(&d)
	})
	return errors.Join(err, refused)
}

// left notes that a document counts for its root no more.
func (f *DB) left(d *Doc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.roots[d.Root]; r != nil && d.State != Vanished && d.State != Heard {
		r.docs--
		r.dirty = true
	}
}

// Queue yields the URLs that are still to be dealt with, server by server, the
// next one first: those that were asked for, and, while a visit is open that is
// to deal with all that is known, what it has not dealt with.
func (f *DB) Queue(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		state, err := f.Visited()
		if err != nil {
			yield("", err)
			return
		}
		for s, err := range f.Servers(ctx) {
			if err != nil {
				yield("", err)
				return
			}
			if !f.queueOf(ctx, &s, &state, yield) {
				return
			}
		}
	}
}

// queueOf yields what is queued of a server, and is false when that is enough.
func (f *DB) queueOf(ctx context.Context, s *Server, state *Visited, yield func(string, error) bool) bool {
	f.mu.Lock()
	deep := f.deep
	f.mu.Unlock()
	var urls []string
	if deep {
		err := f.db.View(func(tx *bbolt.Tx) error {
			front(tx, s.ID, func(_ string, _ byte, id DocID) bool {
				if d, ok := f.read(tx, id); ok {
					urls = append(urls, d.URL)
				}
				return len(urls) < 1<<16
			})
			return nil
		})
		if err != nil {
			return yield("", err)
		}
	}
	n := uint32(0)
	if s.visit == state.Number {
		n = s.done
	}
	if !state.Open || state.Queued || !polite(s.Origin) {
		n = s.listed
	}
	for {
		for _, u := range urls {
			if !yield(u, nil) {
				return false
			}
		}
		if urls = urls[:0]; n >= s.listed {
			return true
		}
		err := f.db.View(func(tx *bbolt.Tx) error {
			ids := readOwn(tx, s.ID, n, nil)
			for _, id := range ids {
				d, ok := f.read(tx, id)
				if ok && d.Visit < state.Number && !d.Queued() && d.State != Vanished {
					urls = append(urls, d.URL)
				}
			}
			n += max(uint32(len(ids)), 1)
			return ctx.Err()
		})
		if err != nil {
			return yield("", err)
		}
	}
}
