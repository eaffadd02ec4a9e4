package crawl

import (
	"fmt"
	"slices"
	"strings"
)

// admitLinks enters those links of a page that are new and belong to its root,
// and writes down which of them are known. A depth-first search takes the first
// link of a page first, and so must be told of it last.
func (r *recorder) admitLinks(p *Page) error {
	var to []DocID
	for i := range p.links {
		u := p.links[i]
		if p.root != nil && p.root.Search == Depth {
			u = p.links[len(p.links)-1-i]
		}
		id, err := r.admit(p, u)
		if err != nil {
			return err
		}
		if id != 0 && id != p.doc.ID {
			to = append(to, id)
		}
	}
	if p.silent || p.condemned || p.Outcome == Unchanged || p.Outcome == Failed {
		return nil
	}
	return r.b.links(&p.doc, to)
}

// admit decides about one link: it returns the document, 0 when there is no
// record of it.
func (r *recorder) admit(p *Page, u string) (DocID, error) {
	hash := r.f.known.hash(u)
	id := r.f.known.get(hash)
	if id != 0 && r.met.has(id) {
		return id, nil
	}
	if id == 0 && r.kept[hash] || p.root == nil {
		return id, nil
	}
	server, why := r.counted(p.root, u)
	switch {
	case why != "":
		r.keepOut(hash, u, why, true)
		return id, nil
	case server == noServer:
		return id, nil
	case server == anothers:
		return r.hear(id, u)
	}
	if id != 0 {
		return id, r.again(p, id, u)
	}
	return r.enter(p, hash, u)
}

// How a link's server stands to a root.
type counting uint8

const (
	counts   counting = iota // what it has counts for it
	anothers                 // for another root
	noServer                 // for none
)

