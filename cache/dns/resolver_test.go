package dns

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	wire "github.com/miekg/dns"
)

// look looks a host up and writes the answer as a line.
func look(t testing.TB, r *Resolver, host string) string {
	a, err := r.Lookup(t.Context(), host)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return "not there"
	case errors.Is(err, iofs.ErrInvalid):
		return "no name"
	case err != nil:
		return "failed"
	}
	slices.SortFunc(a, netip.Addr.Compare)
	return strings.Trim(fmt.Sprint(a), "[]")
}

const soa = "example. 900 SOA ns.example. root.example. 1 7200 900 86400 20"

func TestLookup(t *testing.T) {
	s := newServer(t)
	s.add(t, soa,
		"both.example. 60 A 192.0.2.1", "both.example. 60 AAAA 2001:db8::1", "four.example. 60 A 192.0.2.2", "six.example. 60 AAAA 2001:db8::2",
		"alias.example. 60 CNAME more.example.", "more.example. 60 CNAME both.example.", "loop.example. 60 CNAME loop.example.",
		"nowhere.example. 60 CNAME gone.example.", "_under-score.example. 60 A 192.0.2.3", "twice.example. 60 A 192.0.2.4", "twice.example. 60 A 192.0.2.4")
	s.set(t, "gone.example", wire.RcodeNameError)
	s.set(t, "nowhere.example", wire.RcodeNameError, "nowhere.example. 60 CNAME gone.example.")
	s.set(t, "broken.example", wire.RcodeServerFailure)
	r, _ := resolver(t, "", s)
	for host, want := range map[string]string{
		"both.example": "192.0.2.1 2001:db8::1", "BOTH.Example.": "192.0.2.1 2001:db8::1", "four.example": "192.0.2.2", "six.example": "2001:db8::2",
		"alias.example": "192.0.2.1 2001:db8::1", "loop.example": "failed", "nowhere.example": "not there", "gone.example": "not there", "empty.example": "not there",
		"broken.example": "failed", "_under-score.example": "192.0.2.3", "twice.example": "192.0.2.4",
		"192.0.2.9": "192.0.2.9", "[2001:db8::9]": "2001:db8::9", "2001:db8::9": "2001:db8::9", "::ffff:192.0.2.9": "192.0.2.9",
		"localhost": "127.0.0.1 ::1", "a.localhost": "127.0.0.1 ::1", "a.onion": "not there",
		"": "no name", ".": "no name", "a..b": "no name", "a b": "no name", "a/b": "no name", "fe80::1%lo": "no name", "\x00": "no name", "é.example": "no name",
		strings.Repeat("a", 64) + ".example": "no name", strings.Repeat("a.", 127) + "a": "no name",
	} {
		if got := look(t, r, host); got != want {
			t.Errorf("%.40q: got %s, want %s", host, got, want)
		}
	}
	for _, n := range []string{"a.localhost", "a.onion", "192.0.2.9"} {
		if got := s.count(n); got != 0 {
			t.Errorf("%s: got %d questions, want none", n, got)
		}
	}
}

