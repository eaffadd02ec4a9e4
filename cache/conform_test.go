package cache

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestConform plays testdata/conform.txt against the proxy and the accelerator:
// what RFC 9110, 9111, 9213 and 5861 ask of a shared cache, a group for each of
// their subjects.
//
//	## a group
//	# a case
//	> GET /a | Name: value      a request; the path may be left out
//	< 200 | Name: value         what the server answers if it is asked; heads of
//	                            1xx stand on lines of their own before it
//	= hit | 200 | Name: value   what is to come of it
//
// A date is written @-100 for a hundred seconds ago. The server gives Date unless
// it has its own, and a body of its own each time unless there is body=TEXT; after
// cut=N it announces N octets more than it sends; silent is no answer at all.
//
// What is to come of it: hit (the server was not asked), miss (it was), cond (it
// was, with a condition), a status (200 if there is none), Name: value, !Name (it
// is not there), Name ~ REGEXP, body=TEXT, body N (that of the server's Nth answer),
// and with "server " before them fields that the server was to get. later is a hit
// after which the server is asked by itself, and soon tries until the rest is so:
// what came for one client alone is stored only after that has it.
func TestConform(t *testing.T) {
	cases := readCases(t, "testdata/conform.txt")
	for _, door := range []string{"proxy", "accel"} {
		t.Run(door, func(t *testing.T) {
			play := newPlay(t)
			groups, passed := 0, 0
			for _, c := range cases {
				if c.name == "" {
					groups++
					continue
				}
				if t.Run(c.group+"/"+c.name, func(t *testing.T) { t.Parallel(); play.run(t, door, c) }) {
					passed++
				}
			}
			if groups == 0 || passed == 0 {
				t.Errorf("got %d groups and %d cases, want some", groups, passed)
			}
		})
	}
}

// A playCase is one case; one without a name begins a group.
type playCase struct {
	group, name string
	steps       []playStep
}

type playStep struct {
	line    int
	request string
	answers []string
	wants   []string
}

func readCases(t *testing.T, path string) (all []playCase) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	group := ""
	names := make(map[string]bool)
	for i, line := range strings.Split(string(b), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "":
			continue
		case "##":
			group = rest
			all = append(all, playCase{group: group})
			continue
		case "#":
			if names[group+rest] {
				t.Fatalf("%s:%d: the case is there twice", path, i+1)
			}
			names[group+rest] = true
			all = append(all, playCase{group: group, name: rest})
			continue
		}
		c := &all[len(all)-1]
		if kind == ">" {
			c.steps = append(c.steps, playStep{line: i + 1, request: rest})
			continue
		}
		s := &c.steps[len(c.steps)-1]
		switch kind {
		case "<":
			s.answers = append(s.answers, rest)
		case "=":
			s.wants = append(s.wants, strings.Split(rest, " | ")...)
		default:
			t.Fatalf("%s:%d: '%s' begins no line", path, i+1, kind)
		}
	}
	return all
}

// A play is a cache with both doors before a server that answers as it is told.
type play struct {
	proxy, accel string
	origin       string

	mu    sync.Mutex
	paths map[string]*played
}

// played is what becomes of one path at the server.
type played struct {
	answers []string // to give next
	got     []*http.Request
	bodies  []string
	asked   chan struct{}
}

func newPlay(t *testing.T) *play {
	p := &play{paths: make(map[string]*played)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.origin = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	c := testCache(t, "listen addr=127.0.0.1:0\naccel addr=127.0.0.2:0 url=http://"+p.origin+"\negress allow=127.0.0.0/8\ntargets=CDN-Cache-Control\n")
	p.proxy, p.accel = c.doors.addrs()["127.0.0.1:0"], c.doors.addrs()["127.0.0.2:0"]
	t.Cleanup(func() { l.Close(); serving.Wait() })
	t.Cleanup(func() { c.Close() }) // first: it has connections to the server
	return p
}

// testCache opens a cache with a configuration and serves its doors until the test ends.
func testCache(t testing.TB, conf string) *Cache {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(conf), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir, "main", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait(); c.Close() })
	want := strings.Count(conf, "listen addr=") + strings.Count(conf, "accel addr=")
	for start := time.Now(); len(c.doors.addrs()) < want; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("the doors did not open: %v", c.doors.troubles())
		}
	}
	return c
}

// serve answers requests on one connection of the cache.
func (p *play) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, q.Body)
		b, keep := p.answer(q)
		if _, err := c.Write(b); err != nil || !keep {
			return
		}
	}
}

