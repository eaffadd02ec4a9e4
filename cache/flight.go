package cache

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
	"harvest/fs/ndb"
)

// A flight is one fetch for all who ask for a URL meanwhile. Whoever began it says
// what is asked; once the head of the answer is here it is known whether the others
// can have it too. Each then reads at its own pace what has come so far, and waits
// for more.
type flight struct {
	c    *Cache
	q    *request // of who began it; its body and inform are not used
	was  []*variant
	sel  *variant         // that is validated, or nil
	selp *policy.Response // of sel
	why  string           // the reason for asking
	solo bool             // it is not for others
	with conditions       // of who began it

	unwanted atomic.Bool // what it brings is not kept: the URL was purged meanwhile
	cancel   context.CancelFunc

	// mu guards what follows.
	mu      sync.Mutex
	moved   chan struct{} // closed, and made anew, when what follows changes
	early   []*http1.Response
	state   flightState
	err     error
	x       *exchange // for who began it only
	from    string    // who answered
	alone   string    // why
	v       *variant  // that was validated, or is kept at the end
	p       *policy.Response
	reason  string
	length  int64 // of the body; -1: unknown
	mem     []byte
	file    *segment.Body
	stored  *segment.Object // in place of file, at the end
	size    int64
	ended   bool
	readers int  // who wait, or read
	keeps   bool // it goes on without readers
	gone    bool // it was given up
	over    bool // it is larger than what is kept: a way through, for those who read already
	reading map[*flightBody]struct{}
}

type flightState int

const (
	asking    flightState = iota
	streaming             // p, and what comes of the body, are for all
	validated             // v is good again
	alone                 // x is for who began it
	failed                // err
)

// spillAt is how much of a body a flight has in memory; one that is larger goes to
// a file of the store.
const spillAt = 1 << 20

// signal wakes all who wait. mu is held.
func (f *flight) signal() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// join finds the flight that a request can share, or begins one. It is counted
// among its readers; leave ends that. first tells who began it.
func (c *Cache) join(q *request, vs []*variant, sel *variant, selp *policy.Response, why string) (f *flight, first bool, err error) {
	solo := q.method != "GET" || q.header.Has("Authorization") || q.header.HasMember("Cache-Control", "no-store")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, os.ErrClosed
	}
	if until, ok := c.alone[q.key]; ok && time.Now().Before(until) {
		solo = true
	}
	if !solo {
		if f := c.flights[q.key]; f != nil {
			ok, full := f.admit(q, c.conf.Load())
			if full {
				return nil, false, errWaiters
			}
			if ok {
				return f, false, nil
			}
		}
	}
	with := none
	if len(vs) == 0 && (q.header.Has("If-None-Match") || q.header.Has("If-Modified-Since")) {
		solo, with = true, validators // the answer may be good for this client only
	}
	f = &flight{c: c, with: with, was: vs, sel: sel, selp: selp, why: why, solo: solo, moved: make(chan struct{}), readers: 1, length: -1}
	own := *q
	own.body, own.inform = nil, nil
	f.q = &own
	ctx, cancel := context.WithCancel(c.life)
	f.cancel = cancel
	if !solo {
		c.flights[q.key] = f
	}
	c.work.Add(1)
	go func() { // Close waits for it
		defer c.work.Done()
		defer cancel()
		f.run(ctx)
	}()
	return f, true, nil
}

var errWaiters = errors.New("too many wait for this URL")

// admit lets a request share the flight, if its answer may be one to it.
func (f *flight) admit(q *request, conf *config) (ok, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.gone || f.over || f.state == failed || f.state == alone || f.state == validated || f.ended:
		return false, false
	case f.readers >= conf.limits.waiters:
		return false, true
	case f.state == streaming:
		use, _ := conf.rules.Use(f.p, q.header, time.Now())
		if !f.p.Selects(q.header) || use != policy.Fresh {
			return false, false
		}
	}
	f.readers++
	return true, false
}

// leave counts a reader out. The last one that goes before the end decides whether
// the fetch goes on (C-6).
func (f *flight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers--
	if f.readers > 0 {
		return
	}
	if f.ended {
		if f.stored != nil {
			f.stored.Close()
			f.stored = nil
		}
		if f.x != nil {
			f.x.Close()
			f.x = nil
		}
		return
	}
	if f.keeps {
		return
	}
	on, why := f.goesOn()
	if on {
		f.keeps = true
	} else {
		f.gone = true
		f.cancel()
	}
	f.c.event(map[bool]string{true: "continued", false: "dropped"}[on], ndb.Of("url", f.q.url), ndb.Of("bytes", f.size), ndb.Of("of", f.length), ndb.Of("why", why))
}

// goesOn decides whether a fetch that nobody reads is worth its end. mu is held.
func (f *flight) goesOn() (bool, string) {
	quick := f.c.conf.Load().quick
	left := f.length - f.size
	switch {
	case f.state != streaming:
		return false, "no head yet"
	case f.unwanted.Load():
		return false, "not kept"
	case f.length < 0:
		return false, "unknown length"
	case left < quick.left:
		return true, "little left"
	case 100*f.size >= int64(quick.done)*f.length:
		return true, "mostly done"
	}
	return false, "much left"
}

