package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// A visit is one run over a plan. Its goroutines, and who waits for them:
//
//	worker      asks servers for documents, whichever may be asked next; run waits
//	fileWorker  for the files that walks of trees find; run waits
//	commitAll   the only writer of documents; run waits after all others
//
// Pages flow from workers to commit through out, which is drained to its end
// whatever happens, so that no sender waits for ever.
type visit struct {
	f     *DB
	plan  Plan
	rt    http.RoundTripper
	h     Handler
	c     *Counts
	roots map[uint64]*Root   // changed only before workers run
	homes map[string][]*Root // roots by the host that they are on,
	wide  []uint64           // those that others may count for, or do
	state Visited
	began time.Time // or was taken up

	jobs   chan *Page // files found by walks
	out    chan *Page
	texts  chan robotsText
	memory *budget

	mu       *sync.Mutex // the database's; it guards what follows
	work     *sync.Cond  // a site may be asked, or there is nothing left
	settled  *sync.Cond  // pages have been committed, or given up
	sites    map[ServerID]*host
	heap     hosts
	machines map[string]*machine
	turns    uint64
	flying   int // pages between their site and commit, and workers with a site
	walking  int // of trees, those that are not committed
	queued   int // entries of lists and of the queue that are left
	changes  uint64
	counting bool // what is left was counted; an enumeration is before that
	sleepers int
	alarm    *time.Timer
	alarmAt  time.Time
	stopped  bool // workers are to end
	closed   bool // nothing is left, and what comes in is for the next visit
	full     map[uint64]bool
	found    bitset               // documents of trees that are where they were
	closedIn map[uint64][]string  // folders that could not be listed, by root
	walked   map[uint64][]string  // folders whose trees were, by root
	foreign  map[string]*standing // robots.txt of hosts that sitemaps are on, by origin

	// Of commit alone.
	met     bitset          // documents that need no thought when they are linked to
	kept    map[uint64]bool // hashes of URLs kept out: true when that is for good
	gone    int             // documents in the bucket of that name
	missing bool            // an enumeration failed: roots may be lacking
	failed  error           // of commit, while the end of the visit is made
}

// maxOut bounds the memory of URLs kept out; past it, they are looked at again.
const maxOut = 1 << 20

func newVisit(f *DB, p Plan, rt http.RoundTripper, h Handler, c *Counts) (*visit, error) {
	v := &visit{
		f: f, plan: p, rt: rt, h: h, c: c, mu: &f.mu,
		roots:    make(map[uint64]*Root),
		homes:    make(map[string][]*Root),
		sites:    make(map[ServerID]*host),
		machines: make(map[string]*machine),
		full:     make(map[uint64]bool),
		closedIn: make(map[uint64][]string),
		walked:   make(map[uint64][]string),
		foreign:  make(map[string]*standing),
		kept:     make(map[uint64]bool),
		began:    time.Now(),
		jobs:     make(chan *Page, 64),
		out:      make(chan *Page, 64),
		texts:    make(chan robotsText, 64),
	}
	v.work, v.settled = sync.NewCond(v.mu), sync.NewCond(v.mu)
	v.limits()
	for _, r := range p.Roots {
		if err := v.root(r); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *visit) limits() {
	l := &v.plan.Limits
	defaults := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	defaults(&l.Head, 4<<20)
	defaults(&l.Tries, 4)
	defaults(&l.Pages, 32)
	defaults(&l.Files, runtime.GOMAXPROCS(0))
	defaults(&l.Servers, 8)
	if l.Body <= 0 {
		l.Body = 256 << 20
	}
	if l.Memory <= 0 {
		l.Memory = 64 << 20
	}
	if l.Time <= 0 {
		l.Time = 2 * time.Minute
	}
	if l.Wait <= 0 {
		l.Wait = 5 * time.Minute
	}
	v.memory = newBudget(max(l.Memory, int64(l.Head)))
}

// root makes a root part of the visit.
func (v *visit) root(r Root) error {
	u, err := Canonical(r.URL)
	if err != nil {
		return err
	}
	if r.URL = u; r.Delay < 0 {
		r.Delay = DefaultDelay
	}
	id := RootID(u)
	v.mu.Lock() // a submission looks at roots while an enumeration makes them
	defer v.mu.Unlock()
	k := v.f.root(id)
	old := v.roots[id]
	was := old != nil && (old.Hosts > 1 || len(k.hosts) > 1)
	if old != nil {
		*old = r
	} else {
		v.roots[id] = &r
		v.homes[hostKey(Origin(u))] = append(v.homes[hostKey(Origin(u))], &r)
	}
	if !was && (r.Hosts > 1 || len(k.hosts) > 1) {
		v.wide = append(v.wide, id)
	}
	return nil
}

// rootsOf yields the roots that a server counts for, without a look at all the
// others. mu is held.
func (v *visit) rootsOf(s *host) iter.Seq[*Root] {
	return func(yield func(*Root) bool) {
		home := hostKey(s.origin)
		for _, r := range v.homes[home] {
			if !yield(r) {
				return
			}
		}
		for _, id := range v.wide {
			r := v.roots[id]
			if _, ok := v.f.roots[id].hosts[s.id]; ok && hostKey(Origin(r.URL)) != home && !yield(r) {
				return
			}
		}
	}
}

func (v *visit) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := v.begin(ctx); err != nil {
		return err
	}
	defer v.leave()
	v.alarm = time.AfterFunc(time.Hour, v.ring)
	defer v.alarm.Stop()
	defer context.AfterFunc(ctx, func() {
		v.mu.Lock()
		v.stopped = true
		v.work.Broadcast()
		v.mu.Unlock()
	})()

	var workers, files sync.WaitGroup
	for range v.plan.Limits.Files {
		files.Go(func() { v.fileWorker(ctx) })
	}
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		v.commitAll(ctx, cancel)
	}()
	for range v.plan.Limits.Pages {
		workers.Go(func() { v.worker(ctx) })
	}
	workers.Wait()
	close(v.jobs)
	files.Wait()
	close(v.out)
	<-committed
	err := context.Cause(ctx)
	if err == nil {
		err = v.end(ctx)
	}
	return errors.Join(err, v.f.update(func(b *batch) error {
		v.keepPace()
		if err == nil {
			v.state.Open, v.state.Force, v.state.Ended = false, false, time.Now()
			if !v.state.Queued {
				v.state.Whole = v.state.Ended
			}
		}
		return errors.Join(putCounts(b.tx, v.c, time.Since(v.began)), putVisited(b.tx, &v.state))
	}))
}

