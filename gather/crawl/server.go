package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// A server is one origin during a visit.
type server struct {
	origin string
	polite bool
	robots atomic.Pointer[standing]

	// Guarded by the visit's mu.
	running bool                // serve has been started and has not ended
	parked  bool                // it asked to be left alone for longer than the visit will wait
	pending int                 // its entries in the queue
	leased  map[string]struct{} // the keys of those that are in hand
	walking int                 // files that walks have found and that are not committed
	next    time.Time           // no request before this
	hold    time.Time           // nor before this, which the server asked for
	delay   time.Duration
	strict  bool // the next document is chosen when the last is committed
}

// standing is what a server's robots.txt says now.
type standing struct {
	host  Server
	rules *Robots
	stale atomic.Bool // someone has gone to fetch it again
}

// server returns the server of an origin. mu is held.
func (v *visit) server(origin string) *server {
	s := v.byName[origin]
	if s == nil {
		s = &server{origin: origin, polite: polite(origin), leased: make(map[string]struct{})}
		s.delay = v.delay(s)
		v.byName[origin] = s
	}
	return s
}

// delay is what the roots ask for: the longest of those on this host.
func (v *visit) delay(s *server) time.Duration {
	if !s.polite {
		return 0
	}
	d := time.Duration(-1)
	for _, r := range v.roots {
		if sameHost(Origin(r.URL), s.origin) {
			d = max(d, r.Delay)
		}
	}
	if d < 0 {
		return DefaultDelay
	}
	return d
}

// serve fetches from one server until the visit has nothing left for any.
func (v *visit) serve(ctx context.Context, s *server) {
	defer func() {
		v.mu.Lock()
		s.running = false
		v.changed()
		v.mu.Unlock()
	}()
	if s.polite {
		v.meet(ctx, s)
	}
	n := 1
	v.mu.Lock()
	if s.polite && s.delay == 0 {
		n = v.plan.Limits.Servers
	}
	s.strict = n == 1 && v.searches(s)
	v.mu.Unlock()
	work := make(chan *Page)
	var fetchers sync.WaitGroup
	for range n {
		fetchers.Go(func() {
			var buf []byte
			for p := range work {
				v.fetch(ctx, s, p, &buf)
				v.out <- p
			}
		})
	}
	for {
		pages := v.lease(ctx, s)
		if len(pages) == 0 {
			break
		}
		for _, p := range pages {
			work <- p
		}
	}
	close(work)
	fetchers.Wait()
}

// searches reports whether a root on the server is searched depth first.
func (v *visit) searches(s *server) bool {
	for _, r := range v.roots {
		if r.Search == Depth && sameHost(Origin(r.URL), s.origin) {
			return true
		}
	}
	return false
}

// lease takes the next documents of a server, waiting until there are some. It
// returns none when there will be none.
func (v *visit) lease(ctx context.Context, s *server) []*Page {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		for (s.pending <= len(s.leased) || s.strict && len(s.leased) > 0) && !s.parked && !v.idle() {
			v.cond.Wait()
		}
		if s.parked || v.idle() {
			return nil
		}
		// Copied before the transaction begins: what is committed, and so
		// taken from leased, in between cannot be seen as free by it.
		inHand, changes := maps.Clone(s.leased), v.changes
		v.mu.Unlock()
		pages, err := v.read(s, inHand)
		v.mu.Lock()
		if err != nil {
			v.f.lg.Error("queue", "server", s.origin, "err", err)
			return nil
		}
		if len(pages) > 0 {
			for _, p := range pages {
				s.leased[p.key] = struct{}{}
			}
			return pages
		}
		// An Add has moved an entry that is in hand; its commit will tell.
		if changes == v.changes {
			v.cond.Wait()
		}
	}
}

// readAhead is how many documents a server has in hand at once.
const readAhead = 16

