package dns

import (
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	wire "github.com/miekg/dns"
)

// local is what the machine itself says: its file of names, and whom to ask.
// The files are looked at again when they changed, every 5 s at most.
type local struct {
	servers []netip.AddrPort // set: resolv.conf is not read
	hosts   string
	now     func() time.Time

	mu     sync.Mutex
	names  map[string][]netip.Addr
	conf   []netip.AddrPort
	looked time.Time
	stamps [2]stamp
}

// stamp tells one state of a file from another.
type stamp struct {
	mod  time.Time
	size int64
}

const (
	resolvConf = "/etc/resolv.conf"
	lookEvery  = 5 * time.Second
	maxHosts   = 64 << 20 // octets of a file of names; there are long block lists
)

// lookup finds a name in the file of names. localhost and what is below it is
// this machine whatever the file says (RFC 6761, 6.3).
func (l *local) lookup(name string) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	if a := l.names[name]; len(a) > 0 {
		return a
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return nil
}

// nameservers are the servers to ask.
func (l *local) nameservers() []netip.AddrPort {
	if len(l.servers) > 0 {
		return l.servers
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	return l.conf
}

// look reads the files again if they changed. A file that is not there is empty.
func (l *local) look() {
	now := l.now()
	if !l.looked.IsZero() && now.Sub(l.looked) < lookEvery {
		return
	}
	l.looked = now
	path := l.hosts
	if path == "" {
		path = "/etc/hosts"
	}
	if l.changed(0, path) || l.names == nil {
		b, err := os.ReadFile(path)
		if err != nil || len(b) > maxHosts {
			b = nil
		}
		l.names = parseHosts(string(b))
	}
	if len(l.servers) == 0 && (l.changed(1, resolvConf) || l.conf == nil) {
		l.conf = readServers(resolvConf)
	}
}

// changed tells whether a file is not as it was when it was last looked at.
func (l *local) changed(i int, path string) bool {
	var s stamp
	if fi, err := os.Stat(path); err == nil {
		s = stamp{fi.ModTime(), fi.Size()}
	}
	was := l.stamps[i]
	l.stamps[i] = s
	return was != s
}

// parseHosts reads a file of names: an address and its names a line, in the order
// of Lookup. Lines and names that are none are passed over.
func parseHosts(text string) map[string][]netip.Addr {
	names := make(map[string][]netip.Addr)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if err != nil || a.Zone() != "" {
			continue
		}
		for _, host := range f[1:] {
			if name, err := canonical(host); err == nil && len(names[name]) < maxAddrs {
				names[name] = insert(names[name], a.Unmap())
			}
		}
	}
	return names
}

// insert adds an address, IPv4 before IPv6.
func insert(all []netip.Addr, a netip.Addr) []netip.Addr {
	i := len(all)
	for i > 0 && a.Is4() && !all[i-1].Is4() {
		i--
	}
	all = append(all, a)
	copy(all[i+1:], all[i:])
	all[i] = a
	return all
}

// readServers reads the servers of a resolv.conf, at most three as everywhere;
// without any it is this machine's own (resolv.conf(5)).
func readServers(path string) []netip.AddrPort {
	var all []netip.AddrPort
	if c, err := wire.ClientConfigFromFile(path); err == nil {
		for _, s := range c.Servers {
			if a, err := netip.ParseAddr(s); err == nil && len(all) < 3 {
				all = append(all, netip.AddrPortFrom(a, 53))
			}
		}
	}
	if len(all) == 0 {
		all = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}
	}
	return all
}
