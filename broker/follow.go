package broker

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/thin"
)

// The index follows the store: its mark is the cursor of the last change it
// has. Whatever changes the store (a collection, rm, expiry, a crash between
// the two), following from the mark makes index and registry agree with it.

// How much is handed to the index at a time. An Apply is a segment; larger ones
// are merged less often, and cost a few times their text in memory.
const (
	followObjects = 4000
	followBytes   = 8 << 20
)

func openIndex(dir string) (index.Engine, error) {
	return thin.Open(filepath.Join(dir, "index"), index.Settings{})
}

// follow brings the index to the state of the store at the call or later.
func (b *Broker) follow(ctx context.Context) error {
	b.following.Lock()
	defer b.following.Unlock()
	after, err := b.indexed()
	if errors.Is(err, store.ErrCursor) {
		b.lg.Warn("index is made anew", "err", err)
		err = b.emptyIndex()
		after = store.Cursor{}
	}
	if err != nil {
		return err
	}
	f := follower{b: b}
	for rec, err := range b.store.Changes(ctx, after) {
		if err != nil {
			return err
		}
		if err := f.take(ctx, rec); err != nil {
			return err
		}
	}
	return f.flush(ctx)
}

// indexed is the cursor of the last change that is in the index.
func (b *Broker) indexed() (store.Cursor, error) {
	mark := b.engine().Mark()
	if mark == "" {
		return store.Cursor{}, nil
	}
	return b.store.ParseCursor(mark)
}

// emptyIndex begins a new index. Called with following held.
func (b *Broker) emptyIndex() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index != nil {
		if err := b.index.Close(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "index")); err != nil {
		return err
	}
	e, err := openIndex(b.dir)
	if err == nil {
		b.index = e
	}
	return err
}

// A query sees what was stored before it was asked, if the index is nearly
// there: it waits this long for one that is at most so many changes behind.
const (
	patience = 200 * time.Millisecond
	nearly   = 1000
)

// settle waits for the index to come to where the store is.
func (b *Broker) settle(ctx context.Context) {
	seq := b.store.Cursor().Seq
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for b.follows.Load() {
		b.mu.Lock()
		followed, trouble := b.followed, b.trouble
		b.mu.Unlock()
		mark, err := b.indexed()
		if err != nil || trouble != nil || mark.Seq >= seq || seq-mark.Seq > nearly {
			return
		}
		select {
		case <-followed:
		case <-ctx.Done():
			return
		}
	}
}

