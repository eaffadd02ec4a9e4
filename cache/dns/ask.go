package dns

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	wire "github.com/miekg/dns"
)

var kinds = [2]uint16{wire.TypeA, wire.TypeAAAA}

const (
	rounds     = 2    // how often each server is asked
	maxAliases = 16   // CNAMEs that are followed
	maxAddrs   = 64   // of one kind that are kept
	maxStray   = 64   // datagrams that are not the answer, before it is given up
	udpSize    = 1232 // what passes every path unfragmented (DNS flag day 2020)
)

var errAliases = errors.New("too many aliases")

// answer is what the servers say of one kind of address, or of both.
type answer struct {
	addrs []netip.Addr
	ttl   time.Duration
	err   error  // without addresses: why
	alias string // without addresses: the name that has them
}

// failed tells an answer that says nothing of the name.
func (a answer) failed() bool { return a.err != nil && !errors.Is(a.err, iofs.ErrNotExist) }

// with puts the answers about the two kinds together. Addresses of one kind
// count, whatever was said of the other; a failure outweighs "not there".
func (a answer) with(b answer) answer {
	switch {
	case len(a.addrs) > 0 && len(b.addrs) > 0:
		if b.addrs[0].Is4() {
			a, b = b, a
		}
		return answer{addrs: slices.Concat(a.addrs, b.addrs), ttl: min(a.ttl, b.ttl)}
	case len(a.addrs) > 0, len(b.addrs) == 0 && a.failed():
		return a
	case len(b.addrs) > 0, b.failed():
		return b
	}
	a.ttl = min(a.ttl, b.ttl)
	return a
}

// ask asks for addresses of one kind, following aliases that the server did
// not follow itself.
func (r *Resolver) ask(ctx context.Context, name string, kind uint16) answer {
	ttl, at := maxTTL, name
	for range maxAliases {
		a := r.askServers(ctx, at, kind)
		a.ttl = min(a.ttl, ttl)
		if a.alias == "" {
			if a.err != nil {
				a.err = fmt.Errorf("host %s: %w", name, a.err)
			} else {
				a.ttl = max(a.ttl, minTTL)
			}
			return a
		}
		ttl, at = a.ttl, a.alias
	}
	return answer{ttl: failureTTL, err: fmt.Errorf("host %s: %w", name, errAliases)}
}

// askServers asks one server after the other until one knows, beginning with the
// one that knew last.
func (r *Resolver) askServers(ctx context.Context, name string, kind uint16) answer {
	servers := r.local.nameservers()
	r.mu.Lock()
	good := r.good
	r.mu.Unlock()
	err := errors.New("no name server")
	for i := range rounds * len(servers) {
		at := (good + i) % len(servers)
		var a answer
		if a, err = r.askServer(ctx, servers[at], name, kind); err == nil {
			r.mu.Lock()
			r.good = at
			r.mu.Unlock()
			return a
		}
		if ctx.Err() != nil {
			break
		}
	}
	return answer{ttl: failureTTL, err: err}
}

// askServer asks one server, by TCP if the answer does not fit a datagram,
// and plainly if it does not know EDNS.
func (r *Resolver) askServer(ctx context.Context, server netip.AddrPort, name string, kind uint16) (answer, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	q := new(wire.Msg).SetQuestion(name+".", kind).SetEdns0(udpSize, false)
	m, err := r.exchange(ctx, "udp", server, q)
	if err == nil && (m.Rcode == wire.RcodeFormatError || m.Rcode == wire.RcodeNotImplemented) {
		q.Extra = nil
		m, err = r.exchange(ctx, "udp", server, q)
	}
	if err == nil && m.Truncated {
		m, err = r.exchange(ctx, "tcp", server, q)
	}
	if err != nil {
		return answer{}, fmt.Errorf("server %v: %w", server, err)
	}
	switch m.Rcode {
	case wire.RcodeSuccess, wire.RcodeNameError:
		return read(m, name, kind), nil
	}
	return answer{}, fmt.Errorf("server %v: %s", server, strings.ToLower(wire.RcodeToString[m.Rcode]))
}

