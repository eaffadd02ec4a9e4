package gather

import (
	"fmt"
	iofs "io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"harvest/fs"
	"harvest/fs/ndb"
)

// pour writes a text into a file of the tree, as a shell's > or >> does.
func (r *runner) pour(name, text string, m fs.Mode) error {
	r.t.Helper()
	n, err := r.Files().Lookup(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := n.(fs.File).Open(r.t.Context(), fs.Write|m)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.WriteAt(r.t.Context(), []byte(text), 0); err != nil {
		return err
	}
	return h.Flush(r.t.Context())
}

// TestSecrets: what is written reaches the servers it is for, and nobody else,
// and comes out nowhere.
func TestSecrets(t *testing.T) {
	var refused, let atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if strings.HasPrefix(req.URL.Path, "/private/") && (user != "me" || password != "swordfish") {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if user != "" && !strings.HasPrefix(req.URL.Path, "/private/") {
			t.Errorf("%s: told the password", req.URL.Path)
		}
		let.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(w, "a document about something:", req.URL.Path)
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	dir := t.TempDir()
	r := run(t, dir, fmt.Sprintf("leaf delay=0s url=%s/private/a\nleaf delay=0s url=%[1]s/open\nduplicates=keep\n", s.URL))
	bad := []string{
		"auth host=" + host + " user=me password='swordfish\n",
		"swordfish host=x\n",
		"auth host=" + host + " user=me password=swordfish path=private\n",
		"auth host=swordfish/x user=me password=swordfish\n",
	}
	for _, text := range bad {
		if err := r.pour("secrets", text, fs.Trunc); err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%q: got %v, want a refusal that does not tell", text, err)
		}
		if e := r.read("err"); !strings.Contains(e, "secrets: ") || strings.Contains(e, "swordfish") {
			t.Errorf("%q: err has %q", text, e)
		}
	}
	r.must("run")
	r.settle()
	if n := len(r.objects("")); n != 1 {
		t.Errorf("without secrets: got %d objects, want 1", n)
	}
	if err := r.pour("secrets", "# for the private part\nauth host=other.example.org user=you password=x\n", fs.Trunc); err != nil {
		t.Fatal(err)
	}
	if err := r.pour("secrets", "auth host="+host+" user=me password=swordfish path=/private/\n", fs.Append); err != nil {
		t.Fatal(err)
	}
	r.must("run")
	r.settle()
	if n := len(r.objects("")); n != 2 {
		t.Errorf("with secrets: got %d objects, want 2\n%s", n, r.read("events"))
	}
	if refused.Load() == 0 || let.Load() == 0 {
		t.Errorf("got %d refused and %d let in, want some of both", refused.Load(), let.Load())
	}

	n, err := r.Files().Lookup(t.Context(), "secrets")
	if err != nil {
		t.Fatal(err)
	}
	if st := n.Stat(); st.Mode != 0o200 || st.Size != 0 {
		t.Errorf("got mode %v and size %d, want 0200 and none", st.Mode, st.Size)
	}
	for _, m := range []fs.Mode{fs.Read, fs.Read | fs.Write} {
		if _, err := n.(fs.File).Open(t.Context(), m); fs.Errno(err) != 13 {
			t.Errorf("open for %v: got %v, want permission denied", m, err)
		}
	}
	h, err := n.(fs.File).Open(t.Context(), fs.Write)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := h.ReadAt(t.Context(), make([]byte, 100), 0); n != 0 || err == nil {
		t.Errorf("a writer read %d bytes, %v", n, err)
	}
	h.Close()
	for _, name := range []string{"status", "events", "log", "err", "config", "ctl"} {
		if strings.Contains(r.read(name), "swordfish") {
			t.Errorf("%s tells the password", name)
		}
	}
	fi, err := os.Stat(filepath.Join(dir, "secrets"))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("on disk: got %v, %v, want -rw-------", fi.Mode(), err)
	}
	r.end()

	// Kept, and made safe again should someone have opened it.
	os.Chmod(filepath.Join(dir, "secrets"), 0o644)
	r = run(t, dir, "")
	if got := r.secrets.get().String(); got != "2 secrets" {
		t.Errorf("after a restart: got %s, want 2", got)
	}
	if fi, _ := os.Stat(filepath.Join(dir, "secrets")); fi.Mode().Perm() != 0o600 {
		t.Errorf("after a restart: got %v, want -rw-------", fi.Mode())
	}
	if err := r.pour("secrets", "", fs.Trunc); err != nil {
		t.Fatal(err)
	}
	if got := r.secrets.get().String(); got != "0 secrets" {
		t.Errorf("emptied: got %s, want 0", got)
	}
}

// TestLocalMapping: a URL that is a file here is read here, and what is not is
// fetched; the log has which.
func TestLocalMapping(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		if req.URL.Path == "/robots.txt" {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>of the network</title><a href=a.html>a</a> <a href=b.html>b</a> %s", req.URL.Path)
	}))
	defer s.Close()
	src := t.TempDir()
	for _, name := range []string{"a.html", "b.html"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte("<title>of the file</title> "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(src, "b.html"), 0o755); err != nil { // a program, for all the server knows
		t.Fatal(err)
	}
	r := run(t, t.TempDir(), ndb.Format(ndb.Of("root", ""), ndb.Of("url", s.URL+"/"), ndb.Of("delay", "0s"), ndb.Of("sitemaps", "no"))+"\n"+
		ndb.Format(ndb.Of("local", ""), ndb.Of("url", s.URL+"/"), ndb.Of("path", src))+"\n")
	r.must("run")
	r.settle()
	title := make(map[string]string)
	for _, o := range r.objects("") {
		title[strings.TrimPrefix(o.URL, s.URL)] = o.Text("Title")
	}
	want := map[string]string{"/": "of the network", "/a.html": "of the file", "/b.html": "of the network"}
	if fmt.Sprint(title) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", title, want)
	}
	if asked.Load() != 3 {
		t.Errorf("got %d requests, want robots.txt, / and b.html", asked.Load())
	}
	log := r.read("log")
	for url, via := range map[string]string{"/": "net", "/a.html": "local", "/b.html": "net"} {
		if !strings.Contains(log, "url="+s.URL+url+" via="+via) {
			t.Errorf("%s: the log has no via=%s:\n%s", url, via, log)
		}
	}
	if st := r.read("status"); !strings.Contains(st, "connections=http opened=1 reused=2 evicted=") {
		t.Errorf("status has no count of connections:\n%s", st)
	}
}

// TestProxy: a cache of this process is asked by its name, and when there is
// none nobody else is.
func TestProxy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { t.Errorf("%s: asked past the cache", req.URL) }))
	defer s.Close()
	g := run(t, t.TempDir(), "proxy=cache/main\nleaf delay=0s url="+s.URL+"/a\n")
	g.must("run")
	g.settle()
	if e := g.get("err"); !strings.Contains(e, "cache/main") {
		t.Errorf("without a cache: got err=%q, want it named", e)
	}
	g.reach.mu.Lock()
	g.reach.proxy = func(name string) (http.RoundTripper, error) {
		if name != "main" {
			return nil, iofs.ErrNotExist
		}
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if req.URL.Path != "/a" {
				w.WriteHeader(404)
			}
			fmt.Fprintln(w, "kept in the cache")
			return w.Result(), nil
		}), nil
	}
	g.reach.mu.Unlock()
	g.must("run")
	g.settle()
	if n := len(g.objects("")); n != 1 {
		t.Errorf("got %d objects, want 1", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
