package broker

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"harvest/gather/soif"
)

func aServiceAt(typ, url, addr, sources string) string {
	o := soif.Object{Type: strings.ToUpper(typ), URL: url}
	for _, a := range [][2]string{{"Type", typ}, {"Address", addr}, {"Service-Path", url[strings.LastIndex(url, "//")+2:]}, {"Source-URL", sources}, {"Root-URL", sources}, {"Host", "h"}} {
		if a[1] != "" {
			o.Add(a[0], []byte(a[1]))
		}
	}
	return string(o.Append(nil))
}

// Those that answer are told, by how long they take; others are left out.
func TestNearest(t *testing.T) {
	b := registryAt(t, t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := dead.Addr().String()
	must(t, dead.Close())
	host, port, _ := net.SplitHostPort(l.Addr().String())
	must(t, write(b.Files(), "register", aServiceAt("cache", "9p://a/cache/near", "tcp!"+nobody+"\ntcp!"+host+"!"+port, "")+aServiceAt("cache", "9p://a/cache/plain", l.Addr().String(), "")+
		aServiceAt("cache", "9p://a/cache/dead", "tcp!"+strings.ReplaceAll(nobody, ":", "!"), "")+aServiceAt("cache", "9p://a/cache/odd", "nonsense", "")+
		aServiceAt("replicator", "9p://a/replica/r", "tcp!"+host+"!"+port, "")))
	must(t, b.follow(ctx))
	got := read(t, b.Files(), "nearest/cache")
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "s\ttcp!"+host+"!"+port+"\ta/cache/near\t9p://a/cache/near\n") || !strings.Contains(got, "\t9p://a/cache/plain\n") {
		t.Errorf("got %q, want the two that answer", got)
	}
	if got := read(t, b.Files(), "nearest/replica"); !strings.Contains(got, "9p://a/replica/r") {
		t.Errorf("got %q, want the replica", got)
	}
	b.probes.mu.Lock()
	if n := len(b.probes.all); n != 5 {
		t.Errorf("got %d probes kept, want one of each of 5 addresses", n)
	}
	far := b.probes.all[l.Addr().String()]
	far.took *= 1000 // as if it were far
	b.probes.all[l.Addr().String()] = far
	b.probes.mu.Unlock()
	if got := read(t, b.Files(), "nearest/cache"); !strings.HasPrefix(got[strings.IndexByte(got, '\n')+1:], far.took.String()) && !strings.Contains(strings.Split(got, "\n")[1], "cache/plain") {
		t.Errorf("got %q, want what is far last, from what was measured before", got)
	}
}

func TestCovers(t *testing.T) {
	b := registryAt(t, t.TempDir())
	must(t, write(b.Files(), "register", aServiceAt("gatherer", "9p://a/gather/one", "", "http://x.org/doc/\nhttp://y.org/page.html\nhttp://z.org")))
	must(t, b.follow(ctx))
	nobody := func(*soif.Object) bool { return false }
	for url, want := range map[string]bool{"http://x.org/doc/": true, "http://x.org/doc/a/b.html": true, "http://x.org/": false, "http://x.org/docs": false,
		"http://y.org/page.html": true, "http://y.org/": false, "http://z.org/": true, "http://z.org/a": true, "http://z.org.evil/": false, "file:///x": false} {
		got, err := b.Covers(ctx, url, nobody)
		must(t, err)
		if got != "" != want {
			t.Errorf("%s: got %q, want covered %v", url, got, want)
		}
	}
	if got, _ := b.Covers(ctx, "http://x.org/doc/", func(o *soif.Object) bool { return o.URL == "9p://a/gather/one" }); got != "" {
		t.Errorf("got %q, want nothing by others", got)
	}
}

// Services stand in folders by kind, under their names.
func TestKindFolders(t *testing.T) {
	b := registryAt(t, t.TempDir())
	must(t, write(b.Files(), "register", aServiceAt("broker", "9p://a/broker/papers", "", "")+aServiceAt("broker", "9p://b/broker/news", "", "")+aServiceAt("broker", "9p://c/broker/news", "", "")))
	must(t, b.follow(ctx))
	got := list(t, b.Files(), "brokers")
	if len(got) != 3 || !strings.HasSuffix(got[0], "-news@h.soif") && !strings.HasSuffix(got[1], "-news@h.soif") || !strings.Contains(fmt.Sprint(got), "papers@h.soif") {
		t.Errorf("got %v, want papers@h.soif and two with news", got)
	}
	for _, name := range got {
		if text := read(t, b.Files(), "brokers/"+name); !strings.HasPrefix(text, "@BROKER { 9p://") {
			t.Errorf("%s: got %q, want the object", name, text)
		}
	}
	if got := list(t, b.Files(), "caches"); len(got) != 0 {
		t.Errorf("got %v, want no cache", got)
	}
	must(t, b.Withdraw(ctx, []string{"9p://a/broker/papers", "9p://nobody"}))
	if got := list(t, b.Files(), "brokers"); len(got) != 2 {
		t.Errorf("got %v, want one less", got)
	}
	if got := read(t, b.Files(), "events"); !strings.Contains(got, "event=withdrawn url=9p://a/broker/papers") {
		t.Errorf("got %s, want an event", got)
	}
}
