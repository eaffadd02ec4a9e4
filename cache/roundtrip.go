package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"harvest/cache/http1"
)

// RoundTrip answers a request of a caller in this process by the rules for all
// clients, but that its owner and not the network is asking: the lists of URLs and
// of inner addresses hold all the same.
func (c *Cache) RoundTrip(req *http.Request) (*http.Response, error) {
	q, err := fromHTTP(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if !c.begin() {
		return nil, os.ErrClosed
	}
	defer c.work.Done()
	a := c.answer(req.Context(), q)
	if req.Body != nil {
		req.Body.Close()
	}
	if a.outcome.how == "failed" && a.outcome.server == 0 {
		a.Close()
		c.done(q, a, 0, nil)
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %s", q.url, a.outcome.why)
	}
	return c.toHTTP(req, q, a), nil
}

// fromHTTP is a caller's request as the cache has it.
func fromHTTP(req *http.Request) (*request, error) {
	l, err := parseURL(req.URL.String())
	if err != nil {
		return nil, err
	}
	q := &request{method: req.Method, door: "go", minor: 1, began: time.Now()}
	if q.method == "" {
		q.method = "GET"
	}
	q.setLocation(l)
	if req.Host != "" && req.Host != req.URL.Host {
		q.host = req.Host
	}
	var h http1.Header
	for name, vs := range req.Header {
		for _, v := range vs {
			if strings.ContainsAny(name+v, "\r\n\x00") {
				return nil, errors.New("a line end in a field")
			}
			h.Add(name, v)
		}
	}
	q.header = h.Forwarded()
	if req.Body != nil && req.Body != http.NoBody {
		q.body, q.length = req.Body, req.ContentLength
		if q.length <= 0 {
			q.length = http1.Chunked
		}
	}
	return q, nil
}

// toHTTP is an answer as a caller has it.
func (c *Cache) toHTTP(req *http.Request, q *request, a *answer) *http.Response {
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, a.reason), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(a.header)), ContentLength: a.length, Request: req, Body: http.NoBody,
	}
	for _, f := range a.header {
		resp.Header.Add(f.Name, f.Value)
	}
	if q.method == "HEAD" && a.v != nil {
		resp.ContentLength = a.v.size
	}
	if resp.ContentLength >= 0 && a.status != 304 && a.status != 204 {
		resp.Header.Set("Content-Length", fmt.Sprint(resp.ContentLength))
	}
	if a.body == nil {
		c.done(q, a, 0, nil)
		return resp
	}
	resp.Body = &noted{ReadCloser: a.body, done: func(n int64, err error) { c.done(q, a, n, err) }}
	return resp
}

// noted is a body whose end is noted.
type noted struct {
	io.ReadCloser
	n    int64
	err  error
	done func(n int64, err error)
}

func (b *noted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

func (b *noted) Close() error {
	if b.done != nil {
		b.done(b.n, b.err)
		b.done = nil
	}
	return b.ReadCloser.Close()
}

// askOther asks for what HTTP does not fetch: ftp and gopher.
func (c *Cache) askOther(ctx context.Context, o *outgoing) (*exchange, error) {
	if c.opt.Other == nil {
		return nil, forbidden{o.scheme + " is not fetched here"}
	}
	host, port := o.hostPort()
	conf := c.conf.Load()
	if !hasPort(conf.ports, port) {
		return nil, forbidden{fmt.Sprintf("port %d", port)}
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, notReached(err)
	}
	for _, a := range addrs {
		if err := conf.mayReach(a); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, o.method, o.location.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	for _, f := range o.header {
		if strings.EqualFold(f.Name, "If-Modified-Since") || strings.EqualFold(f.Name, "If-None-Match") {
			req.Header.Add(f.Name, f.Value)
		}
	}
	asked := time.Now()
	resp, err := c.opt.Other.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, notReached(err)
	}
	return otherExchange(resp, asked, cancel), nil
}

// otherExchange is the answer of another transport.
func otherExchange(resp *http.Response, asked time.Time, cancel func()) *exchange {
	p := &http1.Response{Minor: 1, Status: resp.StatusCode, Reason: statusText(resp.StatusCode)}
	for name, vs := range resp.Header {
		for _, v := range vs {
			if !strings.ContainsAny(v, "\r\n\x00") && !strings.HasPrefix(name, "X-Harvest-") {
				p.Header.Add(name, v)
			}
		}
	}
	x := &exchange{Response: p, length: resp.ContentLength, asked: asked, came: time.Now(), r: resp.Body}
	if x.length < 0 {
		x.length = http1.UntilClose
	}
	x.close = func() error {
		err := resp.Body.Close()
		cancel()
		return err
	}
	return x
}
