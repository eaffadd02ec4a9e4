package broker

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/essence/access"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// The index follows the store: its mark is the cursor of the last change it
// has. Whatever changes the store (a collection, delete, expiry, a crash between
// the two), following from the mark makes index and registry agree with it.

// How many changes are handed to the index at a time: first so many, so that
// what is new is found soon, and twice as many each time there are more, since
// an Apply is a segment and an index far behind is quicker made of few.
const (
	followFirst = 4 << 10
	followMost  = 256 << 10
)

// follow brings the index to the state of the store at the call or later.
func (b *Broker) follow(ctx context.Context) error {
	b.following.Lock()
	defer b.following.Unlock()
	h := b.hold()
	defer func() { h.release() }()
	for n, more := followFirst, true; more; n = min(2*n, followMost) {
		var err error
		more, err = b.feed(ctx, h, n)
		if errors.Is(err, store.ErrCursor) {
			b.lg.Warn("index is made anew", "err", err)
			h.release()
			err = b.emptyIndex()
			h = b.hold()
			if err != nil {
				return err
			}
			more = true
			continue
		}
		if err != nil {
			return err
		}
		b.tellFollowed()
	}
	if b.dups.due(b.store.Cursor().Seq) {
		b.dups.follow(ctx)
		b.tellFollowed()
	}
	return nil
}

// tellFollowed wakes who waits for the index.
func (b *Broker) tellFollowed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.followed)
	b.followed = make(chan struct{})
}

// indexed is the cursor of the last change that is in the index.
func (b *Broker) indexed() (store.Cursor, error) {
	h := b.hold()
	defer h.release()
	return b.marked(h)
}

func (b *Broker) marked(e index.Engine) (store.Cursor, error) {
	mark := e.Mark()
	if mark == "" {
		return store.Cursor{}, nil
	}
	return b.store.ParseCursor(mark)
}

// A feeding is the next changes that an index is to have.
type feeding struct {
	after, until store.Cursor
	seq          uint64 // of the last of them
	more         bool   // there are others
	puts         []store.Ref
	seqs         []uint64 // of puts
	gone         []store.OID
	sketches     *sketching // or nil
	damaged      []index.ID
}

// feed hands an index the next changes, at most so many, and says whether there
// were more. When it stops at a change, an object that was changed before it
// and refreshed after is told the next time as refreshed only: all but those that
// some feed to the end has given are taken for changed.
func (b *Broker) feed(ctx context.Context, h *held, most int) (more bool, err error) {
	f := feeding{until: b.store.Cursor()}
	if f.after, err = b.marked(h); err != nil {
		return false, err
	}
	if err := f.collect(ctx, b, h, most); err != nil || f.seq == f.after.Seq {
		return false, err
	}
	if err := b.forget(f.gone); err != nil {
		return false, err
	}
	if f.after.Seq == 0 { // of what was deleted before, the changes say nothing
		if _, err := b.forgetLost(ctx); err != nil {
			return false, err
		}
	}
	b.mu.Lock()
	inUse := b.index == h
	b.mu.Unlock()
	if inUse { // one that is being made anew is elsewhere, and at the same time
		f.sketches = b.dups.sketchesFrom(f.after)
	}
	if err := b.give(ctx, h, &f); err != nil {
		return f.more, err
	}
	if !f.more {
		h.whole = f.until.Seq
	}
	return f.more, nil
}

// collect looks at the next changes.
func (f *feeding) collect(ctx context.Context, b *Broker, h *held, most int) error {
	for rec, err := range b.store.Changes(ctx, f.after) {
		if err != nil {
			return err
		}
		if len(f.puts)+len(f.gone) == most {
			f.more = true
			return nil
		}
		f.seq = rec.Entry.Seq
		switch {
		case rec.Op == soif.Delete:
			b.damage(rec.Entry.OID, false)
			f.gone = append(f.gone, rec.Entry.OID)
		case rec.Op == soif.Update || rec.Entry.Body > h.whole:
			f.puts = append(f.puts, rec.Entry.Ref())
			f.seqs = append(f.seqs, f.seq)
		}
	}
	f.seq = max(f.seq, f.until.Seq) // from the start no deletions are told, and one may have been the last
	return nil
}

