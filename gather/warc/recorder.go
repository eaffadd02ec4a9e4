package warc

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Recorder keeps what goes through it, once it was told where. It stands next
// to the network, below whatever decodes bodies. Secrets do not get into files:
// Authorization and Proxy-Authorization are left out.
//
// What cannot be written is told, and changes nothing for those who fetch.
type Recorder struct {
	trouble func(error)
	w       atomic.Pointer[Writer]
	seen    seen
}

// NewRecorder returns a Recorder that keeps nothing yet. Trouble is told what
// could not be written.
func NewRecorder(trouble func(error)) *Recorder { return &Recorder{trouble: trouble} }

// To has everything from now on written by w, nothing when w is nil. It returns
// the Writer before.
func (r *Recorder) To(w *Writer) *Writer { return r.w.Swap(w) }

// Writer returns what writes, nil when nothing does.
func (r *Recorder) Writer() *Writer { return r.w.Load() }

// Wrap returns a transport that keeps what goes through next.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return recording{r, next} }

type recording struct {
	r    *Recorder
	next http.RoundTripper
}

// CloseIdleConnections does so of the transport below.
func (t recording) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t recording) RoundTrip(req *http.Request) (*http.Response, error) {
	w := t.r.w.Load()
	if w == nil {
		return t.next.RoundTrip(req)
	}
	x := &exchange{r: t.r, w: w, began: time.Now(), uri: target(req), method: req.Method}
	traced := req.WithContext(httptrace.WithClientTrace(req.Context(), x.trace()))
	resp, err := t.next.RoundTrip(traced)
	if err != nil {
		x.failed(req.Context(), err)
		return nil, err
	}
	resp.Request = req
	x.answered(req, resp)
	resp.Body = &recordedBody{ReadCloser: resp.Body, x: x}
	return resp, nil
}

// target is the URL of a request as records name it.
func target(req *http.Request) string {
	u := *req.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	return u.String()
}

// An exchange is a request and its response on their way into a file.
type exchange struct {
	r      *Recorder
	w      *Writer
	began  time.Time
	uri    string
	method string

	// mu guards what the transport's goroutines tell.
	mu   sync.Mutex
	ip   string
	sent []Field

	request, response []byte // heads
	status            int
	protocol          string
	sum               hash.Hash
	body              spool
	once              sync.Once
}

func (x *exchange) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			host, _, err := net.SplitHostPort(c.Conn.RemoteAddr().String())
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.sent = nil; err == nil && net.ParseIP(host) != nil { // or a proxy's socket
				x.ip = host
			}
		},
		WroteHeaderField: func(name string, values []string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			for _, v := range values {
				x.sent = append(x.sent, Field{name, v})
			}
		},
	}
}

// secret are the fields of a request that are not written.
var secret = map[string]bool{"authorization": true, "proxy-authorization": true}

// head is the request as it was sent; that of HTTP/2 as HTTP/1.1 would have it,
// which is what readers of these files know.
func (x *exchange) head(req *http.Request) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", req.Method, req.URL.RequestURI())
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	b = fmt.Appendf(b, "Host: %s\r\n", oneLine(host))
	sent := x.sent
	if sent == nil { // a transport that tells nothing
		for _, name := range slices.Sorted(maps.Keys(req.Header)) {
			for _, v := range req.Header[name] {
				sent = append(sent, Field{name, v})
			}
		}
	}
	for _, f := range sent {
		name := strings.ToLower(f.Name)
		if secret[name] || name == "host" || strings.HasPrefix(name, ":") {
			continue
		}
		b = fmt.Appendf(b, "%s: %s\r\n", f.Name, oneLine(f.Value))
	}
	return append(b, "\r\n"...)
}

// answered notes the response but for its body.
func (x *exchange) answered(req *http.Request, resp *http.Response) {
	x.request = x.head(req)
	var b bytes.Buffer
	status := oneLine(resp.Status)
	if status == "" {
		status = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	minor := resp.ProtoMinor
	if resp.ProtoMajor != 1 {
		minor = 1
	}
	fmt.Fprintf(&b, "HTTP/1.%d %s\r\n", minor, status)
	resp.Header.Write(&b) // to memory
	b.WriteString("\r\n")
	x.response, x.status = b.Bytes(), resp.StatusCode
	if resp.ProtoMajor == 2 {
		x.protocol = "h2"
	}
	x.sum = sha1.New()
}

// failed writes that there was no response.
func (x *exchange) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // nobody wanted it any more
	}
	fields := fmt.Appendf(nil, "error: %s\r\n", oneLine(err.Error()))
	h := x.fields("application/warc-fields")
	x.tell(x.w.Write(Entry{Type: Metadata, Date: x.began, Header: h, Head: fields}))
}