// counted tells whether the server of a URL counts for a root, and if it may not
// because the root has all it may have, why. A server that was let in stays.
func (r *recorder) counted(root *Root, u string) (counting, string) {
	origin := Origin(u)
	if !root.access(u) {
		return noServer, ""
	}
	if sameHost(origin, Origin(root.URL)) {
		return counts, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.f.roots[RootID(root.URL)]
	id := r.f.byOrigin[origin]
	if _, ok := k.hosts[id]; ok && id != 0 {
		return counts, ""
	}
	if root.Hosts > 1 {
		if ok, rule := root.HostFilter.Admits(FilterHost(u)); !ok {
			return noServer, rule
		}
		if len(k.hosts) < root.Hosts {
			return counts, ""
		}
		return noServer, fmt.Sprintf("hosts=%d", root.Hosts)
	}
	for other := range r.roots {
		if _, ok := r.f.roots[other].hosts[id]; ok && id != 0 {
			return anothers, ""
		}
	}
	return noServer, ""
}

// access reports whether a root goes by the scheme of a URL. TLS makes no
// difference.
func (r *Root) access(u string) bool {
	plain := func(s string) string {
		s, _, _ = strings.Cut(s, ":")
		if t := strings.TrimSuffix(s, "s"); t != "new" {
			return t
		}
		return s
	}
	scheme := plain(u)
	if scheme == plain(r.URL) {
		return true
	}
	return slices.ContainsFunc(r.Access, func(a string) bool { return plain(a) == scheme })
}

// keepOut tells of a URL that is kept out, once; unless it is for good, it is
// looked at again when it is met again.
func (r *recorder) keepOut(hash uint64, u, why string, forGood bool) {
	if len(r.kept) >= maxOut {
		clear(r.kept)
	}
	if _, met := r.kept[hash]; !met {
		r.exclude(u, why)
	}
	r.kept[hash] = forGood
}

// hear notes that there is a document, which its own root has not come upon.
func (r *recorder) hear(id DocID, u string) (DocID, error) {
	if id != 0 {
		return id, nil
	}
	d := Doc{URL: u, State: Heard}
	if len(u) > maxURL {
		return 0, nil
	}
	err := r.b.enter(&d)
	return d.ID, err
}

// depthOf is how far from the root a link of a page leads.
func depthOf(p *Page) (depth, hops int) {
	if p.Outcome == Moved {
		return p.Depth, p.doc.Hops + 1
	}
	return p.Depth + 1, 0
}

// refuses returns what keeps a link out, and whether that is for good.
func (r *recorder) refuses(p *Page, u string, depth int) (why string, forGood bool) {
	if why = r.excluded(u, p.root, depth); why != "" {
		return why, !(p.root.Depth >= 0 && depth > p.root.Depth) // it may be met nearer to the root
	}
	r.mu.Lock()
	s := r.sites[r.f.byOrigin[Origin(u)]]
	r.mu.Unlock()
	if s != nil && polite(u) {
		return s.trap.refuses(u), true
	}
	return "", false
}

// enter begins a document that a link leads to.
func (r *recorder) enter(p *Page, hash uint64, u string) (DocID, error) {
	depth, hops := depthOf(p)
	why, forGood := r.refuses(p, u, depth)
	root := RootID(p.root.URL)
	if why == "" && !r.room(root, p.root) {
		why, forGood = fmt.Sprintf("urls=%d", p.root.URLs), true
	}
	if why != "" {
		r.keepOut(hash, u, why, forGood)
		return 0, nil
	}
	d := Doc{URL: u, State: New, Root: root, Depth: depth, Hops: hops, Parent: p.doc.ID}
	if err := r.b.enter(&d); err != nil {
		return 0, err
	}
	r.met.add(d.ID)
	r.comeUpon(u)
	r.mu.Lock()
	k := r.f.roots[root]
	if _, ok := k.hosts[d.Server]; !ok {
		k.hosts[d.Server] = struct{}{}
		k.dirty, r.b.roots = true, true
	}
	r.b.roots = r.b.roots || k.dirty
	r.mu.Unlock()
	if p.root.Search == Depth || r.state.Queued || !polite(u) {
		r.change(d.Server).fronts++
		return d.ID, r.b.enqueue(&d, p.root.Search, 0)
	}
	return d.ID, nil
}

// again decides about a link to a document that is known: mostly, that its
// server's list has it.
func (r *recorder) again(p *Page, id DocID, u string) error {
	d, ok := r.b.read(id)
	if !ok || d.URL != u {
		return nil // the hash of another's
	}
	if d.Queued() || d.Visit >= r.state.Number && d.State != Heard {
		r.met.add(id)
		return nil
	}
	if t, ok := p.dates[u]; ok && d.State == Stored && t.After(d.Checked) && r.belongs(&d) && !r.isDue(&d) {
		r.met.add(id)
		r.change(d.Server).fronts++
		return r.b.enqueue(&d, p.root.Search, 0)
	}
	queuedOnly := r.state.Queued && p.Outcome != Moved
	if d.State != Heard && (queuedOnly || !r.state.Queued && polite(u) && r.belongs(&d)) {
		r.met.add(id)
		return nil
	}
	if queuedOnly {
		return nil
	}
	depth, hops := depthOf(p)
	if why, forGood := r.refuses(p, u, depth); why != "" {
		r.keepOut(r.f.known.hash(u), u, why, forGood)
		return nil
	}
	root := RootID(p.root.URL)
	if d.Root != root || d.State == Heard || d.State == Vanished {
		if !r.room(root, p.root) {
			r.keepOut(r.f.known.hash(u), u, fmt.Sprintf("urls=%d", p.root.URLs), true)
			return nil
		}
		r.f.left(&d)
		r.b.roots = true
	}
	r.comeUpon(u)
	heard := d.State == Heard
	if heard {
		d.State, d.Parent = New, p.doc.ID
		r.b.list(&d)
	}
	d.Root, d.Depth, d.Hops = root, depth, hops
	r.met.add(id)
	if heard && polite(u) && p.root.Search != Depth && !r.state.Queued {
		return r.b.put(&d)
	}
	if !d.Queued() {
		r.change(d.Server).fronts++
	}
	return r.b.enqueue(&d, p.root.Search, 0)
}
