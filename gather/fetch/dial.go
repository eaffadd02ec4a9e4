package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// A dialer makes all connections, so that what must hold for each holds here.
type dialer struct {
	timeout time.Duration
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	evict   func() // closes unused connections, to have their descriptors
	stats   *counters
}

// dial connects to host:port for a scheme. Addresses are checked when they are
// known, which is the only time that counts: a name may have another address a
// moment later.
func (d *dialer) dial(ctx context.Context, scheme, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, err := d.connect(ctx, addr)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		d.evict()
		c, err = d.connect(ctx, addr)
	}
	if err != nil {
		return nil, err
	}
	n := d.stats.of(scheme)
	n.opened.Add(1)
	return &conn{Conn: c, n: n}, nil
}

func (d *dialer) connect(ctx context.Context, addr string) (net.Conn, error) {
	nd := net.Dialer{KeepAlive: 30 * time.Second}
	if isPublic(ctx) {
		nd.Control = func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return checkPublic(a.Addr())
		}
	}
	if d.lookup == nil {
		return nd.DialContext(ctx, "tcp", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nd.DialContext(ctx, "tcp", addr)
	}
	addrs, err := d.lookup(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("host %s: no address", host)
	}
	for _, a := range addrs {
		var c net.Conn
		if c, err = nd.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port)); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// A conn counts its end if it is ours.
type conn struct {
	net.Conn
	n     *counter
	ended atomic.Bool // by the server, or by an error; or closed
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.ended.Store(true)
	}
	return n, err
}

func (c *conn) Close() error {
	if !c.ended.Swap(true) {
		c.n.evicted.Add(1)
	}
	return c.Conn.Close()
}
