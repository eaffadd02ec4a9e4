package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/jlaffaye/ftp"
)

// maxFolder bounds the listing of one folder, in bytes.
const maxFolder = 64 << 20

// ftp answers for ftp and ftps. A path is relative to the folder where the
// server puts one who logs in; with a slash at the end it is a folder, answered
// with its listing, and without, if the server finds a folder there, sent on to
// that.
//
// A connection that was kept may have been closed by the server since; then the
// request is made again with another, and at last with a new one.
func (t *Transport) ftp(req *http.Request) (*http.Response, error) {
	name := ftpPath(req.URL)
	server := req.URL.Scheme + "://" + hostPort(req.URL)
	if f, ok := t.facts.get(server, name); ok && matches(req.Header, f.etag(), f.modified()) {
		return head(req, f.etag(), f.modified(), f.size), nil
	}
	slow, req := newPace(&t.o, req)
	for {
		c, kept, err := t.ftpConn(req)
		if err != nil {
			slow.end()
			return ftpRefuse(req, err)
		}
		r := &ftpRequest{req: req, t: t, c: c, server: server, name: name, path: path.Join(c.base, name)}
		resp, err := r.answer()
		if err == nil {
			resp.Body = slow.body(resp.Body)
			return resp, nil
		}
		if e, ok := err.(*textproto.Error); ok && said(e) { // alone: the conversation is where it should be
			c.release(t)
		} else {
			c.Close()
		}
		if !kept || !stale(req.Context(), err) {
			slow.end()
			return ftpRefuse(req, err)
		}
	}
}

// ftpPath is the path that a URL names on its server.
func ftpPath(u *url.URL) string {
	name := u.Path
	if i := strings.LastIndex(name, ";type="); i >= 0 && i == len(name)-len(";type=i") { // RFC 1738
		name = name[:i]
	}
	if u.RawQuery != "" || u.ForceQuery { // which no ftp URL has: a name with a question mark
		name += "?" + u.RawQuery
	}
	return cmp.Or(name, "/")
}

// stale reports whether an error of a kept connection may be its age's.
func stale(ctx context.Context, err error) bool {
	var said *textproto.Error
	if errors.As(err, &said) {
		return said.Code == ftp.StatusNotAvailable || said.Code == 400 // of news
	}
	return ctx.Err() == nil && !errors.Is(err, errEnough)
}

// ftpRefuse turns what a server says into a status. Trouble that may pass is
// 503, for the caller to come back.
func ftpRefuse(req *http.Request, err error) (*http.Response, error) {
	var said *textproto.Error
	if !errors.As(err, &said) {
		return nil, err
	}
	code := http.StatusBadGateway
	switch {
	case said.Code >= 400 && said.Code < 500:
		code = http.StatusServiceUnavailable
	case said.Code == ftp.StatusNotLoggedIn || said.Code == ftp.StatusLoginNeedAccount:
		code = http.StatusUnauthorized
	case said.Code >= 550 && said.Code < 560:
		code = http.StatusNotFound
	}
	return answer(req, code, oneLine(said.Msg[:min(len(said.Msg), 80)])), nil
}

// said reports whether an error is a refusal by the server, with the connection
// as good as before.
func said(err error) bool {
	var e *textproto.Error
	return errors.As(err, &e) && e.Code != ftp.StatusNotAvailable
}

// An ftpRequest is one request on a connection.
type ftpRequest struct {
	req    *http.Request
	t      *Transport
	c      *ftpConn
	server string
	name   string // as in the URL
	path   string // on the server
	spent  bool   // the connection is of no more use
}

func (r *ftpRequest) answer() (*http.Response, error) {
	if strings.HasSuffix(r.name, "/") {
		return r.folder()
	}
	f, ok := r.t.facts.get(r.server, r.name)
	if !ok {
		var folder bool
		var err error
		f, folder, err = r.examine()
		switch {
		case folder:
			return r.slash(), nil
		case err != nil:
			return nil, err
		}
	}
	tag := ""
	if f.time != 0 {
		tag = f.etag()
	}
	resp := head(r.req, tag, f.modified(), f.size)
	if resp.StatusCode != http.StatusOK || r.req.Method == http.MethodHead {
		r.c.release(r.t)
		return resp, nil
	}
	return r.retrieve(resp)
}