func (v *visit) read(s *server, inHand map[string]struct{}) ([]*Page, error) {
	var pages []*Page
	err := v.f.db.View(func(tx *bbolt.Tx) error {
		prefix := append([]byte(s.origin), 0)
		c := tx.Bucket(queueBucket).Cursor()
		for k, val := c.Seek(prefix); k != nil && len(k) == len(prefix)+12 && string(k[:len(prefix)]) == string(prefix); k, val = c.Next() {
			if _, ok := inHand[string(k)]; ok || len(val) < 2 {
				continue
			}
			d, _ := getDoc(tx, string(val[1:]))
			p := v.page(d)
			p.key, p.flags = string(k), val[0]
			if pages = append(pages, p); len(pages) == readAhead || s.strict {
				break
			}
		}
		return nil
	})
	return pages, err
}

// page begins the page of a document.
func (v *visit) page(d Doc) *Page {
	p := &Page{URL: d.URL, Depth: d.Depth, Stored: d.State == Stored, Old: d.MD5, Size: -1, doc: d}
	if r := v.roots[d.Root]; r != nil {
		p.root, p.Root = r, r.URL
	}
	return p
}

// fetch deals with one document of the queue. A page without an Outcome stays
// queued.
func (v *visit) fetch(ctx context.Context, s *server, p *Page, buf *[]byte) {
	if p.root == nil && p.doc.Root != 0 && p.flags&byHand == 0 {
		p.Outcome, p.Why = Excluded, "no root covers it"
		return
	}
	if p.flags&(byHand|seedURL) == 0 {
		if p.Why = v.excluded(p.URL, p.root, p.Depth); p.Why != "" {
			p.Outcome = Excluded
			return
		}
	}
	if !s.polite {
		v.attempt(ctx, p, buf)
		return
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return
	}
	if v.barred(ctx, s, p) {
		return
	}
	for try := 1; ; try++ {
		if !v.turn(ctx, s) {
			return
		}
		wait := v.attempt(ctx, p, buf)
		if wait < 0 {
			return
		}
		if wait == 0 {
			wait = time.Minute << (try - 1) / 2
		}
		if !v.rest(s, wait) {
			return
		}
		if try == v.plan.Limits.Tries {
			p.Outcome, p.Why = Failed, fmt.Sprintf("the server is busy: %d", p.doc.Status)
			return
		}
	}
}

// barred applies robots.txt to a page.
func (v *visit) barred(ctx context.Context, s *server, p *Page) bool {
	st := s.robots.Load()
	if st == nil || time.Now().After(st.host.Until) && !st.stale.Swap(true) {
		v.meet(ctx, s)
		if st = s.robots.Load(); st == nil {
			return true // the visit is ending
		}
	}
	if st.rules == nil {
		p.Outcome, p.Why = Failed, "robots.txt cannot be had"
		if st.host.Robots != 0 {
			p.Why += ": " + strconv.Itoa(st.host.Robots)
		}
		return true
	}
	if ok, rule := st.rules.Allowed(p.URL); !ok {
		p.Outcome, p.Why = Excluded, "robots.txt: "+rule
		return true
	}
	return false
}

// turn waits until the server may be asked again, and takes that moment. It is
// false when the visit ends first, or the server is parked.
func (v *visit) turn(ctx context.Context, s *server) bool {
	v.mu.Lock()
	now := time.Now()
	at := now
	if s.next.After(at) {
		at = s.next
	}
	s.next = at.Add(s.delay)
	for {
		if s.hold.After(at) {
			at = s.hold
			s.next = at.Add(s.delay)
		}
		if s.parked || v.stopped || at.Sub(now) > v.plan.Limits.Wait+s.delay*time.Duration(v.plan.Limits.Servers) {
			s.parked = s.parked || !v.stopped
			v.changed()
			v.mu.Unlock()
			return false
		}
		if now = time.Now(); !now.Before(at) {
			v.mu.Unlock()
			v.c.Requests.Add(1)
			return true
		}
		v.mu.Unlock()
		t := time.NewTimer(at.Sub(now))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false
		}
		v.mu.Lock()
		now = time.Now()
	}
}

// rest heeds a server that asks for a pause, and reports whether it is one that
// the visit will wait out. Either way it is remembered.
func (v *visit) rest(s *server, wait time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if until := time.Now().Add(wait); until.After(s.hold) {
		s.hold = until
	}
	if wait > v.plan.Limits.Wait {
		s.parked = true
		v.changed()
	}
	return !s.parked
}

