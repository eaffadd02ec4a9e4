package dns

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// entry finds a name in the table, or gives it a place. Mu is held.
func (r *Resolver) entry(name string) *entry {
	e := r.table[name]
	if e == nil {
		r.makeRoom()
		e = &entry{name: name}
		r.table[name] = e
	}
	e.used = r.now()
	return e
}

// makeRoom forgets a name when the table is full: of eight that chance picks,
// the one used longest ago. Those being asked for stay, so that they are not
// asked for twice; they are as many as wait for them.
func (r *Resolver) makeRoom() {
	if len(r.table) < r.names {
		return
	}
	var oldest *entry
	n := 0
	for _, e := range r.table {
		if e.flight == nil && (oldest == nil || e.used.Before(oldest.used)) {
			oldest = e
		}
		if n++; n >= 8 && oldest != nil {
			break
		}
	}
	if oldest != nil {
		delete(r.table, oldest.name)
	}
}

// An Entry is a name as the table has it.
type Entry struct {
	Name    string
	Addrs   []netip.Addr // the reader's own
	Expires time.Time    // past: stale; zero: being asked for the first time
	Err     error        // why there are no addresses
	Hits    int64        // how often it was told without asking
}

// All lists the table as it is when the listing begins, by name.
func (r *Resolver) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		r.mu.Lock()
		all := make([]Entry, 0, len(r.table))
		for e := range maps.Values(r.table) {
			all = append(all, Entry{e.name, slices.Clone(e.addrs), e.expires, e.err, e.hits})
		}
		r.mu.Unlock()
		slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range all {
			if !yield(e) {
				return
			}
		}
	}
}

// Forget drops a name from the table; it is asked for when it is next looked up.
func (r *Resolver) Forget(host string) {
	if name, err := canonical(host); err == nil {
		r.mu.Lock()
		delete(r.table, name)
		r.mu.Unlock()
	}
}
