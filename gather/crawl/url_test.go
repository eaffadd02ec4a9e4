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
		"http://site/a??":              "http://site/a??",
		"http://site/a?b?":             "http://site/a?b?",
		"http://site.":                 "http://site./",
		"http://site:8443":             "http://site:8443/",
		"http://site:080/":             "http://site/",
		"http://site:00808/":           "http://site:808/",
		"http://1.2/x":                 "http://1.0.0.2/x",
		"http://a.0x7f/":               "",
		"http://site:65536/":           "",
		"http://a--b/":                 "http://a--b/",
		"ftp://user@Site:21/a/../b":    "ftp://site/b",
		"ftps://Site:990/a//b":         "ftps://site/a//b",
		"ftps://site:21":               "ftps://site:21/",
		"ftps://site:443/":             "ftps://site:443/",
		"GOPHER://u:p@Site:70/1/A b":   "gopher://site/1/A%20b",
		"gopher://site:80/1":           "gopher://site:80/",
		"gopher://site/1a\\b":          "gopher://site/1a%5Cb",
		"gopher://site/7/s?q=%7e":      "gopher://site/7/s?q=~",
		"gopher://\u00fc.example":      "gopher://xn--tda.example/",
		"news://site/comp.lang.c/":     "nntp://site/comp.lang.c/",
		"nntp://site:119/a.b/17":       "nntp://site/a.b/17",
		"nntps://[::1]:563/":           "nntps://[::1]/",
		"mbox:///var/mail/list/":       "mbox:///var/mail/list/",
		"mbox:/x/a%3f/b@c":             "mbox:///x/a%3F/b@c",
	} {
		got, err := Canonical(raw)
		if want == "" {
			if err == nil {
				t.Errorf("%q: got %q, want it bad", raw, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Errorf("%q: canonical again is %q, %v", got, again, err)
		}
	}
	for _, raw := range []string{"", "x", "/usr", "htp:/x", "gopher:x", "news:a.b", "wais://site/", "mbox://host/x", "mbox:///x?y", "file://host/x", "file:///x?y", "http://", "http://a b/", "javascript:x"} {
		if got, err := Canonical(raw); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: got %q, %v, want invalid", raw, got, err)
		}
	}
}

// TestResolveForeign: what menus and listings refer to.
func TestResolveForeign(t *testing.T) {
	for _, c := range [][3]string{
		{"gopher://site:80/1/d", "0/e", "gopher://site:80/1/0/e"},
		{"gopher://site:80/", "/0/e f", "gopher://site:80/0/e%20f"},
		{"gopher://site/", "gopher://Other:7070/1x", "gopher://other:7070/1x"},
		{"gopher://site/", "//other/1x", "gopher://other/1x"},
		{"gopher://site/", "http://web/x", "http://web/x"},
		{"http://site/", "gopher://g/", "gopher://g/"},
		{"ftp://site/d/", "sub/f;type=a", "ftp://site/d/sub/f;type=a"},
		{"ftps://site:80/d/", "../f\\g", "ftps://site:80/f%5Cg"},
		{"nntp://site/a.b/", "17", "nntp://site/a.b/17"},
		{"mbox:///x/l/", "a@b", "mbox:///x/l/a@b"},
		{"mbox:///x/l/", "http://web/", "http://web/"},
		{"file:///x/", "mbox:///y/", "mbox:///y/"},
	} {
		b := newBase(c[0])
		if got, err := b.resolve(c[1]); got != c[2] || err != nil {
			t.Errorf("%s in %s: got %q, %v, want %q", c[1], c[0], got, err, c[2])
		}
	}
}

func TestStrip(t *testing.T) {
	for u, want := range map[string]string{
		"http://s/":                      "http://s/",
		"http://s/?utm_source=x":         "http://s/",
		"http://s/?a=1&UTM_Medium=x&b=2": "http://s/?a=1&b=2",
		"http://s/?a=1&fbclid=2":         "http://s/?a=1",
		"http://s/?fbclid&a":             "http://s/?a",
		"http://s/?fbclidx=1&utm=2":      "http://s/?fbclidx=1&utm=2",
		"http://s/?a=%26utm_x=1&&b":      "http://s/?a=%26utm_x=1&&b",
		"http://s/?":                     "http://s/?",
	} {
		if got := Strip(u, Tracking()); got != want {
			t.Errorf("%s: got %s, want %s", u, got, want)
		}
	}
	if got := Strip("http://s/?a=1", nil); got != "http://s/?a=1" {
		t.Errorf("no names: got %s", got)
	}
}

