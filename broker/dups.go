package broker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"harvest/broker/near"
	"harvest/gather/dup"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index/segfile"
)

// Duplicates: objects whose MD5 and File-Size are the same are copies, those
// whose words resemble each other by so much are near ones. The index of
// package near follows the store as the index of words does, behind it; the
// folder near can be deleted and comes back from the objects.

// dups are the duplicates of a Broker.
type dups struct {
	b     *Broker
	plain *config // whose weights tell which attributes are about an object

	mu     sync.RWMutex // guards what follows
	index  *near.Index
	of     map[store.OID]*copies // the group of each object that has copies
	stale  bool                  // of is to be made anew
	failed bool                  // the last follow did
}

// copies are objects with the same bytes, two or more, the one to be shown
// first.
type copies struct {
	bytes near.Bytes
	oids  []store.OID
}

// A rival is one of several objects of which one is shown.
type rival struct {
	oid   store.OID
	url   string
	score dup.Score
}

// beats orders rivals as a Gatherer does: by the score of their URLs, equals by
// these.
func beats(a, b rival) int {
	return cmp.Or(cmp.Compare(b.score.Sum(), a.score.Sum()), strings.Compare(a.url, b.url), bytes.Compare(a.oid[:], b.oid[:]))
}

const nearName = "near"

func openDups(b *Broker) (*dups, error) {
	d := &dups{b: b, plain: defaultConfig(), of: make(map[store.OID]*copies)}
	err := d.open()
	if errors.Is(err, segfile.ErrCorrupt) || errors.Is(err, segfile.ErrSettings) {
		b.lg.Warn("duplicates are found anew", "err", err)
		err = d.anew()
	}
	return d, err
}

func (d *dups) dir() string { return filepath.Join(d.b.dir, nearName) }

func (d *dups) open() error {
	x, err := near.Open(d.dir())
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.index, d.stale = x, true
	d.mu.Unlock()
	return d.regroup(context.Background())
}

// anew begins with an empty index, to be made from the store.
func (d *dups) anew() error {
	if x := d.now(); x != nil {
		x.Close()
	}
	if err := os.RemoveAll(d.dir()); err != nil {
		return err
	}
	return d.open()
}

func (d *dups) now() *near.Index {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.index
}

func (d *dups) close() error {
	if x := d.now(); x != nil {
		return x.Close()
	}
	return nil
}

// mark is up to where the duplicates are known.
func (d *dups) mark() (store.Cursor, error) {
	mark := d.now().Mark()
	if mark == "" {
		return store.Cursor{}, nil
	}
	return d.b.store.ParseCursor(mark)
}

// awaited tells whether who waits for a change is to wait for the duplicates too.
func (d *dups) awaited(seq uint64) bool {
	d.mu.RLock()
	failed := d.failed
	d.mu.RUnlock()
	return !failed && d.behind(seq)
}

// behind tells whether a change is not looked at yet, though it will be.
func (d *dups) behind(seq uint64) bool {
	at, err := d.mark()
	return err == nil && at.Seq < seq
}

// follow brings the duplicates to the state of the store at the call or later.
// Called with following held. What goes wrong is told, and tried again with the
// next change: objects are found without it.
func (d *dups) follow(ctx context.Context) {
	err := d.catchUp(ctx)
	if errors.Is(err, store.ErrCursor) || errors.Is(err, segfile.ErrCorrupt) {
		d.b.lg.Warn("duplicates are found anew", "err", err)
		if err = d.anew(); err == nil {
			err = d.catchUp(ctx)
		}
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.b.lg.Error("duplicates", "err", err)
		err = errors.Join(err, d.reopen())
	}
	d.mu.Lock()
	was := d.failed
	d.failed = err != nil
	d.mu.Unlock()
	if err != nil || was {
		d.b.shown.complain("duplicates", "", err)
	}
}

// reopen opens the index again after it has failed, as it may not be what it
// was.
func (d *dups) reopen() error {
	d.now().Close()
	return d.open()
}

// How many changes are taken at a time, first and at most, and of how many the
// groups are kept up one by one rather than read as a whole.
const (
	dupsFirst = 4 << 10
	dupsMost  = 64 << 10
	dupsFew   = 1 << 10
)

func (d *dups) catchUp(ctx context.Context) error {
	for n, more := dupsFirst, true; more; n = min(2*n, dupsMost) {
		var err error
		if more, err = d.take(ctx, n); err != nil {
			return err
		}
	}
	x := d.now()
	for more := true; more; {
		var err error
		if more, err = x.Merge(ctx); err != nil {
			return err
		}
	}
	d.mu.RLock()
	stale := d.stale
	d.mu.RUnlock()
	if stale {
		return d.regroup(ctx)
	}
	return nil
}