// slash sends the request on to the folder that it has turned out to be for.
func (r *ftpRequest) slash() *http.Response {
	r.c.release(r.t)
	resp := answer(r.req, http.StatusMovedPermanently, "a directory")
	resp.Header.Set("Location", Escape(r.req.URL.Path)+"/")
	return resp
}

// examine asks about one file, in the form in which the server lists folders, so
// that the ETag is that of the listing.
func (r *ftpRequest) examine() (f fact, folder bool, err error) {
	c := r.c
	c.allow(maxAnswer)
	if c.ftp.IsTimePreciseInList() {
		e, err := c.ftp.GetEntry(r.path)
		if said(err) {
			return fact{size: -1}, false, nil // RETR will tell
		}
		if err != nil {
			return f, false, err
		}
		return factOf(e), e.Type == ftp.EntryTypeFolder, nil
	}
	// Some servers take a name for a pattern; what they find is then not one
	// file of that name.
	c.allow(maxFolder)
	es, err := c.ftp.List(r.path)
	if err != nil && !said(err) {
		return f, false, err
	}
	if len(es) == 1 && es[0].Type == ftp.EntryTypeFile && path.Base(es[0].Name) == path.Base(r.path) {
		return factOf(es[0]), false, nil
	}
	c.allow(maxAnswer)
	n, err := c.ftp.FileSize(r.path)
	if err != nil {
		if !said(err) {
			return f, false, err
		}
		n = -1
	}
	return fact{size: n}, false, nil
}

func factOf(e *ftp.Entry) fact {
	f := fact{size: int64(min(e.Size, 1<<62))}
	if !e.Time.IsZero() {
		f.time = e.Time.Unix()
	}
	return f
}

// retrieve begins to read the file.
func (r *ftpRequest) retrieve(resp *http.Response) (*http.Response, error) {
	c := r.c
	c.allow(1 << 62)
	data, err := c.ftp.Retr(r.path)
	if err == nil {
		resp.Body = &ftpBody{c: c, t: r.t, data: data}
		return resp, nil
	}
	if !said(err) {
		return nil, err
	}
	if resp, err := ftpRefuse(r.req, err); err != nil || resp.StatusCode != http.StatusNotFound {
		c.release(r.t)
		return resp, err
	}
	// It may be a folder, or not for us to read.
	c.allow(maxAnswer)
	if e := c.ftp.ChangeDir(r.path); e == nil {
		return r.slash(), nil
	} else if !said(e) {
		return nil, e
	}
	if _, e := c.ftp.FileSize(r.path); e == nil {
		resp = answer(r.req, http.StatusForbidden, "")
	} else if !said(e) {
		return nil, e
	} else {
		resp, _ = ftpRefuse(r.req, err)
	}
	c.release(r.t)
	return resp, nil
}

// An ftpBody is a file as it comes. It is whole when the server has said so.
type ftpBody struct {
	c    *ftpConn
	t    *Transport
	data *ftp.Response
	err  error
}

func (b *ftpBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.data.Read(p)
	if err == io.EOF {
		b.c.allow(maxAnswer)
		if e := b.data.Close(); e != nil {
			b.c.Close()
			err = e
		} else {
			b.c.release(b.t)
		}
	} else if err != nil {
		b.c.Close()
	}
	b.err = err
	return n, err
}

// Close gives the connection up if the file has not come to its end: what is
// under way cannot be called back.
func (b *ftpBody) Close() error {
	if b.err == nil {
		b.c.Close()
		b.err = io.ErrClosedPipe
	}
	return nil
}

// folder answers with a listing.
func (r *ftpRequest) folder() (*http.Response, error) {
	entries, err := r.entries()
	if err != nil {
		return nil, err
	}
	if resp, err := r.ready(entries); resp != nil || err != nil {
		return resp, err
	}
	if !r.spent {
		r.c.release(r.t)
	}
	items := make([]item, 0, len(entries))
	for _, e := range entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") {
			continue
		}
		items = append(items, r.item(e))
	}
	return list(r.req, items), nil
}

// entries lists the folder. Its path is not given to LIST, since servers take
// some characters in it for patterns.
//
// The library passes over lines that it cannot read. When it can read none of
// many the folder is not empty but of an unknown form.
func (r *ftpRequest) entries() ([]*ftp.Entry, error) {
	entries, err := r.lines()
	if got := r.c.received(); err == nil && len(entries) == 0 && got > 80 { // more than "total 0"
		return nil, fmt.Errorf("folder %s: %d bytes of a listing of unknown form", r.name, got)
	}
	return entries, err
}

