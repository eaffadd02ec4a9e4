package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// nntp answers for news (RFC 3977). nntp://host/ is the list of groups, nntp://
// host/GROUP/ that of a group's messages, and nntp://host/GROUP/NUMBER or nntp://
// host/MESSAGE-ID a message. The ETag of a group is its numbers: asked for with
// it, the group answers with what came after, or that nothing did.
func (t *Transport) nntp(req *http.Request) (*http.Response, error) {
	group, message, ok := newsPath(req.URL.Path)
	if !ok || req.URL.RawQuery != "" {
		return answer(req, http.StatusBadRequest, "not a group, or a number in one"), nil
	}
	if f, ok := t.facts.get(hostPort(req.URL), req.URL.Path); ok && matches(req.Header, f.etag(), time.Time{}) {
		return head(req, f.etag(), time.Time{}, -1), nil
	}
	slow, req := newPace(&t.o, req)
	for {
		c, kept, err := t.newsConn(req)
		var resp *http.Response
		if err == nil {
			r := &newsRequest{req, t, c, group}
			switch {
			case message != "":
				resp, err = r.message(message)
			case group != "":
				resp, err = r.messages()
			default:
				resp, err = r.groups()
			}
		}
		if err == nil {
			resp.Body = slow.body(resp.Body)
			return resp, nil
		}
		if c != nil {
			c.Close()
		}
		if !kept || !stale(req.Context(), err) {
			slow.end()
			return newsRefuse(req, err)
		}
	}
}

// newsPath splits a path. What would end a command's line or word is no name.
func newsPath(path string) (group, message string, ok bool) {
	path = strings.TrimPrefix(path, "/")
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '<' || r == '>' }) || len(path) > 480 {
		return "", "", false
	}
	if strings.Contains(path, "@") {
		return "", "<" + path + ">", true
	}
	group, rest, slash := strings.Cut(path, "/")
	switch {
	case !slash && group != "": // named without its slash
		return group, "", true
	case rest == "":
		return group, "", !slash || group != ""
	}
	_, err := strconv.ParseUint(rest, 10, 63)
	return group, rest, err == nil
}

func newsRefuse(req *http.Request, err error) (*http.Response, error) {
	var said *textproto.Error
	if !errors.As(err, &said) {
		return nil, err
	}
	code := http.StatusBadGateway
	switch said.Code {
	case 400, 403:
		code = http.StatusServiceUnavailable
	case 411, 420, 422, 423, 430:
		code = http.StatusNotFound
	case 480, 481, 482, 483:
		code = http.StatusUnauthorized
	case 502:
		code = http.StatusForbidden
	}
	return answer(req, code, oneLine(said.Msg[:min(len(said.Msg), 80)])), nil
}

// A newsConn is a connection to a news server.
type newsConn struct {
	s    *session
	line *line
	text *textproto.Conn
	back func() bool
	key  string
	in   string // the group that was chosen
	over string // OVER, or XOVER for servers from before it
}

func (c *newsConn) Close() error {
	c.back()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.s.use(ctx)
	c.line.allow(maxAnswer, "answer")
	io.WriteString(c.line, "QUIT\r\n") // out of politeness: it is closed anyway
	return c.text.Close()
}

func (c *newsConn) release(t *Transport) {
	if !c.back() {
		c.Close()
		return
	}
	c.s.use(context.Background())
	t.keep.put(c.key, c)
}

// do sends a command and wants an answer of a class.
func (c *newsConn) do(want int, format string, arg ...any) (string, error) {
	c.line.allow(maxAnswer, "answer")
	if _, err := fmt.Fprintf(c.line, format+"\r\n", arg...); err != nil {
		return "", err
	}
	_, text, err := c.text.ReadCodeLine(want)
	return text, err
}

// newsConn returns a connection for a request, and whether it was kept.
func (t *Transport) newsConn(req *http.Request) (c *newsConn, kept bool, err error) {
	u := *req.URL
	if u.Scheme == "news" {
		u.Scheme = "nntp"
	}
	user, password, secret := t.o.Secrets.find("auth", &u)
	key := u.Scheme + "://" + user + "@" + hostPort(&u)
	if isPublic(req.Context()) {
		key += " public"
	}
	t.dev.stats.of(u.Scheme).used.Add(1)
	c, kept = t.keep.get(key).(*newsConn)
	if kept {
		c.back = c.s.use(req.Context())
	} else {
		c, err = t.newsDial(req.Context(), &u)
		if err == nil && secret {
			err = c.login(user, password)
		}
		if err != nil {
			return c, false, err
		}
		c.key = key
	}
	if tr := httptrace.ContextClientTrace(req.Context()); tr != nil && tr.GotConn != nil {
		tr.GotConn(httptrace.GotConnInfo{Conn: c.line, Reused: kept})
	}
	return c, kept, nil
}

