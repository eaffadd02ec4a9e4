package crawl

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// told collects mentions as lines "URL date map".
func told(seq func(func(Mention, error) bool)) (lines []string, err error) {
	for m, e := range seq {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		s := m.URL
		if !m.Modified.IsZero() {
			s += " " + m.Modified.Format(time.RFC3339)
		}
		if m.Sitemap {
			s += " map"
		}
		lines = append(lines, s)
	}
	return lines, err
}

const sitemapXML = `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by <url><loc>/no</loc></url> hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="x" xmlns:xhtml="y">
<url><loc> http://site/a?b=1&amp;c=2 </loc><lastmod>2024-10-15</lastmod><changefreq>daily</changefreq><priority>0.5</priority>
<xhtml:link rel="alternate" hreflang="de" href="http://site/de/a"/>
<image:image><image:loc>http://site/i.png</image:loc></image:image></url>
<url><lastmod>2024-10-15T12:00+02:00</lastmod><loc><![CDATA[/b&c]]></loc></url>
<url><loc>mailto:x@y</loc></url><url/><url><lastmod>2024</lastmod></url>
<sm:url><sm:loc>HTTP://Site:80/c</sm:loc><sm:lastmod>2999-01-01</sm:lastmod></sm:url>
<url><loc>/d</loc><lastmod>soon</lastmod></url>
</urlset>`

func TestParseSitemap(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"xml": {sitemapXML, "http://site/a?b=1&c=2 2024-10-15T00:00:00Z,http://site/b&c 2024-10-15T10:00:00Z,http://site/c,http://site/d"},
		"index": {"<sitemapindex><sitemap><loc>/1.xml.gz</loc><lastmod>2024-05</lastmod></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>",
			"http://site/1.xml.gz 2024-05-01T00:00:00Z map,http://site/2.xml map"},
		"text":                 {"\ufeffhttp://site/a\r\nhttp://site/b\n\nnot one\nhttp://site/c", "http://site/a,http://site/b,http://site/c"},
		"utf-16":               {"\xff\xfeh\x00t\x00t\x00p\x00:\x00/\x00/\x00s\x00i\x00t\x00e\x00/\x00x\x00", "http://site/x"},
		"no escapes":           {"<urlset><url><loc>/a?b&c=<d></loc></url><url><loc>/e</loc></url>", "http://site/a?b&c=,http://site/e"},
		"cut off":              {"<urlset><url><loc>/a</loc></url><url><loc>/b", "http://site/a"},
		"never closed":         {"<urlset><url><loc>/a</loc><url><loc>/b</loc></url>", "http://site/b"},
		"empty":                {"", ""},
		"a feed":               {rss, "http://site/1 2024-01-02T03:04:05Z,http://site/2?x=1&y=2"},
		"another's namespace":  {`<urlset xmlns:v="x"><url><v:video><v:loc>/no</v:loc></v:video><loc>/a</loc></url></urlset>`, "http://site/a"},
		"long tags and texts":  {"<urlset><x " + strings.Repeat("a", 3*maxTag) + "><url><loc>/" + strings.Repeat("a", 2*maxTag) + "</loc></url><url><loc>/b</loc></url>", "http://site/b"},
		"deep":                 {"<urlset>" + strings.Repeat("<a>", 1000) + strings.Repeat("</a>", 1000) + "<url><loc>/b</loc></url>", "http://site/b"},
		"loc far below":        {"<urlset><url>" + strings.Repeat("<a>", 1000) + "<loc>/b</loc>", ""},
		"comments of all sort": {"<urlset><!----><!-- - -- ---><url><loc><!-- x -->/b</loc></url>", ""},
	} {
		for _, zip := range []bool{false, true} {
			var in io.Reader = strings.NewReader(c.text)
			if zip {
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				io.WriteString(z, c.text)
				z.Close()
				in = &b
			}
			got, err := told(ParseSitemap(in, "http://site/sitemap.xml"))
			if strings.Join(got, ",") != c.want || err != nil {
				t.Errorf("%s, zip %t: got %q, %v, want %s", name, zip, got, err, c.want)
			}
		}
	}
	for name, text := range map[string]string{
		"html": "<!DOCTYPE html><title>Not found</title><a href=/x>", "html without doctype": "\n<HTML><url><loc>/x", "words": "there is nothing here",
		"another xml": "<a>" + strings.Repeat("<b/>", 20) + "<urlset><url><loc>/x</loc></url>",
		"bytes":       "\x00\x01\x02" + strings.Repeat("x", 100_000),
	} {
		if got, err := told(ParseSitemap(strings.NewReader(text), "http://site/")); !errors.Is(err, ErrNotSitemap) || len(got) > 0 {
			t.Errorf("%s: got %q, %v, want no sitemap", name, got, err)
		}
	}
}