// keepPace writes down when each server may be asked again, so that the next
// visit, or the next process, does not come too early.
func (v *visit) keepPace() {
	var hosts []Server
	v.mu.Lock()
	for _, s := range v.byName {
		if st := s.robots.Load(); st != nil {
			h := st.host
			h.Next, h.Delay = s.next, s.delay
			if s.hold.After(h.Next) {
				h.Next = s.hold
			}
			hosts = append(hosts, h)
		}
	}
	v.mu.Unlock()
	for _, h := range hosts {
		if err := v.f.putHost(h); err != nil {
			v.f.lg.Error("host", "server", h.Origin, "err", err)
		}
	}
}

// Lives of what is known of a robots.txt: RFC 9309 asks for at most a day, and
// what could not be had is tried again soon.
const (
	robotsLife  = 24 * time.Hour
	robotsRetry = 10 * time.Minute
	robotsSize  = 500 << 10
)

// meet learns a server's robots.txt, from the database or from the server.
func (v *visit) meet(ctx context.Context, s *server) {
	h := v.f.getHost(s.origin)
	v.mu.Lock()
	if h.Next.After(s.next) {
		s.next = h.Next
	}
	v.mu.Unlock()
	if !h.Until.After(time.Now()) {
		if !v.askRobots(ctx, s, &h) {
			return
		}
		if err := v.f.putHost(h); err != nil {
			v.f.lg.Error("host", "server", s.origin, "err", err)
		}
	}
	st := &standing{host: h}
	switch {
	case h.Robots >= 200 && h.Robots < 300:
		st.rules = ParseRobots(h.text, v.plan.Agent)
	case h.Robots >= 400 && h.Robots < 500 && h.Robots != http.StatusTooManyRequests:
		st.rules = &Robots{}
	}
	v.mu.Lock()
	s.delay = v.delay(s)
	if st.rules != nil {
		s.delay = max(s.delay, st.rules.Delay)
	}
	v.mu.Unlock()
	s.robots.Store(st)
}

// askRobots fetches a robots.txt. It is false when the visit ends first.
func (v *visit) askRobots(ctx context.Context, s *server, h *Server) bool {
	u := s.origin + "/robots.txt"
	h.text, h.Robots, h.Until = "", 0, time.Now().Add(robotsRetry)
	for range 6 { // RFC 9309 asks for five redirects at least
		if !v.turn(ctx, s) {
			return false
		}
		status, location, text, wait, err := v.getRobots(ctx, u)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			v.f.lg.Warn("robots", "server", s.origin, "err", err)
			return true
		}
		h.Robots = status
		switch {
		case status >= 300 && status < 400:
			b := newBase(u)
			if u, err = b.resolve(location); err != nil {
				h.Robots = http.StatusNotFound
			} else {
				continue
			}
		case status >= 200 && status < 300:
			h.text = text
		case status == http.StatusTooManyRequests || status >= 500:
			if wait > 0 {
				v.rest(s, wait)
			}
			return true
		}
		h.Until = time.Now().Add(robotsLife)
		return true
	}
	h.Robots, h.Until = http.StatusNotFound, time.Now().Add(robotsLife) // too many: as if there were none
	return true
}

func (v *visit) getRobots(ctx context.Context, u string) (status int, location, text string, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	req, err := v.request(ctx, u, u)
	if err != nil {
		return 0, "", "", 0, err
	}
	resp, err := v.rt.RoundTrip(req)
	if err != nil {
		return 0, "", "", 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, robotsSize))
	return resp.StatusCode, resp.Header.Get("Location"), string(b), retryAfter(resp.Header), err
}