// newsDial connects and reads the greeting; nil and an error if there is none.
func (t *Transport) newsDial(ctx context.Context, u *url.URL) (*newsConn, error) {
	c := &newsConn{s: &session{dev: &t.dev, scheme: u.Scheme, wait: t.o.Header}, over: "OVER"}
	c.back = c.s.use(ctx)
	var conf *tls.Config
	if u.Scheme == "nntps" {
		conf = new(tls.Config)
		if t.o.TLS != nil {
			conf = t.o.TLS.Clone()
		}
		conf.ServerName = u.Hostname()
	}
	var err error
	if c.line, err = c.s.dial(hostPort(u), conf); err != nil {
		c.back()
		return nil, err
	}
	c.text = textproto.NewConn(c.line)
	if _, _, err := c.text.ReadCodeLine(20); err != nil {
		return c, err
	}
	// Some servers are for other servers until told otherwise; others need not
	// know the command.
	if _, err := c.do(20, "MODE READER"); err != nil {
		if e := (*textproto.Error)(nil); !errors.As(err, &e) || e.Code == 400 {
			return c, err
		}
	}
	return c, nil
}

func (c *newsConn) login(user, password string) error {
	if strings.ContainsAny(user+password, " \r\n\t") {
		return errors.New("news: a name or password with blanks")
	}
	_, err := c.do(281, "AUTHINFO USER %s", user)
	var e *textproto.Error
	if errors.As(err, &e) && e.Code == 381 {
		_, err = c.do(281, "AUTHINFO PASS %s", password)
	}
	return err
}

// A newsRequest is one request on a connection.
type newsRequest struct {
	req   *http.Request
	t     *Transport
	c     *newsConn
	group string
}

// groups answers with the list of groups.
func (r *newsRequest) groups() (*http.Response, error) {
	if _, err := r.c.do(215, "LIST ACTIVE"); err != nil {
		return r.gone(err)
	}
	r.c.line.allow(maxFolder, "list of groups")
	var items []item
	for {
		text, err := r.c.text.ReadLine()
		if err != nil {
			return nil, unexpected(err)
		}
		if text == "." {
			break
		}
		field := strings.Fields(text)
		if len(field) < 3 {
			continue
		}
		e := item{kind: 'd', href: Escape(field[0]) + "/"}
		high, err1 := strconv.ParseInt(field[1], 10, 64)
		low, err2 := strconv.ParseInt(field[2], 10, 64)
		if err1 == nil && err2 == nil {
			e.tag = numbers{low, high}.tag()
		}
		if name, message, ok := newsPath("/" + field[0] + "/"); ok && name != "" && message == "" {
			items = append(items, e)
		}
	}
	r.c.release(r.t)
	return list(r.req, items), nil
}

// numbers are those of a group's messages that are there: the lowest and the
// highest, which grows with each that comes.
type numbers struct{ low, high int64 }

func (n numbers) tag() string { return fmt.Sprintf(`"%d-%d"`, n.low, n.high) }

func parseNumbers(tag string) (n numbers, ok bool) {
	low, high, _ := strings.Cut(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), "-")
	var err1, err2 error
	n.low, err1 = strconv.ParseInt(low, 10, 64)
	n.high, err2 = strconv.ParseInt(high, 10, 64)
	return n, err1 == nil && err2 == nil
}

// choose makes the group the one that numbers are of.
func (r *newsRequest) choose() (n numbers, err error) {
	text, err := r.c.do(211, "GROUP %s", r.group)
	if err != nil {
		r.c.in = ""
		return n, err
	}
	r.c.in = r.group
	field := strings.Fields(text)
	if len(field) < 3 {
		return n, &textproto.Error{Code: 211, Msg: "not the numbers of a group"}
	}
	n, ok := parseNumbers(field[1] + "-" + field[2])
	if !ok || n.low < 0 || n.high < 0 {
		return n, &textproto.Error{Code: 211, Msg: "not the numbers of a group"}
	}
	return n, nil
}

// messages answers with the list of a group's messages, as it is read.
func (r *newsRequest) messages() (*http.Response, error) {
	if !strings.HasSuffix(r.req.URL.Path, "/") {
		r.c.release(r.t)
		resp := answer(r.req, http.StatusMovedPermanently, "a group")
		resp.Header.Set("Location", Escape(r.req.URL.Path)+"/")
		return resp, nil
	}
	n, err := r.choose()
	if err != nil {
		return r.gone(err)
	}
	resp := head(r.req, n.tag(), time.Time{}, -1)
	if resp.StatusCode != http.StatusOK {
		r.c.release(r.t)
		return resp, nil
	}
	l := &newsList{r: r, next: n.low, last: n.high}
	old, ok := parseNumbers(r.req.Header.Get("If-None-Match"))
	part := ok && old.low <= n.low && old.high <= n.high && old.high >= old.low-1
	if part {
		l.next = max(n.low, old.high+1)
	}
	done := func(err error) {
		if err == nil {
			r.c.release(r.t)
		} else {
			r.c.Close()
		}
	}
	resp = listed(r.req, &lister{more: l.more, done: done})
	resp.Header.Set("ETag", n.tag())
	if part {
		resp.Header.Set(Partial, "after "+strconv.FormatInt(old.high, 10))
	}
	return resp, nil
}

