package gather

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// An object is in one of two stores: in the collection, which is what others see,
// or among the unselected, if its document is a copy of a better one or is not
// selected. One that goes from one to the other is stored there before it is
// deleted here. So a process that is killed may leave it in both, never in none;
// reselect, which runs after whatever was cut off, takes it out of the wrong one.

// A move is what happens to both stores at once.
type move struct {
	in  []store.Change // to the collection
	out []store.Change // to the unselected, before
	end []store.Change // to the unselected, after
}

// carry makes a move.
func (g *Gatherer) carry(ctx context.Context, m *move) error {
	if len(m.out) > 0 {
		pool, err := g.pool(true)
		if err == nil {
			_, err = pool.Apply(ctx, m.out)
		}
		if err != nil {
			return fmt.Errorf("unselected: %w", err)
		}
	}
	if len(m.in) > 0 {
		if err := g.keep(ctx, m.in); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if len(m.end) > 0 {
		if pool, err := g.pool(false); pool != nil || err != nil {
			if err == nil {
				_, err = pool.Apply(ctx, m.end)
			}
			if err != nil {
				return fmt.Errorf("unselected: %w", err)
			}
		}
	}
	return nil
}

// pool is the store of the unselected, nil if there is none and it is not to be
// made.
func (g *Gatherer) pool(create bool) (*store.Store, error) {
	g.sel.poolMu.Lock()
	defer g.sel.poolMu.Unlock()
	if g.sel.unselected == nil && create {
		s, err := store.Open(g.path("unselected"), g.lg, store.Options{})
		if err != nil {
			return nil, err
		}
		g.sel.unselected = s
	}
	return g.sel.unselected, nil
}

// stat finds an object in either store.
func (g *Gatherer) stat(oid store.OID) (store.Entry, error) {
	e, err := g.store.Stat(oid)
	if !errors.Is(err, iofs.ErrNotExist) {
		return e, err
	}
	pool, perr := g.pool(false)
	if pool == nil {
		return e, errors.Join(err, perr)
	}
	return pool.Stat(oid)
}

// drop deletes an object, wherever it is.
func (g *Gatherer) drop(ctx context.Context, oid store.OID, url string) error {
	if err := lock(ctx, g.sel.placed); err != nil {
		return err
	}
	defer func() { <-g.sel.placed }()
	if err := g.unsettle(); err != nil { // it may have been better than others
		return err
	}
	clear(g.sel.bests)
	gone := []store.Change{{Op: soif.Delete, OID: oid, URL: url}}
	if g.containers.has(oid) {
		if err := g.dropMembers(ctx, url, nil); err != nil {
			return err
		}
	}
	return g.carry(ctx, &move{in: gone, end: gone})
}

// holds reports whether a store, which may be nil, has an object.
func holds(s *store.Store, oid store.OID) (bool, error) {
	if s == nil {
		return false, nil
	}
	_, err := s.Stat(oid)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// take has an object go from the unselected to the collection; it reports whether
// there was one.
func (m *move) take(pool *store.Store, oid store.OID) (bool, error) {
	if pool == nil {
		return false, nil
	}
	body, e, err := pool.Get(oid)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.in = append(m.in, store.Change{Op: soif.Update, OID: oid, URL: e.URL, Body: body, Updated: e.Updated, TTL: e.TTL})
	m.end = append(m.end, store.Change{Op: soif.Delete, OID: oid, URL: e.URL})
	return true, nil
}

// leave has an object go from the collection to the unselected.
func (m *move) leave(from *store.Store, oid store.OID) (bool, error) {
	body, e, err := from.Get(oid)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.out = append(m.out, store.Change{Op: soif.Update, OID: oid, URL: e.URL, Body: body, Updated: e.Updated, TTL: e.TTL})
	m.in = append(m.in, store.Change{Op: soif.Delete, OID: oid, URL: e.URL})
	return true, nil
}

// A placing puts what a batch of pages has become where it belongs, by what is
// known when it comes. Of links no more than those from other servers are counted
// here, and a selection that compares documents with one another takes no new one:
// at the end of the visit reselect sees to both.
type placing struct {
	g     *Gatherer
	c     *config
	pool  *store.Store
	pages map[string]*crawl.Page // of the batch
	docs  map[string]*crawl.Doc  // what was known of them before
	best  map[copyKey]*rival     // of each group met
	gone  map[copyKey]bool       // groups whose best may not be in the collection
	move
	told []func()
}

// A copyKey is what copies have in common.
type copyKey [24]byte

func keyOf(md5 [16]byte, size int64) (k copyKey) {
	copy(k[:], md5[:])
	binary.BigEndian.PutUint64(k[16:], uint64(size))
	return k
}

// place makes the changes that pages have led to, each in the store where its
// object belongs.
func (g *Gatherer) place(ctx context.Context, c *config, pages []*crawl.Page, changes []store.Change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := lock(ctx, g.sel.placed); err != nil {
		return err
	}
	defer func() { <-g.sel.placed }()
	pool, err := g.pool(false)
	if err != nil {
		return err
	}
	if c.selection.all() && (pool == nil || pool.Count() == 0) && !anyDrops(c, changes) {
		if err = g.keep(ctx, changes); err != nil {
			err = fmt.Errorf("store: %w", err)
		}
		return err
	}
	if err := g.unsettle(); err != nil {
		return err
	}
	p := &placing{g: g, c: c, pool: pool, pages: make(map[string]*crawl.Page, len(pages)), docs: make(map[string]*crawl.Doc),
		best: g.sel.bests, gone: make(map[copyKey]bool)}
	for _, page := range pages {
		p.pages[page.URL] = page
	}
	if err = p.plan(changes); err == nil {
		err = g.carry(ctx, &p.move)
	}
	if err == nil {
		err = g.carryAll(ctx, &p.move)
	}
	if err != nil || len(g.sel.bests) > maxBests {
		clear(g.sel.bests) // found again when they are needed
	}
	if err != nil {
		return err
	}
	for _, tell := range p.told {
		tell()
	}
	return nil
}

// maxBests bounds how many groups are remembered with their best.
const maxBests = 1 << 16

// plan finds out what is to be moved.
func (p *placing) plan(changes []store.Change) error {
	if err := p.know(changes); err != nil {
		return err
	}
	for _, ch := range changes {
		if err := p.change(ch); err != nil {
			return err
		}
	}
	return p.succeed()
}

func anyDrops(c *config, changes []store.Change) bool {
	for i := range changes {
		if c.drops(changes[i].URL) {
			return true
		}
	}
	return false
}

// know reads what was known of the documents that change, or go.
func (p *placing) know(changes []store.Change) error {
	for i := range changes {
		u := changes[i].URL
		if changes[i].Op == soif.Refresh || !p.c.drops(u) {
			continue
		}
		d, err := p.g.db.Lookup(u)
		if errors.Is(err, iofs.ErrNotExist) {
			d, err = crawl.Doc{URL: u}, nil
		}
		if err != nil {
			return err
		}
		p.docs[u] = &d
	}
	return nil
}

// change sorts one change into the stores.
func (p *placing) change(ch store.Change) error {
	p.release(ch)
	switch ch.Op {
	case soif.Delete:
		p.in = append(p.in, ch)
		p.end = append(p.end, ch)
		return nil
	case soif.Refresh:
		here, err := holds(p.g.store, ch.OID)
		if err != nil {
			return err
		}
		if here {
			p.in = append(p.in, ch)
			return nil
		}
		there, err := holds(p.pool, ch.OID)
		if there {
			p.out = append(p.out, ch)
		}
		return err
	}
	in, err := p.selected(ch)
	if err == nil && in {
		in, err = p.wins(ch)
	}
	if err != nil {
		return err
	}
	p.put(ch, in)
	return nil
}

// put stores an object where it belongs, and nowhere else.
func (p *placing) put(ch store.Change, in bool) {
	gone := store.Change{Op: soif.Delete, OID: ch.OID, URL: ch.URL}
	if in {
		p.in = append(p.in, ch)
		p.end = append(p.end, gone)
	} else {
		p.out = append(p.out, ch)
		p.in = append(p.in, gone)
	}
}

// selected reports whether a document is in the collection, as far as that can be
// told of it alone: if not, it is when it was.
func (p *placing) selected(ch store.Change) (bool, error) {
	s := &p.c.selection
	if !s.plain() {
		return holds(p.g.store, ch.OID)
	}
	return s.alone(ch.URL).in(), nil
}

// release notes the group that a document leaves: it has changed, or is gone.
func (p *placing) release(ch store.Change) {
	d, page := p.docs[ch.URL], p.pages[ch.URL]
	if d == nil || d.State != crawl.Stored || d.MD5 == [16]byte{} || ch.Op == soif.Refresh {
		return
	}
	if ch.Op == soif.Update && page != nil && page.MD5 == d.MD5 && page.Size == d.Size {
		return
	}
	key := keyOf(d.MD5, d.Size)
	p.gone[key] = true
	if b := p.best[key]; b != nil && b.url == ch.URL {
		delete(p.best, key)
	}
}

// wins reports whether a document that is to be stored is the best of its group,
// and has the one that was leave the collection.
func (p *placing) wins(ch store.Change) (bool, error) {
	d, page := p.docs[ch.URL], p.pages[ch.URL]
	if d == nil || page == nil || page.MD5 == [16]byte{} || !p.c.selection.mayTake(d) {
		return true, nil
	}
	key := keyOf(page.MD5, page.Size)
	mine := rivalOf(d)
	mine.size = page.Size
	best, err := p.bestOf(key, page.MD5, page.Size)
	if err != nil {
		return false, err
	}
	switch {
	case best == nil || best.url == ch.URL:
		p.best[key] = &mine
		return true, nil
	case !mine.beats(best):
		p.tell(best, &mine)
		p.gone[key] = true // it may have been here that it was kept
		return false, nil
	}
	p.best[key] = &mine
	p.tell(&mine, best)
	return true, p.yield(best)
}

// yield has the object of a document that was the best leave the collection: from
// the store, or from what this batch is about to put there.
func (p *placing) yield(r *rival) error {
	oid := p.g.oid(r.url)
	for i := range p.in {
		if p.in[i].OID == oid && p.in[i].Op == soif.Update {
			p.out = append(p.out, p.in[i])
			p.in[i] = store.Change{Op: soif.Delete, OID: oid, URL: r.url}
			p.end = dropChange(p.end, oid)
			return nil
		}
	}
	_, err := p.leave(p.g.store, oid)
	return err
}

func dropChange(changes []store.Change, oid store.OID) []store.Change {
	for i := range changes {
		if changes[i].OID == oid {
			return append(changes[:i], changes[i+1:]...)
		}
	}
	return changes
}

// bestOf finds the best of the documents of a group that are not in the batch, or
// what this batch has made the best.
func (p *placing) bestOf(key copyKey, md5 [16]byte, size int64) (*rival, error) {
	if r, ok := p.best[key]; ok {
		return r, nil
	}
	ids, err := p.g.db.Same(md5)
	if err != nil {
		return nil, err
	}
	var best *rival
	gr := group{p.g, p.c, ids}
	err = gr.each(func(r *rival) bool {
		if r.size == size && p.docs[r.url] == nil && (best == nil || r.beats(best)) {
			best = r
		}
		return true
	})
	if best != nil {
		p.best[key] = best
	}
	return best, err
}

// succeed has the next best take the place of those that have gone from their
// groups. Whether it is selected when documents are compared with one another
// is for reselect to say.
func (p *placing) succeed() error {
	if p.pool == nil || !p.c.selection.plain() {
		return nil
	}
	for key := range p.gone {
		best, err := p.bestOf(key, [16]byte(key[:16]), int64(binary.BigEndian.Uint64(key[16:])))
		if err != nil {
			return err
		}
		if best == nil || p.docs[best.url] != nil {
			continue // nobody is left, or it has been put where it belongs
		}
		oid := p.g.oid(best.url)
		in, err := p.selected(store.Change{OID: oid, URL: best.url})
		if err != nil {
			return err
		}
		if in {
			if _, err := p.take(p.pool, oid); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell has an event written of who won, once it is so.
func (p *placing) tell(winner, loser *rival) {
	p.told = append(p.told, func() {
		p.g.journal.event("duplicate", ndb.Of("url", loser.url), ndb.Of("of", winner.url), ndb.Of("score", loser.score.Sum()), ndb.Of("winner", winner.score.Sum()))
	})
}
