package crawl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// A pace is when a server may be asked. The visit's mu guards it.
type pace struct {
	last    time.Time     // when it was asked last
	hold    time.Time     // not before this: it asked for that, or an earlier visit has learnt it
	base    time.Duration // that its roots ask for
	own     bool          // it counts for a root that is not from outside
	before  time.Duration // its delay when it was asked last
	slow    time.Duration // what its last answer took, times slowness
	machine *machine      // nil while its address is not known

	standing *standing
	hop      hop
	maps     mapsRead

	failures int       // in a row
	trouble  time.Time // when the last of them was
	silent   int       // requests in a row that had no answer
}

// A machine is what several servers may run on. They wait for one another.
type machine struct{ next time.Time }

const (
	slowness   = 5                // a server is left alone for so many times as long as it took to answer,
	slowest    = 30 * time.Second // but not for longer
	restFirst  = 30 * time.Second // a server that is too busy is left alone for this, then twice that,
	restLast   = 24 * time.Hour   // ... at most for this
	forgiven   = 30 * time.Minute // after which without trouble all is as before
	longest    = time.Hour        // a server that wants to be left alone for longer between two requests gets one a visit
	silentMost = 5                // so many failures to connect in a row are trouble
)

// begin takes over what is known of a server. mu is held.
func (s *host) begin(v *visit, k *Server) {
	s.base, s.own = v.counted(s)
	s.before = k.Delay
	s.hold, s.failures, s.trouble = k.Next, k.Failures, k.Trouble
	if k.Address != "" {
		s.machine = v.machine(k.Address)
	}
	if !s.polite {
		s.hold = time.Time{}
	}
}

// counted is the delay that the roots ask for, the longest of those that a server
// counts for, and whether one of them is not from outside. mu is held.
func (v *visit) counted(s *host) (d time.Duration, own bool) {
	if !s.polite {
		return 0, true
	}
	d = -1
	for r := range v.rootsOf(s) {
		d = max(d, r.Delay)
		own = own || !r.Outside
	}
	if d < 0 {
		d = DefaultDelay
	}
	return d, own
}

// delay is what lies between two requests at least. That a server is slow counts
// only where there is a delay at all: else its owner knows what it can bear.
func (s *host) delay() time.Duration {
	d := s.base
	if st := s.standing; st != nil && st.rules != nil {
		d = max(d, st.rules.Delay)
	}
	if d > 0 {
		d = max(d, s.slow)
	}
	return d
}

// when is the time from which a server may be asked.
func (s *host) when() time.Time {
	t := s.hold
	if d := s.delay(); d > 0 {
		if u := s.last.Add(d); !s.last.IsZero() && u.After(t) {
			t = u
		}
		if s.machine != nil && s.machine.next.After(t) {
			t = s.machine.next
		}
	}
	return t
}

func (v *visit) machine(address string) *machine {
	m := v.machines[address]
	if m == nil {
		m = new(machine)
		v.machines[address] = m
	}
	return m
}

// turn takes the moment for a request, unless another server of the machine has
// taken it. mu is held.
func (v *visit) turn(s *host) bool {
	now := time.Now()
	if s.when().After(now) {
		return false
	}
	s.last = now
	v.turns++
	s.turn = v.turns
	if d := s.delay(); d > 0 && s.machine != nil {
		s.machine.next = now.Add(d)
	}
	v.c.Requests.Add(1)
	return true
}

// answered notes that an answer came, from which a server's rest counts, and how
// long it took. A request that did not go there costs it nothing.
func (v *visit) answered(s *host, began time.Time, resp *http.Response) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.silent = 0
	if via := resp.Header.Get("X-Harvest-Via"); via == "local" || via == "cache" {
		if s.last.Equal(began) {
			s.last = time.Time{}
		}
		return
	}
	now := time.Now() // the server counts from when it was done, as far as it can be told
	s.last = now
	if d := s.delay(); d > 0 && s.machine != nil {
		s.machine.next = now.Add(d)
	}
	s.slow = min(slowness*now.Sub(began), slowest)
	if s.failures > 0 && time.Since(s.trouble) > forgiven {
		s.failures = 0
	}
}

// rest heeds a server that asks for a pause, of 0 if it does not say how long. A
// pause that is too long for the visit parks it. mu is held.
func (v *visit) rest(s *host, wait time.Duration, why string) {
	now := time.Now()
	if now.Sub(s.trouble) > forgiven+restFirst<<min(s.failures, 12) {
		s.failures = 0
	}
	if wait <= 0 {
		wait = min(restFirst<<min(s.failures, 12), restLast)
		wait += rand.N(wait / 8) // not all that were turned away come back at once
	}
	s.failures++
	s.trouble = now
	if until := now.Add(wait); until.After(s.hold) {
		s.hold = until
	}
	if wait > v.plan.Limits.Wait {
		v.park(s, why)
	}
}

// park leaves a server to the next visit. mu is held.
func (v *visit) park(s *host, why string) {
	s.parked = true
	v.f.change(s.id).Why = why
	v.keep(s)
	v.f.lg.Warn("left to a later visit", "server", s.origin, "reason", why)
	if v.plan.Left != nil {
		v.plan.Left(s.origin, why)
	}
}

// noAnswer notes that a request had none. mu is held.
func (v *visit) noAnswer(s *host, err error) {
	if s.silent++; s.silent >= silentMost && s.polite {
		v.rest(s, 0, "it cannot be reached: "+why(err))
	}
}

// keep writes down when a server may be asked again, so that the next visit, or
// the next process, does not come too early. mu is held.
func (v *visit) keep(s *host) {
	k := v.f.change(s.id)
	if s.polite {
		k.Delay, k.Next = s.delay(), s.when()
		k.Failures, k.Trouble = s.failures, s.trouble
	}
	s.trap.mu.Lock()
	k.closed = s.trap.trap.Closed()
	s.trap.mu.Unlock()
	if v.listed(s) {
		k.visit, k.done = v.state.Number, s.dealt()
	}
}

// introduce learns what has to be known of a server before it is asked for
// documents, one request at a time. It is false when nothing is missing. mu is
// held; it is let go of meanwhile.
func (v *visit) introduce(ctx context.Context, s *host) bool {
	if s.machine == nil && v.plan.Address != nil && s.delay() > 0 {
		v.mu.Unlock()
		address := v.plan.Address(ctx, hostOf(s.origin))
		v.mu.Lock()
		s.machine = v.machine(address)
		if address != "" {
			v.f.change(s.id).Address = address
		}
		if s.when().After(time.Now()) {
			return true
		}
	}
	if isWeb(s.origin) && (s.standing == nil || time.Now().After(s.standing.until) || v.owners(s)) {
		v.meet(ctx, s)
		return true
	}
	if len(s.maps.left) == 0 || v.state.Queued {
		return false
	}
	if v.turn(s) {
		u := s.maps.left[0]
		s.maps.left = s.maps.left[1:]
		v.mu.Unlock()
		v.readMap(ctx, s, u)
		v.mu.Lock()
	}
	return true
}

func hostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// traced has the address of a server told, from the connection that a request
// takes.
func (v *visit) traced(ctx context.Context, s *host) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		host, _, err := net.SplitHostPort(i.Conn.RemoteAddr().String())
		if err != nil {
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.f.servers[s.id-1].Address == host && s.machine != nil {
			return
		}
		v.f.change(s.id).Address = host
		s.machine = v.machine(host)
		if d := s.delay(); d > 0 {
			s.machine.next = s.last.Add(d)
		}
	}})
}

// busyReason is why a server is left alone.
func busyReason(status int) string { return fmt.Sprintf("it is too busy: %d", status) }
