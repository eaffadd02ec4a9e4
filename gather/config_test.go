package gather

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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
		{URL: "https://go.dev/doc/", Depth: 4, URLs: 2000, Delay: 2 * time.Second, Search: crawl.Depth, Hosts: 1, Sitemaps: true, Feeds: true},
		{URL: "file:///usr/share/doc", Depth: -1, Delay: -1},
		{URL: "http://site/", Depth: -1, Delay: -1, Hosts: 1, Sitemaps: true, Feeds: true},
		{URL: "http://site/one.html", Leaf: true, Depth: -1},
	}
	if !reflect.DeepEqual(c.roots, want) {
		t.Errorf("roots: got %+v, want %+v", c.roots, want)
	}
	if c.schedule.every != 6*time.Hour || c.ttl != 720*time.Hour || c.refresh != 168*time.Hour ||
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

func rootKeys(not string) string {
	return "root: unknown key '" + not + "'; there are url, program, depth, urls, hosts, delay, search, access, allow, deny, urlfilter, " +
		"allowhost, denyhost, hostfilter, enumeration, sitemaps, feeds, outside and force"
}

// TestConfigAll reads every key of a root and the settings that are not above.
func TestConfigAll(t *testing.T) {
	dir := t.TempDir()
	filter := filepath.Join(dir, "filter")
	if err := os.WriteFile(filter, []byte("Deny /old/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parseConfig(`root url=ftp://site/pub/ hosts=unlimited access=FTP|HTTP sitemaps=yes feeds=yes outside=yes enumeration='/bin/list -a' allow=/a urlfilter=` + filter + ` deny=. denyhost=evil allowhost=^site
root url=file:///x watch=yes deny=/tmp/
leaf program='/bin/urls x' outside=yes
root program=/bin/more depth=1
at=15:30,03:00,15:30 revisit=age gone=48h maxdelete=10% strip=tracking,sid private=yes
limit body=64M time=1m pages=8 files=3 connections=2 tries=5 wait=1m
`)
	if err != nil {
		t.Fatal(err)
	}
	r := c.roots[0]
	if r.Hosts != 1<<30 || !slices.Equal(r.Access, []string{"ftp", "http"}) || !r.Sitemaps || !r.Feeds || !r.Outside || !slices.Equal(r.Enumeration, []string{"/bin/list", "-a"}) {
		t.Errorf("got %+v", r)
	}
	roots, err := c.filtered()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/a/old/": "allow=/a", "/old/": filter + ":1: Deny /old/", "/x": "deny=."} {
		if _, why := roots[0].URLFilter.Admits(path); why != want {
			t.Errorf("%s: got %q, want %q", path, why, want)
		}
	}
	if ok, why := roots[0].HostFilter.Admits("evil:80"); ok || why != "denyhost=evil" {
		t.Errorf("host: got %t, %q", ok, why)
	}
	if !slices.Equal(c.watched, []string{"file:///x"}) || len(c.lists) != 2 || !c.lists[0].root.Leaf || c.lists[1].root.Depth != 1 || len(roots) != 2 {
		t.Errorf("got watched %q, lists %+v, %d roots", c.watched, c.lists, len(roots))
	}
	if !slices.Equal(c.schedule.at, []time.Duration{3 * time.Hour, 15*time.Hour + 30*time.Minute}) || !c.schedule.byAge || c.gone != 48*time.Hour ||
		c.guard != (crawl.Guard{Share: 0.1}) || c.strip[len(c.strip)-1] != "sid" || len(c.strip) < 10 || !c.private {
		t.Errorf("got %+v", c)
	}
	if want := (crawl.Limits{Body: 64 << 20, Time: time.Minute, Pages: 8, Files: 3, Servers: 2, Tries: 5, Wait: time.Minute}); c.limits != want {
		t.Errorf("limits: got %+v, want %+v", c.limits, want)
	}
	// A file is read anew for each visit; one that is gone is told of.
	if err := os.WriteFile(filter, []byte("Allow /old/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if roots, err = c.filtered(); err != nil {
		t.Fatal(err)
	}
	if ok, _ := roots[0].URLFilter.Admits("/old/"); !ok {
		t.Error("the filter is the old one")
	}
	os.Remove(filter)
	var e *ndb.Error
	if _, err = c.filtered(); !errors.As(err, &e) || e.Line != 1 || e.Col < 100 || !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("no filter: got %v", err)
	}
}

func TestGuard(t *testing.T) {
	for text, want := range map[string]crawl.Guard{
		"": defaultGuard, "maxdelete=unlimited": {}, "maxdelete=0.5%": {Share: 0.005}, "maxdelete=7": {Share: leastShare, Floor: 7}, "maxdelete=0": {Share: leastShare},
	} {
		c, err := parseConfig(text)
		if err != nil || c.guard != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, c.guard, err, want)
		}
	}
}

func TestSchedule(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse("2006-01-02 15:04", "2026-01-"+s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct{ text, last, since, want string }{
		{"", "01 10:00", "", ""},
		{"every=6h", "01 10:00", "", "01 16:00"},
		{"at=03:00", "01 10:00", "", "02 03:00"},
		{"at=03:00,12:30", "01 10:00", "", "01 12:30"},
		{"at=03:00", "01 03:00", "", "02 03:00"},
		{"at=03:00", "01 10:00", "05 02:00", "05 03:00"}, // what was in force when it was due counts
		{"at=03:00", "01 10:00", "05 04:00", "06 03:00"},
		{"at=03:00 every=6h", "01 10:00", "", "01 16:00"},
		{"at=03:00 every=6h", "01 23:00", "", "02 03:00"},
	} {
		conf, err := parseConfig(c.text)
		if err != nil {
			t.Fatal(err)
		}
		var since, want time.Time
		if c.since != "" {
			since = day(c.since)
		}
		if c.want != "" {
			want = day(c.want)
		}
		if got := conf.schedule.next(day(c.last), since); !got.Equal(want) {
			t.Errorf("%s after %s, in force since %s: got %v, want %s", c.text, c.last, c.since, got, c.want)
		}
	}
}

// TestSources: programs name roots for each visit, and one that fails leaves
// none out.
func TestSources(t *testing.T) {
	name := filepath.Join(t.TempDir(), "urls")
	write := func(lines string) {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("echo http://a/; echo http://site/; echo rubbish; echo http://b/ 7 /dev/null 2 /dev/null HTTP 3 0 /bin/false")
	c, err := parseConfig("root url=http://site/\nroot program=" + name + " depth=2 delay=5s\nleaf program=" + name)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	tell := func(_, why string) { told = append(told, why) }
	roots, err := c.sources(t.Context(), tell)
	if err != nil || len(roots) != 3 || len(told) != 2 || !strings.HasPrefix(told[0], "line 3: bad url 'rubbish'") {
		t.Fatalf("got %+v, %v, told %q", roots, err, told)
	}
	if a := roots[1]; a.URL != "http://a/" || a.Leaf || a.Depth != 2 || a.Delay != 5*time.Second || a.URLs != defaultURLs {
		t.Errorf("got %+v", a)
	}
	if b := roots[2]; b.URL != "http://b/" || b.Depth != -1 || b.Delay != 3*time.Second || b.URLs != 7 || b.Hosts != 2 {
		t.Errorf("got %+v", b)
	}
	write("echo http://a/; exit 1")
	if roots, err := c.sources(t.Context(), tell); err == nil {
		t.Errorf("a program that fails: got %+v", roots)
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
		{"root url=http://x/ detph=3", 1, 20, rootKeys("detph")},
		{"root url=http://x/ depth=-1", 1, 20, "depth: -1 is out of range"},
		{"root url=http://x/ depth=1 depth=2", 1, 28, "root: depth is there twice"},
		{"root url=http://x/ urls=0", 1, 20, "urls: 0 would gather nothing; for no limit write unlimited"},
		{"root url=http://x/ hosts=0", 1, 20, "hosts: 0 would gather nothing; for no limit write unlimited"},
		{"root url=http://x/ hosts=many", 1, 20, "hosts: many is not a number"},
		{"root url=http://x/ access=HTTP|WAIS", 1, 20, "access: 'wais' is none of file, ftp, ftps, gopher, http, https, mbox, news, nntp, nntps: invalid argument"},
		{"root url=http://x/ enumeration=prog", 1, 20, "enumeration: 'prog' is not the name of a program that begins with a slash"},
		{"root url=http://x/ enumeration=", 1, 20, "enumeration: '' is not the name of a program that begins with a slash"},
		{"root url=http://x/ allow=( deny=x", 1, 20, "allow: error parsing regexp: missing closing ): `(`"},
		{"root url=http://x/ urlfilter=f", 1, 20, "urlfilter: 'f' does not begin with a slash"},
		{"root url=http://x/ sitemaps=perhaps", 1, 20, "sitemaps: perhaps is not yes or no"},
		{"root url=http://x/ program=/bin/x", 1, 20, "root: url and program do not go together"},
		{"root program=/bin/x url=http://x/", 1, 6, "root: url and program do not go together"},
		{"root program=x", 1, 6, "program: 'x' is not the name of a program that begins with a slash"},
		{"local url=http://me:pw@x/ path=/srv", 1, 7, "local: a password is not for config, which can be read; write it to secrets"},
		{"select url=HTTP:/me:pw@x/", 1, 8, "select: a password is not for config, which can be read; write it to secrets"},
		{"leaf url=ftp:me:pw@x/", 1, 6, "leaf: a password is not for config, which can be read; write it to secrets"},
		{"root url=http:\\\\me:pw@x/", 1, 6, "root: a password is not for config, which can be read; write it to secrets"},
		{"root url=http:////me:pw@x/", 1, 6, "root: a password is not for config, which can be read; write it to secrets"},
		{"root url=http://x/ enumeration='/bin/list http://me:pw@y/'", 1, 20, "root: a password is not for config, which can be read; write it to secrets"},
		{"root url=http://me:pw@x/", 1, 6, "root: a password is not for config, which can be read; write it to secrets"},
		{"root url=file:///x access=FTP", 1, 20, "root of files: unknown key 'access'; there are url, depth, urls, hosts, delay, search, allow, deny, urlfilter, enumeration and watch"},
		{"root url=http://x/ watch=yes", 1, 20, rootKeys("watch")},
		{"at=25:00", 1, 1, "at: '25:00' is no time of the day such as 03:30, in UTC"},
		{"at=", 1, 1, "at: '' is no time of the day such as 03:30, in UTC"},
		{"revisit=never", 1, 1, "revisit: 'never' is neither age nor all"},
		{"maxdelete=0%", 1, 1, "maxdelete: '0%' is no share; write one such as 10%"},
		{"maxdelete=-1", 1, 1, "maxdelete: -1 is out of range"},
		{"strip=utm_*,", 1, 1, "strip: '' is not the name of a parameter"},
		{"strip=*", 1, 1, "strip: '*' is not the name of a parameter"},
		{"limit=3", 1, 1, "limit: takes no value; write body=3"},
		{"limit pages=0", 1, 7, "limit: pages is from 1 to 10000"},
		{"limit pages=3\nlimit pages=4", 2, 7, "limit: pages is there twice"},
		{"limit body=0", 1, 7, "limit: body of 0 bytes would gather nothing"},
		{"limit time=1ms", 1, 7, "time: 1ms is less than 1s"},
		{"limit memory=1", 1, 7, "limit: unknown key 'memory'; there are body, time, wait, tries, pages, files and connections"},
		{"root url=http://x/ search=best", 1, 20, "search: 'best' is neither breadth nor depth"},
		{"leaf url=http://x/ depth=3", 1, 20, "leaf: unknown key 'depth'; there are url, program, delay, outside and force"},
		{"root url=http://x/\nleaf url=HTTP://X:80", 2, 6, "leaf: http://x/ is already in line 1"},
		{"every=6h\nevery=7h", 2, 1, "every: already in line 1"},
		{"every=1ms", 1, 1, "every: 1ms is less than 1s"},
		{"deny=(", 1, 1, "deny: error parsing regexp: missing closing ): `(`"},
		{"deny=", 1, 1, "deny: the pattern is empty"},
		{"deny=a root url=http://x/", 1, 8, "deny: unknown key 'root'; a line has patterns only"},
		{"locale url=http://x/ path=/y", 1, 1, "unknown key 'locale'; there are root, leaf, allow, deny, local, select, limit, gatherd, duplicates, every, at, revisit, refresh, ttl, gone, maxdelete, fulltext, strip, private, proxy, cookies, user-agent, from, warc and replay"},
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
