package crawl

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRobotsSuite runs the cases of Google's own suite, where they are at hand.
// Those that may fail have URLs with bytes that canonical URLs never have, or an
// agent's name with a blank in it.
func TestRobotsSuite(t *testing.T) {
	f, err := os.Open("testdata/robots-cases.jsonl")
	if err != nil {
		t.Skipf("the cases of google/robotstxt are not here: %v", err)
	}
	defer f.Close()
	total, failed := 0, 0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var c struct {
			Test, Robots, Agent, URL string
			Want                     bool
		}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		text := func(h string) string {
			b, err := hex.DecodeString(h)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		total++
		if got, why := ParseRobots(text(c.Robots), text(c.Agent)).Allowed(text(c.URL)); got != c.Want {
			failed++
			t.Logf("%s: %s: got %t by %q, want %t, of\n%s", c.Test, text(c.URL), got, why, c.Want, text(c.Robots))
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d cases", total-failed, total)
	if total < 140 || failed > 2 {
		t.Errorf("got %d of %d wrong, want at most 2 of 145", failed, total)
	}
}

func TestRobots(t *testing.T) {
	for _, c := range []struct {
		robots, agent, url string
		want               bool
		why                string
	}{
		{"", "harvest/1", "http://s/", true, ""},
		{"User-agent: *\nDisallow: *", "harvest/1", "http://s/x", false, "Disallow: *"},
		{"User-agent: *\nDisallow:", "harvest/1", "http://s/x", true, ""},
		{"User-agent: *\nDisallow: /\nUser-agent: harvest\nDisallow: /x", "harvest/1", "http://s/y", true, ""},
		{"User-agent: *\nDisallow: /\nUser-agent: HARVEST\nDisallow: /x", "harvest/1 (+http://x)", "http://s/x", false, "Disallow: /x"},
		{"User-agent: harvester\nDisallow: /", "harvest/1", "http://s/y", true, ""},
		{"User-agent: *\nDisallow: /a\nAllow: /a/b", "harvest/1", "http://s/a/b", true, "Allow: /a/b"},
		{"User-agent: *\nAllow: /p\nDisallow: /p", "harvest/1", "http://s/p", true, "Allow: /p"},
		{"User-agent: *\nDisallow: /*.pdf$", "harvest/1", "http://s/x/y.pdf", false, "Disallow: /*.pdf$"},
		{"User-agent: *\nDisallow: /*.pdf$", "harvest/1", "http://s/x/y.pdf?v", true, ""},
		{"User-agent: *\nDisallow: /*a*b$", "harvest/1", "http://s/abab", false, "Disallow: /*a*b$"},
		{"User-agent: *\nDisallow: /%7Ejoe/", "harvest/1", "http://s/~joe/x", false, "Disallow: /~joe/"},
		{"User-agent: *\nDisallow: /?q=", "harvest/1", "http://s?q=1", false, "Disallow: /?q="},
		{"User-agent: *\nCrawl-delay: 10\n\nUser-agent: bad\nDisallow: /", "harvest/1", "http://s/", true, ""},
	} {
		got, why := ParseRobots(c.robots, c.agent).Allowed(c.url)
		if got != c.want || why != c.why {
			t.Errorf("%q for %s: %s: got %t by %q, want %t by %q", c.robots, c.agent, c.url, got, why, c.want, c.why)
		}
	}
}

func TestCrawlDelay(t *testing.T) {
	for robots, want := range map[string]time.Duration{
		"User-agent: *\nCrawl-delay: 2.5":                                    2500 * time.Millisecond,
		"User-agent: *\nCrawl-delay: 9\nUser-agent: harvest\nCrawl-delay: 3": 3 * time.Second,
		"User-agent: *\nCrawl-delay: 9\nUser-agent: harvest\nDisallow: /x":   0,
		"User-agent: *\nCrawl-delay: -1":                                     0,
		"User-agent: *\nCrawl-delay: soon":                                   0,
		"User-agent: *\nCrawl-delay: 1e99":                                   maxDelay,
		"User-agent: *\nCrawl-delay: NaN":                                    0,
		"Crawl-delay: 5\nUser-agent: *\nDisallow: /x":                        0,
	} {
		if got := ParseRobots(robots, "harvest/1").Delay; got != want {
			t.Errorf("%q: got %v, want %v", robots, got, want)
		}
	}
}

func TestSitemapLines(t *testing.T) {
	r := ParseRobots("Sitemap: http://site/1.xml\nUser-agent: other\nDisallow: /\nsitemap:/2.xml\nSITEMAP: http://site/1.xml\nSitemap:\n", "harvest/1")
	if got := strings.Join(r.Sitemaps, " "); got != "http://site/1.xml /2.xml" {
		t.Errorf("got %q", got)
	}
	if got := ParseRobots(strings.Repeat("Sitemap: /x\n", 10)+manySitemaps(1000), "x").Sitemaps; len(got) != maxSitemaps {
		t.Errorf("got %d sitemaps, want %d", len(got), maxSitemaps)
	}
}

func manySitemaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Sitemap: /%d.xml\n", i)
	}
	return b.String()
}

