package crawl

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	iofs "io/fs"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// A visit is one run over a plan. Its goroutines, and who waits for them:
//
//	serve       one for each origin, with its fetchers; run waits until none runs
//	fileWorker  for the files that walks of trees find; run waits
//	commitAll   the only writer of documents; run waits after all others
//
// Pages flow from fetchers and files to commit through out, which is drained to
// its end whatever happens, so that no sender waits for ever.
type visit struct {
	f     *DB
	plan  Plan
	rt    http.RoundTripper
	h     Handler
	c     *Counts
	roots map[uint64]*Root
	state Visited
	began time.Time // or was taken up

	slots chan struct{} // held for a page of a web server, from request to out
	jobs  chan *Page    // files found by walks
	out   chan *Page

	workers sync.WaitGroup
	spawn   func(*server) // starts serving it; mu is held

	// mu guards what follows and the fields of servers and trees that say so.
	// cond tells of every change to them, and changes counts those.
	mu      sync.Mutex
	cond    *sync.Cond
	changes uint64
	byName  map[string]*server
	known   map[uint64]int // documents by root
	full    map[uint64]bool
	stopped bool // servers are to end
	closed  bool // no server may start any more

	seen map[uint64]bool // of URLs met, used by commit: true when dealt with for good
	seed maphash.Seed
}

// maxSeen bounds the memory of URLs met; past it, the database is asked again.
const maxSeen = 1 << 20

func newVisit(f *DB, p Plan, rt http.RoundTripper, h Handler, c *Counts) (*visit, error) {
	v := &visit{
		f: f, plan: p, rt: rt, h: h, c: c,
		roots:  make(map[uint64]*Root),
		byName: make(map[string]*server),
		known:  make(map[uint64]int),
		full:   make(map[uint64]bool),
		seen:   make(map[uint64]bool),
		began:  time.Now(),
		seed:   maphash.MakeSeed(),
		jobs:   make(chan *Page, 64),
		out:    make(chan *Page, 64),
	}
	v.cond = sync.NewCond(&v.mu)
	l := &v.plan.Limits
	defaults := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	defaults(&l.Head, 4<<20)
	defaults(&l.Tries, 4)
	defaults(&l.Pages, 16)
	defaults(&l.Files, runtime.GOMAXPROCS(0))
	defaults(&l.Servers, 8)
	if l.Body <= 0 {
		l.Body = 256 << 20
	}
	if l.Time <= 0 {
		l.Time = 2 * time.Minute
	}
	if l.Wait <= 0 {
		l.Wait = 5 * time.Minute
	}
	v.slots = make(chan struct{}, l.Pages)
	for _, r := range p.Roots {
		u, err := Canonical(r.URL)
		if err != nil {
			return nil, err
		}
		r.URL = u
		if r.Delay < 0 {
			r.Delay = DefaultDelay
		}
		v.roots[RootID(u)] = &r
	}
	return v, nil
}

func (v *visit) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v.spawn = func(s *server) {
		s.running = true
		go v.serve(ctx, s) // close waits for it
	}
	if err := v.begin(ctx); err != nil {
		return err
	}
	defer v.leave()
	defer context.AfterFunc(ctx, func() {
		v.mu.Lock()
		v.stopped = true
		v.changed()
		v.mu.Unlock()
	})()

	for range v.plan.Limits.Files {
		v.workers.Go(func() { v.fileWorker(ctx) })
	}
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		v.commitAll(ctx, cancel)
	}()
	v.mu.Lock()
	for _, s := range v.byName {
		if !s.running {
			v.spawn(s)
		}
	}
	v.mu.Unlock()
	v.close()
	close(v.jobs)
	v.workers.Wait()
	close(v.out)
	<-committed
	v.keepPace()
	err := context.Cause(ctx)
	if err == nil {
		err = v.end(ctx)
	}
	if err != nil {
		err = errors.Join(err, v.f.db.Update(func(tx *bbolt.Tx) error { return putCounts(tx, v.c, time.Since(v.began)) }))
	}
	return err
}

