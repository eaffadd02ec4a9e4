package policy

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"harvest/cache/http1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }

// header reads lines "Name: value".
func header(lines ...string) (h http1.Header) {
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// answer is a response that came just now, with a Date unless it has one.
func answer(lines ...string) *Response {
	h := header(lines...)
	if !h.Has("Date") {
		h.Add("Date", at(0))
	}
	return &Response{URL: "http://h/a", Status: 200, Header: h, Asked: now, Came: now}
}

func TestStorable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		auth   bool
		q      http1.Header
		h      []string
		why    string
	}{
		{"max-age", 200, false, nil, []string{"Cache-Control: max-age=60"}, ""},
		{"nothing", 200, false, nil, nil, "stale at once"},
		{"tag", 200, false, nil, []string{"ETag: \"a\""}, ""},
		{"modified", 200, false, nil, []string{"Last-Modified: " + at(-time.Hour)}, ""},
		{"redirect for now", 302, false, nil, []string{"Last-Modified: " + at(-time.Hour)}, "no life"},
		{"redirect with life", 302, false, nil, []string{"Cache-Control: max-age=60"}, ""},
		{"unknown status with life", 599, false, nil, []string{"Cache-Control: max-age=60"}, ""},
		{"unknown status that must be understood", 599, false, nil, []string{"Cache-Control: max-age=60, must-understand"}, "must-understand"},
		{"understood though no-store", 200, false, nil, []string{"Cache-Control: max-age=60, no-store, must-understand"}, ""},
		{"interim", 103, false, nil, []string{"Cache-Control: max-age=60"}, "status"},
		{"part", 206, false, nil, []string{"Cache-Control: max-age=60"}, "status"},
		{"no-store", 200, false, nil, []string{"Cache-Control: max-age=60", "Cache-Control: No-Store"}, "no-store"},
		{"no-store beside what is bad", 200, false, nil, []string{"Cache-Control: max-age=x, =, no-store"}, "no-store"},
		{"no-store in quotes", 200, false, nil, []string{`Cache-Control: max-age=60, x="no-store, private"`}, ""},
		{"private", 200, false, nil, []string{`Cache-Control: private="a", max-age=60`}, "private"},
		{"request no-store", 200, false, header("Cache-Control: no-store"), []string{"Cache-Control: max-age=60"}, "request no-store"},
		{"vary all", 200, false, nil, []string{"Cache-Control: max-age=60", "Vary: a", "Vary: b, *"}, "vary"},
		{"authorization", 200, true, nil, []string{"Cache-Control: max-age=60"}, "authorization"},
		{"authorization public", 200, true, nil, []string{"Cache-Control: max-age=60, public"}, ""},
		{"authorization s-maxage", 200, true, nil, []string{"Cache-Control: s-maxage=60"}, ""},
		{"stale at once with a tag", 200, false, nil, []string{"Cache-Control: max-age=0", "ETag: \"a\""}, ""},
		{"cookie", 200, false, nil, []string{"Cache-Control: max-age=60", "Set-Cookie: a=b"}, ""},
		{"targeted no-store", 200, false, nil, []string{"Cache-Control: max-age=60", "CDN-Cache-Control: no-store"}, "no-store"},
		{"targeted before no-store", 200, false, nil, []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=60"}, ""},
		{"targeted that cannot be read", 200, false, nil, []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=60, =x"}, "no-store"},
	} {
		p := answer(tt.h...)
		p.Status, p.Authorized = tt.status, tt.auth
		ok, why := new(Rules).Storable(tt.q, p)
		if ok != (tt.why == "") || why != tt.why {
			t.Errorf("%s: got %v %q, want %q", tt.name, ok, why, tt.why)
		}
	}
}

func TestLifetime(t *testing.T) {
	r := Rules{Lives: []Life{
		{URL: regexp.MustCompile(`\.gif$`), Percent: 50, Max: 30 * 24 * time.Hour},
		{URL: regexp.MustCompile(`^ftp:`), Min: 7 * 24 * time.Hour},
	}}
	for _, tt := range []struct {
		url  string
		h    []string
		want time.Duration
		from string
	}{
		{"http://h/a", []string{"Cache-Control: max-age=60, s-maxage=90", "Expires: " + at(time.Hour)}, 90 * time.Second, "s-maxage"},
		{"http://h/a", []string{"Cache-Control: max-age=60", "Cache-Control: max-age=30"}, 30 * time.Second, "max-age"},
		{"http://h/a", []string{`Cache-Control: max-age="60"`}, time.Minute, "max-age"},
		{"http://h/a", []string{"Cache-Control: max-age=60.5", "Expires: " + at(time.Hour)}, 0, "max-age"},
		{"http://h/a", []string{"Cache-Control: max-age=-1"}, 0, "max-age"},
		{"http://h/a", []string{"Cache-Control: max-age=99999999999999999999"}, maxDelta * time.Second, "max-age"},
		{"http://h/a", []string{"Expires: " + at(time.Hour), "Date: " + at(-time.Hour)}, 2 * time.Hour, "expires"},
		{"http://h/a", []string{"Expires: 0", "Last-Modified: " + at(-100*time.Hour)}, 0, "expires"},
		{"http://h/a", []string{"Expires: " + at(time.Hour), "Expires: " + at(time.Hour)}, 0, "expires"},
		{"http://h/a", []string{"Expires: Fri, 20 nov 2026 13:00:00 GMT"}, 0, "expires"},
		{"http://h/a", []string{"Expires: Mon, 20 Nov 2026 13:00:00 GMT"}, 0, "expires"},
		{"http://h/a", []string{"Expires: Friday, 20-Nov-26 13:00:00 GMT"}, time.Hour, "expires"},
		{"http://h/a", []string{"Last-Modified: " + at(-100*time.Hour)}, 10 * time.Hour, "heuristic"},
		{"http://h/a", []string{"Last-Modified: " + at(-1000*time.Hour)}, 24 * time.Hour, "heuristic"},
		{"http://h/a", nil, 0, ""},
		{"http://h/a.gif", []string{"Last-Modified: " + at(-100*time.Hour)}, 50 * time.Hour, "heuristic"},
		{"ftp://h/a", nil, 7 * 24 * time.Hour, "heuristic"},
		{"http://h/a", []string{"CDN-Cache-Control: max-age=5", "Cache-Control: max-age=60", "Expires: 0"}, 5 * time.Second, "max-age"},
		{"http://h/a", []string{"CDN-Cache-Control: foo", "Expires: " + at(time.Hour)}, 0, ""},
		{"http://h/a", []string{`CDN-Cache-Control: max-age="5"`, "Cache-Control: max-age=60"}, 0, ""},
		{"http://h/a", []string{"CDN-Cache-Control: ", "Cache-Control: max-age=60"}, time.Minute, "max-age"},
	} {
		p := answer(tt.h...)
		p.URL = tt.url
		if life, from := r.Lifetime(p); life != tt.want || from != tt.from {
			t.Errorf("%s %q: got %v by %q, want %v by %q", tt.url, tt.h, life, from, tt.want, tt.from)
		}
	}
}

func TestAge(t *testing.T) {
	for _, tt := range []struct {
		h    []string
		took time.Duration // from asking to the answer
		want time.Duration // ten seconds after it came
	}{
		{nil, 0, 10 * time.Second},
		{[]string{"Age: 30"}, 2 * time.Second, 42 * time.Second},
		{[]string{"Age: 30, 50"}, 0, 40 * time.Second},
		{[]string{"Age: 50", "Age: 30"}, 0, 60 * time.Second},
		{[]string{"Age: 30s"}, 0, 10 * time.Second},
		{[]string{"Age: -30"}, 0, 10 * time.Second},
		{[]string{"Date: " + at(-time.Minute), "Age: 30"}, 0, 70 * time.Second},
		{[]string{"Date: " + at(time.Minute)}, 0, 10 * time.Second},
		{[]string{"Date: never"}, 0, 10 * time.Second},
	} {
		p := answer(tt.h...)
		p.Asked = p.Came.Add(-tt.took)
		if got := p.Age(now.Add(10 * time.Second)); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.h, got, tt.want)
		}
	}
}