// endless repeats a text for ever and counts what was read.
type endless struct {
	text string
	n    int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text[int((e.n+int64(n))%int64(len(e.text))):])
	}
	e.n += int64(n)
	return n, nil
}

// TestSitemapBounded: a sitemap without an end is read to the protocol's bound,
// in memory that does not grow with it.
func TestSitemapBounded(t *testing.T) {
	for name, text := range map[string]string{
		"tags": "<urlset><x>", "one tag": "<urlset " + strings.Repeat("a", 100), "urls": "<urlset><url><loc>/x</loc></url>",
		"words": "http://site/x y\n", "open": "<urlset><url><loc>", "comment": "<!-- ", "cdata": "<urlset><url><loc><![CDATA[x", "text": "<urlset>xxx",
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		in := &endless{text: text}
		start := time.Now()
		got, peak := 0, uint64(0)
		m := newMentions("http://site/", func(Mention, error) bool {
			if got++; got%1000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				peak = max(peak, after.HeapAlloc)
			}
			return true
		})
		m.size, m.most = 1<<20, 3000
		err := m.sitemap(in)
		if in.n > m.size+maxTag || got > m.most+1 || peak > before.HeapAlloc+8<<20 {
			t.Errorf("%s: read %d, got %d mentions in %d bytes", name, in.n, got, peak-before.HeapAlloc)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
	// A zip of nothing but one letter.
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.CopyN(z, &endless{text: "<urlset>xxxxxxxxxxx"}, 2<<20)
	z.Close()
	m := newMentions("http://site/", func(Mention, error) bool { return true })
	m.size = 1 << 20
	if err := m.sitemap(&b); !errors.Is(err, errLong) {
		t.Errorf("zip of 2 MiB: got %v, want it too long", err)
	}
	if m = newMentions("http://site/", nil); m.size != 50<<20 || m.most != 50_000 {
		t.Errorf("got bounds %d and %d, want those of the protocol", m.size, m.most)
	}
}

// TestSitemapLeft: whoever has enough may leave.
func TestSitemapLeft(t *testing.T) {
	for range ParseSitemap(strings.NewReader(sitemapXML), "http://site/") {
		break
	}
	for range ParseFeed(strings.NewReader(rss), "http://site/") {
		break
	}
}

const rss = `<?xml version="1.0" encoding="windows-1251"?><rss version="2.0"><channel><title>t</title><link>http://site/</link>
<item><title>one</title><link>http://site/1</link><pubDate>Tue, 02 Jan 2024 03:04:05 GMT</pubDate></item>
<item><link>http://site/2?x=1&amp;y=2#c</link></item><item><title>none</title></item><item><link>javascript:x</link></item></channel></rss>`

func TestParseFeed(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"rss": {rss, "http://site/1 2024-01-02T03:04:05Z,http://site/2?x=1&y=2"},
		"rdf": {`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><item><title>x</title><link>/a</link></item></rdf:RDF>`, "http://site/a"},
		"atom": {`<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="self" href="/no"/><link rel="alternate" href="/a"/><updated>2024-01-02T03:04:05Z</updated><published>2020-01-01T00:00:00Z</published></entry></feed>`,
			"http://site/a 2024-01-02T03:04:05Z"},
		"json": {`{"version":"https://jsonfeed.org/version/1","title":"x","items":[{"id":"1","url":"/a","date_modified":"2024-01-02T03:04:05Z"}]}`, "http://site/a 2024-01-02T03:04:05Z"},
		"guid": {`<rss version="2.0"><channel><item><guid isPermaLink="true">http://site/g</guid></item></channel></rss>`, "http://site/g"},
	} {
		got, err := told(ParseFeed(strings.NewReader(c.text), "http://site/feed/rss.xml"))
		if strings.Join(got, ",") != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %s", name, got, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "<html>", sitemapXML} {
		if _, err := told(ParseFeed(strings.NewReader(text), "http://site/")); !errors.Is(err, ErrNotSitemap) {
			t.Errorf("%.10q: got %v, want no feed", text, err)
		}
	}
}

