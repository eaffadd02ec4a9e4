package store

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"harvest/gather/soif"
)

func TestURLKey(t *testing.T) {
	long := strings.Repeat("é", 150)
	for _, c := range []struct{ url, want string }{
		{"https://go.dev/doc/effective_go", "https/go.dev/doc/effective_go.soif"},
		{"http://site/", "http/site/@.soif"},
		{"http://site", "http/site/@.soif"},
		{"http://site/a/", "http/site/a/@.soif"},
		{"http://site:8080/a?b=c&d", "http/site:8080/a?b=c&d.soif"},
		{"http://site/a/?q=/x", "http/site/a/@?q=%2Fx.soif"},
		{"http://site?q", "http/site/@?q.soif"},
		{"http://site/a//b", "http/site/a/%2F/b.soif"},
		{"http://site/./../b", "http/site/%2E/%2E%2E/b.soif"},
		{"http://site/..", "http/site/...soif"},
		{"http://site/a.soif", "http/site/a.soif.soif"},
		{"http://site/a.soif/b", "http/site/a%2Esoif/b.soif"},
		{"http://site/a b\x01\xff%20", "http/site/a%20b%01%FF%20.soif"},
		{"http://site/日本", "http/site/日本.soif"},
		{"file:///usr/share/doc/x", "file/usr/share/doc/x.soif"},
		{"news:comp.os.plan9", "news/comp.os.plan9.soif"},
		{"mailto:a@b/c", "mailto/a@b/c.soif"},
		{"no colon", "%2F/no%20colon.soif"},
		{"", "%2F/@.soif"},
		{"http://site/x~0123456789abcdef0123456789abcdef", "http/site/x%7E0123456789abcdef0123456789abcdef.soif"},
		{"http://site/" + long, "http/site/" + strings.Repeat("é", 80) + "~cb1fa3158102cb16.soif"},
	} {
		if got := strings.ReplaceAll(urlKey(c.url), "\x00", "/"); got != c.want {
			t.Errorf("%q: got %s, want %s", c.url, got, c.want)
		}
	}
	deep := urlKey("http://site/" + strings.Repeat("a/", 3000))
	if !strings.HasPrefix(deep, "http\x00~") || len(deep) > 40 {
		t.Errorf("a path of 6000 bytes: got %.100q, want http/~HASH.soif", deep)
	}
}

// FuzzURLKey holds every URL to what a file system takes.
func FuzzURLKey(f *testing.F) {
	for _, url := range []string{"http://h/a?b/c", "file:///", "::", "http://h/a~" + strings.Repeat("0", 32), "a:" + strings.Repeat("é", 300), "x:..", "?", "h:/" + strings.Repeat("/", 5000)} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		names := strings.Split(urlKey(url), "\x00")
		if len(names) < 2 || len(strings.Join(names, "/")) > 4096 {
			t.Fatalf("%q: %d names of %d bytes", url, len(names), len(strings.Join(names, "/")))
		}
		for i, n := range names {
			if n == "" || n == "." || n == ".." || len(n) > 255-33 || !utf8.ValidString(n) || strings.ContainsFunc(n, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
				t.Fatalf("%q: name %q", url, n)
			}
			if leaf := i == len(names)-1; strings.HasSuffix(n, ".soif") != leaf {
				t.Fatalf("%q: name %d of %d is %q", url, i+1, len(names), n)
			}
			if _, _, ok := splitTwin(n); ok {
				t.Fatalf("%q: name %q looks like a twin", url, n)
			}
		}
	})
}

// TestTwins stores a URL from several gatherers, and URLs with the same path, in
// every order, and takes them away again.
func TestTwins(t *testing.T) {
	var all []Change
	least := OID{0xff}
	for _, g := range []string{"g1", "g2", "g3"} {
		c := update("http://h/a/", g)
		c.OID = ID("http://h/a/", g)
		all = append(all, c)
		if string(c.OID[:]) < string(least[:]) {
			least = c.OID
		}
	}
	all = append(all, update("http://h/a/@", "same path"), update("http://h/a/@x", "close by"))
	if oid := all[3].OID; string(oid[:]) < string(least[:]) {
		least = oid
	}
	list := func(s *Store) string { return strings.Join(names(t, s, "http/h"), " ") }
	want := ""
	for i := range 24 {
		s := opened(t, Options{NoSync: true})
		order := append([]Change(nil), all...)
		for j, k := 4, i; j > 0; j, k = j-1, k/j { // the i-th permutation of the first four
			order[j-1], order[k%j] = order[k%j], order[j-1]
		}
		for _, c := range order {
			apply(t, s, c)
			if i%2 == 0 {
				if err := s.flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := list(s)
		if want == "" {
			want = got
		}
		if n := strings.Count(got, " ") + 1; got != want || n != len(all) {
			t.Fatalf("order %d: got %s, want %s", i, got, want)
		}
		if n, err := s.Resolve("http/h/a/@.soif"); err != nil || n.Entry.OID != least {
			t.Errorf("order %d: plain name: got %s %v, want %s", i, n.Entry.OID, err, least)
		}
		for _, c := range all[:4] {
			if n, err := s.Resolve("http/h/a/@~" + c.OID.String() + ".soif"); err != nil || n.Entry.OID != c.OID {
				t.Errorf("order %d: name with OID: got %s %v, want %s", i, n.Entry.OID, err, c.OID)
			}
		}
		if e, err := s.StatURL("http://h/a/@"); err != nil || e.OID != all[3].OID {
			t.Errorf("order %d: stat url: got %s %v, want %s", i, e.OID, err, all[3].OID)
		}
		for j, c := range order {
			apply(t, s, Change{Op: soif.Delete, OID: c.OID})
			if got := names(t, s, ""); len(got) != len(order)-j-1 {
				t.Fatalf("order %d: after %d deletions: got %v", i, j+1, got)
			} else if left := fmt.Sprint(got); j < 3 && !strings.Contains(left, "/@.soif") {
				t.Errorf("order %d: after %d deletions nobody has the plain name: %v", i, j+1, left)
			}
		}
	}
}

// TestFolders has names whose order is not that of their keys without care: a
// folder, an object of the same stem, and what sorts between.
func TestFolders(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	for _, u := range []string{"foo", "foo/a", "foo/b/c", "foo-x", "foo.a", "foo0", "fo", "foo.soif/z", "foo!"} {
		apply(t, s, update("http://h/"+u, "x"))
	}
	want := "fo.soif foo/ foo!.soif foo%2Esoif/ foo-x.soif foo.a.soif foo.soif foo0.soif"
	var got []string
	for n, err := range s.Names(ctx, "http/h", "") {
		if err != nil {
			t.Fatal(err)
		}
		if n.Dir {
			n.Name += "/"
		}
		got = append(got, n.Name)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
	for path, dir := range map[string]bool{"http/h/foo": true, "http/h/foo.soif": false, "http": true} {
		if n, err := s.Resolve(path); err != nil || n.Dir != dir {
			t.Errorf("%s: got %+v %v, want dir %v", path, n, err, dir)
		}
	}
	for _, path := range []string{"", "/", "http/", "http/h/fooo", "http/h/foo/", "http//h", "http/h/foo.soif/x"} {
		if n, err := s.Resolve(path); err == nil {
			t.Errorf("%q: got %+v, want an error", path, n)
		}
	}
}
