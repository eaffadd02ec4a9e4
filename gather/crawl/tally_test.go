package crawl

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// A hooked web does something before it answers.
type hooked struct {
	*web
	do func(u string)
}

func (h hooked) RoundTrip(req *http.Request) (*http.Response, error) {
	h.do(req.URL.String())
	return h.web.RoundTrip(req)
}

// TestTally: what is asked for by hand while its server is gone through is
// counted once, and nothing is left of the count (visitOnce looks).
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{site + "/": "<a href=a>a</a> <a href=b>b</a> <a href=c>c</a>"}}
		for _, n := range []string{"a", "b", "c", "new0", "new1", "new2"} {
			w.pages[site+"/"+n] = n
		}
		f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
		n := 0
		h := hooked{w, func(u string) {
			if u == site+"/robots.txt" || n == 3 {
				return
			}
			n++
			if err := f.Add(context.Background(), fmt.Sprintf("%s/new%d", site, n-1)); err != nil {
				t.Error(err)
			}
		}}
		p := Plan{Roots: []Root{{URL: site + "/", Depth: -1, Hosts: 1}}}
		for range 2 {
			visitOnce(t, f, p, h, newKeeper())
			if got, want := w.asked(site), "/ /a /b /c /new0 /new1 /new2 /robots.txt=404"; got != want && got+" /robots.txt=404" != want {
				t.Errorf("asked for %s, want %s", got, want)
			}
		}
	})
}
