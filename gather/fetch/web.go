package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	iofs "io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// A web answers for http and https. A request goes through these, in order:
//
//	cookies   RoundTrip: those of the site, put in and taken out
//	decode    asks for coded bodies and undoes their coding
//	Wrap      what Options say, WARC for one
//	wire      passwords, proxies, the pace of bodies; the connections
type web struct {
	o    *Options
	wire *wire
	next http.RoundTripper // Wrap and wire
	jar  *jar              // nil: no cookies
	dec  *decoders
}

func newWeb(o *Options, d *dialer) *web {
	w := &web{o: o, wire: newWire(o, d), dec: newDecoders(o.Ratio)}
	w.next = w.wire
	if o.Wrap != nil {
		w.next = o.Wrap(w.next)
	}
	if o.Cookies {
		w.jar = newJar()
	}
	return w
}

// RoundTrip answers a request. The request is not changed.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	r := *req
	r.Header = req.Header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if w.jar != nil {
		w.jar.put(&r)
	}
	w.dec.ask(r.Header)
	resp, err := w.next.RoundTrip(&r)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Harvest-") {
			delete(resp.Header, name)
		}
	}
	if w.jar != nil {
		w.jar.take(req.URL, resp)
	}
	w.dec.decode(resp)
	return resp, nil
}

func (w *web) CloseIdleConnections() {
	w.wire.open.CloseIdleConnections()
	w.wire.public.CloseIdleConnections()
}

// A wire sends requests. Those under Public have connections of their own: one
// that was made to a private address for somebody else is not for them.
type wire struct {
	o            *Options
	open, public *http.Transport
	proxy        func(*url.URL) (*url.URL, error)
	stats        *counters
}

func newWire(o *Options, d *dialer) *wire {
	w := &wire{o: o, stats: d.stats}
	w.proxy = proxies(o)
	w.open = o.transport(d, false)
	w.open.Proxy = func(req *http.Request) (*url.URL, error) { return w.proxy(req.URL) }
	w.public = o.transport(d, true)
	return w
}

func (o *Options) transport(d *dialer, public bool) *http.Transport {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		if public { // the context may be of a dial that serves several requests
			ctx = Public(ctx)
		}
		return d.dial(ctx, "http", addr)
	}
	var conf *tls.Config
	if o.TLS != nil {
		conf = o.TLS.Clone()
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    o.Dial,
		ResponseHeaderTimeout:  o.Header,
		IdleConnTimeout:        o.Idle,
		MaxIdleConns:           o.Kept,
		MaxIdleConnsPerHost:    o.Conns,
		MaxConnsPerHost:        o.Conns,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // decode does it
		ForceAttemptHTTP2:      true,
	}
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	via, err := w.proxy(req.URL)
	if err != nil {
		return nil, err
	}
	t := w.open
	if isPublic(req.Context()) {
		if via == nil {
			t = w.public
		} else if err := publicName(req.URL.Hostname()); err != nil {
			return nil, err
		}
	}
	slow, req := newPace(w.o, req)
	if user, password, ok := w.o.Secrets.find("auth", req.URL); ok && req.Header.Get("Authorization") == "" {
		req.Header = req.Header.Clone()
		req.SetBasicAuth(user, password)
	}
	w.stats.of("http").used.Add(1)
	resp, err := t.RoundTrip(req)
	if err != nil {
		slow.end()
		return nil, err
	}
	resp.Body = slow.body(resp.Body)
	return resp, nil
}

// publicName refuses what can be known to be private though a proxy looks it up.
func publicName(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return checkPublic(a)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return fmt.Errorf("host %s is not public: %w", host, iofs.ErrPermission)
	}
	return nil
}

// CheckProxy says whether a text may be Options.Proxy: "" for what the
// environment says (HTTP_PROXY, NO_PROXY …), "none" for no proxy, or the URL of
// an http, https or socks5 proxy, without a password: that is in Secrets.
func CheckProxy(s string) error {
	_, err := parseProxy(s)
	return err
}

func parseProxy(s string) (*url.URL, error) {
	if s == "" || s == "none" {
		return nil, nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("bad proxy: not a url: %w", iofs.ErrInvalid)
	case u.User != nil:
		return nil, fmt.Errorf("bad proxy %s: the password belongs into secrets: %w", u.Redacted(), iofs.ErrInvalid)
	case u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return nil, fmt.Errorf("bad proxy '%s': not http://, https:// or socks5://: %w", s, iofs.ErrInvalid)
	}
	return u, nil
}

// proxies returns what finds the proxy for a URL.
func proxies(o *Options) func(*url.URL) (*url.URL, error) {
	find := func(*url.URL) (*url.URL, error) { return parseProxy(o.Proxy) }
	if o.Proxy == "" {
		find = httpproxy.FromEnvironment().ProxyFunc()
	}
	return func(u *url.URL) (*url.URL, error) {
		p, err := find(u)
		if p == nil || err != nil || p.User != nil {
			return p, err
		}
		if user, password, ok := o.Secrets.find("proxy", p); ok {
			with := *p
			with.User = url.UserPassword(user, password)
			p = &with
		}
		return p, nil
	}
}
