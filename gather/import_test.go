package gather

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// oldConfig is a configuration as Harvest 1's manual teaches to write them.
const oldConfig = `#
#  A Gatherer of papers
#
Gatherer-Name:	My Sample Harvest Gatherer
Gatherer-Port:	8500
Top-Directory:	TOP
Working-Directory:	/tmp/work
Debug-Options:	-D68,1
Access-Delay:	2
Time-To-Live:	2419200
refresh-rate:	604800
HTTP-Proxy:	proxy.site:3128
FTP-Auth:	ftp.site:2121 me swordfish
HTTP-Basic-Auth:	The Realm you haddock
Local-Mapping:	http://site/~me/ /home/me/public_html/
Essence-Options:	--max-deletions 50 --full-text --stoplist lib/stop.cf --verbose
Post-Summarizing:	lib/myrules
Keep-Cache:	yes
Some-Thing:	else

<RootNodes>
# the site
http://site/papers/  URL=100,filter \
	Host=10,hosts.filter Access=HTTP|FTP|WAIS \
	Delay=3 Depth=5 Search=Depth
http://other/
HTTP://Third:80/ Site=2 Depth=0 Enumeration=/bin/enum Delay=0.5
file:///usr/doc/ Depth=2
ftp://you:cod%20fish@ftp2.site/pub/
news:comp.infosystems.harvest
telnet://old/
|sites.pl -a b Depth=1 URL=5000
</RootNodes>

<LeafNodes>
http://site/one.html
gopher://gopher.site/00/readme
| /bin/leaves
</LeafNodes>
every=6h
`

