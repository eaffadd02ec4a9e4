// Package fetch is how a Gatherer reaches its sources: one http.RoundTripper
// for http, https, ftp, ftps, gopher, nntp, mbox and file URLs, over connections
// that are kept.
//
// It answers one request at a time and decides nothing: it follows no
// redirect, waits for no host, reads no robots.txt and bounds no body but by how
// much a coded one may grow and how slowly one may come. The rest is the
// caller's. Schemes are added here, so that a crawl never knows which protocol an
// object came by: what a server of another protocol says is told as HTTP does,
// and what holds other objects (a folder, a menu, a news group, a mailbox)
// answers with a listing, ListingType.
package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"time"
)

// Options say how to reach sources. The zero value is good.
type Options struct {
	Dial   time.Duration // to connect, and again for the TLS handshake; 10s
	Header time.Duration // from the request to the response's header, or a server's line; 30s
	Idle   time.Duration // an unused connection is kept this long; 90s
	Conns  int           // connections to one http or https server at most; 8
	Kept   int           // unused connections at most, for http and https, and again for ftp and nntp; 256

	Ratio int64         // bytes of a decoded body for each byte received, once there are 10 MiB; 200
	Grace time.Duration // a body may come at any pace for so long; 30s
	Rate  int64         // then bytes a second on the average, at least; 256

	Secrets *Secrets // what may be told to whom; nil is nothing
	Local   []Local  // URLs that are files here as well
	Cookies bool     // those that servers set are sent back, as long as the Transport lives
	Proxy   string   // see CheckProxy

	// Via answers all requests but those for files, in place of the network:
	// a cache. Nil is the network.
	Via http.RoundTripper
	// Wrap is given what sends requests of http and https, and returns what is
	// used in its place: it sees requests as they were asked for, but not
	// passwords, and bodies as they are on the wire, coded. May be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Lookup finds a host's addresses. Nil is the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// TLS is used for https, ftps and nntps. Nil trusts what the system trusts.
	TLS *tls.Config
}

func (o *Options) defaults() {
	duration := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	duration(&o.Dial, 10*time.Second)
	duration(&o.Header, 30*time.Second)
	duration(&o.Idle, 90*time.Second)
	duration(&o.Grace, 30*time.Second)
	if o.Conns <= 0 {
		o.Conns = 8
	}
	if o.Kept <= 0 {
		o.Kept = 256
	}
	if o.Ratio <= 0 {
		o.Ratio = 200
	}
	if o.Rate <= 0 {
		o.Rate = 256
	}
}

// Header fields that an answer may have besides what HTTP knows. Servers cannot
// set them.
const (
	// Via tells where the answer is from: net, cache, or local for a URL that
	// Options.Local made a file.
	Via = "X-Harvest-Via"
	// Partial, when not empty, says that a listing has only what is new since the
	// one whose ETag the request named: what it lacks has not vanished.
	Partial = "X-Harvest-Partial"
	// Title and Abstract are what the server says of the object, percent-encoded
	// as a URL's path is.
	Title    = "X-Harvest-Title"
	Abstract = "X-Harvest-Abstract"
)

// Transport is an http.RoundTripper for the schemes of this package. It may be
// used concurrently, and by several Gatherers, which then share connections,
// cookies and secrets.
type Transport struct {
	o     Options
	dev   dialer
	web   *web
	keep  keeper // control connections of ftp and nntp
	facts *facts
	boxes *boxes
	plus  *plusServers
}

// New returns a Transport.
func New(o Options) *Transport {
	o.defaults()
	t := &Transport{o: o, keep: keeper{max: o.Kept, life: o.Idle}, facts: newFacts(), boxes: newBoxes(), plus: newPlusServers()}
	t.dev = dialer{timeout: o.Dial, lookup: o.Lookup, evict: t.CloseIdleConnections, stats: newCounters()}
	t.web = newWeb(&t.o, &t.dev)
	return t
}

// RoundTrip answers a request. What a server or a file system says is told as
// HTTP does: 404 for a file that is not there, 403 for one that may not be read.
// Errors of reading itself are errors, never a status, so that a broken disk is
// not taken for a file that went away.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	scheme := req.URL.Scheme
	if scheme == "http" || scheme == "https" {
		return t.remote(req, t.web.RoundTrip)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if no := onlyGet(req); no != nil {
		return no, nil
	}
	switch scheme {
	case "file", "mbox":
		if isPublic(req.Context()) {
			return answer(req, http.StatusForbidden, "not public"), nil
		}
		if scheme == "mbox" {
			return t.mbox(req)
		}
		return file(req)
	case "ftp", "ftps":
		return t.remote(req, t.ftp)
	case "gopher":
		return t.remote(req, t.gopher)
	case "nntp", "nntps", "news":
		return t.remote(req, t.nntp)
	}
	return nil, fmt.Errorf("%s: unknown scheme %q", req.URL.Redacted(), scheme)
}

// remote answers from here if the URL is of a file that is here as well, then
// from a cache if there is one, then by asking.
func (t *Transport) remote(req *http.Request, ask func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	via := "net"
	resp := t.local(req)
	if resp != nil {
		via = "local"
		if req.Body != nil {
			req.Body.Close()
		}
	} else {
		if t.o.Via != nil {
			via, ask = "cache", t.o.Via.RoundTrip
		}
		var err error
		if resp, err = ask(req); err != nil {
			return nil, err
		}
	}
	resp.Header.Set(Via, via)
	return resp, nil
}

// CloseIdleConnections closes the connections that are kept but not in use.
func (t *Transport) CloseIdleConnections() {
	t.web.CloseIdleConnections()
	t.keep.close()
}
