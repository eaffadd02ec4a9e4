package cache

import (
	"crypto/sha256"
	"fmt"
	iofs "io/fs"
	"net/netip"
	"strconv"
	"strings"

	"harvest/cache/segment"
)

// A location is a URL in its parts, in the form that names what is cached: scheme
// and host in lower case, no port that the scheme has anyway, no fragment, and a
// path. What is in path and query stays as it was written.
type location struct {
	scheme string
	host   string // with its port, unless it is the scheme's
	target string // path and query
}

func (l *location) String() string { return l.scheme + "://" + l.host + l.target }

// defaultPorts are those of the schemes there are.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21", "gopher": "70"}

// hostPort is the host with its port.
func (l *location) hostPort() (host string, port uint16) {
	host, p := cutPort(l.host)
	if p == "" {
		p = defaultPorts[l.scheme]
	}
	n, _ := strconv.ParseUint(p, 10, 16)
	return strings.Trim(host, "[]"), uint16(n)
}

// cutPort parts HOST, [HOST], HOST:PORT and [HOST]:PORT.
func cutPort(s string) (host, port string) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		return s[:i], s[i+1:]
	}
	return s, ""
}

func badURL(s, why string) error {
	return fmt.Errorf("url '%.100s': %s: %w", s, why, iofs.ErrInvalid)
}

// parseURL reads an absolute URL. One with a name or a password in it is refused:
// programs differ in where such a host begins.
func parseURL(s string) (*location, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if _, known := defaultPorts[scheme]; !ok || !known {
		return nil, badURL(s, "not http, https, ftp or gopher")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, err := canonicalHost(rest[:end], scheme)
	if err != nil {
		return nil, badURL(s, err.Error())
	}
	target, _, _ := strings.Cut(rest[end:], "#")
	if target == "" || target[0] == '?' {
		target = "/" + target
	}
	for i := 0; i < len(target); i++ {
		if target[i] <= ' ' || target[i] == 0x7f {
			return nil, badURL(s, "a blank or a control byte")
		}
	}
	return &location{scheme, host, target}, nil
}

// canonicalHost is HOST[:PORT] in lower case, without the scheme's own port.
func canonicalHost(s, scheme string) (string, error) {
	host, port := cutPort(s)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return "", fmt.Errorf("bad address in brackets")
		}
		host = "[" + a.String() + "]"
	} else {
		for i := 0; i < len(host); i++ {
			c := host[i]
			if !(c == '-' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
				return "", fmt.Errorf("bad host")
			}
		}
		host = strings.ToLower(host)
	}
	if host == "" || len(host) > 255 {
		return "", fmt.Errorf("bad host")
	}
	if port == "" {
		if strings.HasSuffix(s, ":") && len(host)+1 != len(s) {
			return "", fmt.Errorf("bad port")
		}
		return host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '+' {
		return "", fmt.Errorf("bad port")
	}
	if port = strconv.FormatUint(n, 10); port == defaultPorts[scheme] {
		return host, nil
	}
	return host + ":" + port, nil
}

// keyOf is the key of a URL in its canonical form.
func keyOf(url string) (k segment.Key) {
	sum := sha256.Sum256([]byte(url))
	copy(k[:], sum[:])
	return k
}
