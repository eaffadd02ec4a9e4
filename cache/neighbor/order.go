package neighbor

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"harvest/cache/icp"
)

// The codes of a choice, as in squid's log. TIMEOUT_ stands before one that
// was made while a neighbour was silent.
const (
	hitSibling = "SIBLING_HIT"
	hitParent  = "PARENT_HIT"
	missParent = "FIRST_PARENT_MISS"   // the fastest of those that would fetch it
	nearParent = "CLOSEST_PARENT_MISS" // the one from which the origin is nearest
	soleParent = "SINGLE_PARENT"
	hashParent = "CARP"
	upParent   = "FIRSTUP_PARENT" // nobody was asked
	anyParent  = "ANY_OLD_PARENT" // nothing else is left
	direct     = "HIER_DIRECT"    // there is no one else
	fastDirect = "SOURCE_FASTEST" // the origin is faster than the parents,
	nearDirect = "CLOSEST_DIRECT" // than through any of them
	timeout    = "TIMEOUT_"
)

// plan puts whom there is in order.
func (q *query) plan(r Request) Plan {
	p := Plan{Asked: len(q.asked)}
	if q.only != nil {
		p.Asked = 0
	}
	if q.origin > 0 && !q.broken {
		p.Origin = q.origin
	}
	for _, s := range q.said {
		p.Answers = append(p.Answers, Answer{s.p.Name, s.Reply})
	}
	if q.forced {
		p.Choices = []Choice{{Code: direct}}
		return p
	}
	for _, s := range q.said {
		if s.Op == icp.Hit {
			p.hit(s.p)
		}
	}
	if q.only != nil {
		p.add(q.only, soleParent)
	}
	if r.Ask {
		p.addAll(q.pool, hashParent)
	}
	q.fastest(&p)
	q.rest(&p)
	return p
}

// fastest adds the parents that would fetch the URL and the origin, if it is
// connected to, by speed.
func (q *query) fastest(p *Plan) {
	var miss []said
	for _, s := range q.said {
		if s.Op == icp.Miss && s.p.Kind == Parent {
			miss = append(miss, s)
		}
	}
	slices.SortStableFunc(miss, func(a, b said) int {
		switch {
		case a.HasSource && !b.HasSource:
			return -1
		case b.HasSource && !a.HasSource:
			return 1
		}
		return cmp.Compare(a.cost(), b.cost())
	})
	early := ""
	if q.late {
		early = timeout
	}
	if q.direct && p.Origin > 0 && len(miss) > 0 && p.Origin < miss[0].cost() {
		code := fastDirect
		if miss[0].HasSource {
			code = nearDirect
		}
		p.addOrigin(early + code)
	}
	for _, s := range miss {
		code := missParent
		if s.HasSource {
			code = nearParent
		}
		p.add(s.p, early+code)
	}
	if q.direct && !q.broken {
		p.addOrigin(early + direct)
	}
}

// rest adds the parents that might do, but for those that said they would not,
// and an origin that could not be reached a moment ago.
func (q *query) rest(p *Plan) {
	code := upParent
	if len(p.Choices) > 0 || len(q.said) > 0 {
		code = anyParent
	}
	p.addAll(q.pool, hashParent)
	for _, n := range q.parents {
		if !slices.ContainsFunc(q.said, func(s said) bool { return s.p == n && s.Op != icp.Miss && s.Op != icp.Hit }) {
			p.add(n, code)
			code = anyParent
		}
	}
	if q.direct {
		p.addOrigin(direct)
	}
}

// cost is how fast a parent is: to it, or through it to the origin if it tells.
func (s said) cost() time.Duration {
	d := s.RTT
	if s.HasSource {
		d += s.Source
	}
	return d / time.Duration(max(s.p.Weight, 1))
}

func (p *Plan) addAll(all []*peer, code string) {
	for _, n := range all {
		p.add(n, code)
	}
}

// add adds a parent, once.
func (p *Plan) add(n *peer, code string) {
	if !slices.ContainsFunc(p.Choices, func(c Choice) bool { return c.Name == n.Name }) {
		p.Choices = append(p.Choices, Choice{Config: n.Config, Code: code})
	}
}

// hit adds one that holds the URL. A parent that does not after all may fetch it.
func (p *Plan) hit(n *peer) {
	c := Choice{Config: n.Config, Code: hitParent}
	if n.Kind == Sibling {
		c.Code, c.OnlyIfCached = hitSibling, true
	}
	p.Choices = append(p.Choices, c)
}

func (p *Plan) addOrigin(code string) {
	if !slices.ContainsFunc(p.Choices, func(c Choice) bool { return c.Name == "" }) {
		p.Choices = append(p.Choices, Choice{Code: code})
	}
}

// rendezvous sorts neighbours by how much a URL is theirs: each scores by a hash
// of the URL and its own name, and by its weight (highest random weight with
// logarithms, so that a share is in proportion to the weight). When one goes
// only the URLs that were its own move.
func rendezvous(all []*peer, url string) {
	if len(all) < 2 {
		return
	}
	score := make(map[*peer]float64, len(all))
	for _, p := range all {
		h := fnv.New64a()
		h.Write([]byte(p.Name))
		h.Write([]byte{0})
		h.Write([]byte(url))
		u := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
		score[p] = -float64(max(p.Weight, 1)) / math.Log(u)
	}
	slices.SortStableFunc(all, func(a, b *peer) int { return cmp.Compare(score[b], score[a]) })
}

// mix spreads the bits of a hash, whose highest hardly change with its input's
// end (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
