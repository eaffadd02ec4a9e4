package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
	"harvest/fs/ndb"
)

// answer answers a request. It does not fail: what goes wrong is an answer as well.
func (c *Cache) answer(ctx context.Context, q *request) *answer {
	conf := c.conf.Load()
	switch {
	case c.loops(q.header):
		return failing(508, "refused", "the request has been here before")
	case !conf.urlAllowed(q.url):
		return failing(403, "refused", "the URL is denied")
	case q.scheme != "http" && q.scheme != "https" && q.method != "GET" && q.method != "HEAD":
		return failing(501, "refused", "only GET and HEAD are for "+q.scheme)
	case q.method != "GET" && q.method != "HEAD":
		return c.pass(ctx, q, outcome{how: "method"})
	case q.body != nil:
		return c.pass(ctx, q, outcome{how: "pass", why: "body"})
	case policy.NeedsServer(q.header):
		return c.pass(ctx, q, outcome{how: "pass", why: "precondition"})
	case anyMatch(conf.nocache, q.url):
		return c.pass(ctx, q, outcome{how: "pass", why: "nocache"})
	}
	return c.get(ctx, q)
}

// maxTries is how often a request looks again because what it found went away.
const maxTries = 4

// get answers a GET or a HEAD: from what is kept, or from the server.
func (c *Cache) get(ctx context.Context, q *request) *answer {
	for range maxTries {
		vs := c.lookup(q.key)
		v, p, reason := selected(vs, q.header)
		how, use := outcome{how: "miss"}, policy.Validate
		if v != nil {
			use, how.why = c.conf.Load().rules.Use(p, q.header, time.Now())
		} else if len(vs) > 0 {
			how.how = "vary"
		}
		if v == nil && policy.OnlyIfCached(q.header) {
			use = policy.NotInCache
		}
		var a *answer
		switch use {
		case policy.NotInCache:
			a = failing(504, how.how, "not in the cache")
			a.header = c.finished(a.header, how, nil, time.Now())
			return a
		case policy.Fresh:
			how.how = "hit"
			a = c.hit(q, v, p, reason, how)
		case policy.StaleMeanwhile:
			how.how = "stale"
			if a = c.hit(q, v, p, reason, how); a != nil {
				c.freshen(q, vs, v, p)
			}
		default:
			a = c.fetch(ctx, q, vs, v, p, how)
		}
		if a != nil {
			return a
		}
	}
	return c.pass(ctx, q, outcome{how: "pass", why: "it changes all the time"})
}

// hit answers from what is kept; nil if that went away meanwhile.
func (c *Cache) hit(q *request, v *variant, p *policy.Response, reason string, how outcome) *answer {
	a := c.fromVariant(q, v, p, reason, how)
	if a == nil {
		c.dropped(q.key, v)
		return nil
	}
	c.used(v, time.Now())
	return a
}

// freshen asks the server behind an answer that was stale.
func (c *Cache) freshen(q *request, vs []*variant, v *variant, p *policy.Response) {
	own := *q
	own.method = "GET"
	f, first, err := c.join(&own, vs, v, p, "stale-while-revalidate")
	if err != nil {
		return
	}
	if first {
		f.mu.Lock()
		f.keeps = true
		f.mu.Unlock()
	}
	f.leave()
}

// fetch answers with what the server says; nil to look again.
func (c *Cache) fetch(ctx context.Context, q *request, vs []*variant, v *variant, p *policy.Response, how outcome) *answer {
	if c.landing(ctx, q.key) {
		return nil
	}
	if v != nil {
		how.how = "expired"
		if how.why == "request no-cache" || how.why == "request max-age" || how.why == "request min-fresh" {
			how.how = "reload"
		}
	}
	if q.method == "HEAD" {
		return c.head(ctx, q, vs, how)
	}
	if q.header.Has("Range") && (v == nil && c.isAlone(q) || !c.fetchesWhole(q) && !c.comes(q)) {
		how.why = "range"
		return c.pass(ctx, q, how)
	}
	f, first, err := c.join(q, vs, v, p, how.why)
	if err != nil {
		return failing(503, "failed", err.Error())
	}
	if err := f.wait(ctx, q.informIf(first)); err != nil {
		f.leave()
		return failing(504, "failed", "the client is gone")
	}
	if !first {
		how.how = "collapsed"
	}
	return c.fromFlight(ctx, q, f, v, p, how)
}