// TestTime walks through the life of answers.
func TestTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		rcode  int
		record string
		holds  time.Duration // what is asked again a second after this, and not a second before
	}{
		{"short.example", 0, "short.example. 1 A 192.0.2.1", minTTL},
		{"none.example", 0, "none.example. 0 A 192.0.2.1", minTTL},
		{"usual.example", 0, "usual.example. 300 A 192.0.2.1", 270 * time.Second}, // then the last tenth
		{"long.example", 0, "long.example. 864000 A 192.0.2.1", 54 * time.Minute},
		{"negative.example", 0, "negative.example. 3000000000 A 192.0.2.1", minTTL},
		{"chain.example", 0, "chain.example. 100 CNAME usual.example.", 90 * time.Second},
		{"gone.example", wire.RcodeNameError, "", 20 * time.Second},
		{"empty.example", 0, "", 20 * time.Second},
		{"broken.example", wire.RcodeServerFailure, "", failureTTL},
	} {
		s := newServer(t)
		s.add(t, soa, "usual.example. 300 A 192.0.2.1")
		s.set(t, c.name, c.rcode)
		if c.record != "" && c.name != "usual.example" {
			s.add(t, c.record)
		} else if c.record != "" {
			s.set(t, c.name, 0, c.record)
		}
		r, k := resolver(t, "", s)
		first := look(t, r, c.name)
		asked := s.count(c.name)
		k.move(min(c.holds-c.holds/10, c.holds) - time.Second)
		if got := look(t, r, c.name); got != first || s.count(c.name) != asked {
			t.Errorf("%s: got %s and %d questions, want %s and still %d", c.name, got, s.count(c.name), first, asked)
		}
		k.move(c.holds/10 + 2*time.Second)
		got := look(t, r, c.name)
		r.asking.Wait() // for what a look-up in the last tenth began
		if got != first || s.count(c.name) <= asked {
			t.Errorf("%s: got %s and %d questions after %v, want %s and more than %d", c.name, got, s.count(c.name), c.holds, first, asked)
		}
	}
}

// TestCaps holds negative answers to a minute though a zone asks for a day.
func TestCaps(t *testing.T) {
	for _, c := range []struct {
		soa  string
		want time.Duration
	}{
		{"example. 86400 SOA ns.example. root.example. 1 7200 900 86400 86400", 60 * time.Second},
		{"example. 30 SOA ns.example. root.example. 1 7200 900 86400 86400", 30 * time.Second},
		{"example. 30 SOA ns.example. root.example. 1 7200 900 86400 0", time.Second},
		{"other. 30 A 192.0.2.1", failureTTL}, // no SOA
	} {
		s := newServer(t)
		s.add(t, c.soa)
		r, k := resolver(t, "", s)
		if got := look(t, r, "gone.example"); got != "not there" {
			t.Errorf("got %s, want it not there", got)
		}
		for e := range r.All() {
			if got := e.Expires.Sub(k.now()); got != c.want || !errors.Is(e.Err, iofs.ErrNotExist) {
				t.Errorf("%s: got %v, %v, want %v", c.soa, got, e.Err, c.want)
			}
		}
	}
}

// TestStale has the servers fail once a name is known.
func TestStale(t *testing.T) {
	s := newServer(t)
	s.add(t, "a.example. 60 A 192.0.2.1")
	r, k := resolver(t, "", s)
	want := look(t, r, "a.example")
	s.set(t, "a.example", wire.RcodeServerFailure)
	k.move(70 * time.Second)
	if got := look(t, r, "a.example"); got != want {
		t.Errorf("failing: got %s, want %s", got, want)
	}
	asked := s.count("a.example")
	k.move(leaveOff - time.Second)
	if got := look(t, r, "a.example"); got != want || s.count("a.example") != asked {
		t.Errorf("left alone: got %s and %d questions, want %s and %d", got, s.count("a.example"), want, asked)
	}
	k.move(2 * time.Second)
	if got := look(t, r, "a.example"); got != want || s.count("a.example") == asked {
		t.Errorf("later: got %s and %d questions, want %s and more", got, s.count("a.example"), want)
	}
	k.move(staleFor)
	if got := look(t, r, "a.example"); got != "failed" {
		t.Errorf("past 5 minutes: got %s, want it failed", got)
	}
	s.set(t, "a.example", 0, "a.example. 60 A 192.0.2.7")
	k.move(failureTTL)
	if got := look(t, r, "a.example"); got != "192.0.2.7" {
		t.Errorf("mended: got %s, want the new address", got)
	}
	s.set(t, "a.example", wire.RcodeNameError)
	k.move(61 * time.Second)
	if got := look(t, r, "a.example"); got != "not there" {
		t.Errorf("gone: got %s, want it not there though an old answer is", got)
	}
}

