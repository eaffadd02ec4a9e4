package gather

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
	"harvest/gather/essence"
)

// A config is what a Gatherer's configuration says. The text is described in
// docs/gather.4.md.
type config struct {
	reach    reachConfig
	text     string
	roots    []crawl.Root
	patterns []pattern
	every    time.Duration // 0: only when told to run
	refresh  time.Duration
	ttl      time.Duration
	fullText bool
	agent    string // "" is the program's own
	from     string

	selection  selection
	duplicates string       // "drop", "keep", or "": drop those of servers
	export     exportConfig // see export.go
}

// A pattern lets URLs in or keeps them out; the first that matches decides.
type pattern struct {
	re    *regexp.Regexp
	allow bool
}

// Defaults are those of the original, but that there is no limit to the
// documents of a file tree.
const (
	defaultTTL     = 180 * 24 * time.Hour
	defaultRefresh = 30 * 24 * time.Hour
	defaultURLs    = 250
)

// parseConfig reads the text of a config; an error is an *ndb.Error.
func parseConfig(text string) (*config, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &config{text: text, ttl: defaultTTL, refresh: defaultRefresh, fullText: true}
	seen := make(map[string]int)
	urls := make(map[string]int)
	for _, e := range entries {
		switch e.First().Key {
		case "root", "leaf":
			err = c.source(e, urls)
		case "allow", "deny":
			err = c.pattern(e)
		case "local":
			err = c.reach.mapping(e)
		case "select":
			err = c.selection.parse(e)
		case "gatherd":
			err = c.export.gatherd(e)
		default:
			for _, p := range e.Pairs {
				if line := seen[p.Key]; line != 0 {
					return nil, e.Errorf(p, "%s: already in line %d", p.Key, line)
				}
				seen[p.Key] = e.Line
				if err = c.setting(e, p); err != nil {
					break
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkLine refuses a line that no text could make good.
func checkLine(line string, n int) error {
	e, err := ndb.ParseLine(line, n)
	if err != nil || len(e.Pairs) == 0 {
		return err
	}
	_, err = parseConfig(strings.Repeat("\n", n-1) + line + "\n")
	return err
}

// source reads a root or a leaf.
func (c *config) source(e ndb.Entry, urls map[string]int) (err error) {
	kind := e.First()
	if kind.Value != "" {
		return e.Errorf(kind, "%s: takes no value; write url=%s", kind.Key, kind.Value)
	}
	u, ok := e.Pair("url")
	if !ok {
		return e.Errorf(kind, "%s: url=URL is missing", kind.Key)
	}
	r := crawl.Root{Leaf: kind.Key == "leaf", Depth: -1, Delay: -1}
	if r.URL, err = crawl.Canonical(u.Value); err != nil {
		return e.Errorf(u, "%s: %w", kind.Key, err)
	}
	if line := urls[r.URL]; line != 0 {
		return e.Errorf(u, "%s: %s is already in line %d", kind.Key, r.URL, line)
	}
	urls[r.URL] = e.Line
	if !strings.HasPrefix(r.URL, "file:") && !r.Leaf {
		r.URLs = defaultURLs
	}
	seen := make(map[string]bool)
	for _, p := range e.Pairs[1:] {
		if seen[p.Key] {
			return e.Errorf(p, "%s: %s is there twice", kind.Key, p.Key)
		}
		seen[p.Key] = true
		if err := rootSetting(&r, e, p); err != nil {
			return err
		}
	}
	c.roots = append(c.roots, r)
	return nil
}

func rootSetting(r *crawl.Root, e ndb.Entry, p ndb.Pair) (err error) {
	if r.Leaf && p.Key != "url" && p.Key != "delay" {
		return e.Errorf(p, "leaf: unknown key '%s'; there are url and delay", p.Key)
	}
	switch p.Key {
	case "url":
	case "depth":
		r.Depth, err = number(e, p, -1)
	case "urls":
		if r.URLs, err = number(e, p, 0); err == nil && r.URLs == 0 && p.Value != "unlimited" {
			err = e.Errorf(p, "urls: 0 would gather nothing; for no limit write unlimited")
		}
	case "hosts":
		if p.Value != "1" {
			err = e.Errorf(p, "hosts: a root is gathered from its own host only; there is no hosts=%s", p.Value)
		}
	case "delay":
		r.Delay, err = e.Duration(p)
	case "search":
		switch p.Value {
		case "breadth":
			r.Search = crawl.Breadth
		case "depth":
			r.Search = crawl.Depth
		default:
			err = e.Errorf(p, "search: '%s' is neither breadth nor depth", p.Value)
		}
	default:
		err = e.Errorf(p, "root: unknown key '%s'; there are url, depth, urls, hosts, delay and search", p.Key)
	}
	return err
}

// number reads a limit; "unlimited" is none, which is said by a number.
func number(e ndb.Entry, p ndb.Pair, none int) (int, error) {
	if p.Value == "unlimited" {
		return none, nil
	}
	n, err := e.Int(p)
	if err == nil && (n < 0 || n > 1<<30) {
		err = e.Errorf(p, "%s: %d is out of range", p.Key, n)
	}
	return n, err
}

func (c *config) pattern(e ndb.Entry) error {
	for _, p := range e.Pairs {
		if p.Key != "allow" && p.Key != "deny" {
			return e.Errorf(p, "%s: unknown key '%s'; a line has patterns only", e.First().Key, p.Key)
		}
		if p.Value == "" {
			return e.Errorf(p, "%s: the pattern is empty", p.Key)
		}
		re, err := regexp.Compile(p.Value)
		if err != nil {
			return e.Errorf(p, "%s: %v", p.Key, err)
		}
		c.patterns = append(c.patterns, pattern{re, p.Key == "allow"})
	}
	return nil
}

func (c *config) setting(e ndb.Entry, p ndb.Pair) (err error) {
	switch p.Key {
	case "every":
		c.every, err = atLeast(e, p, time.Second)
	case "refresh":
		c.refresh, err = atLeast(e, p, time.Minute)
	case "ttl":
		c.ttl, err = atLeast(e, p, time.Minute)
	case "fulltext":
		c.fullText, err = e.Bool(p)
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
		err = e.Errorf(p, "unknown key '%s'; there are root, leaf, allow, deny, local, select, gatherd, duplicates, every, refresh, ttl, fulltext, proxy, cookies, user-agent, from, warc and replay", p.Key)
	}
	return err
}

func atLeast(e ndb.Entry, p ndb.Pair, least time.Duration) (time.Duration, error) {
	d, err := e.Duration(p)
	if err == nil && d < least {
		err = e.Errorf(p, "%s: %s is less than %s", p.Key, d, least)
	}
	return d, err
}

// header reads what is sent as a header: printable ASCII.
func header(e ndb.Entry, p ndb.Pair) (string, error) {
	if p.Value == "" || strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", e.Errorf(p, "%s: '%s' is not printable ASCII", p.Key, p.Value)
	}
	return p.Value, nil
}

// exclude is crawl.Plan.Exclude. A folder is kept out, with all that is in it,
// by a deny that comes before every allow and is not about how URLs end.
func (c *config) exclude(url string, folder bool) string {
	path := url
	if i := strings.Index(url, "://"); i >= 0 {
		if path = url[i+3:]; !strings.HasPrefix(path, "/") {
			_, path, _ = strings.Cut(path, "/")
			path = "/" + path
		}
	}
	for _, p := range c.patterns {
		switch {
		case folder && (p.allow || strings.Contains(p.re.String(), "$")):
			return ""
		case p.re.MatchString(path):
			if p.allow {
				return ""
			}
			return "deny=" + p.re.String()
		}
	}
	return ""
}

// print stands for all of the configuration that summaries depend on.
func (c *config) print(version string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %t %s %s", essence.Version, version, c.fullText, c.ttl, c.refresh)
	return h.Sum64()
}
