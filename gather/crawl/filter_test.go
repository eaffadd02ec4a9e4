package crawl

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"harvest/fs/ndb"
)

func TestParseFilter(t *testing.T) {
	f, err := ParseFilter("lib/f", "# the manual\n\nDeny   /old/\nallow  ^/manual/\r\nDeny\t.\n")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/manual/a":     "lib/f:4: allow ^/manual/",
		"/manual/old/a": "!lib/f:3: Deny /old/",
		"/x":            "!lib/f:5: Deny .",
	} {
		ok, why := f.Admits(path)
		if !ok {
			why = "!" + why
		}
		if why != want {
			t.Errorf("%s: got %q, want %q", path, why, want)
		}
	}
	if f.Len() != 3 {
		t.Errorf("got %d rules, want 3", f.Len())
	}
	for text, want := range map[string][2]int{
		"Deny /a\nGrant /b":      {2, 1},
		"Deny":                   {1, 1},
		"Deny /a b":              {1, 1},
		"\n  Allow  a(b":         {2, 10},
		"Deny " + longRule(5000): {1, 6},
	} {
		_, err := ParseFilter("f", text)
		var e *ndb.Error
		if !errors.As(err, &e) || [2]int{e.Line, e.Col} != want || !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%.20q: got %v, want trouble at %v", text, err, want)
		}
	}
	if _, err := ParseFilter("f", strings.Repeat("Deny a\n", maxFilterRules+1)); err == nil {
		t.Error("too many rules: got no error")
	}
}

func longRule(n int) string { return strings.Repeat("a", n) }

// TestFilterNone: without a rule, and without a Filter, all is let in.
func TestFilterNone(t *testing.T) {
	for _, f := range []*Filter{nil, {}} {
		if ok, why := f.Admits("/x"); !ok || why != "" || f.Closes("/x/") != "" || f.Len() != 0 {
			t.Errorf("got %t, %q", ok, why)
		}
	}
	if err := new(Filter).Add(true, "", ""); err == nil {
		t.Error("an empty pattern is taken")
	}
}

func TestFilterCloses(t *testing.T) {
	for _, c := range []struct{ text, folder, want string }{
		{"Deny /node_modules/", "/x/node_modules/", "f:1: Deny /node_modules/"},
		{"Deny /node_modules/", "/x/", ""},
		{"Deny \\.o$\nDeny /x/", "/x/", ""}, // a file in it may yet be let in by what follows
		{"Allow \\.c$\nDeny .", "/x/", ""},
		{"Deny ^/tmp/\nAllow \\.c$", "/tmp/", "f:1: Deny ^/tmp/"},
	} {
		f, err := ParseFilter("f", c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Closes(c.folder); got != c.want {
			t.Errorf("%q: %s: got %q, want %q", c.text, c.folder, got, c.want)
		}
	}
}

// TestPosix: expressions mean what regcomp(3) of GNU makes of them, extended.
func TestPosix(t *testing.T) {
	for _, c := range []struct {
		expr, text string
		want       bool
	}{
		{`*abc`, "abc", false}, {`*abc`, "x*abc", true}, // a star with nothing before it
		{`a|*b`, "*b", true}, {`(*b)`, "*b", true}, {`^*b`, "*b", true},
		{`.*\.gif$`, "/x.gif", true}, {`\.GIF$`, "/x.gif", false},
		{`\<old\>`, "/old/", true}, {`\<old\>`, "/older/", false},
		{`[[:digit:]]+`, "/a1", true}, {`[]x]`, "]", true}, {`[^]x]`, "]", false}, {`[\d]`, "5", false}, {`[\d]`, "\\", true},
		{`a\/b`, "a/b", true}, {`\q`, "q", true}, {`a{2}`, "aa", true}, {`{a`, "{a", true},
		{`bcn\.boulder:8080`, "bcn.boulder:8080", true}, {`^128\.138\..*`, "128.138.1.1:80", true}, {`\~x`, "~x", true},
	} {
		f := new(Filter)
		if err := f.Add(true, posix(c.expr), "hit"); err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if _, why := f.Admits(c.text); (why == "hit") != c.want {
			t.Errorf("%s with %s: got %t, want %t", c.expr, c.text, why == "hit", c.want)
		}
	}
}

func TestFilterParts(t *testing.T) {
	for u, want := range map[string][2]string{
		"http://site/a/b?c":        {"/a/b?c", "site:80"},
		"https://site/":            {"/", "site:443"},
		"http://site:8080/x":       {"/x", "site:8080"},
		"http://site":              {"/", "site:80"},
		"http://site?q":            {"/?q", "site:80"},
		"ftp://site/x":             {"/x", "site:21"},
		"gopher://[::1]/1x":        {"/1x", "[::1]:70"},
		"http://[::1]:81/":         {"/", "[::1]:81"},
		"file:///usr/share/doc/x":  {"/usr/share/doc/x", ""},
		"mbox:///var/mail/l/a@b.c": {"/var/mail/l/a@b.c", ""},
	} {
		if got := [2]string{FilterPath(u), FilterHost(u)}; got != want {
			t.Errorf("%s: got %q, want %q", u, got, want)
		}
	}
}

func TestReadFilter(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if f, err := ReadFilter(write("good", "Deny x\n")); err != nil || f.Len() != 1 {
		t.Errorf("good: got %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{write("bad", "Deny (\n"), write("long", strings.Repeat("#\n", maxFilterFile)), dir, filepath.Join(dir, "absent"), pipe} {
		if _, err := ReadFilter(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("Deny *a[[:digit:]b]\\<c\nAllow ^(x|*y){2}", "/path")
	f.Fuzz(func(t *testing.T, text, path string) {
		g, err := ParseFilter("f", text)
		if err != nil {
			return
		}
		g.Admits(path)
		g.Closes(path)
	})
}

// FuzzPosix: a simple expression means the same when it is Go's.
func FuzzPosix(f *testing.F) {
	f.Add("a.b*c", "axbbc")
	plain := regexp.MustCompile(`^[a-z.]([a-z.][*+?]?)*$`)
	f.Fuzz(func(t *testing.T, expr, text string) {
		if !plain.MatchString(expr) {
			return
		}
		if got := posix(expr); got != expr {
			t.Errorf("%s: got %s", expr, got)
		}
	})
}
