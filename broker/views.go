package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"harvest/broker/view"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
	"harvest/index/query"
)

// The views follow the index as the index follows the store: their mark is the
// cursor of the last change they have, and never past that of the index. So what
// a new query is answered by the index is at least as new as the views, and
// changes after their mark come to it as to any other.

// views are those of a Broker.
type views struct {
	b   *Broker
	set *view.Views

	filling sync.Mutex    // held by the one that follows or fills
	whole   uint64        // as in held, for who holds filling
	wake    chan struct{} // some view is not filled

	mu      sync.Mutex // guards what follows, and nothing that waits
	state   map[uint32]*viewState
	named   string        // the manner in which the queries are asked
	changes uint32        // moves when views come and go
	spent   time.Duration // on matching, since the start
	seen    int64         // documents matched
}

const viewsName = "views.db"

func openViews(b *Broker, c *config, files indexFiles) (*views, error) {
	v := &views{b: b, wake: make(chan struct{}, 1), state: make(map[uint32]*viewState)}
	how, named, err := viewManner(c, files)
	if err != nil {
		return nil, err
	}
	v.named = named
	v.set, err = view.Open(filepath.Join(b.dir, viewsName), how, named, v.docs)
	return v, err
}

// viewManner is how a document is matched with the queries of views, and what
// stands for that: as a search of the index would, without words left out.
func viewManner(c *config, files indexFiles) (how view.Manner, named string, err error) {
	how.Weight, how.NoNumbers = c.weight, !files.numbers
	if c.index.stem != "" && c.index.stem != "no" {
		how.Stem, err = index.Stemmer(c.index.stem)
	}
	return how, fmt.Sprintf("numbers=%v stem=%s weights=%v", files.numbers, c.index.stem, c.weighed()), err
}

// docs estimates how many documents have a word, for the choice of what to look
// for first.
func (v *views) docs(word string) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if v.b.index == nil {
		return 1
	}
	err := v.b.using(func(h *held) error {
		r, err := h.Search(ctx, query.Word{Text: word}, index.Options{Limit: 1, Count: !h.files.reads(), Rank: index.RankNone})
		n = r.Total
		return err
	})
	if err != nil {
		return 1
	}
	return n
}

// standing is what a view asks for when a query is given it: words side by side
// are to stand there all, since there are no ranks to have some first.
func standing(q query.Node) (query.Node, error) {
	if bag, ok := q.(query.Bag); ok {
		q = query.And(bag)
	}
	var bad error
	query.Map(q, func(n query.Node, _ string) query.Node {
		if f, ok := n.(query.Fuzzy); ok && f.Best {
			bad = fmt.Errorf("%s: a view is to know how many errors it may have, as in %s1: %w", f, f, iofs.ErrInvalid)
		}
		return nil
	})
	return q, bad
}

// run has the views follow, until ctx ends.
func (v *views) run(ctx context.Context) {
	for fails := 0; ctx.Err() == nil; {
		v.b.mu.Lock()
		followed := v.b.followed
		v.b.mu.Unlock()
		err := v.follow(ctx)
		v.b.shown.complain("views", "", err)
		var again <-chan time.Time
		if err != nil && ctx.Err() == nil {
			fails++
			v.b.lg.Error("views", "err", err)
			again = time.After(retry(fails, 5*time.Minute))
		} else {
			fails = 0
		}
		select {
		case <-ctx.Done():
		case <-followed:
		case <-v.wake:
		case <-again:
		}
	}
}

// followTogether is how many changes are taken with one wait for the disk.
const viewsTogether = 1000

// follow brings the views to where the index is, and fills those that are not.
func (v *views) follow(ctx context.Context) error {
	v.filling.Lock()
	defer v.filling.Unlock()
	for more := true; more; {
		var err error
		more, err = v.take(ctx)
		if errors.Is(err, store.ErrCursor) {
			err = v.restart()
			more = err == nil
		}
		if err != nil {
			return err
		}
	}
	return v.fill(ctx, v.set.Unfilled())
}

