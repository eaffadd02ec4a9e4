package gather

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// A selection says which of the documents that were fetched are the collection.
// It is read from the select lines of a config. Without any, all are.
//
//	select shortest=10                      a server's shortest URLs
//	select inlinks=5 allow=/doc/            what pages of five other servers link to
//	select url=http://h/a url=http://h/b    by hand
//	select cover=1000                       what most is near to: cover.go
//	select out allow=/mirror/               whatever other lines say
//	select limit=100000 order=inlinks       of all these
//
// A line takes the documents that meet all its conditions, and of those what its
// pick leaves; the collection is what any line takes.
type selection struct {
	rules []*rule // in the order of their lines
	out   []*rule
	limit int // of the whole; 0 is none
	order order
	total int // line of limit, 0 without one
}

// A rule is one line of a selection.
type rule struct {
	text string // as it is told
	line int

	// Conditions.
	urls      map[string]bool // exactly these; nil: any
	allow     []*regexp.Regexp
	deny      []*regexp.Regexp
	inlinks   int
	submitted int

	// What is picked of those that meet them; 0 is all.
	shortest int // for each server
	cover    int
	radius   int
	limit    int
	order    order
}

// An order tells which documents a limit takes first. Equals are taken in the
// order of their URLs.
type order uint8

const (
	byScore    order = iota // of figure 4.3
	byInlinks               // most links from other servers
	byShortest              // shortest path
)

var orders = [...]string{"score", "inlinks", "shortest"}

// maxRules bounds the lines of a selection: each is tried on each document.
const maxRules = 1000

// maxRadius bounds how far a cover looks.
const maxRadius = 3

// parse adds a select line.
func (s *selection) parse(e ndb.Entry) error {
	first := e.First()
	if first.Value != "" {
		return e.Errorf(first, "select: takes no value; write select KEY=%s", first.Value)
	}
	if len(s.rules)+len(s.out) >= maxRules {
		return e.Errorf(first, "select: more than %d lines", maxRules)
	}
	pairs, out := e.Pairs[1:], false
	if len(pairs) > 0 && pairs[0].Key == "out" {
		if pairs[0].Value != "" {
			return e.Errorf(pairs[0], "select: out takes no value; write select out allow=%s", pairs[0].Value)
		}
		pairs, out = pairs[1:], true
	}
	if len(pairs) == 0 {
		return e.Errorf(first, "select: of what? there are url, allow, deny, inlinks, submitted, shortest, cover and limit")
	}
	r := &rule{text: ndb.Format(e.Pairs[1:]...), line: e.Line, radius: 2}
	for i, p := range pairs {
		if err := r.set(e, p, pairs[:i]); err != nil {
			return err
		}
	}
	if err := r.check(e, out); err != nil {
		return err
	}
	switch {
	case out:
		s.out = append(s.out, r)
	case r.conditions() || r.shortest+r.cover > 0:
		s.rules = append(s.rules, r)
	case s.total != 0:
		return e.Errorf(pairs[0], "select: line %d already bounds the whole", s.total)
	default:
		s.limit, s.order, s.total = r.limit, r.order, e.Line
	}
	return nil
}

// set reads one pair of a line; before are those that came before it.
func (r *rule) set(e ndb.Entry, p ndb.Pair, before []ndb.Pair) (err error) {
	switch p.Key {
	case "url":
		u, err := crawl.Canonical(p.Value)
		if err != nil {
			return e.Errorf(p, "select: %w", err)
		}
		if r.urls == nil {
			r.urls = make(map[string]bool)
		}
		r.urls[u] = true
		return nil
	case "allow", "deny":
		return r.pattern(e, p)
	}
	for _, q := range before {
		if q.Key == p.Key {
			return e.Errorf(p, "select: %s is there twice", p.Key)
		}
	}
	switch p.Key {
	case "inlinks":
		r.inlinks, err = positive(e, p)
	case "submitted":
		r.submitted, err = positive(e, p)
	case "shortest":
		r.shortest, err = positive(e, p)
	case "cover":
		r.cover, err = positive(e, p)
	case "radius":
		if r.radius, err = positive(e, p); err == nil && r.radius > maxRadius {
			err = e.Errorf(p, "radius: %d is more than %d", r.radius, maxRadius)
		}
	case "limit":
		r.limit, err = positive(e, p)
	case "order":
		r.order, err = parseOrder(e, p)
	default:
		err = e.Errorf(p, "select: unknown key '%s'; there are out, url, allow, deny, inlinks, submitted, shortest, cover, radius, limit and order", p.Key)
	}
	return err
}

