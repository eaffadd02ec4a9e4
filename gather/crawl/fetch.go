package crawl

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// fetch deals with one document. It is false when its server is to be asked for
// it later; a page without an Outcome stays queued.
func (v *visit) fetch(ctx context.Context, s *host, p *Page, buf *[]byte) bool {
	if p.tries == 0 && v.refused(s, p) || ctx.Err() != nil {
		return true
	}
	began := time.Time{}
	v.mu.Lock()
	parked := s.parked
	if s.polite && !parked {
		if !v.turn(s) {
			v.mu.Unlock()
			return false
		}
		began = s.last
	}
	v.mu.Unlock()
	if parked {
		return true
	}
	wait := v.attempt(ctx, s, p, buf, began)
	return wait < 0 || !v.later(s, p, wait)
}

// refused settles a page for which no request is to be made.
func (v *visit) refused(s *host, p *Page) bool {
	if p.root == nil && p.doc.Root != 0 && p.flags&byHand == 0 {
		p.Outcome, p.Why = Excluded, "no root covers it"
		return true
	}
	if p.flags&(byHand|seedURL) == 0 {
		p.Why = v.excluded(p.URL, p.root, p.Depth)
		if p.Why == "" && s.polite {
			p.Why = s.trap.refuses(p.URL)
		}
		if p.Why != "" {
			p.Outcome = Excluded
			return true
		}
	}
	if !isWeb(s.origin) {
		return false
	}
	v.mu.Lock()
	st := s.standing
	v.mu.Unlock()
	why, failed := st.barred(p.URL)
	if p.Why = why; failed {
		p.Outcome = Failed
	} else if why != "" {
		p.Outcome = Excluded
	}
	return why != ""
}

// later has a page asked for again, once its server has rested, and reports
// whether it is to be.
func (v *visit) later(s *host, p *Page, wait time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rest(s, wait, busyReason(p.doc.Status))
	if s.parked {
		return false // it stays queued
	}
	if p.tries++; p.tries >= v.plan.Limits.Tries {
		p.Outcome, p.Why = Failed, fmt.Sprintf("the server is busy: %d", p.doc.Status)
		return false
	}
	return true
}

// request makes the request for a URL.
func (v *visit) request(ctx context.Context, u, root string) (*http.Request, error) {
	if v.plan.Context != nil {
		ctx = v.plan.Context(ctx, root)
	}
	if r := v.roots[RootID(root)]; r != nil && r.Outside && v.plan.Public != nil {
		ctx = v.plan.Public(ctx)
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
// began is when the server's turn was taken.
func (v *visit) attempt(ctx context.Context, s *host, p *Page, buf *[]byte, began time.Time) time.Duration {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, v.plan.Limits.Time)
	defer cancel()
	root := p.URL
	if p.root != nil && strings.HasPrefix(p.URL, p.root.URL) {
		root = p.root.URL
	}
	strange := v.strange(p)
	if strange {
		ctx = v.plan.Public(ctx)
	}
	if s.polite && began != (time.Time{}) && s.delay() > 0 {
		ctx = v.traced(ctx, s)
	}
	resp, err := v.ask(ctx, p, root)
	if err != nil {
		if whole.Err() == nil {
			p.Outcome, p.Why = Failed, why(err)
			if strange && errors.Is(err, iofs.ErrPermission) {
				return -1 // its server was not asked, and is not to be left alone for it
			}
			v.mu.Lock()
			v.noAnswer(s, err)
			v.mu.Unlock()
		}
		return -1
	}
	defer resp.Body.Close()
	if s.polite {
		v.answered(s, began, resp)
	}
	p.doc.Status = resp.StatusCode
	switch code := resp.StatusCode; {
	case code == http.StatusOK && isListing(resp) && !s.polite:
		v.walk(whole, s, p, resp)
	case code == http.StatusOK && isListing(resp) && !isWeb(s.origin):
		v.listing(whole, p, resp)
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
		p.Outcome, p.Why = Gone, why(errors.New(resp.Status))
		v.missed(s, p)
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return retryAfter(resp.Header)
	default:
		p.Outcome, p.Why = Failed, why(errors.New(resp.Status))
	}
	return -1
}

// missed has a document that is not there, or not any more, stay where one time
// is no evidence: servers say so by mistake.
func (v *visit) missed(s *host, p *Page) {
	switch stays := v.stays(&p.doc); {
	case !p.Stored:
		p.Outcome = Failed
	case s.polite && stays != "":
		p.Outcome, p.Why = Failed, p.Why+stays
	}
}

// stays notes that a document which is stored could not be had of its server,
// and says why it stays for now: "" when it does not.
func (v *visit) stays(d *Doc) string {
	if v.plan.GoneAfter <= 0 {
		return ""
	}
	if d.Missing.IsZero() {
		d.Missing = time.Now()
	}
	left := v.plan.GoneAfter - time.Since(d.Missing)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("; kept until it has been so for %v", v.plan.GoneAfter)
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
	if err != nil || polite(p.URL) || resp.StatusCode != http.StatusMovedPermanently ||
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
		!(v.life(d) > 0 && time.Since(d.Handed) >= v.life(d))
}

// life is how long what the Handler keeps of a document is good for, and refresh
// after how long it is to hear that it still is: in time for it, if that is sooner
// than it asks for.
func (v *visit) life(d *Doc) time.Duration {
	if d.Life == 0 {
		return v.plan.Life
	}
	return d.Life - min(d.Life/10, time.Minute)
}

func (v *visit) refresh(d *Doc) time.Duration {
	r := v.plan.Refresh
	if d.Refresh > 0 {
		r = d.Refresh
	}
	if d.Life > 0 && r > 0 {
		r = min(r, d.Life/2)
	}
	return r
}

func (v *visit) unchanged(p *Page) {
	p.Outcome = Unchanged
	r := v.refresh(&p.doc)
	p.Due = r > 0 && time.Since(p.doc.Handed) >= r
}

func (v *visit) moved(p *Page, location string) {
	b := newBase(p.URL)
	to, err := b.resolve(location)
	if isWeb(to) {
		to = Strip(to, v.plan.Strip)
	}
	switch {
	case location == "" || err != nil:
		p.Outcome, p.Why = Failed, "redirected to nowhere"
	case !v.leads(p, to):
		v.elsewhere(p, to)
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

// leads reports whether a redirect may be followed: to the same host, or one
// that may count for the page's root.
func (v *visit) leads(p *Page, to string) bool {
	if sameHost(Origin(to), Origin(p.URL)) {
		return true
	}
	if p.root == nil || !p.root.access(to) {
		return false
	}
	if sameHost(Origin(to), Origin(p.root.URL)) {
		return true
	}
	ok, _ := p.root.HostFilter.Admits(FilterHost(to))
	return ok && p.root.Hosts > 1
}

// elsewhere settles a page whose server names another host for it. That one
// which is stored is gone with it is not said by one answer, which may be that of
// a gateway that asks for a password.
func (v *visit) elsewhere(p *Page, to string) {
	p.Outcome, p.Why = Excluded, "redirected to another host: "+clip(to)
	if p.Stored {
		if stays := v.stays(&p.doc); stays != "" {
			p.Outcome, p.Why = Failed, p.Why+stays
		}
	}
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
