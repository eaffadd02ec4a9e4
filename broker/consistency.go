package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"slices"

	"harvest/fs/ndb"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// What the file consistency tells. Registry, store and index are read one after
// the other, in the order of the OIDs and with nobody held up, so what changes
// meanwhile may look as if it were in one and not in another. But all that is on
// its way has a number in the store that is past what index and views have
// followed and past the last change that was settled when the comparison began:
// what has changed after the least of these is counted as changing, and of the
// rest every difference is one.

// A comparison is what came out.
type comparison struct {
	objects, registered, indexed int
	from                         store.Cursor // changes after it are not compared
	changing                     map[store.OID]struct{}
	differences                  []difference
}

// A difference is an object that is not everywhere, or that a view has and the
// store has not.
type difference struct {
	oid                  store.OID
	registry, store, idx bool
	view                 string
}

func (d difference) pairs() []ndb.Pair {
	pairs := []ndb.Pair{ndb.Of("oid", d.oid)}
	if d.view != "" {
		return append(pairs, ndb.Of("view", d.view), ndb.Of("store", yesOrNo(d.store)))
	}
	return append(pairs, ndb.Of("registry", yesOrNo(d.registry)), ndb.Of("store", yesOrNo(d.store)), ndb.Of("index", yesOrNo(d.idx)))
}

func (b *Broker) writeConsistency(ctx context.Context, w io.Writer) error {
	c, err := b.compare(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, ndb.Format(ndb.Of("consistent", yesOrNo(len(c.differences) == 0)), ndb.Of("objects", c.objects),
		ndb.Of("registered", c.registered), ndb.Of("indexed", c.indexed), ndb.Of("changing", len(c.changing)), ndb.Of("differ", len(c.differences))))
	for i := 0; i < len(c.differences) && err == nil; i++ {
		_, err = fmt.Fprintln(w, ndb.Format(c.differences[i].pairs()...))
	}
	return err
}

// compare compares registry, store, index and views.
func (b *Broker) compare(ctx context.Context) (*comparison, error) {
	c := &comparison{changing: make(map[store.OID]struct{})}
	var err error
	if c.from, err = b.settled(); err != nil {
		return nil, err
	}
	indexed, err := b.indexedObjects(ctx)
	if err != nil {
		return nil, err
	}
	c.indexed = len(indexed)
	if err := c.everywhere(ctx, b, indexed); err != nil {
		return nil, err
	}
	if err := c.views(ctx, b); err != nil {
		return nil, err
	}
	for rec, err := range b.store.Changes(ctx, c.from) {
		if err != nil {
			return nil, err
		}
		c.changing[rec.Entry.OID] = struct{}{}
	}
	c.differences = slices.DeleteFunc(c.differences, func(d difference) bool {
		_, changing := c.changing[d.oid]
		return changing || c.from.Seq == 0 && !d.store // of before the first change no deletion is told
	})
	return c, nil
}

// settled is the change up to which registry, index and views have all.
func (b *Broker) settled() (store.Cursor, error) {
	b.putting.Lock() // no change is in the store alone
	at := b.store.Cursor()
	b.putting.Unlock()
	mark, err := b.indexed()
	if err != nil {
		return at, err
	}
	if mark.Seq < at.Seq {
		at = mark
	}
	if all, _ := b.views.set.Len(); all == 0 {
		return at, nil
	}
	mark, err = b.views.mark()
	if err == nil && mark.Seq < at.Seq {
		at = mark
	}
	return at, err
}

// indexedObjects are those that the index has, in order.
func (b *Broker) indexedObjects(ctx context.Context) (list []store.OID, err error) {
	err = b.using(func(h *held) error {
		r, err := h.Search(ctx, query.All{}, index.Options{Rank: index.RankNone})
		list = make([]store.OID, len(r.Hits))
		for i := range r.Hits {
			list[i] = store.OID(r.Hits[i].ID)
		}
		return err
	})
	slices.SortFunc(list, compareOID)
	return list, err
}

func compareOID(a, b store.OID) int { return bytes.Compare(a[:], b[:]) }

// everywhere goes through registry, store and index side by side.
func (c *comparison) everywhere(ctx context.Context, b *Broker, indexed []store.OID) error {
	registered, endRegistry := iter.Pull2(b.registered())
	defer endRegistry()
	stored, endStore := iter.Pull2(b.storedObjects(ctx))
	defer endStore()
	next := func(pull func() (store.OID, error, bool), n *int) (*store.OID, error) {
		oid, err, ok := pull()
		if !ok || err != nil {
			return nil, err
		}
		*n++
		return &oid, nil
	}
	r, err := next(registered, &c.registered)
	if err != nil {
		return err
	}
	s, err := next(stored, &c.objects)
	for err == nil {
		var d difference
		least := (*store.OID)(nil)
		if len(indexed) > 0 {
			least = &indexed[0]
		}
		for _, p := range []*store.OID{r, s} {
			if p != nil && (least == nil || compareOID(*p, *least) < 0) {
				least = p
			}
		}
		if least == nil {
			return nil
		}
		d.oid = *least
		if d.idx = len(indexed) > 0 && indexed[0] == d.oid; d.idx {
			indexed = indexed[1:]
		}
		if d.registry = r != nil && *r == d.oid; d.registry {
			if r, err = next(registered, &c.registered); err != nil {
				return err
			}
		}
		if d.store = s != nil && *s == d.oid; d.store {
			s, err = next(stored, &c.objects)
		}
		if !d.registry || !d.store || !d.idx {
			c.differences = append(c.differences, d)
		}
	}
	return err
}

// registered are the objects of the registry, in order.
func (b *Broker) registered() iter.Seq2[store.OID, error] {
	return func(yield func(store.OID, error) bool) {
		err := b.registry.each(func(e entry) error {
			if !yield(e.oid, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(store.OID{}, err)
		}
	}
}

var errEnough = errors.New("that is enough")

func (b *Broker) storedObjects(ctx context.Context) iter.Seq2[store.OID, error] {
	return func(yield func(store.OID, error) bool) {
		for e, err := range b.store.Scan(ctx, "", "") {
			if !yield(e.OID, err) {
				return
			}
		}
	}
}

// views looks for members that are no objects.
func (c *comparison) views(ctx context.Context, b *Broker) error {
	for _, w := range b.views.set.All() {
		members, err := b.views.set.After(w.Name, index.ID{}, everything)
		if errors.Is(err, iofs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return err
		}
		for _, id := range members {
			if err := ctx.Err(); err != nil {
				return err
			}
			there, err := b.has(store.OID(id))
			if err != nil {
				return err
			}
			if !there {
				c.differences = append(c.differences, difference{oid: store.OID(id), view: w.Name})
			}
		}
	}
	return nil
}