// give has an index take the changes, and the duplicates with it.
func (b *Broker) give(ctx context.Context, h *held, f *feeding) error {
	deletes := make([]index.ID, len(f.gone))
	for i, oid := range f.gone {
		deletes[i] = index.ID(oid)
		f.sketches.drop(oid)
	}
	mark := store.Cursor{Epoch: f.until.Epoch, Seq: f.seq}.String()
	if err := h.Apply(ctx, b.documents(ctx, f), deletes, mark); err != nil {
		return err
	}
	f.sketches.end(ctx, f.seq, f.more)
	if len(f.damaged) > 0 {
		return h.Apply(ctx, nil, f.damaged, mark)
	}
	return nil
}

// documents gives objects to an index. One that cannot be read, because the
// disk has lost it, is left out and named, or none after it would be found.
func (b *Broker) documents(ctx context.Context, f *feeding) iter.Seq2[*index.Doc, error] {
	const together = 1024 // are read in the order of the disk
	return func(yield func(*index.Doc, error) bool) {
		more := true
		for n := 0; n < len(f.puts); n += together {
			some := f.puts[n:min(n+together, len(f.puts))]
			err := b.store.Contents(ctx, some, func(i int, body []byte, err error) bool {
				var o soif.Object
				if err == nil {
					o, _, err = soif.Parse(body, soif.Limits{})
				}
				switch {
				case err == nil:
					b.damage(some[i].OID, false)
					f.sketches.add(some[i].OID, &o)
					d := document(some[i].OID, &o)
					more = yield(&d, nil)
				case unreadable(err):
					b.lg.Error("object is not indexed", "oid", some[i].OID, "err", err)
					b.event("damaged", ndb.Of("oid", some[i].OID), ndb.Of("err", err))
					b.damage(some[i].OID, true)
					f.sketches.add(some[i].OID, nil)
					f.damaged = append(f.damaged, index.ID(some[i].OID))
				default:
					yield(nil, err)
					more = false
				}
				return more
			})
			if err != nil && more {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
			f.sketches.reached(ctx, f.seqs[n+len(some)-1])
		}
	}
}

// unreadable tells that an object is there and not what was stored.
func unreadable(err error) bool {
	var bad *soif.Error
	return errors.Is(err, store.ErrDamaged) || errors.As(err, &bad)
}

// texts are the Source of an index: the objects of the store.
type texts struct{ b *Broker }

func (t texts) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) (err error) {
	oids := make([]store.OID, len(ids))
	for i, id := range ids {
		oids[i] = store.OID(id)
	}
	var fields []index.Field
	rerr := t.b.store.Bodies(patiently(ctx), oids, func(i int, body []byte, berr error) bool {
		var o soif.Object
		if berr == nil {
			o, _, berr = soif.Parse(body, soif.Limits{})
		}
		if unreadable(berr) {
			return true // and so not in the index, or soon not
		}
		if err = berr; err != nil {
			return false
		}
		fields = appendFields(append(fields[:0], index.Field{Name: "url", Text: o.URL}), &o)
		return yield(i, fields)
	})
	return errors.Join(err, rerr)
}

// A query sees what was stored before it was asked, if the index is nearly
// there: it waits this long for one that is at most so many changes behind.
const (
	patience = 200 * time.Millisecond
	nearly   = 1000

	gcPatience = 10 * time.Millisecond // for one that goes after what gc deletes, which no query misses
)