// take takes the next changes, at most so many, and says whether there were
// more.
func (d *dups) take(ctx context.Context, most int) (more bool, err error) {
	after, err := d.mark()
	if err != nil {
		return false, err
	}
	last := after
	var puts []store.OID
	var gone []near.ID
	for rec, err := range d.b.store.Changes(ctx, after) {
		if err != nil {
			return false, err
		}
		if len(puts)+len(gone) == most {
			more = true
			break
		}
		last = store.Cursor{Epoch: d.b.store.Cursor().Epoch, Seq: rec.Entry.Seq}
		switch rec.Op {
		case soif.Delete:
			gone = append(gone, near.ID(rec.Entry.OID))
		case soif.Update:
			puts = append(puts, rec.Entry.OID)
		}
	}
	if last == after {
		return false, nil
	}
	docs, err := d.read(ctx, puts)
	if err != nil {
		return false, err
	}
	if err := d.now().Apply(docs, gone, last.String()); err != nil {
		return false, err
	}
	return more, d.group(ctx, docs, gone)
}

// read makes docs of objects. One that cannot be read is no duplicate.
func (d *dups) read(ctx context.Context, oids []store.OID) (docs []near.Doc, err error) {
	docs = make([]near.Doc, 0, len(oids))
	var k dup.Sketcher
	var bad error
	err = d.b.store.Bodies(ctx, oids, func(i int, body []byte, err error) bool {
		doc := near.Doc{ID: near.ID(oids[i])}
		var o soif.Object
		if err == nil {
			o, _, err = soif.Parse(body, soif.Limits{})
		}
		switch {
		case err == nil:
			doc.Bytes = bytesOf(&o)
			doc.Sketch = d.sketch(&k, &o)
		case !unreadable(err):
			bad = err
			return false
		}
		docs = append(docs, doc)
		return ctx.Err() == nil
	})
	return docs, errors.Join(err, bad, ctx.Err())
}

// bytesOf is what an object says of the bytes it is of.
func bytesOf(o *soif.Object) (b near.Bytes) {
	sum, err := hex.DecodeString(strings.TrimSpace(o.Text("MD5")))
	if err != nil || len(sum) != len(b.MD5) {
		return b
	}
	b.MD5 = [16]byte(sum)
	b.Size, _ = strconv.ParseUint(strings.TrimSpace(o.Text("File-Size")), 10, 64)
	return b
}

// sketch is that of an object's text: its Full-Text if it has one, else of all
// attributes that are about it.
func (d *dups) sketch(k *dup.Sketcher, o *soif.Object) dup.Sketch {
	const fullText = "full-text"
	full := slices.ContainsFunc(o.Attrs, func(a soif.Attr) bool { return strings.EqualFold(a.Name, fullText) })
	for _, f := range appendFields(nil, o) {
		name := strings.ToLower(f.Name)
		if full && name == fullText || !full && d.plain.weight(name) > 0 {
			k.Add(f.Text)
		}
	}
	return k.Sketch()
}

// group brings the groups up to date with what was applied.
func (d *dups) group(ctx context.Context, puts []near.Doc, gone []near.ID) error {
	changed := make(map[near.Bytes]*copies) // as they were, if there was a group
	d.mu.Lock()
	d.stale = d.stale || len(puts)+len(gone) > dupsFew
	if d.stale {
		d.mu.Unlock()
		return nil
	}
	for _, id := range gone {
		if g := d.of[store.OID(id)]; g != nil {
			changed[g.bytes] = g
		}
	}
	for i := range puts {
		if g := d.of[store.OID(puts[i].ID)]; g != nil {
			changed[g.bytes] = g
		}
	}
	for i := range puts {
		if of := puts[i].Bytes; of != (near.Bytes{}) && changed[of] == nil {
			changed[of] = nil
		}
	}
	d.mu.Unlock()
	for of, was := range changed {
		if err := d.set(ctx, of, was); err != nil {
			return err
		}
	}
	return nil
}

