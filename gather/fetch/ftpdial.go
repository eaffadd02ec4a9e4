package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"

	"github.com/jlaffaye/ftp"
)

// ftpDial connects. An ftps server is spoken to in TLS from the first byte on.
// An ftp server that is to be told a password is asked for TLS before; it may
// refuse that, as the URL's scheme does not promise it, but may not fail at it.
func (t *Transport) ftpDial(ctx context.Context, u *url.URL, secret bool) (*ftpConn, error) {
	how := plainFTP
	switch {
	case u.Scheme == "ftps":
		how = implicitTLS
	case secret:
		how = explicitTLS
	}
	c, err := t.ftpDialAs(ctx, u, how)
	if e, ok := err.(*textproto.Error); ok && how == explicitTLS && e.Code >= 500 && e.Code < 550 {
		c, err = t.ftpDialAs(ctx, u, plainFTP)
	}
	return c, err
}

const (
	plainFTP = iota
	explicitTLS
	implicitTLS
)

func (t *Transport) ftpDialAs(ctx context.Context, u *url.URL, how int) (*ftpConn, error) {
	c := &ftpConn{s: &session{dev: &t.dev, scheme: u.Scheme, wait: t.o.Header}}
	c.back = c.s.use(ctx)
	addr := hostPort(u)
	var conf, first *tls.Config
	if how != plainFTP {
		conf = t.ftpTLS(u.Hostname())
	}
	if how == implicitTLS {
		first = conf
	}
	dial := func(_, to string) (net.Conn, error) {
		if c.ctl == nil {
			l, err := c.s.dial(addr, first)
			if err != nil {
				return nil, err
			}
			c.ctl = l
			return l, nil
		}
		to, err := dataAddr(c.ctl.RemoteAddr(), to)
		if err != nil {
			return nil, err
		}
		l, err := c.s.dial(to, conf)
		if err != nil {
			return nil, err
		}
		l.allow(c.data, "data")
		c.last = l
		return l, nil
	}
	opts := []ftp.DialOption{ftp.DialWithDialFunc(dial)}
	switch how {
	case explicitTLS:
		opts = append(opts, ftp.DialWithExplicitTLS(conf))
	case implicitTLS:
		opts = append(opts, ftp.DialWithTLS(conf))
	}
	var err error
	if c.ftp, err = ftp.Dial(addr, opts...); err != nil {
		c.back()
		return nil, err
	}
	return c, nil
}

// ftpTLS is the configuration for one server. Data connections take up the
// control connection's TLS session, on which servers insist to know that both
// are the same client's.
func (t *Transport) ftpTLS(host string) *tls.Config {
	conf := new(tls.Config)
	if t.o.TLS != nil {
		conf = t.o.TLS.Clone()
	}
	conf.ServerName = host
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	conf.MaxVersion = tls.VersionTLS12 // in 1.3 a session can be taken up only after the server chose to say so
	return conf
}

// dataAddr is where a data connection goes: to the server's own address,
// whatever it says, and to a port that no other service is likely to have.
func dataAddr(server net.Addr, to string) (string, error) {
	host, _, err := net.SplitHostPort(server.String())
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(to)
	if err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1024 {
		return "", fmt.Errorf("data connection to port %s refused", port)
	}
	return net.JoinHostPort(host, port), nil
}

// onlyGet refuses what changes something.
func onlyGet(req *http.Request) *http.Response {
	if req.Method == "" || req.Method == http.MethodGet || req.Method == http.MethodHead {
		return nil
	}
	return answer(req, http.StatusMethodNotAllowed, "only GET and HEAD")
}
