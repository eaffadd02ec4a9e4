// Package http1 reads and writes the messages of HTTP/1.1 as a shared cache has to
// (RFC 9112): strict with what clients send, so that no two programs on the way see
// different messages in the same bytes, and patient with what servers answer.
//
// It is not net/http: a cache forwards the fields it does not know in the order and
// the case they came in, relays 1xx, reads a body of unknown coding to the end of
// the connection, and makes no map and no string it does not need for a hit.
package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// What the length of a body can be, besides a number of bytes.
const (
	Chunked    = -1 // in chunks
	UntilClose = -2 // all until the connection ends; of responses only
)

// A Request is the head of a request.
type Request struct {
	Method string
	Target string // as it was sent: origin, absolute, authority or asterisk form
	Minor  int    // of version 1.x
	Header Header
	Length int64 // of the body that follows, or Chunked
}

// A Response is the head of a response.
type Response struct {
	Minor  int
	Status int
	Reason string
	Header Header
}

// Limits bound a head. A field of 0 means its default.
type Limits struct {
	Line   int // bytes of a line, 8 KiB
	Head   int // bytes in all, 64 KiB
	Fields int // 128
}

func (l Limits) orDefault() Limits {
	if l.Line == 0 {
		l.Line = 8 << 10
	}
	if l.Head == 0 {
		l.Head = 64 << 10
	}
	if l.Fields == 0 {
		l.Fields = 128
	}
	return l
}

// An Error is a message that is refused, with the status that tells its sender.
type Error struct {
	Status  int
	Trouble string
}

func (e *Error) Error() string { return e.Trouble }

func refuse(status int, format string, arg ...any) error {
	return &Error{status, fmt.Sprintf(format, arg...)}
}

// head reads the lines of one head within limits.
type head struct {
	r    *bufio.Reader
	lim  Limits
	left int
	lax  bool   // a line may end with LF alone: of a server
	text string // what is left of a head that came whole, which lines are cut from; "" if it did not
}

// string is line as a string: a piece of the head, where that came whole.
func (h *head) string(long int) (string, error) {
	if h.text == "" {
		b, err := h.line(long)
		return string(b), err
	}
	end := strings.IndexByte(h.text, '\n')
	if end+1 > h.lim.Line {
		return "", refuse(long, "a line of over %d bytes", h.lim.Line)
	}
	s := h.text[:end]
	h.text = h.text[end+1:]
	n := len(s) - 1
	if n < 0 || s[n] != '\r' {
		return "", refuse(400, "a line that ends with LF alone")
	}
	if i := strings.IndexAny(s[:n], "\r\x00"); i >= 0 {
		return "", refuse(400, "byte %#x in a head", s[i])
	}
	return s[:n], nil
}

// line reads a line without its end. What it returns holds until the next.
func (h *head) line(long int) ([]byte, error) {
	b, err := h.r.ReadSlice('\n')
	var more []byte
	for errors.Is(err, bufio.ErrBufferFull) && len(more)+len(b) <= min(h.lim.Line, h.left) {
		more = append(more, b...)
		b, err = h.r.ReadSlice('\n')
	}
	if more != nil {
		b = append(more, b...)
	}
	switch {
	case len(b) > min(h.lim.Line, h.left) || errors.Is(err, bufio.ErrBufferFull):
		return nil, refuse(long, "a line of over %d bytes, or a head of over %d", h.lim.Line, h.lim.Head)
	case err == io.EOF && len(b) == 0:
		return nil, io.EOF
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	h.left -= len(b)
	b = b[:len(b)-1]
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	} else if !h.lax {
		return nil, refuse(400, "a line that ends with LF alone")
	}
	if i := bytes.IndexAny(b, "\r\x00"); i >= 0 {
		status := 400
		if h.lax {
			status = 502
		}
		return nil, refuse(status, "byte %#x in a head", b[i])
	}
	return b, nil
}

// ReadRequest reads the head of a request. An *Error tells what to answer before
// the connection is closed; io.EOF, that there is no request any more.
func ReadRequest(r *bufio.Reader, lim Limits) (*Request, error) {
	q := new(Request)
	if err := q.Read(r, lim); err != nil {
		return nil, err
	}
	return q, nil
}

// Read is ReadRequest into a request that is used again: its Header keeps its
// place, and what was in it is lost.
func (q *Request) Read(r *bufio.Reader, lim Limits) error {
	h := head{r: r, lim: lim.orDefault()}
	h.left = h.lim.Head
	*q = Request{Header: q.Header[:0]}
	if b, _ := r.Peek(r.Buffered()); len(b) <= h.lim.Head {
		if end := bytes.Index(b, headEnd); end >= 0 {
			h.text = string(b[:end+len(headEnd)])
			r.Discard(len(h.text))
		}
	}
	s, err := h.string(414)
	if err == nil && s == "" { // one empty line before is let pass (RFC 9112, 2.2)
		s, err = h.string(414)
	}
	if err != nil {
		return err
	}
	method, rest, ok1 := strings.Cut(s, " ")
	target, version, ok2 := strings.Cut(rest, " ")
	switch {
	case !ok1 || !ok2 || !isToken(method) || !isTarget(target):
		return refuse(400, "'%.60q' is not METHOD TARGET HTTP/1.x", s)
	case len(version) != 8 || version[:7] != "HTTP/1." || version[7] < '0' || version[7] > '9':
		return refuse(505, "version '%.20q'", version)
	}
	q.Method, q.Target, q.Minor = method, target, int(version[7]-'0')
	if q.Header, err = h.fields(q.Header); err != nil {
		return noEOF(err)
	}
	return q.frame()
}

