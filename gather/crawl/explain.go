package crawl

import (
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
)

// Explain tells what decides about a canonical URL under a plan, a line each:
// what would keep it out, which root it may count for, what its server's
// robots.txt says, and what its server waits for.
func (f *DB) Explain(p Plan, url string) (lines [][]ndb.Pair, err error) {
	v, err := newVisit(f, p, nil, nil, new(Counts))
	if err != nil {
		return nil, err
	}
	err = f.db.View(func(tx *bbolt.Tx) error {
		d, known := f.lookup(tx, url)
		if !known {
			d = Doc{URL: url}
		}
		lines = append(v.explainRoots(&d, known), f.explainServer(tx, &p, url)...)
		if known {
			for k := range ancestors(tx, f, &d) {
				lines = append(lines, []ndb.Pair{ndb.Of("from", k.URL), ndb.Of("depth", k.Depth)})
			}
		}
		return nil
	})
	return lines, err
}

// explainRoots tells which roots a URL may count for, and what they say of it.
func (v *visit) explainRoots(d *Doc, known bool) (lines [][]ndb.Pair) {
	v.mu.Lock()
	id := v.f.byOrigin[Origin(d.URL)]
	v.mu.Unlock()
	for rootID, r := range v.roots {
		v.mu.Lock()
		_, counts := v.f.roots[rootID].hosts[id]
		docs, hosts := v.f.roots[rootID].docs, len(v.f.roots[rootID].hosts)
		v.mu.Unlock()
		counts = counts && id != 0 || sameHost(Origin(d.URL), Origin(r.URL)) || r.Hosts > 1
		if !counts || !r.access(d.URL) || !polite(d.URL) && d.URL != r.URL && !strings.HasPrefix(d.URL, strings.TrimSuffix(r.URL, "/")+"/") {
			continue
		}
		line := []ndb.Pair{ndb.Of("root", r.URL)}
		if known && d.Root == rootID {
			line = append(line, ndb.Of("counts", true))
		}
		depth := 0
		if known {
			depth = d.Depth
		}
		if why := v.excluded(d.URL, r, depth); why != "" {
			line = append(line, ndb.Of("excluded", why))
		}
		if ok, rule := r.HostFilter.Admits(FilterHost(d.URL)); r.Hosts > 1 && !sameHost(Origin(d.URL), Origin(r.URL)) && !ok {
			line = append(line, ndb.Of("excluded", rule))
		}
		if r.URLs > 0 {
			line = append(line, ndb.Of("urls", fmt.Sprintf("%d of %d", docs, r.URLs)))
		}
		if r.Hosts > 1 {
			line = append(line, ndb.Of("hosts", fmt.Sprintf("%d of %d", hosts, r.Hosts)))
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 && !(known && d.Root == 0) {
		lines = append(lines, []ndb.Pair{ndb.Of("excluded", "no root covers it")})
	}
	return lines
}

// explainServer tells what its server says of a URL.
func (f *DB) explainServer(tx *bbolt.Tx, p *Plan, url string) (lines [][]ndb.Pair) {
	f.mu.Lock()
	id := f.byOrigin[Origin(url)]
	var s Server
	if id != 0 {
		s = f.servers[id-1]
	}
	f.mu.Unlock()
	if why := NewTrap(s.closed...).Refuses(url); why != "" && polite(url) {
		lines = append(lines, []ndb.Pair{ndb.Of("excluded", why)})
	}
	if id == 0 || !polite(url) {
		return lines
	}
	if isWeb(url) && !s.Until.IsZero() {
		line := []ndb.Pair{ndb.Of("robots", s.Robots), ndb.Of("until", s.Until)}
		v := visit{plan: *p}
		st := v.stand(s.Robots, s.Until, string(tx.Bucket(robotsBucket).Get(docKey(DocID(id)))))
		if why, _ := st.barred(url); why != "" {
			line = append(line, ndb.Of("excluded", why))
		} else if _, rule := st.rules.Allowed(url); rule != "" {
			line = append(line, ndb.Of("rule", rule))
		}
		lines = append(lines, line)
	}
	line := []ndb.Pair{ndb.Of("server", s.Origin), ndb.Of("delay", s.Delay)}
	if !s.Next.IsZero() {
		line = append(line, ndb.Of("next", s.Next))
	}
	if s.Failures > 0 {
		line = append(line, ndb.Of("failures", s.Failures))
	}
	if s.Why != "" {
		line = append(line, ndb.Of("reason", s.Why))
	}
	return append(lines, line)
}

// ancestors yields the documents that led to one, the nearest first.
func ancestors(tx *bbolt.Tx, f *DB, d *Doc) func(func(*Doc) bool) {
	return func(yield func(*Doc) bool) {
		at := *d
		for range 32 {
			up, ok := f.read(tx, at.Parent)
			if !ok || !yield(&up) {
				return
			}
			at = up
		}
	}
}
