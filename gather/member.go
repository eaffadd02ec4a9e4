package gather

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	iofs "io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/essence"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// What is in a document may become objects of their own: its members. They stand
// where its object stands, in the collection or among the unselected, live as long
// as it does, and go when it goes, or when it has been read to its end without
// them. A member has no document of its own: nothing is known of it that is not in
// its URL.
//
// While a document is summarized its members go to a file that has no name, so
// that a million of them need no memory. They are stored after its object and
// before its document is recorded, some at a time: a process that is killed in
// between finds the document still queued, and makes them anew. That a document
// has members is noted in the file "containers" before the first of them is
// stored, an OID a record, so that all others cost nothing.

// A made is what a visit makes of a document.
type made struct {
	body    []byte
	members *members // nil when it has none
}

// members are those of a document, until they are stored.
type members struct {
	v     *visit
	mem   bytes.Buffer
	f     *os.File // what has no room in memory, nil while nothing is
	w     *bufio.Writer
	n     int
	whole bool // there are no others
}

// membersInMemory is how many bytes of members are held in memory.
const membersInMemory = 256 << 10

// take keeps a member; it is an essence.Input.Member.
func (m *members) take(_ context.Context, e essence.Member) error {
	m.v.sign(&e.Object)
	m.n++
	body := e.Object.Append(nil)
	var size [8]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(e.Object.URL)))
	binary.BigEndian.PutUint32(size[4:], uint32(len(body)))
	if m.f == nil && m.mem.Len()+len(body) > membersInMemory {
		f, err := os.CreateTemp("", "harvest-")
		if err != nil {
			return err
		}
		m.f, m.w = f, bufio.NewWriterSize(f, 64<<10)
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		if _, err := m.mem.WriteTo(m.w); err != nil {
			return err
		}
		m.mem = bytes.Buffer{}
	}
	to := io.Writer(&m.mem)
	if m.f != nil {
		to = m.w
	}
	for _, b := range [][]byte{size[:], []byte(e.Object.URL), body} {
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// close gives the file back.
func (m *members) close() {
	if m.f != nil {
		m.f.Close()
	}
}

// each yields the members' changes, in the order they were found.
func (m *members) each(do func(store.Change) error) error {
	in := io.Reader(bytes.NewReader(m.mem.Bytes()))
	if m.f != nil {
		if err := m.w.Flush(); err != nil {
			return err
		}
		if _, err := m.f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		in = bufio.NewReaderSize(m.f, 64<<10)
	}
	for range m.n {
		var size [8]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		b := make([]byte, int(binary.BigEndian.Uint32(size[:]))+int(binary.BigEndian.Uint32(size[4:])))
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		url := string(b[:binary.BigEndian.Uint32(size[:])])
		if err := do(store.Change{Op: soif.Update, OID: m.v.g.oid(url), URL: url, Body: b[len(url):]}); err != nil {
			return err
		}
	}
	return nil
}

// Members are stored, refreshed, deleted and moved so many at a time.
const (
	someMembers     = 256
	someMemberBytes = 4 << 20
)

// A batch collects changes to one of the stores.
type batch struct {
	g       *Gatherer
	in      bool // to the collection, else to the unselected
	changes []store.Change
	size    int
}

func (b *batch) add(ctx context.Context, c store.Change) error {
	b.changes, b.size = append(b.changes, c), b.size+len(c.Body)
	if len(b.changes) < someMembers && b.size < someMemberBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.changes) == 0 {
		return nil
	}
	m := move{in: b.changes}
	if !b.in {
		m = move{out: b.changes}
	}
	b.changes, b.size = nil, 0
	return b.g.carry(ctx, &m)
}

