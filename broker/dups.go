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
	untidy bool                  // a sketching has left segments that may be merged
	whole  uint64                // what has changed up to here was taken, by one who went to the end; see take
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
	d.index, d.stale, d.whole = x, true, 0
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
