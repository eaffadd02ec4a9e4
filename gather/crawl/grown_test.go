package crawl

import (
	"path/filepath"
	"testing"
	"testing/synctest"
)

// TestGrown: a server whose list has grown between two visits was not left in
// the middle of it: the next visit goes over all of it.
func TestGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{site + "/": "<a href=a>a</a>", site + "/a": "a", site + "/b": "b"}}
		f, k := openDB(t, filepath.Join(t.TempDir(), "crawl.db")), newKeeper()
		p := Plan{Roots: []Root{{URL: site + "/", Depth: -1, Hosts: 1}}}
		visitOnce(t, f, p, w, k)
		if err := f.Add(t.Context(), site+"/b"); err != nil {
			t.Fatal(err)
		}
		queued := p
		queued.Queued = true
		visitOnce(t, f, queued, w, k)
		w.asked(site)
		for range 2 {
			visitOnce(t, f, p, w, k)
			if got, want := w.asked(site), "/ /a /b"; got != want {
				t.Errorf("asked for %s, want %s", got, want)
			}
		}
	})
}
