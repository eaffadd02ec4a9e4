package crawl

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// listing takes the entries of a folder, menu or group of a server that is no
// web server. Those that are what they were are not asked for: they are handed
// on as such at once.
func (v *visit) listing(ctx context.Context, p *Page, resp *http.Response) {
	entries, err := readListing(resp.Body, func(string) bool { return true })
	switch {
	case err != nil:
		p.Outcome, p.Why = Failed, why(err)
		return
	case p.root == nil || p.root.Leaf || p.flags&byHand != 0:
		p.Outcome, p.Why = Excluded, "a folder, not a leaf"
		return
	case len(p.root.Enumeration) > 0:
		entries = nil
	}
	p.Outcome = Listed
	p.doc.ETag, p.doc.Modified = "", ""
	b := newBase(strings.TrimSuffix(p.URL, "/") + "/")
	if !strings.HasSuffix(p.URL, "/") && !strings.HasPrefix(p.URL, "ftp") {
		b = newBase(p.URL)
	}
	for len(entries) > 0 {
		n := min(len(entries), scanStep)
		var same []*Page
		err := v.f.db.View(func(tx *bbolt.Tx) error {
			for i := range entries[:n] {
				e := &entries[i]
				var err error
				if e.href, err = b.resolve(e.href); err != nil {
					continue
				}
				if q := v.same(tx, p, e); q != nil {
					same, p.kept = append(same, q), append(p.kept, e.href)
				} else if e.kind == 'f' || e.kind == 'd' {
					p.entries = append(p.entries, *e)
				}
			}
			return nil
		})
		if err != nil {
			p.Outcome, p.Why = Failed, why(err)
			return
		}
		for _, q := range same {
			select {
			case v.out <- q:
			case <-ctx.Done():
				p.Outcome = 0
				return
			}
		}
		entries = entries[n:]
	}
}

// same returns the page of an entry that is what it was, nil for another.
func (v *visit) same(tx *bbolt.Tx, p *Page, e *listed) *Page {
	if e.kind != 'f' {
		return nil
	}
	d, ok := v.f.lookup(tx, e.href)
	if !ok || d.Root != RootID(p.root.URL) || !v.current(&d) || d.Visit >= v.state.Number || !e.is(&d) {
		return nil
	}
	q := v.page(d)
	v.unchanged(q)
	return q
}

// is reports whether an entry is what is stored of a document.
func (e *listed) is(d *Doc) bool {
	if e.etag != "" && e.etag != "-" {
		return e.etag == d.ETag
	}
	t, err := time.Parse(time.RFC3339, e.time)
	if err != nil {
		return false
	}
	m, err := http.ParseTime(d.Modified)
	return err == nil && m.Equal(t) && e.size == d.Size
}

// admitEntries enters what is new in a folder, queues what has changed, and
// finds what is not there any more.
func (r *recorder) admitEntries(p *Page) error {
	var to []DocID
	keep := func(id DocID) {
		if id != 0 && id != p.doc.ID {
			to = append(to, id)
		}
	}
	for _, u := range p.kept {
		keep(r.f.known.get(r.f.known.hash(u)))
	}
	for i := range p.entries {
		e := &p.entries[i]
		var id DocID
		var err error
		if e.kind == 'd' {
			id, err = r.admit(p, e.href)
		} else {
			id, err = r.admitEntry(p, e.href)
		}
		if err != nil {
			return err
		}
		keep(id)
	}
	if err := r.vanished(p.doc.ID, to); err != nil {
		return err
	}
	return r.b.links(&p.doc, to)
}

// admitEntry queues a document that a listing has as new or changed. It is not
// in the list of its server: listings say when it is to be asked for.
func (r *recorder) admitEntry(p *Page, u string) (DocID, error) {
	hash := r.f.known.hash(u)
	id := r.f.known.get(hash)
	if how, _ := r.counted(p.root, u); how != counts || id == 0 && r.kept[hash] {
		return id, nil
	}
	d := Doc{URL: u, State: New}
	if id != 0 {
		var ok bool
		if d, ok = r.b.read(id); !ok || d.URL != u || d.Queued() || d.Visit >= r.state.Number {
			return id, nil
		}
	}
	depth, hops := depthOf(p)
	why, forGood := r.refuses(p, u, depth)
	root := RootID(p.root.URL)
	if why == "" && (id == 0 || d.Root != root) {
		if !r.room(root, p.root) {
			why, forGood = "urls", true
		} else {
			r.f.left(&d)
			r.b.roots = true
		}
	}
	if why != "" {
		r.keepOut(hash, u, why, forGood)
		return id, nil
	}
	d.Root, d.Depth, d.Hops, d.Parent = root, depth, hops, p.doc.ID
	r.c.Found.Add(1)
	if id == 0 {
		if err := r.b.enterUnlisted(&d); err != nil {
			return 0, err
		}
	}
	r.change(d.Server).fronts++
	return d.ID, r.b.enqueue(&d, p.root.Search, 0)
}

// vanished condemns what a folder had and has no more, with what that had.
func (r *recorder) vanished(folder DocID, now []DocID) error {
	there := make(map[DocID]bool, len(now))
	for _, id := range now {
		there[id] = true
	}
	todo := []DocID{folder}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		had, err := decodeLinks(id, r.b.tx.Bucket(linkBucket).Get(docKey(id)))
		if err != nil {
			continue // as good as none
		}
		for _, child := range had {
			if id == folder && there[child] {
				continue
			}
			d, ok := r.b.read(child)
			if !ok || d.Parent != id || d.Queued() {
				continue
			}
			switch d.State {
			case Folder, New, Broken, Vanished:
				todo = append(todo, child) // with what it has, or had before its server missed it
				d.State, d.Visit = Vanished, r.state.Number
				err = r.b.put(&d)
			case Stored:
				d.Visit = r.state.Number
				r.gone++
				if err = r.b.put(&d); err == nil {
					err = r.b.tx.Bucket(goneBucket).Put(docKey(child), append([]byte{byte(Gone)}, "not in its folder"...))
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
