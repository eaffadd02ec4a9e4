package crawl

import (
	"fmt"
	iofs "io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// Canonical returns the one form under which a URL is known: as the WHATWG's
// URL standard writes it, without fragment, user and empty query, escapes in
// upper case and only where they are needed. Known are http, https, ftp, ftps,
// gopher, nntp, nntps and news, which the standard's rules for http are applied
// to, and file and mbox. The error wraps iofs.ErrInvalid.
func Canonical(raw string) (string, error) {
	if u, ok := fastURL(raw); ok {
		return u, nil
	}
	return slowURL("", raw)
}

// fastURL is Canonical for a URL of the web that is plainly canonical, but for
// dots and a missing path. Most are, and need nothing of what the standard's
// parser does in 7 µs.
func fastURL(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, "http")
	if !ok {
		return "", false
	}
	usual := ":80"
	if strings.HasPrefix(rest, "s") {
		rest, usual = rest[1:], ":443"
	}
	if !strings.HasPrefix(rest, "://") {
		return "", false
	}
	n := 3
	for n < len(rest) && plainHost[rest[n]] != 0 {
		n++
	}
	host := rest[3:n]
	end := n
	if n < len(rest) && rest[n] == ':' {
		for n++; n < len(rest) && rest[n]-'0' <= 9; n++ {
		}
		if port := rest[end:n]; port == usual || len(port) < 2 || len(port) > 5 || port[1] == '0' {
			return "", false
		}
	}
	path := rest[n:]
	if !plainName(host) || path != "" && (path[0] != '/' || !plainPath(path)) {
		return "", false
	}
	origin := s[:len(s)-len(path)]
	if path == "" {
		return origin + "/", true
	}
	if path = dots(path); len(origin)+len(path) == len(s) {
		return s, true
	}
	return origin + path, true
}

// plainName reports whether a host's name is written as the standard writes
// it: letters in lower case, no address, nothing of IDNA.
func plainName(host string) bool {
	if host == "" || len(host) > 253 || strings.Contains(host, "--") {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && last[0]-'0' > 9 // 0x7f.1 is an address; so says the last part
}

// A base is the URL that the references of one page are relative to.
type base struct {
	url    string // canonical
	origin string // "http://site:8080"
	dir    string // url up to and with its last slash
	path   string // url without query
}

func newBase(u string) base {
	b := base{url: u, origin: Origin(u), path: u}
	if i := strings.IndexByte(u, '?'); i >= 0 {
		b.path = u[:i]
	}
	b.dir = b.path[:strings.LastIndexByte(b.path, '/')+1]
	return b
}

// resolve returns the canonical URL of a reference. Nearly all references are
// plain ASCII paths, and need nothing of what the standard's parser does in 7 µs.
func (b *base) resolve(ref string) (string, error) {
	ref = strings.Trim(ref, " \t\r\n\f")
	if i := strings.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	if u, ok := b.fast(ref); ok {
		return u, nil
	}
	return slowURL(b.url, ref)
}

// fast resolves a reference that is plainly canonical but for being relative.
func (b *base) fast(ref string) (string, bool) {
	if ref == "" {
		return b.url, true
	}
	if !polite(b.origin) && strings.ContainsAny(ref, "%?") {
		return "", false // names of files have escapes of their own, and no query
	}
	if rest, ok := strings.CutPrefix(ref, b.origin); ok && strings.HasPrefix(rest, "/") {
		ref = rest // which may begin with two slashes, but as a path
		if !plainPath(ref) {
			return "", false
		}
		return b.origin + dots(ref), true
	}
	if isWeb(ref) {
		if u, ok := fastURL(ref); ok {
			return u, true
		}
	}
	if strings.HasPrefix(ref, "//") || !plainPath(ref) {
		return "", false
	}
	switch ref[0] {
	case '/':
		return b.origin + dots(ref), true
	case '?':
		return b.path + ref, len(ref) > 1
	}
	if i := strings.IndexAny(ref, ":/?"); i >= 0 && ref[i] == ':' {
		return "", false // a scheme, or a name that looks like one
	}
	return b.origin + dots(b.dir[len(b.origin):]+ref), true
}

var plainHost = func() (t [256]byte) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789-.") {
		t[c] = 1
	}
	return t
}()