// begin opens a visit or takes up the one that was cut off, and makes v the
// visit that Add tells.
func (v *visit) begin(ctx context.Context) error {
	f := v.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.visit != nil {
		return fmt.Errorf("a visit runs: %w", syscall.EBUSY)
	}
	err := f.db.Update(func(tx *bbolt.Tx) error {
		s := getVisited(tx)
		switch {
		case !s.Open:
			s = Visited{Number: s.Number + 1, Open: true, Queued: v.plan.Queued, Force: v.plan.Force,
				Started: time.Now(), Ended: s.Ended, seeded: v.plan.Queued}
		case s.Queued && !v.plan.Queued: // only what was queued, and now everything
			s.Queued, s.seeded, s.Force = false, false, v.plan.Force
		}
		v.state = s
		return putVisited(tx, &s)
	})
	if err == nil {
		err = v.seedAll(ctx)
	}
	if err == nil {
		err = v.countQueue(ctx)
	}
	if err == nil {
		f.visit = v
	}
	return err
}

// close waits until no server runs, after which none may start.
func (v *visit) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	running := func() bool {
		for _, s := range v.byName {
			if s.running {
				return true
			}
		}
		return false
	}
	for running() {
		v.cond.Wait()
	}
	v.closed = true
}

// changed wakes all who wait for something that mu guards. mu is held.
func (v *visit) changed() {
	v.changes++
	v.cond.Broadcast()
}

func (v *visit) leave() {
	v.f.mu.Lock()
	v.f.visit = nil
	v.f.mu.Unlock()
}

