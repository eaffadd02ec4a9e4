package gather

import (
	"errors"
	iofs "io/fs"
	"reflect"
	"testing"
	"time"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

func TestConfig(t *testing.T) {
	c, err := parseConfig(`# what to gather
root url=HTTPS://Go.dev:443/doc/ depth=4 urls=2000 hosts=1 delay=2s search=depth
root url=file:///usr/share/doc
root url=http://site/ depth=unlimited urls=unlimited
leaf url=http://site/one.html delay=0s
every=6h ttl=720h
refresh=168h
fulltext=no user-agent='test/1 (+mailto:a@b)' from=a@b
allow=\.html$ deny='^/private/'
deny=.
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []crawl.Root{
		{URL: "https://go.dev/doc/", Depth: 4, URLs: 2000, Delay: 2 * time.Second, Search: crawl.Depth},
		{URL: "file:///usr/share/doc", Depth: -1, Delay: -1},
		{URL: "http://site/", Depth: -1, Delay: -1},
		{URL: "http://site/one.html", Leaf: true, Depth: -1},
	}
	for i, r := range c.roots {
		if !reflect.DeepEqual(r, want[i]) {
			t.Errorf("root %d: got %+v, want %+v", i, r, want[i])
		}
	}
	if len(c.roots) != len(want) || c.every != 6*time.Hour || c.ttl != 720*time.Hour || c.refresh != 168*time.Hour ||
		c.fullText || c.agent != "test/1 (+mailto:a@b)" || c.from != "a@b" {
		t.Errorf("got %+v", c)
	}
	for url, want := range map[string]string{
		"http://site/a.html":         "",
		"http://site/private/a.html": "", // the first that matches decides
		"http://site/private/a.txt":  "deny=^/private/",
		"http://site/a.txt":          "deny=.",
		"http://site":                "deny=.",
	} {
		if got := c.exclude(url, false); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}

func TestExcludeFolder(t *testing.T) {
	for _, c := range []struct{ text, url, want string }{
		{"deny=/node_modules/", "file:///x/node_modules/", "deny=/node_modules/"},
		{"deny=/node_modules/", "file:///x/", ""},
		{"deny=\\.o$ deny=/x/", "file:///x/", ""}, // a file in it may yet be let in by what follows
		{"allow=\\.c$\ndeny=.", "file:///x/", ""},
		{"deny=^/tmp/\nallow=\\.c$", "file:///tmp/", "deny=^/tmp/"},
	} {
		conf, err := parseConfig(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := conf.exclude(c.url, true); got != c.want {
			t.Errorf("%q: %s: got %q, want %q", c.text, c.url, got, c.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		text      string
		line, col int
		msg       string
	}{
		{"root", 1, 1, "root: url=URL is missing"},
		{"root=http://x/", 1, 1, "root: takes no value; write url=http://x/"},
		{"\nroot url=htp:/x", 2, 6, "root: bad url 'htp:/x': scheme htp: invalid argument"},
		{"root url=http://x/ detph=3", 1, 20, "root: unknown key 'detph'; there are url, depth, urls, hosts, delay and search"},
		{"root url=http://x/ depth=-1", 1, 20, "depth: -1 is out of range"},
		{"root url=http://x/ depth=1 depth=2", 1, 28, "root: depth is there twice"},
		{"root url=http://x/ urls=0", 1, 20, "urls: 0 would gather nothing; for no limit write unlimited"},
		{"root url=http://x/ hosts=2", 1, 20, "hosts: a root is gathered from its own host only; there is no hosts=2"},
		{"root url=http://x/ search=best", 1, 20, "search: 'best' is neither breadth nor depth"},
		{"leaf url=http://x/ depth=3", 1, 20, "leaf: unknown key 'depth'; there are url and delay"},
		{"root url=http://x/\nleaf url=HTTP://X:80", 2, 6, "leaf: http://x/ is already in line 1"},
		{"every=6h\nevery=7h", 2, 1, "every: already in line 1"},
		{"every=1ms", 1, 1, "every: 1ms is less than 1s"},
		{"deny=(", 1, 1, "deny: error parsing regexp: missing closing ): `(`"},
		{"deny=", 1, 1, "deny: the pattern is empty"},
		{"deny=a root url=http://x/", 1, 8, "deny: unknown key 'root'; a line has patterns only"},
		{"locale url=http://x/ path=/y", 1, 1, "unknown key 'locale'; there are root, leaf, allow, deny, local, select, gatherd, duplicates, every, refresh, ttl, fulltext, proxy, cookies, user-agent, from, warc and replay"},
		{"user-agent='a\u00e4'", 1, 1, "user-agent: 'aä' is not printable ASCII"},
	} {
		_, err := parseConfig(c.text)
		var e *ndb.Error
		if !errors.As(err, &e) || e.Line != c.line || e.Col != c.col || e.Msg != c.msg {
			t.Errorf("%q: got %v, want line %d, column %d: %s", c.text, err, c.line, c.col, c.msg)
		}
		if !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: the class of %v is not ErrInvalid", c.text, err)
		}
	}
	if err := checkLine("root url=http://x/ detph=3", 7); err == nil {
		t.Error("checkLine takes a line that no text could make good")
	} else if e := (*ndb.Error)(nil); !errors.As(err, &e) || e.Line != 7 || e.Col != 20 {
		t.Errorf("checkLine: got %v, want line 7, column 20", err)
	}
	for _, line := range []string{"", "# comment", "every=6h", "root url=file:///x"} {
		if err := checkLine(line, 3); err != nil {
			t.Errorf("checkLine %q: %v", line, err)
		}
	}
}
