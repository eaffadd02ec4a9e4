package crawl

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/http"
	"strings"
	"time"
)

const (
	maxBatch  = 2048
	maxWeight = 8 << 20
	maxWait   = time.Second // of work that a crash may lose

	linkWeight = 128 // about what a link takes until it is written
)

// commitAll hands pages to the Handler and then writes what is known of them, in
// batches: waiting a little makes one transaction of many. The wait grows with
// what a transaction costs.
func (v *visit) commitAll(ctx context.Context, cancel context.CancelCauseFunc) {
	wait := 20 * time.Millisecond
	failed := false
	for {
		b, more := v.batch(wait)
		if len(b.pages)+len(b.texts) > 0 {
			start := time.Now()
			// What has been fetched is kept also when the visit is being stopped.
			if !failed {
				if err := v.commit(context.WithoutCancel(ctx), b); err != nil {
					failed = true
					cancel(err)
				}
			}
			if failed {
				v.drop(b.pages)
			}
			wait = waitAfter(time.Since(start))
		}
		if !more {
			return
		}
	}
}

// waitAfter is how long a batch is waited for when the one before took so long to
// write. A kill costs what came while that was written, in the wait, and while
// this one is: together that is to stay within maxWait, if one takes as long as
// the other. What is written more slowly than that is not waited for.
func waitAfter(took time.Duration) time.Duration {
	return max(min(4*took, maxWait/2, maxWait-2*took), 20*time.Millisecond)
}

// What is committed at once.
type work struct {
	pages []*Page
	texts []robotsText
}

// batch waits for something to commit, and then for more of it.
func (v *visit) batch(wait time.Duration) (w work, more bool) {
	weight := 0
	var timer <-chan time.Time
	for len(w.pages) < maxBatch && weight < maxWeight {
		select {
		case p, ok := <-v.out:
			if !ok {
				for len(v.texts) > 0 {
					w.texts = append(w.texts, <-v.texts)
				}
				return w, false
			}
			w.pages = append(w.pages, p)
			weight += p.Weight + linkWeight*len(p.links)
		case t := <-v.texts:
			w.texts = append(w.texts, t)
			weight += len(t.text)
		case <-timer:
			return w, true
		}
		if timer == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timer = t.C
		}
	}
	return w, true
}

// A queueChange is what a batch has done to what is left of a server.
type queueChange struct{ fronts int }

// commit makes pages final: the Handler first, then the database. What would
// delete an object waits for the end of the visit.
func (v *visit) commit(ctx context.Context, w work) error {
	var final, told []*Page
	for _, p := range w.pages {
		if p.Outcome == 0 {
			continue
		}
		final = append(final, p)
		if p.condemned = p.condemns(); !p.condemned && !p.silent {
			told = append(told, p)
		}
	}
	var changes map[ServerID]*queueChange
	if len(told) > 0 {
		if err := v.h.Commit(ctx, told); err != nil {
			return err
		}
	}
	if len(final)+len(w.texts) > 0 {
		err := v.f.update(func(b *batch) error {
			r := &recorder{visit: v, b: b, changes: make(map[ServerID]*queueChange)}
			changes = r.changes
			for _, p := range final {
				if err := r.record(p); err != nil {
					return err
				}
			}
			return r.end(w.texts)
		})
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
	}
	if err := forget(v.f.db); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range changes {
		v.more(v.site(id), c.fronts)
	}
	v.settle(w.pages)
	return nil
}

// condemns reports whether a page deletes what is stored, for a reason that may
// be a mistake: not the plan's.
func (p *Page) condemns() bool {
	return p.Stored && !p.final && (p.Outcome == Gone || p.Outcome == Excluded || p.Outcome == Moved)
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
	v.changes++
	for _, p := range pages {
		if !p.condemned {
			v.c.add(p.Outcome)
		}
		if p.Outcome == Fetched {
			v.c.Out.Add(int64(p.Weight))
		}
		if p.tree != nil {
			p.tree.pending--
			v.walking--
		}
		if !p.taken {
			continue
		}
		v.flying--
		s := v.sites[p.doc.Server]
		if p.silent || s == nil {
			continue
		}
		if place, ok := s.flight[p.doc.ID]; ok && p.Outcome != 0 {
			if place != notListed {
				s.left--
				v.queued--
			}
			delete(s.flight, p.doc.ID)
		}
		s.stuck = false
		v.ready(s)
		v.retire(s)
	}
	v.tally()
	v.settled.Broadcast()
	if v.flying == 0 && len(v.heap) == 0 {
		v.work.Broadcast()
	}
}

// maxIdle is how many servers that have nothing left are kept in memory.
const maxIdle = 4096

// retire forgets a site that has nothing left, if there are many. mu is held.
func (v *visit) retire(s *host) {
	if len(v.sites) > maxIdle && s.index < 0 && s.busy == 0 && !s.reading && !s.parked && len(s.flight) == 0 && s.fronts == 0 && !v.hasWork(s) {
		v.keep(s)
		delete(v.sites, s.id)
	}
}

// A recorder writes what became of the pages of one batch.
type recorder struct {
	*visit
	b       *batch
	was     Doc // what the database had of the document of the page
	changes map[ServerID]*queueChange
}

func (r *recorder) change(id ServerID) *queueChange {
	c := r.changes[id]
	if c == nil {
		c = new(queueChange)
		r.changes[id] = c
	}
	return c
}

