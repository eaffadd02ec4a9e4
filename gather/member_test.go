package gather

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"harvest/gather/crawl"
	"harvest/gather/essence"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// memberVisit opens a Gatherer, and begins a visit that nothing crawls.
func memberVisit(t *testing.T, dir string) *visit {
	t.Helper()
	g, err := Open(dir, "g", slog.New(slog.DiscardHandler), Options{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	return g.newVisit(g.conf)
}

// page is a document with members, as Handle makes one.
func (v *visit) page(t *testing.T, url string, whole bool, names ...string) *crawl.Page {
	t.Helper()
	o := soif.Object{Type: "FILE", URL: url}
	o.Add("Type", []byte("Tar"))
	m := &members{v: v, whole: whole}
	for _, n := range names {
		e := soif.Object{Type: "FILE", URL: essence.MembersOf(url) + n}
		e.Add("Title", []byte("of "+n))
		if err := m.take(context.Background(), essence.Member{Container: url, Object: e}); err != nil {
			t.Fatal(err)
		}
	}
	v.sign(&o)
	return &crawl.Page{URL: url, Outcome: crawl.Fetched, Stored: true, Result: &made{o.Append(nil), m}}
}

// urls are those of all objects of a store, in order.
func urls(t *testing.T, s *store.Store) (all []string) {
	t.Helper()
	for e, err := range s.Scan(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.URL)
	}
	slices.Sort(all)
	return all
}

func wantURLs(t *testing.T, when string, s *store.Store, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := urls(t, s); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

// TestMemberLife follows the objects of what is in a document: they stay when
// nothing changed, go when it was read whole without them, and when it goes.
func TestMemberLife(t *testing.T) {
	dir := t.TempDir()
	v := memberVisit(t, dir)
	const a, q = "http://site/a.tar", "http://site/get?f=b.tar"
	commit := func(when string, p ...*crawl.Page) {
		t.Helper()
		if err := v.Commit(t.Context(), p); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	commit("first", v.page(t, a, true, "x/one", "x/two", "in.zip!/three"), v.page(t, q, true, "four"))
	both := []string{a, a + "!/x/one", a + "!/x/two", a + "!/in.zip!/three", q, "http://site/get%3Ff=b.tar!/four"}
	s := v.g.store
	wantURLs(t, "first", s, both...)
	two := v.g.oid(a + "!/x/two")
	if _, err := s.Apply(t.Context(), []store.Change{{Op: soif.Refresh, OID: two, Updated: time.Now().Add(-time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	commit("unchanged", &crawl.Page{URL: a, Outcome: crawl.Unchanged, Stored: true, Due: true}, &crawl.Page{URL: q, Outcome: crawl.Unchanged, Stored: true})
	wantURLs(t, "unchanged", s, both...)
	if e, err := s.Stat(two); err != nil || time.Since(e.Updated) > time.Minute {
		t.Errorf("unchanged and due: got a member of %v, %v, want it refreshed", e.Updated, err)
	}
	commit("cut", v.page(t, a, false, "x/one"))
	wantURLs(t, "read in part", s, both...)
	commit("failed", &crawl.Page{URL: a, Outcome: crawl.Failed, Stored: true, Why: "timeout"})
	wantURLs(t, "failed", s, both...)

	v.g.Close() // what is known of members is known to the next process
	v = memberVisit(t, dir)
	defer v.g.Close()
	s = v.g.store
	commit("whole", v.page(t, a, true, "x/one", "new"))
	wantURLs(t, "read whole", s, a, a+"!/x/one", a+"!/new", q, "http://site/get%3Ff=b.tar!/four")
	commit("empty", v.page(t, a, true))
	wantURLs(t, "read whole and empty", s, a, q, "http://site/get%3Ff=b.tar!/four")
	commit("gone", &crawl.Page{URL: q, Outcome: crawl.Gone, Stored: true})
	wantURLs(t, "gone", s, a)
}

// TestMemberPlace sees that members go where their container goes.
func TestMemberPlace(t *testing.T) {
	v := memberVisit(t, t.TempDir())
	defer v.g.Close()
	const a = "http://site/a.tar"
	var names []string
	want := []string{a}
	for i := range 3*someMembers + 1 {
		names = append(names, fmt.Sprintf("d%d/f%d", i%7, i))
		want = append(want, a+"!/"+names[i])
	}
	if err := v.Commit(t.Context(), []*crawl.Page{v.page(t, a, true, names...)}); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, "stored", v.g.store, want...)
	for _, in := range []bool{false, true} {
		k := &carrier{g: v.g}
		if _, err := v.g.pool(true); err != nil {
			t.Fatal(err)
		}
		k.due = []due{{v.g.oid(a), in}}
		if err := k.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		pool, err := v.g.pool(false)
		if err != nil {
			t.Fatal(err)
		}
		here, there := v.g.store, pool
		if !in {
			here, there = pool, v.g.store
		}
		wantURLs(t, fmt.Sprintf("moved, in %v", in), here, want...)
		wantURLs(t, fmt.Sprintf("moved, in %v: elsewhere", in), there)
	}
	if err := v.g.drop(t.Context(), v.g.oid(a), a); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, "dropped", v.g.store)
}

// TestMemberSpool sees that many members are held on disk, and come back as they were.
func TestMemberSpool(t *testing.T) {
	v := memberVisit(t, t.TempDir())
	defer v.g.Close()
	m := &members{v: v}
	defer m.close()
	const n = 5000
	for i := range n {
		o := soif.Object{Type: "FILE", URL: fmt.Sprintf("http://site/a!/%d", i)}
		o.Add("Title", []byte(strings.Repeat("x", i%300)))
		if err := m.take(t.Context(), essence.Member{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	if m.f == nil || m.mem.Len() != 0 {
		t.Errorf("got %d bytes in memory, want them in a file", m.mem.Len())
	}
	i := 0
	err := m.each(func(c store.Change) error {
		o, _, err := soif.Parse(c.Body, soif.Limits{})
		if err != nil || o.URL != fmt.Sprintf("http://site/a!/%d", i) || c.URL != o.URL || len(o.Text("Title")) != i%300 {
			t.Fatalf("member %d: got %s with %d, %v", i, c.URL, len(o.Text("Title")), err)
		}
		i++
		return nil
	})
	if err != nil || i != n {
		t.Errorf("got %d members, %v, want %d", i, err, n)
	}
}

// TestMemberURL holds the URLs of members to what the crawl calls canonical.
func TestMemberURL(t *testing.T) {
	for _, u := range []string{"http://site/a.tar!/x/one", "file:///a/b.zip!/ü.txt", "http://site/get%3Ff=b.tar!/%C3%BC%20%3F%23%25!.txt", "http://site/a!/%2E%2E%2E", "http://site/a!/con%5Ctrol", "http://site/a!/x%7B%7Dy!/z"} {
		got, err := crawl.Canonical(u)
		if err != nil || got != strings.ReplaceAll(u, "ü", "%C3%BC") {
			t.Errorf("%s: got %s, %v, want it as it is", u, got, err)
		}
	}
}