// TestPatience has the servers fall silent once a name is known.
func TestPatience(t *testing.T) {
	s := newServer(t)
	s.add(t, "a.example. 60 A 192.0.2.1")
	r, k := resolver(t, "", s)
	r.timeout, r.patience = time.Minute, time.Millisecond
	want := look(t, r, "a.example")
	s.oddly(func(wire.ResponseWriter, *wire.Msg, *wire.Msg) bool { return true })
	k.move(70 * time.Second)
	if got := look(t, r, "a.example"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := r.Lookup(ctx, "b.example"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline of who asks", err)
	}
}

// TestOneFlight has many look one name up at once.
func TestOneFlight(t *testing.T) {
	s := newServer(t)
	s.add(t, "a.example. 60 A 192.0.2.1")
	hold := make(chan struct{})
	s.oddly(func(wire.ResponseWriter, *wire.Msg, *wire.Msg) bool { <-hold; return false })
	r, _ := resolver(t, "", s)
	r.timeout = time.Minute
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := look(t, r, "a.example"); got != "192.0.2.1" {
				t.Errorf("got %s, want its address", got)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if _, err := r.Lookup(ctx, "a.example"); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was given up", err)
		}
	})
	cancel() // and the others get theirs all the same
	close(hold)
	wg.Wait()
	if n := s.count("a.example"); n != 2 {
		t.Errorf("got %d questions, want one of each kind", n)
	}
}

// TestOneKind has a server that never says a word about IPv6.
func TestOneKind(t *testing.T) {
	s := newServer(t)
	s.add(t, "a.example. 60 A 192.0.2.1")
	s.oddly(func(_ wire.ResponseWriter, q, _ *wire.Msg) bool { return q.Question[0].Qtype == wire.TypeAAAA })
	r, _ := resolver(t, "", s)
	r.timeout = time.Minute
	if got := look(t, r, "a.example"); got != "192.0.2.1" {
		t.Errorf("got %s, want its one address while the other is waited for", got)
	}
}

// TestServers has one server after the other fail in ways of its own.
func TestServers(t *testing.T) {
	for what, odd := range map[string]func(w wire.ResponseWriter, q, a *wire.Msg) bool{
		"silent": func(wire.ResponseWriter, *wire.Msg, *wire.Msg) bool { return true },
		"refuses": func(_ wire.ResponseWriter, _, a *wire.Msg) bool {
			a.Rcode, a.Answer = wire.RcodeRefused, nil
			return false
		},
		"knows no EDNS":     func(_ wire.ResponseWriter, q, a *wire.Msg) bool { return noEDNS(q, a) },
		"truncates":         truncate,
		"sends rubbish too": rubbish,
	} {
		bad, good := newServer(t), newServer(t)
		bad.oddly(odd)
		bad.add(t, "a.example. 60 A 192.0.2.1")
		good.add(t, "a.example. 60 A 192.0.2.1")
		r, _ := resolver(t, "", bad, good)
		if got := look(t, r, "a.example"); got != "192.0.2.1" {
			t.Errorf("%s: got %s, want the address", what, got)
		}
		other := what == "silent" || what == "refuses"
		if (good.count("a.example") > 0) != other {
			t.Errorf("%s: the other server got %d questions", what, good.count("a.example"))
		}
		if bad.tcp > 0 != (what == "truncates") {
			t.Errorf("%s: got %d questions by TCP", what, bad.tcp)
		}
		r.Forget("a.example")
		asked := bad.count("a.example")
		look(t, r, "a.example")
		if (bad.count("a.example") == asked) != other {
			t.Errorf("%s: got %d questions of %d later, want the server that answered asked first", what, bad.count("a.example"), asked)
		}
	}
}

func noEDNS(q, a *wire.Msg) bool {
	if q.IsEdns0() != nil {
		a.Rcode, a.Answer = wire.RcodeFormatError, nil
	}
	return false
}

func truncate(w wire.ResponseWriter, _, a *wire.Msg) bool {
	if w.RemoteAddr().Network() == "udp" {
		a.Truncated, a.Answer = true, nil
	}
	return false
}