func TestParseAccess(t *testing.T) {
	if got, err := ParseAccess("HTTP|FTP|http|Gopher"); err != nil || !slices.Equal(got, []string{"http", "ftp", "gopher"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, s := range []string{"", "|", "HTTP|WAIS", "telnet"} {
		if got, err := ParseAccess(s); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: got %q, %v, want invalid", s, got, err)
		}
	}
}

// refs are references as pages have them, of all kinds.
var refs = []string{
	"", "#x", "a.html", "a.html#x", "./a", "../a", "../../../a", "a/../b", "a/.", "a/..", ".", "..", "/", "/a//b", "//other/x",
	"?q", "?", "a?b/../c", "/a/b?x=/./y", "http://site/x", "http://site", "HTTP://SITE/X", "https://site/x", "http:x", "mailto:a@b",
	"a:b", "a/b:c", "./a:b", "a b", "a\\b", "a%20b", "a%7Eb", "%2e%2e/a", "a'b", "a\"b", "a<b>", "\u00fc", "a\tb", " a ", "a;b=c", "...", "a/...",
	"http://site//x", "http://site?x", "http://siteother/x", "http://site:80/x", "http://www.other-site.example.org/a/../b?c", "https://127.0.0.1/x", "http://1.2.3/x", "http://a.b.3/x", "http://xn--a/x", "http://0x7f.1/x", "http://a..b/x", "http://-a/x", "http://a./x", "http://a-.b/x", "https:///x", "httpx://a/x", "http://a/b c", "http://u@a/x", "https://a.b//x/./y", "http://site:8080/x", "/..", "/.", "/../a/./", "a?", "x/?y", "~a", "a|b", "a`b", "a{b}", "a^b", "[a]", "a%C3%BCb", "%2F%2f", "%25", "%", "%4", "%2E/x", "a%2",
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
		for _, page := range []string{"http://site/d/e.html?q", "gopher://site:80/1/d/e", "file:///d/e"} {
			b := newBase(page)
			got, ok := b.fast(ref)
			if !ok {
				continue
			}
			if want, err := slowURL(b.url, ref); err != nil || got != want {
				t.Errorf("%q in %s: got %q, want %q, %v", ref, page, got, want, err)
			}
		}
	})
}

