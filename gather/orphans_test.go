package gather

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harvest/gather/soif"
	"harvest/gather/store"
)

// TestOrphans: what a killed process stored and did not record goes when its
// document has, after the visit that was cut off; nothing else does.
func TestOrphans(t *testing.T) {
	dir, src := t.TempDir(), t.TempDir()
	for i := range 10 {
		write(t, fmt.Sprintf("%s/%d.txt", src, i), fmt.Sprintf("Document %d", i))
	}
	open := func() *Gatherer {
		t.Helper()
		g, err := Open(dir, "test", slog.New(slog.DiscardHandler), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := open()
	if err := g.setConfig(t.Context(), "root url=file://"+src+"\n"); err != nil {
		t.Fatal(err)
	}
	once(t, g)
	made := "URL: ftp://ftp.example.org/\nTitle: Made by hand\n"
	if err := g.manual.set(t.Context(), "made.soif", &made); err != nil {
		t.Fatal(err)
	}
	lost := "file://" + src + "/lost.txt"
	put := func() {
		t.Helper()
		o := soif.Object{Type: "FILE", URL: lost}
		o.Add("Update-Time", []byte("1700000000"))
		c := store.Change{Op: soif.Update, OID: g.oid(lost), URL: lost, Body: o.Append(nil)}
		if err := g.carry(t.Context(), &move{in: []store.Change{c}, out: []store.Change{c}}); err != nil {
			t.Fatal(err)
		}
	}
	has := func() bool {
		_, err := g.stat(g.oid(lost))
		return err == nil
	}
	put()
	once(t, g)
	if !has() {
		t.Error("deleted though no process was cut off")
	}

	// Something could not be read: who knows.
	g.sel.cut.Store(true)
	v := g.newVisit(g.conf)
	v.counts.Failed.Store(1)
	if err := v.orphans(t.Context()); err != nil || !has() {
		t.Errorf("deleted though something has failed: %v", err)
	}

	// A process that ended in the middle of a visit is known by the next.
	g.sel.cut.Store(true)
	if c := once(t, g); has() || c.Failed.Load() != 0 {
		t.Errorf("it is there after the visit, which had %d failures", c.Failed.Load())
	}
	if g.store.Count() != 11 || g.sel.cut.Load() {
		t.Errorf("got %d objects, want 10 and what was made by hand", g.store.Count())
	}
	if got := (&runner{Gatherer: g, t: t}).read("events"); !strings.Contains(got, "event=gone url="+lost+" reason='no document stands for it'") {
		t.Errorf("events: got\n%s", got)
	}

	// When it is nearly all, nothing goes without being told to.
	put()
	g.sel.cut.Store(true)
	v = g.newVisit(g.conf)
	v.plan.MaxGone.Floor, v.plan.MaxGone.Share = 0, 0.01
	if err := v.orphans(t.Context()); err != nil || !has() {
		t.Errorf("deleted past the bound: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(dir + "/*.new"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	g = open()
	defer g.Close()
	if g.sel.cut.Load() {
		t.Error("a visit that ended counts as cut off")
	}
	if _, err := os.Stat(filepath.Join(dir, "unselected")); err != nil {
		t.Error(err)
	}
}
