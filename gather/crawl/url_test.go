package crawl

import (
	"encoding/json"
	"errors"
	iofs "io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		"HTTP://Site:80/a/./b/../c#x":  "http://site/a/c",
		"https://site:443":             "https://site/",
		"http://site:8080/?":           "http://site:8080/",
		"http://user:pw@site/":         "http://site/",
		"http://site/%7ejoe/%e2%82%ac": "http://site/~joe/%E2%82%AC",
		"http://site/a b\t":            "http://site/a%20b",
		"http://site\\a":               "http://site/a",
		"http://\u00fc.example/":       "http://xn--tda.example/",
		"http://site/?b=2&a=1":         "http://site/?b=2&a=1",
		"http://0x7f.1/":               "http://127.0.0.1/",
		"file:///usr/share/doc":        "file:///usr/share/doc",
		"file:/usr/share/doc/":         "file:///usr/share/doc/",
		"file://localhost/x%20y":       "file:///x%20y",
		"file:///a%27b'%e4%2B%3f":      "file:///a'b'%E4+%3F",
		"file:///100%25":               "file:///100%25",
		"file:///100%":                 "file:///100%25",
		"http://site/100%":             "http://site/100%",
		"http://[::1]:8080/x":          "http://[::1]:8080/x",
		"http://site/a%2fb":            "http://site/a%2Fb",
	} {
		got, err := Canonical(raw)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Errorf("%q: canonical again is %q, %v", got, again, err)
		}
	}
	for _, raw := range []string{"", "x", "/usr", "htp:/x", "ftp://site/", "file://host/x", "file:///x?y", "http://", "http://a b/", "javascript:x"} {
		if got, err := Canonical(raw); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: got %q, %v, want invalid", raw, got, err)
		}
	}
}

// refs are references as pages have them, of all kinds.
var refs = []string{
	"", "#x", "a.html", "a.html#x", "./a", "../a", "../../../a", "a/../b", "a/.", "a/..", ".", "..", "/", "/a//b", "//other/x",
	"?q", "?", "a?b/../c", "/a/b?x=/./y", "http://site/x", "http://site", "HTTP://SITE/X", "https://site/x", "http:x", "mailto:a@b",
	"a:b", "a/b:c", "./a:b", "a b", "a\\b", "a%20b", "a%7Eb", "%2e%2e/a", "a'b", "a\"b", "a<b>", "\u00fc", "a\tb", " a ", "a;b=c", "...", "a/...",
	"http://site//x", "http://site?x", "http://siteother/x", "http://site:80/x", "http://site:8080/x", "/..", "/.", "/../a/./", "a?", "x/?y", "~a", "a|b", "a`b", "a{b}", "a^b", "[a]",
}

// TestResolve compares the short way with the standard's.
func TestResolve(t *testing.T) {
	quick := 0
	for _, page := range []string{"http://site/", "http://site/d/e.html", "http://site/d/e/?q=a/b", "http://site:8080/x"} {
		b := newBase(page)
		for _, ref := range refs {
			trimmed, _, _ := strings.Cut(strings.Trim(ref, " \t\r\n\f"), "#")
			want, werr := slowURL(page, trimmed)
			got, err := b.resolve(ref)
			if got != want || (err == nil) != (werr == nil) {
				t.Errorf("%s in %s: got %q, %v, want %q, %v", ref, page, got, err, want, werr)
			}
			if _, ok := b.fast(trimmed); ok {
				quick++
			}
		}
	}
	if quick < 100 {
		t.Errorf("only %d references took the short way", quick)
	}
}

func FuzzResolve(f *testing.F) {
	for _, r := range refs {
		f.Add(r)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		b := newBase("http://site/d/e.html?q")
		got, ok := b.fast(ref)
		if !ok {
			return
		}
		if want, err := slowURL(b.url, ref); err != nil || got != want {
			t.Errorf("%q: got %q, want %q, %v", ref, got, want, err)
		}
	})
}

// TestStandard runs the URL standard's own cases for the schemes known here.
func TestStandard(t *testing.T) {
	b, err := os.ReadFile("testdata/urltestdata.json")
	if err != nil {
		t.Skipf("the cases of web-platform-tests are not here: %v", err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	total, wrong := 0, 0
	for _, raw := range cases {
		var c struct {
			Input, Href, Username, Password string
			Base                            *string
			Failure                         bool
		}
		if json.Unmarshal(raw, &c) != nil || c.Failure || c.Base == nil || c.Username+c.Password != "" || !strings.HasPrefix(c.Href, "http") {
			continue
		}
		page, err := Canonical(*c.Base)
		if err != nil {
			continue
		}
		href, _, _ := strings.Cut(c.Href, "#")
		want := escapes(strings.TrimSuffix(href, "?"))
		base := newBase(page)
		total++
		if got, err := base.resolve(c.Input); err != nil || got != want {
			wrong++
			t.Logf("%q in %s: got %q, %v, want %q", c.Input, page, got, err, want)
		}
	}
	t.Logf("%d of %d cases", total-wrong, total)
	if total < 20 || wrong*20 > total {
		t.Errorf("got %d of %d wrong, want at most one in twenty", wrong, total)
	}
}

func TestFindLinks(t *testing.T) {
	h := findLinks([]byte(`<base href="/x/"><base href="/y/"><a href="a&amp;b"><a href="a&amp;b#c"><a name=x>
		<area href=m><frame src=f><a rel="me NoFollow" href=no><script>"<a href=s>"</script><!-- <a href=c> --><a href="//other/">
		<meta name=ROBOTS content="noarchive, nofollow"><a href='https://site/secure'>`))
	if want := []string{"a&b", "m", "f", "//other/", "https://site/secure"}; !slices.Equal(h.refs, want) {
		t.Errorf("refs: got %q, want %q", h.refs, want)
	}
	if h.base != "/x/" || h.noindex || !h.nofollow {
		t.Errorf("got base %q, noindex %t, nofollow %t", h.base, h.noindex, h.nofollow)
	}
	want := []string{"http://site/x/a&b", "http://site/x/m", "http://site/x/f", "https://site/secure"}
	if got := h.resolve("http://site/p.html"); !slices.Equal(got, want) {
		t.Errorf("resolved: got %q, want %q", got, want)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add([]byte(`<base href=x><a href="y">`))
	f.Fuzz(func(t *testing.T, page []byte) {
		h := findLinks(page)
		for _, u := range h.resolve("http://site/d/") {
			if !strings.HasPrefix(u, "http://site/") && !strings.HasPrefix(u, "https://site/") {
				t.Errorf("got %q, which is elsewhere", u)
			}
			if c, err := Canonical(u); err != nil || c != u {
				t.Errorf("got %q, which is not canonical: %q, %v", u, c, err)
			}
		}
	})
}

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://site", "https://site", true},
		{"http://site:8080", "http://site", false},
		{"http://site:8080", "https://site:8080", false},
		{"http://site:8080", "http://site:8080", true},
		{"http://site", "http://www.site", false},
		{"http://[::1]", "https://[::1]", true},
		{"file://", "file://", true},
		{"file://", "http://site", false},
	} {
		if got := sameHost(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: got %t, want %t", c.a, c.b, got, c.want)
		}
	}
}