// exchange sends a question from a port of its own and waits for its answer.
// What comes besides is passed over: it may be made up to be taken for it.
func (r *Resolver) exchange(ctx context.Context, network string, server netip.AddrPort, q *wire.Msg) (*wire.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	q.Id = wire.Id()
	co := &wire.Conn{Conn: c, UDPSize: udpSize}
	if err := co.WriteMsg(q); err != nil {
		return nil, err
	}
	for range maxStray {
		m, err := co.ReadMsg()
		var broken net.Error
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &broken) || err != nil && network == "tcp":
			return nil, err
		case err == nil && answers(m, q):
			return m, nil
		}
	}
	return nil, errors.New("answers to other questions")
}

// answers tells whether a message answers a question.
func answers(m, q *wire.Msg) bool {
	return m.Response && m.Id == q.Id && m.Opcode == wire.OpcodeQuery && len(m.Question) == 1 &&
		m.Question[0].Qtype == q.Question[0].Qtype && m.Question[0].Qclass == wire.ClassINET &&
		strings.EqualFold(m.Question[0].Name, q.Question[0].Name)
}

// read takes the addresses of a name out of an answer. Only records of the
// name, or of what it is an alias of, are believed.
func read(m *wire.Msg, name string, kind uint16) answer {
	at, ttl := name+".", maxTTL
	for n := 0; ; n++ {
		next := alias(m.Answer, at, &ttl)
		if next == "" {
			break
		}
		if at = next; n == maxAliases {
			return answer{ttl: failureTTL, err: errAliases}
		}
	}
	a := answer{ttl: ttl}
	for _, rr := range m.Answer {
		if h := rr.Header(); h.Rrtype == kind && strings.EqualFold(h.Name, at) && h.Class == wire.ClassINET && len(a.addrs) < maxAddrs {
			if addr, ok := address(rr); ok && !slices.Contains(a.addrs, addr) {
				a.addrs, a.ttl = append(a.addrs, addr), min(a.ttl, life(h.Ttl))
			}
		}
	}
	switch soa := negative(m.Ns); {
	case len(a.addrs) > 0:
	case m.Rcode == wire.RcodeSuccess && !strings.EqualFold(at, name+".") && soa < 0:
		a.alias, a.err = strings.ToLower(strings.TrimSuffix(at, ".")), nil
	case soa < 0:
		a.ttl, a.err = failureTTL, iofs.ErrNotExist
	default:
		a.ttl, a.err = min(max(soa, minNegative), maxNegative), iofs.ErrNotExist
	}
	return a
}

// alias is the name that another is an alias of, if it is one.
func alias(rrs []wire.RR, name string, ttl *time.Duration) string {
	for _, rr := range rrs {
		if c, ok := rr.(*wire.CNAME); ok && strings.EqualFold(c.Hdr.Name, name) {
			*ttl = min(*ttl, life(c.Hdr.Ttl))
			return c.Target
		}
	}
	return ""
}

// address is the address that a record holds.
func address(rr wire.RR) (netip.Addr, bool) {
	var ip net.IP
	switch rr := rr.(type) {
	case *wire.A:
		ip = rr.A
	case *wire.AAAA:
		ip = rr.AAAA
	}
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}

// negative is how long a zone wants it remembered that something is not there
// (RFC 2308, 5), or less than nothing if it does not say.
func negative(rrs []wire.RR) time.Duration {
	for _, rr := range rrs {
		if soa, ok := rr.(*wire.SOA); ok {
			return min(life(soa.Hdr.Ttl), life(soa.Minttl))
		}
	}
	return -1
}

// life is a time to live. One with its highest bit set is none (RFC 2181, 8).
func life(ttl uint32) time.Duration {
	if ttl >= 1<<31 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}