// landing waits for a body that is all here and is being kept: who has read it
// already may be asking again, and is to find it. It reports whether there was one.
func (c *Cache) landing(ctx context.Context, k segment.Key) bool {
	c.mu.Lock()
	f := c.flights[k]
	c.mu.Unlock()
	if f == nil {
		return false
	}
	for waited := false; ; waited = true {
		f.mu.Lock()
		over := f.ended || f.state != streaming || f.length < 0 || f.size < f.length
		moved := f.moved
		f.mu.Unlock()
		if over {
			return waited
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

func (q *request) informIf(first bool) func(*http1.Response) {
	if first {
		return q.inform
	}
	return nil
}

// isAlone reports whether a URL's answers are not for all.
func (c *Cache) isAlone(q *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.alone[q.key]
	return ok && time.Now().Before(until)
}

// maxWhole is how large a body is that is fetched whole though only a range of it
// was asked for.
const maxWhole = 64 << 20

// comes reports whether a body is on its way that is worth waiting for.
func (c *Cache) comes(q *request) bool {
	c.mu.Lock()
	f := c.flights[q.key]
	c.mu.Unlock()
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == streaming && f.length >= 0 && f.length <= maxWhole
}

// maxSkipped is how far into a body a range may begin for all of it to be fetched.
const maxSkipped = 8 << 20

// fetchesWhole reports whether a body is worth fetching for a range of it.
func (c *Cache) fetchesWhole(q *request) bool {
	probe := &policy.Response{Status: 200}
	h := q.header.Clone()
	h.Del("If-Range")
	ranges, ok := probe.Ranges(h, 1<<62)
	if !ok {
		return true // it asks for nothing that can be read: all is sent
	}
	for _, r := range ranges {
		if r.Start > maxSkipped && r.Start < 1<<61 {
			return false
		}
	}
	return true
}

// fromFlight answers with what a flight brought. It counts the reader out, unless
// the answer reads on.
func (c *Cache) fromFlight(ctx context.Context, q *request, f *flight, v *variant, p *policy.Response, how outcome) *answer {
	f.mu.Lock()
	state, err, got, kept := f.state, f.err, f.p, f.v
	f.mu.Unlock()
	switch state {
	case failed:
		f.leave()
		return c.afterFailure(ctx, q, v, p, err, how)
	case validated:
		f.leave()
		r, reason := kept.response()
		if !r.Selects(q.header) {
			return nil
		}
		how.how, how.server, how.asked = "validated", 304, f.from
		return c.hit(q, kept, r, reason, how)
	case alone:
		x := f.own()
		f.leave()
		if x == nil {
			if how.how != "collapsed" {
				return nil
			}
			how.how = "miss"
			return c.aloneAnswer(ctx, q, how)
		}
		how.why = f.alone
		return c.fromServer(q, x, how)
	}
	if !got.Selects(q.header) {
		f.leave()
		how.how = "vary"
		return c.aloneAnswer(ctx, q, how)
	}
	return c.fromStream(ctx, q, f, how)
}

// fromStream answers with a body that is still coming.
func (c *Cache) fromStream(ctx context.Context, q *request, f *flight, how outcome) *answer {
	now := time.Now()
	how.server, how.stored, how.asked = f.p.Status, true, f.from
	v := &variant{size: f.length}
	life, _ := c.conf.Load().rules.Lifetime(f.p)
	v.came = f.p.Came.UnixNano()
	v.until = v.came + int64(life-f.p.Age(f.p.Came))
	a := &answer{status: f.p.Status, reason: f.reason, length: f.length, outcome: how}
	a.header = c.served(f.p, how, v, now)
	if f.p.NotModified(q.header) {
		c.notModified(a, f.p, how, v, now)
		f.leaveFetching()
		return a
	}
	off, end := int64(0), int64(-1)
	if f.length >= 0 {
		if ranges, ok := f.p.Ranges(q.header, f.length); ok && len(ranges) <= 1 {
			if len(ranges) == 0 {
				f.leaveFetching()
				return c.partial(q, a, v, nil)
			}
			r := ranges[0]
			off, end = r.Start, r.Start+r.Length
			a.status, a.reason, a.length = 206, statusText(206), r.Length
			a.header.Add("Content-Range", fmt.Sprintf("bytes %d-%d/%d", r.Start, end-1, f.length))
		}
	}
	a.body = f.body(off, end, ctx.Done(), context.Canceled)
	return a
}

// leaveFetching counts a reader out that needs nothing of the body; the fetch goes
// on for those who ask next.
func (f *flight) leaveFetching() {
	f.mu.Lock()
	f.keeps = true
	f.mu.Unlock()
	f.leave()
}

// aloneAnswer fetches for one client; what comes is kept if it may be.
func (c *Cache) aloneAnswer(ctx context.Context, q *request, how outcome) *answer {
	vs := c.lookup(q.key)
	c.mu.Lock()
	if len(c.alone) < maxAlone {
		if _, ok := c.alone[q.key]; !ok {
			c.alone[q.key] = time.Now().Add(2 * time.Second)
		}
	}
	c.mu.Unlock()
	f, _, err := c.join(q, vs, nil, nil, how.why)
	if err != nil {
		return failing(503, "failed", err.Error())
	}
	if err := f.wait(ctx, q.inform); err != nil {
		f.leave()
		return failing(504, "failed", "the client is gone")
	}
	return c.fromFlight(ctx, q, f, nil, nil, how)
}

// afterFailure answers for a server that gave none: with what is stale, if it may.
func (c *Cache) afterFailure(ctx context.Context, q *request, v *variant, p *policy.Response, err error, how outcome) *answer {
	var said *serverError
	bad := errors.As(err, &said)
	if v != nil && c.conf.Load().rules.OnError(p, q.header, time.Now(), !bad) {
		_, reason := v.response()
		how.how, how.why = "stale", "unreachable"
		if bad {
			how.why, how.server = "server error", said.status
		}
		a := c.hit(q, v, p, reason, how)
		if a != nil {
			a.outcome.stored = false
		}
		return a
	}
	if bad || errors.Is(err, errForeign) { // the server has an answer, which was not for this client
		return c.pass(ctx, q, how)
	}
	a := c.unanswered(q, err)
	if v != nil && a.status == 502 { // what is kept must not be used unasked (RFC 9111, 5.2.2.2)
		a.status, a.reason = 504, statusText(504)
	}
	return a
}

// unanswered is what a client gets when the server gave nothing.
func (c *Cache) unanswered(q *request, err error) *answer {
	c.count.failures.Add(1)
	var no forbidden
	var far *unreachable
	var bad *http1.Error
	var a *answer
	switch {
	case errors.As(err, &bad) && bad.Status < 500 && q.body != nil:
		a = failing(bad.Status, "refused", bad.Trouble)
	case errors.Is(err, errTooLarge) && q.body != nil:
		a = failing(413, "refused", "the body is too large")
	case errors.As(err, &no):
		a = failing(403, "refused", no.Error())
	case errors.As(err, &far) && far.timeout:
		a = failing(504, "failed", err.Error())
	default:
		a = failing(502, "failed", err.Error())
	}
	a.header = c.finished(a.header, a.outcome, nil, time.Now())
	return a
}

// head asks the server for a head. What it says of what is kept counts
// (RFC 9111, 4.3.5).
func (c *Cache) head(ctx context.Context, q *request, vs []*variant, how outcome) *answer {
	x, err := c.ask(ctx, q, c.outgoing(q, nil, all))
	if err != nil {
		v, p, _ := selected(vs, q.header)
		return c.afterFailure(ctx, q, v, p, notReached(err), how)
	}
	c.learn(q, vs, x)
	return c.fromServer(q, x, how)
}

// learn puts what the answer to a HEAD says of what is kept in force, or drops that
// if it is another thing.
func (c *Cache) learn(q *request, vs []*variant, x *exchange) {
	if x.Status != 200 {
		if x.Status == 404 || x.Status == 410 {
			c.purge(q.key)
		}
		return
	}
	h := x.Header.Forwarded()
	for _, v := range vs {
		p, reason := v.response()
		if !p.Selects(q.header) {
			continue
		}
		if !sameAs(p, v, h) {
			c.dropped(q.key, v)
			continue
		}
		if _, err := c.refresh(q.key, v, p.Refreshed(h, x.asked, x.came), reason); err != nil {
			c.dropped(q.key, v)
		}
	}
}

// sameAs reports whether a head is about what is kept.
func sameAs(p *policy.Response, v *variant, h http1.Header) bool {
	for _, name := range [...]string{"ETag", "Last-Modified"} {
		if is, ok := h.Get(name); ok && is != p.Header.Text(name) {
			return false
		}
	}
	n, ok := h.Get("Content-Length")
	return !ok || n == fmt.Sprint(v.size)
}

// pass asks the server for one client, and keeps nothing.
func (c *Cache) pass(ctx context.Context, q *request, how outcome) *answer {
	if policy.OnlyIfCached(q.header) && (q.method == "GET" || q.method == "HEAD") {
		return failing(504, how.how, "not in the cache")
	}
	x, err := c.ask(ctx, q, c.outgoing(q, nil, all))
	if err != nil {
		return c.unanswered(q, notReached(err))
	}
	if policy.Invalidates(q.method, x.Status) {
		c.invalidate(q, x.Header)
	}
	return c.fromServer(q, x, how)
}

// fromServer is the answer as the server gives it.
func (c *Cache) fromServer(q *request, x *exchange, how outcome) *answer {
	how.server, how.asked = x.Status, x.from
	a := &answer{status: x.Status, reason: x.Reason, outcome: how}
	a.header = x.Header.Forwarded()
	if q.method != "HEAD" {
		a.header.Del("Content-Length")
	}
	if !a.header.Has("Date") {
		a.header.Add("Date", httpDate(x.came))
	}
	a.header = c.finished(a.header, how, nil, time.Now())
	a.body, a.length = x.direct()
	if q.method == "HEAD" || a.length == 0 {
		a.body.Close()
		a.body = nil
	}
	return a
}

// ask sends a request to where its answer is to come from.
func (c *Cache) ask(ctx context.Context, q *request, o *outgoing) (*exchange, error) {
	c.count.asked.Add(1)
	if q.scheme != "http" && q.scheme != "https" {
		return c.askOther(ctx, o)
	}
	if t := c.near.neighbors(); t != nil && q.dial == "" && q.door != "accel" {
		return c.askNeighbors(ctx, t, q, o)
	}
	return c.up.do(ctx, o)
}

// purgeURL is purge for a URL as its owner writes it.
func (c *Cache) purgeURL(url string) error {
	l, err := parseURL(url)
	if err != nil {
		return err
	}
	gone, err := c.purge(keyOf(l.String()))
	if err == nil {
		c.event("purge", ndb.Of("url", l.String()), ndb.Of("held", gone))
	}
	return err
}
