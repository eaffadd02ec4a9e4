package crawl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"harvest/gather/dup"
)

// unknownSize is what a document is taken to need whose size is not known.
const unknownSize = 256 << 10

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
	want := int64(unknownSize)
	if p.Size >= 0 {
		want = min(p.Size, int64(v.plan.Limits.Head))
	}
	share, err := v.memory.take(ctx, want)
	if err != nil {
		p.Outcome, p.Why = Failed, why(err)
		return
	}
	defer share.give()
	b := &body{r: resp.Body, left: v.plan.Limits.Body, n: &v.c.In}
	if !polite(p.URL) { // it costs nobody's network
		b.left, b.until = math.MaxInt64, time.Now().Add(v.plan.Limits.Time/2)
	}
	head, end, err := readHead(b, (*buf)[:0], v.plan.Limits.Head, func(n int) error { return share.grow(ctx, int64(n)) })
	if *buf = head; cap(head) > 1<<20 {
		*buf = nil // one big document does not cost for ever
	}
	if err != nil {
		p.Outcome, p.Why = Failed, why(err)
		return
	}
	p.Outcome, p.Head, p.rest = Fetched, head, b
	switch {
	case !end:
		p.Rest = b
	case !b.cut:
		p.Size = int64(len(head))
	}
	v.refs(p, resp.Header)
	if p.Outcome == Fetched {
		v.handle(ctx, p)
	}
	p.Head, p.Rest = nil, nil
	same := p.MD5 != [16]byte{} && p.MD5 == p.Old && p.doc.Modified == before
	if p.Outcome == Fetched && same && p.flags&anyhow == 0 && v.current(&p.doc) {
		v.unchanged(p) // by its content; the server has no better way to tell
	}
	v.copies(p)
}

// refs finds what a page of a server refers to and what it asks of robots.
func (v *visit) refs(p *Page, h http.Header) {
	if !polite(p.URL) {
		return
	}
	var d Directives
	for _, tag := range h.Values("X-Robots-Tag") {
		d.Header(tag, v.plan.Agent)
	}
	markup := isHTML(p)
	follow := p.root != nil && !p.root.Leaf && p.flags&byHand == 0 && len(p.root.Enumeration) == 0
	switch {
	case markup:
		r := findRefs(p.Head, v.plan.Agent, &d)
		base := r.baseOf(p.URL)
		if follow && !d.NoFollow {
			p.links = r.resolve(&base, p.URL, v.wants(p))
		}
		p.original = r.original(&base, p.URL)
	case follow && p.root.Feeds && !d.NoFollow && isFeed(p.Head):
		for m, err := range ParseFeed(bytes.NewReader(p.Head), p.URL) {
			if err == nil {
				p.mention(m)
			}
		}
	}
	v.strip(p.links)
	p.NoArchive = d.NoArchive
	if why := d.Excluded(time.Now()); why != "" {
		p.Outcome, p.Why = Excluded, why
		return
	}
	if follow {
		shape := dup.Shape(p.Head, markup)
		p.says = &shape
	}
}

// strip takes the parameters out of links that the plan does not want in them.
func (v *visit) strip(links []string) {
	if len(v.plan.Strip) == 0 {
		return
	}
	for i, u := range links {
		if isWeb(u) && strings.IndexByte(u, '?') >= 0 {
			links[i] = Strip(u, v.plan.Strip)
		}
	}
}

// mention adds what a feed or a sitemap names to a page's links.
func (p *Page) mention(m Mention) {
	p.links = append(p.links, m.URL)
	if !m.Modified.IsZero() {
		if p.dates == nil {
			p.dates = make(map[string]time.Time)
		}
		p.dates[m.URL] = m.Modified
	}
}

// wants returns to which origins a link of a page may lead and be of use.
func (v *visit) wants(p *Page) func(origin string) bool {
	own := Origin(p.URL)
	if len(v.roots) == 1 && p.root.Hosts <= 1 && len(p.root.Access) == 0 {
		return func(origin string) bool { return sameHost(origin, own) }
	}
	return polite
}

// isFeed reports whether a document is a feed in XML, by how it begins.
func isFeed(b []byte) bool {
	b = bytes.TrimLeft(b[:min(len(b), 2048)], "\ufeff \t\r\n")
	if len(b) == 0 || b[0] != '<' {
		return false
	}
	name := rootName(b)
	return name == "rss" || name == "feed" || name == "rdf"
}

// copies makes a page an alias of the one that it says it is a copy of, if that
// is stored, of the same server, and was the same bytes.
func (v *visit) copies(p *Page) {
	if p.Outcome != Fetched && p.Outcome != Unchanged || p.original == "" || p.MD5 == [16]byte{} || p.root == nil || p.flags&byHand != 0 {
		return
	}
	same := false
	err := v.f.db.View(func(tx *bbolt.Tx) error {
		d, ok := v.f.lookup(tx, p.original)
		same = ok && d.State == Stored && d.MD5 == p.MD5 && d.Server == p.doc.Server
		return nil
	})
	if err == nil && same {
		p.Outcome, p.Why, p.Due, p.Result, p.Weight = Moved, "to "+p.original, false, nil, 0
		p.links = []string{p.original}
	}
}

// isHTML reports whether a page is one, as its server says or, when that says
// nothing, as it looks.
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
// one that grow has room for, and reports whether that was all.
func readHead(r io.Reader, buf []byte, limit int, grow func(n int) error) (head []byte, end bool, err error) {
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			n := min(max(2*cap(buf), 32<<10), limit)
			if err := grow(n); err != nil {
				return buf, false, err
			}
			bigger := make([]byte, len(buf), n)
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