// plainPath reports whether s is made of bytes that the standard's parser
// keeps as they are in a path and a query, escapes that are needed and in upper
// case, and no empty query.
func plainPath(s string) bool {
	for i := 0; i < len(s); i++ {
		if plain[s[i]] != 0 {
			continue
		}
		if s[i] != '%' || i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) || s[i+1] > 'F' || s[i+2] > 'F' ||
			unreserved(unhex(s[i+1])<<4|unhex(s[i+2])) {
			return false
		}
		i += 2
	}
	return s[len(s)-1] != '?'
}

// unreserved reports whether a byte stands for itself anywhere in a URL, and so
// needs no escape.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '~' || c == '.'
}

var plain = func() (t [256]byte) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~!$&()*+,;=:@?") {
		t[c] = 1
	}
	return t
}()

// dots removes the segments "." and ".." from a path that begins with a slash,
// leaving its query alone.
func dots(p string) string {
	if !strings.Contains(p, "/.") {
		return p
	}
	query := ""
	if i := strings.IndexByte(p, '?'); i >= 0 {
		p, query = p[:i], p[i:]
	}
	out := make([]byte, 0, len(p))
	for rest := p[1:]; ; {
		seg, tail, more := strings.Cut(rest, "/")
		switch seg {
		case "..":
			out = out[:max(0, strings.LastIndexByte(string(out), '/'))]
		case ".":
		default:
			out = append(append(out, '/'), seg...)
		}
		if !more {
			if seg == "." || seg == ".." {
				out = append(out, '/')
			}
			return string(out) + query
		}
		rest = tail
	}
}

// slowURL is by the standard's parser. base, when there is one, is canonical.
func slowURL(base, ref string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("bad url '%s': %s%w", clip(ref), why, iofs.ErrInvalid)
	}
	scheme := schemeOf(strings.TrimLeft(ref, " \t\r\n\f"))
	if scheme == "" {
		scheme = schemeOf(base)
	}
	if _, ok := usualPorts[scheme]; ok && scheme != "http" && scheme != "https" && scheme != "ftp" || scheme == "news" {
		return foreignURL(scheme, base, ref)
	}
	if scheme == "mbox" {
		return mboxURL(base, ref)
	}
	var u *url.Url
	var err error
	if base == "" {
		u, err = url.Parse(ref)
	} else {
		u, err = url.ParseRef(base, ref)
	}
	if err != nil {
		return bad("")
	}
	switch u.Scheme() {
	case "http", "https", "ftp":
		if u.Hostname() == "" {
			return bad("no host: ")
		}
		u.SetUsername("")
		u.SetPassword("")
	case "file":
		if u.Host() != "" {
			return bad("a file of another host: ")
		}
		return fileURL(u.Href(true))
	default:
		return bad("scheme " + u.Scheme() + ": ")
	}
	s := u.Href(true)
	if i := strings.IndexByte(s, '?'); i == len(s)-1 {
		s = s[:max(i, 0)]
	}
	return escapes(s), nil
}

// schemeOf is the scheme that a reference begins with, in lower case, or "".
func schemeOf(ref string) string {
	for i := range len(ref) {
		switch c := ref[i]; {
		case c == ':':
			return strings.ToLower(ref[:i])
		case 'a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return ""
		}
	}
	return ""
}

// fileURL writes a file URL as listings write the names in it, whatever was
// escaped and how: a name is bytes, and one file has one URL.
func fileURL(s string) (string, error) {
	const scheme = "file://"
	path, query, found := strings.Cut(strings.TrimPrefix(s, scheme), "?")
	if found && query != "" {
		return "", fmt.Errorf("bad url '%s': a file with a query: %w", clip(s), iofs.ErrInvalid)
	}
	out := append(make([]byte, 0, len(s)), scheme...)
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]) {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
		}
		if plain[c] != 0 && c != '?' || c == '\'' {
			out = append(out, c)
		} else {
			const hex = "0123456789ABCDEF"
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out), nil
}

