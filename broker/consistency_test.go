package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harvest/broker/view"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

func consistency(t testing.TB, b *Broker) string {
	t.Helper()
	return read(t, b.Files(), "consistency")
}

// TestConsistency plants an object in each of registry, store, index and a view
// that the others have not, and takes one out.
func TestConsistency(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	for i := range 20 {
		apply(t, g, update(object(fmt.Sprintf("http://a/%d", i), "t", "word")))
	}
	b := w.broker(t.TempDir(), "source path=gather/web\n")
	must(t, b.Collect(ctx, "gather/web"))
	if got, want := consistency(t, b), "consistent=yes objects=20 registered=20 indexed=20 changing=0 differ=0\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	name := func(url string) string { return oid(url).String() }
	if _, err := b.views.make("v", ""); err != nil {
		t.Fatal(err)
	}
	must(t, b.views.setQuery(ctx, "v", "word"))
	must(t, b.registry.begin(1, []store.OID{oid("http://registry/")}))
	must(t, b.registry.settle(1, []store.OID{oid("http://registry/")}, func(store.OID) (bool, error) { return true, nil }))
	must(t, b.registry.drop([]store.OID{oid("http://a/3")}))
	apply(t, b.store, update(object("http://store/", "t", "word")))
	if got := consistency(t, b); !strings.Contains(got, "changing=1 differ=2") {
		t.Errorf("behind: got %s", got)
	}
	must(t, b.follow(ctx))
	must(t, b.views.follow(ctx))
	d := document(oid("http://index/"), object("http://index/", "t", "word"))
	must(t, b.index.Apply(ctx, index.Docs([]index.Doc{d}), []index.ID{index.ID(oid("http://a/4"))}, b.index.Mark()))
	d = document(oid("http://view/"), object("http://view/", "t", "word"))
	if _, err := b.views.set.Edit("v", view.Joined, view.Change{ID: d.ID, Fields: d.Fields}); err != nil {
		t.Fatal(err)
	}
	got := consistency(t, b)
	if want := "consistent=no objects=21 registered=20 indexed=21 changing=0 differ=6\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, want := range []string{
		"oid=" + name("http://registry/") + " registry=yes store=no index=no",
		"oid=" + name("http://a/3") + " registry=no store=yes index=yes",
		"oid=" + name("http://store/") + " registry=no store=yes index=yes",
		"oid=" + name("http://index/") + " registry=no store=no index=yes",
		"oid=" + name("http://a/4") + " registry=yes store=yes index=no",
		"oid=" + name("http://view/") + " view=v store=no",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got %s, want a line %s", got, want)
		}
	}
}

// TestLostDeletion has the index lost before it has followed a deletion: the
// registry forgets the object all the same.
func TestLostDeletion(t *testing.T) {
	w := newWorld(t)
	g := w.gatherer("gather/web")
	apply(t, g, update(object("http://a/1", "t", "word")), update(object("http://a/2", "t", "word")))
	dir := t.TempDir()
	b := w.broker(dir, "source path=gather/web\n")
	must(t, b.Collect(ctx, "gather/web"))
	apply(t, b.store, store.Change{Op: soif.Delete, OID: oid("http://a/1")})
	must(t, b.Close())
	must(t, os.RemoveAll(filepath.Join(dir, "index")))
	b = w.broker(dir, "")
	must(t, b.follow(ctx))
	if got, want := consistency(t, b), "consistent=yes objects=1 registered=1 indexed=1 changing=0 differ=0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRefreshedSince has index and views follow in steps, with an object that was
// refreshed after the step in which it was new: it is told as refreshed only.
func TestRefreshedSince(t *testing.T) {
	w := newWorld(t)
	b := w.broker(t.TempDir(), "")
	must(t, b.follow(ctx))
	_, err := b.views.make("v", "")
	must(t, err)
	must(t, b.views.setQuery(ctx, "v", "word"))
	apply(t, b.store, update(object("http://a/early", "t", "word")))
	var rest []store.Change
	for i := range viewsTogether + 10 {
		rest = append(rest, update(object(fmt.Sprintf("http://a/%d", i), "t", "word")))
	}
	apply(t, b.store, rest...)
	apply(t, b.store, store.Change{Op: soif.Refresh, OID: oid("http://a/early")})
	h := b.hold()
	defer h.release()
	for more := true; more; {
		more, err = b.feed(ctx, h, viewsTogether)
		must(t, err)
	}
	finds(t, b, `url = "http://a/early"`, "http://a/early")
	must(t, b.views.follow(ctx))
	if in, err := b.views.set.Has("v", index.ID(oid("http://a/early"))); !in || err != nil {
		t.Errorf("view: got %v, %v, want the object in it", in, err)
	}
}
