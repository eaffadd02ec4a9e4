// Package fetch is how a Gatherer reaches its sources: one http.RoundTripper
// for http, https and file URLs, over connections that are kept.
//
// It answers one request at a time and decides nothing: it follows no
// redirect, waits for no host, reads no robots.txt and bounds no body. Those are
// the caller's. Schemes are added here, so that a crawl never knows which
// protocol an object came by.
package fetch

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// Options say how to reach http and https servers. The zero value is good.
type Options struct {
	Dial   time.Duration // to connect, and again for the TLS handshake; 10s
	Header time.Duration // from the request to the response's header; 30s
	Idle   time.Duration // an unused connection is kept this long; 90s
	Conns  int           // connections to one host at most; 8
}

// Transport is an http.RoundTripper for http, https and file URLs. It may be
// used concurrently, and by several Gatherers, which then share connections.
type Transport struct {
	web *http.Transport
}

// New returns a Transport.
func New(o Options) *Transport {
	if o.Dial <= 0 {
		o.Dial = 10 * time.Second
	}
	if o.Header <= 0 {
		o.Header = 30 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = 90 * time.Second
	}
	if o.Conns <= 0 {
		o.Conns = 8
	}
	dialer := &net.Dialer{Timeout: o.Dial, KeepAlive: 30 * time.Second}
	return &Transport{web: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    o.Dial,
		ResponseHeaderTimeout:  o.Header,
		IdleConnTimeout:        o.Idle,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    o.Conns,
		MaxConnsPerHost:        o.Conns,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}}
}

// RoundTrip answers a request. What a file system says is told as HTTP does:
// 404 for a file that is not there, 403 for one that may not be read. Errors of
// reading itself are errors, never a status, so that a broken disk is not taken
// for a file that went away.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.URL.Scheme {
	case "http", "https":
		return t.web.RoundTrip(req)
	case "file":
		return file(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, fmt.Errorf("%s: unknown scheme %q", req.URL.Redacted(), req.URL.Scheme)
}

// CloseIdleConnections closes the connections that are kept but not in use.
func (t *Transport) CloseIdleConnections() { t.web.CloseIdleConnections() }