// rubbish sends what is nearly an answer before the answer.
func rubbish(w wire.ResponseWriter, q, a *wire.Msg) bool {
	w.Write([]byte{1, 2, 3})
	other, _ := wire.NewRR("a.example. 60 A 192.0.2.66")
	for i := range 3 {
		m := a.Copy()
		m.Answer = []wire.RR{other}
		switch i {
		case 0:
			m.Id++
		case 1:
			m.Question[0].Name = "b.example."
		case 2:
			m.Response = false
		}
		w.WriteMsg(m)
	}
	return false
}

// TestBelieved has an answer carry records that it has no business to.
func TestBelieved(t *testing.T) {
	s := newServer(t)
	s.oddly(func(_ wire.ResponseWriter, q, a *wire.Msg) bool {
		for _, l := range []string{"other.example. 60 A 192.0.2.66", "a.example. 60 CH A 192.0.2.67", "a.example. 60 TXT x", "a.example. 60 A 192.0.2.1", "a.example. 60 AAAA 2001:db8::1"} {
			if rr, err := wire.NewRR(l); err == nil {
				a.Answer = append(a.Answer, rr)
			}
		}
		return false
	})
	r, _ := resolver(t, "", s)
	if got := look(t, r, "a.example"); got != "192.0.2.1 2001:db8::1" {
		t.Errorf("got %s, want the name's own", got)
	}
}

// TestTurns spreads who looks up over the addresses.
func TestTurns(t *testing.T) {
	s := newServer(t)
	s.add(t, "a.example. 60 A 192.0.2.1", "a.example. 60 A 192.0.2.2", "a.example. 60 A 192.0.2.3", "a.example. 60 AAAA 2001:db8::1")
	r, _ := resolver(t, "", s)
	first := make(map[netip.Addr]int)
	for range 9 {
		a, err := r.Lookup(t.Context(), "a.example")
		if err != nil || len(a) != 4 || !a[0].Is4() || !a[2].Is4() || a[3] != netip.MustParseAddr("2001:db8::1") {
			t.Fatalf("got %v, %v, want four, that of IPv6 last", a, err)
		}
		first[a[0]]++
		a[0] = netip.Addr{} // ours to change
	}
	if len(first) != 3 {
		t.Errorf("got %v first, want each of three", first)
	}
}

// TestTable holds the table to its bound, to listing, and to forgetting.
func TestTable(t *testing.T) {
	s := newServer(t)
	s.add(t, "keep.example. 60 A 192.0.2.1")
	r, k := resolver(t, "", s)
	r.names = 4
	for i := range 40 {
		look(t, r, fmt.Sprintf("n%d.example", i))
		k.move(time.Millisecond)
		look(t, r, "keep.example")
	}
	var names []string
	for e := range r.All() {
		names = append(names, e.Name)
		if e.Name == "keep.example" && (e.Hits != 39 || fmt.Sprint(e.Addrs) != "[192.0.2.1]" || e.Err != nil) {
			t.Errorf("got %+v, want 39 hits on its address", e)
		}
	}
	if len(names) != 4 || !slices.IsSorted(names) || !slices.Contains(names, "keep.example") || !slices.Contains(names, "n39.example") {
		t.Errorf("got %v, want four, sorted, those used last", names)
	}
	if n := s.count("keep.example"); n != 2 {
		t.Errorf("got %d questions, want 2", n)
	}
	r.Forget("KEEP.example.")
	look(t, r, "keep.example")
	if n := s.count("keep.example"); n != 4 {
		t.Errorf("forgotten: got %d questions, want 4", n)
	}
}

