package crawl

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// many is a web of hosts, each with a chain of pages that link to the next, and
// to the first page of each host after it.
func many(hosts, pages int) *web {
	w := &web{pages: make(map[string]string), status: make(map[string]int), header: make(map[string]http.Header)}
	for h := range hosts {
		for p := range pages {
			text := fmt.Sprintf("<a href=/%d>%s", p+1, lorem(uint64(h*1000+p), 30))
			for next := range hosts {
				text += fmt.Sprintf("<a href=http://h%d/0>", next)
			}
			w.pages[fmt.Sprintf("http://h%d/%d", h, p)] = text
		}
		w.pages[fmt.Sprintf("http://h%d/robots.txt", h)] = ""
	}
	return w
}

// TestBreadth: one document of each server is asked for before the second of
// any, and so on (W-2); with a delay and without.
func TestBreadth(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := many(20, 6)
			w.took = 10 * time.Millisecond
			f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
			defer f.Close()
			p := Plan{Roots: []Root{{URL: "http://h0/0", Depth: -1, Delay: delay, Hosts: 20}}, Limits: Limits{Pages: 2, Servers: 1}}
			visitOnce(t, f, p, w, newKeeper())
			n := make(map[string]int)
			for _, h := range w.log {
				n[Origin(h.url)]++
			}
			if len(n) != 20 || len(w.log) != 20*8 {
				t.Fatalf("delay %v: got %d requests to %d servers, want 160 to 20", delay, len(w.log), len(n))
			}
			turn := make(map[string]int)
			least := func() int {
				low := 1 << 30
				for o := range n {
					low = min(low, turn[o])
				}
				return low
			}
			for i, h := range w.log {
				o := Origin(h.url)
				if i > 30 && turn[o] > least()+2 { // the first page has to be read before the others are known
					t.Errorf("delay %v: request %d is turn %d of %s, when another has had %d", delay, i, turn[o]+1, o, least())
				}
				turn[o]++
			}
		})
	}
}

// TestMachine: servers of one address wait for one another.
func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := many(6, 4)
		f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
		defer f.Close()
		address := func(_ context.Context, host string) string {
			return map[string]string{"h0": "1", "h1": "1", "h2": "1"}[host] + "x"
		}
		p := Plan{Roots: []Root{{URL: "http://h0/0", Depth: -1, Delay: time.Second, Hosts: 6}}, Address: address}
		visitOnce(t, f, p, w, newKeeper())
		last := make(map[string]time.Time)
		for _, h := range w.log {
			machine := address(nil, hostOf(Origin(h.url)))
			if at := last[machine]; !at.IsZero() && h.at.Sub(at) < time.Second {
				t.Errorf("%s came %v after another request to its machine", h.url, h.at.Sub(at))
			}
			last[machine] = h.at
		}
		if len(last) != 2 || len(w.log) != 6*6 {
			t.Errorf("got %d requests to %d machines, want 36 to 2", len(w.log), len(last))
		}
	})
}

// TestHosts: how many servers count for a root, and which.
func TestHosts(t *testing.T) {
	deny := func(pattern string) *Filter {
		f := new(Filter)
		if err := f.Add(false, pattern, "no "+pattern); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		root Root
		want string
	}{
		{Root{}, "h0"},
		{Root{Hosts: 1}, "h0"},
		{Root{Hosts: 3}, "h0 h1 h2"},
		{Root{Hosts: 9}, "h0 h1 h2 h3 h4"},
		{Root{Hosts: 9, HostFilter: deny("^h[13]:80$")}, "h0 h2 h4"},
		{Root{Hosts: 9, URLFilter: deny("^/[2-9]")}, "h0 h1 h2 h3 h4"},
		{Root{Hosts: 9, Access: []string{"ftp"}}, "h0 h1 h2 h3 h4"},
	} {
		w := many(5, 4)
		k := newKeeper()
		c.root.URL, c.root.Depth = "http://h0/0", -1
		f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
		p := Plan{Roots: []Root{c.root}}
		for range 2 {
			visitOnce(t, f, p, w, k)
			var hosts []string
			for u := range k.kept {
				hosts = append(hosts, hostOf(Origin(u)))
			}
			slices.Sort(hosts)
			if got := strings.Join(slices.Compact(slices.Clone(hosts)), " "); got != c.want {
				t.Errorf("%+v: got %s, want %s", c.root, got, c.want)
			}
			if c.root.URLFilter != nil && len(hosts) != 10 {
				t.Errorf("with a filter: got %d documents, want 10", len(hosts))
			}
		}
		verify(t, f)
	}
}

