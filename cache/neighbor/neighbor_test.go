package neighbor

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"harvest/cache/icp"
)

// conn is an ICP socket on loopback that answers as it is told, until the test ends.
func conn(t testing.TB, answer func(netip.AddrPort, string) icp.Op) *icp.Conn {
	t.Helper()
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c := icp.New(pc)
	c.Rate = 1e9
	var done sync.WaitGroup
	done.Go(func() { c.Serve(context.Background(), answer) })
	t.Cleanup(func() { c.Close(); done.Wait() })
	return c
}

// says is a neighbour that always says the same, and counts how often it is asked.
func says(t testing.TB, op icp.Op) (netip.AddrPort, *atomic.Int64) {
	n := new(atomic.Int64)
	return conn(t, func(netip.AddrPort, string) icp.Op { n.Add(1); return op }).Addr(), n
}

const silent = icp.Op(0)

// table makes a table of neighbours, with a clock that the test moves.
func table(t testing.TB, r Rules, all ...Config) (*Table, *atomic.Int64) {
	t.Helper()
	tab, sec := New(conn(t, nil)), new(atomic.Int64)
	tab.least = time.Minute // a loaded machine is slow to answer
	start := time.Now()
	tab.now = func() time.Time { return start.Add(time.Duration(sec.Load()) * time.Second) }
	for i := range all {
		all[i].Addr = "127.0.0.1:" + fmt.Sprint(i+1)
	}
	if err := tab.Set(r, all); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	return tab, sec
}

