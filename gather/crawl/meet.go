package crawl

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// Lives of what is known of a robots.txt: RFC 9309 asks for at most a day, and
// what could not be had is tried again soon.
const (
	robotsLife  = 24 * time.Hour
	robotsRetry = 10 * time.Minute
	robotsSize  = 500 << 10
	robotsHops  = 5 // redirects, as RFC 9309 asks for
)

// standing is what a server's robots.txt says now.
type standing struct {
	until  time.Time // it is asked for again after this
	status int
	rules  *Robots // nil when it could not be had: nothing may be asked for
	theirs bool    // it was refused to strangers alone: its owner may have it
}

// A hop is where a robots.txt is, after so many redirects.
type hop struct {
	url string
	n   int
}

// meet learns a server's robots.txt, from the database or by one request. mu is
// held; it is let go of meanwhile.
func (v *visit) meet(ctx context.Context, s *host) {
	k := v.f.servers[s.id-1]
	had := k.Robots >= 200 && k.Robots < 500 && k.Robots != http.StatusTooManyRequests
	if s.hop.n == 0 && k.Until.After(time.Now()) && (had || !v.state.Force || s.standing != nil) {
		v.mu.Unlock()
		text := v.f.robotsText(s.id)
		st := v.stand(k.Robots, k.Until, text)
		v.mu.Lock()
		v.stands(s, st)
		return
	}
	if !v.turn(s) {
		return
	}
	began, hop := s.last, s.hop
	if hop.n == 0 {
		hop.url = s.origin + "/robots.txt"
	}
	v.mu.Unlock()
	a := v.askRobots(ctx, s, hop, began)
	v.mu.Lock()
	if ctx.Err() != nil {
		return
	}
	if s.hop = a.next; s.hop.n > 0 {
		return
	}
	until := time.Now().Add(robotsRetry)
	if a.final {
		until = time.Now().Add(robotsLife)
	}
	if a.busy {
		v.rest(s, a.wait, busyReason(a.status))
	}
	v.mu.Unlock()
	if !a.theirs { // else it says nothing of the server
		v.texts <- robotsText{s.id, a.status, until, a.text}
	}
	st := v.stand(a.status, until, a.text)
	st.theirs = a.theirs
	v.mu.Lock()
	v.stands(s, st)
}

// owners reports whether a robots.txt that was refused to strangers is wanted by
// the owner since. mu is held; it is let go of meanwhile.
func (v *visit) owners(s *host) bool {
	if !s.standing.theirs {
		return false
	}
	v.mu.Unlock()
	strange, err := v.strangers(s)
	v.mu.Lock()
	return err == nil && !strange
}

// A robotsText is what a server said, to be written by commit.
type robotsText struct {
	id     ServerID
	status int
	until  time.Time
	text   string
}

func (f *DB) robotsText(id ServerID) (text string) {
	f.db.View(func(tx *bbolt.Tx) error { // what cannot be read is empty, and asked for again in a day
		text = string(tx.Bucket(robotsBucket).Get(docKey(DocID(id))))
		return nil
	})
	return text
}

func (v *visit) stand(status int, until time.Time, text string) *standing {
	st := &standing{until: until, status: status}
	switch {
	case status >= 200 && status < 300:
		st.rules = ParseRobots(text, v.plan.Agent)
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests:
		st.rules = &Robots{}
	}
	return st
}

// stands puts in force what a robots.txt says. mu is held.
func (v *visit) stands(s *host, st *standing) {
	first := s.standing == nil
	s.standing = st
	s.limit = 1
	if s.delay() == 0 {
		s.limit = v.plan.Limits.Servers
	}
	s.strict = s.limit == 1 && v.searches(s)
	if !first || st.rules == nil {
		return
	}
	for r := range v.rootsOf(s) {
		if r.Sitemaps && !r.Leaf {
			s.maps.left = slices.Clone(st.rules.Sitemaps)
			if len(s.maps.left) == 0 {
				s.maps.left = []string{s.origin + "/sitemap.xml"}
			}
			return
		}
	}
}

// What a request for a robots.txt came to.
type robotsAnswer struct {
	status int
	text   string
	next   hop
	final  bool // it is good for long
	busy   bool
	wait   time.Duration
	theirs bool // it is refused, to strangers
}

func (v *visit) askRobots(ctx context.Context, s *host, h hop, began time.Time) (a robotsAnswer) {
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	ctx = v.traced(ctx, s)
	strange, err := v.strangers(s)
	if strange || v.plan.Public != nil && !sameHost(Origin(h.url), s.origin) {
		ctx = v.plan.Public(ctx)
	}
	if err == nil {
		a, err = v.robotsAt(ctx, h, func(resp *http.Response) { v.answered(s, began, resp) })
	}
	if err != nil {
		v.f.lg.Warn("robots", "server", s.origin, "err", err)
		return robotsAnswer{theirs: strange && errors.Is(err, iofs.ErrPermission)}
	}
	return a
}

// robotsAt makes one request for a robots.txt.
func (v *visit) robotsAt(ctx context.Context, h hop, answered func(*http.Response)) (a robotsAnswer, err error) {
	req, err := v.request(ctx, h.url, h.url)
	if err != nil {
		return a, err
	}
	resp, err := v.rt.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	answered(resp)
	text, err := io.ReadAll(io.LimitReader(resp.Body, robotsSize))
	if err != nil {
		return a, err
	}
	a.status = resp.StatusCode
	switch {
	case a.status >= 300 && a.status < 400:
		a.final = true
		b := newBase(h.url)
		to, err := b.resolve(resp.Header.Get("Location"))
		if err != nil || h.n == robotsHops { // too many: as if there were none
			a.status = http.StatusNotFound
			return a, nil
		}
		a.next = hop{to, h.n + 1}
	case a.status >= 200 && a.status < 300:
		a.text, a.final = string(text), true
	case a.status == http.StatusTooManyRequests || a.status >= 500:
		a.wait = retryAfter(resp.Header)
		a.busy = a.wait > 0
	default:
		a.final = true
	}
	return a, nil
}

// barred returns why a server's robots.txt forbids a URL: failed when that is
// because it could not be had.
func (st *standing) barred(u string) (why string, failed bool) {
	if st.rules == nil {
		why = "robots.txt cannot be had"
		if st.status != 0 {
			why += ": " + strconv.Itoa(st.status)
		}
		return why, true
	}
	if ok, rule := st.rules.Allowed(u); !ok {
		return "robots.txt: " + rule, false
	}
	return "", false
}
