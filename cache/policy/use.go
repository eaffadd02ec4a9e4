package policy

import (
	"time"

	"harvest/cache/http1"
)

// A Use is what can be done with a kept response that a request selects.
type Use int

const (
	Fresh          Use = iota // answer with it
	StaleMeanwhile            // answer with it, and ask the server behind it
	Validate                  // ask the server first
	NotInCache                // the client wants nothing that had to be asked for: 504
)

func (u Use) String() string {
	return [...]string{"fresh", "stale-meanwhile", "validate", "not-in-cache"}[u]
}

// Use decides what a request with header q gets of p, and tells why where it is not
// simply fresh or stale.
func (r *Rules) Use(p *Response, q http1.Header, now time.Time) (Use, string) {
	asked := requestControl(q)
	d, _ := responseControl(p.Header, r.targets())
	life, _ := r.Lifetime(p)
	old := p.Age(now)
	past := old - life // how long it has been stale
	ask := Validate
	if asked.onlyIfCached {
		ask = NotInCache
	}
	switch {
	case asked.noCache:
		return ask, "request no-cache"
	case d.noCache:
		return ask, "no-cache"
	case asked.maxAge.there && old > asked.maxAge.duration() && !(asked.maxStale.there && d.lenient()):
		return ask, "request max-age"
	case asked.minFresh.there && -past < asked.minFresh.duration():
		return ask, "request min-fresh"
	case past < 0:
		return Fresh, ""
	case !d.lenient():
		return ask, "must-revalidate"
	case asked.maxStale.there && (asked.maxStale.any || past <= asked.maxStale.duration()):
		return Fresh, "request max-stale"
	case d.staleWhileRevalidate.there && past < d.staleWhileRevalidate.duration() && !asked.onlyIfCached:
		return StaleMeanwhile, ""
	}
	return ask, ""
}

// lenient reports whether the response may ever be used stale (RFC 9111, 4.2.4).
func (d *directives) lenient() bool {
	return !d.noCache && !d.mustRevalidate && !d.proxyRevalidate && !d.sMaxAge.there
}

// OnError reports whether a stale response may answer for a server that gives an
// error (stale-if-error, RFC 5861), or that cannot be reached.
func (r *Rules) OnError(p *Response, q http1.Header, now time.Time, unreachable bool) bool {
	d, _ := responseControl(p.Header, r.targets())
	asked := requestControl(q)
	if !d.lenient() || asked.noCache {
		return false
	}
	life, _ := r.Lifetime(p)
	past := p.Age(now) - life
	window := max(d.staleIfError.duration(), asked.staleIfError.duration())
	if unreachable && !d.staleIfError.there && !asked.staleIfError.there {
		window = r.StaleOnFailure
	}
	return past <= window
}

// OnlyIfCached reports whether a request takes nothing that is not kept.
func OnlyIfCached(q http1.Header) bool { return requestControl(q).onlyIfCached }

// Reload reports whether a request wants an answer that is newer than what is kept.
func Reload(q http1.Header) bool {
	d := requestControl(q)
	return d.noCache || d.maxAge.there && d.maxAge.sec == 0
}

// IsError reports whether a status is an error that a stale response may stand for.
func IsError(status int) bool {
	return status == 500 || status == 502 || status == 503 || status == 504
}

// Conditions are the fields that ask the server whether what is kept still holds:
// the tags of all variants, and when the one that was selected was modified.
func Conditions(selected *Response, variants []*Response) (h http1.Header) {
	tags := ""
	for _, p := range variants {
		if tag := p.Header.Text("ETag"); isTag(tag) {
			if tags != "" {
				tags += ", "
			}
			tags += tag
		}
	}
	if tags != "" {
		h.Add("If-None-Match", tags)
	}
	if selected != nil {
		if modified, ok := selected.Header.Get("Last-Modified"); ok {
			h.Add("If-Modified-Since", modified)
		}
	}
	return h
}

// Validated reports whether a 304 with header h is about p: it has p's strong tag,
// or, having no tag, p's date, or neither has any and p is the one that was asked
// about (RFC 9111, 4.3.4).
func (p *Response) Validated(h http1.Header, askedAbout bool) bool {
	if tag, ok := h.Get("ETag"); ok {
		return weakEqual(tag, p.Header.Text("ETag"))
	}
	if modified, ok := h.Get("Last-Modified"); ok && p.Header.Has("Last-Modified") {
		return modified == p.Header.Text("Last-Modified")
	}
	return askedAbout
}

// kept are the fields that a 304 does not change: they are about the body that is
// kept, not the one the server has.
var kept = map[string]bool{"content-length": true, "content-encoding": true, "content-type": true, "content-range": true}

// Refreshed is p with what a 304 with header h says (RFC 9111, 3.2).
func (p *Response) Refreshed(h http1.Header, asked, came time.Time) *Response {
	n := *p
	n.Header = p.Header.Clone()
	n.Header.Del("Age")
	if !h.Has("Date") {
		n.Header.Del("Date")
	}
	h = h.Forwarded()
	done := make(map[string]bool)
	for _, f := range h {
		low := lower(f.Name)
		if kept[low] || done[low] {
			continue
		}
		done[low] = true
		n.Header.Del(f.Name)
		for v := range h.Values(f.Name) {
			n.Header.Add(f.Name, v)
		}
	}
	n.Asked, n.Came = asked, came
	return &n
}

// Invalidates reports whether an answer makes what is kept of its URL doubtful:
// one of success to a method that is not known to be safe (RFC 9111, 4.4).
func Invalidates(method string, status int) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT":
		return false
	}
	return status >= 200 && status < 400
}