// begin opens a visit or takes up the one that was cut off, and makes v the
// visit that Add tells.
func (v *visit) begin(ctx context.Context) error {
	v.mu.Lock()
	running := v.f.visit != nil
	if !running {
		v.f.visit = v
	}
	v.mu.Unlock()
	if running {
		return fmt.Errorf("a visit runs: %w", syscall.EBUSY)
	}
	err := v.open()
	if err == nil {
		err = v.enumerate(ctx)
	}
	if err == nil {
		err = v.seed()
	}
	if err == nil {
		err = v.count(ctx)
	}
	if err != nil {
		v.leave()
	}
	return err
}

// open reads what is known of the last visit.
func (v *visit) open() error {
	return v.f.update(func(b *batch) error {
		s := getVisited(b.tx)
		switch {
		case !s.Open:
			s = Visited{Number: s.Number + 1, Open: true, Queued: v.plan.Queued, Force: v.plan.Force,
				Started: time.Now(), Ended: s.Ended, Whole: s.Whole, seeded: v.plan.Queued}
			if err := errors.Join(b.tx.DeleteBucket(goneBucket), anew(b.tx, goneBucket)); err != nil {
				return err
			}
		case s.Queued && !v.plan.Queued: // only what was queued, and now everything
			s.Queued, s.seeded, s.Force = false, false, v.plan.Force
		}
		v.state = s
		v.gone = b.tx.Bucket(goneBucket).Stats().KeyN
		return putVisited(b.tx, &s)
	})
}

func anew(tx *bbolt.Tx, name []byte) error {
	_, err := tx.CreateBucket(name)
	return err
}

func (v *visit) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.f.visit = nil
}

// seed queues the roots, and the documents of disks that were asked for by
// their URLs; those of servers are in the servers' lists.
func (v *visit) seed() error {
	if v.state.seeded {
		return nil
	}
	err := v.f.update(func(b *batch) error {
		for id, r := range v.roots {
			if err := v.seedRoot(b, id, r); err != nil {
				return err
			}
		}
		var hand []Doc
		c := b.tx.Bucket(handBucket).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if d, ok := v.f.read(b.tx, DocID(binary.BigEndian.Uint32(k))); ok && d.Visit < v.state.Number && v.covers(d.URL) == nil {
				hand = append(hand, d)
			}
		}
		for i := range hand {
			if err := b.enqueue(&hand[i], Breadth, seedURL); err != nil {
				return err
			}
		}
		s := v.state
		s.seeded = true
		return putVisited(b.tx, &s)
	})
	if err == nil {
		v.state.seeded = true
		v.mu.Lock()
		v.f.deep = true
		v.mu.Unlock()
	}
	return err
}