// TestHosts has the file of names answer, and be read again when it changes.
func TestHosts(t *testing.T) {
	s := newServer(t)
	s.add(t, "dns.example. 60 A 192.0.2.1", "both.example. 60 A 192.0.2.1")
	path := t.TempDir() + "/hosts"
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("# names\n2001:db8::5 both.example Other.example. # more\n192.0.2.5\tboth.example\nbad line\n192.0.2.6\nfe80::1%lo link.example\n")
	r, k := resolver(t, path, s)
	for host, want := range map[string]string{"both.example": "192.0.2.5 2001:db8::5", "other.example": "2001:db8::5", "dns.example": "192.0.2.1", "link.example": "not there"} {
		if got := look(t, r, host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
	if n := s.count("both.example"); n != 0 {
		t.Errorf("got %d questions for a name of the file, want none", n)
	}
	write("192.0.2.99 both.example\n")
	k.move(lookEvery)
	if got := look(t, r, "both.example"); got != "192.0.2.99" {
		t.Errorf("changed: got %s, want the new address", got)
	}
	os.Remove(path)
	k.move(lookEvery)
	if got := look(t, r, "both.example"); got != "192.0.2.1" {
		t.Errorf("removed: got %s, want what the server says", got)
	}
}

// TestConf reads the servers out of resolv.conf.
func TestConf(t *testing.T) {
	path := t.TempDir() + "/resolv.conf"
	for text, want := range map[string]string{
		"":                      "[127.0.0.1:53]",
		"search a\noptions x\n": "[127.0.0.1:53]",
		"nameserver 192.0.2.1\nnameserver x\nnameserver 2001:db8::1\nnameserver fe80::1%lo\nnameserver 192.0.2.3\n": "[192.0.2.1:53 [2001:db8::1]:53 [fe80::1%lo]:53]",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(readServers(path)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestClose ends what is being asked at once, and what comes after it.
func TestClose(t *testing.T) {
	s := newServer(t)
	asked := make(chan struct{}, 2)
	s.oddly(func(wire.ResponseWriter, *wire.Msg, *wire.Msg) bool { asked <- struct{}{}; return true })
	r, _ := resolver(t, "", s)
	r.timeout = time.Minute
	end := make(chan string)
	go func() { end <- look(t, r, "a.example") }()
	<-asked
	<-asked
	r.Close()
	if got := <-end; got != "failed" {
		t.Errorf("got %s, want it failed", got)
	}
	if got := look(t, r, "b.example"); got != "failed" {
		t.Errorf("closed: got %s, want it failed", got)
	}
}

// FuzzRead reads what a server may send.
func FuzzRead(f *testing.F) {
	for _, l := range []string{"a.example. 60 A 192.0.2.1", "a.example. 60 CNAME b.example.", soa} {
		rr, err := wire.NewRR(l)
		if err != nil {
			f.Fatal(err)
		}
		m := new(wire.Msg).SetQuestion("a.example.", wire.TypeA)
		m.Answer = []wire.RR{rr}
		m.Ns = m.Answer
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(wire.Msg)
		if m.Unpack(b) != nil {
			return
		}
		for _, kind := range kinds {
			a := read(m, "a.example", kind)
			if len(a.addrs) > maxAddrs || a.ttl < 0 || a.ttl > maxTTL || (len(a.addrs) > 0) == (a.err != nil || a.alias != "") {
				t.Fatalf("got %+v", a)
			}
		}
	})
}

// FuzzHosts reads a file of names.
func FuzzHosts(f *testing.F) {
	f.Add("127.0.0.1 localhost # x\n::1 a b\n1.2.3.4")
	f.Fuzz(func(t *testing.T, text string) {
		for name, all := range parseHosts(text) {
			if c, err := canonical(name); err != nil || c != name || len(all) == 0 || !slices.IsSortedFunc(all, func(a, b netip.Addr) int { return kindOf(a) - kindOf(b) }) {
				t.Fatalf("got %q, %v", name, all)
			}
		}
	})
}

func kindOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// BenchmarkLookup tells what a known name costs.
func BenchmarkLookup(b *testing.B) {
	s := newServer(b)
	s.add(b, "a.example. 3600 A 192.0.2.1", "a.example. 3600 A 192.0.2.2")
	r, _ := resolver(b, "", s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Lookup(b.Context(), "a.example"); err != nil {
			b.Fatal(err)
		}
	}
}