// answer writes what a path is to be answered with next.
func (p *play) answer(q *http.Request) (b []byte, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.paths[q.URL.Path]
	if d == nil || len(d.answers) == 0 {
		d = p.path(q.URL.Path)
		d.answers = []string{"500 | X-Unexpected: yes"}
	}
	d.got = append(d.got, q)
	for len(d.answers) > 0 {
		a := d.answers[0]
		d.answers = d.answers[1:]
		if strings.HasPrefix(a, "silent") {
			keep = false
			d.bodies = append(d.bodies, "")
			break
		}
		var one []byte
		one, keep = d.write(q, a)
		b = append(b, one...)
		if !strings.HasPrefix(a, "1") {
			break
		}
	}
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return b, keep
}

// path is what is known of a path. mu is held.
func (p *play) path(path string) *played {
	d := p.paths[path]
	if d == nil {
		d = &played{asked: make(chan struct{}, 100)}
		p.paths[path] = d
	}
	return d
}

// write writes one head, and its body.
func (d *played) write(q *http.Request, a string) (b []byte, keep bool) {
	parts := strings.Split(a, " | ")
	body, date, cut, plain := fmt.Sprintf("body %d of %s", len(d.bodies)+1, q.URL.Path), true, 0, true
	var h bytes.Buffer
	fmt.Fprintf(&h, "HTTP/1.1 %s Status\r\n", parts[0])
	for _, f := range parts[1:] {
		if text, ok := strings.CutPrefix(f, "body="); ok {
			body = text
			continue
		}
		if n, ok := strings.CutPrefix(f, "cut="); ok {
			cut, _ = strconv.Atoi(n)
			continue
		}
		date = date && !strings.HasPrefix(f, "Date:") && f != "!Date"
		plain = plain && !strings.HasPrefix(f, "Content-Length:") && !strings.HasPrefix(f, "Transfer-Encoding:")
		if f != "!Date" {
			h.WriteString(dated(f) + "\r\n")
		}
	}
	if parts[0][0] == '1' {
		return append(h.Bytes(), "\r\n"...), true
	}
	if date {
		h.WriteString(dated("Date: @-0") + "\r\n")
	}
	if parts[0] == "304" || parts[0] == "204" {
		d.bodies = append(d.bodies, "")
		return append(h.Bytes(), "\r\n"...), true
	}
	if plain {
		fmt.Fprintf(&h, "Content-Length: %d\r\n", len(body)+cut)
	}
	h.WriteString("\r\n")
	d.bodies = append(d.bodies, body)
	if q.Method != "HEAD" {
		h.WriteString(body)
	}
	return h.Bytes(), cut == 0 && plain
}

var dateMark = regexp.MustCompile(`@([-+]\d+)`)

// dated puts dates where they are marked.
func dated(s string) string {
	return dateMark.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.Atoi(m[1:])
		return httpDate(time.Now().Add(time.Duration(n) * time.Second))
	})
}

var odd = regexp.MustCompile(`[^a-z0-9]+`)

// run plays a case at a door.
func (p *play) run(t *testing.T, door string, c playCase) {
	base := "/" + door + "/" + odd.ReplaceAllString(strings.ToLower(c.group+" "+c.name), "-")
	for _, s := range c.steps {
		p.step(t, door, base, s)
		if t.Failed() {
			return
		}
	}
}

// step plays one request, and again while it is to be so soon.
func (p *play) step(t *testing.T, door, base string, s playStep) {
	wants := slices.Clone(s.wants)
	soon := slices.Contains(wants, "soon")
	wants = slices.DeleteFunc(wants, func(w string) bool { return w == "soon" })
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		trouble := p.try(t, door, base, s, wants)
		switch {
		case trouble == "":
			return
		case !soon || time.Since(start) > 10*time.Second:
			t.Errorf("line %d: > %s: %s", s.line, s.request, trouble)
			return
		}
	}
}

