package crawl

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
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

// TestMatchesSlowly: a hostile pattern costs no more than its length times the
// path's.
func TestMatchesSlowly(t *testing.T) {
	start := time.Now()
	for range 100 {
		matches(strings.Repeat("a", 2000), strings.Repeat("*a", 1000)+"b")
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("100 matches took %v", d)
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
