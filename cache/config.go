package cache

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"harvest/cache/http1"
	"harvest/cache/neighbor"
	"harvest/cache/policy"
	"harvest/fs/ndb"
)

// A config is what a cache's configuration says. The text is described in
// docs/cache.4.md.
type config struct {
	text      string
	doors     []doorConfig
	neighbors []neighborConfig

	memory, disk int64 // bytes
	object       int64 // bytes of the largest body that is kept
	rules        *policy.Rules
	negative     time.Duration // how long a server that cannot be reached is left alone

	clients  []netRule // who may use the doors; the first that fits decides
	egress   []netip.Prefix
	ports    []portRange // of servers
	tunnels  []portRange // of CONNECT
	nocache  []*regexp.Regexp
	urls     []urlRule
	quick    quick
	limits   limits
	name     string // in Via and CDN-Loop; "" is the cache's own
	access   string // which requests the log has: all, misses or none
	direct   neighbor.Rules
	icp      netip.AddrPort // where neighbours ask us; zero: nowhere
	icpRules []netRule
}

// A doorConfig is a listener: of the forward proxy, or in front of a server.
type doorConfig struct {
	addr string
	base string // scheme://host of the server behind an accelerator; "" is a proxy
	host bool   // the server is told the host that the client asked for
}

// A netRule allows or denies a network.
type netRule struct {
	allow bool
	net   netip.Prefix
}

type portRange struct{ from, to uint16 }

// An urlRule allows or denies URLs.
type urlRule struct {
	allow bool
	url   *regexp.Regexp
}

// A quick says what becomes of a fetch whose clients have all gone (C-6): it goes on
// if less than left bytes are missing, or more than done percent are there.
type quick struct {
	left int64
	done int
}

// limits bound what clients and servers can make the cache do.
type limits struct {
	head        http1.Limits
	headTime    time.Duration // for a client to send a head
	idle        time.Duration // a connection is kept without a request
	connect     time.Duration
	answer      time.Duration // for a server to begin its answer
	silence     time.Duration // without a byte either way
	waiters     int           // of one flight
	perServer   int           // connections to one server
	connections int           // of clients in all
	perClient   int           // of one address
	body        int64         // of a request
}

const (
	defaultMemory = 64 << 20
	defaultDisk   = 1 << 30
	defaultObject = 512 << 20
)

func newConfigOf(text string) *config {
	return &config{
		text: text, memory: defaultMemory, disk: defaultDisk, object: defaultObject,
		rules:    &policy.Rules{StaleOnFailure: 24 * time.Hour},
		negative: 10 * time.Second,
		ports:    []portRange{{80, 80}, {443, 443}, {21, 21}, {70, 70}, {1025, 65535}},
		tunnels:  []portRange{{443, 443}},
		quick:    quick{left: 1 << 20, done: 50},
		access:   "all",
		limits: limits{
			headTime: 10 * time.Second, idle: 60 * time.Second, connect: 5 * time.Second, answer: 60 * time.Second,
			silence: 60 * time.Second, waiters: 1024, perServer: 64, connections: 10_000, perClient: 10_000, body: 1 << 30,
		},
	}
}

