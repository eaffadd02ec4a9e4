package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"harvest/cache/icp"
	"harvest/cache/neighbor"
	"harvest/cache/policy"
	"harvest/fs/ndb"
)

// hierarchy is the caches beside and above this one, and the door at which they ask
// what is here.
type hierarchy struct {
	c *Cache

	// mu guards what follows.
	mu      sync.Mutex
	run     context.Context // nil: nobody is asked yet, or any more
	at      netip.AddrPort  // that was asked for
	conn    *icp.Conn       // nil: nobody is asked
	table   *neighbor.Table
	any     bool
	failing error
	serving sync.WaitGroup
	ended   sync.WaitGroup // tables that were replaced, and their connections
}

// start lets neighbours ask, and be asked, until stop.
func (h *hierarchy) start(c *Cache) {
	h.mu.Lock()
	h.c, h.run = c, c.life
	h.mu.Unlock()
	if err := h.change(c.conf.Load()); err != nil {
		c.lg.Error("neighbours", "err", err)
	}
}

func (h *hierarchy) stop() {
	h.mu.Lock()
	conn, table := h.conn, h.table
	h.run, h.conn, h.table, h.any = nil, nil, nil, false
	h.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	if table != nil {
		table.Close()
	}
	h.serving.Wait()
	h.ended.Wait()
}

// change puts the neighbours of a configuration in force.
func (h *hierarchy) change(conf *config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run == nil {
		return nil
	}
	if err := h.listen(conf); err != nil {
		h.failing = err
		return err
	}
	all, err := h.configs(conf)
	if err == nil {
		err = h.table.Set(conf.direct, all)
	}
	h.failing, h.any = err, len(all) > 0
	return err
}

// listen opens the socket that is asked from, and at: anew if its address changes.
// mu is held.
func (h *hierarchy) listen(conf *config) error {
	asks := conf.icp.IsValid()
	for _, n := range conf.neighbors {
		asks = asks || n.icp != 0
	}
	at := conf.icp
	if asks && !at.IsValid() {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	if h.table != nil && h.at == at {
		return nil
	}
	var conn *icp.Conn
	if asks {
		pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return err
		}
		conn = icp.New(pc)
	}
	if old := h.table; old != nil {
		was := h.conn
		h.ended.Go(func() { // what still waits for it ends by its own time
			if was != nil {
				was.Close()
			}
			old.Close()
		})
	}
	h.conn, h.at, h.table = conn, at, neighbor.New(conn)
	if conn != nil {
		run, table := h.run, h.table
		h.serving.Go(func() {
			if err := conn.Serve(run, func(from netip.AddrPort, url string) icp.Op { return h.c.tell(table, from, url) }); err != nil && run.Err() == nil && !errors.Is(err, net.ErrClosed) {
				h.c.lg.Error("icp", "err", err)
			}
		})
		h.c.event("icp", ndb.Of("addr", conn.Addr()))
	}
	return nil
}

// configs are the neighbours with their addresses found. mu is held.
func (h *hierarchy) configs(conf *config) (all []neighbor.Config, err error) {
	for _, n := range conf.neighbors {
		x := neighbor.Config{Name: n.name, Addr: n.addr, Weight: n.weight, Domains: n.domains, ProxyOnly: n.proxy}
		if n.parent {
			x.Kind = neighbor.Parent
		}
		if n.icp != 0 {
			host, _ := cutPort(n.addr)
			ctx, cancel := context.WithTimeout(h.run, 2*time.Second)
			addrs, rerr := h.c.resolve(ctx, strings.Trim(host, "[]"))
			cancel()
			if rerr != nil {
				return nil, fmt.Errorf("neighbor %s: %w", n.name, rerr)
			}
			x.ICP = netip.AddrPortFrom(addrs[0].Unmap(), uint16(n.icp))
		}
		all = append(all, x)
	}
	return all, nil
}

// tell answers a neighbour that asks whether a URL is here. It looks in the index
// only: how fresh it is, and for which requests, is found out when it is fetched.
func (c *Cache) tell(table *neighbor.Table, from netip.AddrPort, url string) icp.Op {
	c.count.queries.Add(1)
	if !c.mayAskICP(table, from.Addr()) {
		return icp.Denied
	}
	l, err := parseURL(url)
	if err != nil {
		return icp.Err
	}
	if !c.conf.Load().urlAllowed(l.String()) {
		return icp.Denied
	}
	k := keyOf(l.String())
	if !c.isHeld(k) {
		return icp.Miss
	}
	// What memory knows to be stale is no hit: the neighbour would wait for a 504.
	if vs, ok := c.mem.peek(k); ok {
		now := time.Now().UnixNano()
		for _, v := range vs {
			if now < v.until {
				c.count.queryHits.Add(1)
				return icp.Hit
			}
		}
		return icp.Miss
	}
	c.count.queryHits.Add(1)
	return icp.Hit
}