func (v *visit) seedRoot(b *batch, id uint64, r *Root) error {
	d, known := v.f.lookup(b.tx, r.URL)
	if known && d.Visit == v.state.Number && d.queued == nil {
		return nil // dealt with before the visit was cut off
	}
	if known && d.Root == id && d.State != Heard {
		v.mu.Lock()
		k := &v.f.servers[d.Server-1]
		left := polite(r.URL) && k.visit < v.state.Number && v.from(k) > 0
		v.mu.Unlock()
		if left {
			return nil // the visit before did not come to the end of the server's list
		}
	}
	if !known || d.State == Heard || d.Root != id {
		v.counts(id, r.URL, &d)
	}
	d.Root, d.Depth = id, 0
	switch {
	case !known:
		d.URL, d.State = r.URL, New
		if err := b.enter(&d); err != nil {
			return err
		}
	case d.State == Heard:
		d.State = New
		b.list(&d)
	}
	v.mu.Lock()
	v.f.roots[id].hosts[d.Server] = struct{}{}
	v.f.roots[id].dirty, b.roots = true, true
	v.mu.Unlock()
	return b.enqueue(&d, r.Search, seedURL)
}

// counts notes that a document counts for a root, and no more for another.
func (v *visit) counts(id uint64, url string, d *Doc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.f.roots[d.Root]; old != nil && d.State != Heard && d.State != Vanished {
		old.docs--
		old.dirty = true
	}
	r := v.roots[id]
	if k := v.f.roots[id]; url != r.URL || polite(url) {
		k.docs++
		k.dirty = true
	}
}

// count makes a site of each server that has something left.
func (v *visit) count(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.f.servers {
		k := &v.f.servers[i]
		k.Why = ""
		if polite(k.Origin) && !v.state.Queued && k.listed > v.from(k) {
			s := v.site(k.ID)
			left := int(k.listed - s.read) // roots have been entered since enumerations made it
			v.queued += left - s.left
			s.left = left
		}
	}
	v.mu.Unlock()
	fronts := make(map[ServerID]int)
	err := v.f.scan(ctx, queueBucket, nil, func(_ *bbolt.Tx, k, val []byte) error {
		if len(k) == 16 {
			fronts[ServerID(binary.BigEndian.Uint32(k))]++
		}
		return nil
	}, func() bool { return true })
	v.mu.Lock()
	v.counting = true
	for id, n := range fronts {
		if int(id) <= len(v.f.servers) && id > 0 {
			s := v.site(id)
			v.queued += n - s.fronts
			s.fronts = n
		}
	}
	for _, s := range v.sites {
		v.ready(s)
		if v.listed(s) {
			v.c.Found.Add(int64(s.left)) // less those that are passed by
		} else if s.polite {
			v.c.Found.Add(int64(s.fronts))
		}
	}
	v.tally()
	return err
}

// comeUpon counts a document. What an enumeration names is in the
// lists when they are counted, unless it is of a disk, which has none.
func (v *visit) comeUpon(u string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counting || !polite(u) {
		v.c.Found.Add(1)
	}
}

// added hears from Add that URLs have come into the queue. If the visit is at
// its end they are left to the next. mu is held.
func (v *visit) added(of []ServerID) {
	if v.sites == nil {
		return
	}
	v.changes++
	for _, id := range of {
		v.more(v.site(id), 1)
	}
	v.tally()
}

// more notes that entries have come into the queue for a site, or left it, and
// perhaps into its list, and sees to it that they are dealt with. mu is held.
func (v *visit) more(s *host, fronts int) {
	listed := v.remaining(s) - s.left
	s.left += listed
	s.fronts += fronts
	s.stuck = false
	v.queued += listed + fronts
	v.ready(s)
}

// remaining is how much of a site's list is not dealt with. mu is held.
func (v *visit) remaining(s *host) int {
	if !v.listed(s) {
		return 0
	}
	n := int(v.f.servers[s.id-1].listed-s.read) + len(s.ahead)
	for _, place := range s.flight {
		if place != notListed {
			n++
		}
	}
	return n
}

// tally publishes how much is queued. mu is held.
func (v *visit) tally() { v.c.Queued.Store(int64(v.queued + v.walking)) }

// keepPace writes down when each server may be asked again.
func (v *visit) keepPace() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sites {
		v.keep(s)
	}
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
	}
	if ok, rule := r.URLFilter.Admits(FilterPath(u)); !ok {
		return rule
	}
	if v.plan.Exclude != nil {
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
	k := v.f.roots[id]
	if r.URLs > 0 && k.docs >= r.URLs {
		if !v.full[id] {
			v.full[id] = true
			v.f.lg.Info("limit", "root", r.URL, "urls", r.URLs)
		}
		return false
	}
	k.docs++
	k.dirty = true
	return true
}
