package gather

import (
	"context"
	"errors"
	iofs "io/fs"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/store"
)

// A collecting is the state of what is selected and what is not.
//
// The file "selected" in the Gatherer's directory holds what stands for the
// selection by which both stores were put in order last. It is removed before
// anything is done that could leave them otherwise, and written when they are in
// order again: as long as it is not there, or of another selection, reselect has
// work to do, whatever happened in between.
type collecting struct {
	placed chan struct{}      // held while objects change their places, or come and go
	bests  map[copyKey]*rival // whoever holds placed has them
	moves  int                // counts what place has done, under placed

	cut atomic.Bool // a process ended in the middle of the last visit: see orphans.go

	selects chan struct{} // held by reselect
	ask     chan struct{} // a selection is to be carried out

	done, total atomic.Int64 // documents looked at by the reselect that runs, and all of them

	poolMu     sync.Mutex   // guards unselected
	unselected *store.Store // nil until there is an object for it
}

func newCollecting() *collecting {
	return &collecting{placed: make(chan struct{}, 1), bests: make(map[copyKey]*rival), selects: make(chan struct{}, 1), ask: make(chan struct{}, 1)}
}

// print stands for all that the collection depends on.
func (c *config) selectionPrint() string {
	return strconv.FormatUint(c.selection.print(c.duplicates), 16)
}

// isSettled reports whether both stores are as a config wants them.
func (g *Gatherer) isSettled(c *config) (bool, error) {
	have, err := readOr(g.path("selected"), "")
	return have == c.selectionPrint(), err
}

// unsettle notes that the stores may not be in order. placed is held.
func (g *Gatherer) unsettle() error {
	g.sel.moves++
	err := os.Remove(g.path("selected"))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(g.dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openUnselected opens the store of the unselected if there is one, and finds out
// whether there is anything to put in order.
func (g *Gatherer) openUnselected() error {
	if _, err := os.Stat(g.path("unselected")); err == nil {
		if _, err := g.pool(true); err != nil {
			return err
		}
	}
	ok, err := g.isSettled(g.conf)
	if err != nil || ok {
		return err
	}
	if g.store.Count() == 0 && g.hidden() == 0 {
		return nil // what comes is put where it belongs, and the visit sees to the rest
	}
	g.chooses = true
	g.askSelect()
	return nil
}

// chooseAnew has the selection of a new configuration carried out. mu is held.
func (g *Gatherer) chooseAnew() error {
	ok, err := g.isSettled(g.conf)
	if ok || err != nil || g.store.Count() == 0 && g.hidden() == 0 {
		return err
	}
	g.chooses = true
	g.askSelect()
	return nil
}

// hidden is how many objects are not in the collection.
func (g *Gatherer) hidden() int64 {
	if pool, _ := g.pool(false); pool != nil {
		return pool.Count()
	}
	return 0
}

// askSelect has Run carry out the selection.
func (g *Gatherer) askSelect() {
	select {
	case g.sel.ask <- struct{}{}:
	default: // it has been told
	}
}

// selectAll carries out selections when they are asked for, until ctx ends.
func (g *Gatherer) selectAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.sel.ask:
		}
		if err := g.reselect(ctx); err != nil && ctx.Err() == nil {
			g.lg.Error("select", "err", err)
			g.journal.event("error", ndb.Of("reason", err))
		}
	}
}