func TestUse(t *testing.T) {
	for _, tt := range []struct {
		name string
		h, q string // Cache-Control of response and request
		old  time.Duration
		want Use
	}{
		{"fresh", "max-age=60", "", 59 * time.Second, Fresh},
		{"stale", "max-age=60", "", 60 * time.Second, Validate},
		{"stale, only from here", "max-age=60", "only-if-cached", 60 * time.Second, NotInCache},
		{"fresh, only from here", "max-age=60", "only-if-cached", 0, Fresh},
		{"reload", "max-age=60", "no-cache", 0, Validate},
		{"no-cache", "max-age=60, no-cache", "", 0, Validate},
		{"no-cache of a field", `max-age=60, no-cache="a"`, "", 0, Validate},
		{"younger wanted", "max-age=60", "max-age=10", 11 * time.Second, Validate},
		{"young enough", "max-age=60", "max-age=10", 10 * time.Second, Fresh},
		{"fresh for longer wanted", "max-age=60", "min-fresh=30", 31 * time.Second, Validate},
		{"fresh for long enough", "max-age=60", "min-fresh=30", 30 * time.Second, Fresh},
		{"stale is taken", "max-age=60", "max-stale", time.Hour, Fresh},
		{"so stale is taken", "max-age=60", "max-stale=60", 2 * time.Minute, Fresh},
		{"so stale is not taken", "max-age=60", "max-stale=60", 121 * time.Second, Validate},
		{"stale is forbidden", "max-age=60, must-revalidate", "max-stale", time.Hour, Validate},
		{"stale is forbidden to proxies", "max-age=60, proxy-revalidate", "max-stale", time.Hour, Validate},
		{"stale is forbidden by s-maxage", "s-maxage=60", "max-stale", time.Hour, Validate},
		{"stale for a while", "max-age=60, stale-while-revalidate=60", "", 119 * time.Second, StaleMeanwhile},
		{"stale for too long", "max-age=60, stale-while-revalidate=60", "", 120 * time.Second, Validate},
		{"stale for a while, forbidden", "max-age=60, stale-while-revalidate=60, must-revalidate", "", 90 * time.Second, Validate},
	} {
		var q http1.Header
		if tt.q != "" {
			q = header("Cache-Control: " + tt.q)
		}
		if got, _ := new(Rules).Use(answer("Cache-Control: "+tt.h), q, now.Add(tt.old)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if got, _ := new(Rules).Use(answer("Cache-Control: max-age=60"), header("Pragma: no-cache"), now); got != Validate {
		t.Errorf("Pragma: got %v, want %v", got, Validate)
	}
}

func TestOnError(t *testing.T) {
	r := Rules{StaleOnFailure: time.Hour}
	for _, tt := range []struct {
		h, q        string
		old         time.Duration
		unreachable bool
		want        bool
	}{
		{"max-age=60, stale-if-error=60", "", 2 * time.Minute, false, true},
		{"max-age=60, stale-if-error=60", "", 121 * time.Second, false, false},
		{"max-age=60", "stale-if-error=60", 2 * time.Minute, false, true},
		{"max-age=60", "", 2 * time.Minute, false, false},
		{"max-age=60", "", 2 * time.Minute, true, true},
		{"max-age=60", "", 2 * time.Hour, true, false},
		{"max-age=60, stale-if-error=1", "", 2 * time.Minute, true, false},
		{"max-age=60, stale-if-error=60, must-revalidate", "", 61 * time.Second, true, false},
		{"max-age=60, stale-if-error=60", "no-cache", 61 * time.Second, true, false},
	} {
		if got := r.OnError(answer("Cache-Control: "+tt.h), header("Cache-Control: "+tt.q), now.Add(tt.old), tt.unreachable); got != tt.want {
			t.Errorf("%s, %s at %v: got %v, want %v", tt.h, tt.q, tt.old, got, tt.want)
		}
	}
}

func TestSelects(t *testing.T) {
	q := header("Accept: a,  b", "Accept-Language: de", "Accept-Language: en")
	p := answer("Vary: Accept, accept-language", "Vary: X-Absent")
	p.Selecting = Selecting(p.Header, q)
	for _, tt := range []struct {
		q    http1.Header
		want bool
	}{
		{q, true},
		{header("accept: a, b", "Accept-Language: de,en", "Other: x"), true},
		{header("Accept: a, b", "Accept-Language: en, de"), false},
		{header("Accept: a, b", "Accept-Language: de, en", "X-Absent: "), false},
		{header("Accept-Language: de, en"), false},
	} {
		if got := p.Selects(tt.q); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.q, got, tt.want)
		}
	}
}

