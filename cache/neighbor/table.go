// Package neighbor keeps the parents and siblings of a cache, and says from
// whom a miss is to be fetched. A sibling is asked for what it holds, a parent
// would fetch for us as well. It asks by ICP and counts what comes of it; to
// fetch is its caller's affair, as are the requests that nobody is asked about.
//
// # How a neighbour is chosen
//
// All that may serve the URL and are up are asked at once, and at the same
// moment a connection to the origin is begun. The first that holds the URL
// has it. When all have answered, or have had their time, the fastest of the
// parents that would fetch it and the origin has it. A neighbour's time is
// twice its mean round trip, at least 5 ms and at most 500; what it answers
// later still counts for its mean, and for the choice too if that is still
// waiting for the origin.
//
// A parent's speed is its round trip divided by its weight. Parents that tell
// the round trip from them to the origin, as squid's do, come before those
// that do not, and are as fast as both ways together.
//
// One that left 20 questions in a row unanswered, or refused 100, or failed
// 10 fetches, is down, and is tried once in 10 s until it does better.
//
// A parent without an ICP address is not asked but used: such parents share
// the URLs by rendezvous hashing, by weight.
package neighbor

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/netip"
	"slices"
	"sync"
	"time"

	"harvest/cache/icp"
)

// A Kind is what a neighbour would do for us.
type Kind uint8

const (
	Sibling Kind = iota // serves what it holds
	Parent              // fetches what it does not hold
)

func (k Kind) String() string {
	if k == Parent {
		return "parent"
	}
	return "sibling"
}

// A Config describes one neighbour.
type Config struct {
	Name      string         // of its own, for logs and tables
	Addr      string         // HOST:PORT where it speaks HTTP, as a proxy
	ICP       netip.AddrPort // where it is asked; zero: a parent that is never asked
	Kind      Kind
	Weight    int      // a parent of weight 2 counts as twice as fast; 1 unless set
	Domains   []string // hosts it is for: example.org is that and what is below, !example.org is not; all unless set
	ProxyOnly bool     // what comes from it is not stored here
}

// Rules say what is fetched from neighbours at all. The domains are as those
// of a Config.
type Rules struct {
	NeverDirect  bool     // only neighbours are fetched from, but for Direct
	Inside       []string // hosts that NeverDirect does not hold for: those inside a firewall
	Direct       []string // hosts that no neighbour is asked about, and whose origin is always fetched from
	SingleParent bool     // a parent that is the only neighbour for a URL is not asked but used
}

// A Table is the neighbours of one cache. It may be used by many at once.
type Table struct {
	conn  *icp.Conn // nil: nobody is asked
	now   func() time.Time
	least time.Duration  // an answer is waited for
	dials sync.WaitGroup // origins that are being connected to

	mu    sync.Mutex
	rules Rules
	peers []*peer // in the order they were given; the Config of one never changes
}

// New makes a table that asks by conn, whose Serve must be running. With none,
// only parents that are not asked are used.
func New(conn *icp.Conn) *Table { return &Table{conn: conn, now: time.Now, least: minWait} }

// Close waits for connections to origins that were begun and are not wanted.
func (t *Table) Close() { t.dials.Wait() }

// Set replaces the neighbours and the rules. A neighbour that was there with the
// same addresses keeps its counts, but for the answers under way. What cannot be is refused, as iofs.ErrInvalid,
// and then nothing changes.
func (t *Table) Set(r Rules, all []Config) error {
	names := make(map[string]bool)
	for _, c := range all {
		if err := c.check(); err != nil {
			return err
		}
		if names[c.Name] {
			return fmt.Errorf("neighbor %s: there twice: %w", c.Name, iofs.ErrInvalid)
		}
		names[c.Name] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	peers := make([]*peer, 0, len(all))
	for _, c := range all {
		c.Weight, c.Domains = max(c.Weight, 1), slices.Clone(c.Domains)
		at := slices.IndexFunc(t.peers, func(p *peer) bool { return p.Name == c.Name && p.Addr == c.Addr && p.ICP == c.ICP })
		p := new(peer)
		if at >= 0 {
			*p = *t.peers[at]
		}
		p.Config = c
		peers = append(peers, p)
	}
	r.Inside, r.Direct = slices.Clone(r.Inside), slices.Clone(r.Direct)
	t.rules, t.peers = r, peers
	return nil
}

// check refuses a neighbour that could not be used.
func (c Config) check() error {
	why := ""
	switch {
	case c.Name == "":
		return fmt.Errorf("neighbor %s: no name: %w", c.Addr, iofs.ErrInvalid)
	case c.Addr == "":
		why = "no address"
	case c.Kind == Sibling && !c.ICP.IsValid():
		why = "a sibling without icp is never asked, so never used"
	case c.Weight < 0 || c.Weight > 1000:
		why = "weight is not from 1 to 1000"
	default:
		return nil
	}
	return fmt.Errorf("neighbor %s: %s: %w", c.Name, why, iofs.ErrInvalid)
}

// Knows tells whether an address is a neighbour's: only neighbours are answered.
func (t *Table) Knows(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.peers, func(p *peer) bool { return p.ICP.Addr().Unmap() == a.Unmap() })
}

// A Row is what the table knows of a neighbour.
type Row struct {
	Config
	State string        // up, dead (silent), denied, failing; new: not yet heard of
	RTT   time.Duration // mean round trip of ICP
	Heard time.Time     // the last answer

	Asked, Hits, Misses, Denied int64 // questions, and the answers of each kind; Misses counts MISS_NOFETCH and ERR too
	Late                        int64 // answers after the choice was made
	Fetched, Failed, FalseHits  int64 // fetches: those that went well, those that did not, those it did not hold though it said so
	Bytes                       int64
}

// Rows lists the neighbours by name.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Row, len(t.peers))
	for i, p := range t.peers {
		rows[i] = p.Row
		rows[i].State = p.state(t.now())
		rows[i].Domains = slices.Clone(p.Domains)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

// ErrFalseHit is what Done is told when a neighbour did not hold what it said
// it did: an answer 504 to a request with only-if-cached.
var ErrFalseHit = errors.New("neighbor: false hit")

// Done tells how a fetch by a choice ended, and how much it brought. An error
// is one that is the neighbour's own: it could not be reached, or cut short.
func (t *Table) Done(c Choice, n int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.find(c.Name)
	if p == nil { // the origin, or a neighbour that is gone
		return
	}
	p.Bytes += n
	switch {
	case err == nil:
		p.Fetched++
		p.failures = 0
	case errors.Is(err, ErrFalseHit):
		p.FalseHits++
		p.failures = 0
	default:
		p.Failed++
		p.failures++
		p.tried = t.now()
	}
}

// find finds a neighbour. Mu is held.
func (t *Table) find(name string) *peer {
	if i := slices.IndexFunc(t.peers, func(p *peer) bool { return p.Name == name }); i >= 0 {
		return t.peers[i]
	}
	return nil
}
