package gathertest

import (
	"fmt"
	"net/http"
	"strings"
)

// redirectTricks send visitors where they should not go.
func redirectTricks() []Trick {
	to := func(where string) func(*Hostile, http.ResponseWriter, *http.Request) {
		return func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
			w.Header()["Location"] = []string{where}
			w.WriteHeader(http.StatusFound)
		}
	}
	return []Trick{
		{"loop", "a redirect to itself", false, false, to("/loop/")},
		{"pingpong", "two redirects to one another", false, false, pingpong},
		{"tofile", "a redirect to a file of the visitor's own", false, false, to("file:///etc/passwd")},
		{"toscript", "a redirect to a program", false, false, to("javascript:alert(1)")},
		{"tonothing", "a redirect without a place", false, false, func(_ *Hostile, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }},
		{"togarbage", "a redirect to no URL", false, false, to("http://[::1%zz]:port/\x7f")},
		{"tolong", "a redirect to a URL of 100,000 bytes", false, false, to("/" + strings.Repeat("long/", 20000))},
		{"busy", "429 with Retry-After, the first two times", false, false, busy},
		{"everbusy", "503 with a Retry-After of a thousand years", true, false, everbusy},
	}
}

func pingpong(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	where := "/pingpong/ping"
	if r.URL.Path == where {
		where = "/pingpong/pong"
	}
	http.Redirect(w, r, where, http.StatusMovedPermanently)
}

func busy(h *Hostile, w http.ResponseWriter, _ *http.Request) {
	if h.Requests("busy") > 2 {
		html(w, "At last", "A page for those who wait.")
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
}

func everbusy(_ *Hostile, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Retry-After", fmt.Sprint(int64(1000*365*86400)))
	w.WriteHeader(http.StatusServiceUnavailable)
}
