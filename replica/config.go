package replica

import (
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"harvest/fs/ndb"
)

// A config is what the text of the config file says.
type config struct {
	sources  []sourceConfig
	members  []memberConfig
	masters  map[Writer]bool // whose objects are taken; nil: anybody's
	allow    []grant         // who may read; none: everybody
	full     time.Duration   // between exchanges with a member that has told nothing new
	horizon  time.Duration   // how long deletions are told one by one
	measure  measureConfig
	topology topologyConfig
}

type sourceConfig struct {
	path  string
	every time.Duration
}

type memberConfig struct{ path string }

// A grant is a user or a group.
type grant struct{ user, group string }

// What counts without a config.
const (
	defaultFull    = time.Minute
	defaultHorizon = 720 * time.Hour
	everyHere      = 2 * time.Second
	everyFar       = time.Minute
)

// parseConfig reads the text of a config; an error is an *ndb.Error.
func parseConfig(text string) (*config, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &config{full: defaultFull, horizon: defaultHorizon, measure: measureConfig{defaultMeasure, defaultProbe, defaultMeasured}}
	for _, e := range entries {
		if err := c.entry(e); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *config) entry(e ndb.Entry) error {
	first := e.First()
	if first.Value != "" {
		return e.Errorf(first, "%s: takes no value", first.Key)
	}
	switch first.Key {
	case "source":
		return c.source(e)
	case "member":
		return c.member(e)
	case "master":
		return c.master(e)
	case "allow":
		return c.granting(e)
	case "full":
		return c.interval(e, "every", time.Second, &c.full)
	case "measure":
		return c.measuring(e)
	case "topology":
		return c.graph(e)
	case "tombstones":
		return c.interval(e, "keep", time.Hour, &c.horizon)
	}
	return e.Errorf(first, "unknown key '%s'; there are source, member, master, allow, full, measure, topology and tombstones", first.Key)
}

// only refuses pairs other than those of some keys, and repeated ones.
func only(e ndb.Entry, keys ...string) error {
	for i, p := range e.Pairs[1:] {
		again := slices.ContainsFunc(e.Pairs[1:i+1], func(o ndb.Pair) bool { return o.Key == p.Key })
		if again || !slices.Contains(keys, p.Key) {
			return e.Errorf(p, "%s: unknown or repeated key '%s'", e.First().Key, p.Key)
		}
	}
	return nil
}

func path(e ndb.Entry) (ndb.Pair, error) {
	p, ok := e.Pair("path")
	if !ok || p.Value == "" {
		return p, e.Errorf(e.First(), "%s: path=PATH is missing", e.First().Key)
	}
	return p, nil
}

func (c *config) source(e ndb.Entry) error {
	p, err := path(e)
	if err != nil {
		return err
	}
	s := sourceConfig{p.Value, everyHere}
	if strings.Contains(s.path, "!") {
		s.every = everyFar
	}
	if q, ok := e.Pair("every"); ok {
		if s.every, err = e.Duration(q); err != nil {
			return err
		}
		if s.every < time.Second {
			return e.Errorf(q, "every: %s is less than a second", s.every)
		}
	}
	if slices.ContainsFunc(c.sources, func(o sourceConfig) bool { return o.path == s.path }) {
		return e.Errorf(p, "source: %s is there already", s.path)
	}
	c.sources = append(c.sources, s)
	return only(e, "path", "every")
}

func (c *config) member(e ndb.Entry) error {
	p, err := path(e)
	if err != nil {
		return err
	}
	m := memberConfig{p.Value}
	if slices.Contains(c.members, m) {
		return e.Errorf(p, "member: %s is there already", m.path)
	}
	c.members = append(c.members, m)
	return only(e, "path")
}

func (c *config) master(e ndb.Entry) error {
	p, ok := e.Pair("writer")
	key, err := hex.DecodeString(p.Value)
	if !ok || err != nil || len(key) != ed25519.PublicKeySize {
		return e.Errorf(p, "master: writer=KEY is missing, the 64 hex digits that status has of the member")
	}
	if c.masters == nil {
		c.masters = make(map[Writer]bool)
	}
	c.masters[WriterOf(key)] = true
	return only(e, "writer")
}

func (c *config) granting(e ndb.Entry) error {
	user, _ := e.Get("user")
	group, _ := e.Get("group")
	if (user == "") == (group == "") {
		return e.Errorf(e.First(), "allow: user=NAME or group=NAME is missing")
	}
	c.allow = append(c.allow, grant{user, group})
	return only(e, "user", "group")
}

func (c *config) interval(e ndb.Entry, key string, least time.Duration, into *time.Duration) (err error) {
	p, ok := e.Pair(key)
	if !ok {
		return e.Errorf(e.First(), "%s: %s=DURATION is missing", e.First().Key, key)
	}
	if *into, err = e.Duration(p); err == nil && *into < least {
		err = e.Errorf(p, "%s: %s is less than %s", key, *into, least)
	}
	if err != nil {
		return err
	}
	return only(e, key)
}

// checkLine refuses what no config could have.
func checkLine(line string, n int) error {
	e, err := ndb.ParseLine(line, n)
	if err != nil || len(e.Pairs) == 0 {
		return err
	}
	return new(config).entry(e)
}

// How members are measured: a round of short questions, a probe of the bandwidth, and
// how many of the members in one round.
type measureConfig struct {
	every, probe time.Duration
	members      int
}

// A topologyConfig bounds the graph; what is 0 is topology's default.
type topologyConfig struct{ k, degree int }

// What counts of both without a config.
const (
	defaultMeasure  = 15 * time.Second
	defaultProbe    = 5 * time.Minute
	defaultMeasured = 8
)

func (c *config) measuring(e ndb.Entry) (err error) {
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "every":
			c.measure.every, err = atLeast(e, p, time.Second)
		case "probe":
			c.measure.probe, err = atLeast(e, p, time.Second)
		case "members":
			if c.measure.members, err = e.Int(p); err == nil && c.measure.members < 1 {
				err = e.Errorf(p, "members: %d is less than 1", c.measure.members)
			}
		}
		if err != nil {
			return err
		}
	}
	return only(e, "every", "probe", "members")
}

func atLeast(e ndb.Entry, p ndb.Pair, least time.Duration) (time.Duration, error) {
	d, err := e.Duration(p)
	if err == nil && d < least {
		err = e.Errorf(p, "%s: %s is less than %s", p.Key, d, least)
	}
	return d, err
}

func (c *config) graph(e ndb.Entry) (err error) {
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "k":
			c.topology.k, err = e.Int(p)
		case "degree":
			c.topology.degree, err = e.Int(p)
		}
		if err != nil {
			return err
		}
	}
	k, degree := cmp.Or(c.topology.k, 2), cmp.Or(c.topology.degree, 1000)
	if k < 1 || degree < max(k, 2) {
		return e.Errorf(e.First(), "topology: k=%d degree=%d: want k at least 1, and degree at least k and 2", c.topology.k, c.topology.degree)
	}
	return only(e, "k", "degree")
}
