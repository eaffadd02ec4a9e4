package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// gc drops what has expired, and makes registry, store and index agree where
// something has come between them: an object no source gave leaves the store. Then
// the space of what is gone is given back. Queries are answered meanwhile, and what
// is collected is stored: nothing is held for longer than gcStep objects take.
func (b *Broker) gc(ctx context.Context) error {
	begin, before := time.Now(), b.disk()
	expired, err := b.expire(ctx)
	if err != nil {
		return err
	}
	if err := b.follow(ctx); err != nil {
		return err
	}
	orphans, stale, err := b.reconcile(ctx)
	if err != nil {
		return err
	}
	if err := b.follow(ctx); err != nil {
		return err
	}
	err = b.compact(ctx)
	b.event("gc", ndb.Of("expired", expired), ndb.Of("orphans", orphans), ndb.Of("stale", stale),
		ndb.Of("before", before), ndb.Of("disk", b.disk()), ndb.Of("took", time.Since(begin).Round(time.Millisecond)))
	return errors.Join(err, b.checkIndex())
}

// compact gives back the space of what was replaced and deleted, in the store and
// in the registry. The index merges by itself.
func (b *Broker) compact(ctx context.Context) error {
	if err := b.store.Compact(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := b.registry.compact(); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	return nil
}

// disk is how many bytes the Broker takes.
func (b *Broker) disk() (n int64) {
	st, _ := b.store.Stats() // told in status, if it fails
	h := b.hold()
	defer h.release()
	if f, err := os.Stat(filepath.Join(b.dir, registryName)); err == nil {
		n = f.Size()
	}
	return n + st.Disk + h.Stats().Bytes
}

// checkIndex has the index made anew if it does not hold as many documents as
// the store holds objects. Nothing known leads there; it costs nothing to look.
func (b *Broker) checkIndex() error {
	before := b.store.Cursor()
	h := b.hold()
	docs := h.Stats().Docs
	h.release()
	b.mu.Lock()
	docs += len(b.damaged)
	b.mu.Unlock()
	objects := b.store.Count()
	mark, err := b.indexed()
	if err != nil || mark != before || b.store.Cursor() != before || int64(docs) == objects {
		return err
	}
	b.lg.Error("index does not agree with the store", "documents", docs, "objects", objects)
	return b.askReindex()
}

// gcStep is how many objects are compared at a time, while nothing is collected.
const gcStep = 4096

// reconcile compares store and registry, both in order of OID.
func (b *Broker) reconcile(ctx context.Context) (orphans, stale int, err error) {
	after := ""
	for {
		o, s, last, err := b.reconcileStep(ctx, after)
		orphans, stale = orphans+o, stale+s
		if err != nil || last == "" {
			return orphans, stale, err
		}
		after = last
	}
}

// reconcileStep compares the objects after one, and names the last of them; ""
// says that there are no more.
func (b *Broker) reconcileStep(ctx context.Context, after string) (orphans, stale int, last string, err error) {
	b.putting.Lock()
	defer b.putting.Unlock()
	stored := make(map[store.OID]bool, gcStep)
	for o, err := range b.store.Scan(ctx, "", after) {
		if err != nil {
			return 0, 0, "", err
		}
		stored[o.OID] = true
		if len(stored) == gcStep {
			last = o.OID.String()
			break
		}
	}
	drop, err := b.unstored(stored, after, last)
	if err != nil {
		return 0, 0, "", err
	}
	var deletes []store.Change // of those that the registry did not have
	for oid := range stored {
		deletes = append(deletes, store.Change{Op: soif.Delete, OID: oid})
	}
	if len(deletes) > 0 {
		if _, err := b.store.Apply(ctx, deletes); err != nil {
			return 0, 0, "", err
		}
	}
	return len(deletes), len(drop), last, b.registry.drop(drop)
}

// unstored gives the entries of the registry after one object, up to another or
// the end, that are not stored. Those that are it takes out of stored.
func (b *Broker) unstored(stored map[store.OID]bool, after, last string) (drop []store.OID, err error) {
	var from *store.OID
	until := store.OID(bytes.Repeat([]byte{0xff}, len(store.OID{})))
	if after != "" {
		oid, err := store.ParseOID(after)
		if err != nil {
			return nil, err
		}
		from = &oid
	}
	if last != "" {
		if until, err = store.ParseOID(last); err != nil {
			return nil, err
		}
	}
	for {
		list, err := b.registry.after(from, gcStep)
		if err != nil {
			return nil, err
		}
		for i := range list {
			switch oid := list[i].oid; {
			case bytes.Compare(oid[:], until[:]) > 0:
				return drop, nil
			case stored[oid]:
				delete(stored, oid)
			default:
				drop = append(drop, oid)
			}
		}
		if len(list) < gcStep {
			return drop, nil
		}
		from = &list[len(list)-1].oid
	}
}
