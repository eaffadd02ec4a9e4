package broker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/soif"
)

// A registry tells which service of a kind is nearest: how long it takes to
// connect to each, which is one round trip. What does not answer is left out.

// How services are tried: so many at most, so many at a time, for so long, twice,
// and what came of it is believed for so long.
const (
	nearestMost  = 256
	nearestSlots = 16
	nearestWait  = time.Second
	nearestKeeps = time.Minute
)

// serviceKinds are what nearest and the folders of kinds are called, and what
// services of the kind say in Type.
var serviceKinds = []struct{ name, folder, typ string }{
	{"gatherer", "gatherers", "gatherer"}, {"broker", "brokers", "broker"}, {"cache", "caches", "cache"}, {"replica", "replicas", "replicator"},
}

// probes are how long services took to answer.
type probes struct {
	mu  sync.Mutex // guards what follows, and nothing that waits
	all map[string]probe
}

type probe struct {
	at   time.Time
	took time.Duration // below 0: it did not answer
}

// services gives the objects of a kind.
func (b *Broker) services(ctx context.Context, typ string) (list []soif.Object, err error) {
	a, err := b.answer(ctx, hasValue(nil, "type", typ), plain(), 1)
	if err != nil {
		return nil, err
	}
	for i := range a.hits {
		body, _, err := b.store.Get(a.hits[i].oid)
		if err != nil {
			continue // it has lapsed meanwhile
		}
		o, _, err := soif.Parse(body, soif.Limits{})
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// writeNearest writes the services of a kind that answer, the nearest first: how
// long it takes, address, path, URL.
func (b *Broker) writeNearest(ctx context.Context, w io.Writer, typ string) error {
	list, err := b.services(ctx, typ)
	if err != nil {
		return err
	}
	type near struct {
		took time.Duration
		line string
	}
	var mu sync.Mutex
	var found []near
	var wg sync.WaitGroup
	slots := make(chan struct{}, nearestSlots)
	for i := range list[:min(len(list), nearestMost)] {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			addr, took := b.probes.first(ctx, list[i].Text("Address"))
			if addr == "" {
				return
			}
			line := strings.Join([]string{oneLine(addr, 500), oneLine(list[i].Text("Service-Path"), 500), list[i].URL}, "\t")
			mu.Lock()
			defer mu.Unlock()
			found = append(found, near{took, line})
		})
	}
	wg.Wait()
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.took, b.took), strings.Compare(a.line, b.line)) })
	for _, n := range found {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", n.took.Round(time.Microsecond), n.line); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// first is the nearest of some addresses, "" if none answers.
func (p *probes) first(ctx context.Context, addrs string) (addr string, took time.Duration) {
	for a := range strings.FieldsSeq(addrs) {
		if t := p.probe(ctx, a); t >= 0 && (addr == "" || t < took) {
			addr, took = a, t
		}
	}
	return addr, took
}

// probe is how long an address takes to answer, below 0 if it does not.
func (p *probes) probe(ctx context.Context, addr string) time.Duration {
	p.mu.Lock()
	old, ok := p.all[addr]
	p.mu.Unlock()
	if ok && time.Since(old.at) < nearestKeeps {
		return old.took
	}
	took := time.Duration(-1)
	for range 2 { // the first may have had to find the way
		t, err := connect(ctx, addr)
		if err != nil {
			break
		}
		if took < 0 || t < took {
			took = t
		}
	}
	if ctx.Err() != nil { // nothing is known of it
		return took
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) >= 4*nearestMost {
		p.all = make(map[string]probe)
	}
	p.all[addr] = probe{time.Now(), took}
	return took
}

// connect opens a connection and closes it.
func connect(ctx context.Context, addr string) (time.Duration, error) {
	network, target, err := dialAddr(addr)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, nearestWait)
	defer cancel()
	begin := time.Now()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, target)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, c.Close()
}

// dialAddr reads unix!PATH, tcp!HOST!PORT, tls!HOST!PORT or HOST:PORT.
func dialAddr(addr string) (network, target string, err error) {
	network, rest, ok := strings.Cut(addr, "!")
	switch {
	case !ok:
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return "", "", err
		}
		return "tcp", addr, nil
	case network == "unix":
		return "unix", rest, nil
	case network == "tcp" || network == "tls":
		if host, port, ok := strings.Cut(rest, "!"); ok && !strings.Contains(port, "!") {
			return "tcp", net.JoinHostPort(strings.Trim(host, "[]"), port), nil
		}
	}
	return "", "", fmt.Errorf("address %s: no such form", addr)
}

// Covers names a Gatherer that a registry knows, but those that are the caller's
// own, which gathers a URL, by its name or below one of its roots; "" is none.
func (b *Broker) Covers(ctx context.Context, url string, own func(o *soif.Object) bool) (string, error) {
	list, err := b.services(ctx, "gatherer")
	if err != nil {
		return "", err
	}
	for i := range list {
		if own(&list[i]) {
			continue
		}
		for source := range strings.FieldsSeq(list[i].Text("Source-URL")) {
			if source == url {
				return fmt.Sprintf("%s gathers %s", list[i].URL, source), nil
			}
		}
		for root := range strings.FieldsSeq(list[i].Text("Root-URL")) {
			if covers(root, url) {
				return fmt.Sprintf("%s gathers %s", list[i].URL, root), nil
			}
		}
	}
	return "", nil
}

// covers tells whether a URL is below a root, which is a folder: ends in a slash,
// or is a host alone.
func covers(root, url string) bool {
	if _, rest, ok := strings.Cut(root, "://"); ok && !strings.Contains(rest, "/") {
		root += "/"
	}
	return strings.HasSuffix(root, "/") && (strings.HasPrefix(url, root) || url+"/" == root)
}

// Withdraw takes out what is registered under some URLs.
func (b *Broker) Withdraw(ctx context.Context, urls []string) error {
	for _, url := range urls {
		oid := registeredID(url)
		if _, err := b.store.Stat(oid); err != nil {
			continue // it has lapsed
		}
		if err := b.delete(ctx, []string{oid.String()}); err != nil {
			return err
		}
		b.event("withdrawn", ndb.Of("url", url), ndb.Of("oid", oid))
	}
	return nil
}

// lapsing are the objects of a registry whose time is over.
func (b *Broker) lapsing(now time.Time) (urls []ndb.Pair) {
	if !b.registers {
		return nil
	}
	for e, err := range b.store.Scan(context.Background(), "", "") {
		if err != nil {
			return urls
		}
		if at := e.Expires(); !at.IsZero() && at.Before(now) {
			urls = append(urls, ndb.Of("url", e.URL))
		}
	}
	return urls
}