// reopen opens the index anew after it has failed: whatever it holds on disk,
// following goes on from there.
func (b *Broker) reopen() error {
	b.following.Lock()
	defer b.following.Unlock()
	if err := b.engine().Close(); err != nil {
		return err
	}
	e, err := openIndex(b.dir)
	if errors.Is(err, index.ErrCorrupt) {
		b.lg.Warn("index is made anew", "err", err)
		return b.emptyIndex()
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index = e
	return nil
}

// engine is the index as it is now; making it anew replaces it.
func (b *Broker) engine() index.Engine {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.index
}

type follower struct {
	b       *Broker
	puts    []index.Doc
	deletes []index.ID
	gone    []store.OID
	bytes   int
	seq     uint64
}

func (f *follower) take(ctx context.Context, rec store.Record) error {
	oid := rec.Entry.OID
	f.seq = rec.Entry.Seq
	switch rec.Op {
	case soif.Delete:
		f.b.damage(oid, false)
		f.deletes = append(f.deletes, index.ID(oid))
		f.gone = append(f.gone, oid)
	case soif.Update:
		if err := f.put(oid); err != nil {
			return err
		}
	}
	if f.bytes >= followBytes || len(f.puts)+len(f.deletes) >= followObjects {
		return f.flush(ctx)
	}
	return nil
}

// put takes an object. One that cannot be read, because the disk has lost it,
// is left out of the index and named, or none after it would be found.
func (f *follower) put(oid store.OID) error {
	body, _, err := f.b.store.Get(oid)
	var o soif.Object
	if err == nil {
		o, _, err = soif.Parse(body, soif.Limits{})
	}
	var bad *soif.Error
	switch {
	case err == nil:
		f.b.damage(oid, false)
		f.puts = append(f.puts, document(oid, &o))
		f.bytes += len(body)
	case errors.Is(err, iofs.ErrNotExist): // deleted meanwhile: a later record says so
	case errors.Is(err, store.ErrDamaged), errors.As(err, &bad):
		f.b.lg.Error("object is not indexed", "oid", oid, "err", err)
		f.b.event("damaged", ndb.Of("oid", oid), ndb.Of("err", err))
		f.deletes = append(f.deletes, index.ID(oid))
		f.b.damage(oid, true)
	default:
		return err
	}
	return nil
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

func (f *follower) flush(ctx context.Context) error {
	if f.seq == 0 {
		return nil
	}
	if err := f.b.forget(f.gone); err != nil {
		return err
	}
	mark := store.Cursor{Epoch: f.b.store.Cursor().Epoch, Seq: f.seq}
	if err := f.b.engine().Apply(ctx, index.Docs(f.puts), f.deletes, mark.String()); err != nil {
		return err
	}
	*f = follower{b: f.b}
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	close(f.b.followed)
	f.b.followed = make(chan struct{})
	return nil
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
	if err := apply(); err != nil {
		return err
	}
	return b.registry.settle(b.has)
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
		if bytes.IndexByte(a.Value, 0) < 0 {
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

// gc drops what has expired, and makes registry, store and index agree where
// something has come between them: an object no source gave leaves the store.
func (b *Broker) gc(ctx context.Context) error {
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
	b.event("gc", ndb.Of("expired", expired), ndb.Of("orphans", orphans), ndb.Of("stale", stale))
	return b.checkIndex()
}

// checkIndex has the index made anew if it does not hold as many documents as
// the store holds objects. Nothing known leads there; it costs nothing to look.
func (b *Broker) checkIndex() error {
	before := b.store.Cursor()
	b.mu.Lock()
	docs := b.index.Stats().Docs + len(b.damaged)
	b.mu.Unlock()
	objects := b.store.Count()
	mark, err := b.indexed()
	if err != nil || mark != before || b.store.Cursor() != before || int64(docs) == objects {
		return err
	}
	b.lg.Error("index does not agree with the store", "documents", docs, "objects", objects)
	return b.askReindex()
}

// reconcile compares store and registry, both in order of OID.
func (b *Broker) reconcile(ctx context.Context) (orphans, stale int, err error) {
	b.putting.Lock()
	defer b.putting.Unlock()
	var (
		drop    []store.OID
		deletes []store.Change
		last    *store.OID
		list    []entry
	)
	next := func() (e entry, ok bool, err error) {
		if len(list) == 0 {
			if list, err = b.registry.after(last, 4096); err != nil || len(list) == 0 {
				return entry{}, false, err
			}
			last = &list[len(list)-1].oid
		}
		e, list = list[0], list[1:]
		return e, true, nil
	}
	e, ok, err := next()
	for o, serr := range b.store.Scan(ctx, "", "") {
		if err = errors.Join(err, serr); err != nil {
			return 0, 0, err
		}
		for ok && bytes.Compare(e.oid[:], o.OID[:]) < 0 {
			drop = append(drop, e.oid)
			if e, ok, err = next(); err != nil {
				return 0, 0, err
			}
		}
		if ok && e.oid == o.OID {
			e, ok, err = next()
			continue
		}
		deletes = append(deletes, store.Change{Op: soif.Delete, OID: o.OID})
	}
	for ; ok && err == nil; e, ok, err = next() {
		drop = append(drop, e.oid)
	}
	if err != nil {
		return 0, 0, err
	}
	if len(deletes) > 0 {
		if _, err := b.store.Apply(ctx, deletes); err != nil {
			return 0, 0, err
		}
	}
	return len(deletes), len(drop), b.registry.drop(drop)
}