// TestFeedBounded: feeds made to cost their reader dear are refused at once.
func TestFeedBounded(t *testing.T) {
	start := time.Now()
	for name, text := range map[string]string{
		"nested":      "<rss><channel><item>" + strings.Repeat("<a:b>", 500_000),
		"nested json": `{"items":` + strings.Repeat(`[`, 2_000_000),
		"quoted":      "<rss><channel>" + strings.Repeat(`<a:b c="/>">`, 100_000),
		"texts":       "<rss><channel><a:b>" + strings.Repeat("a<c:d/>", 400_000),
		"long":        "<rss>" + strings.Repeat("x", 5<<20),
	} {
		if got, err := told(ParseFeed(strings.NewReader(text), "http://site/")); err == nil || len(got) > 0 {
			t.Errorf("%s: got %q, %v, want an error", name, got, err)
		}
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestFeedsOfTheLibrary runs the feeds that the reader of feeds is tested with,
// where its sources are at hand.
func TestFeedsOfTheLibrary(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	files, _ := filepath.Glob(filepath.Join(home, "go/pkg/mod/github.com/mmcdole/gofeed@v1.4.2/testdata/parser/*/*.*ml"))
	if len(files) < 100 {
		t.Skipf("got %d feeds of gofeed's own tests, which are not here", len(files))
	}
	failed := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := told(ParseFeed(bytes.NewReader(b), "http://site/")); err != nil {
			failed++
			t.Logf("%s: %v", filepath.Base(name), err)
		}
	}
	t.Logf("%d of %d feeds", len(files)-failed, len(files))
	if failed > len(files)/20 {
		t.Errorf("got %d of %d wrong", failed, len(files))
	}
}

func FuzzSitemap(f *testing.F) {
	f.Add([]byte(sitemapXML))
	f.Add([]byte("http://site/a\nhttp://site/b"))
	f.Add([]byte("<urlset><url><loc><![CDATA[x]]></loc></url>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for m, err := range ParseSitemap(bytes.NewReader(b), "http://site/d/") {
			if err != nil {
				break
			}
			if c, err := Canonical(m.URL); err != nil || c != m.URL {
				t.Errorf("got %q, which is not canonical: %q, %v", m.URL, c, err)
			}
			n++
		}
		if n > len(b) {
			t.Errorf("got %d mentions of %d bytes", n, len(b))
		}
	})
}

func FuzzFeed(f *testing.F) {
	f.Add([]byte(rss))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","url":"/a"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		start := time.Now()
		told(ParseFeed(bytes.NewReader(b), "http://site/d/"))
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%d bytes took %v", len(b), d)
		}
	})
}

func BenchmarkSitemap(b *testing.B) {
	var s strings.Builder
	s.WriteString("<urlset>")
	for i := range 50_000 {
		fmt.Fprintf(&s, "<url><loc>http://site/doc/page%d.html</loc><lastmod>2024-10-15</lastmod></url>\n", i)
	}
	b.SetBytes(int64(s.Len()))
	for b.Loop() {
		if got, err := told(ParseSitemap(strings.NewReader(s.String()), "http://site/")); len(got) != 50_000 || err != nil {
			b.Fatal(len(got), err)
		}
	}
}

func TestParseDate(t *testing.T) {
	want := []string{"2024-10-15T10:00:00Z", "2024-10-15T00:00:00Z", "2024-10-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-10-15T12:00:00Z", ""}
	var got []string
	for _, s := range []string{" 2024-10-15T12:00:00.5+02:00", "2024-10-15", "2024-10", "2024", "Tue, 15 Oct 2024 12:00:00 GMT", "0000-00-00"} {
		d := parseDate(s)
		got = append(got, when(d.Truncate(time.Second)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
