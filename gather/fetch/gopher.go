package fetch

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxMenu bounds one menu of a gopher server, in bytes.
const maxMenu = 16 << 20

// gopher answers for gopher (RFC 1436, URLs by RFC 4266): a menu with a listing,
// anything else with its bytes. The protocol has no status: what a server says in
// the form of a menu with an error is taken for one. Gopher+, where a server has
// it, tells when objects changed and what they are about.
func (t *Transport) gopher(req *http.Request) (*http.Response, error) {
	typ, selector, err := gopherPath(req.URL)
	if err != nil {
		return answer(req, http.StatusBadRequest, err.Error()), nil
	}
	g := &gopherRequest{t: t, req: req, typ: typ, selector: selector, server: hostPort(req.URL)}
	g.slow, g.ask = newPace(&t.o, req)
	resp, err := g.answer()
	var no gopherError
	if errors.As(err, &no) {
		resp, err = answer(req, no.code, no.text), nil
	}
	if err != nil {
		g.slow.end()
		return nil, err
	}
	resp.Body = g.slow.body(resp.Body)
	return resp, nil
}

// gopherPath splits a URL's path into the item's type and its selector.
func gopherPath(u *url.URL) (typ byte, selector string, err error) {
	path := strings.TrimPrefix(u.Path, "/")
	if u.RawQuery != "" || u.ForceQuery {
		q, err := url.PathUnescape(u.RawQuery)
		if err != nil {
			return 0, "", err
		}
		path += "?" + q
	}
	if strings.ContainsAny(path, "\r\n\x00") || len(path) > 4096 {
		return 0, "", fmt.Errorf("not a selector: %w", iofs.ErrInvalid)
	}
	if path == "" {
		return '1', "", nil
	}
	return path[0], path[1:], nil
}

// A gopherError is what a server says instead of an object.
type gopherError struct {
	code int
	text string
}

func (e gopherError) Error() string { return e.text }

func newGopherError(text string) gopherError {
	text = oneLine(text[:min(len(text), 80)])
	low := strings.ToLower(text)
	if strings.Contains(low, "denied") || strings.Contains(low, "forbidden") {
		return gopherError{http.StatusForbidden, text}
	}
	if passing(low) {
		return gopherError{http.StatusServiceUnavailable, text}
	}
	return gopherError{http.StatusNotFound, text}
}

type gopherRequest struct {
	t        *Transport
	req, ask *http.Request // as it came, and with the context that paces it
	slow     *pace
	server   string
	typ      byte
	selector string
}

func (g *gopherRequest) answer() (*http.Response, error) {
	if g.typ == '1' {
		return g.menu()
	}
	if strings.IndexByte("78T2", g.typ) >= 0 && !strings.Contains(g.selector, "\t") {
		return answer(g.req, http.StatusForbidden, "a question, or a terminal: nothing to gather"), nil
	}
	path := "/" + string(g.typ) + g.selector
	f, ok := g.t.facts.get(g.server, path)
	if !ok && g.t.plus.has(g.server) {
		as, err := g.attributes("!", path)
		var no gopherError
		if err != nil && !errors.As(err, &no) {
			return nil, err
		}
		for _, a := range as[:min(len(as), 1)] {
			f, ok = a.fact()
		}
	}
	tag := ""
	if ok {
		tag = f.etag()
	}
	resp := head(g.req, tag, f.modified(), -1)
	resp.Header.Set("Content-Type", gopherTypes[g.typ])
	g.t.facts.tell(resp.Header, g.server, path)
	if resp.StatusCode != http.StatusOK || g.req.Method == http.MethodHead {
		return resp, nil
	}
	body, err := g.fetch(g.selector)
	if err != nil {
		return nil, err
	}
	resp.Body = body
	if g.typ == '0' {
		resp.Body = &undotted{r: body, body: body}
	}
	return resp, nil
}

// gopherTypes are the types of items whose MIME type is known by it.
var gopherTypes = map[byte]string{'0': "text/plain", 'h': "text/html", 'g': "image/gif", 'p': "image/png", 'x': "text/xml", 'M': "message/rfc822", 'd': "application/pdf"}