// restart begins anew where the index is: all views are to be filled again.
func (v *views) restart() error {
	at, err := v.b.indexed()
	if err != nil {
		return err
	}
	if err := v.set.Restart(at.String()); err != nil {
		return err
	}
	v.b.lg.Warn("views are filled anew")
	return nil
}

// mark is up to where the views are.
func (v *views) mark() (store.Cursor, error) {
	text, err := v.set.Mark()
	if err != nil || text == "" {
		return store.Cursor{}, err
	}
	return v.b.store.ParseCursor(text)
}

// take takes the next changes, and says whether there may be more.
func (v *views) take(ctx context.Context) (more bool, err error) {
	until, err := v.b.indexed()
	if err != nil {
		return false, err
	}
	if all, _ := v.set.Len(); all == 0 {
		return false, nil // the first begins where the index is
	}
	h := v.b.hold()
	_, err = v.manner(h.files)
	h.release()
	if err != nil {
		return false, err
	}
	after, err := v.mark()
	if err != nil || after.Seq >= until.Seq {
		return false, err
	}
	var (
		changes []view.Change
		oids    []store.OID
		url     = make(map[index.ID]string)
		last    = until.Seq
	)
	whole := true
	for rec, err := range v.b.store.Changes(ctx, after) {
		if err != nil {
			return false, err
		}
		if rec.Entry.Seq > until.Seq {
			whole = false
			break
		}
		if len(changes)+len(oids) == viewsTogether {
			more = true
			break
		}
		last = rec.Entry.Seq
		oid := rec.Entry.OID
		switch rec.Op {
		case soif.Delete:
			changes = append(changes, view.Change{ID: index.ID(oid)})
		case soif.Refresh:
			if rec.Entry.Body <= v.whole {
				continue
			}
			oids = append(oids, oid)
		case soif.Update:
			oids = append(oids, oid)
		}
		url[index.ID(oid)] = rec.Entry.URL
	}
	if !more {
		last = until.Seq
	}
	updates, err := v.documents(ctx, oids)
	if err != nil {
		return false, err
	}
	begin := time.Now()
	events, err := v.set.Apply(store.Cursor{Epoch: until.Epoch, Seq: last}.String(), append(changes, updates...))
	if err != nil {
		return false, err
	}
	if whole && !more {
		v.whole = until.Seq
	}
	v.mu.Lock()
	v.spent += time.Since(begin)
	v.seen += int64(len(oids))
	v.mu.Unlock()
	v.tell(events, url)
	return more, nil
}

// documents reads objects. One that cannot be read is in no view, as it is not
// in the index.
func (v *views) documents(ctx context.Context, oids []store.OID) (list []view.Change, err error) {
	var bad error
	err = v.b.store.Bodies(ctx, oids, func(i int, body []byte, err error) bool {
		ch := view.Change{ID: index.ID(oids[i])}
		var o soif.Object
		if err == nil {
			o, _, err = soif.Parse(body, soif.Limits{})
		}
		switch {
		case err == nil:
			ch.Fields = document(oids[i], &o).Fields
		case !unreadable(err):
			bad = err
			return false
		}
		list = append(list, ch)
		return true
	})
	return list, errors.Join(err, bad)
}

// fill answers the queries of views.
func (v *views) fill(ctx context.Context, list []view.View) error {
	for _, w := range list {
		docs, err := v.find(ctx, w.Query)
		if errors.Is(err, errBehind) {
			return nil // until it has followed
		}
		if err == nil {
			err = v.set.Fill(ctx, w.Name, docs, func(events []view.Event) { v.tell(events, nil) })
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) { // it was removed meanwhile
			return fmt.Errorf("view %s: %w", w.Name, err)
		}
	}
	return nil
}

// errBehind says that an index, made anew, is not yet where the views are.
var errBehind = fmt.Errorf("the index is behind: %w", syscall.EAGAIN)