// keepMembers does for the members of a batch of pages what has been done for
// their objects.
func (v *visit) keepMembers(ctx context.Context, pages []*crawl.Page) error {
	g := v.g
	var with []*crawl.Page
	var fresh []store.OID
	for _, p := range pages {
		oid := g.oid(p.URL)
		has := p.Outcome == crawl.Fetched && membersOf(p) != nil && membersOf(p).n > 0
		if has && !g.containers.has(oid) {
			fresh = append(fresh, oid)
		}
		if has || g.containers.has(oid) {
			with = append(with, p)
		}
	}
	if len(with) == 0 {
		return nil
	}
	if err := g.containers.add(g.path("containers"), fresh); err != nil {
		return err
	}
	if err := lock(ctx, g.sel.placed); err != nil {
		return err
	}
	defer func() { <-g.sel.placed }()
	for _, p := range with {
		if err := v.keepMembersOf(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func membersOf(p *crawl.Page) *members {
	if m, ok := p.Result.(*made); ok {
		return m.members
	}
	return nil
}

func (v *visit) keepMembersOf(ctx context.Context, p *crawl.Page) error {
	switch {
	case p.Outcome == crawl.Fetched:
		return v.storeMembers(ctx, p)
	case p.Outcome == crawl.Unchanged && p.Due:
		return v.g.eachMember(ctx, p.URL, func(in bool, e store.Entry, b *batch) error {
			return b.add(ctx, store.Change{Op: soif.Refresh, OID: e.OID, URL: e.URL, Updated: time.Now()})
		})
	case p.Stored && (p.Outcome == crawl.Gone || p.Outcome == crawl.Excluded || p.Outcome == crawl.Moved):
		return v.g.dropMembers(ctx, p.URL, nil)
	}
	return nil
}

// storeMembers stores what a document has now, and deletes what it had.
func (v *visit) storeMembers(ctx context.Context, p *crawl.Page) error {
	g, m := v.g, membersOf(p)
	if m == nil {
		return nil
	}
	defer m.close()
	in, err := holds(g.store, g.oid(p.URL))
	if err != nil {
		return err
	}
	b := &batch{g: g, in: in}
	have := make([]store.OID, 0, m.n)
	if err := m.each(func(c store.Change) error {
		have = append(have, c.OID)
		return b.add(ctx, c)
	}); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	v.members.Add(int64(m.n))
	if !m.whole || p.Cut() {
		return nil // what is missing may only not have been reached
	}
	slices.SortFunc(have, func(a, b store.OID) int { return bytes.Compare(a[:], b[:]) })
	return g.dropMembers(ctx, p.URL, func(here bool, e store.Entry) bool {
		_, found := slices.BinarySearchFunc(have, e.OID, func(a, b store.OID) int { return bytes.Compare(a[:], b[:]) })
		return found && here == in
	})
}

// dropMembers deletes a document's members, but for those that are to be kept.
func (g *Gatherer) dropMembers(ctx context.Context, url string, kept func(in bool, e store.Entry) bool) error {
	return g.eachMember(ctx, url, func(in bool, e store.Entry, b *batch) error {
		if kept != nil && kept(in, e) {
			return nil
		}
		d, err := g.db.Lookup(e.URL)
		if err == nil && d.State == crawl.Stored {
			return nil // a document that is called so
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		g.journal.event("gone", ndb.Of("url", e.URL), ndb.Of("reason", "not in its container any more"))
		return b.add(ctx, store.Change{Op: soif.Delete, OID: e.OID, URL: e.URL})
	})
}

// carryMembers has a document's members go where its object has gone.
func (g *Gatherer) carryMembers(ctx context.Context, url string, in bool) error {
	pool, err := g.pool(false)
	if err != nil {
		return err
	}
	from := g.store
	if in {
		from = pool
	}
	var m move
	for e, err := range g.below(ctx, from, url) {
		if err == nil && in {
			_, err = m.take(from, e.OID)
		} else if err == nil {
			_, err = m.leave(from, e.OID)
		}
		if err == nil && len(m.in) >= someMembers {
			err = g.carry(ctx, &m)
			m = move{}
		}
		if err != nil {
			return err
		}
	}
	return g.carry(ctx, &m)
}

// carryAll does so for all objects that a move has brought somewhere.
func (g *Gatherer) carryAll(ctx context.Context, m *move) error {
	for _, to := range []struct {
		changes []store.Change
		in      bool
	}{{m.in, true}, {m.out, false}} {
		for _, c := range to.changes {
			if c.Op == soif.Update && c.URL != "" && g.containers.has(c.OID) {
				if err := g.carryMembers(ctx, c.URL, to.in); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachMember calls do with each member of a document, in either store, and makes
// the changes that it adds to the batch of that store.
func (g *Gatherer) eachMember(ctx context.Context, url string, do func(in bool, e store.Entry, b *batch) error) error {
	pool, err := g.pool(false)
	if err != nil {
		return err
	}
	for _, s := range []*store.Store{g.store, pool} {
		b := &batch{g: g, in: s == g.store}
		for e, err := range g.below(ctx, s, url) {
			if err == nil {
				err = do(b.in, e, b)
			}
			if err != nil {
				return err
			}
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// below yields the members of a document that a store has, which may be nil. They
// are a folder of its tree of URLs.
func (g *Gatherer) below(ctx context.Context, s *store.Store, url string) iter.Seq2[store.Entry, error] {
	start := essence.MembersOf(url)
	path := store.Path(start + "x")
	dir := path[:max(strings.LastIndexByte(path, '/'), 0)]
	return func(yield func(store.Entry, error) bool) {
		if s != nil {
			belowFolder(ctx, s, dir, start, yield)
		}
	}
}

func belowFolder(ctx context.Context, s *store.Store, dir, start string, yield func(store.Entry, error) bool) bool {
	for n, err := range s.Names(ctx, dir, "") {
		switch {
		case err != nil:
			yield(store.Entry{}, err)
			return false
		case n.Dir:
			if !belowFolder(ctx, s, dir+"/"+n.Name, start, yield) {
				return false
			}
		case strings.HasPrefix(n.Entry.URL, start):
			if !yield(n.Entry, nil) {
				return false
			}
		}
	}
	return true
}

// containerOf is the document that an object is a member of, as far as its URL
// tells and the document is known.
func (g *Gatherer) containerOf(url string) (crawl.Doc, bool, error) {
	for _, u := range essence.ContainerOf(url) {
		d, err := g.db.Lookup(u)
		if err == nil {
			return d, true, nil
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return d, false, err
		}
	}
	return crawl.Doc{}, false, nil
}
