package cache

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
)

// FuzzMeta takes again what was written of what was read.
func FuzzMeta(f *testing.F) {
	p := &policy.Response{URL: "http://h/a", Status: 200, Header: http1.Header{{Name: "ETag", Value: `"x"`}, {Name: "Age", Value: "7"}}, Selecting: http1.Header{{Name: "Accept", Value: "a"}}, Authorized: true, Asked: time.Unix(1, 2), Came: time.Unix(3, 4)}
	f.Add(appendMeta(nil, p, "OK"))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, reason, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, reason2, err := decodeMeta(appendMeta(nil, p, reason))
		if p.Status < 100 || p.Status > 999 || len(p.Header.Text("Age")) > 9 {
			return // the line has no such status
		}
		for _, h := range p.Header {
			if strings.EqualFold(h.Name, "Content-Length") || strings.EqualFold(h.Name, "Age") {
				return // which is not kept there
			}
		}
		if err != nil || reason2 != reason || !reflect.DeepEqual(p.Header, again.Header) || p.URL != again.URL || p.Status != again.Status || !p.Came.Equal(again.Came) || len(p.Selecting) != len(again.Selecting) {
			t.Fatalf("got %+v %q, %v, want %+v %q", again, reason2, err, p, reason)
		}
	})
}

// FuzzURL holds the form of URLs to be one that stays.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://Example.ORG:80/a?b#c", "https://[::1]:443", "ftp://h/x", "http://a@b/", "gopher://h:70/1/x", "http://h?q=/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseURL(s)
		if err != nil {
			return
		}
		again, err := parseURL(l.String())
		if err != nil || *again != *l {
			t.Fatalf("%q: got %v, %v, want %v", s, again, err, l)
		}
		if isCanonical(s) && !strings.Contains(s, "#") && l.String() != s {
			t.Fatalf("%q is not as it is kept: %q", s, l.String())
		}
		if host, port := l.hostPort(); host == "" || port == 0 {
			t.Fatalf("%q: got host %q and port %d", s, host, port)
		}
	})
}

// FuzzConfig reads whatever is written.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{
		"listen addr=127.0.0.1:3128\naccel addr=127.0.0.1:1 url=http://h host=client\n", "client allow=10.0.0.0/8 deny=all\negress allow=::1\n", "life url=x percent=5 min=1h max=2h\nmemory=1M disk=2M\n",
		"parent addr=h:3128 icp=3130 weight=2 domain=a,!b proxy-only=no name=p\ndirect never=yes inside=a\nicp addr=127.0.0.1:3130 allow=all\n", "quick left=1M done=50%\nlimit head=10 idle=1s body=1G\nports=1-2,3\nconnect=none\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseConfig(s)
		if err == nil && c.text != s {
			t.Fatalf("got the text %q, want %q", c.text, s)
		}
	})
}

// FuzzNames passes over what is no line.
func FuzzNames(f *testing.F) {
	f.Add(appendName(nil, keyOf("http://h/"), "http://h/"))
	f.Add([]byte("nonsense\n\n00 x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		if err := scanNames(bytes.NewReader(b), func(_ segment.Key, url []byte) bool {
			n += len(url)
			looksLikeDir(url)
			return true
		}); err != nil || n > len(b) {
			t.Fatalf("got %d bytes of names and %v from %d", n, err, len(b))
		}
	})
}

// FuzzPart holds names of the tree and parts of URLs together.
func FuzzPart(f *testing.F) {
	f.Add("a.html")
	f.Add("s?q=a/b")
	f.Add(".self")
	f.Fuzz(func(t *testing.T, part string) {
		name := nameOf(part)
		if name == "" || strings.Contains(part, "%2F") || strings.ContainsAny(part, "#") {
			return
		}
		if strings.Contains(name, "/") && !strings.Contains(strings.SplitN(part, "?", 2)[0], "/") {
			t.Fatalf("%q: got the name %q", part, name)
		}
		if back, err := urlPart(name); err == nil && back != part {
			t.Fatalf("%q: got %q of the name %q", part, back, name)
		}
	})
}