// set makes the group of objects with those bytes, if there are two, in place of
// the one there was.
func (d *dups) set(ctx context.Context, of near.Bytes, was *copies) error {
	ids, err := d.now().Copies(of)
	if err != nil {
		return err
	}
	var list []rival
	if len(ids) > 1 {
		if list, err = d.rivals(ctx, ids); err != nil {
			return err
		}
		if g := d.copiesOf(store.OID(ids[0])); was == nil && g != nil && g.bytes == of {
			was = g
		}
	}
	g := &copies{bytes: of, oids: oidsOf(list)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if was != nil {
		for _, oid := range was.oids {
			if d.of[oid] == was { // else it is of another group by now
				delete(d.of, oid)
			}
		}
	}
	if len(g.oids) > 1 {
		for _, oid := range g.oids {
			d.of[oid] = g
		}
	}
	return nil
}

func oidsOf(list []rival) []store.OID {
	oids := make([]store.OID, len(list))
	for i, r := range list {
		oids[i] = r.oid
	}
	return oids
}

// rivals scores objects, the one to be shown first. Those that have left the
// store are left out.
func (d *dups) rivals(ctx context.Context, ids []near.ID) (list []rival, err error) {
	oids := make([]store.OID, len(ids))
	for i, id := range ids {
		oids[i] = store.OID(id)
	}
	err = d.b.store.Entries(ctx, oids, func(i int, e *store.Entry) bool {
		list = append(list, rival{oids[i], e.URL, dup.ScoreOf(e.URL, 0, 0)})
		return true
	})
	slices.SortFunc(list, beats)
	return list, err
}

// regroup makes all groups anew from the index.
func (d *dups) regroup(ctx context.Context) error {
	all := make(map[store.OID]*copies)
	err := d.eachCopies(ctx, func(of near.Bytes, list []rival) bool {
		g := &copies{of, oidsOf(list)}
		for _, oid := range g.oids {
			all[oid] = g
		}
		return true
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of, d.stale = all, false
	return nil
}

// eachCopies calls yield for each group, until it returns false, the one to be
// shown first.
func (d *dups) eachCopies(ctx context.Context, yield func(of near.Bytes, list []rival) bool) error {
	w := groupWalk{d: d, ctx: ctx, yield: yield}
	var err error
	ierr := d.now().EachCopies(ctx, func(of near.Bytes, ids []near.ID) bool {
		w.bytes = append(w.bytes, of)
		var more bool
		more, err = w.add(ids)
		return more && err == nil
	})
	if ierr == nil && err == nil {
		_, err = w.flush()
	}
	return errors.Join(ierr, err)
}

// A groupWalk looks the objects of groups up thousands at a time, which costs
// one look into the store.
type groupWalk struct {
	d     *dups
	ctx   context.Context
	yield func(of near.Bytes, list []rival) bool
	bytes []near.Bytes
	oids  []store.OID
	in    []int // the group of each
	done  bool
}

func (w *groupWalk) add(ids []near.ID) (more bool, err error) {
	const together = 4096
	for _, id := range ids {
		w.oids = append(w.oids, store.OID(id))
		w.in = append(w.in, len(w.bytes)-1)
	}
	if len(w.oids) < together {
		return true, nil
	}
	return w.flush()
}

func (w *groupWalk) flush() (more bool, err error) {
	groups := make([][]rival, len(w.bytes))
	err = w.d.b.store.Entries(w.ctx, w.oids, func(i int, e *store.Entry) bool {
		g := w.in[i]
		groups[g] = append(groups[g], rival{w.oids[i], e.URL, dup.ScoreOf(e.URL, 0, 0)})
		return true
	})
	for i, list := range groups {
		if slices.SortFunc(list, beats); err == nil && len(list) > 1 && !w.done {
			w.done = !w.yield(w.bytes[i], list)
		}
	}
	w.bytes, w.oids, w.in = w.bytes[:0], w.oids[:0], w.in[:0]
	return !w.done, err
}

// copiesOf is the group of an object, nil if it has no copies.
func (d *dups) copiesOf(oid store.OID) *copies {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.of[oid]
}

// any tells whether any object has a copy.
func (d *dups) any() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.of) > 0
}

// figures are how many objects have copies, and how many of them are not shown
// for that.
func (d *dups) figures() (objects, hidden int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for oid, g := range d.of {
		if g.oids[0] != oid {
			hidden++
		}
	}
	return len(d.of), hidden
}

// sketchOf is the sketch of an object; false if there is none.
func (d *dups) sketchOf(oid store.OID) (dup.Sketch, bool, error) {
	doc, ok, err := d.now().Get(near.ID(oid))
	if err == nil && !ok {
		if _, err = d.b.store.Stat(oid); errors.Is(err, iofs.ErrNotExist) {
			return dup.Sketch{}, false, err
		}
	}
	return doc.Sketch, ok && !doc.Sketch.None(), err
}