var headEnd = []byte("\r\n\r\n")

// frame finds how long the body is. What could be read in two ways is refused
// (RFC 9112, 6.3 and 11.2).
func (q *Request) frame() error {
	hosts := 0
	for v := range q.Header.Values("Host") {
		if hosts++; hosts > 1 || strings.ContainsAny(v, " \t,/@?#") {
			return refuse(400, "Host is there twice, or is no host")
		}
	}
	if hosts == 0 && q.Minor > 0 {
		return refuse(400, "there is no Host")
	}
	coding, coded := q.Header.Get("Transfer-Encoding")
	length, lengths := "", 0
	for v := range q.Header.Values("Content-Length") {
		length = v
		lengths++
	}
	switch {
	case coded && lengths > 0:
		return refuse(400, "both Transfer-Encoding and Content-Length")
	case coded && q.Minor == 0:
		return refuse(400, "Transfer-Encoding in HTTP/1.0")
	case coded && !strings.EqualFold(coding, "chunked"):
		return refuse(501, "Transfer-Encoding '%.40s'", coding)
	case coded:
		q.Length = Chunked
		return nil
	case lengths > 1:
		return refuse(400, "Content-Length is there twice")
	case lengths == 1:
		n, ok := decimal(length)
		if !ok {
			return refuse(400, "Content-Length '%.40s'", length)
		}
		q.Length = n
	}
	return nil
}

// ReadResponse reads the head of a response, of any status: those of 1xx come
// before the one that counts.
func ReadResponse(r *bufio.Reader, lim Limits) (*Response, error) {
	h := head{r: r, lim: lim.orDefault(), lax: true}
	h.left = h.lim.Head
	b, err := h.line(502)
	if err != nil {
		return nil, err
	}
	p := &Response{}
	version, rest, _ := strings.Cut(string(b), " ")
	code, reason, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, ok := decimal(code)
	switch {
	case len(version) != 8 || version[:7] != "HTTP/1." || version[7] < '0' || version[7] > '9':
		return nil, refuse(502, "'%.40q' is not HTTP/1.x", b)
	case !ok || len(code) != 3 || status < 100:
		return nil, refuse(502, "status '%.20q'", code)
	}
	p.Minor, p.Status, p.Reason = int(version[7]-'0'), int(status), reason
	if p.Header, err = h.fields(nil); err != nil {
		return nil, noEOF(err)
	}
	return p, nil
}

// BodyLength is how long the body of the answer to a request of a method is.
func (p *Response) BodyLength(method string) (int64, error) {
	switch {
	case method == "HEAD" || p.Status < 200 || p.Status == 204 || p.Status == 304:
		return 0, nil
	case method == "CONNECT" && p.Status < 300:
		return UntilClose, nil
	}
	last := ""
	for m := range p.Header.Members("Transfer-Encoding") {
		last = m
	}
	switch {
	case strings.EqualFold(last, "chunked") && p.Minor > 0:
		return Chunked, nil
	case last != "":
		return UntilClose, nil // a coding that is not known, or one of HTTP/1.0
	}
	length := int64(-1)
	for m := range p.Header.Members("Content-Length") {
		n, ok := decimal(m)
		if !ok || length >= 0 && n != length {
			return 0, refuse(502, "Content-Length '%.40s'", p.Header.Text("Content-Length"))
		}
		length = n
	}
	if length < 0 {
		return UntilClose, nil
	}
	return length, nil
}

// fields appends the lines of a header up to the empty one.
func (h *head) fields(all Header) (Header, error) {
	for {
		s, err := h.string(431)
		if err != nil {
			return nil, err
		}
		switch {
		case s == "":
			return all, nil
		case s[0] == ' ' || s[0] == '\t':
			if !h.lax || len(all) == 0 {
				return nil, refuse(400, "a field that is folded over lines")
			}
			last := &all[len(all)-1]
			if last.Value = strings.TrimSpace(last.Value + " " + strings.TrimSpace(s)); len(last.Value) > h.lim.Line {
				return nil, refuse(431, "a field of over %d bytes", h.lim.Line)
			}
			continue
		case len(all) == h.lim.Fields:
			return nil, refuse(431, "over %d fields", h.lim.Fields)
		}
		name, value, ok := strings.Cut(s, ":")
		if h.lax { // a server's blanks before the colon are taken off (RFC 9112, 5.1)
			name = strings.TrimRight(name, " \t")
		}
		if !ok || !isToken(name) {
			if h.lax {
				continue // of a server that is lost on one line, the others count
			}
			return nil, refuse(400, "'%.60q' is not NAME: VALUE", s)
		}
		all = append(all, Field{name, strings.Trim(value, " \t")})
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// isToken reports whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// isTarget reports whether s can be the target of a request.
func isTarget(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != ""
}

// decimal reads digits and nothing else.
func decimal(s string) (int64, bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