func (r *rule) pattern(e ndb.Entry, p ndb.Pair) error {
	if p.Value == "" {
		return e.Errorf(p, "%s: the pattern is empty", p.Key)
	}
	re, err := regexp.Compile(p.Value)
	if err != nil {
		return e.Errorf(p, "%s: %v", p.Key, err)
	}
	if p.Key == "allow" {
		r.allow = append(r.allow, re)
	} else {
		r.deny = append(r.deny, re)
	}
	return nil
}

func positive(e ndb.Entry, p ndb.Pair) (int, error) {
	n, err := e.Int(p)
	if err == nil && (n < 1 || n > 1<<30) {
		err = e.Errorf(p, "%s: %d is out of range", p.Key, n)
	}
	return n, err
}

func parseOrder(e ndb.Entry, p ndb.Pair) (order, error) {
	for i, name := range orders {
		if p.Value == name {
			return order(i), nil
		}
	}
	return 0, e.Errorf(p, "order: '%s' is neither score, inlinks nor shortest", p.Value)
}

// check refuses keys that make no sense together.
func (r *rule) check(e ndb.Entry, out bool) error {
	has := func(key string) bool { _, ok := e.Pair(key); return ok }
	at := func(key string) ndb.Pair { p, _ := e.Pair(key); return p }
	switch {
	case out && r.shortest+r.cover+r.limit > 0:
		return e.Errorf(at("out"), "select: out has conditions only, no shortest, cover or limit")
	case r.shortest > 0 && r.cover > 0:
		return e.Errorf(at("cover"), "select: shortest and cover are two lines")
	case r.cover > 0 && r.limit > 0:
		return e.Errorf(at("limit"), "select: cover=%d is the limit", r.cover)
	case has("radius") && r.cover == 0:
		return e.Errorf(at("radius"), "select: radius is for cover")
	case has("order") && r.limit == 0:
		return e.Errorf(at("order"), "select: order is for limit")
	}
	return nil
}

func (r *rule) conditions() bool {
	return r.urls != nil || r.allow != nil || r.deny != nil || r.inlinks+r.submitted > 0
}

// meets reports whether a document meets the conditions of a line.
func (r *rule) meets(d *candidate) bool {
	if r.inlinks > d.inlinks || r.submitted > d.submitted || r.urls != nil && !r.urls[d.url] {
		return false
	}
	return (r.allow == nil || matches(r.allow, d.url)) && !matches(r.deny, d.url)
}

func matches(patterns []*regexp.Regexp, s string) bool {
	for _, re := range patterns {
		if re.MatchString(s) {
			return true
		}
	}
	return false
}

// mayTake reports whether a document is not left out, and meets the conditions of
// some line, whatever that then picks.
func (s *selection) mayTake(d *crawl.Doc) bool {
	c := candidate{url: d.URL, inlinks: d.InLinks, submitted: d.Submitted}
	for _, r := range s.out {
		if r.meets(&c) {
			return false
		}
	}
	for _, r := range s.rules {
		if r.meets(&c) {
			return true
		}
	}
	return len(s.rules) == 0
}

// all reports whether the selection takes everything.
func (s *selection) all() bool { return len(s.rules)+len(s.out)+s.total == 0 }

// plain reports whether a document alone tells whether it is selected, by its
// URL: nothing of it has to be compared with others, or can change by a link.
func (s *selection) plain() bool {
	for _, r := range s.rules {
		if r.shortest+r.cover+r.limit+r.inlinks+r.submitted > 0 {
			return false
		}
	}
	for _, r := range s.out {
		if r.inlinks+r.submitted > 0 {
			return false
		}
	}
	return s.total == 0
}

// text is the selection as it is told and compared, a line a rule.
func (s *selection) text() string {
	var b strings.Builder
	for _, r := range append(append([]*rule(nil), s.rules...), s.out...) {
		b.WriteString(r.text + "\n")
	}
	if s.total != 0 {
		fmt.Fprintf(&b, "limit=%d order=%s\n", s.limit, orders[s.order])
	}
	return b.String()
}

// print stands for all of a configuration that the collection depends on.
func (s *selection) print(duplicates string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(duplicates + "\n" + s.text()))
	return h.Sum64()
}

// copies reads duplicates=.
func copies(e ndb.Entry, p ndb.Pair) (string, error) {
	if p.Value != "drop" && p.Value != "keep" {
		return "", e.Errorf(p, "duplicates: '%s' is neither drop nor keep", p.Value)
	}
	return p.Value, nil
}