// parseConfig reads the text of a config; an error is an *ndb.Error.
func parseConfig(text string) (*config, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	c := newConfigOf(text)
	seen := make(map[string]int)
	for _, e := range entries {
		if err := c.entry(e, seen); err != nil {
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

// entry reads a line. seen are the lines of settings.
func (c *config) entry(e ndb.Entry, seen map[string]int) error {
	switch e.First().Key {
	case "listen", "accel":
		return c.door(e)
	case "client":
		return c.netRules(e, &c.clients)
	case "egress":
		return c.egressNets(e)
	case "life":
		return c.life(e)
	case "nocache":
		return c.patterns(e, &c.nocache)
	case "url":
		return c.urlRules(e)
	case "parent", "sibling":
		return c.neighbor(e)
	case "direct":
		return c.directRules(e)
	case "icp":
		return c.icpDoor(e)
	case "quick":
		return c.quickAbort(e)
	case "limit":
		return c.limit(e)
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

func (c *config) setting(e ndb.Entry, p ndb.Pair) (err error) {
	switch p.Key {
	case "memory":
		c.memory, err = e.Size(p)
	case "disk":
		if c.disk, err = e.Size(p); err == nil && c.disk < 1<<20 {
			err = e.Errorf(p, "disk: less than 1M")
		}
	case "object":
		c.object, err = e.Size(p)
	case "stale":
		c.rules.StaleOnFailure, err = e.Duration(p)
	case "negative":
		c.negative, err = e.Duration(p)
	case "failures":
		c.rules.Failures, err = e.Duration(p)
	case "ports":
		c.ports, err = ports(e, p)
	case "connect":
		c.tunnels, err = ports(e, p)
	case "targets":
		c.rules.Targets, err = targets(e, p)
	case "name":
		if c.name = p.Value; !isPseudonym(p.Value) {
			err = e.Errorf(p, "name: '%s' is not letters, digits, '.', '-' and '_'", p.Value)
		}
	case "access":
		if c.access = p.Value; p.Value != "all" && p.Value != "misses" && p.Value != "none" {
			err = e.Errorf(p, "access: '%s' is none of all, misses and none", p.Value)
		}
	default:
		err = e.Errorf(p, "unknown key '%s'; there are listen, accel, client, egress, life, nocache, url, parent, sibling, direct, icp, quick, limit, "+
			"memory, disk, object, stale, negative, failures, ports, connect, targets, name and access", p.Key)
	}
	return err
}

func isPseudonym(s string) bool {
	for _, r := range s {
		if !(r == '.' || r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func targets(e ndb.Entry, p ndb.Pair) (names []string, err error) {
	for n := range strings.SplitSeq(p.Value, ",") {
		if !isPseudonym(n) {
			return nil, e.Errorf(p, "targets: '%s' is not the name of a field", n)
		}
		names = append(names, n)
	}
	return names, nil
}

// ports reads ports and ranges of them with commas between: 80,443,1025-65535.
func ports(e ndb.Entry, p ndb.Pair) (all []portRange, err error) {
	if p.Value == "none" {
		return nil, nil
	}
	for one := range strings.SplitSeq(p.Value, ",") {
		low, high, isRange := strings.Cut(one, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 16)
		to, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || from == 0 || to < from {
			return nil, e.Errorf(p, "%s: '%s' is no port; write 80,443,1025-65535 or none", p.Key, one)
		}
		all = append(all, portRange{uint16(from), uint16(to)})
	}
	return all, nil
}

func hasPort(all []portRange, port uint16) bool {
	for _, r := range all {
		if r.from <= port && port <= r.to {
			return true
		}
	}
	return false
}

// door reads a line of listen or accel.
func (c *config) door(e ndb.Entry) error {
	kind := e.First()
	if kind.Value != "" {
		return e.Errorf(kind, "%s: takes no value; write addr=%s", kind.Key, kind.Value)
	}
	var d doorConfig
	for _, p := range e.Pairs[1:] {
		switch {
		case p.Key == "addr":
			if d.addr = p.Value; !isListenAddr(p.Value) {
				return e.Errorf(p, "%s: addr '%s' is not IP:PORT", kind.Key, p.Value)
			}
		case p.Key == "url" && kind.Key == "accel":
			u, err := parseURL(p.Value)
			if err != nil || u.target != "/" || u.scheme != "http" && u.scheme != "https" {
				return e.Errorf(p, "accel: url '%s' is not http://HOST[:PORT]", p.Value)
			}
			d.base = u.scheme + "://" + u.host
		case p.Key == "host" && kind.Key == "accel":
			if d.host = p.Value == "client"; !d.host && p.Value != "server" {
				return e.Errorf(p, "accel: host '%s' is neither client nor server", p.Value)
			}
		default:
			return e.Errorf(p, "%s: unknown key '%s'", kind.Key, p.Key)
		}
	}
	switch {
	case d.addr == "":
		return e.Errorf(kind, "%s: addr=IP:PORT is missing", kind.Key)
	case kind.Key == "accel" && d.base == "":
		return e.Errorf(kind, "accel: url=URL of the server is missing")
	}
	for _, x := range c.doors {
		if x.addr == d.addr && !strings.HasSuffix(d.addr, ":0") {
			return e.Errorf(kind, "%s: %s is already there", kind.Key, d.addr)
		}
	}
	c.doors = append(c.doors, d)
	return nil
}

func isListenAddr(s string) bool {
	_, err := netip.ParseAddrPort(s)
	return err == nil
}

// netRules reads allow=NET and deny=NET, in order.
func (c *config) netRules(e ndb.Entry, to *[]netRule) error {
	for _, p := range e.Pairs {
		if p.Key == e.First().Key && p.Value == "" {
			continue
		}
		n, err := network(p.Value)
		switch {
		case p.Key != "allow" && p.Key != "deny":
			return e.Errorf(p, "%s: unknown key '%s'; there are allow and deny", e.First().Key, p.Key)
		case err != nil:
			return e.Errorf(p, "%s: '%s' is no address or network", p.Key, p.Value)
		}
		*to = append(*to, netRule{p.Key == "allow", n})
	}
	return nil
}

func network(s string) (netip.Prefix, error) {
	if s == "all" {
		return netip.Prefix{}, nil // fits all
	}
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	return n.Masked(), err
}

func (c *config) egressNets(e ndb.Entry) error {
	var rules []netRule
	if err := c.netRules(e, &rules); err != nil {
		return err
	}
	for _, r := range rules {
		if !r.allow {
			return e.Errorf(e.First(), "egress: private networks are denied already; there is allow")
		}
		c.egress = append(c.egress, r.net)
	}
	return nil
}

// life reads life url=REGEXP percent=20 min=1h max=168h (C-9).
func (c *config) life(e ndb.Entry) (err error) {
	l := policy.Life{Percent: 10, Max: 24 * time.Hour}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "url":
			l.URL, err = pattern(e, p)
		case "percent":
			if l.Percent, err = e.Int(p); err == nil && (l.Percent < 0 || l.Percent > 1000) {
				err = e.Errorf(p, "percent: %d is out of range", l.Percent)
			}
		case "min":
			l.Min, err = e.Duration(p)
		case "max":
			l.Max, err = e.Duration(p)
		default:
			err = e.Errorf(p, "life: unknown key '%s'; there are url, percent, min and max", p.Key)
		}
		if err != nil {
			return err
		}
	}
	c.rules.Lives = append(c.rules.Lives, l)
	return nil
}

func pattern(e ndb.Entry, p ndb.Pair) (*regexp.Regexp, error) {
	re, err := regexp.Compile(p.Value)
	if err != nil || p.Value == "" {
		return nil, e.Errorf(p, "%s: '%s' is no regular expression", p.Key, p.Value)
	}
	return re, nil
}

func (c *config) patterns(e ndb.Entry, to *[]*regexp.Regexp) error {
	for _, p := range e.Pairs[1:] {
		if p.Key != "url" {
			return e.Errorf(p, "%s: unknown key '%s'; there is url", e.First().Key, p.Key)
		}
		re, err := pattern(e, p)
		if err != nil {
			return err
		}
		*to = append(*to, re)
	}
	return nil
}

func (c *config) urlRules(e ndb.Entry) error {
	for _, p := range e.Pairs[1:] {
		if p.Key != "allow" && p.Key != "deny" {
			return e.Errorf(p, "url: unknown key '%s'; there are allow and deny", p.Key)
		}
		re, err := pattern(e, p)
		if err != nil {
			return err
		}
		c.urls = append(c.urls, urlRule{p.Key == "allow", re})
	}
	return nil
}

func (c *config) quickAbort(e ndb.Entry) (err error) {
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "left":
			c.quick.left, err = e.Size(p)
		case "done":
			c.quick.done, err = e.Int(ndb.Pair{Key: p.Key, Value: strings.TrimSuffix(p.Value, "%"), Col: p.Col})
		default:
			err = e.Errorf(p, "quick: unknown key '%s'; there are left and done", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *config) limit(e ndb.Entry) (err error) {
	l := &c.limits
	count := func(p ndb.Pair, to *int) {
		if *to, err = e.Int(p); err == nil && (*to < 1 || *to > 1<<24) {
			err = e.Errorf(p, "limit: %s is from 1 to %d", p.Key, 1<<24)
		}
	}
	span := func(p ndb.Pair, to *time.Duration) {
		if *to, err = e.Duration(p); err == nil && *to < time.Millisecond {
			err = e.Errorf(p, "limit: %s of less than 1ms", p.Key)
		}
	}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "head":
			count(p, &l.head.Head)
		case "line":
			count(p, &l.head.Line)
		case "fields":
			count(p, &l.head.Fields)
		case "headtime":
			span(p, &l.headTime)
		case "idle":
			span(p, &l.idle)
		case "connect":
			span(p, &l.connect)
		case "answer":
			span(p, &l.answer)
		case "silence":
			span(p, &l.silence)
		case "waiters":
			count(p, &l.waiters)
		case "perserver":
			count(p, &l.perServer)
		case "connections":
			count(p, &l.connections)
		case "perclient":
			count(p, &l.perClient)
		case "body":
			l.body, err = e.Size(p)
		default:
			err = e.Errorf(p, "limit: unknown key '%s'; there are head, line, fields, headtime, idle, connect, answer, silence, waiters, perserver, connections, perclient and body", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A neighborConfig is a cache that is asked before servers are.
type neighborConfig struct {
	name    string
	addr    string // HOST:PORT of its proxy door
	icp     int    // its ICP port; 0: it is not asked
	parent  bool
	weight  int
	domains []string // those it is asked about; all if nil
	proxy   bool     // what it has is not kept here
}

func (c *config) neighbor(e ndb.Entry) (err error) {
	kind := e.First()
	n := neighborConfig{parent: kind.Key == "parent", weight: 1}
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "addr":
			if n.addr = p.Value; !isHostPort(p.Value) {
				err = e.Errorf(p, "%s: addr '%s' is not HOST:PORT", kind.Key, p.Value)
			}
		case "icp":
			if n.icp, err = e.Int(p); err == nil && (n.icp < 0 || n.icp > 65535) {
				err = e.Errorf(p, "icp: %d is no port", n.icp)
			}
		case "name":
			if n.name = p.Value; !isPseudonym(p.Value) {
				err = e.Errorf(p, "name: '%s' is not letters, digits, '.', '-' and '_'", p.Value)
			}
		case "weight":
			if n.weight, err = e.Int(p); err == nil && (n.weight < 1 || n.weight > 1000) {
				err = e.Errorf(p, "weight: %d is not from 1 to 1000", n.weight)
			}
		case "domain":
			n.domains = strings.Split(p.Value, ",")
		case "proxy-only":
			n.proxy, err = e.Bool(p)
		default:
			err = e.Errorf(p, "%s: unknown key '%s'; there are addr, icp, name, weight, domain and proxy-only", kind.Key, p.Key)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case n.addr == "":
		return e.Errorf(kind, "%s: addr=HOST:PORT is missing", kind.Key)
	case !n.parent && n.icp == 0:
		return e.Errorf(kind, "sibling: icp=PORT is missing: without it nobody knows what it has")
	}
	if n.name == "" {
		n.name = n.addr
	}
	for _, x := range c.neighbors {
		if x.name == n.name {
			return e.Errorf(kind, "%s: %s is already there", kind.Key, n.name)
		}
	}
	c.neighbors = append(c.neighbors, n)
	return nil
}

// directRules reads direct never=yes inside=HOST,… always=HOST,… single=yes.
func (c *config) directRules(e ndb.Entry) (err error) {
	r := &c.direct
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "never":
			r.NeverDirect, err = e.Bool(p)
		case "single":
			r.SingleParent, err = e.Bool(p)
		case "inside":
			r.Inside = append(r.Inside, strings.Split(p.Value, ",")...)
		case "always":
			r.Direct = append(r.Direct, strings.Split(p.Value, ",")...)
		default:
			err = e.Errorf(p, "direct: unknown key '%s'; there are never, single, inside and always", p.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isHostPort(s string) bool {
	u, err := parseURL("http://" + s)
	return err == nil && u.target == "/" && (strings.Contains(u.host, ":") || strings.HasSuffix(s, ":80"))
}

// icpDoor reads icp addr=IP:PORT allow=NET ….
func (c *config) icpDoor(e ndb.Entry) error {
	for _, p := range e.Pairs[1:] {
		switch p.Key {
		case "addr":
			a, err := netip.ParseAddrPort(p.Value)
			if err != nil {
				return e.Errorf(p, "icp: addr '%s' is not IP:PORT", p.Value)
			}
			c.icp = a
		case "allow", "deny":
			n, err := network(p.Value)
			if err != nil {
				return e.Errorf(p, "%s: '%s' is no address or network", p.Key, p.Value)
			}
			c.icpRules = append(c.icpRules, netRule{p.Key == "allow", n})
		default:
			return e.Errorf(p, "icp: unknown key '%s'; there are addr, allow and deny", p.Key)
		}
	}
	if !c.icp.IsValid() {
		return e.Errorf(e.First(), "icp: addr=IP:PORT is missing")
	}
	return nil
}

// admits reports whether rules let an address in: the first that fits decides, and
// behind them loopback only is.
func admits(rules []netRule, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, r := range rules {
		if r.net == (netip.Prefix{}) || r.net.Contains(a) {
			return r.allow
		}
	}
	return a.IsLoopback()
}

// urlAllowed reports whether the rules about URLs let one be asked for.
func (c *config) urlAllowed(url string) bool {
	for _, r := range c.urls {
		if r.url.MatchString(url) {
			return r.allow
		}
	}
	return true
}

func anyMatch(all []*regexp.Regexp, url string) bool {
	for _, re := range all {
		if re.MatchString(url) {
			return true
		}
	}
	return false
}

// A forbidden is a request that is refused by the configuration.
type forbidden struct{ why string }

func (f forbidden) Error() string { return fmt.Sprintf("not allowed: %s", f.why) }