func (r *ftpRequest) lines() ([]*ftp.Entry, error) {
	c := r.c
	c.allow(maxFolder)
	if c.ftp.IsTimePreciseInList() {
		return c.ftp.List(r.path)
	}
	if err := c.ftp.ChangeDir(r.path); err != nil {
		return nil, err
	}
	entries, err := c.ftp.List("")
	var e *textproto.Error
	if errors.As(err, &e) && (e.Code == 450 || e.Code == 550) { // there is nothing in it
		return nil, nil
	}
	return entries, err
}

func (r *ftpRequest) item(e *ftp.Entry) item {
	f := factOf(e)
	i := item{kind: 'f', size: f.size, time: f.modified(), href: "./" + Escape(e.Name)}
	if j := strings.IndexByte(i.href[2:], ':'); j < 0 {
		i.href = i.href[2:] // ./ only keeps a colon from making a scheme
	}
	switch e.Type {
	case ftp.EntryTypeFolder:
		i.kind = 'd'
		i.href += "/"
	case ftp.EntryTypeLink:
		i.kind = 'l'
	default:
		if f.time != 0 {
			i.tag = f.etag()
			r.t.facts.put(r.server, r.name+e.Name, f)
		}
	}
	return i
}

// An ftpConn is one control connection, logged in.
type ftpConn struct {
	s    *session
	ctl  *line
	data int64 // bytes that the next data connection may bring
	last *line // the last data connection; nil: none since allow
	ftp  *ftp.ServerConn
	base string // the folder one is put into
	key  string
	back func() bool
}

// allow begins an operation, whose data are so much at most.
func (c *ftpConn) allow(n int64) {
	c.ctl.allow(maxAnswer, "answer")
	c.data, c.last = n, nil
}

// received is how much has come over the operation's data connection.
func (c *ftpConn) received() int64 {
	if c.last == nil {
		return 0
	}
	return c.data - c.last.left
}

// release keeps the connection for the next request.
func (c *ftpConn) release(t *Transport) {
	if !c.back() {
		c.Close()
		return
	}
	c.s.use(context.Background())
	t.keep.put(c.key, c)
}

// Close ends the connection.
func (c *ftpConn) Close() error {
	c.back()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.s.use(ctx)
	defer c.s.end()
	return c.ftp.Quit() // which waits for no answer
}

// ftpConn returns a connection for a request, and whether it was kept.
func (t *Transport) ftpConn(req *http.Request) (c *ftpConn, kept bool, err error) {
	u := req.URL
	user, password, secret := t.o.Secrets.find("ftp", u)
	if !secret {
		user, password = "anonymous", cmp.Or(req.Header.Get("From"), "harvest@")
	}
	key := u.Scheme + "://" + user + "@" + hostPort(u)
	if isPublic(req.Context()) {
		key += " public"
	}
	t.dev.stats.of(u.Scheme).used.Add(1)
	c, kept = t.keep.get(key).(*ftpConn)
	if kept {
		c.back = c.s.use(req.Context())
	} else {
		c, err = t.ftpDial(req.Context(), u, secret)
		if err != nil {
			return nil, false, err
		}
		c.key = key
		if err = c.login(user, password); err != nil {
			c.Close()
			return nil, false, err
		}
	}
	if tr := httptrace.ContextClientTrace(req.Context()); tr != nil && tr.GotConn != nil {
		tr.GotConn(httptrace.GotConnInfo{Conn: c.ctl, Reused: kept})
	}
	return c, kept, nil
}

// login, and learn where that leads.
func (c *ftpConn) login(user, password string) error {
	c.allow(maxAnswer)
	err := c.ftp.Login(user, password)
	var network net.Error
	var garbled textproto.ProtocolError
	switch {
	case err == nil:
	case said(err), errors.As(err, &network), errors.As(err, &garbled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, errEnough), c.s.over() != nil:
		return err
	case passing(err.Error()): // USER was refused, of which the library keeps the text alone
		return &textproto.Error{Code: ftp.StatusNotAvailable, Msg: err.Error()}
	default:
		return &textproto.Error{Code: ftp.StatusNotLoggedIn, Msg: err.Error()}
	}
	if c.base, err = c.ftp.CurrentDir(); said(err) || err == nil && !strings.HasPrefix(c.base, "/") {
		c.base, err = "/", nil
	}
	return err
}