// end writes what is of servers.
func (r *recorder) end(texts []robotsText) error {
	for _, t := range texts {
		b := r.b.tx.Bucket(robotsBucket)
		key := docKey(DocID(t.id))
		if t.text == "" {
			if err := b.Delete(key); err != nil {
				return err
			}
		} else if err := b.Put(key, []byte(t.text)); err != nil {
			return err
		}
	}
	v := r.visit
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range texts {
		k := v.f.change(t.id)
		k.Robots, k.Until = t.status, t.until
	}
	for id := range r.b.own {
		r.change(id) // more looks at its list
	}
	for id := range r.changes {
		if s := v.sites[id]; s != nil {
			v.keep(s)
		}
	}
	return nil
}

// record writes what became of a page, takes it off the queue and enters its
// links.
func (r *recorder) record(p *Page) error {
	if p.silent {
		return r.admitLinks(p)
	}
	if p.unkept && p.doc.ID == 0 {
		return nil
	}
	d := p.doc
	if err := r.fresh(p, &d); err != nil || d.ID == 0 {
		return err
	}
	if p.unkept || p.Outcome == Listed && !polite(d.URL) || p.final && p.Outcome == Gone && !polite(d.URL) {
		r.f.left(&d)
		return r.b.remove(&d)
	}
	was := d.State
	d.Visit = r.state.Number
	d.Why = p.Why
	if p.Outcome != Failed {
		d.Checked, d.Fails = time.Now(), 0
	}
	r.outcome(p, &d)
	if err := r.stored(p, &d); err != nil {
		return err
	}
	if was != Vanished && d.State == Vanished {
		r.mu.Lock()
		if k := r.f.roots[d.Root]; k != nil {
			k.docs--
			k.dirty = true
		}
		r.mu.Unlock()
	}
	if err := r.b.put(&d); err != nil {
		return err
	}
	p.doc = d
	if p.Outcome == Listed {
		return r.admitEntries(p)
	}
	if p.says != nil && p.Outcome == Fetched && polite(d.URL) {
		r.watch(p)
	}
	return r.admitLinks(p)
}

// watch tells the trap of a page's server of it.
func (r *recorder) watch(p *Page) {
	r.mu.Lock()
	s := r.sites[p.doc.Server]
	r.mu.Unlock()
	if s == nil {
		return
	}
	r.trapped(s, p.URL, s.trap.seen(p.URL, p.Depth, p.says))
}

// fresh brings a page's document up to what the database has of it by now.
func (r *recorder) fresh(p *Page, d *Doc) error {
	known := false
	var now Doc
	if d.ID != 0 {
		now, known = r.b.read(d.ID)
	} else if now, known = r.f.lookup(r.b.tx, d.URL); known {
		d.ID, d.Server = now.ID, now.Server
	}
	switch {
	case known:
		r.was = now
		d.queued, d.Submitted, d.Parent = now.queued, now.Submitted, now.Parent
	case p.unkept:
		d.ID = 0
		return nil
	default:
		d.ID, d.queued, r.was = 0, nil, Doc{}
		if err := r.b.enter(d); err != nil {
			return err
		}
	}
	c := r.change(d.Server) // it is written how far its list has been dealt with
	if d.queued != nil {
		c.fronts--
	}
	return r.b.dequeue(d)
}

// outcome enters what became of a page into its document.
func (r *recorder) outcome(p *Page, d *Doc) {
	switch {
	case p.condemned: // at the end of the visit
		d.State, d.ETag, d.Modified = Stored, r.was.ETag, r.was.Modified
		return
	case p.Outcome != Failed:
		d.Missing = time.Time{}
	}
	switch p.Outcome {
	case Fetched:
		if p.MD5 != r.was.MD5 || p.MD5 == [16]byte{} {
			d.Changed = time.Now()
		}
		d.State, d.Handed, d.Print, d.Size = Stored, time.Now(), r.plan.Print, p.Size
		d.Life, d.Refresh = p.Life, p.Refresh
	case Unchanged:
		d.State, d.Print = Stored, r.plan.Print
		if p.Due {
			d.Handed = time.Now()
		}
	case Gone:
		d.State = Vanished
	case Listed:
		d.State = Folder
	case Moved:
		d.State = Away
	case Excluded:
		d.State = Barred
	case Failed:
		d.Fails++
		switch {
		case d.State == Stored:
		case d.Status == http.StatusNotFound || d.Status == http.StatusGone:
			d.State = Vanished
		default:
			d.State = Broken
		}
	}
}

// stored keeps the tables of what is stored: by MD5, and what is to be deleted.
func (r *recorder) stored(p *Page, d *Doc) error {
	g := r.b.tx.Bucket(goneBucket)
	if p.condemned {
		r.gone++
		return g.Put(docKey(d.ID), append([]byte{byte(p.Outcome)}, p.Why...))
	}
	if r.gone > 0 {
		if err := g.Delete(docKey(d.ID)); err != nil {
			return err
		}
	}
	if d.State != Stored {
		d.ETag, d.Modified = "", ""
		if err := r.b.note(d.ID, p.Note); err != nil {
			return err
		}
		return r.b.sum(d, [16]byte{})
	}
	if p.Outcome == Fetched {
		if err := r.b.note(d.ID, p.Note); err != nil {
			return err
		}
		return r.b.sum(d, p.MD5)
	}
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