// after is an origin that is connected to in a while.
func after(d time.Duration) Dial {
	return func(ctx context.Context) (time.Duration, error) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return d, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// known is an origin to which there is a connection that took so long.
func known(d time.Duration) Dial {
	return func(context.Context) (time.Duration, error) { return d, nil }
}

func never(ctx context.Context) (time.Duration, error) { <-ctx.Done(); return 0, ctx.Err() }

func unreachable(context.Context) (time.Duration, error) { return 0, errors.New("unreachable") }

// String writes a plan as a line.
func (p Plan) String() string {
	var all []string
	for _, c := range p.Choices {
		s := strings.TrimPrefix(c.Code+" "+c.Name, " ")
		if c.OnlyIfCached {
			s += " only"
		}
		all = append(all, strings.TrimSpace(s))
	}
	return strings.Join(all, ", ")
}

var get = Request{URL: "http://www.example.org/a", Host: "www.example.org", Ask: true}

func TestChoose(t *testing.T) {
	hit, _ := says(t, icp.Hit)
	miss, _ := says(t, icp.Miss)
	nofetch, _ := says(t, icp.MissNoFetch)
	deny, _ := says(t, icp.Denied)
	mute, _ := says(t, silent)
	sib := func(name string, a netip.AddrPort) Config { return Config{Name: name, ICP: a, Kind: Sibling} }
	par := func(name string, a netip.AddrPort) Config { return Config{Name: name, ICP: a, Kind: Parent} }
	slow, fast := known(time.Minute), known(1)
	for _, c := range []struct {
		what  string
		rules Rules
		all   []Config
		dial  Dial
		want  string
	}{
		{"nobody", Rules{}, nil, nil, "HIER_DIRECT"},
		{"nobody, never direct", Rules{NeverDirect: true}, nil, nil, ""},
		{"a sibling holds it", Rules{}, []Config{sib("s", hit), sib("m", miss)}, never, "SIBLING_HIT s only, HIER_DIRECT"},
		{"a parent holds it", Rules{}, []Config{sib("m", miss), par("p", hit)}, never, "PARENT_HIT p, HIER_DIRECT"},
		{"siblings miss", Rules{}, []Config{sib("m", miss), sib("n", miss)}, slow, "HIER_DIRECT"},
		{"siblings miss, no way to the origin", Rules{}, []Config{sib("m", miss)}, unreachable, "HIER_DIRECT"},
		{"a parent is faster", Rules{}, []Config{sib("m", miss), par("p", miss)}, slow, "FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"a parent is faster than a connection", Rules{}, []Config{sib("m", miss), par("p", miss)}, never, "FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"the origin cannot be reached", Rules{}, []Config{sib("m", miss), par("p", miss)}, unreachable, "FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"a parent would not fetch", Rules{}, []Config{sib("m", miss), par("p", nofetch)}, slow, "HIER_DIRECT"},
		{"a parent refuses", Rules{}, []Config{sib("m", miss), par("p", deny)}, slow, "HIER_DIRECT"},
		{"a sibling is silent", Rules{}, []Config{sib("m", mute)}, slow, "TIMEOUT_HIER_DIRECT"},
		{"a parent is silent", Rules{}, []Config{sib("m", miss), par("p", mute)}, slow, "TIMEOUT_HIER_DIRECT, ANY_OLD_PARENT p"},
		{"a sibling is silent, a parent misses", Rules{}, []Config{sib("m", mute), par("p", miss)}, slow, "TIMEOUT_FIRST_PARENT_MISS p, TIMEOUT_HIER_DIRECT"},
		{"never direct", Rules{NeverDirect: true}, []Config{sib("m", miss), par("p", miss)}, fast, "FIRST_PARENT_MISS p"},
		{"never direct, parent silent", Rules{NeverDirect: true}, []Config{sib("m", miss), par("p", mute)}, fast, "ANY_OLD_PARENT p"},
		{"never direct, sibling holds", Rules{NeverDirect: true}, []Config{sib("s", hit), par("p", mute)}, fast, "SIBLING_HIT s only, ANY_OLD_PARENT p"},
		{"never direct, siblings only", Rules{NeverDirect: true}, []Config{sib("s", miss)}, fast, ""},
		{"never direct, inside", Rules{NeverDirect: true, Inside: []string{"example.org"}}, []Config{sib("m", miss), par("p", nofetch)}, slow, "HIER_DIRECT"},
		{"never direct, not inside", Rules{NeverDirect: true, Inside: []string{"example.com"}}, []Config{sib("m", miss), par("p", miss)}, slow, "FIRST_PARENT_MISS p"},
		{"always direct", Rules{Direct: []string{"example.org"}}, []Config{sib("s", hit)}, slow, "HIER_DIRECT"},
		{"always direct, not this", Rules{Direct: []string{"example.com"}}, []Config{sib("s", hit)}, slow, "SIBLING_HIT s only, HIER_DIRECT"},
		{"a sole parent", Rules{SingleParent: true}, []Config{par("p", mute)}, slow, "SINGLE_PARENT p, HIER_DIRECT"},
		{"a sole parent, asked all the same", Rules{}, []Config{par("p", miss)}, slow, "FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"a sole parent, never direct", Rules{NeverDirect: true}, []Config{par("p", mute)}, slow, "SINGLE_PARENT p"},
		{"a sole sibling", Rules{SingleParent: true}, []Config{sib("s", hit)}, slow, "SIBLING_HIT s only, HIER_DIRECT"},
		{"a parent without icp", Rules{}, []Config{{Name: "q", Kind: Parent}}, slow, "CARP q, HIER_DIRECT"},
		{"a parent without icp and one that misses", Rules{}, []Config{{Name: "q", Kind: Parent}, par("p", miss)}, slow, "CARP q, FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"a parent without icp and a sibling that holds", Rules{}, []Config{{Name: "q", Kind: Parent}, sib("s", hit)}, slow, "SIBLING_HIT s only, CARP q, HIER_DIRECT"},
		{"for another domain", Rules{}, []Config{{Name: "s", ICP: hit, Domains: []string{"example.com"}}}, slow, "HIER_DIRECT"},
		{"for this domain", Rules{}, []Config{{Name: "s", ICP: hit, Domains: []string{".EXAMPLE.org."}}}, slow, "SIBLING_HIT s only, HIER_DIRECT"},
		{"not for this host", Rules{}, []Config{{Name: "s", ICP: hit, Domains: []string{"!www.example.org", "example.org"}}}, slow, "HIER_DIRECT"},
		{"proxy only", Rules{}, []Config{{Name: "s", ICP: hit, ProxyOnly: true}}, slow, "SIBLING_HIT s only, HIER_DIRECT"},
	} {
		tab, _ := table(t, c.rules, c.all...)
		if strings.Contains(c.what, "silent") {
			tab.least = 200 * time.Millisecond
		}
		p := tab.Choose(t.Context(), get, c.dial)
		if got := p.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
		if len(p.Choices) > 0 && p.Choices[0].ProxyOnly != (c.what == "proxy only") {
			t.Errorf("%s: got proxy only %v", c.what, p.Choices[0].ProxyOnly)
		}
	}
}

// TestUnasked has requests that nobody is asked about.
func TestUnasked(t *testing.T) {
	hit, n := says(t, icp.Hit)
	post := Request{URL: get.URL, Host: get.Host}
	all := []Config{{Name: "s", ICP: hit}, {Name: "p", ICP: hit, Kind: Parent}, {Name: "q", Kind: Parent}}
	tab, _ := table(t, Rules{}, all...)
	if got, want := tab.Choose(t.Context(), post, nil).String(), "HIER_DIRECT, CARP q, ANY_OLD_PARENT p"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	tab, _ = table(t, Rules{NeverDirect: true}, all[:2]...)
	if got, want := tab.Choose(t.Context(), post, nil).String(), "FIRSTUP_PARENT p"; got != want {
		t.Errorf("never direct: got %s, want %s", got, want)
	}
	tab = New(nil)
	if err := tab.Set(Rules{}, []Config{{Name: "p", Addr: "a:1", ICP: hit, Kind: Parent}}); err != nil {
		t.Fatal(err)
	}
	if got, want := tab.Choose(t.Context(), get, nil).String(), "HIER_DIRECT, ANY_OLD_PARENT p"; got != want {
		t.Errorf("without a socket: got %s, want %s", got, want)
	}
	if n.Load() != 0 {
		t.Errorf("got %d questions, want none", n.Load())
	}
}

// TestFastest has parents answer that are as fast as they are said to be.
func TestFastest(t *testing.T) {
	type ans struct {
		name           string
		weight         int
		rtt, src       time.Duration
		hasSource, sib bool
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		origin time.Duration
		all    []ans
		want   string
	}{
		{0, []ans{{name: "a", rtt: 20 * ms}, {name: "b", rtt: 10 * ms}}, "FIRST_PARENT_MISS b, FIRST_PARENT_MISS a, HIER_DIRECT"},
		{0, []ans{{name: "a", rtt: 20 * ms, weight: 3}, {name: "b", rtt: 10 * ms}}, "FIRST_PARENT_MISS a, FIRST_PARENT_MISS b, HIER_DIRECT"},
		{0, []ans{{name: "a", rtt: 20 * ms, src: 5 * ms, hasSource: true}, {name: "b", rtt: 10 * ms, src: 30 * ms, hasSource: true}}, "CLOSEST_PARENT_MISS a, CLOSEST_PARENT_MISS b, HIER_DIRECT"},
		{0, []ans{{name: "a", rtt: 20 * ms}, {name: "b", rtt: 10 * ms, src: 30 * ms, hasSource: true}}, "CLOSEST_PARENT_MISS b, FIRST_PARENT_MISS a, HIER_DIRECT"},
		{15 * ms, []ans{{name: "a", rtt: 20 * ms}, {name: "b", rtt: 10 * ms}}, "FIRST_PARENT_MISS b, FIRST_PARENT_MISS a, HIER_DIRECT"},
		{9 * ms, []ans{{name: "a", rtt: 20 * ms}, {name: "b", rtt: 10 * ms}}, "SOURCE_FASTEST, FIRST_PARENT_MISS b, FIRST_PARENT_MISS a"},
		{35 * ms, []ans{{name: "b", rtt: 10 * ms, src: 30 * ms, hasSource: true}}, "CLOSEST_DIRECT, CLOSEST_PARENT_MISS b"},
		{41 * ms, []ans{{name: "b", rtt: 10 * ms, src: 30 * ms, hasSource: true}}, "CLOSEST_PARENT_MISS b, HIER_DIRECT"},
		{9 * ms, []ans{{name: "s", rtt: 1 * ms, sib: true}}, "HIER_DIRECT"},
	} {
		q := query{eligible: eligible{direct: true}, origin: c.origin}
		for _, a := range c.all {
			p := &peer{Row: Row{Config: Config{Name: a.name, Kind: Parent, Weight: a.weight}}}
			if a.sib {
				p.Kind = Sibling
			}
			q.said = append(q.said, said{p, icp.Reply{Op: icp.Miss, RTT: a.rtt, Source: a.src, HasSource: a.hasSource}})
		}
		if got := q.plan(get).String(); got != c.want {
			t.Errorf("%+v and origin %v: got %s, want %s", c.all, c.origin, got, c.want)
		}
	}
}

// TestListen has what comes in come in an order that is known.
func TestListen(t *testing.T) {
	s, p := &peer{Row: Row{Config: Config{Name: "s", Weight: 1}}}, &peer{Row: Row{Config: Config{Name: "p", Kind: Parent, Weight: 1}}}
	for _, c := range []struct {
		what string
		in   func(answers chan<- said, joined chan<- dialled)
		want string
	}{
		{"the origin first", func(a chan<- said, j chan<- dialled) {
			j <- dialled{took: time.Millisecond}
			a <- said{s, icp.Reply{Op: icp.Miss, RTT: time.Millisecond}}
			a <- said{p, icp.Reply{Op: icp.Miss, RTT: 2 * time.Millisecond}}
		}, "SOURCE_FASTEST, FIRST_PARENT_MISS p"},
		{"the origin first, and a hit", func(a chan<- said, j chan<- dialled) {
			j <- dialled{took: time.Millisecond}
			a <- said{p, icp.Reply{Op: icp.Miss, RTT: 2 * time.Millisecond}}
			a <- said{s, icp.Reply{Op: icp.Hit, RTT: 3 * time.Millisecond}}
		}, "SIBLING_HIT s only, SOURCE_FASTEST, FIRST_PARENT_MISS p"},
		{"the origin last, and not waited for", func(a chan<- said, _ chan<- dialled) {
			a <- said{s, icp.Reply{Op: icp.Miss, RTT: time.Millisecond}}
			a <- said{p, icp.Reply{Op: icp.Miss, RTT: 2 * time.Millisecond}}
		}, "FIRST_PARENT_MISS p, HIER_DIRECT"},
		{"the origin last, as there is nobody", func(a chan<- said, j chan<- dialled) {
			a <- said{s, icp.Reply{Op: icp.Miss, RTT: time.Millisecond}}
			a <- said{p, icp.Reply{Op: icp.Denied, RTT: 2 * time.Millisecond}}
			j <- dialled{took: time.Minute}
		}, "HIER_DIRECT"},
		{"the origin out of reach", func(a chan<- said, j chan<- dialled) {
			j <- dialled{err: errors.New("unreachable")}
			a <- said{s, icp.Reply{Op: icp.Miss, RTT: time.Millisecond}}
			a <- said{p, icp.Reply{Op: icp.Miss, RTT: 2 * time.Millisecond}}
		}, "FIRST_PARENT_MISS p, HIER_DIRECT"},
	} {
		q := query{eligible: eligible{direct: true}, begun: time.Now(), dialling: true, waits: map[*peer]time.Duration{s: time.Minute, p: time.Minute}}
		answers, joined := make(chan said), make(chan dialled)
		go c.in(answers, joined) // done when listen is: each is taken before the next
		q.listen(t.Context(), answers, joined)
		if got := q.plan(get).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}

// TestSilentCost holds a silent neighbour to what it may cost a miss, until it
// is not asked any more and costs nothing, and until it is back.
func TestSilentCost(t *testing.T) {
	var speaks atomic.Bool
	var asked atomic.Int64
	late := conn(t, func(netip.AddrPort, string) icp.Op {
		asked.Add(1)
		if speaks.Load() {
			return icp.Miss
		}
		return silent
	}).Addr()
	tab, sec := table(t, Rules{}, Config{Name: "s", ICP: late})
	tab.least = minWait
	var took []time.Duration
	for range maxUnanswered {
		p := tab.Choose(t.Context(), get, known(1))
		took = append(took, p.Took)
		if p.Asked != 1 {
			t.Fatalf("got %d asked, want the neighbour not yet given up", p.Asked)
		}
	}
	slices.Sort(took)
	if took[0] < minWait || took[0] > 15*time.Millisecond { // the others are at the mercy of what else runs
		t.Errorf("got %v for the quickest choice, want 5 to 15 ms", took[0])
	}
	sec.Add(1)
	if p := tab.Choose(t.Context(), get, known(1)); p.Asked != 0 || tab.Rows()[0].State != "dead" {
		t.Errorf("got %d asked, %s, want it dead", p.Asked, tab.Rows()[0].State)
	}
	n := tab.Rows()[0].Asked
	sec.Add(10)
	if p := tab.Choose(t.Context(), get, known(1)); p.Asked != 0 || tab.Rows()[0].Asked != n+1 {
		t.Errorf("got %d asked, %d in all, want it tried after 10 s and not waited for", p.Asked, tab.Rows()[0].Asked)
	}
	if tab.Choose(t.Context(), get, known(1)); tab.Rows()[0].Asked != n+1 {
		t.Error("got it tried twice in 10 s")
	}
	speaks.Store(true)
	sec.Add(10)
	for tab.Choose(t.Context(), get, known(1)); tab.Rows()[0].State != "up"; { // until the answer comes
		if t.Context().Err() != nil {
			t.Fatal("it never came back")
		}
	}
	if p := tab.Choose(t.Context(), get, known(1)); p.Asked != 1 || len(p.Answers) != 1 || p.Answers[0].Name != "s" || p.Answers[0].Op != icp.Miss {
		t.Errorf("got %d asked, %+v, want it asked again", p.Asked, p.Answers)
	}
}

// TestBurst has more asked at once than may go unanswered in a row: what is on
// its way is not missing.
func TestBurst(t *testing.T) {
	gate := make(chan struct{})
	slow := conn(t, func(netip.AddrPort, string) icp.Op { <-gate; return icp.Hit }).Addr()
	tab, _ := table(t, Rules{}, Config{Name: "s", ICP: slow})
	for range 3 * maxUnanswered {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if p := tab.Choose(ctx, get, known(1)); p.Asked != 1 {
			t.Fatalf("got it asked %d times, want it not given up", p.Asked)
		}
	}
	close(gate)
	for tab.Rows()[0].Late < 3*maxUnanswered {
		if t.Context().Err() != nil {
			t.Fatal("the answers never came")
		}
	}
	if r := tab.Rows()[0]; r.State != "up" || r.Hits != 3*maxUnanswered {
		t.Errorf("got %+v, want it up with all its answers", r)
	}
}

// TestLateHit has the answer come while the origin is still being connected to.
func TestLateHit(t *testing.T) {
	dials := make(chan struct{})
	s := conn(t, func(netip.AddrPort, string) icp.Op { <-dials; return icp.Hit }).Addr()
	tab, _ := table(t, Rules{}, Config{Name: "s", ICP: s})
	tab.least = minWait
	p := tab.Choose(t.Context(), get, func(ctx context.Context) (time.Duration, error) {
		after(2 * minWait)(ctx)
		close(dials)
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if got, want := p.String(), "SIBLING_HIT s only, "; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s first", got, want)
	}
}

// TestDown has neighbours refuse questions and fail fetches.
func TestDown(t *testing.T) {
	deny, _ := says(t, icp.Denied)
	tab, sec := table(t, Rules{}, Config{Name: "d", ICP: deny}, Config{Name: "p", Kind: Parent})
	for range maxDenied {
		if p := tab.Choose(t.Context(), get, nil); p.Asked != 1 {
			t.Fatalf("got it asked %d times, want once", p.Asked)
		}
	}
	if p := tab.Choose(t.Context(), get, nil); p.Asked != 0 || tab.Rows()[0].State != "denied" || tab.Rows()[0].Denied != maxDenied {
		t.Errorf("got %d asked, %+v, want it left alone", p.Asked, tab.Rows()[0])
	}
	q := Choice{Config: Config{Name: "p"}}
	for range maxFailures - 1 {
		tab.Done(q, 0, errors.New("refused"))
	}
	tab.Done(q, 10, nil)
	for i := range maxFailures {
		if p := tab.Choose(t.Context(), get, nil).String(); p != "CARP p, HIER_DIRECT" {
			t.Fatalf("after %d failures: got %s, want the parent", i, p)
		}
		tab.Done(q, 0, errors.New("refused"))
	}
	if p := tab.Choose(t.Context(), get, nil).String(); p != "HIER_DIRECT" || tab.Rows()[1].State != "failing" {
		t.Errorf("got %s, %s, want it failing and not used", p, tab.Rows()[1].State)
	}
	sec.Add(10)
	for _, want := range []string{"CARP p, HIER_DIRECT", "HIER_DIRECT"} {
		if p := tab.Choose(t.Context(), get, nil).String(); p != want {
			t.Errorf("after 10 s: got %s, want %s", p, want)
		}
	}
	tab.Done(q, 5, ErrFalseHit)
	tab.Done(Choice{}, 5, nil) // the origin
	if r := tab.Rows()[1]; r.State != "up" || r.Fetched != 1 || r.Failed != 2*maxFailures-1 || r.FalseHits != 1 || r.Bytes != 15 {
		t.Errorf("got %+v, want it up, 1 fetched, 19 failed, 1 false hit, 15 bytes", r)
	}
}

// TestSet refuses what cannot be, and keeps counts.
func TestSet(t *testing.T) {
	hit, _ := says(t, icp.Hit)
	a := Config{Name: "a", Addr: "127.0.0.1:1", ICP: hit}
	tab, _ := table(t, Rules{}, a)
	tab.Choose(t.Context(), get, nil)
	for _, bad := range [][]Config{
		{{Addr: "x:1", ICP: hit}}, {{Name: "x", ICP: hit}}, {{Name: "x", Addr: "x:1"}}, {a, a}, {{Name: "x", Addr: "x:1", Kind: Parent, Weight: -1}},
	} {
		if err := tab.Set(Rules{NeverDirect: true}, bad); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%+v: got %v, want it refused", bad, err)
		}
	}
	if got, want := tab.Choose(t.Context(), get, nil).String(), "SIBLING_HIT a only, HIER_DIRECT"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a.Weight = 2
	if err := tab.Set(Rules{}, []Config{{Name: "b", Addr: "127.0.0.1:2", ICP: hit}, a}); err != nil {
		t.Fatal(err)
	}
	rows := tab.Rows()
	if len(rows) != 2 || rows[0].Name != "a" || rows[0].Hits != 2 || rows[0].State != "up" || rows[0].Weight != 2 || rows[1].State != "new" || rows[1].Weight != 1 {
		t.Errorf("got %+v, want a with its 2 hits and a new b", rows)
	}
	if !tab.Knows(hit.Addr()) || !tab.Knows(netip.MustParseAddr("::ffff:127.0.0.1")) || tab.Knows(netip.MustParseAddr("127.0.0.2")) {
		t.Error("got another's address known, or a neighbour's not")
	}
}

// TestRendezvous holds shares to the weights, and what moves to what must.
func TestRendezvous(t *testing.T) {
	var all []*peer
	for i, w := range []int{1, 1, 2} {
		all = append(all, &peer{Row: Row{Config: Config{Name: fmt.Sprint("p", i), Weight: w}}})
	}
	const n = 20_000
	got := make(map[string]int)
	for i := range n {
		url := fmt.Sprintf("http://example.org/%d", i)
		three := slices.Clone(all)
		rendezvous(three, url)
		got[three[0].Name]++
		two := slices.DeleteFunc(slices.Clone(all), func(p *peer) bool { return p == three[0] })
		rendezvous(two, url)
		if two[0] != three[1] {
			t.Fatalf("%s: got %s when %s is gone, want %s", url, two[0].Name, three[0].Name, three[1].Name)
		}
	}
	for name, share := range map[string]float64{"p0": .25, "p1": .25, "p2": .5} {
		if s := float64(got[name]) / n; s < share-.02 || s > share+.02 {
			t.Errorf("%s: got a share of %.3f, want %.2f", name, s, share)
		}
	}
}

// TestConcurrent chooses, changes and lists at once, for the race detector.
func TestConcurrent(t *testing.T) {
	hit, _ := says(t, icp.Hit)
	miss, _ := says(t, icp.Miss)
	tab, _ := table(t, Rules{}, Config{Name: "a", ICP: miss}, Config{Name: "p", ICP: hit, Kind: Parent})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 30 {
				p := tab.Choose(t.Context(), get, known(1))
				if len(p.Choices) == 0 {
					t.Error("got no choice")
					return
				}
				tab.Done(p.Choices[0], 1, nil)
				if i == 0 {
					tab.Set(Rules{SingleParent: n%2 == 0}, []Config{{Name: "a", Addr: "127.0.0.1:1", ICP: miss, Weight: n % 5}, {Name: "p", Addr: "127.0.0.1:2", ICP: hit, Kind: Parent}})
					tab.Rows()
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkChoose tells what a miss pays for asking three neighbours that miss.
func BenchmarkChoose(b *testing.B) {
	var all []Config
	for i := range 3 {
		a, _ := says(b, icp.Miss)
		all = append(all, Config{Name: fmt.Sprint("s", i), ICP: a})
	}
	tab, _ := table(b, Rules{}, all...)
	tab.least = minWait
	var late int64
	for b.Loop() {
		if p := tab.Choose(b.Context(), get, known(time.Second)); len(p.Answers) < 3 {
			late++
		}
	}
	b.ReportMetric(float64(late)/float64(b.N), "late/op")
}