// TestRobotsLong: of 50 MB, what RFC 9309 asks for is read, and whole lines.
func TestRobotsLong(t *testing.T) {
	long := "User-agent: *\nDisallow: /first\n" + strings.Repeat("Disallow: /a\n", 4<<20) + "Disallow: /last\n"
	start := time.Now()
	r := ParseRobots(long, "harvest/1")
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("%d bytes took %v", len(long), d)
	}
	if ok, _ := r.Allowed("http://s/first"); ok {
		t.Error("the first rule is not obeyed")
	}
	if ok, _ := r.Allowed("http://s/last"); !ok || len(r.rules) > maxRobots/10 {
		t.Errorf("got %d rules, the last among them", len(r.rules))
	}
	// The line that is cut is left out: /private is not /priv.
	pad := strings.Repeat("#", maxRobots-30)
	if ok, why := ParseRobots("User-agent: *\n"+pad+"\nDisallow: /private", "x").Allowed("http://s/prix"); !ok {
		t.Errorf("got %s", why)
	}
}

func TestDirectives(t *testing.T) {
	at := time.Date(2010, 6, 25, 22, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		headers []string
		want    Directives
	}{
		{[]string{""}, Directives{}},
		{[]string{"noindex, nofollow"}, Directives{NoIndex: true, NoFollow: true}},
		{[]string{"NoIndex", "noarchive"}, Directives{NoIndex: true, NoArchive: true}},
		{[]string{"none"}, Directives{NoIndex: true, NoFollow: true}},
		{[]string{"all, index, follow, max-snippet:-1, max-image-preview:large"}, Directives{}},
		{[]string{"googlebot: noindex, nofollow"}, Directives{}},
		{[]string{"harvest: noindex", "otherbot: nofollow"}, Directives{NoIndex: true}},
		{[]string{"otherbot: noindex, harvest: nofollow"}, Directives{NoFollow: true}},
		{[]string{"HARVEST: nofollow, max-snippet: 50, noindex"}, Directives{NoFollow: true, NoIndex: true}},
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PDT"}, Directives{Until: at}},
		{[]string{"unavailable_after: Friday, 25-Jun-10 22:00:00 GMT, nofollow"}, Directives{Until: at, NoFollow: true}},
		{[]string{"nofollow, unavailable_after: 2010-06-25T22:00:00Z, noarchive"}, Directives{Until: at, NoFollow: true, NoArchive: true}},
		{[]string{"unavailable_after: 2010-06-26", "unavailable_after: Fri, 25 Jun 2010 22:00:00 GMT"}, Directives{Until: at}},
		{[]string{"otherbot: unavailable_after: 25 Jun 2010 15:00:00 PDT"}, Directives{}},
		{[]string{"harvest: unavailable_after: 25 Jun 2010 15:00:00 PDT"}, Directives{Until: at}},
		{[]string{"unavailable_after: soon, noindex"}, Directives{NoIndex: true}},
	} {
		var d Directives
		for _, h := range c.headers {
			d.Header(h, "harvest/1.0 (+http://x)")
		}
		if !d.Until.Equal(c.want.Until) || d.NoIndex != c.want.NoIndex || d.NoFollow != c.want.NoFollow || d.NoArchive != c.want.NoArchive {
			t.Errorf("%q: got %+v, want %+v", c.headers, d, c.want)
		}
	}
	d := Directives{Until: at}
	if got := d.Excluded(at.Add(-time.Second)); got != "" {
		t.Errorf("before: got %q", got)
	}
	if got := d.Excluded(at); got != "the page says unavailable_after 2010-06-25T22:00:00Z" {
		t.Errorf("after: got %q", got)
	}
	if d.NoIndex = true; d.Excluded(at) != "the page says noindex" {
		t.Errorf("noindex: got %q", d.Excluded(at))
	}
}