// oldConfigIn writes the files that the configuration names.
func oldConfigIn(t *testing.T) (top, text string) {
	top = t.TempDir()
	for name, text := range map[string]string{"filter": "Deny \\.gif$\nAllow .*\n", "hosts.filter": "Allow ^site:80\nDeny .*\n"} {
		if err := os.MkdirAll(filepath.Join(top, "lib"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, "lib", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top, strings.ReplaceAll(oldConfig, "TOP", top)
}

func TestImport(t *testing.T) {
	top, text := oldConfigIn(t)
	c, err := parseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	want := `refresh=604800s
proxy=http://proxy.site:3128
local url=http://site/~me/ path=/home/me/public_html/
maxdelete=50
fulltext=yes
root url=http://site/papers/ urls=100 urlfilter=TOP/lib/filter hosts=10 hostfilter=TOP/lib/hosts.filter access=http|ftp delay=3s depth=5 search=depth
root url=http://other/ urls=250 hosts=1 delay=2s
root url=http://third/ urls=250 hosts=2 delay=0.5s enumeration=/bin/enum
root url=file:///usr/doc/ urls=250 depth=2
root url=ftp://ftp2.site/pub/ urls=250 hosts=1 delay=2s
root program='TOP/lib/sites.pl -a b' urls=5000 hosts=1 delay=2s depth=1
leaf url=http://site/one.html
leaf url=gopher://gopher.site/00/readme
leaf program=/bin/leaves
every=6h
`
	want = "ttl=2419200s\n" + strings.ReplaceAll(want, "TOP", top)
	if c.old.text != want {
		t.Errorf("translated: got\n%s\nwant\n%s", c.old.text, want)
	}
	if again, err := parseConfig(c.old.text); err != nil || len(again.roots) != len(c.roots) || again.old != nil {
		t.Errorf("the translation: got %+v, %v", again, err)
	}
	if c.schedule.every != 6*time.Hour || c.ttl != 28*24*time.Hour || c.guard != (crawl.Guard{Share: leastShare, Floor: 50}) || len(c.roots) != 7 || len(c.lists) != 2 {
		t.Errorf("got %+v", c)
	}
	var lost []string
	for _, line := range c.ignored() {
		lost = append(lost, ndb.Format(line[:2]...))
	}
	if got, want := strings.Join(lost, "\n"), `ignored=Gatherer-Name line=4
ignored=Gatherer-Port line=5
ignored=Working-Directory line=7
ignored=Debug-Options line=8
ignored=--stoplist line=16
ignored=--verbose line=16
ignored=Post-Summarizing line=17
ignored=Keep-Cache line=18
ignored=Some-Thing line=19
ignored=Access=WAIS line=23
ignored=news:comp.infosystems.harvest line=30
ignored=telnet://old/ line=31`; got != want {
		t.Errorf("ignored: got\n%s\nwant\n%s", got, want)
	}
	roots, err := c.filtered()
	if err != nil {
		t.Fatal(err)
	}
	if ok, why := roots[0].URLFilter.Admits("/a.gif"); ok || why != top+"/lib/filter:1: Deny \\.gif$" {
		t.Errorf("filter: got %t, %q", ok, why)
	}
	if ok, _ := roots[0].HostFilter.Admits("other:80"); ok {
		t.Error("the filter of hosts lets all in")
	}
}

// TestImportSecrets: passwords of an old configuration go where they belong and
// are nowhere else.
func TestImportSecrets(t *testing.T) {
	_, text := oldConfigIn(t)
	c, err := parseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"swordfish", "haddock", "cod%20fish", "cod fish"} {
		if strings.Contains(c.text, s) || strings.Contains(c.old.text, s) {
			t.Errorf("%s can be read:\n%s\n%s", s, c.text, c.old.text)
		}
	}
	want := `ftp host=ftp.site:2121 user=me password=swordfish
ftp host=ftp2.site user=you password='cod fish'
auth host=site user=you password=haddock
auth host=other user=you password=haddock
auth host=third user=you password=haddock`
	if got := strings.Join(c.old.secrets, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := parseConfig(c.text)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.old.secrets) != 0 || again.old.text != c.old.text || again.text != c.text {
		t.Errorf("read again: got %q\n%s", again.old.secrets, again.text)
	}
	if n, m := strings.Count(text, "\n"), strings.Count(c.text, "\n"); n != m {
		t.Errorf("got %d lines of %d", m, n)
	}
}

func TestImportErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		msg  string
	}{
		{"<RootNodes>\nhttp://x/\n", 2, "<rootnodes> has no end"},
		{"<RootNodes>\n<LeafNodes>\n", 2, "<LeafNodes> in <rootnodes>"},
		{"Log-File: x\n</RootNodes>\n", 2, "</RootNodes>, which was not begun"},
		{"<RootNodes>\n\nhttp://x/ URL=10 \\\n Hosts=3\n</RootNodes>\n", 3, "'Hosts=3' is none of URL=, Host=, Access=, Delay=, Depth=, Search= and Enumeration="},
		{"<RootNodes>\nhtp://x/\n</RootNodes>\n", 2, "root: bad url 'htp://x/': scheme htp: invalid argument"},
		{"<RootNodes>\nhttp://x/\nhttp://x:80/\n</RootNodes>\n", 3, "root: http://x/ is already in line 1"},
		{"<RootNodes>\nhttp://x/ URL=lots\n</RootNodes>\n", 2, "urls: lots is not a number"},
		{"<RootNodes>\nhttp://x/ URL=1,filter\n</RootNodes>\n", 2, "'filter': no Top-Directory says where that is"},
		{"<RootNodes>\nhttp://x/ Delay=slow\n</RootNodes>\n", 2, "Delay: 'slow' is not a number of seconds"},
		{"<RootNodes>\nhttp://x/ Access=Mail\n</RootNodes>\n", 2, "Access: 'Mail' is not known"},
		{"<RootNodes>\nhttp://x/ Search=Best\n</RootNodes>\n", 2, "search: 'best' is neither breadth nor depth"},
		{"<LeafNodes>\n|\n</LeafNodes>\n", 2, "a program is missing after the bar"},
		{"\nTime-To-Live: long\n", 2, "Time-To-Live: 'long' is not a number of seconds"},
		{"Time-To-Live: 1\n", 1, "ttl: 1s is less than 1m0s"},
		{"FTP-Auth: host me\n", 1, "FTP-Auth: a line is a host, a user and a password"},
		{"Local-Mapping: http://x/\n", 1, "Local-Mapping: a line is a URL and a folder"},
		{"Essence-Options: --max-deletions many\n", 1, "Essence-Options: --max-deletions: 'many' is not a number"},
		{"Log-File: x\nRootNodes\n", 2, "unknown key 'RootNodes'; there are"},
	} {
		_, err := parseConfig(c.text)
		var e *ndb.Error
		if !errors.As(err, &e) || e.Line != c.line || !strings.HasPrefix(e.Msg, c.msg) {
			t.Errorf("%q: got %v, want line %d: %s", c.text, err, c.line, c.msg)
		}
	}
	c, err := parseConfig("<RootNodes>\n\n\nhttp://x/ URL=1,/no/such/filter\n</RootNodes>\n")
	if err != nil {
		t.Fatal(err)
	}
	var e *ndb.Error
	if _, err := c.filtered(); !errors.As(err, &e) || e.Line != 4 || !strings.Contains(e.Msg, "/no/such/filter") {
		t.Errorf("no filter: got %v, want it told of line 4", err)
	}
}

