package cache

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"harvest/fs/ndb"
)

// doors are the listeners of a cache.
type doors struct {
	// mu guards what follows.
	mu      sync.Mutex
	c       *Cache // nil: they are not served
	open_   map[string]*door
	failing map[string]error // those that could not be opened, by address
	conns   int
	clients map[netip.Addr]int
	serving sync.WaitGroup // listeners and connections
}

// A door is a listener and its connections.
type door struct {
	doorConfig
	kind  string // proxy or accel
	l     net.Listener
	mu    sync.Mutex
	conns map[*clientConn]struct{}
	shut  bool
}

func listen(d doorConfig) (*door, error) {
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		return nil, err
	}
	kind := "proxy"
	if d.base != "" {
		kind = "accel"
	}
	return &door{doorConfig: d, kind: kind, l: l, conns: make(map[*clientConn]struct{})}, nil
}

// start serves the doors that the configuration has.
func (d *doors) start(c *Cache) {
	d.mu.Lock()
	d.c, d.open_, d.failing, d.clients = c, make(map[string]*door), make(map[string]error), make(map[netip.Addr]int)
	d.mu.Unlock()
	d.retry()
}

// retry opens doors that are in the configuration and not open.
func (d *doors) retry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c == nil {
		return
	}
	for _, conf := range d.c.conf.Load().doors {
		if d.open_[conf.addr] != nil {
			continue
		}
		x, err := listen(conf)
		if err != nil {
			if d.failing[conf.addr] == nil {
				d.c.lg.Error("listen", "addr", conf.addr, "err", err)
			}
			d.failing[conf.addr] = err
			continue
		}
		d.serve(x)
	}
}

// serve lets clients in. mu is held.
func (d *doors) serve(x *door) {
	delete(d.failing, x.addr)
	d.open_[x.addr] = x
	d.c.event("listen", ndb.Of("addr", x.l.Addr()), ndb.Of("door", x.kind))
	d.serving.Go(func() { d.accept(x) })
}

// open opens what a new configuration has more; undo closes that again.
func (d *doors) open(conf *config) (undo func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c == nil {
		return func() {}, nil
	}
	var fresh []*door
	undo = func() {
		for _, x := range fresh {
			x.l.Close()
		}
	}
	for _, dc := range conf.doors {
		if x := d.open_[dc.addr]; x != nil && (x.doorConfig == dc || x.addr == dc.addr) {
			continue
		}
		x, err := listen(dc)
		if err != nil {
			undo()
			return nil, fmt.Errorf("listen %s: %w", dc.addr, err)
		}
		fresh = append(fresh, x)
	}
	for _, x := range fresh {
		d.serve(x)
	}
	return undo, nil
}

// change closes what the configuration does not have any more, and opens anew what
// it has otherwise.
func (d *doors) change(conf *config) {
	d.mu.Lock()
	if d.c == nil {
		d.mu.Unlock()
		return
	}
	want := make(map[string]doorConfig)
	for _, dc := range conf.doors {
		want[dc.addr] = dc
	}
	clear(d.failing)
	for addr, x := range d.open_ {
		if dc, ok := want[addr]; !ok || dc != x.doorConfig {
			x.close()
			delete(d.open_, addr)
			d.c.event("close", ndb.Of("addr", addr))
		}
	}
	d.mu.Unlock()
	d.retry()
}

// stop closes all doors and waits until their connections have ended.
func (d *doors) stop() {
	d.mu.Lock()
	for _, x := range d.open_ {
		x.close()
	}
	clear(d.open_)
	d.c = nil
	d.mu.Unlock()
	d.serving.Wait()
}

// troubles are the doors that are not open and should be.
func (d *doors) troubles() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, err := range d.failing {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// addrs are where clients can connect, by the address in the configuration.
func (d *doors) addrs() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]string)
	for addr, x := range d.open_ {
		all[addr] = x.l.Addr().String()
	}
	return all
}

// isOwnDoor reports whether a connection would be to this cache itself.
func (c *Cache) isOwnDoor(a netip.AddrPort) bool {
	d := &c.doors
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.open_ {
		own := x.l.Addr().(*net.TCPAddr).AddrPort()
		if own.Port() == a.Port() && (own.Addr().Unmap() == a.Addr().Unmap() || own.Addr().IsUnspecified()) {
			return true
		}
	}
	return false
}

// close closes a door and its connections.
func (x *door) close() {
	x.l.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shut = true
	for cc := range x.conns {
		cc.conn.Close()
	}
}

// accept lets clients in until the door is closed.
func (d *doors) accept(x *door) {
	for {
		conn, err := x.l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			d.troubled(err)
			continue
		}
		if cc := d.admit(x, conn.(*net.TCPConn)); cc != nil {
			d.serving.Go(func() {
				defer d.leave(x, cc)
				cc.serve()
			})
		}
	}
}

// troubled tells of what is wrong with accepting, and lets some time pass: there may
// be no more file descriptors.
func (d *doors) troubled(err error) {
	d.mu.Lock()
	c := d.c
	d.mu.Unlock()
	if c != nil {
		c.lg.Warn("accept", "err", err)
	}
	time.Sleep(50 * time.Millisecond)
}

// admit takes a connection in, if its client may have one.
func (d *doors) admit(x *door, conn *net.TCPConn) *clientConn {
	addr := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	d.mu.Lock()
	c := d.c
	if c == nil {
		d.mu.Unlock()
		conn.Close()
		return nil
	}
	conf := c.conf.Load()
	ok := admits(conf.clients, addr)
	full := d.conns >= conf.limits.connections || d.clients[addr] >= conf.limits.perClient
	if ok && !full {
		d.conns++
		d.clients[addr]++
	}
	d.mu.Unlock()
	if !ok || full {
		c.count.refused.Add(1)
		conn.Close()
		return nil
	}
	cc := newClientConn(c, x, conn, addr)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.shut {
		conn.Close()
	}
	x.conns[cc] = struct{}{}
	return cc
}

func (d *doors) leave(x *door, cc *clientConn) {
	cc.conn.Close()
	x.mu.Lock()
	delete(x.conns, cc)
	x.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns--
	if d.clients[cc.addr]--; d.clients[cc.addr] <= 0 {
		delete(d.clients, cc.addr)
	}
}