// find gives all documents that a query matches.
func (v *views) find(ctx context.Context, q query.Node) (docs []index.ID, err error) {
	if q == nil {
		return nil, nil
	}
	at, err := v.mark()
	if err != nil {
		return nil, err
	}
	err = v.b.using(func(h *held) error {
		if mark, err := v.b.marked(h); err != nil || mark.Seq < at.Seq {
			return errors.Join(err, errBehind)
		}
		how, err := v.manner(h.files)
		if err != nil {
			return err
		}
		opt := how.Options
		opt.Rank = index.RankNone
		r, err := h.Search(ctx, q, opt)
		if err == nil && r.Cut != "" {
			err = fmt.Errorf("it is too much: %s: %w", r.Cut, syscall.E2BIG)
		}
		docs = docs[:0]
		for i := range r.Hits {
			docs = append(docs, r.Hits[i].ID)
		}
		return err
	})
	return docs, err
}

// manner has the queries asked as the config and an index say.
func (v *views) manner(files indexFiles) (view.Manner, error) {
	v.b.mu.Lock()
	c := v.b.config
	v.b.mu.Unlock()
	how, named, err := viewManner(c, files)
	v.mu.Lock()
	same := v.named == named
	v.named = named
	v.mu.Unlock()
	if err == nil && !same {
		err = v.set.Use(how, named, v.docs)
	}
	return how, err
}

// make makes a view.
func (v *views) make(name, owner string) (view.View, error) {
	v.filling.Lock()
	defer v.filling.Unlock()
	if all, _ := v.set.Len(); all == 0 {
		at, err := v.b.indexed()
		if err != nil {
			return view.View{}, err
		}
		if err := v.set.Restart(at.String()); err != nil {
			return view.View{}, err
		}
	}
	w, err := v.set.Make(name, owner)
	if err == nil {
		v.mu.Lock()
		v.changes++
		v.mu.Unlock()
	}
	return w, err
}

// setQuery gives a view another query; it returns when the members are those
// that match, or, if ctx ends, leaves that to run.
func (v *views) setQuery(ctx context.Context, name, text string) error {
	q, err := query.Parse(strings.TrimSpace(text))
	if err == nil {
		q, err = standing(q)
	}
	if err != nil {
		return err
	}
	v.b.settle(ctx)
	v.filling.Lock()
	defer v.filling.Unlock()
	before, err := v.set.After(name, index.ID{}, everything)
	if err != nil {
		return err
	}
	list, err := v.set.SetQuery(name, q)
	if err != nil {
		return err
	}
	s := v.stateOf(name)
	s.mu.Lock()
	s.before = slices.Concat([]index.ID{}, before)
	s.mu.Unlock()
	if err := v.fill(ctx, list); ctx.Err() == nil {
		return err
	}
	v.poke()
	return nil
}

// poke has run look again.
func (v *views) poke() {
	select {
	case v.wake <- struct{}{}:
	default: // told already
	}
}

// edit puts an object into a view by hand, or takes it out.
func (v *views) edit(name string, op view.Op, oid store.OID) error {
	v.filling.Lock()
	defer v.filling.Unlock()
	body, _, err := v.b.store.Get(oid)
	if err != nil {
		return err
	}
	o, _, err := soif.Parse(body, soif.Limits{})
	if err != nil {
		return err
	}
	doc := document(oid, &o)
	events, err := v.set.Edit(name, op, view.Change{ID: doc.ID, Fields: doc.Fields})
	v.tell(events, map[index.ID]string{doc.ID: o.URL})
	return err
}

// remove removes a view.
func (v *views) remove(name string) error {
	v.filling.Lock()
	defer v.filling.Unlock()
	w, err := v.set.Get(name)
	if err == nil {
		err = v.set.Remove(name)
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.state, w.ID)
	v.changes++
	return nil
}

// vers moves when views come and go.
func (v *views) vers() uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changes
}

