// Package policy is what a shared cache may do with a response (RFC 9110, 9111):
// whether it may be kept, for how long it is fresh, which request it answers, what
// has to be asked of the server first, and what becomes of it then. It is functions
// of messages and of the time alone: it keeps nothing, and asks nobody.
package policy

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"harvest/cache/http1"
)

// Rules are what a cache's owner decides.
type Rules struct {
	// Targets are the names of fields that are meant for this cache before
	// Cache-Control, first come first (RFC 9213); CDN-Cache-Control if nil.
	Targets []string
	// Lives tell how long what says nothing about it is fresh. The first that
	// fits decides; behind them is {percent 10, max 24h}.
	Lives []Life
	// StaleOnFailure is how long past its life a response may answer when the
	// server cannot be reached, and nothing forbids it.
	StaleOnFailure time.Duration
	// Failures is how long an error is fresh that does not say so.
	Failures time.Duration
}

// A Life is a rule for responses that do not say how long they are fresh: a part of
// the time since they were modified, within bounds. Min goes for what does not say
// when that was, too.
type Life struct {
	URL      *regexp.Regexp // nil fits all
	Percent  int
	Min, Max time.Duration
}

var ownLife = Life{Percent: 10, Max: 24 * time.Hour}

func (r *Rules) targets() []string {
	if r.Targets == nil {
		return []string{"CDN-Cache-Control"}
	}
	return r.Targets
}

func (r *Rules) life(url string) Life {
	for _, l := range r.Lives {
		if l.URL == nil || l.URL.MatchString(url) {
			return l
		}
	}
	return ownLife
}

// A Response is one that is, or might be, kept.
type Response struct {
	URL        string
	Status     int
	Header     http1.Header // without what is about a connection
	Selecting  http1.Header // the fields of the request that Vary names
	Authorized bool         // the request had Authorization
	Asked      time.Time    // when the request went out
	Came       time.Time    // when the response's head came
}

// understood are the statuses whose meaning for caches this package knows.
var understood = []int{200, 203, 204, 206, 300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 405, 410, 414, 421, 451, 500, 501, 502, 503, 504}

// heuristic are the statuses that are fresh for a while without saying so
// (RFC 9110, 15.1).
var heuristic = []int{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}

// Storable reports whether the response to a GET of a request's header may be kept,
// and if not, why.
func (r *Rules) Storable(q http1.Header, p *Response) (bool, string) {
	d, _ := responseControl(p.Header, r.targets())
	known := slices.Contains(understood, p.Status)
	life, from := r.Lifetime(p)
	switch {
	case p.Status < 200 || p.Status == 206 || p.Status == 304:
		return false, "status"
	case requestControl(q).noStore:
		return false, "request no-store"
	case d.mustUnderstand && !known:
		return false, "must-understand"
	case d.noStore && !d.mustUnderstand:
		return false, "no-store"
	case d.private:
		return false, "private"
	case p.Header.HasMember("Vary", "*"):
		return false, "vary"
	case p.Authorized && !d.public && !d.mustRevalidate && !d.sMaxAge.there:
		return false, "authorization"
	case from == "" && !d.public && !slices.Contains(heuristic, p.Status):
		return false, "no life"
	case life <= 0 && !p.validates():
		return false, "stale at once"
	}
	return true, ""
}

// validates reports whether the server can be asked about the response.
func (p *Response) validates() bool { return p.Header.Has("ETag") || p.Header.Has("Last-Modified") }

// Lifetime is how long after it was made a response is fresh, and what says so: a
// directive, Expires, or a rule for its URL; "" if nothing does.
func (r *Rules) Lifetime(p *Response) (life time.Duration, from string) {
	d, targeted := responseControl(p.Header, r.targets())
	switch {
	case d.sMaxAge.there:
		return d.sMaxAge.duration(), "s-maxage"
	case d.maxAge.there:
		return d.maxAge.duration(), "max-age"
	case p.Header.Has("Expires") && !targeted:
		expires, ok := date(p.Header, "Expires")
		if !ok {
			return 0, "expires"
		}
		return expires.Sub(p.made()), "expires"
	case !slices.Contains(heuristic, p.Status) && !d.public:
		return r.failure(p)
	}
	l := r.life(p.URL)
	modified, ok := date(p.Header, "Last-Modified")
	if ok && p.made().After(modified) {
		life = p.made().Sub(modified) / 100 * time.Duration(l.Percent)
	}
	if life = min(max(life, l.Min), max(l.Max, l.Min)); life == 0 {
		return r.failure(p)
	}
	return life, "heuristic"
}

// failure is how long what nothing else gives a life is fresh.
func (r *Rules) failure(p *Response) (time.Duration, string) {
	if p.Status < 400 || r.Failures <= 0 || p.Status == 401 || p.Status == 407 {
		return 0, ""
	}
	return r.Failures, "failure"
}

// made is when the response says it was made, or came.
func (p *Response) made() time.Time {
	if t, ok := date(p.Header, "Date"); ok {
		return t
	}
	return p.Came
}

// Age is how old a response is now (RFC 9111, 4.2.3).
func (p *Response) Age(now time.Time) time.Duration {
	apparent := max(0, p.Came.Sub(p.made()))
	corrected := age(p.Header) + p.Came.Sub(p.Asked)
	return max(apparent, corrected) + max(0, now.Sub(p.Came))
}

// Selects reports whether a response answers a request with this header: whether
// the fields that Vary names are those it was asked for with (RFC 9111, 4.1).
func (p *Response) Selects(q http1.Header) bool {
	for name := range p.Header.Members("Vary") {
		if name == "*" {
			return false
		}
		was, had := p.Selecting.Get(name)
		is, has := q.Get(name)
		if had != has || normal(was) != normal(is) {
			return false
		}
	}
	return true
}

// Selecting are the fields of a request that a response's Vary names.
func Selecting(p, q http1.Header) (all http1.Header) {
	for name := range p.Members("Vary") {
		if v, ok := q.Get(name); ok && !all.Has(name) {
			all.Add(name, v)
		}
	}
	return all
}

// normal is a value without the blanks that mean nothing around its commas.
func normal(v string) string {
	var b strings.Builder
	for m := range http1.Split(v, ',') {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(m)
	}
	return b.String()
}
