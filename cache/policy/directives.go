package policy

import (
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"harvest/cache/http1"
)

// maxDelta is what larger numbers of seconds count as (RFC 9111, 1.2.2).
const maxDelta = 1<<31 - 1

// A delta is a number of seconds of a directive.
type delta struct {
	there bool
	sec   int64 // 0 for what is no number: stale at once
	any   bool  // there without a number, as max-stale may be
}

func (d *delta) duration() time.Duration { return time.Duration(d.sec) * time.Second }

// add takes one more, of which the smallest counts.
func (d *delta) add(value string, given bool) {
	sec, ok := seconds(value)
	switch {
	case !given:
		d.any = true
	case !ok:
		sec = 0
	}
	if !d.there || sec < d.sec {
		d.sec = sec
	}
	d.there = true
}

// seconds reads digits, those of a larger number as maxDelta.
func seconds(s string) (int64, bool) { return digits(s, maxDelta) }

// digits reads a number; one that is larger than most is most.
func digits(s string, most int64) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if d := int64(s[i] - '0'); n > (most-d)/10 {
			n = most
		} else {
			n = n*10 + d
		}
	}
	return n, s != ""
}

// directives are those of a Cache-Control field that a shared cache acts on.
// A directive with field names in quotes counts as the one without
// (RFC 9111, 5.2.2.4 and 5.2.2.7 let a cache do so).
type directives struct {
	there                               bool // any was given
	noStore, noCache, private, public   bool
	mustRevalidate, proxyRevalidate     bool
	mustUnderstand, onlyIfCached        bool
	maxAge, sMaxAge, minFresh, maxStale delta
	staleWhileRevalidate, staleIfError  delta
}

func (d *directives) add(name, value string, given bool) {
	d.there = true
	switch strings.ToLower(name) {
	case "no-store":
		d.noStore = true
	case "no-cache":
		d.noCache = true
	case "private":
		d.private = true
	case "public":
		d.public = true
	case "must-revalidate":
		d.mustRevalidate = true
	case "proxy-revalidate":
		d.proxyRevalidate = true
	case "must-understand":
		d.mustUnderstand = true
	case "only-if-cached":
		d.onlyIfCached = true
	case "max-age":
		d.maxAge.add(value, given)
	case "s-maxage":
		d.sMaxAge.add(value, given)
	case "min-fresh":
		d.minFresh.add(value, given)
	case "max-stale":
		d.maxStale.add(value, given)
	case "stale-while-revalidate":
		d.staleWhileRevalidate.add(value, given)
	case "stale-if-error":
		d.staleIfError.add(value, given)
	}
}

// cacheControl reads Cache-Control. What it cannot read it passes over, so that one
// bad member does not take the others' meaning.
func cacheControl(h http1.Header) (d directives) {
	for m := range h.Members("Cache-Control") {
		name, value, given := strings.Cut(m, "=")
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		d.add(strings.TrimRight(name, " \t"), value, given)
	}
	return d
}

// requestControl reads what a client asks for; Pragma counts where there is no
// Cache-Control (RFC 9111, 5.4).
func requestControl(h http1.Header) directives {
	d := cacheControl(h)
	if !h.Has("Cache-Control") && h.HasMember("Pragma", "no-cache") {
		d.noCache = true
	}
	return d
}

// responseControl reads what a server allows: the field that is meant for caches
// like this one where it is there and can be read (RFC 9213), else Cache-Control.
// targeted reports that Expires does not count either.
func responseControl(h http1.Header, targets []string) (d directives, targeted bool) {
	for _, name := range targets {
		if d, ok := dictionary(h, name); ok {
			return d, true
		}
	}
	return cacheControl(h), false
}

// dictionary reads a targeted field, which has to be a Dictionary of RFC 8941 with
// a member: one that cannot be read is as if it were not there.
func dictionary(h http1.Header, name string) (d directives, ok bool) {
	var lines []string
	for v := range h.Values(name) {
		lines = append(lines, v)
	}
	if len(lines) == 0 {
		return d, false
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(dict.Names()) == 0 {
		return d, false
	}
	for _, name := range dict.Names() {
		m, _ := dict.Get(name)
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		switch v := item.Value.(type) {
		case bool:
			if v {
				d.add(name, "", false)
			}
		case int64:
			if v >= 0 {
				d.add(name, decimal(v), true)
			}
		}
	}
	d.there = true
	return d, true
}
