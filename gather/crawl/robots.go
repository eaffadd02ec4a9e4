package crawl

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jimsmart/grobotstxt"
)

// Robots are the rules of one robots.txt for one agent, as RFC 9309 reads
// them: the groups that name the agent, or else those for *; the longest
// matching pattern decides, and Allow among equals.
type Robots struct {
	rules    []rule        // longest pattern first
	Delay    time.Duration // Crawl-delay, or 0
	Sitemaps []string      // of the Sitemap lines, which are for all agents, as they stand
}

type rule struct {
	pattern string
	head    string // of the pattern, as far as it is text
	wild    bool   // it is not all of it
	allow   bool
}

func newRule(pattern string, allow bool) rule {
	head := pattern
	if i := strings.IndexByte(head, '*'); i >= 0 {
		head = head[:i]
	}
	head = strings.TrimSuffix(head, "$")
	return rule{pattern, head, head != pattern, allow}
}

// maxDelay is the longest Crawl-delay that is taken for one; 'Crawl-delay:
// 1e9' is a way to say Disallow and is not our way to hear it.
const maxDelay = 24 * time.Hour

// Bounds of a robots.txt: RFC 9309 asks for 500 KiB to be read at least, and so
// many are; a rule in what is beyond is not obeyed, as it is by no reader.
const (
	maxRobots   = 500 << 10
	maxSitemaps = 100
)

// ParseRobots reads a robots.txt for an agent, of whose name only the product
// counts: "harvest" of "harvest/1.0 (+http://site)". What is beyond 500 KiB is
// not read.
func ParseRobots(text, agent string) *Robots {
	if len(text) > maxRobots {
		text = text[:maxRobots]
		text = text[:strings.LastIndexByte(text, '\n')+1] // half a rule is another rule
	}
	g := &groups{agent: product(agent)}
	grobotstxt.Parse(text, g)
	r := &g.global
	if g.seen {
		r = &g.own
	}
	r.Sitemaps = g.sitemaps
	// A longer pattern decides over a shorter, and Allow over Disallow.
	slices.SortStableFunc(r.rules, func(a, b rule) int {
		if len(a.pattern) != len(b.pattern) {
			return len(b.pattern) - len(a.pattern)
		}
		if a.allow == b.allow {
			return 0
		}
		if a.allow {
			return -1
		}
		return 1
	})
	return r
}

// Allowed reports whether a URL may be fetched, and the rule that says so, ""
// when none does.
func (r *Robots) Allowed(u string) (ok bool, why string) {
	path := pathQuery(u)
	for i := range r.rules {
		p := &r.rules[i]
		if strings.HasPrefix(path, p.head) && (!p.wild || matches(path, p.pattern)) {
			if p.allow {
				return true, "Allow: " + p.pattern
			}
			return false, "Disallow: " + p.pattern
		}
	}
	return true, ""
}

// groups collects the rules for one agent while a robots.txt is parsed.
type groups struct {
	agent        string
	own, global  Robots
	seen         bool // a group names the agent
	inOwn, inAll bool // the lines now read are for the agent, for all
	closed       bool // the next User-agent begins a group
	sitemaps     []string
}

func (g *groups) HandleRobotsStart() {}
func (g *groups) HandleRobotsEnd()   {}

func (g *groups) HandleUserAgent(_ int, v string) {
	if g.closed {
		g.inOwn, g.inAll, g.closed = false, false, false
	}
	if v == "*" || strings.HasPrefix(v, "*") && strings.ContainsRune(" \t", rune(v[1])) {
		g.inAll = true
	} else if strings.EqualFold(product(v), g.agent) {
		g.inOwn, g.seen = true, true
	}
}

func (g *groups) HandleAllow(_ int, v string) {
	g.add(newRule(v, true))
	// An allowed index page is its folder too; so Google reads it.
	if i := strings.LastIndexByte(v, '/'); i >= 0 && strings.HasPrefix(v[i:], "/index.htm") {
		g.add(newRule(v[:i+1]+"$", true))
	}
}

// HandleDisallow takes the pattern as it stands and, if that is another, as the
// URLs that it will meet are written: /%7Ejoe/ forbids /~joe/.
func (g *groups) HandleDisallow(_ int, v string) {
	g.add(newRule(v, false))
	if c := escapes(v); c != v {
		g.add(newRule(c, false))
	}
}

// HandleSitemap takes the lines about sitemaps, wherever they stand.
func (g *groups) HandleSitemap(_ int, v string) {
	if len(g.sitemaps) < maxSitemaps && v != "" && len(v) <= maxURL && !slices.Contains(g.sitemaps, v) {
		g.sitemaps = append(g.sitemaps, v)
	}
}

func (g *groups) HandleUnknownAction(_ int, action, v string) {
	if !strings.EqualFold(action, "crawl-delay") {
		return
	}
	g.closed = true // as other readers of this line have it
	secs, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(secs > 0) {
		return
	}
	d := maxDelay
	if secs < maxDelay.Seconds() {
		d = time.Duration(secs * float64(time.Second))
	}
	if g.inOwn {
		g.own.Delay = max(g.own.Delay, d)
	}
	if g.inAll {
		g.global.Delay = max(g.global.Delay, d)
	}
}

func (g *groups) add(r rule) {
	g.closed = true
	if r.pattern == "" {
		return // 'Disallow:' forbids nothing
	}
	if g.inOwn {
		g.own.rules = append(g.own.rules, r)
	}
	if g.inAll {
		g.global.rules = append(g.global.rules, r)
	}
}

// product is the name at the start of a User-Agent.
func product(agent string) string {
	for i := 0; i < len(agent); i++ {
		c := agent[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return agent[:i]
		}
	}
	return agent
}

// pathQuery is what the patterns of a robots.txt are matched with.
func pathQuery(u string) string {
	if i := strings.IndexByte(u, '#'); i >= 0 {
		u = u[:i]
	}
	if i := strings.Index(u, "://"); i >= 0 {
		u = u[i+3:]
	} else {
		u = strings.TrimPrefix(u, "//")
	}
	i := strings.IndexAny(u, "/?;")
	switch {
	case i < 0:
		return "/"
	case u[i] != '/':
		return "/" + u[i:]
	}
	return u[i:]
}

// matches reports whether a pattern matches the beginning of a path: * is any
// bytes, $ at the end of the pattern the end of the path. It takes the first
// place for each part between stars, which is enough when the last part is then
// tried at the end: time is of the order of path times pattern at worst.
func matches(path, pattern string) bool {
	end := strings.HasSuffix(pattern, "$")
	if end {
		pattern = pattern[:len(pattern)-1]
	}
	first, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, first) {
		return false
	}
	path = path[len(first):]
	for star {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		if !star && end {
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return !end || path == ""
}