// run fetches, and tells what comes of it.
func (f *flight) run(ctx context.Context) {
	defer f.c.landed(f)
	add := http1.Header(nil)
	if f.sel != nil || len(f.was) > 0 {
		var all []*policy.Response
		for _, v := range f.was {
			p, _ := v.response()
			all = append(all, p)
		}
		add = policy.Conditions(f.selp, all)
	}
	o := f.c.outgoing(f.q, add, f.with)
	o.inform = func(p *http1.Response) {
		f.mu.Lock()
		f.early = append(f.early, p)
		f.signal()
		f.mu.Unlock()
	}
	x, err := f.c.ask(ctx, f.q, o)
	if err != nil {
		f.fail(err)
		return
	}
	f.mu.Lock()
	f.from = x.from
	f.mu.Unlock()
	f.decide(x)
}

// landed takes a flight out of those that can be joined.
func (c *Cache) landed(f *flight) {
	c.mu.Lock()
	if c.flights[f.q.key] == f {
		delete(c.flights, f.q.key)
	}
	c.mu.Unlock()
}

func (f *flight) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.err, f.ended = failed, err, true
	f.signal()
}

// decide finds out what an answer is good for.
func (f *flight) decide(x *exchange) {
	rules := f.c.conf.Load().rules
	p := &policy.Response{URL: f.q.url, Status: x.Status, Header: x.Header.Forwarded(), Asked: x.asked, Came: x.came, Authorized: f.q.header.Has("Authorization")}
	if !p.Header.Has("Date") {
		p.Header.Add("Date", httpDate(x.came))
	}
	p.Selecting = policy.Selecting(p.Header, f.q.header)
	if x.Status == 304 && len(f.was) > 0 {
		x.Close()
		f.revalidate(p)
		return
	}
	if f.sel != nil && policy.IsError(x.Status) && rules.OnError(f.selp, f.q.header, x.came, false) {
		x.Close()
		f.fail(&serverError{x.Status})
		return
	}
	ok, why := rules.Storable(f.q.header, p)
	conf := f.c.conf.Load()
	switch {
	case ok && anyMatch(conf.nocache, f.q.url):
		ok, why = false, "nocache"
	case ok && x.length > conf.object:
		ok, why = false, "too large"
	case ok && x.proxyOnly:
		ok, why = false, "proxy-only"
	case ok && f.unwanted.Load():
		ok, why = false, "purged"
	}
	if !ok {
		f.single(x, p, why)
		return
	}
	f.mu.Lock()
	f.state, f.p, f.reason, f.length = streaming, p, x.Reason, max(x.length, -1)
	f.signal()
	f.mu.Unlock()
	err := f.stream(x)
	x.Close()
	f.finish(err, x)
}

// serverError is a status of a server that a stale response stands in for.
type serverError struct{ status int }

func (e *serverError) Error() string { return "the server answers " + statusText(e.status) }

// aloneFor is how long a URL whose answer was not for all is asked for by each
// client alone.
const aloneFor = 30 * time.Second

// maxAlone bounds how many such URLs are known.
const maxAlone = 1 << 16

// single gives the answer to who began the flight, and sends the others to ask for
// themselves.
func (f *flight) single(x *exchange, p *policy.Response, why string) {
	f.c.mu.Lock()
	if !f.solo && len(f.c.alone) < maxAlone {
		f.c.alone[f.q.key] = time.Now().Add(aloneFor)
	}
	f.c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.p, f.reason, f.alone, f.ended = alone, p, x.Reason, why, true
	x.detach()
	if f.readers == 0 {
		x.Close()
	} else {
		f.x = x
	}
	f.signal()
}

// own takes the answer that is for who began the flight.
func (f *flight) own() *exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.x
	f.x = nil
	return x
}

// wait waits until it is known what the answer is good for. Who began the flight
// relays what comes before it.
func (f *flight) wait(ctx context.Context, inform func(*http1.Response)) error {
	told := 0
	for {
		f.mu.Lock()
		early, state, moved := f.early[told:], f.state, f.moved
		f.mu.Unlock()
		for _, p := range early {
			if inform != nil {
				inform(p)
			}
			told++
		}
		if state != asking {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// revalidate puts a 304 in force: each variant that it is about is good again.
func (f *flight) revalidate(p *policy.Response) {
	var good *variant
	for _, v := range f.was {
		r, reason := v.response()
		if !r.Validated(p.Header, v == f.sel || f.sel == nil && len(f.was) == 1) {
			continue
		}
		n, err := f.renew(v, r.Refreshed(p.Header, p.Asked, p.Came), reason)
		if err != nil {
			f.c.lg.Warn("validate", "url", f.q.url, "err", err)
			f.c.dropped(f.q.key, v)
			continue
		}
		if good == nil || v == f.sel {
			good = n
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if good == nil {
		f.state, f.err = failed, errForeign
	} else {
		f.state, f.v = validated, good
	}
	f.ended = true
	f.signal()
}

// renew keeps a variant as a 304 has it. One that was made for other requests is good
// for this one too: it is kept once more, for those like it.
func (f *flight) renew(v *variant, p *policy.Response, reason string) (*variant, error) {
	if p.Selects(f.q.header) {
		return f.c.refresh(f.q.key, v, p, reason)
	}
	p.Selecting = policy.Selecting(p.Header, f.q.header)
	meta := appendMeta(nil, p, reason)
	ref, err := f.c.store.Copy(v.ref, meta, p.Came)
	if err != nil {
		return nil, err
	}
	n, err := newVariant(ref, meta, v.size, v.body(), v.inside, f.c.conf.Load().rules, f.c.mem.arena())
	runtime.KeepAlive(v)
	if err == nil {
		f.c.admit(f.q.key, n, func(old *policy.Response) bool { return old.Selects(f.q.header) })
	}
	return n, err
}

// errForeign is a 304 that is about nothing that is kept.
var errForeign = errors.New("the server answers 304 about another response")
