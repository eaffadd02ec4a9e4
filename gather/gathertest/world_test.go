package gathertest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestWorld visits some hosts and has the world tell of it: that a visitor
// came too early is seen.
func TestWorld(t *testing.T) {
	w := &World{Hosts: 300, Pages: 3, Slow: 2 * time.Second}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	get := func(url string) string {
		t.Helper()
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	home := get(w.Home(0))
	for _, want := range []string{"Page 0 of host 0", "/p1.html", "/p2.html", w.Home(4), "/private/"} {
		if !strings.Contains(home, want) {
			t.Errorf("home page: no %q in %s", want, home)
		}
	}
	if last := get(w.Home(299) + "p2.html"); !strings.Contains(last, "Page 2 of host 299") {
		t.Errorf("host 299: got %s", last)
	}
	if robots := get(w.Home(7) + "robots.txt"); !strings.Contains(robots, "Crawl-delay: 2") {
		t.Errorf("robots.txt: got %s", robots)
	}
	if s := w.Seen(time.Hour); s.Violations != 0 || s.Hosts != 3 || s.Requests != 3 || s.Pages != 2 || s.Robots != 1 {
		t.Errorf("one request each: got %+v", s)
	}
	get(w.Home(7))
	get(w.Home(7) + "p1.html")
	if s := w.Seen(0); s.Early != 1 { // the second of those, by the Crawl-delay
		t.Errorf("after robots.txt: got %+v, want 1 early", s)
	}
	get(w.Home(0))
	if s := w.Seen(time.Hour); s.Early != 3 || s.Shortest > time.Minute {
		t.Errorf("against a delay: got %+v, want 3 early", s)
	}
}
