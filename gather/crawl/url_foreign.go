package crawl

import (
	"fmt"
	iofs "io/fs"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// foreignURL makes a URL canonical whose scheme the URL standard has no rules
// for: ftps, gopher, nntp, nntps, news. Its host and path are read as those of
// http are, with the port that is usual for the scheme. news is nntp.
func foreignURL(scheme, base, ref string) (string, error) {
	raw := ref
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("bad url '%s': %s%w", clip(raw), why, iofs.ErrInvalid)
	}
	ref = strings.ReplaceAll(strings.TrimLeft(ref, " \t\r\n\f"), `\`, "%5C") // no slash here, as it is in http
	rest := ref
	if schemeOf(ref) != "" {
		rest = ref[len(scheme)+1:]
	}
	if base != "" && rest == ref && !strings.HasPrefix(ref, "//") {
		u, err := url.ParseRef("http://x"+base[len(Origin(base)):], ref)
		if err != nil {
			return bad("")
		}
		return finish(Origin(base), u), nil
	}
	if !strings.HasPrefix(rest, "//") {
		return bad("no host: ")
	}
	// The standard leaves out the port that is usual for the scheme, so it is
	// read as two that have another.
	u, err := url.Parse("http:" + rest)
	if err != nil || u.Hostname() == "" {
		return bad("no host: ")
	}
	if u.Port() == "" {
		if v, err := url.Parse("ftp:" + rest); err == nil {
			u = v
		}
	}
	if scheme == "news" {
		scheme = "nntp"
	}
	origin := scheme + "://" + u.Hostname()
	if port := u.Port(); port != "" && port != usualPorts[scheme] {
		origin += ":" + port
	}
	return finish(origin, u), nil
}

// finish writes a URL from its origin and what has been read of the rest.
func finish(origin string, u *url.Url) string {
	s := origin + u.Pathname()
	if q := u.Search(); len(q) > 1 {
		s += q
	}
	if strings.HasPrefix(s, "gopher:") && s[len(origin):] == "/1" { // the menu a server begins with
		s = s[:len(s)-1]
	}
	return escapes(s)
}

// mboxURL makes the URL of a mailbox or one of its messages canonical: a file's,
// but for its scheme.
func mboxURL(base, ref string) (string, error) {
	file := func(s string) string {
		if s = strings.TrimLeft(s, " \t\r\n\f"); schemeOf(s) == "mbox" {
			return "file" + s[len("mbox"):]
		}
		return s
	}
	u, err := slowURL(file(base), file(ref))
	if err != nil || !strings.HasPrefix(u, "file:") {
		return u, err
	}
	return "mbox" + u[len("file"):], nil
}

// tracking are the parameters of queries that tell servers where a reader came
// from, and nothing about what is asked for.
var tracking = []string{
	"utm_*", "mtm_*", "pk_*", "piwik_*", "hsa_*", "_hsenc", "_hsmi", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "ysclid",
	"twclid", "ttclid", "li_fat_id", "igshid", "mc_cid", "mc_eid", "mkt_tok", "oly_anon_id", "oly_enc_id", "vero_id", "_openstat", "wickedid", "s_kwcid",
}

// Tracking returns the parameters that Strip takes for "tracking".
func Tracking() []string { return append([]string(nil), tracking...) }

// Strip removes parameters from the query of a canonical URL: those of the
// names given, in any case, where a star at the end stands for anything. The
// rest stays as it is, and in its order.
func Strip(u string, names []string) string {
	i := strings.IndexByte(u, '?')
	if i < 0 || len(names) == 0 {
		return u
	}
	var b strings.Builder
	for part := range strings.SplitSeq(u[i+1:], "&") {
		key, _, _ := strings.Cut(part, "=")
		if stripped(key, names) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(part)
	}
	if b.Len() == len(u)-i-1 {
		return u
	}
	if b.Len() == 0 {
		return u[:i]
	}
	return u[:i+1] + b.String()
}

func stripped(key string, names []string) bool {
	for _, n := range names {
		prefix, star := strings.CutSuffix(n, "*")
		if len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix) && (star || len(key) == len(prefix)) && key != "" {
			return true
		}
	}
	return false
}
