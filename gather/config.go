package gather

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/essence"
	"harvest/gather/fetch"
)

// A config is what a Gatherer's configuration says. The text is described in
// docs/gather.4.md.
type config struct {
	reach    reachConfig
	text     string
	old      *imported // when it is one of Harvest 1
	roots    []crawl.Root
	rules    []rootRules // of each root
	lists    []list
	watched  []string  // URLs of roots
	once     []string  // those that nobody else is to gather
	since    time.Time // it is in force; zero: longer than the last visit
	filter   crawl.Filter
	strip    []string // parameters that links lose
	schedule schedule
	refresh  time.Duration
	ttl      time.Duration
	gone     time.Duration
	guard    crawl.Guard
	limits   crawl.Limits
	private  bool // roots from outside may lead to private addresses
	fullText bool
	agent    string // "" is the program's own
	from     string

	selection  selection
	duplicates string       // "drop", "keep", or "": drop those of servers
	export     exportConfig // see export.go
}

// Defaults are those of the original, but that there is no limit to the
// documents of a file tree.
const (
	defaultTTL     = 180 * 24 * time.Hour
	defaultRefresh = 30 * 24 * time.Hour
	defaultURLs    = 250
	defaultGone    = 24 * time.Hour
)

// defaultGuard lets a visit delete half of what is there, and as much as that.
var defaultGuard = crawl.Guard{Share: 0.5, Floor: 100}

// parseConfig reads the text of a config; an error is an *ndb.Error. It reads no
// other file: filtered does.
func parseConfig(text string) (*config, error) {
	if isOld(text) {
		return parseOld(text)
	}
	return parseEntries(text)
}

func parseEntries(text string) (*config, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &config{text: text, ttl: defaultTTL, refresh: defaultRefresh, gone: defaultGone, guard: defaultGuard, fullText: true}
	seen := make(map[string]int)
	urls := make(map[string]int)
	for _, e := range entries {
		if err := c.entry(e, seen, urls); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// entry reads a line. seen are the lines of settings, urls those of roots.
func (c *config) entry(e ndb.Entry, seen, urls map[string]int) error {
	if err := noPassword(e); err != nil {
		return err
	}
	switch e.First().Key {
	case "root", "leaf":
		return c.source(e, urls)
	case "allow", "deny":
		return c.pattern(e)
	case "local":
		return c.reach.mapping(e)
	case "select":
		return c.selection.parse(e)
	case "limit":
		return c.limit(e)
	case "gatherd":
		return c.export.gatherd(e)
	}
	for _, p := range e.Pairs {
		if line := seen[p.Key]; line != 0 {
			return e.Errorf(p, "%s: already in line %d", p.Key, line)
		}
		seen[p.Key] = e.Line
		if err := c.setting(e, p); err != nil {
			return err
		}
	}
	return nil
}

// checkLine refuses a line that no text could make good.
func checkLine(line string, n int) error {
	if isOldLine(line) {
		return nil // what it means depends on the lines around it
	}
	e, err := ndb.ParseLine(line, n)
	if err != nil || len(e.Pairs) == 0 {
		return err
	}
	_, err = parseEntries(strings.Repeat("\n", n-1) + line + "\n")
	return err
}

func (c *config) setting(e ndb.Entry, p ndb.Pair) (err error) {
	switch p.Key {
	case "every":
		c.schedule.every, err = atLeast(e, p, time.Second)
	case "at":
		c.schedule.at, err = clock(e, p)
	case "revisit":
		c.schedule.byAge, err = either(e, p, "age", "all")
	case "refresh":
		c.refresh, err = atLeast(e, p, time.Minute)
	case "ttl":
		c.ttl, err = atLeast(e, p, time.Minute)
	case "gone":
		c.gone, err = e.Duration(p)
	case "maxdelete":
		c.guard, err = guard(e, p)
	case "fulltext":
		c.fullText, err = e.Bool(p)
	case "private":
		c.private, err = e.Bool(p)
	case "strip":
		c.strip, err = parameters(e, p)
	case "user-agent":
		c.agent, err = header(e, p)
	case "from":
		c.from, err = header(e, p)
	case "proxy", "cookies":
		err = c.reach.setting(e, p)
	case "warc", "replay":
		err = c.export.setting(e, p)
	case "duplicates":
		c.duplicates, err = copies(e, p)
	default:
		err = e.Errorf(p, "unknown key '%s'; there are root, leaf, allow, deny, local, select, limit, gatherd, duplicates, every, at, revisit, refresh, ttl, gone, maxdelete, "+
			"fulltext, strip, private, proxy, cookies, user-agent, from, warc and replay", p.Key)
	}
	return err
}

// print stands for all of the configuration that summaries depend on.
func (c *config) print(version string, types uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %t %s %s %x", essence.Version, version, c.fullText, c.ttl, c.refresh, types)
	return h.Sum64()
}

// plan puts into a plan what the configuration says of the visit.
func (c *config) plan(p *crawl.Plan) {
	p.Roots = c.roots
	p.Exclude = c.exclude
	p.From = c.from
	p.Refresh = min(c.refresh, c.ttl/2)
	p.Life = c.ttl - min(c.ttl/10, time.Minute)
	p.GoneAfter, p.MaxGone = c.gone, c.guard
	p.Limits = c.limits
	p.Strip = c.strip
	if !c.private {
		p.Public = fetch.Public
	}
	if c.schedule.byAge {
		p.Revisit = crawl.ByAge
	}
}
