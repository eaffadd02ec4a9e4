package dns

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	wire "github.com/miekg/dns"
)

// server is a real name server on loopback, by UDP and TCP on one port, that
// answers from records and as it is told.
type server struct {
	addr netip.AddrPort

	mu    sync.Mutex
	rrs   map[string][]wire.RR // by name and kind
	rcode map[string]int       // by name
	odd   func(w wire.ResponseWriter, q, a *wire.Msg) bool
	asked map[string]int // by name and kind
	tcp   int
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{rrs: make(map[string][]wire.RR), rcode: make(map[string]int), asked: make(map[string]int)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().(*net.TCPAddr).AddrPort()
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	for _, srv := range []*wire.Server{{Listener: l}, {PacketConn: pc}} {
		up := make(chan struct{})
		srv.Handler, srv.NotifyStartedFunc = s, func() { close(up) }
		done.Go(func() { srv.ActivateAndServe() })
		<-up
		t.Cleanup(func() { srv.Shutdown() })
	}
	return s
}

// add adds records as a zone file has them.
func (s *server) add(t testing.TB, lines ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		rr, err := wire.NewRR(l)
		if err != nil {
			t.Fatal(err)
		}
		k := key(rr.Header().Name, rr.Header().Rrtype)
		s.rrs[k] = append(s.rrs[k], rr)
	}
}

// set replaces what is said of a name.
func (s *server) set(t testing.TB, name string, rcode int, lines ...string) {
	s.mu.Lock()
	s.rcode[name+"."] = rcode
	for _, kind := range []uint16{wire.TypeA, wire.TypeAAAA, wire.TypeCNAME} {
		delete(s.rrs, key(name+".", kind))
	}
	s.mu.Unlock()
	s.add(t, lines...)
}

func (s *server) oddly(f func(w wire.ResponseWriter, q, a *wire.Msg) bool) {
	s.mu.Lock()
	s.odd = f
	s.mu.Unlock()
}

// count is how often a name was asked for, both kinds together.
func (s *server) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[key(name+".", wire.TypeA)] + s.asked[key(name+".", wire.TypeAAAA)]
}

func key(name string, kind uint16) string { return name + " " + wire.TypeToString[kind] }

func (s *server) ServeDNS(w wire.ResponseWriter, q *wire.Msg) {
	s.mu.Lock()
	name, kind := q.Question[0].Name, q.Question[0].Qtype
	s.asked[key(name, kind)]++
	if _, ok := w.RemoteAddr().(*net.TCPAddr); ok {
		s.tcp++
	}
	a := new(wire.Msg).SetRcode(q, s.rcode[name])
	for at := name; ; {
		a.Answer = append(a.Answer, s.rrs[key(at, kind)]...)
		c := s.rrs[key(at, wire.TypeCNAME)]
		if len(c) == 0 || len(a.Answer) > 20 {
			break
		}
		a.Answer = append(a.Answer, c...)
		at = c[0].(*wire.CNAME).Target
	}
	if len(a.Answer) == 0 {
		a.Ns = s.rrs[key("example.", wire.TypeSOA)]
	}
	odd := s.odd
	s.mu.Unlock()
	if odd != nil && odd(w, q, a) {
		return
	}
	w.WriteMsg(a)
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	c.at = c.at.Add(d)
	c.mu.Unlock()
}

// resolver asks servers, and has no file of names but the one that is given.
func resolver(t testing.TB, hosts string, s ...*server) (*Resolver, *clock) {
	c := Config{Hosts: hosts, Timeout: 300 * time.Millisecond}
	if hosts == "" {
		c.Hosts = t.TempDir() + "/hosts"
	}
	for _, s := range s {
		c.Servers = append(c.Servers, s.addr)
	}
	r, k := New(c), &clock{at: time.Unix(1e9, 0)}
	r.now = k.now
	t.Cleanup(r.Close)
	return r, k
}