// seedAll queues the roots, and every document of a web server that is known.
// Whether it is still linked from somewhere is not asked: it is there or not.
func (v *visit) seedAll(ctx context.Context) error {
	if !v.state.seeded {
		if err := v.f.db.Update(v.seedRoots); err != nil {
			return err
		}
	}
	var due []Doc
	flush := func() error {
		err := v.f.db.Update(func(tx *bbolt.Tx) error {
			for i := range due {
				order := Breadth
				if r := v.roots[due[i].Root]; r != nil {
					order = r.Search
				}
				if err := enqueue(tx, &due[i], order, 0); err != nil {
					return err
				}
			}
			return nil
		})
		due = due[:0]
		return err
	}
	for d, err := range v.f.Documents(ctx, "") {
		if errors.Is(err, errRecord) {
			continue
		}
		if err != nil {
			return err
		}
		if r := v.roots[d.Root]; d.State != Vanished && r != nil && (d.URL != r.URL || polite(r.URL)) {
			v.known[d.Root]++
		}
		if v.state.seeded || !v.isDue(&d) {
			continue
		}
		if due = append(due, d); len(due) >= 1000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil || v.state.seeded {
		return err
	}
	v.state.seeded = true
	return v.f.db.Update(func(tx *bbolt.Tx) error { return putVisited(tx, &v.state) })
}

func (v *visit) seedRoots(tx *bbolt.Tx) error {
	for id, r := range v.roots {
		d, known := getDoc(tx, r.URL)
		if !known {
			d.State = New
		}
		if d.Visit == v.state.Number && d.queued == nil && known {
			continue // dealt with before the visit was cut off
		}
		d.Root, d.Depth = id, 0
		if err := enqueue(tx, &d, r.Search, seedURL); err != nil {
			return err
		}
	}
	return nil
}

// isDue reports whether a known document is to be asked for, other than by the
// walk of a tree.
func (v *visit) isDue(d *Doc) bool {
	if d.Queued() || d.Visit >= v.state.Number || d.State == Vanished {
		return false
	}
	if d.Root == 0 { // by hand; but what lies in a tree is found by its walk
		return polite(Origin(d.URL)) || v.covers(d.URL) == nil
	}
	r := v.roots[d.Root]
	return r != nil && polite(Origin(d.URL)) && v.excluded(d.URL, r, d.Depth) == ""
}

// countQueue learns how much is queued for which server.
func (v *visit) countQueue(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for u, err := range v.f.Queue(ctx) {
		if err != nil {
			return err
		}
		s := v.server(Origin(u))
		s.pending++
		if s.polite {
			v.c.Found.Add(1)
		}
	}
	v.tally()
	return nil
}

// added hears from Add that URLs have come into the queue. If the visit is at
// its end they are left to the next.
func (v *visit) added(urls []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, u := range urls {
		v.more(v.server(Origin(u)), 1)
	}
	v.tally()
	v.changed()
}

// more notes that n entries have come into a server's queue, or left it, and
// sees to it that they are served. mu is held.
func (v *visit) more(s *server, n int) {
	s.pending += n
	if s.pending > 0 && !s.running && !s.parked && !v.closed && !v.stopped {
		v.spawn(s)
	}
}

// tally publishes how much is queued. mu is held.
func (v *visit) tally() {
	n := 0
	for _, s := range v.byName {
		n += s.pending + s.walking
	}
	v.c.Queued.Store(int64(n))
}

// idle reports whether nothing is left that any server could do. mu is held.
func (v *visit) idle() bool {
	if v.stopped {
		return true
	}
	for _, s := range v.byName {
		if s.running && s.pending > 0 {
			return false
		}
	}
	return true
}

// end closes a visit that has come to its end, after dropping the documents
// that no root covers any more.
func (v *visit) end(ctx context.Context) error {
	if !v.state.Queued {
		if err := v.sweep(ctx); err != nil {
			return err
		}
	}
	v.state.Open, v.state.Force, v.state.Ended = false, false, time.Now()
	return v.f.db.Update(func(tx *bbolt.Tx) error {
		if err := putCounts(tx, v.c, time.Since(v.began)); err != nil {
			return err
		}
		return putVisited(tx, &v.state)
	})
}

func (v *visit) sweep(ctx context.Context) error {
	var drop []*Page
	flush := func() error {
		err := v.commit(ctx, drop)
		drop = nil
		return err
	}
	for d, err := range v.f.Documents(ctx, "") {
		if errors.Is(err, errRecord) {
			continue
		}
		if err != nil {
			return err
		}
		if d.Root == 0 {
			continue
		}
		why := "no root covers it"
		if r := v.roots[d.Root]; r != nil {
			why = v.excluded(d.URL, r, d.Depth)
		}
		if why == "" {
			continue
		}
		drop = append(drop, &Page{URL: d.URL, Outcome: Excluded, Why: why, Stored: d.State == Stored, doc: d, unkept: true})
		if len(drop) >= maxBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// excluded returns what keeps a document out, or "".
func (v *visit) excluded(u string, r *Root, depth int) string {
	switch {
	case r == nil || u == r.URL:
		return ""
	case len(u) > maxURL:
		return fmt.Sprintf("url longer than %d", maxURL)
	case r.Leaf:
		return "not the leaf"
	case r.Depth >= 0 && depth > r.Depth:
		return fmt.Sprintf("depth=%d", r.Depth)
	case v.plan.Exclude != nil:
		return v.plan.Exclude(u, false)
	}
	return ""
}

// exclude tells of a URL that is kept out.
func (v *visit) exclude(u, why string) {
	v.c.Found.Add(1)
	v.c.Excluded.Add(1)
	if v.plan.Excluded != nil {
		v.plan.Excluded(u, why)
	}
}

// room takes one of the documents that a root may have, if there is one left.
func (v *visit) room(id uint64, r *Root) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.URLs > 0 && v.known[id] >= r.URLs {
		if !v.full[id] {
			v.full[id] = true
			v.f.lg.Info("limit", "root", r.URL, "urls", r.URLs)
		}
		return false
	}
	v.known[id]++
	return true
}

const (
	maxBatch  = 512
	maxWeight = 8 << 20
)

// commitAll hands pages to the Handler and then takes them off the queue, in
// batches: waiting a little makes one transaction of many. The wait grows with
// what a transaction costs.
func (v *visit) commitAll(ctx context.Context, cancel context.CancelCauseFunc) {
	wait := 20 * time.Millisecond
	failed := false
	for p := range v.out {
		batch := v.batch(p, wait)
		if failed {
			v.drop(batch)
			continue
		}
		start := time.Now()
		// What has been fetched is kept also when the visit is being stopped.
		if err := v.commit(context.WithoutCancel(ctx), batch); err != nil {
			failed = true
			cancel(err)
			v.drop(batch)
		}
		wait = min(max(4*time.Since(start), 20*time.Millisecond), 500*time.Millisecond)
	}
}

func (v *visit) batch(first *Page, wait time.Duration) []*Page {
	pages, weight := []*Page{first}, first.Weight
	t := time.NewTimer(wait)
	defer t.Stop()
	for len(pages) < maxBatch && weight < maxWeight {
		select {
		case p, ok := <-v.out:
			if !ok {
				return pages
			}
			pages = append(pages, p)
			weight += p.Weight
		case <-t.C:
			return pages
		}
	}
	return pages
}

// commit makes pages final: the Handler first, then the frontier.
func (v *visit) commit(ctx context.Context, pages []*Page) error {
	final := make([]*Page, 0, len(pages))
	for _, p := range pages {
		if p.Outcome != 0 {
			final = append(final, p)
		}
	}
	var queued map[string]int // by origin, what was added less what was taken
	if len(final) > 0 {
		if err := v.h.Commit(ctx, final); err != nil {
			return err
		}
		err := v.f.db.Update(func(tx *bbolt.Tx) error {
			queued = make(map[string]int)
			for _, p := range final {
				if err := v.record(tx, p, queued); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("frontier: %w", err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for origin, n := range queued {
		v.more(v.server(origin), n) // a redirect may lead from http to https
	}
	v.settle(pages)
	return nil
}

// drop lets go of pages that could not be committed; they stay queued.
func (v *visit) drop(pages []*Page) {
	for _, p := range pages {
		p.Outcome = 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settle(pages)
}

// settle counts pages and lets go of what stood for them in memory. mu is held.
func (v *visit) settle(pages []*Page) {
	for _, p := range pages {
		if v.c.add(p.Outcome); p.Outcome == Fetched {
			v.c.Out.Add(int64(p.Weight))
		}
		s := v.server(Origin(p.URL))
		if p.key != "" {
			delete(s.leased, p.key)
		}
		if p.tree != nil {
			p.tree.pending--
			s.walking--
		}
	}
	v.tally()
	v.changed()
}

// record writes what became of a page, takes it off the queue and queues its
// links.
func (v *visit) record(tx *bbolt.Tx, p *Page, queued map[string]int) error {
	d := p.doc
	now, known := getDoc(tx, p.URL)
	if known {
		d.queued = now.queued
	}
	if d.queued != nil {
		queued[Origin(p.URL)]--
	}
	if err := dequeue(tx, &d); err != nil {
		return err
	}
	if p.unkept || p.Outcome == Listed || p.Outcome == Gone && p.tree != nil {
		return tx.Bucket(docBucket).Delete([]byte(p.URL))
	}
	d.Visit = v.state.Number
	d.Why = p.Why
	if p.Outcome != Failed {
		d.Checked, d.Fails = time.Now(), 0
	}
	switch p.Outcome {
	case Fetched:
		d.State, d.Handed, d.MD5, d.Print, d.Size = Stored, time.Now(), p.MD5, v.plan.Print, p.Size
	case Unchanged:
		d.State, d.Print = Stored, v.plan.Print
		if p.Due {
			d.Handed = time.Now()
		}
	case Gone:
		d.State = Vanished
	case Moved:
		d.State = Away
	case Excluded:
		d.State = Barred
	case Failed:
		d.Fails++
		switch {
		case d.Status == http.StatusNotFound || d.Status == http.StatusGone:
			d.State = Vanished
		case d.State != Stored:
			d.State = Broken
		}
	}
	if d.State != Stored {
		d.ETag, d.Modified = "", ""
	}
	if err := putDoc(tx, &d); err != nil {
		return err
	}
	return v.admitLinks(tx, p, queued)
}

// admitLinks queues those links of a page that are new and belong to its root.
// A depth-first search takes the first link of a page first, and so must be
// told of it last.
func (v *visit) admitLinks(tx *bbolt.Tx, p *Page, queued map[string]int) error {
	if p.root == nil {
		return nil
	}
	for i := range p.links {
		u := p.links[i]
		if p.root.Search == Depth {
			u = p.links[len(p.links)-1-i]
		}
		if err := v.admit(tx, p, u, queued); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) admit(tx *bbolt.Tx, p *Page, u string, queued map[string]int) error {
	hash := maphash.String(v.seed, u)
	final, met := v.seen[hash]
	if final {
		return nil
	}
	if len(v.seen) >= maxSeen {
		clear(v.seen)
	}
	d, known := getDoc(tx, u)
	if known && (d.queued != nil || d.Visit == v.state.Number) {
		v.seen[hash] = true
		return nil
	}
	depth, hops := p.Depth+1, 0
	if p.Outcome == Moved {
		depth, hops = p.Depth, p.doc.Hops+1
	}
	why := v.excluded(u, p.root, depth)
	tooDeep := why != "" && p.root.Depth >= 0 && depth > p.root.Depth
	id := RootID(p.root.URL)
	if why == "" && !known && !v.room(id, p.root) {
		why = fmt.Sprintf("urls=%d", p.root.URLs)
	}
	v.seen[hash] = !tooDeep // it may be met nearer to the root
	if why != "" {
		if !met {
			v.exclude(u, why)
		}
		return nil
	}
	d.Root, d.Depth, d.Hops = id, depth, hops
	if !known {
		d.State = New
		v.c.Found.Add(1)
	}
	if err := enqueue(tx, &d, p.root.Search, 0); err != nil {
		return err
	}
	queued[Origin(u)]++
	return nil
}

// why is the reason of an error that is told of a document: short, and without
// the URL, which stands beside it.
func why(err error) string {
	var pe *iofs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	s := err.Error()
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
}