// settle waits for the index to come to where the store is.
func (b *Broker) settle(ctx context.Context) {
	seq := b.store.Cursor().Seq
	b.mu.Lock()
	most := patience
	if b.gcRuns {
		most = gcPatience
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for b.follows.Load() {
		b.mu.Lock()
		followed, trouble := b.followed, b.trouble
		b.mu.Unlock()
		mark, err := b.indexed()
		if err != nil || trouble != nil || mark.Seq >= seq && !b.dups.awaited(seq) || seq-min(seq, mark.Seq) > nearly {
			return
		}
		select {
		case <-followed:
		case <-ctx.Done():
			return
		}
	}
}

// damage notes that an object cannot be read, or that it can be or is gone.
func (b *Broker) damage(oid store.OID, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if yes {
		b.damaged[oid] = struct{}{}
	} else {
		delete(b.damaged, oid)
	}
}

// forget takes objects that are gone out of the registry, unless a collection
// has brought them back.
func (b *Broker) forget(oids []store.OID) error {
	b.putting.Lock()
	defer b.putting.Unlock()
	var gone []store.OID
	for _, oid := range oids {
		yes, err := b.has(oid)
		if err != nil {
			return err
		}
		if !yes {
			gone = append(gone, oid)
		}
	}
	return b.registry.drop(gone)
}

// forgetLost takes all objects out of the registry that are not in the store, as
// when they were deleted and the index, which was to tell of them, is lost.
func (b *Broker) forgetLost(ctx context.Context) (n int, err error) {
	b.putting.Lock()
	defer b.putting.Unlock()
	for last := (*store.OID)(nil); ; {
		list, err := b.registry.after(last, 4096)
		if err != nil || len(list) == 0 {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		last = &list[len(list)-1].oid
		oids := make([]store.OID, len(list))
		for i := range list {
			oids[i] = list[i].oid
		}
		lost := make(map[store.OID]struct{}, len(list))
		for _, oid := range oids {
			lost[oid] = struct{}{}
		}
		err = b.store.Entries(ctx, oids, func(i int, _ *store.Entry) bool {
			delete(lost, oids[i])
			return true
		})
		if err == nil {
			err = b.registry.drop(slices.Collect(maps.Keys(lost)))
		}
		if err != nil {
			return n, err
		}
		n += len(lost)
	}
}

func (b *Broker) has(oid store.OID) (bool, error) {
	_, err := b.store.Stat(oid)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// put runs apply, which gives the store changes that a source made, with the
// registry kept beside it.
func (b *Broker) put(ctx context.Context, source uint64, apply func() error, changes []store.Change) error {
	b.putting.Lock()
	defer b.putting.Unlock()
	var oids []store.OID
	for i := range changes {
		if changes[i].Op == soif.Update {
			oids = append(oids, changes[i].OID)
		}
	}
	if err := b.registry.begin(source, oids); err != nil {
		return err
	}
	err := apply()
	return errors.Join(err, b.registry.settle(source, oids, b.has)) // after an error some may be there
}

// document is an object as the index sees it. The names of an attribute that
// comes several times, and of those of embedded objects, are one; what is not
// text is left out.
func document(oid store.OID, o *soif.Object) index.Doc {
	d := index.Doc{ID: index.ID(oid), Fields: []index.Field{{Name: "url", Text: o.URL}}}
	return index.Doc{ID: d.ID, Fields: appendFields(d.Fields, o)}
}

func appendFields(fields []index.Field, o *soif.Object) []index.Field {
	for _, a := range o.Attrs {
		if bytes.IndexByte(a.Value, 0) < 0 && !access.Is(a.Name) { // a method is no text about anything
			fields = append(fields, index.Field{Name: baseName(a.Name), Text: string(a.Value)})
		}
	}
	return fields
}

// baseName is Author for Author, Author-2 and Embed3-Author.
func baseName(name string) string {
	for {
		rest, ok := cutEmbed(name)
		if !ok {
			break
		}
		name = rest
	}
	if i := strings.LastIndexByte(name, '-'); i > 0 && i+1 < len(name) && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	return name
}

func cutEmbed(name string) (string, bool) {
	const embed = "embed"
	if len(name) <= len(embed) || !strings.EqualFold(name[:len(embed)], embed) {
		return name, false
	}
	rest := strings.TrimLeft(name[len(embed):], "0123456789")
	if len(rest) == len(name)-len(embed) || len(rest) < 2 || rest[0] != '-' {
		return name, false
	}
	return rest[1:], true
}