// escapes writes percent-escapes in upper case, and those of letters, digits
// and -._~ as what they stand for (RFC 3986, section 6.2.2). An apostrophe, which
// the standard escapes in a query and not in a path, is kept as it came.
func escapes(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			out = append(out, s[i])
			continue
		}
		c := unhex(s[i+1])<<4 | unhex(s[i+2])
		if unreserved(c) && (c != '.' || !dotSegment(s, i)) {
			out = append(out, c)
		} else {
			out = append(out, '%', upper(s[i+1]), upper(s[i+2]))
		}
		i += 2
	}
	return string(out)
}

// dotSegment reports whether the escaped dot at i may be part of a segment that
// is nothing but dots, which would change meaning unescaped.
func dotSegment(s string, i int) bool {
	return i == 0 || s[i-1] == '/' || s[i-1] == '.' || i >= 3 && s[i-3] == '%'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'f' {
		return c - 0x20
	}
	return c
}

// schemes are those that a URL that is gathered may have.
var schemes = []string{"file", "ftp", "ftps", "gopher", "http", "https", "mbox", "news", "nntp", "nntps"}

// ParseAccess reads a list of schemes as the original's Access= has it, as in
// HTTP|FTP|Gopher; https is http, and a scheme over TLS its plain one. A scheme
// that is not known here (wais, telnet) is an error, that wraps iofs.ErrInvalid.
func ParseAccess(list string) ([]string, error) {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(list), func(r rune) bool { return r == '|' || r == ',' }) {
		w = strings.TrimSpace(w)
		if !slices.Contains(schemes, w) {
			return out, fmt.Errorf("access: '%s' is none of %s: %w", clip(w), strings.Join(schemes, ", "), iofs.ErrInvalid)
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("access: no scheme: %w", iofs.ErrInvalid)
	}
	return out, nil
}

// Origin is the part of a canonical URL that names its server, as in
// "https://site:8443" or "file://".
func Origin(u string) string {
	i := strings.Index(u, "://")
	if i < 0 {
		return ""
	}
	if j := strings.IndexAny(u[i+3:], "/?"); j >= 0 {
		return u[:i+3+j]
	}
	return u
}

// polite reports whether an origin is a server of someone else's, which is
// not asked too often; what is not is a tree of files.
func polite(origin string) bool {
	return origin != "" && !strings.HasPrefix(origin, "file:") && !strings.HasPrefix(origin, "mbox:")
}

// isWeb reports whether an origin is a server of the web, which has a robots.txt.
func isWeb(origin string) bool { return strings.HasPrefix(origin, "http") }

// sameHost reports whether two origins are one host: the same name, and the same
// port or, for both, the one that is usual for http or https.
func sameHost(a, b string) bool {
	an, ap := hostPort(a)
	bn, bp := hostPort(b)
	return a == b || isWeb(a) && isWeb(b) && an == bn && ap == "" && bp == ""
}

// hostKey is the same for two origins that are one host, and for no others.
func hostKey(origin string) string {
	if name, port := hostPort(origin); port == "" && isWeb(origin) {
		return name
	}
	return origin
}

func hostPort(origin string) (name, port string) {
	_, host, _ := strings.Cut(origin, "://")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// oddUser finds a user with a password where a URL is written in ways that
// browsers take as well: http:user:password@host, http:\\user:password@host.
var oddUser = regexp.MustCompile(`(?i)\b((?:https?|ftps?|gopher|nntps?|news):(?:/?\\+/?|/?))[^\s'"/\\:]+:[^\s'"]*@`)

// HideUser writes "..." for what stands before an @ of the URLs in a text: their
// user and password, or else nothing that is missed.
func HideUser(text string) string {
	text = oddUser.ReplaceAllString(text, "$1...@")
	var b strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i+3])
		text = text[i+3:]
		end := strings.IndexAny(text, " \t\r\n'\"")
		if end < 0 {
			end = len(text)
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			b.WriteString("...")
			text = text[at:]
		}
	}
}

// clip shortens what goes into a message, and leaves out passwords.
func clip(s string) string {
	s = HideUser(s)
	if len(s) > 80 {
		s = s[:77] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
