package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"harvest/fs/ndb"
)

// Secrets are names and passwords, and to whom they may be told. They are an
// entry a line (ndb), the first key saying what for:
//
//	auth host=docs.example.org user=me password='one two' path=/private/ scheme=https
//	auth host=news.example.org:119 user=me password=x scheme=nntp
//	ftp host=ftp.example.org user=me password=x
//	proxy user=me password=x
//
// path= and scheme= narrow an auth line and may be left out; a line of auth is
// good for http and https, and for nntp if scheme= says so. A host without a port
// is one at the scheme's usual port. The first line that fits is used.
type Secrets struct{ list []secret }

type secret struct{ kind, scheme, host, path, user, password string }

// String tells how many there are, and nothing more, whatever prints it.
func (s *Secrets) String() string {
	if s == nil {
		return "no secrets"
	}
	return fmt.Sprintf("%d secrets", len(s.list))
}

// GoString is String: %#v shows no more.
func (s *Secrets) GoString() string { return s.String() }

// ParseSecrets reads secrets. An error is an *ndb.Error and quotes no value.
func ParseSecrets(text string) (*Secrets, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, quiet(err)
	}
	s := new(Secrets)
	for _, e := range entries {
		x, err := parseSecret(e)
		if err != nil {
			return nil, err
		}
		s.list = append(s.list, x)
	}
	return s, nil
}

// quiet keeps where a text is bad and drops what stands there.
func quiet(err error) error {
	var e *ndb.Error
	if !errors.As(err, &e) {
		return errors.New("bad text")
	}
	return &ndb.Error{Line: e.Line, Col: e.Col, Msg: "not a line of key=value pairs"}
}

func parseSecret(e ndb.Entry) (secret, error) {
	kind := e.First()
	x := secret{kind: kind.Key}
	if kind.Value != "" || kind.Key != "auth" && kind.Key != "ftp" && kind.Key != "proxy" {
		return x, e.Errorf(kind, "a line begins with auth, ftp or proxy")
	}
	for _, p := range e.Pairs[1:] {
		field := x.field(p.Key)
		switch {
		case field == nil:
			return x, e.Errorf(p, "%s: an unknown key; there are host, user, password, and for auth path and scheme", kind.Key)
		case *field != "":
			return x, e.Errorf(p, "%s: %s is there twice", kind.Key, p.Key)
		case p.Value == "" || strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return x, e.Errorf(p, "%s: %s is empty, or has control characters", kind.Key, p.Key)
		}
		*field = p.Value
	}
	x.host = strings.ToLower(x.host)
	switch {
	case x.user == "":
		return x, e.Errorf(kind, "%s: user= is missing", kind.Key)
	case x.kind != "proxy" && x.host == "":
		return x, e.Errorf(kind, "%s: host= is missing", kind.Key)
	case strings.ContainsAny(x.host, "/@?#"):
		return x, e.Errorf(kind, "%s: host= is a host, or host:port", kind.Key)
	case x.path != "" && x.path[0] != '/':
		return x, e.Errorf(kind, "%s: path= does not begin with a slash", kind.Key)
	}
	return x, nil
}

// field is where a key's value goes, nil if the line has no such key.
func (x *secret) field(key string) *string {
	switch {
	case key == "host":
		return &x.host
	case key == "user":
		return &x.user
	case key == "password":
		return &x.password
	case key == "path" && x.kind == "auth":
		return &x.path
	case key == "scheme" && x.kind == "auth":
		return &x.scheme
	}
	return nil
}

// For finds what may be told to the server of a URL. kind is a line's first key.
func (s *Secrets) find(kind string, u *url.URL) (user, password string, ok bool) {
	if s == nil {
		return "", "", false
	}
	for i := range s.list {
		if x := &s.list[i]; x.kind == kind && x.fits(u) {
			return x.user, x.password, true
		}
	}
	return "", "", false
}

func (x *secret) fits(u *url.URL) bool {
	switch {
	case x.scheme != "" && x.scheme != u.Scheme,
		x.kind == "auth" && x.scheme == "" && u.Scheme != "http" && u.Scheme != "https":
		return false
	case x.host != "" && x.host != hostPort(u) && (x.host != strings.ToLower(u.Hostname()) || port(u) != usualPort(u.Scheme)):
		return false
	}
	return within(u.Path, x.path)
}

// within reports whether a path is prefix or lies below it. A path with dots in
// it lies nowhere: a server may take it for another.
func within(path, prefix string) bool {
	if prefix == "" {
		return true
	}
	for seg := range strings.SplitSeq(path, "/") {
		if seg == ".." || seg == "." {
			return false
		}
	}
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

// hostPort is the host and port of a URL's server.
func hostPort(u *url.URL) string { return net.JoinHostPort(strings.ToLower(u.Hostname()), port(u)) }

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return usualPort(u.Scheme)
}

func usualPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	case "ftp":
		return "21"
	case "ftps":
		return "990"
	case "gopher":
		return "70"
	case "nntp", "news":
		return "119"
	case "nntps":
		return "563"
	}
	return ""
}
