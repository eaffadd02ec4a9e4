package gatherd

import (
	"context"
	"fmt"
	iofs "io/fs"
	"net"
	"net/netip"
	"strings"
	"time"
)

// A Rule lets hosts in or keeps them out. Of an ordered list the first that
// matches decides; who matches none is let in.
type Rule struct {
	Allow bool

	all    bool
	net    netip.Prefix
	name   string // of a host, or with domain of all below it too
	domain bool
}

// ParseRule reads who a rule is about: all, an address, a network in CIDR form,
// the name of a host, or of a domain, which begins with a point.
func ParseRule(allow bool, who string) (Rule, error) {
	r := Rule{Allow: allow}
	if who == "all" {
		r.all = true
		return r, nil
	}
	if p, err := netip.ParsePrefix(who); err == nil {
		if p != p.Masked() {
			return r, fmt.Errorf("network %s: there are bits behind its length: %w", who, iofs.ErrInvalid)
		}
		r.net = p
		return r, nil
	}
	if a, err := netip.ParseAddr(who); err == nil {
		a = a.Unmap()
		r.net = netip.PrefixFrom(a, a.BitLen())
		return r, nil
	}
	name := strings.ToLower(strings.TrimSuffix(who, "."))
	if name, r.domain = strings.CutPrefix(name, "."); !isName(name) {
		return r, fmt.Errorf("'%.60s' is neither all nor an address, a network, a host or a .domain: %w", who, iofs.ErrInvalid)
	}
	r.name = name
	return r, nil
}

// isName reports whether a host could have that name. What is all digits and
// points was meant as an address.
func isName(s string) bool {
	letter := false
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' {
			return false
		}
		for _, c := range label {
			alpha := 'a' <= c && c <= 'z'
			letter = letter || alpha
			if !alpha && c != '-' && c != '_' && (c < '0' || c > '9') {
				return false
			}
		}
	}
	return letter && len(s) <= 253
}

// A Resolver finds names of addresses and addresses of names: *net.Resolver.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// resolving bounds how long a client waits for its name to be found.
const resolving = 5 * time.Second

// admits reports whether a client is let in.
func admits(ctx context.Context, rules []Rule, addr netip.Addr, dns Resolver) bool {
	addr = addr.Unmap()
	var names []string
	for i, r := range rules {
		if r.name != "" && names == nil {
			names = namesOf(ctx, addr, dns)
		}
		if rules[i].matches(addr, names) {
			return r.Allow
		}
	}
	return true
}

func (r *Rule) matches(addr netip.Addr, names []string) bool {
	if r.all || r.net.IsValid() && r.net.Contains(addr.WithZone("")) {
		return true
	}
	for _, n := range names {
		if r.name != "" && (n == r.name || r.domain && strings.HasSuffix(n, "."+r.name)) {
			return true
		}
	}
	return false
}

// namesOf returns the names of an address, never nil. Who owns an address can
// give it any name; only one that leads back to it counts.
func namesOf(ctx context.Context, addr netip.Addr, dns Resolver) []string {
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	names := []string{}
	claimed, err := dns.LookupAddr(ctx, addr.String())
	if err != nil {
		return names // it has none
	}
	for _, n := range claimed[:min(len(claimed), 8)] {
		back, err := dns.LookupNetIP(ctx, "ip", n)
		if err != nil {
			continue
		}
		for _, a := range back {
			if a.Unmap().WithZone("") == addr.WithZone("") {
				names = append(names, strings.ToLower(strings.TrimSuffix(n, ".")))
				break
			}
		}
	}
	return names
}

// addrOf returns the address of a client; of a socket that has none an invalid
// one, which only all matches.
func addrOf(a net.Addr) netip.Addr {
	p, _ := netip.ParseAddrPort(a.String())
	return p.Addr().Unmap()
}
