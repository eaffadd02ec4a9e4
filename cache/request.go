package cache

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
)

// A request is what a client asks for, through whatever door.
type request struct {
	location
	method string
	url    string // location as a text
	key    segment.Key
	header http1.Header // without what is about the client's connection
	body   io.Reader    // nil: none
	length int64        // of body, or http1.Chunked
	expect bool         // the client waits for 100 before it sends the body
	minor  int          // of the version it came in

	client netip.Addr // zero: of this process
	door   string     // the door it came through: proxy, accel, tree or go
	dial   string     // HOST:PORT of the server behind an accelerator
	host   string     // for Host, where it is not location.host
	began  time.Time

	inform func(*http1.Response) // relays what comes before the answer; may be nil
}

// setLocation gives the request its URL.
func (q *request) setLocation(l *location) {
	q.location = *l
	q.url = l.String()
	q.key = keyOf(q.url)
}

// An answer is what a client gets. Body is read and closed by who asked.
type answer struct {
	status  int
	reason  string
	header  http1.Header // end to end, without Content-Length
	length  int64        // of body, or -1
	body    io.ReadCloser
	outcome outcome
	v       *variant // that the body is of; may be nil
}

// Close lets go of the body.
func (a *answer) Close() {
	if a.body != nil {
		a.body.Close()
	}
}

// An outcome is what became of a request, for the log and for Cache-Status.
type outcome struct {
	how    string // hit, stale, validated, miss, collapsed, pass, refused, failed, tunnel …
	why    string
	server int // status that the server gave, 0 if it was not asked
	stored bool
	asked  string // neighbour or server that it came from; "" is none
}

// loops reports whether a request has been here before.
func (c *Cache) loops(h http1.Header) bool {
	name := c.via()
	for v := range h.Members("Via") {
		if f := strings.Fields(v); len(f) > 1 && f[1] == name {
			return true
		}
	}
	for v := range h.Members("CDN-Loop") {
		id, _, _ := strings.Cut(v, ";")
		if strings.TrimSpace(id) == name {
			return true
		}
	}
	return false
}

// via is the cache's name in Via.
func (c *Cache) via() string {
	if n := c.conf.Load().name; n != "" {
		return n
	}
	return c.ownName
}

// outgoing is the request as it goes on, with fields added to its own.
func (c *Cache) outgoing(q *request, add http1.Header, with conditions) *outgoing {
	o := &outgoing{location: q.location, method: q.method, body: q.body, length: q.length, expect: q.expect, dial: q.dial, host: q.host, inform: q.inform}
	o.header = make(http1.Header, 0, len(q.header)+len(add)+2)
	for _, f := range q.header {
		if !droppedField(f.Name) && (with == all || !rangeField(f.Name)) && (with >= validators || !validatorField(f.Name)) {
			o.header = append(o.header, f)
		}
	}
	o.header = append(o.header, add...)
	o.header.Add("Via", fmt.Sprintf("1.%d %s (harvest)", q.minor, c.via()))
	o.header.Add("CDN-Loop", c.via())
	return o
}

// droppedField reports fields that do not go on: those that are made anew, and
// those in which clients tell servers who they are for someone else to believe.
func droppedField(name string) bool {
	for _, f := range [...]string{"Host", "Content-Length", "Expect", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP"} {
		if strings.EqualFold(f, name) {
			return true
		}
	}
	return false
}

// conditions say which of a client's own go on to the server.
type conditions int

const (
	none       conditions = iota
	validators            // whether it has what the client has
	all                   // and what part of it is wanted
)

func validatorField(name string) bool {
	return strings.EqualFold(name, "If-None-Match") || strings.EqualFold(name, "If-Modified-Since")
}

func rangeField(name string) bool {
	return strings.EqualFold(name, "Range") || strings.EqualFold(name, "If-Range")
}

// failing is an answer that is made here.
func failing(status int, how, why string) *answer {
	text := fmt.Sprintf("%d %s\n%s\n", status, statusText(status), why)
	a := &answer{status: status, reason: statusText(status), length: int64(len(text)), outcome: outcome{how: how, why: why}}
	a.header = http1.Header{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}, {Name: "Cache-Control", Value: "no-store"}, {Name: "Date", Value: httpDate(time.Now())}}
	a.body = io.NopCloser(strings.NewReader(text))
	return a
}

// fromVariant is the answer with what is kept; it asks nobody.
func (c *Cache) fromVariant(q *request, v *variant, p *policy.Response, reason string, how outcome) *answer {
	now := time.Now()
	how.stored = how.server != 0 // what was fetched for this is kept
	a := &answer{status: p.Status, reason: reason, v: v, outcome: how, length: v.size}
	a.header = c.served(p, how, v, now)
	if p.NotModified(q.header) {
		c.notModified(a, p, how, v, now)
		return a
	}
	if ranges, ok := p.Ranges(q.header, v.size); ok && q.method == "GET" {
		return c.partial(q, a, v, ranges)
	}
	if q.method == "HEAD" || v.size == 0 {
		return a
	}
	body, err := c.bodyOf(v, 0, v.size)
	if err != nil {
		return nil
	}
	a.body = body
	return a
}

// notModified makes a the 304 about p.
func (c *Cache) notModified(a *answer, p *policy.Response, how outcome, v *variant, now time.Time) {
	n := *p
	n.Header = p.NotModifiedHeader()
	if age, ok := p.Header.Get("Age"); ok {
		n.Header.Set("Age", age)
	}
	a.status, a.reason, a.length, a.body = 304, statusText(304), 0, nil
	a.header = c.served(&n, how, v, now)
}

