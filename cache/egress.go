package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// The addresses that no client gets the cache to connect to, unless the
// configuration has them in egress allow=…: those that mean this machine or this
// site, and with them the services that clouds have at link-local addresses.
var inner = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("224.0.0.0/3"), // multicast, reserved, broadcast
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64, to any of those above
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), // 6to4, likewise
	netip.MustParsePrefix("2001::/32"), // Teredo, likewise
	netip.MustParsePrefix("fc00::/7"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// mayReach refuses an address that is dialled.
func (c *config) mayReach(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	for _, n := range c.egress {
		if n == (netip.Prefix{}) || n.Contains(a) {
			return nil
		}
	}
	for _, n := range inner {
		if n.Contains(a) {
			return forbidden{fmt.Sprintf("%s is an inner address", a)}
		}
	}
	return nil
}

// dialServer connects to a server that a client named. What is checked is the
// address that is connected to, so that a name which means another one a moment
// later gains nothing.
func (c *Cache) dialServer(ctx context.Context, host string, port uint16, ports []portRange) (net.Conn, error) {
	conf := c.conf.Load()
	if !hasPort(ports, port) {
		return nil, forbidden{fmt.Sprintf("port %d", port)}
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	d := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err == nil {
			err = conf.mayReach(a.Addr())
		}
		if err == nil && c.isOwnDoor(a) {
			err = forbidden{address + " is a door of this cache"}
		}
		return err
	}}
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
		if err == nil {
			return conn, nil
		}
		var no forbidden
		if errors.As(err, &no) {
			err = no
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// dialPlain connects to what the owner named.
func (c *Cache) dialPlain(ctx context.Context, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	var d net.Dialer
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, uint16(n)).String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// resolve finds the addresses of a host, which may be one already.
func (c *Cache) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	all, err := c.lookupHost(ctx, host)
	if err == nil && len(all) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return all, err
}