// request makes the request for a URL.
func (v *visit) request(ctx context.Context, u, root string) (*http.Request, error) {
	if v.plan.Context != nil {
		ctx = v.plan.Context(ctx, root)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil { // a % that escapes nothing, which browsers send as it is
		req, err = http.NewRequestWithContext(ctx, http.MethodGet, strayPercent(u), nil)
	}
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	req.Header.Set("User-Agent", v.plan.Agent)
	if v.plan.From != "" {
		req.Header.Set("From", v.plan.From)
	}
	return req, nil
}

func strayPercent(u string) string {
	var b strings.Builder
	for i := 0; i < len(u); i++ {
		b.WriteByte(u[i])
		if u[i] == '%' && !(i+2 < len(u) && isHex(u[i+1]) && isHex(u[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

// attempt asks for a document once. It returns less than 0 when that settles
// the page, or how long the server wants to be left alone, 0 if it does not say.
func (v *visit) attempt(ctx context.Context, p *Page, buf *[]byte) time.Duration {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	root := p.URL
	if p.root != nil && strings.HasPrefix(p.URL, p.root.URL) {
		root = p.root.URL
	}
	resp, err := v.ask(ctx, p, root)
	if err != nil {
		if whole.Err() == nil {
			p.Outcome, p.Why = Failed, why(err)
		}
		return -1
	}
	defer resp.Body.Close()
	p.doc.Status = resp.StatusCode
	switch code := resp.StatusCode; {
	case code == http.StatusOK && isListing(resp) && !polite(Origin(p.URL)):
		v.walk(whole, p, resp)
	case code == http.StatusOK:
		v.document(ctx, p, resp, buf)
		if p.Outcome == Failed && whole.Err() != nil {
			p.Outcome = 0 // it is the visit that ended, not the document
		}
	case code == http.StatusNotModified && p.Stored:
		v.unchanged(p)
	case code == 301 || code == 302 || code == 303 || code == 307 || code == 308:
		v.moved(p, resp.Header.Get("Location"))
	case code == http.StatusNotFound || code == http.StatusGone:
		if p.Outcome, p.Why = Gone, why(errors.New(resp.Status)); !p.Stored {
			p.Outcome = Failed
		}
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return retryAfter(resp.Header)
	default:
		p.Outcome, p.Why = Failed, why(errors.New(resp.Status))
	}
	return -1
}

// ask sends the request for a document, conditional if it is known. A folder
// named without its slash is asked for again with it.
func (v *visit) ask(ctx context.Context, p *Page, root string) (*http.Response, error) {
	req, err := v.request(ctx, p.URL, root)
	if err != nil {
		return nil, err
	}
	if p.flags&anyhow == 0 && v.current(&p.doc) {
		if p.doc.ETag != "" {
			req.Header.Set("If-None-Match", p.doc.ETag)
		}
		if p.doc.Modified != "" {
			req.Header.Set("If-Modified-Since", p.doc.Modified)
		}
	}
	resp, err := v.rt.RoundTrip(req)
	if err != nil || polite(Origin(p.URL)) || resp.StatusCode != http.StatusMovedPermanently ||
		resp.Header.Get("Location") != req.URL.EscapedPath()+"/" {
		return resp, err
	}
	resp.Body.Close()
	if req, err = v.request(ctx, p.URL+"/", root); err != nil {
		return nil, err
	}
	return v.rt.RoundTrip(req)
}

// current reports whether what the Handler keeps of a document is as good as
// anything it could make now of the same bytes.
func (v *visit) current(d *Doc) bool {
	return d.State == Stored && d.Print == v.plan.Print && !(v.state.Force && d.Visit < v.state.Number) &&
		!(v.plan.Life > 0 && time.Since(d.Handed) >= v.plan.Life)
}

func (v *visit) unchanged(p *Page) {
	p.Outcome = Unchanged
	p.Due = v.plan.Refresh > 0 && time.Since(p.doc.Handed) >= v.plan.Refresh
}

func (v *visit) moved(p *Page, location string) {
	b := newBase(p.URL)
	to, err := b.resolve(location)
	switch {
	case location == "" || err != nil:
		p.Outcome, p.Why = Failed, "redirected to nowhere"
	case !sameHost(Origin(to), b.origin):
		p.Outcome, p.Why = Excluded, "redirected to another host: "+clip(to)
	case p.doc.Hops >= maxHops:
		p.Outcome, p.Why = Failed, fmt.Sprintf("more than %d redirects", maxHops)
	case to == p.URL:
		p.Outcome, p.Why = Failed, "redirected to itself"
	case p.root == nil || p.root.Leaf:
		// Nothing queues what belongs to no root, so the address is told.
		p.Outcome, p.Why = Failed, "moved to "+clip(to)
	default:
		p.Outcome, p.Why = Moved, "to "+to
		p.links = []string{to}
	}
}

// document reads a document, finds its links and hands it on.
func (v *visit) document(ctx context.Context, p *Page, resp *http.Response, buf *[]byte) {
	p.Type = resp.Header.Get("Content-Type")
	p.Modified, _ = http.ParseTime(resp.Header.Get("Last-Modified"))
	before := p.doc.Modified
	p.doc.ETag, p.doc.Modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	if len(p.doc.ETag) > 256 {
		p.doc.ETag = ""
	}
	p.Size = resp.ContentLength
	b := &body{r: resp.Body, left: v.plan.Limits.Body, n: &v.c.In}
	if !polite(Origin(p.URL)) { // it costs nobody's network
		b.left, b.until = math.MaxInt64, time.Now().Add(v.plan.Limits.Time/2)
	}
	head, end, err := readHead(b, (*buf)[:0], v.plan.Limits.Head)
	if *buf = head; cap(head) > 1<<20 {
		*buf = nil // one big document does not cost for ever
	}
	if err != nil {
		p.Outcome, p.Why = Failed, why(err)
		return
	}
	p.Outcome, p.Head, p.rest = Fetched, head, b
	if end {
		p.Size = int64(len(head))
	} else {
		p.Rest = b
	}
	v.links(p, resp.Header)
	if p.Outcome == Fetched {
		v.handle(ctx, p)
	}
	p.Head, p.Rest = nil, nil
	same := p.MD5 != [16]byte{} && p.MD5 == p.Old && p.doc.Modified == before
	if p.Outcome == Fetched && same && p.flags&anyhow == 0 && v.current(&p.doc) {
		v.unchanged(p) // by its content; the server has no better way to tell
	}
}

// links finds what an HTML page of a web server refers to and what it asks of
// robots.
func (v *visit) links(p *Page, h http.Header) {
	if !polite(Origin(p.URL)) {
		return
	}
	noindex, nofollow := robotsWords(strings.Join(h.Values("X-Robots-Tag"), ","))
	if isHTML(p) {
		refs := findLinks(p.Head)
		noindex, nofollow = noindex || refs.noindex, nofollow || refs.nofollow
		if !nofollow && p.root != nil && !p.root.Leaf && p.flags&byHand == 0 {
			p.links = refs.resolve(p.URL)
		}
	}
	if noindex {
		p.Outcome, p.Why = Excluded, "the page says noindex"
	}
}

func isHTML(p *Page) bool {
	t, _, _ := strings.Cut(p.Type, ";")
	switch strings.ToLower(strings.TrimSpace(t)) {
	case "text/html", "application/xhtml+xml":
		return true
	case "":
		return strings.HasPrefix(http.DetectContentType(p.Head), "text/html")
	}
	return false
}

// handle calls the Handler, and survives it.
func (v *visit) handle(ctx context.Context, p *Page) {
	defer func() {
		if r := recover(); r != nil {
			v.f.lg.LogAttrs(ctx, slog.LevelError, "panic", slog.String("url", p.URL), slog.Any("err", r), slog.String("stack", string(debug.Stack())))
			p.Outcome, p.Why, p.Result = Failed, why(fmt.Errorf("panic: %v", r)), nil
		}
	}()
	v.h.Handle(ctx, p)
}

// A body counts what is read of a document, and ends it at a limit.
type body struct {
	r     io.Reader
	left  int64
	until time.Time // zero: the request's context is enough
	cut   bool
	n     *atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 || !b.until.IsZero() && time.Now().After(b.until) {
		var one [1]byte
		n, err := io.ReadFull(b.r, one[:])
		b.cut = b.cut || n > 0
		if n > 0 || err == nil {
			err = io.EOF
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	b.n.Add(int64(n))
	return n, err
}

// readHead reads up to limit bytes into buf, which it may replace by a larger
// one, and reports whether that was all.
func readHead(r io.Reader, buf []byte, limit int) (head []byte, end bool, err error) {
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), min(max(2*cap(buf), 32<<10), limit))
			copy(bigger, buf)
			buf = bigger
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, true, nil
		}
		if err != nil {
			return buf, false, err
		}
	}
	return buf, false, nil
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(h http.Header) time.Duration {
	s := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return min(time.Duration(n), 365*24*3600) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(time.Until(t), 0)
	}
	return 0
}
