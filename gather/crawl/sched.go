package crawl

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// A host is a server during a visit, as long as it has documents to be dealt
// with. Except for what its robots.txt says it holds little: the numbers of the
// next documents of its list, and those that are in hand.
//
// The visit's mu guards it.
type host struct {
	id     ServerID
	origin string
	polite bool
	trap   *trapGuard

	at    time.Time // its place in the heap: when it may be asked next,
	turn  uint64    // and after whom
	index int       // in the heap, less than 0 when it is not there

	limit   int  // requests at once
	busy    int  // requests that are made
	reading bool // someone looks for its next document
	stuck   bool // what the queue has for it is in hand
	parked  bool // it is left to the next visit
	strict  bool // the next document is chosen when the last is committed

	fronts int              // entries of the queue, those in hand included
	ahead  []DocID          // the next of its list,
	read   uint32           // and how many have been read of it
	left   int              // of its list, those not dealt with
	again  []*Page          // in hand, and to be asked for again
	flight map[DocID]uint32 // in hand: their place in the list, or notListed

	pace
}

// notListed is the place of a document that came from the queue.
const notListed = 1<<32 - 1

// busyEnough reports whether nothing more may be asked of a site at once.
func (s *host) busyEnough() bool { return s.busy >= s.limit || s.strict && len(s.flight) > 0 }

// hosts is a heap: the site that may be asked first is on top, and of several
// the one that was asked longest ago.
type hosts []*host

func (h hosts) Len() int { return len(h) }
func (h hosts) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].turn < h[j].turn
}
func (h hosts) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *hosts) Push(x any) {
	s := x.(*host)
	s.index = len(*h)
	*h = append(*h, s)
}
func (h *hosts) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h, s.index = old[:len(old)-1], -1
	return s
}

// site returns the state of a server. mu is held.
func (v *visit) site(id ServerID) *host {
	s := v.sites[id]
	if s == nil {
		k := &v.f.servers[id-1]
		s = &host{id: id, origin: k.Origin, polite: polite(k.Origin), index: -1, limit: 1, flight: make(map[DocID]uint32)}
		s.strict = v.searches(s)
		if v.listed(s) {
			s.read = v.from(k)
			s.left = int(k.listed - s.read)
			v.queued += s.left
		}
		s.trap = &trapGuard{trap: NewTrap(k.closed...)}
		s.begin(v, k)
		v.sites[id] = s
	}
	return s
}

// from is where a visit begins in a server's list: where it was cut off, or the
// visit before had to leave the server; else at its beginning. mu is held.
func (v *visit) from(k *Server) uint32 {
	if k.visit == v.state.Number || k.done < k.listed && k.visit > 0 {
		return k.done
	}
	return 0
}

// listed reports whether a site's list is gone through: not in a visit to what
// is queued, and not of a disk, whose documents walks find.
func (v *visit) listed(s *host) bool { return s.polite && !v.state.Queued }

// searches reports whether a root on the server is searched depth first.
func (v *visit) searches(s *host) bool {
	for _, r := range v.homes[hostKey(s.origin)] {
		if r.Search == Depth {
			return true
		}
	}
	return false
}

// ready sees to it that a site which has work is in the heap. mu is held.
func (v *visit) ready(s *host) {
	if s.index >= 0 || s.reading || s.parked || v.closed || v.stopped || s.busyEnough() || !v.hasWork(s) {
		return
	}
	s.at = s.when()
	now := time.Now()
	if s.at.Sub(now) > v.plan.Limits.Wait+min(max(s.delay(), s.before), longest) {
		v.park(s, fmt.Sprintf("it wants to be left alone for %v", s.at.Sub(now).Round(time.Second)))
		return
	}
	if !s.at.After(now) {
		s.at = now // behind those that could have been asked before
	}
	heap.Push(&v.heap, s)
	if v.heap[0] == s {
		v.wake(s.at)
	}
}

