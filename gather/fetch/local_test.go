package fetch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestLocal goes through the rules by which a file is read in place of its URL.
func TestLocal(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "of the network") }))
	defer s.Close()
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	for _, name := range []string{"a.html", "sub/b.txt", "sub/secret", "prog.cgi", "with space", "perc%41ent", ".htaccess", ".git/config", "q"} {
		write(t, filepath.Join(real, name), "of the file")
	}
	write(t, filepath.Join(dir, "outside"), "of the file")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(filepath.Join(real, "sub/secret"), 0o640))
	must(os.Chmod(filepath.Join(real, "prog.cgi"), 0o755))
	must(os.Symlink("a.html", filepath.Join(real, "link")))
	must(os.Symlink("sub", filepath.Join(real, "linked")))
	must(os.Symlink(dir, filepath.Join(real, "up")))
	must(os.Symlink(real, filepath.Join(dir, "www"))) // the folder itself may be reached by one

	c := newClient(t, Options{Local: []Local{{s.URL + "/", filepath.Join(dir, "none")}, {s.URL + "/docs/", filepath.Join(dir, "www")}, {s.URL + "/~me", filepath.Join(real, "sub")}}})
	for path, want := range map[string]string{
		"/docs/a.html":        "local",
		"/docs/sub/b.txt":     "local",
		"/~me/b.txt":          "local",
		"/docs/none":          "net", // not there
		"/docs/sub/secret":    "net", // others may not read it
		"/docs/prog.cgi":      "net", // the server runs it
		"/docs/link":          "net", // a symbolic link
		"/docs/linked/b.txt":  "net",
		"/docs/up/outside":    "net",
		"/docs/sub/":          "net", // a folder
		"/docs/sub":           "net",
		"/docs/":              "net",
		"/docs/with%20space":  "net", // names that need escapes
		"/docs/perc%2541ent":  "net",
		"/docs/%61.html":      "net",
		"/docs/q?x=1":         "net", // a question
		"/docs/q?":            "net",
		"/docs/.htaccess":     "net", // what servers hide
		"/docs/.git/config":   "net",
		"/docs/../docs/q":     "net",
		"/docs/sub/../a.html": "net",
		"/docs//a.html":       "net",
		"/~meer/b.txt":        "net", // the prefix ends at a name's end
		"/other/a.html":       "net", // mapped, and not there
	} {
		resp, body := c.get(s.URL + path)
		if got := resp.Header.Get(Via); got != want || (body == "of the file") != (want == "local") {
			t.Errorf("%s: got %s, %q, want it from %s", path, got, body, want)
		}
	}
	resp, _ := c.get(s.URL + "/docs/a.html")
	if resp.Header.Get("Content-Type") != "text/html" || resp.ContentLength != 11 {
		t.Errorf("got %s of %d bytes", resp.Header.Get("Content-Type"), resp.ContentLength)
	}
	if resp, _ := c.get(s.URL+"/docs/a.html", "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != 304 || resp.Header.Get(Via) != "local" {
		t.Errorf("If-None-Match: got %s from %s, want 304", resp.Status, resp.Header.Get(Via))
	}
	req := httptest.NewRequestWithContext(t.Context(), "POST", s.URL+"/docs/a.html", nil)
	if resp, err := c.RoundTrip(req); err != nil || resp.Header.Get(Via) != "net" {
		t.Errorf("POST: got %v, %v, want it sent", resp, err)
	} else {
		resp.Body.Close()
	}
	for _, name := range []string{"a.html", "sub/b.txt", "link", "linked/b.txt", "up/outside", "none"} {
		a, errA := openBelow(real, name)
		b, errB := openWalk(real, name)
		if (errA == nil) != (errB == nil) {
			t.Errorf("%s: got %v one way and %v the other", name, errA, errB)
		}
		if errA == nil {
			a.Close()
		}
		if errB == nil {
			b.Close()
		}
	}
}