// TestInLinks counts the documents of other servers that refer to one, as links
// come and go.
func TestInLinks(t *testing.T) {
	w := many(4, 2)
	f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
	p := Plan{Roots: []Root{{URL: "http://h0/0", Depth: -1}, {URL: "http://h1/0", Depth: -1}, {URL: "http://h2/0", Depth: 0}}}
	visitOnce(t, f, p, w, k)
	check := func(url string, want int) {
		t.Helper()
		d, err := f.Lookup(url)
		if err != nil || d.InLinks != want {
			t.Errorf("%s: got %d, %v, want %d", url, d.InLinks, err, want)
		}
		n := 0
		for from, err := range f.In(t.Context(), d.ID) {
			if s, err2 := f.Doc(from); err != nil || err2 != nil || s.Server == d.Server {
				continue
			}
			n++
		}
		if n != want {
			t.Errorf("%s: got %d that lead in, want %d", url, n, want)
		}
	}
	check("http://h0/0", 3)
	check("http://h1/0", 3)
	check("http://h0/1", 0)
	if _, err := f.Lookup("http://h3/0"); err == nil {
		t.Error("a server that counts for no root is known")
	}
	verify(t, f)
	w.pages["http://h1/1"] = "no links any more"
	w.pages["http://h2/0"] = "<a href=http://h0/1><a href=http://h1/far>"
	visitOnce(t, f, p, w, k)
	check("http://h0/0", 1)
	check("http://h0/1", 1)
	check("http://h1/far", 1) // heard of, of no page of its root
	if d, err := f.Lookup("http://h1/far"); err != nil || d.State != Heard {
		t.Errorf("got %+v, %v, want it heard of", d, err)
	}
	w.pages["http://h1/1"], w.pages["http://h1/far"] = "<a href=/far>", "now it is"
	visitOnce(t, f, p, w, k)
	if d, err := f.Lookup("http://h1/far"); err != nil || d.State != Stored || d.Root != RootID("http://h1/0") {
		t.Errorf("got %+v, %v, want it stored", d, err)
	}
	verify(t, f)
	visitOnce(t, f, Plan{}, w, k)
	if len(k.kept) != 0 {
		t.Errorf("kept without roots: %v", k.kept)
	}
	verify(t, f)
}

// TestBackOff: a server that is busy and does not say for how long is left
// alone ever longer, and what it has is asked for where it was left.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := many(1, 20)
		f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
		defer f.Close()
		var left []string
		p := Plan{Roots: []Root{{URL: "http://h0/0", Depth: -1, Delay: time.Second}}, Agent: "harvest/test",
			Left: func(origin, why string) { left = append(left, origin+" "+why) }, Limits: Limits{Tries: 100}}
		w.status["http://h0/7"] = 503
		c := new(Counts)
		if err := f.Visit(t.Context(), p, w, k, c); err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 || left[0] != "http://h0 it is too busy: 503" || len(k.kept) != 7 || c.Queued.Load() != 1 {
			t.Errorf("got %q, %d kept, %d queued", left, len(k.kept), c.Queued.Load())
		}
		want := 30 * time.Second
		for i := len(w.log) - 4; i < len(w.log); i++ {
			if got := w.log[i].at.Sub(w.log[i-1].at); w.log[i-1].status == 503 && (got < want || got > want*5/4) {
				t.Errorf("request %d came after %v, want %v", i, got, want)
			} else if w.log[i-1].status == 503 {
				want *= 2
			}
		}
		delete(w.status, "http://h0/7")
		w.log = nil
		time.Sleep(24 * time.Hour)
		visitOnce(t, f, p, w, k)
		if len(k.kept) != 20 {
			t.Errorf("a day later: got %d kept, want 20", len(k.kept))
		}
		if got := w.log[1].url; got != "http://h0/7" {
			t.Errorf("a day later: %s was asked for first, want what was left", got)
		}
		verify(t, f)
	})
}

// TestUnreachable: a server that answers nothing is not asked for all it has.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{site + "/robots.txt": "", site + "/": ""}, fail: make(map[string]error)}
		for i := range 100 {
			w.pages[site+"/"] += fmt.Sprintf("<a href=%d>", i)
			w.fail[fmt.Sprint(site, "/", i)] = fmt.Errorf("no route to host")
		}
		f, k := openDB(t, filepath.Join(t.TempDir(), "f.db")), newKeeper()
		defer f.Close()
		c := new(Counts)
		if err := f.Visit(t.Context(), Plan{Agent: "x", Roots: []Root{{URL: site, Depth: -1, Delay: time.Second}}}, w, k, c); err != nil {
			t.Fatal(err)
		}
		if len(w.log) > 2+silentMost+10 || c.Queued.Load() < 80 {
			t.Errorf("got %d requests, %d queued", len(w.log), c.Queued.Load())
		}
		if s := f.Server(1); !strings.HasPrefix(s.Why, "it cannot be reached: no route") || s.Failures == 0 {
			t.Errorf("got %+v", s)
		}
	})
}