func (v *visit) hasWork(s *host) bool {
	return len(s.again) > 0 || s.fronts > 0 && !s.stuck || len(s.ahead) > 0 || v.listed(s) && s.read < v.f.servers[s.id-1].listed
}

// wake has a worker look at the heap at a time. mu is held.
func (v *visit) wake(at time.Time) {
	if v.sleepers == 0 {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		v.work.Signal()
		return
	}
	if v.alarmAt.IsZero() || at.Before(v.alarmAt) {
		v.alarmAt = at
		v.alarm.Reset(wait)
	}
}

// ring is called by the alarm.
func (v *visit) ring() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.alarmAt = time.Time{}
	v.work.Signal()
}

// worker deals with one document after another until the visit has none left.
func (v *visit) worker(ctx context.Context) {
	var buf []byte
	for {
		s := v.take()
		if s == nil {
			return
		}
		v.deal(ctx, s, &buf)
	}
}

// deal asks a site for one thing: its robots.txt, a sitemap, or a document, of
// which it sends the page to commit.
func (v *visit) deal(ctx context.Context, s *host, buf *[]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.polite && v.introduce(ctx, s) {
		s.reading = false
		v.done(s)
		return
	}
	p, err := v.next(s)
	if s.reading = false; p == nil {
		if err != nil {
			v.f.lg.Error("queue", "server", s.origin, "err", err)
			v.park(s, why(err))
		}
		v.tally()
		v.done(s)
		return
	}
	s.busy++
	if !p.taken {
		p.taken = true
		v.flying++ // settle takes it off
	}
	v.ready(s)
	v.mu.Unlock()
	if v.fetch(ctx, s, p, buf) {
		v.out <- p
		v.mu.Lock()
	} else {
		v.mu.Lock()
		s.again = append(s.again, p)
	}
	s.busy--
	v.done(s)
}

// take waits for the next site that may be asked, which then is the caller's
// alone: reading. It returns nil when there will be none.
func (v *visit) take() *host {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		if v.stopped || v.closed {
			return nil
		}
		if len(v.heap) == 0 && v.flying == 0 {
			v.closed = true
			v.work.Broadcast()
			return nil
		}
		if len(v.heap) == 0 || v.heap[0].at.After(time.Now()) {
			v.sleepers++
			if len(v.heap) > 0 {
				v.wake(v.heap[0].at)
			}
			v.work.Wait()
			v.sleepers--
			continue
		}
		s := heap.Pop(&v.heap).(*host)
		if v.sleepers > 0 && len(v.heap) > 0 {
			v.wake(v.heap[0].at)
		}
		if s.parked {
			continue
		}
		if s.when().After(time.Now()) { // another server of its machine was asked meanwhile
			v.ready(s)
			continue
		}
		s.reading = true
		v.flying++
		return s
	}
}

// done ends what take began, without or after a page. mu is held.
func (v *visit) done(s *host) {
	v.flying--
	v.ready(s)
	if v.flying == 0 && len(v.heap) == 0 {
		v.work.Broadcast() // perhaps nothing is left
	}
}

// next returns the next document of a site, nil when there is none. It is called
// with mu held, and lets go of it.
func (v *visit) next(s *host) (p *Page, err error) {
	for {
		switch {
		case len(s.again) > 0:
			p, s.again = s.again[0], s.again[1:]
			return p, nil
		case s.fronts > 0 && !s.stuck:
			if p, err = v.nextFront(s); p != nil || err != nil {
				return p, err
			}
		case len(s.ahead) > 0:
			id := s.ahead[0]
			place := s.read - uint32(len(s.ahead))
			s.ahead = s.ahead[1:]
			if _, ok := s.flight[id]; ok {
				s.left--
				v.queued--
				continue
			}
			if p, err = v.nextListed(s, id, place); p != nil || err != nil {
				return p, err
			}
		case v.listed(s) && s.read < v.f.servers[s.id-1].listed:
			if err := v.refill(s); err != nil {
				return nil, err
			}
		default:
			return nil, nil
		}
	}
}