// FuzzCanonical: the short way says what the standard's parser says, and what is
// canonical stays so.
func FuzzCanonical(f *testing.F) {
	for _, r := range append(refs, "http://site:8080/a/../b?c", "https://a.b.c/", "ftps://site:21/", "gopher://h/1x", "mbox:///x", "http://site:80", "http://0x7f.1/", "http://xn--a/") {
		f.Add(r)
		f.Add("http://" + r)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if got, ok := fastURL(raw); ok {
			if want, err := slowURL("", raw); err != nil || got != want {
				t.Errorf("%q: got %q, want %q, %v", raw, got, want, err)
			}
		}
		u, err := Canonical(raw)
		if err != nil {
			if !errors.Is(err, iofs.ErrInvalid) {
				t.Errorf("%q: got %v, want it invalid", raw, err)
			}
			return
		}
		if again, err := Canonical(u); err != nil || again != u {
			t.Errorf("%q: got %q, canonical again is %q, %v", raw, u, again, err)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	for _, u := range []string{"https://docs.example.org/library/os.html?x=1", "https://docs.example.org/library/%C3%BC.html"} {
		b.Run(u[len(u)-8:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Canonical(u)
			}
		})
	}
}

// TestStandard runs the URL standard's own cases, of web-platform-tests: what
// they call a failure must be one, and the rest come out as they say, less
// what no canonical URL has. Of schemes that are not known here nothing counts.
func TestStandard(t *testing.T) {
	b, err := os.ReadFile("testdata/urltestdata.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	total, wrong := map[string]int{}, 0
	for _, raw := range cases {
		var c struct {
			Input, Href, Username, Password, Host string
			Base                                  *string
			Failure                               bool
		}
		if json.Unmarshal(raw, &c) != nil {
			continue // a comment
		}
		kind, want := schemeOf(c.Href), ""
		switch {
		case c.Failure:
			kind = "failure"
		case kind == "http" || kind == "https" || kind == "ftp":
			want = plainHref(c.Href)
		case kind == "file" && c.Host == "" && !strings.Contains(c.Href, "?"):
			href, _, _ := strings.Cut(c.Href, "#")
			want, _ = fileURL(href)
		default:
			continue
		}
		total[kind]++
		var got string
		if c.Base == nil {
			got, err = Canonical(c.Input)
		} else if got, err = slowURL(*c.Base, c.Input); strings.HasPrefix(*c.Base, "http://example.org/") {
			base := newBase("http://example.org/foo/bar")
			got, err = base.resolve(c.Input)
		}
		if got != want || (err != nil) != c.Failure {
			wrong++
			t.Logf("%s: %q: got %q, %v, want %q", kind, c.Input, got, err, want)
		}
	}
	t.Logf("%v, of which %d wrong", total, wrong)
	if total["http"] < 200 || total["failure"] < 200 || wrong > 20 {
		t.Errorf("got %d wrong of %v, want at most 20", wrong, total)
	}
}

// plainHref is what remains of a URL as the standard writes it.
func plainHref(href string) string {
	href, _, _ = strings.Cut(href, "#")
	scheme, rest, _ := strings.Cut(href, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			rest = rest[at+1:]
		}
	}
	href = scheme + "://" + rest
	if i := strings.IndexByte(href, '?'); i == len(href)-1 {
		href = href[:i]
	}
	return escapes(href)
}

func TestFindLinks(t *testing.T) {
	var d Directives
	h := findRefs([]byte(`<base href="/x/"><base href="/y/"><a href="a&amp;b"><a href="a&amp;b#c"><a name=x>
		<area href=m><frame src=f><a rel="me NoFollow" href=no><script>"<a href=s>"</script><!-- <a href=c> --><a href="//other/">
		<meta name=ROBOTS content="noarchive, nofollow"><a href='https://site/secure'>
		<title><a href=t></title><TextArea><a href=t></b></TEXTAREA><a href="?a=1&copy=2"><A CLASS=x/HREF=up>
		<link rel="shortcut Canonical" href="/p&#46;html"><link rel=alternate type=application/rss+xml href=feed><!--><a href=after><!x><a x="y>" href=e`), "harvest", &d)
	if want := []string{"a&b", "m", "f", "//other/", "https://site/secure", "?a=1&copy=2", "feed", "after"}; !slices.Equal(h.links, want) {
		t.Errorf("refs: got %q, want %q", h.links, want)
	}
	if h.base != "/x/" || d.NoIndex || !d.NoFollow || !d.NoArchive {
		t.Errorf("got base %q, directives %+v", h.base, d)
	}
	want := []string{"http://site/x/a&b", "http://site/x/m", "http://site/x/f", "https://site/secure", "http://site/x/?a=1&copy=2",
		"http://site/x/feed", "http://site/x/after"}
	b := h.baseOf("http://site/p.html")
	if got := h.original(&b, "http://site/q.html"); got != "http://site/p.html" {
		t.Errorf("original: got %q", got)
	}
	if got := h.resolve(&b, "http://site/p.html", sameAs("http://site/")); !slices.Equal(got, want) {
		t.Errorf("resolved: got %q, want %q", got, want)
	}
}

func sameAs(page string) func(string) bool {
	return func(origin string) bool { return sameHost(origin, Origin(page)) }
}

func FuzzLinks(f *testing.F) {
	f.Add([]byte(`<base href=x><a href="y">`))
	f.Fuzz(func(t *testing.T, page []byte) {
		h := findRefs(page, "harvest", new(Directives))
		b := h.baseOf("http://site/d/")
		for _, u := range h.resolve(&b, "http://site/d/", sameAs("http://site/")) {
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

// resolveAll resolves the references of a page to its own host.
func resolveAll(h *references, page string) []string {
	b := h.baseOf(page)
	return h.resolve(&b, page, sameAs(page))
}
