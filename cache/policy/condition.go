package policy

import (
	"strings"
	"time"

	"harvest/cache/http1"
)

func lower(s string) string { return strings.ToLower(s) }

// isTag reports whether s is an entity tag (RFC 9110, 8.8.3).
func isTag(s string) bool {
	s = strings.TrimPrefix(s, "W/")
	return len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.Contains(s[1:len(s)-1], `"`)
}

func weakEqual(a, b string) bool {
	return a != "" && strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/")
}

func strongEqual(a, b string) bool { return a == b && isTag(a) && !strings.HasPrefix(a, "W/") }

// NotModified reports whether a client that asks with header q has p already
// (RFC 9110, 13.1.2 and 13.1.3): its tags count before its date.
func (p *Response) NotModified(q http1.Header) bool {
	if p.Status != 200 {
		return false
	}
	if q.Has("If-None-Match") {
		for tag := range q.Members("If-None-Match") {
			if tag == "*" || weakEqual(tag, p.Header.Text("ETag")) {
				return true
			}
		}
		return false
	}
	since, ok := date(q, "If-Modified-Since")
	if !ok {
		return false
	}
	modified, ok := date(p.Header, "Last-Modified")
	if !ok {
		modified = p.made().Truncate(time.Second)
	}
	return !modified.After(since)
}

// notModifiedFields are those of p that a 304 has (RFC 9110, 15.4.5).
var notModifiedFields = []string{"Cache-Control", "CDN-Cache-Control", "Content-Location", "Date", "ETag", "Expires", "Vary"}

// NotModifiedHeader is the header of a 304 about p.
func (p *Response) NotModifiedHeader() (h http1.Header) {
	for _, name := range notModifiedFields {
		for v := range p.Header.Values(name) {
			h.Add(name, v)
		}
	}
	if !h.Has("ETag") {
		if v, ok := p.Header.Get("Last-Modified"); ok {
			h.Add("Last-Modified", v)
		}
	}
	return h
}

// NeedsServer reports whether a request has a condition that only the server can
// decide: those that keep two from changing the same thing.
func NeedsServer(q http1.Header) bool { return q.Has("If-Match") || q.Has("If-Unmodified-Since") }

// A Range is a part of a body: Length bytes from Start.
type Range struct{ Start, Length int64 }

// maxRanges is how many ranges a request may have; all is sent to one with more.
const maxRanges = 8

// Ranges are the parts of p, a body of size bytes, that a request wants. ok is
// false for all of it: it asks for none, or for nothing that can be read, or has
// another version (RFC 9110, 14.2 and 13.1.5). No range and ok is 416.
func (p *Response) Ranges(q http1.Header, size int64) (all []Range, ok bool) {
	spec, there := q.Get("Range")
	unit, set, isSet := strings.Cut(spec, "=")
	if !there || !isSet || !strings.EqualFold(strings.TrimSpace(unit), "bytes") || p.Status != 200 || !p.sameVersion(q) {
		return nil, false
	}
	n := 0
	for one := range http1.Split(set, ',') {
		r, fits, valid := parseRange(one, size)
		if n++; !valid || n > maxRanges {
			return nil, false
		}
		if fits {
			all = append(all, r)
		}
	}
	return all, n > 0
}

// parseRange reads first-last, first- or -suffix. fits is false if the body has
// nothing there.
func parseRange(s string, size int64) (r Range, fits, valid bool) {
	first, last, ok := strings.Cut(s, "-")
	from, hasFirst := digits(first, 1<<62)
	to, hasLast := digits(last, 1<<62)
	switch {
	case !ok || first != "" && !hasFirst || last != "" && !hasLast || !hasFirst && !hasLast:
		return r, false, false
	case !hasFirst:
		n := min(to, size)
		return Range{size - n, n}, n > 0, true
	case hasLast && to < from:
		return r, false, false
	case from >= size:
		return r, false, true
	case !hasLast:
		return Range{from, size - from}, true, true
	}
	return Range{from, min(to, size-1) - from + 1}, true, true
}

// sameVersion reports whether If-Range, where it is there, names p for certain.
func (p *Response) sameVersion(q http1.Header) bool {
	v, ok := q.Get("If-Range")
	if !ok {
		return true
	}
	if strings.HasSuffix(v, `"`) {
		return strongEqual(v, p.Header.Text("ETag"))
	}
	is, ok1 := date(p.Header, "Last-Modified")
	want, ok2 := parseDate(v)
	return ok1 && ok2 && is.Equal(want) && p.made().Sub(is) >= time.Second
}