// try plays a request once and says what is wrong with what came of it.
func (p *play) try(t *testing.T, door, base string, s playStep, wants []string) string {
	parts := strings.Split(s.request, " | ")
	method, rest, _ := strings.Cut(parts[0], " ")
	path := base + rest
	key, _, _ := strings.Cut(path, "?")
	p.mu.Lock()
	d := p.path(key)
	d.answers = slices.Clone(s.answers)
	for i := range d.answers {
		d.answers[i] = strings.ReplaceAll(d.answers[i], "$URL", "http://"+p.origin+base)
		d.answers[i] = strings.ReplaceAll(d.answers[i], "$PATH", base)
	}
	before := len(d.got)
	for len(d.asked) > 0 {
		<-d.asked
	}
	p.mu.Unlock()
	infos, res, body, err := p.request(door, method, path, parts[1:])
	if err != nil {
		return err.Error()
	}
	if slices.Contains(wants, "later") {
		select {
		case <-d.asked:
		case <-time.After(10 * time.Second):
			return "got a server that is not asked, want it asked later"
		}
		wants = slices.DeleteFunc(slices.Clone(wants), func(w string) bool { return w == "later" })
		wants = append(wants, "X-Unexpected!")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := outcomeOf{res: res, body: body, infos: infos, bodies: d.bodies, got: d.got[before:]}
	return o.check(wants)
}

// request sends a request by a door and reads all of what comes back.
func (p *play) request(door, method, path string, fields []string) (infos []int, res *http.Response, body string, err error) {
	addr, target := p.accel, path
	if door == "proxy" {
		addr, target = p.proxy, "http://"+p.origin+path
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, nil, "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, p.origin)
	text := ""
	for _, f := range fields {
		if s, ok := strings.CutPrefix(f, "body="); ok {
			text = s
			fmt.Fprintf(&b, "Content-Length: %d\r\n", len(text))
			continue
		}
		b.WriteString(dated(f) + "\r\n")
	}
	b.WriteString("\r\n" + text)
	if _, err := c.Write(b.Bytes()); err != nil {
		return nil, nil, "", err
	}
	r := bufio.NewReader(c)
	for {
		if res, err = http.ReadResponse(r, &http.Request{Method: method}); err != nil {
			return nil, nil, "", err
		}
		if res.StatusCode >= 200 {
			break
		}
		infos = append(infos, res.StatusCode)
	}
	all, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, "", err
	}
	if err != nil {
		all = append(all, " (cut)"...)
	}
	return infos, res, string(all), nil
}

// outcomeOf is what came of a request.
type outcomeOf struct {
	res    *http.Response
	body   string
	infos  []int
	bodies []string        // the server's, of the path, all that were
	got    []*http.Request // by the server, of this request
}

// check says what is not as it is wanted.
func (o outcomeOf) check(wants []string) string {
	status := 200
	for _, w := range wants {
		if n, err := strconv.Atoi(w); err == nil && n >= 200 {
			status = n
		}
	}
	if o.res.StatusCode != status {
		return fmt.Sprintf("got %d (%s), want %d", o.res.StatusCode, o.res.Header.Get("Cache-Status"), status)
	}
	for _, w := range wants {
		if why := o.one(w); why != "" {
			return fmt.Sprintf("%s (%s)", why, o.res.Header.Get("Cache-Status"))
		}
	}
	return ""
}

func (o outcomeOf) one(w string) string {
	cond := len(o.got) > 0 && (o.got[0].Header.Get("If-None-Match") != "" || o.got[0].Header.Get("If-Modified-Since") != "")
	said := func(ok bool, got any) string {
		if ok {
			return ""
		}
		return fmt.Sprintf("got %v, want %s", got, w)
	}
	switch {
	case w == "hit":
		return said(len(o.got) == 0, "the server asked")
	case w == "miss":
		return said(len(o.got) > 0 && !cond, fmt.Sprintf("the server asked %d times, with a condition %v", len(o.got), cond))
	case w == "cond":
		return said(cond, fmt.Sprintf("the server asked %d times without one", len(o.got)))
	case w == "asked":
		return said(len(o.got) > 0, "the server not asked")
	case w == "X-Unexpected!":
		return ""
	case strings.HasPrefix(w, "body="):
		return said(o.body == w[5:], o.body)
	case strings.HasPrefix(w, "body "):
		n, _ := strconv.Atoi(w[5:])
		return said(n <= len(o.bodies) && o.body == o.bodies[n-1], o.body)
	}
	if n, err := strconv.Atoi(w); err == nil {
		return said(n >= 200 || slices.Contains(o.infos, n), fmt.Sprint(o.infos, " before it"))
	}
	if f, ok := strings.CutPrefix(w, "server "); ok {
		if len(o.got) == 0 {
			return said(false, "the server not asked")
		}
		return field(f, o.got[0].Header)
	}
	return field(w, o.res.Header)
}

// field says whether a field is as it is wanted.
func field(w string, h http.Header) string {
	if name, ok := strings.CutPrefix(w, "!"); ok {
		if v, ok := h[http.CanonicalHeaderKey(name)]; ok {
			return fmt.Sprintf("got %s: %s, want none", name, strings.Join(v, ", "))
		}
		return ""
	}
	if name, re, ok := strings.Cut(w, " ~ "); ok {
		if got := strings.Join(h.Values(name), ", "); !regexp.MustCompile(re).MatchString(got) {
			return fmt.Sprintf("got %s: %s, want it to match %s", name, got, re)
		}
		return ""
	}
	name, want, ok := strings.Cut(w, ": ")
	if !ok {
		return "cannot be understood: " + w
	}
	if got := strings.Join(h.Values(name), ", "); got != dated(want) {
		return fmt.Sprintf("got %s: %s, want %s", name, got, want)
	}
	return ""
}
