package policy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"harvest/cache/http1"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// parseDate reads a date of HTTP (RFC 9110, 5.6.7) in any of its three forms, and
// nothing that is only like one: what is no date is a date in the past.
func parseDate(s string) (time.Time, bool) {
	for _, form := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if t, err := time.Parse(form, s); err == nil && t.Format(form) == s {
			return t, true
		}
	}
	return time.Time{}, false
}

// date is that of a field, if it is there once and is one.
func date(h http1.Header, name string) (t time.Time, ok bool) {
	n := 0
	for v := range h.Values(name) {
		t, ok = parseDate(v)
		n++
	}
	return t, ok && n == 1
}

// age is what Age says: its first member, if that is a number.
func age(h http1.Header) time.Duration {
	v, _ := h.Get("Age")
	v, _, _ = strings.Cut(v, ",")
	sec, ok := seconds(strings.TrimSpace(v))
	if !ok {
		return 0
	}
	return time.Duration(sec) * time.Second
}