func TestMetaDirectives(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          bool // noindex
	}{
		{"robots", "NOINDEX", true}, {"ROBOTS", "nofollow;noindex", true}, {"harvest", "noindex", true}, {"Harvest", "none", true},
		{"googlebot", "noindex", false}, {"description", "noindex", false}, {"", "noindex", false}, {"robots", "index,follow", false},
	} {
		var d Directives
		if d.Meta(c.name, c.content, "harvest/1"); d.NoIndex != c.want {
			t.Errorf("%s=%s: got %t, want %t", c.name, c.content, d.NoIndex, c.want)
		}
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add("harvest: unavailable_after: Fri, 25 Jun 2010 22:00:00 GMT, noindex")
	f.Fuzz(func(t *testing.T, s string) {
		var d Directives
		d.Header(s, "harvest/1")
		d.Meta("robots", s, "harvest/1")
		if d.NoIndex && !strings.Contains(strings.ToLower(s), "no") {
			t.Errorf("%q: got noindex", s)
		}
	})
}

func BenchmarkRobots(b *testing.B) {
	for _, n := range []int{10, 200, 20000} {
		var text strings.Builder
		text.WriteString("User-agent: *\n")
		for i := range n {
			fmt.Fprintf(&text, "Disallow: /folder%d/\n", i)
		}
		r := ParseRobots(text.String(), "harvest/1")
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			for b.Loop() {
				r.Allowed("http://site/other/page.html")
			}
		})
	}
}

// TestMatchesSlowly: a hostile pattern costs no more than its length times the
// path's.
func TestMatchesSlowly(t *testing.T) {
	start := time.Now()
	for range 10 {
		matches(strings.Repeat("a", 2000), strings.Repeat("*a", 1000)+"b")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("10 matches took %v", d)
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\nAllow: /index.html\nCrawl-delay: 1\n", "/aXb")
	f.Fuzz(func(t *testing.T, robots, path string) {
		ok, why := ParseRobots(robots, "harvest/1").Allowed("http://site/" + path)
		if !ok && why == "" {
			t.Error("forbidden by no rule")
		}
	})
}

// FuzzMatches compares with the definition, tried byte by byte.
func FuzzMatches(f *testing.F) {
	f.Add("/abcab", "/a*b$")
	f.Add("/abc", "/a*$*c")
	f.Fuzz(func(t *testing.T, path, pattern string) {
		if len(path) > 30 || strings.Count(pattern, "*") > 4 {
			return
		}
		if got, want := matches(path, pattern), slowMatches(path, pattern); got != want {
			t.Errorf("%q, %q: got %t, want %t", path, pattern, got, want)
		}
	})
}

func slowMatches(path, pattern string) bool {
	switch {
	case pattern == "":
		return true
	case pattern == "$":
		return path == ""
	case pattern[0] == '*':
		for i := 0; i <= len(path); i++ {
			if slowMatches(path[i:], pattern[1:]) {
				return true
			}
		}
		return false
	}
	return path != "" && path[0] == pattern[0] && slowMatches(path[1:], pattern[1:])
}

// FuzzAllowed: the rule that decides is the longest that matches, whatever the
// short way makes of it.
func FuzzAllowed(f *testing.F) {
	f.Add("/a*b$\n/abc\n/a$\n/\n/a$b", "/aXb")
	f.Fuzz(func(t *testing.T, patterns, path string) {
		if strings.ContainsAny(path, "?#;") || strings.ContainsAny(patterns, "%#\r\x00\u0085") {
			return
		}
		text, want := "User-agent: *\n", ""
		for p := range strings.SplitSeq(patterns, "\n") {
			if p == "" || strings.TrimSpace(p) != p || len(p) > 1000 || strings.IndexFunc(p, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
				return
			}
			text += "Disallow: " + p + "\n"
			if len(p) > len(want) && matches("/"+path, p) {
				want = p
			}
		}
		ok, why := ParseRobots(text, "x").Allowed("http://site/" + path)
		if ok != (want == "") || !ok && len(why) != len("Disallow: "+want) {
			t.Errorf("%q: %q: got %t by %q, want %q", text, path, ok, why, want)
		}
	})
}