// mayAskICP reports whether an address is answered: the rules decide, and behind
// them neighbours are.
func (c *Cache) mayAskICP(table *neighbor.Table, a netip.Addr) bool {
	a = a.Unmap()
	for _, r := range c.conf.Load().icpRules {
		if r.net == (netip.Prefix{}) || r.net.Contains(a) {
			return r.allow
		}
	}
	return table.Knows(a)
}

// neighbors is the table, if there are any.
func (h *hierarchy) neighbors() *neighbor.Table {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.any {
		return nil
	}
	return h.table
}

// rows is what is known of each neighbour.
func (h *hierarchy) rows() []neighbor.Row {
	h.mu.Lock()
	t := h.table
	h.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.Rows()
}

// askNeighbors sends a request to the neighbour, or the server, that is chosen for
// it, and to the next if that fails.
func (c *Cache) askNeighbors(ctx context.Context, t *neighbor.Table, q *request, o *outgoing) (*exchange, error) {
	host, _ := o.hostPort()
	r := neighbor.Request{URL: q.url, Host: host, Ask: q.method == "GET" && o.body == nil && !q.header.Has("Authorization") && !policy.Reload(q.header)}
	p := t.Choose(ctx, r, func(ctx context.Context) (time.Duration, error) { return c.up.warm(ctx, o) })
	var failed error = &unreachable{err: errors.New("no neighbour is up, and servers are not asked")}
	for i, choice := range p.Choices {
		x, err := c.askChoice(ctx, t, choice, o)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.tellChoice(q, &p, i, err)
		if err == nil {
			return x, nil
		}
		failed = err
		if o.body != nil {
			break // it may have been read
		}
	}
	return nil, failed
}

// askChoice sends a request to one that was chosen.
func (c *Cache) askChoice(ctx context.Context, t *neighbor.Table, choice neighbor.Choice, o *outgoing) (*exchange, error) {
	n := *o
	if choice.Name == "" {
		x, err := c.up.do(ctx, &n)
		if err == nil {
			x.from = choice.Code
		}
		return x, err
	}
	n.via = choice.Addr
	if choice.OnlyIfCached {
		n.header = n.header.Clone()
		n.header.Add("Cache-Control", "only-if-cached")
	}
	x, err := c.up.do(ctx, &n)
	if err == nil && choice.OnlyIfCached && x.Status == 504 {
		x.Close()
		err = neighbor.ErrFalseHit
	}
	if err == nil && choice.OnlyIfCached && x.Status >= 400 && policy.IsError(x.Status) {
		err = fmt.Errorf("%s answers %d", choice.Name, x.Status)
		x.Close()
	}
	if err != nil {
		if ctx.Err() == nil {
			t.Done(choice, 0, err)
		}
		return nil, err
	}
	x.from, x.proxyOnly = choice.Code+"/"+choice.Name, choice.ProxyOnly
	x.note = func(n int64, err error) { t.Done(choice, n, err) }
	return x, nil
}

// tellChoice writes who was asked, what they said, and who was chosen (C-2).
func (c *Cache) tellChoice(q *request, p *neighbor.Plan, i int, err error) {
	choice := p.Choices[i]
	pairs := []ndb.Pair{ndb.Of("time", time.Now()), ndb.Of("url", q.url), ndb.Of("asked", p.Asked)}
	for _, a := range p.Answers {
		pairs = append(pairs, ndb.Of("said", fmt.Sprintf("%s:%s:%s", a.Name, a.Op, a.RTT.Round(time.Microsecond))))
	}
	if p.Origin > 0 {
		pairs = append(pairs, ndb.Of("origin", p.Origin.Round(time.Microsecond)))
	}
	name := choice.Name
	if name == "" {
		name = "origin"
	}
	pairs = append(pairs, ndb.Of("took", p.Took.Round(time.Microsecond)), ndb.Of("chosen", name), ndb.Of("code", choice.Code))
	if err != nil {
		pairs = append(pairs, ndb.Of("err", err))
	}
	c.journal.hierarchy.Add(ndb.Format(pairs...))
}

// warm makes a connection ready for a request, and tells how long connecting takes.
func (u *upstream) warm(ctx context.Context, o *outgoing) (time.Duration, error) {
	begun := time.Now()
	s, err := u.get(ctx, o, false)
	if err != nil {
		return 0, err
	}
	took := s.dialled
	if !s.kept {
		took = time.Since(begun)
		s.dialled = took
	}
	u.put(s)
	return max(took, time.Microsecond), nil
}