// lock takes one of the semaphores.
func lock(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reselect makes the collection what the configuration says, of what is known.
// Only what is not where it belongs is moved. It may be cut off at any point; the
// next goes on.
func (g *Gatherer) reselect(ctx context.Context) error {
	if err := lock(ctx, g.sel.selects); err != nil {
		return err
	}
	defer func() { <-g.sel.selects }()
	g.mu.Lock()
	c := g.conf
	g.mu.Unlock()
	if ok, err := g.isSettled(c); ok || err != nil {
		g.selected(c, nil, err)
		return err
	}
	start := time.Now()
	moves, err := g.disorder(ctx)
	if err != nil {
		return err
	}
	h, err := g.choose(ctx, c)
	took := time.Since(start)
	var in, out int
	if err == nil {
		in, out, err = g.carryOut(ctx, c, h)
	}
	if err == nil {
		err = g.settle(ctx, c, moves)
	}
	g.selected(c, h, err)
	if err != nil {
		return err
	}
	if in+out > 0 || !c.selection.all() {
		g.journal.event("selected", ndb.Of("in", in), ndb.Of("out", out), ndb.Of("objects", g.store.Count()),
			ndb.Of("copies", h.count[copied]), ndb.Of("chosen", took.Round(time.Millisecond)), ndb.Of("took", time.Since(start).Round(time.Millisecond)))
	}
	return nil
}

// selected notes what a reselect came to.
func (g *Gatherer) selected(c *config, h *choice, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h != nil && err == nil {
		g.chosen = h
	}
	if g.conf.selectionPrint() == c.selectionPrint() { // else the next is on its way
		g.chooses = false
	}
	g.sel.done.Store(0)
	g.sel.total.Store(0)
}

// disorder notes that a reselect begins to move objects, from here on whatever
// selection they were in order by: a configuration may change back before it ends.
func (g *Gatherer) disorder(ctx context.Context) (moves int, err error) {
	if err := lock(ctx, g.sel.placed); err != nil {
		return 0, err
	}
	defer func() { <-g.sel.placed }()
	err = g.unsettle()
	return g.sel.moves, err
}

// settle writes down that the stores are in order, unless a visit has changed
// them meanwhile: it selects when it ends.
func (g *Gatherer) settle(ctx context.Context, c *config, moves int) error {
	if err := lock(ctx, g.sel.placed); err != nil {
		return err
	}
	defer func() { <-g.sel.placed }()
	clear(g.sel.bests)
	if g.sel.moves != moves {
		return nil
	}
	return writeFile(g.path("selected"), c.selectionPrint()+"\n")
}

// choose finds out which documents are the collection.
func (g *Gatherer) choose(ctx context.Context, c *config) (*choice, error) {
	same, err := g.copies(ctx, c)
	if err != nil {
		return nil, err
	}
	h := new(choice)
	if err := g.markCopies(ctx, c, same, h); err != nil {
		return nil, err
	}
	if c.selection.all() { // nothing but copies has to be known
		h.sel, h.count = &c.selection, make(map[verdict]int)
		h.tally()
		return h, nil
	}
	return h, c.selection.choose(ctx, g.candidates(ctx), g.join, h)
}

// candidates yields what a selection sees of documents: those that were fetched
// and those that might be.
func (g *Gatherer) candidates(ctx context.Context) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		for d, err := range g.db.Documents(ctx, "") {
			switch {
			case err != nil:
				yield(candidate{}, err)
				return
			case d.State == crawl.Vanished || d.State == crawl.Barred || d.State == crawl.Away:
				continue
			}
			g.sel.done.Add(1)
			if !yield(candidate{id: uint32(d.ID), server: uint32(d.Server), url: d.URL, stored: d.State == crawl.Stored,
				inbound: d.Inbound, inlinks: d.InLinks, submitted: d.Submitted}, nil) {
				return
			}
		}
	}
}

// join adds the links between documents to a graph.
func (g *Gatherer) join(ctx context.Context, to *graph, node func(id uint32) (uint32, bool)) error {
	var nodes []uint32
	for l, err := range g.db.Links(ctx) {
		if err != nil {
			return err
		}
		from, ok := node(uint32(l.From))
		if !ok {
			continue
		}
		nodes = nodes[:0]
		for _, id := range l.To {
			if n, ok := node(uint32(id)); ok {
				nodes = append(nodes, n)
			}
		}
		to.link(from, nodes)
	}
	return nil
}

// of is what a choice says of a document; of one that came after it, what can be
// said of that one alone.
func (h *choice) of(d *crawl.Doc) verdict {
	v := h.get(uint32(d.ID))
	switch {
	case d.State != crawl.Stored:
		return unstored
	case v != unstored:
		return v
	case h.sel.all():
		return taken
	case !h.sel.plain():
		return untaken
	}
	return h.sel.alone(d.URL)
}

// alone is what a plain selection says of a document.
func (s *selection) alone(url string) verdict {
	d := candidate{url: url}
	for _, r := range s.out {
		if r.meets(&d) {
			return leftOut
		}
	}
	for i, r := range s.rules {
		if r.meets(&d) {
			return taken + verdict(i)
		}
	}
	if len(s.rules) == 0 {
		return taken
	}
	return untaken
}

// progress is how far the reselect that runs has come, "" when none does. mu is
// held.
func (g *Gatherer) progress() string {
	if !g.chooses && len(g.sel.selects) == 0 {
		return ""
	}
	done, total := g.sel.done.Load(), g.sel.total.Load()
	if total == 0 {
		return "choosing " + strconv.FormatInt(done, 10)
	}
	return "moving " + strconv.FormatInt(done*100/total, 10) + "%"
}

// rule is the line of a selection that takes what has a verdict.
func (s *selection) rule(v verdict) string {
	switch {
	case !v.in():
		return ""
	case len(s.rules) == 0:
		return "all"
	}
	return strings.TrimSpace(s.rules[v-taken].text)
}
