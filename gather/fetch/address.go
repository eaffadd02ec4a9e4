package fetch

import (
	"context"
	"fmt"
	iofs "io/fs"
	"net/netip"
)

type publicKey struct{}

// Public returns a context for requests on behalf of someone who is not trusted
// with this network: addresses of loopback, of links, of private networks, of
// groups and of nobody are refused when a connection is made, after names were
// looked up. Files and mailboxes are refused as well. The error wraps
// iofs.ErrPermission and names the address.
func Public(ctx context.Context) context.Context {
	return context.WithValue(ctx, publicKey{}, true)
}

func isPublic(ctx context.Context) bool {
	yes, _ := ctx.Value(publicKey{}).(bool)
	return yes
}

// special are the networks that are nobody's on the Internet, by the IANA's
// registries of special-purpose addresses.
var special = func() (p []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4", // the last holds the broadcast address
		"2001::/23", "2001:db8::/32", "3fff::/20", // Teredo among the first
	} {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}()

var (
	unicast = netip.MustParsePrefix("2000::/3")     // all of IPv6 that is given out
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address behind a translator
	sixTo4  = netip.MustParsePrefix("2002::/16")    // an IPv4 address in a tunnel
)

// checkPublic refuses an address that is not someone's on the Internet.
func checkPublic(a netip.Addr) error {
	if !isGlobal(a) {
		return fmt.Errorf("address %s is not public: %w", a, iofs.ErrPermission)
	}
	return nil
}

// isGlobal looks through the forms in which IPv6 carries an IPv4 address.
func isGlobal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case !a.IsValid():
		return false
	case a.Is4():
	case nat64.Contains(a):
		return isGlobal(netip.AddrFrom4([4]byte(b[12:16])))
	case sixTo4.Contains(a):
		return isGlobal(netip.AddrFrom4([4]byte(b[2:6])))
	case !unicast.Contains(a):
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