func TestNotModified(t *testing.T) {
	p := answer(`ETag: W/"a"`, "Last-Modified: "+at(-time.Hour), "Vary: x", "X: y")
	for _, tt := range []struct {
		q    string
		want bool
	}{
		{`If-None-Match: "a"`, true},
		{`If-None-Match: "x,y", W/"a"`, true},
		{`If-None-Match: *`, true},
		{`If-None-Match: "b"`, false},
		{"If-Modified-Since: " + at(-time.Hour), true},
		{"If-Modified-Since: " + at(-time.Hour-time.Second), false},
		{"If-Modified-Since: soon", false},
		{"X: y", false},
	} {
		if got := p.NotModified(header(tt.q)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.q, got, tt.want)
		}
	}
	if p.NotModified(header(`If-None-Match: "b"`, "If-Modified-Since: "+at(0))) {
		t.Error("a date counted beside a tag")
	}
	if h := p.NotModifiedHeader(); h.Has("X") || !h.Has("ETag") || !h.Has("Vary") || !h.Has("Date") {
		t.Errorf("got %v", h)
	}
}

func TestRanges(t *testing.T) {
	p := answer(`ETag: "a"`, "Last-Modified: "+at(-time.Hour))
	for _, tt := range []struct {
		q    []string
		ok   bool
		want []Range
	}{
		{nil, false, nil},
		{[]string{"Range: bytes=0-9"}, true, []Range{{0, 10}}},
		{[]string{"Range: Bytes = 90-"}, true, []Range{{90, 10}}},
		{[]string{"Range: bytes=-10, 5-5"}, true, []Range{{90, 10}, {5, 1}}},
		{[]string{"Range: bytes=-1000"}, true, []Range{{0, 100}}},
		{[]string{"Range: bytes=0-99999999999999999999999"}, true, []Range{{0, 100}}},
		{[]string{"Range: bytes=100-"}, true, nil},
		{[]string{"Range: bytes=-0"}, true, nil},
		{[]string{"Range: bytes=9-0"}, false, nil},
		{[]string{"Range: bytes=-"}, false, nil},
		{[]string{"Range: bytes=+1-2"}, false, nil},
		{[]string{"Range: lines=1-2"}, false, nil},
		{[]string{"Range: bytes=" + strings.Repeat("0-0,", 9)}, false, nil},
		{[]string{"Range: bytes=0-9", `If-Range: "a"`}, true, []Range{{0, 10}}},
		{[]string{"Range: bytes=0-9", `If-Range: W/"a"`}, false, nil},
		{[]string{"Range: bytes=0-9", `If-Range: "b"`}, false, nil},
		{[]string{"Range: bytes=0-9", "If-Range: " + at(-time.Hour)}, true, []Range{{0, 10}}},
		{[]string{"Range: bytes=0-9", "If-Range: " + at(0)}, false, nil},
	} {
		got, ok := p.Ranges(header(tt.q...), 100)
		if ok != tt.ok || len(got) != len(tt.want) {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.q, got, ok, tt.want, tt.ok)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%q: got %v, want %v", tt.q, got, tt.want)
			}
		}
	}
}