// nextFront takes the first entry that the queue has for a site and that is not
// in hand.
func (v *visit) nextFront(s *host) (p *Page, err error) {
	n := len(s.flight)
	changes := v.changes
	v.mu.Unlock()
	err = v.f.db.View(func(tx *bbolt.Tx) error {
		front(tx, s.id, func(key string, flags byte, id DocID) bool {
			v.mu.Lock()
			_, taken := s.flight[id]
			v.mu.Unlock()
			if taken {
				return true
			}
			d, ok := v.f.read(tx, id)
			if !ok {
				return true
			}
			p = v.page(d)
			p.flags = flags
			return false
		})
		return nil
	})
	v.mu.Lock()
	if p != nil {
		s.flight[p.doc.ID] = notListed
	} else if n == len(s.flight) && changes == v.changes {
		s.stuck = true // until something is committed, or comes in
	}
	return p, err
}

// nextListed takes a document of the site's list, if it is to be dealt with.
func (v *visit) nextListed(s *host, id DocID, place uint32) (p *Page, err error) {
	s.flight[id] = place
	v.mu.Unlock()
	met := false // earlier in this visit, or it will be
	err = v.f.db.View(func(tx *bbolt.Tx) error {
		d, ok := v.f.read(tx, id)
		if ok && v.isDue(&d) {
			p = v.page(d)
		}
		met = ok && (d.Visit >= v.state.Number || d.Queued())
		return nil
	})
	v.mu.Lock()
	if p == nil {
		if !met {
			v.c.Found.Add(-1)
		}
		delete(s.flight, id)
		s.left--
		v.queued--
	}
	return p, err
}

// refill reads on in a site's list.
func (v *visit) refill(s *host) error {
	from := s.read
	v.mu.Unlock()
	var ids []DocID
	err := v.f.db.View(func(tx *bbolt.Tx) error {
		ids = readOwn(tx, s.id, from, nil)
		return nil
	})
	v.mu.Lock()
	if err == nil && len(ids) == 0 {
		v.f.lg.Error("queue", "server", s.origin, "err", errRecord)
		lost := int(v.f.servers[s.id-1].listed - from) // of the list, not the documents: the next visit asks again
		s.read += uint32(lost)
		s.left -= lost
		v.queued -= lost
		return nil
	}
	s.ahead, s.read = ids, from+uint32(len(ids))
	return err
}

// isDue reports whether a document of a server's list is to be asked for.
func (v *visit) isDue(d *Doc) bool {
	if !v.belongs(d) {
		return false
	}
	return v.plan.Revisit == nil || d.Root == 0 || d.State != Stored || !v.current(d) || !time.Now().Before(v.plan.Revisit(d))
}

// belongs reports whether a document of a server's list is one that the visit
// may ask for.
func (v *visit) belongs(d *Doc) bool {
	if d.Queued() || d.Visit >= v.state.Number || d.State == Vanished || d.State == Heard {
		return false
	}
	if d.Root == 0 {
		return true // by hand
	}
	r := v.roots[d.Root]
	return r != nil && v.excluded(d.URL, r, d.Depth) == ""
}

// page begins the page of a document.
func (v *visit) page(d Doc) *Page {
	p := &Page{URL: d.URL, Depth: d.Depth, Stored: d.State == Stored, Old: d.MD5, Size: -1, doc: d}
	if r := v.roots[d.Root]; r != nil {
		p.root, p.Root = r, r.URL
	}
	return p
}

// dealt is how much of a site's list is behind it: so much need not be looked
// at when the visit is taken up. mu is held.
func (s *host) dealt() uint32 {
	n := s.read - uint32(len(s.ahead))
	for _, place := range s.flight {
		n = min(n, place)
	}
	return n
}

// inHand reports whether the visit that runs deals with a document just now.
func (f *DB) inHand(d *Doc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.visit == nil || f.visit.sites[d.Server] == nil {
		return false
	}
	_, ok := f.visit.sites[d.Server].flight[d.ID]
	return ok
}