// overChunk is how many messages are asked about at once.
const overChunk = 500

type newsList struct {
	r          *newsRequest
	next, last int64
}

func (l *newsList) more() ([]item, error) {
	if l.next > l.last {
		return nil, io.EOF
	}
	end := min(l.last, l.next+overChunk-1)
	if end < l.next { // past what numbers can be
		end = l.last
	}
	c := l.r.c
	_, err := c.do(224, "%s %d-%d", c.over, l.next, end)
	var e *textproto.Error
	if errors.As(err, &e) && e.Code >= 500 && e.Code != 502 && c.over == "OVER" {
		c.over = "XOVER"
		_, err = c.do(224, "%s %d-%d", c.over, l.next, end)
	}
	from := l.next
	l.next = end + 1
	if errors.As(err, &e) && (e.Code == 423 || e.Code == 420) { // none in this range
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.line.allow(overChunk*maxLine, "overview")
	var items []item
	for {
		text, err := c.text.ReadLine()
		if err != nil {
			return nil, unexpected(err)
		}
		if text == "." {
			return items, nil
		}
		o, ok := parseOver(text)
		if ok && o.number >= from && o.number <= end && len(items) < overChunk {
			items = append(items, l.item(o))
		}
	}
}

func (l *newsList) item(o overview) item {
	f := messageFact(o.id)
	number := strconv.FormatInt(o.number, 10)
	e := item{kind: 'f', size: o.size, time: o.date, tag: f.etag(), href: number, name: o.subject}
	server, path := hostPort(l.r.req.URL), l.r.req.URL.Path+number
	l.r.t.facts.put(server, path, f)
	l.r.t.facts.say(server, path, o.subject, "")
	return e
}

// message answers with a message: by its number, or by its name.
func (r *newsRequest) message(which string) (*http.Response, error) {
	if r.group != "" && r.c.in != r.group {
		if _, err := r.choose(); err != nil {
			return r.gone(err)
		}
	}
	if r.req.Header.Get("If-None-Match") != "" || r.req.Method == http.MethodHead {
		text, err := r.c.do(223, "STAT %s", which)
		if err != nil {
			return r.gone(err)
		}
		resp := head(r.req, messageTag(text, which), time.Time{}, -1)
		if resp.StatusCode != http.StatusOK || r.req.Method == http.MethodHead {
			r.c.release(r.t)
			return resp, nil
		}
	}
	text, err := r.c.do(220, "ARTICLE %s", which)
	if err != nil {
		return r.gone(err)
	}
	r.c.line.allow(1<<62, "message")
	resp := answer(r.req, http.StatusOK, "")
	resp.ContentLength = -1
	resp.Header.Set("Content-Type", "message/rfc822")
	if tag := messageTag(text, which); tag != "" {
		resp.Header.Set("ETag", tag)
	}
	r.t.facts.tell(resp.Header, hostPort(r.req.URL), r.req.URL.Path)
	resp.Body = &newsBody{r: r.c.text.DotReader(), c: r.c, t: r.t}
	return resp, nil
}

// gone answers for what is not there, and keeps the connection.
func (r *newsRequest) gone(err error) (*http.Response, error) {
	var e *textproto.Error
	if !errors.As(err, &e) || e.Code <= 400 { // it ends, or goes on with what nobody asked for
		return nil, err
	}
	resp, err := newsRefuse(r.req, err)
	r.c.release(r.t)
	return resp, err
}

// messageTag is the ETag of a message of which a server says "NUMBER <ID>".
func messageTag(text, which string) string {
	field := strings.Fields(text)
	id := ""
	if len(field) > 1 {
		id = field[1]
	}
	if id = cmp.Or(id, which); !strings.HasPrefix(id, "<") {
		return ""
	}
	return messageFact(id).etag()
}

// A newsBody is a message as it comes.
type newsBody struct {
	r   io.Reader
	c   *newsConn
	t   *Transport
	err error
}

func (b *newsBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	if err == io.EOF {
		b.c.release(b.t)
	} else if err != nil {
		b.c.Close()
	}
	b.err = err
	return n, err
}

func (b *newsBody) Close() error {
	if b.err == nil {
		b.c.Close()
		b.err = io.ErrClosedPipe
	}
	return nil
}
