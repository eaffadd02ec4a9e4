package replica

import (
	"fmt"
	"strings"
	"time"

	"harvest/fs/ndb"
)

// status is the state and figures of the Replica, then of each source and writer.
func (r *Replica) status() string {
	heads, _ := r.mirror.heads()
	var b strings.Builder
	line := func(pairs ...ndb.Pair) { b.WriteString(ndb.Format(pairs...) + "\n") }
	state, last := "idle", time.Time{}
	filling := r.mirror.fillings()
	if len(filling) > 0 {
		state = "filling"
	}
	members := r.sorted()
	for _, m := range members {
		m.mu.Lock()
		if m.last.After(last) {
			last = m.last
		}
		m.mu.Unlock()
	}
	line(ndb.Of("state", state))
	line(ndb.Of("objects", r.store.Count()))
	line(ndb.Of("last", last))
	line(ndb.Of("writer", fmt.Sprintf("%x", []byte(r.mirror.public()))))
	line(ndb.Of("root", strings.TrimSpace(r.root())))
	line(ndb.Of("members", len(members)))
	r.mu.Lock()
	sources := make([]*source, 0, len(r.sources))
	for _, c := range r.config.sources {
		sources = append(sources, r.sources[c.path])
	}
	r.mu.Unlock()
	for _, s := range sources {
		line(s.pairs()...)
	}
	for i := range heads {
		h := &heads[i]
		line(ndb.Of("head", ""), ndb.Of("of", h.Writer()), ndb.Of("version", h.Version), ndb.Of("objects", h.Count), ndb.Of("signed", time.Unix(h.Time, 0)))
	}
	for _, f := range filling {
		line(f...)
	}
	return b.String()
}

func (s *source) pairs() []ndb.Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := []ndb.Pair{ndb.Of("source", ""), ndb.Of("path", s.path), ndb.Of("last", s.last), ndb.Of("updates", s.updates), ndb.Of("deletes", s.deletes), ndb.Of("bad", s.bad)}
	if s.err != nil {
		pairs = append(pairs, ndb.Of("err", s.err))
	}
	return pairs
}

// fillings tells of the writers that are being filled.
func (m *mirror) fillings() (all [][]ndb.Pair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, x := range m.writers {
		if x.filling {
			all = append(all, []ndb.Pair{ndb.Of("filling", ""), ndb.Of("of", w), ndb.Of("objects", x.count), ndb.Of("from", x.busy)})
		}
	}
	return all
}

// table is the file members: a line a member, its path first.
func (r *Replica) table() string {
	var b strings.Builder
	heads, _ := r.mirror.heads()
	members := r.sorted()
	next := make(map[*member]bool)
	for _, m := range members {
		next[m], _ = m.neighbor()
	}
	for _, m := range members {
		m.mu.Lock()
		behind := 0 // writers of which it has told less than is here
		for i := range heads {
			if m.had[heads[i].Writer()].less(heads[i].Version) {
				behind++
			}
		}
		state := "idle"
		switch {
		case time.Now().Before(m.aside):
			state = "aside"
		case m.err != nil:
			state = "failing"
		case m.last.IsZero():
			state = "new"
		}
		pairs := []ndb.Pair{ndb.Of("member", m.path), ndb.Of("state", state), ndb.Of("connected", m.live != nil), ndb.Of("of", m.id), ndb.Of("neighbor", next[m]),
			ndb.Of("behind", behind), ndb.Of("last", m.last), ndb.Of("next", m.next), ndb.Of("rtt", m.rtt.Round(time.Microsecond)),
			ndb.Of("records", m.total.records), ndb.Of("objects", m.total.objects), ndb.Of("bytes", m.total.bytes), ndb.Of("requests", m.total.requests), ndb.Of("walks", m.total.walks)}
		if m.err != nil {
			pairs = append(pairs, ndb.Of("err", m.err))
		}
		m.mu.Unlock()
		b.WriteString(ndb.Format(pairs...) + "\n")
	}
	return b.String()
}

// conflicts is the proofs of forks, and then what was told that cannot be.
func (r *Replica) conflicts() string {
	var b strings.Builder
	_, forks := r.mirror.heads()
	for i := range forks {
		f := &forks[i]
		b.WriteString(ndb.Format(ndb.Of("fork", f[0].Writer()), ndb.Of("version", f[0].Version), ndb.Of("digest", fmt.Sprintf("%x", f[0].Digest)), ndb.Of("other", fmt.Sprintf("%x", f[1].Digest)),
			ndb.Of("signature", fmt.Sprintf("%x", f[0].Sig)), ndb.Of("other-signature", fmt.Sprintf("%x", f[1].Sig))) + "\n")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.trouble {
		b.WriteString(line + "\n")
	}
	return b.String()
}
