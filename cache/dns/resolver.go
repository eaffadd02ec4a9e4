// Package dns tells the addresses of names as a cache wants them told: it asks
// the servers of /etc/resolv.conf itself, so that it knows how long an answer
// holds, and keeps it that long. Names that /etc/hosts has are never asked for,
// search lists are not gone through, and what an address is allowed to be is
// not its affair.
//
// An answer is kept for its time to live, at least 5 s and at most an hour. In
// the last tenth of that a name that is used is asked for again while the old
// answer is given. After it, for 5 minutes, the old answer serves when the
// servers fail, or take longer than 1.8 s (RFC 8767); they are then left alone
// about that name for 30 s. That a name is not there is kept as long as its zone
// says in the SOA, at most 60 s (RFC 2308), and a failure 5 s (RFC 9520).
package dns

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	minTTL      = 5 * time.Second
	maxTTL      = time.Hour
	maxNegative = 60 * time.Second
	minNegative = time.Second
	failureTTL  = 5 * time.Second

	staleFor  = 5 * time.Minute
	patience  = 1800 * time.Millisecond // how long the servers may take before the stale serves
	leaveOff  = 30 * time.Second        // after a failure, while there is something stale
	otherKind = 50 * time.Millisecond   // how long the second kind of address is waited for (RFC 8305, 3)
)

// A Config says where to ask. Its zero value asks as the machine does.
type Config struct {
	Servers []netip.AddrPort // asked in turn; those of /etc/resolv.conf unless set
	Hosts   string           // file of names; /etc/hosts unless set
	Timeout time.Duration    // of each question to each server; 2 s unless set
	Names   int              // how many are held; 10,000 unless set
}

// A Resolver looks names up and remembers them. It may be used by many at once.
type Resolver struct {
	timeout  time.Duration
	patience time.Duration
	names    int
	now      func() time.Time
	local    local
	slots    chan struct{} // bounds the questions under way

	ctx    context.Context // of the questions: they outlive who waits for them
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu    sync.Mutex
	good  int // the server that answered last
	table map[string]*entry
}

// entry is what is known of a name. Neither addrs nor err: not yet asked.
type entry struct {
	name    string
	addrs   []netip.Addr // never changed once here
	err     error
	expires time.Time
	refresh time.Time // when a use asks again, though it holds
	retry   time.Time // the stale serves at once until then
	used    time.Time
	hits    int64
	flight  *flight
}

// flight is a question under way. Once done is closed the rest stays as it is.
type flight struct {
	done  chan struct{}
	addrs []netip.Addr
	err   error
}

// New makes a Resolver that asks nothing until it is asked. Close it.
func New(c Config) *Resolver {
	r := &Resolver{timeout: c.Timeout, patience: patience, names: c.Names, now: time.Now, slots: make(chan struct{}, 128), table: make(map[string]*entry)}
	if r.timeout <= 0 {
		r.timeout = 2 * time.Second
	}
	if r.names <= 0 {
		r.names = 10_000
	}
	r.local = local{servers: c.Servers, hosts: c.Hosts, now: func() time.Time { return r.now() }}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends what is being asked, and returns when it has ended. What waits
// for it, and what is looked up later, fails.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.asking.Wait()
}

// Lookup returns the addresses of a host, those of IPv4 before those of IPv6,
// each kind beginning with another address each time. An address is its own
// answer. The slice is the caller's. A name that is not there is
// iofs.ErrNotExist, one that cannot be a name iofs.ErrInvalid.
func (r *Resolver) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Zone() == "" {
		return []netip.Addr{a.Unmap()}, nil
	}
	name, err := canonical(host)
	if err != nil {
		return nil, err
	}
	if a := r.local.lookup(name); len(a) > 0 {
		return slices.Clone(a), nil
	}
	if name == "onion" || strings.HasSuffix(name, ".onion") { // RFC 7686: not to be asked for
		return nil, fmt.Errorf("host %s: %w", name, iofs.ErrNotExist)
	}
	return r.remembered(ctx, name)
}