// served is the header of a kept response as it goes out.
func (c *Cache) served(p *policy.Response, how outcome, v *variant, now time.Time) http1.Header {
	h := make(http1.Header, 0, len(p.Header)+4)
	for _, f := range p.Header {
		if !strings.EqualFold(f.Name, "Age") && !strings.EqualFold(f.Name, "Content-Length") {
			h = append(h, f)
		}
	}
	h.Add("Age", strconv.FormatInt(int64(p.Age(now)/time.Second), 10))
	return c.finished(h, how, v, now)
}

// finished adds what the cache itself has to say.
func (c *Cache) finished(h http1.Header, how outcome, v *variant, now time.Time) http1.Header {
	h.Add("Via", "1.1 "+c.via()+" (harvest)")
	ttl := int64(0)
	if v != nil {
		ttl = (v.until - now.UnixNano()) / int64(time.Second)
	}
	h.Add("Cache-Status", how.status(v != nil, ttl))
	return h
}

// status is the member of Cache-Status (RFC 9211) about this cache.
func (o *outcome) status(kept bool, ttl int64) string {
	b := append(make([]byte, 0, 64), "harvest"...)
	switch o.how {
	case "hit", "stale":
		b = append(b, "; hit"...)
	case "validated", "expired":
		b = append(b, "; fwd=stale"...)
	case "miss", "collapsed":
		b = append(b, "; fwd=uri-miss"...)
	case "vary":
		b = append(b, "; fwd=vary-miss"...)
	case "reload":
		b = append(b, "; fwd=request"...)
	case "method":
		b = append(b, "; fwd=method"...)
	case "pass":
		b = append(b, "; fwd=bypass"...)
	}
	if o.server != 0 {
		b = strconv.AppendInt(append(b, "; fwd-status="...), int64(o.server), 10)
	}
	if o.how == "collapsed" {
		b = append(b, "; collapsed"...)
	}
	if o.stored {
		b = append(b, "; stored"...)
	}
	if kept {
		b = strconv.AppendInt(append(b, "; ttl="...), ttl, 10)
	}
	detail := o.why
	if code, _, _ := strings.Cut(o.asked, "/"); code != "" && detail == "" {
		detail = code
	}
	if detail != "" {
		b = append(b, "; detail="...)
		b = strconv.AppendQuote(b, printable(detail))
	}
	return string(b)
}

// printable is a text of the cache's own as a field can have it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, s[:min(len(s), 100)])
}

// partial makes a the answer with ranges of a body.
func (c *Cache) partial(q *request, a *answer, v *variant, ranges []policy.Range) *answer {
	if len(ranges) == 0 {
		n := failing(416, a.outcome.how, "")
		n.outcome = a.outcome
		n.header = c.finished(n.header, a.outcome, nil, time.Now())
		n.header.Add("Content-Range", fmt.Sprintf("bytes */%d", v.size))
		return n
	}
	a.status, a.reason = 206, statusText(206)
	if len(ranges) == 1 {
		r := ranges[0]
		a.header.Add("Content-Range", fmt.Sprintf("bytes %d-%d/%d", r.Start, r.Start+r.Length-1, v.size))
		body, err := c.bodyOf(v, r.Start, r.Length)
		if err != nil {
			return nil
		}
		a.body, a.length = body, r.Length
		return a
	}
	return c.multipart(a, v, ranges)
}

// multipart makes a the answer with several ranges (RFC 9110, 14.6).
func (c *Cache) multipart(a *answer, v *variant, ranges []policy.Range) *answer {
	boundary := fmt.Sprintf("harvest-%x", v.came)
	kind, _ := a.header.Get("Content-Type")
	all := new(pieces)
	a.length = 0
	text := func(s string) {
		all.next = append(all.next, io.NopCloser(strings.NewReader(s)))
		a.length += int64(len(s))
	}
	for _, r := range ranges {
		head := "\r\n--" + boundary + "\r\n"
		if kind != "" {
			head += "Content-Type: " + kind + "\r\n"
		}
		text(head + fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n\r\n", r.Start, r.Start+r.Length-1, v.size))
		body, err := c.bodyOf(v, r.Start, r.Length)
		if err != nil {
			all.Close()
			return nil
		}
		all.next = append(all.next, body)
		a.length += r.Length
	}
	text("\r\n--" + boundary + "--\r\n")
	a.header.Set("Content-Type", "multipart/byteranges; boundary="+boundary)
	a.body = all
	return a
}

// pieces are bodies one behind the other.
type pieces struct{ next []io.ReadCloser }

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.next) > 0 {
		n, err := p.next[0].Read(b)
		if err != io.EOF {
			return n, err
		}
		p.next[0].Close()
		p.next = p.next[1:]
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

func (p *pieces) Close() error {
	for _, r := range p.next {
		r.Close()
	}
	p.next = nil
	return nil
}

// selected finds the variant that answers a request: of those that it selects the
// one that was made last.
func selected(vs []*variant, q http1.Header) (v *variant, p *policy.Response, reason string) {
	var newest time.Time
	for _, x := range vs {
		r, why := x.response()
		if !r.Selects(q) {
			continue
		}
		if made := madeAt(r); v == nil || made.After(newest) {
			v, p, reason, newest = x, r, why, made
		}
	}
	return v, p, reason
}