func TestIsOld(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "# Log-File: x\n": false, "root url=http://x/ \n": false, "every=6h": false, "deny=Log-File:x": false, "http://x/": false,
		"<RootNodes>": true, "  <LEAFNODES>": true, "Log-File:": true, "\n\nkeep-cache: yes": true, "Top-Directory:/x": true,
	} {
		if got := isOld(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
	for _, line := range strings.Split(oldConfig, "\n") {
		if err := checkLine(line, 3); err != nil {
			t.Errorf("%q: refused at the write: %v", line, err)
		}
	}
	for _, line := range []string{"root url=htp://x", "URL=3 ", "Delay=2"} {
		if err := checkLine(line, 1); (err == nil) == strings.HasPrefix(line, "root") {
			t.Errorf("%q: got %v", line, err)
		}
	}
}

// TestImportWritten: cp old.cf config.
func TestImportWritten(t *testing.T) {
	_, text := oldConfigIn(t)
	dir := t.TempDir()
	r := run(t, dir, "")
	if err := r.pour("config", text, fs.Trunc); err != nil {
		t.Fatal(err)
	}
	if st := r.read("status"); !strings.Contains(st, "\nignored=Keep-Cache line=18 reason='a visit that was cut off is taken up anyway'\n") {
		t.Errorf("status: got\n%s", st)
	}
	config, translated := r.read("config"), r.read("translated")
	if !strings.Contains(config, "\n<RootNodes>\n# the site\n") || strings.Contains(config, "swordfish") {
		t.Errorf("config: got\n%s", config)
	}
	b, err := os.ReadFile(filepath.Join(dir, "secrets"))
	if err != nil || !strings.Contains(string(b), "ftp host=ftp.site:2121 user=me password=swordfish\n") {
		t.Errorf("secrets: got %q, %v", b, err)
	}
	if err := r.pour("config", translated, fs.Trunc); err != nil {
		t.Fatal(err)
	}
	if st := r.read("status"); strings.Contains(st, "ignored=") || r.read("config") != translated || r.read("translated") != translated {
		t.Errorf("after the translation was written: got\n%s", st)
	}
	if err := r.pour("config", "<RootNodes>\nhttp://x/ Hosts=1\n</RootNodes>\n", fs.Trunc); err == nil || !strings.Contains(r.read("err"), "line 2") {
		t.Errorf("a bad one: got %v, err has %q", err, r.read("err"))
	}
	if got := r.read("config"); got != translated {
		t.Errorf("a bad one is in force: %s", got)
	}
}

// TestPasswordsHidden: a refused text is shown without the passwords in it.
func TestPasswordsHidden(t *testing.T) {
	r := run(t, t.TempDir(), "")
	for _, text := range []string{
		"root url=http://me:swordfish@site/\n",
		"root url=http://me:swordfish@site/ detph=3",
		"root url='ftp://me:sword@fish@site/' x",
		"root url=htp://me:swordfish@site/\n",
		"root url=http://site/\nroot url=ftp://me:swordfish/fish@site/\n",
		"FTP-Auth: site me swordfish extra\n",
		"http-basic-auth: realm me swordfish\n<RootNodes>\n",
		"<RootNodes>\nhtp://me:swordfish@x/ URL=1\n</RootNodes>\n",
		"<RootNodes>\nhttp://me:swordfish@x/ URL=x\n</RootNodes>\n",
	} {
		err := r.pour("config", text, fs.Trunc)
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		shown := err.Error() + r.read("err") + r.read("config.rejected") + r.read("events") + r.read("log")
		if strings.Contains(shown, "swordfish") || strings.Contains(shown, "sword@fish") || strings.Count(r.read("config.rejected"), "\n") != strings.Count(text, "\n") {
			t.Errorf("%q: got %v, and shown is\n%s", text, err, shown)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(oldConfig)
	f.Add("<RootNodes>\nhttp://u:p@x/ URL=1,f \\\nDepth=0\n|p a URL=3\n</RootNodes>\nHTTP-Basic-Auth: a b c")
	f.Add("root url=http://x/ allow=a\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConfig(text)
		if err != nil {
			if !errors.As(err, new(*ndb.Error)) {
				t.Errorf("got %v, which has no place", err)
			}
			return
		}
		again, err := parseConfig(c.text)
		if err != nil {
			t.Fatalf("what is kept does not parse: %v\n%s", err, c.text)
		}
		if c.old != nil && (again.old == nil || len(again.old.secrets) > 0) {
			t.Errorf("what is kept has secrets, or is no import:\n%s", c.text)
		}
		for n, line := range strings.Split(strings.TrimSuffix(c.text, "\n"), "\n") {
			if err := checkLine(line, n+1); err != nil && c.old == nil {
				t.Errorf("line %d is refused by itself: %v", n+1, err)
			}
		}
	})
}