func TestRefreshed(t *testing.T) {
	p := answer(`ETag: "a"`, "Content-Length: 5", "Content-Type: text/plain", "X: old", "X: older", "Age: 50", "Y: kept")
	n := p.Refreshed(header("Date: "+at(time.Hour), "X: new", "Content-Length: 0", "Content-Type: a/b", "Connection: z", "Z: hop"), now.Add(time.Hour), now.Add(time.Hour))
	for name, want := range map[string]string{"X": "new", "Y": "kept", "Content-Length": "5", "Content-Type": "text/plain", "Age": "", "Z": "", "Connection": ""} {
		if got := n.Header.Text(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := n.Age(now.Add(time.Hour)); got != 0 {
		t.Errorf("age: got %v, want 0", got)
	}
	if p.Header.Text("X") != "old, older" {
		t.Error("the response that was refreshed changed")
	}
	if !p.Validated(header(`ETag: W/"a"`), false) || p.Validated(header(`ETag: "b"`), true) || !p.Validated(nil, true) || p.Validated(nil, false) {
		t.Error("the wrong response was taken as validated")
	}
	if got := Conditions(p, []*Response{p, answer(`ETag: W/"b"`), answer("ETag: bad")}).Text("If-None-Match"); got != `"a", W/"b"` {
		t.Errorf("conditions: got %s", got)
	}
}

// FuzzDecide takes any fields without trouble, and finds that what says it must not
// be kept is not.
func FuzzDecide(f *testing.F) {
	f.Add("max-age=60, stale-while-revalidate=5", "max-age=0", "bytes=0-5", "a, *")
	f.Add(`s-maxage="60", no-cache="a`, "max-stale", "bytes=-1,2-", `x;y="\"`)
	f.Add("Fri, 20 Nov 2026 12:00:00 GMT", "no-store", "", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		p := answer("Cache-Control: "+a, "CDN-Cache-Control: "+d, "Expires: "+a, "Vary: "+d, "Age: "+b, "ETag: "+c, "Last-Modified: "+b)
		q := header("Cache-Control: "+b, "Range: "+c, "If-None-Match: "+d, "If-Modified-Since: "+a, "If-Range: "+d)
		r := new(Rules)
		r.Use(p, q, now.Add(time.Minute))
		r.OnError(p, q, now, true)
		if r.Lifetime(p); p.Age(now) < 0 {
			t.Fatalf("age %v", p.Age(now))
		}
		for name := range p.Header.Members("Vary") {
			if ok, _ := r.Storable(q, p); ok && name == "*" {
				t.Fatal("vary * was kept")
			}
		}
		all, _ := p.Ranges(q, 10)
		for _, x := range all {
			if x.Start < 0 || x.Length < 1 || x.Start+x.Length > 10 {
				t.Fatalf("range %v of 10 bytes", x)
			}
		}
		p.NotModified(q)
		p.Refreshed(q, now, now)
	})
}