// remembered answers from the table, and asks when it must.
func (r *Resolver) remembered(ctx context.Context, name string) ([]netip.Addr, error) {
	r.mu.Lock()
	e, now := r.entry(name), r.now()
	stale := len(e.addrs) > 0 && now.Before(e.expires.Add(staleFor))
	switch {
	case now.Before(e.expires):
		e.hits++
		if len(e.addrs) > 0 && !now.Before(e.refresh) {
			r.start(e)
		}
	case stale && now.Before(e.retry):
		e.hits++
	default:
		f := r.start(e)
		old, turn := e.addrs, e.hits
		r.mu.Unlock()
		if !stale {
			old = nil
		}
		return r.wait(ctx, f, old, turn)
	}
	addrs, err, turn := e.addrs, e.err, e.hits
	r.mu.Unlock()
	return turned(addrs, turn), err
}

// wait waits for a flight, and no longer than it is worth while there is an old answer.
func (r *Resolver) wait(ctx context.Context, f *flight, old []netip.Addr, turn int64) ([]netip.Addr, error) {
	var late <-chan time.Time
	if len(old) > 0 {
		t := time.NewTimer(r.patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-f.done:
		return turned(f.addrs, turn), f.err
	case <-late:
		return turned(old, turn), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start has a name asked for, unless it is being asked for. Mu is held.
func (r *Resolver) start(e *entry) *flight {
	if e.flight != nil {
		return e.flight
	}
	f := &flight{done: make(chan struct{})}
	if r.ctx.Err() != nil {
		f.err = errors.New("dns: closed")
		close(f.done)
		return f
	}
	e.flight = f
	r.asking.Go(func() { r.fly(e, f) })
	return f
}

// fly asks for both kinds of addresses at once. Those of one kind are told
// when those of the other are slow to come: there are servers that never
// answer about a kind they do not know.
func (r *Resolver) fly(e *entry, f *flight) {
	answers := make(chan answer, 2)
	for _, kind := range kinds {
		r.asking.Go(func() { answers <- r.ask(r.ctx, e.name, kind) })
	}
	first := <-answers
	if len(first.addrs) > 0 {
		t := time.NewTimer(otherKind)
		defer t.Stop()
		select {
		case second := <-answers:
			r.land(e, f, first.with(second), true)
			return
		case <-t.C:
			r.land(e, f, first, false)
		}
	}
	r.land(e, f, first.with(<-answers), true)
}

// land puts an answer in the table and tells it to those who wait; the last
// one ends the flight.
func (r *Resolver) land(e *entry, f *flight, a answer, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	stale := len(e.addrs) > 0 && now.Before(e.expires.Add(staleFor))
	if a.failed() && stale {
		e.retry = now.Add(leaveOff)
		a.addrs, a.err = e.addrs, nil
	} else {
		e.addrs, e.err, e.retry = a.addrs, a.err, time.Time{}
		e.expires, e.refresh = now.Add(a.ttl), now.Add(a.ttl-a.ttl/10)
	}
	if last {
		e.flight = nil
	}
	select {
	case <-f.done:
	default:
		f.addrs, f.err = a.addrs, a.err
		close(f.done)
	}
}

// canonical is a name in small letters without its last dot. It refuses what
// no host is called.
func canonical(host string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if len(name) == 0 || len(name) > 253 {
		return "", fmt.Errorf("host %.40q: %w", host, iofs.ErrInvalid)
	}
	for label := range strings.SplitSeq(name, ".") {
		odd := strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
		})
		if odd || len(label) == 0 || len(label) > 63 {
			return "", fmt.Errorf("host %.40q: %w", host, iofs.ErrInvalid)
		}
	}
	return name, nil
}

// turned copies addresses, each kind of them turned by so many places.
func turned(a []netip.Addr, by int64) []netip.Addr {
	if len(a) == 0 {
		return nil
	}
	n := 0
	for n < len(a) && a[n].Is4() {
		n++
	}
	out := make([]netip.Addr, 0, len(a))
	for _, kind := range [][]netip.Addr{a[:n], a[n:]} {
		if len(kind) > 0 {
			at := int(by % int64(len(kind)))
			out = append(append(out, kind[at:]...), kind[:at]...)
		}
	}
	return out
}