// answer is what a view has, as that to a query: the newest first.
func (v *views) answer(name string) (*answer, error) {
	w, err := v.set.Get(name)
	if err != nil {
		return nil, err
	}
	s := v.stateOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && s.seq == w.Seq && s.answer.total == w.Members {
		return s.answer, nil
	}
	begin := time.Now()
	list, err := v.set.Newest(name)
	if err != nil {
		return nil, err
	}
	a := &answer{b: v.b, q: w.Query, manner: plain(), hits: make([]hit, len(list)), total: len(list), time: begin, mark: fmt.Sprint(w.Seq)}
	for i, id := range list {
		a.hits[i] = hit{store.OID(id), 1}
	}
	a.took = time.Since(begin)
	s.answer, s.seq = a, w.Seq
	return a, nil
}

// parseCursor reads a cursor of a view: 0, or what a stream ended with.
func (v *views) parseCursor(name, text string) (after uint64, err error) {
	if text == "0" {
		return 0, nil
	}
	epoch, seq, ok := strings.Cut(text, ".")
	e, err1 := strconv.ParseUint(epoch, 16, 32)
	after, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil || text != (store.Cursor{Epoch: uint32(e), Seq: after}).String() {
		return 0, notExist(text)
	}
	if uint32(e) != v.set.Epoch() {
		return 0, fmt.Errorf("cursor %s: of another epoch: %w", text, store.ErrCursor)
	}
	_, err = v.set.Since(name, after, 0)
	return after, err
}

// everything is a bound for what is not to be bounded.
const everything = int(^uint(0) >> 1)

// diff gives what has joined and left since the query of a view changed last.
func (v *views) diff(name string, yield func(view.Op, store.OID) error) error {
	s := v.stateOf(name)
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	now, err := v.set.After(name, index.ID{}, everything)
	for err == nil && len(before)+len(now) > 0 {
		c := 1
		if len(before) > 0 {
			if c = -1; len(now) > 0 {
				c = bytes.Compare(before[0][:], now[0][:])
			}
		}
		switch {
		case c < 0:
			err = yield(view.Left, store.OID(before[0]))
			before = before[1:]
		case c > 0:
			err = yield(view.Joined, store.OID(now[0]))
			now = now[1:]
		default:
			before, now = before[1:], now[1:]
		}
	}
	return err
}

// A viewState is what is kept of a view for its side of the tree, while the
// process runs.
type viewState struct {
	shownView

	mu     sync.Mutex
	answer *answer
	seq    uint64     // of the view when that was made
	before []index.ID // the members when the query was changed last, in order; nil: it was not
}

// stateOf gives the state of a view; of one that is gone, one that nobody sees.
func (v *views) stateOf(name string) *viewState {
	w, err := v.set.Get(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.state[w.ID]
	if s == nil {
		s = &viewState{shownView: v.b.newShownView(w)}
		if err == nil {
			v.state[w.ID] = s
		}
	}
	return s
}

// tell puts events into those of their views.
func (v *views) tell(events []view.Event, url map[index.ID]string) {
	now := time.Now()
	for _, e := range events {
		u, ok := url[e.ID]
		if !ok {
			if entry, err := v.b.store.Stat(store.OID(e.ID)); err == nil {
				u = entry.URL
			}
		}
		v.stateOf(e.View).tell(ndb.Format(ndb.Of("time", now), ndb.Of("event", e.Op), ndb.Of("oid", store.OID(e.ID)), ndb.Of("url", u)))
	}
	seen := make(map[string]bool)
	for _, e := range events {
		if !seen[e.View] {
			seen[e.View] = true
			v.stateOf(e.View).changed()
		}
	}
}

// figures are what status tells of the views.
func (v *views) figures() (pairs []ndb.Pair) {
	all, bare := v.set.Len()
	if all == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	pairs = []ndb.Pair{ndb.Of("views", all), ndb.Of("tried-always", bare)}
	if v.seen > 0 {
		pairs = append(pairs, ndb.Of("took-each", (v.spent/time.Duration(v.seen)).Round(time.Microsecond)))
	}
	return pairs
}