// fields are those that all records of an exchange have.
func (x *exchange) fields(content string) Header {
	var h Header
	h.Add("WARC-Target-URI", x.uri)
	x.mu.Lock()
	h.Add("WARC-IP-Address", x.ip)
	x.mu.Unlock()
	h.Add("WARC-Protocol", x.protocol)
	h.Add("Content-Type", content)
	return h
}

func (x *exchange) tell(err error) {
	if err != nil {
		x.r.trouble(fmt.Errorf("warc: %s: %w", x.uri, err))
	}
}

// take keeps a part of the body.
func (x *exchange) take(p []byte) {
	x.sum.Write(p)
	x.body.write(x.w.dir, p)
}

// ended writes the records of the exchange. Why tells what ended the body before
// its time, in the words of the standard.
func (x *exchange) ended(why string) {
	x.once.Do(func() {
		defer x.body.close()
		err := x.body.err
		if err == nil {
			err = x.w.Write(x.entries(why)...)
		}
		x.tell(err)
	})
}

func (x *exchange) entries(why string) []Entry {
	id := NewID()
	payload := digest(x.sum)
	res := Entry{Type: Response, ID: id, Date: x.began, Head: x.response, Header: x.fields("application/http;msgtype=response")}
	res.Header.Add("WARC-Payload-Digest", payload)
	res.Header.Add("WARC-Truncated", why)
	same, known := earlier{}, false
	if why == "" && x.body.size > 0 {
		same, known = x.r.seen.met(payload, earlier{id, x.uri, x.began})
	}
	switch {
	case x.status == http.StatusNotModified:
		res.Type = Revisit
		res.Header.Add("WARC-Profile", notModified)
		res.Header.Add("WARC-Refers-To-Target-URI", x.uri)
	case known:
		res.Type = Revisit
		res.Header.Add("WARC-Profile", identical)
		res.Header.Add("WARC-Refers-To", same.id)
		res.Header.Add("WARC-Refers-To-Target-URI", same.uri)
		res.Header.Add("WARC-Refers-To-Date", same.date.UTC().Format("2006-01-02T15:04:05.000Z"))
	default:
		res.Body, res.Size = x.body.reader(), x.body.size
	}
	req := Entry{Type: Request, Date: x.began, Head: x.request, Header: x.fields("application/http;msgtype=request")}
	req.Header.Add("WARC-Concurrent-To", id)
	meta := Entry{Type: Metadata, Date: x.began, Header: Header{
		{"WARC-Target-URI", x.uri}, {"WARC-Concurrent-To", id}, {"Content-Type", "application/warc-fields"},
	}, Head: fmt.Appendf(nil, "fetchTimeMs: %d\r\n", time.Since(x.began).Milliseconds())}
	return []Entry{res, req, meta}
}

// Profiles of revisits.
const (
	identical   = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	notModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// digest is a sum as records have it.
func digest(h hash.Hash) string { return "sha1:" + base32.StdEncoding.EncodeToString(h.Sum(nil)) }

// A recordedBody is a response's body that is kept as it is read.
type recordedBody struct {
	io.ReadCloser
	x *exchange
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.x.take(p[:n])
	}
	switch {
	case err == io.EOF:
		b.x.ended("")
	case errors.Is(err, context.DeadlineExceeded):
		b.x.ended("time")
	case err != nil:
		b.x.ended("disconnect")
	}
	return n, err
}

// Close ends a body that was not read to its end.
func (b *recordedBody) Close() error {
	if b.x.status == http.StatusNotModified || b.x.method == http.MethodHead {
		b.x.ended("")
	}
	b.x.ended("length")
	return b.ReadCloser.Close()
}

// seen are payloads that were written, by their digest: the last of them, since
// its memory is bounded.
type seen struct {
	mu       sync.Mutex
	now, old map[string]earlier
}

// An earlier record has a payload in full.
type earlier struct {
	id, uri string
	date    time.Time
}

const maxSeen = 1 << 15

// met returns the record with a payload, if one is known, and else notes that
// this one has it.
func (s *seen) met(payload string, this earlier) (earlier, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.now[payload]; ok {
		return e, true
	}
	e, ok := s.old[payload]
	if !ok {
		e = this
	}
	if s.now == nil || len(s.now) >= maxSeen {
		s.now, s.old = make(map[string]earlier), s.now
	}
	s.now[payload] = e
	return e, ok
}