// fetch sends a line and returns what comes, once that is no error.
func (g *gopherRequest) fetch(line string) (*gopherBody, error) {
	s := &session{dev: &g.t.dev, scheme: "gopher", wait: g.t.o.Header}
	b := &gopherBody{back: s.use(g.ask.Context())}
	g.t.dev.stats.of("gopher").used.Add(1)
	l, err := s.dial(g.server, nil)
	if err != nil {
		b.back()
		return nil, err
	}
	if tr := httptrace.ContextClientTrace(g.req.Context()); tr != nil && tr.GotConn != nil {
		tr.GotConn(httptrace.GotConnInfo{Conn: l})
	}
	l.allow(1<<62, "object")
	b.line, b.in = l, bufio.NewReaderSize(l, 4<<10)
	_, err = io.WriteString(l, line+"\r\n")
	if err == nil {
		err = b.refused()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

type gopherBody struct {
	line *line
	in   *bufio.Reader
	back func() bool
}

func (b *gopherBody) Read(p []byte) (int, error) { return b.in.Read(p) }

// Close ends the connection, which has served its only request.
func (b *gopherBody) Close() error {
	b.back()
	if c, ok := b.line.Conn.(*conn); ok {
		c.ended.Store(true)
	}
	return b.line.Close()
}

// refused looks for an error: in the form of a menu's line, 3Not here TAB …, or
// as gophernicus, which most servers are, has it where it thinks a text is wanted.
func (b *gopherBody) refused() error {
	start, err := b.in.Peek(1)
	if err == io.EOF {
		return gopherError{http.StatusNotFound, "nothing there"}
	}
	if err != nil {
		return err
	}
	if start[0] != '3' && start[0] != 'E' {
		return nil
	}
	for n := 2; n <= 512; n++ { // as they come, not to wait for more than there is
		start, err = b.in.Peek(n)
		if err != nil || start[len(start)-1] == '\n' || start[0] == 'E' && !strings.HasPrefix(refusal, string(start[:min(n, len(refusal))])) {
			break
		}
	}
	if text := string(start); strings.HasPrefix(text, refusal) {
		for _, s := range []string{"File or directory not found!", "Access denied!"} {
			if strings.HasPrefix(text[len(refusal):], s) {
				return newGopherError(s)
			}
		}
	}
	if field := bytes.Split(start, []byte("\t")); start[0] == '3' && len(field) >= 4 {
		return newGopherError(string(field[0][1:]))
	}
	return nil
}

const refusal = "Error: "

// menu answers with a listing. The first menu of a server tells whether it has
// Gopher+; from then on menus are asked for with the attributes of their items.
func (g *gopherRequest) menu() (*http.Response, error) {
	if !g.t.plus.has(g.server) {
		items, plus, err := g.plainMenu()
		if err != nil {
			return nil, err
		}
		if !plus {
			return list(g.req, g.references(items)), nil
		}
		g.t.plus.put(g.server)
	}
	items, err := g.attributes("$", "")
	var no gopherError
	if errors.As(err, &no) || err == nil && len(items) == 0 { // it has no attributes of this one
		items, _, err = g.plainMenu()
	}
	if err != nil {
		return nil, err
	}
	return list(g.req, g.references(items)), nil
}

func (g *gopherRequest) plainMenu() (items []gopherItem, plus bool, err error) {
	b, err := g.fetch(g.selector)
	if err != nil {
		return nil, false, err
	}
	defer b.Close()
	return parseMenu(io.LimitReader(b, maxMenu))
}

// A gopherItem is a line of a menu, with its attributes if the server has any.
type gopherItem struct {
	typ                        byte
	title, selector, host, num string
	plus                       bool
	modified                   time.Time
	size                       int64
	abstract                   string
}

func (i *gopherItem) fact() (fact, bool) {
	return fact{i.size, i.modified.Unix()}, !i.modified.IsZero()
}

// parseMenu reads a menu to its end. Lines that are no item, and those that only
// say something to a reader, are passed over.
func parseMenu(r io.Reader) (items []gopherItem, plus bool, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	for in.Scan() {
		text := strings.TrimSuffix(in.Text(), "\r")
		if text == "." {
			break
		}
		if i, ok := parseItem(text); ok {
			plus = plus || i.plus
			items = append(items, i)
		}
	}
	return items, plus, in.Err()
}

func parseItem(text string) (i gopherItem, ok bool) {
	field := strings.Split(text, "\t")
	if len(field) < 4 || field[0] == "" || field[0][0] == 'i' || field[0][0] == '3' || field[0][0] <= ' ' || field[0][0] >= 0x7f || field[0][0] == '/' { // a path that began with two would name a host
		return i, false
	}
	i = gopherItem{typ: field[0][0], title: field[0][1:], selector: field[1], host: strings.ToLower(strings.TrimSpace(field[2])), num: strings.TrimSpace(field[3])}
	i.plus = len(field) > 4 && (strings.HasPrefix(field[4], "+") || strings.HasPrefix(field[4], "?"))
	if n, err := strconv.ParseUint(i.num, 10, 16); err != nil || n == 0 && i.typ != 'h' || i.host == "" || strings.ContainsFunc(i.host, notHost) {
		return i, false
	}
	return i, true
}

// notHost is what no name or address has.
func notHost(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_' || r == ':')
}

// references makes a listing's items of a menu's. What is on the same server is
// remembered with what is known of it.
func (g *gopherRequest) references(items []gopherItem) []item {
	var out []item
	for n := range items {
		x := &items[n]
		path := "/" + string(x.typ) + x.selector
		e := item{kind: 'f', href: Escape(path), name: x.title, size: x.size, time: x.modified}
		here := net.JoinHostPort(x.host, x.num) == g.server
		switch {
		case x.typ == 'h' && (strings.HasPrefix(x.selector, "URL:") || strings.HasPrefix(x.selector, "/URL:")):
			_, e.href, _ = strings.Cut(x.selector, "URL:")
			if e.href = strings.TrimSpace(e.href); e.href == "" || strings.ContainsFunc(e.href, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
				continue
			}
			e.size, e.time = 0, time.Time{}
		case x.typ == '1':
			e.kind = 'd'
		case strings.IndexByte("2378T+", x.typ) >= 0, !within(path, "/"): // dots would be taken out of the URL
			e.kind = 's'
		}
		if f, ok := x.fact(); ok && here && e.kind == 'f' {
			e.tag = f.etag()
			g.t.facts.put(g.server, path, f)
			g.t.facts.say(g.server, path, x.title, x.abstract)
		}
		if !here && e.href[0] == '/' {
			host := x.host
			if x.num != "70" || strings.Contains(host, ":") {
				host = net.JoinHostPort(host, x.num)
			}
			e.href = "gopher://" + host + e.href
		}
		out = append(out, e)
	}
	return out
}

// An undotted is a text without the line with a dot that ends it, if one does.
// What is one byte of text is never taken for an end, so that bytes are held
// back until more have come.
type undotted struct {
	r    io.Reader
	body io.Closer
	held []byte // not yet given; the last few may be the end
	past bool   // something was given, so that held does not begin the text
	err  error
}

const ending = "\n.\r\n"

func (u *undotted) Read(p []byte) (int, error) {
	for u.err == nil && len(u.held) <= len(ending) {
		var b [4 << 10]byte
		var n int
		n, u.err = u.r.Read(b[:])
		u.held = append(u.held, b[:n]...)
		if u.err == io.EOF {
			u.cut()
		}
	}
	give := len(u.held)
	if u.err == nil {
		give -= len(ending)
	}
	n := copy(p, u.held[:give])
	u.held = u.held[n:]
	u.past = u.past || n > 0
	if n == 0 && len(p) > 0 {
		return 0, cmp.Or(u.err, io.ErrNoProgress)
	}
	return n, nil
}

func (u *undotted) cut() {
	for _, end := range []string{".\r\n", ".\n", "."} {
		if s, ok := bytes.CutSuffix(u.held, []byte(end)); ok && (len(s) == 0 && !u.past || len(s) > 0 && s[len(s)-1] == '\n') {
			u.held = s
			return
		}
	}
}

func (u *undotted) Close() error { return u.body.Close() }
