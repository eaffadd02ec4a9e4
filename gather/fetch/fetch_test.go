package fetch

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ask sends a request within a root, "" for none, and returns the answer and
// its body.
func ask(t *testing.T, method, url, root string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if root != "" {
		req = req.WithContext(Within(t.Context(), root))
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := New(Options{}).RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return resp, string(b)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.txt")
	write(t, name, "hello\n")
	mtime := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)
	if err := os.Chtimes(name, mtime, mtime); err != nil {
		t.Fatal(err)
	}
	u := "file://" + name
	resp, body := ask(t, "GET", u, "")
	if resp.StatusCode != 200 || body != "hello\n" || resp.ContentLength != 6 {
		t.Fatalf("got %s, %d bytes said, %q", resp.Status, resp.ContentLength, body)
	}
	if got, want := resp.Header.Get("Last-Modified"), "Thu, 02 Jan 2020 03:04:05 GMT"; got != want {
		t.Errorf("Last-Modified: got %s, want %s", got, want)
	}
	tag := resp.Header.Get("ETag")
	if resp, body := ask(t, "HEAD", u, ""); resp.StatusCode != 200 || body != "" || resp.Header.Get("ETag") != tag {
		t.Errorf("HEAD: got %s, %q, ETag %s", resp.Status, body, resp.Header.Get("ETag"))
	}
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"If-None-Match", tag}, 304},
		{[]string{"If-None-Match", `"x", ` + tag}, 304},
		{[]string{"If-None-Match", `"x"`}, 200},
		{[]string{"If-None-Match", `"x"`, "If-Modified-Since", resp.Header.Get("Last-Modified")}, 200},
		{[]string{"If-Modified-Since", resp.Header.Get("Last-Modified")}, 304},
		{[]string{"If-Modified-Since", "Thu, 02 Jan 2020 03:04:04 GMT"}, 200},
		{[]string{"If-Modified-Since", "yesterday"}, 200},
	} {
		resp, body := ask(t, "GET", u, "", c.header...)
		if resp.StatusCode != c.want || (body == "") != (c.want == 304) {
			t.Errorf("%q: got %s, %q, want %d", c.header, resp.Status, body, c.want)
		}
	}
	// The same size and time in another file is another version.
	write(t, name+".new", "hallo\n")
	os.Chtimes(name+".new", mtime, mtime)
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	if resp, body := ask(t, "GET", u, "", "If-None-Match", tag); resp.StatusCode != 200 || body != "hallo\n" {
		t.Errorf("replaced: got %s, %q", resp.Status, body)
	}
}

func TestListing(t *testing.T) {
	dir := t.TempDir()
	odd := "a%b ?#\n\xff\u00fc'&.txt"
	write(t, filepath.Join(dir, odd), "odd")
	write(t, filepath.Join(dir, "b/c"), "x")
	write(t, filepath.Join(dir, "b-c"), "x")
	if err := os.Symlink("b-c", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	u := "file://" + dir
	resp, _ := ask(t, "GET", u, "")
	if resp.StatusCode != 301 || resp.Header.Get("Location") != dir+"/" {
		t.Errorf("without a slash: got %s, to %s", resp.Status, resp.Header.Get("Location"))
	}
	resp, body := ask(t, "GET", u+"/", u)
	if got := resp.Header.Get("Content-Type"); got != ListingType {
		t.Fatalf("Content-Type: got %s, want %s", got, ListingType)
	}
	var got []string
	for line := range strings.Lines(body) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			t.Fatalf("got line %q, want 5 fields", line)
		}
		got = append(got, f[0]+" "+f[4])
		if f[0] != "f" {
			continue
		}
		resp, _ := ask(t, "GET", u+"/"+f[4], u)
		if resp.StatusCode != 200 || resp.Header.Get("ETag") != f[3] {
			t.Errorf("%s: got %s, ETag %s, want the listing's %s", f[4], resp.Status, resp.Header.Get("ETag"), f[3])
		}
	}
	want := "f a%25b%20%3F%23%0A%FF%C3%BC'&.txt\nf b-c\nd b/\nl link\ns pipe"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if _, body := ask(t, "GET", u+"/a%25b%20%3F%23%0A%FF%C3%BC'&.txt", ""); body != "odd" {
		t.Errorf("odd name: got %q", body)
	}
}

// TestWithin sees that no request leaves its root, by dots or by links, and
// that nothing but files and directories is opened.
func TestWithin(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	write(t, filepath.Join(root, "in/a"), "inside")
	write(t, filepath.Join(dir, "secret"), "outside")
	for name, to := range map[string]string{
		"abs": filepath.Join(dir, "secret"), "rel": "../secret", "up": "..", "ok": "in/a", "okdir": "in", "loop": "loop", "null": "/dev/null",
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		path, root string
		want       int
		body       string
	}{
		{"root/in/a", "root", 200, "inside"},
		{"root/ok", "root", 200, "inside"},
		{"root/okdir/a", "root", 200, "inside"},
		{"root/abs", "root", 403, ""},
		{"root/rel", "root", 403, ""},
		{"root/up/secret", "root", 403, ""},
		{"root/up/", "root", 403, ""},
		{"root/loop", "root", 403, ""},
		{"root/null", "root", 403, ""},
		{"root/pipe", "root", 403, ""},
		{"root/socket", "root", 403, ""},
		{"root/../secret", "root", 403, ""},
		{"root/%2e%2e/secret", "root", 403, ""},
		{"secret", "root", 403, ""},
		{"rootother", "root", 403, ""},
		{"root/none", "root", 404, ""},
		{"root/in/a/b", "root", 404, ""},
		{"root/in/a/", "root", 404, ""},
		{"alias/in/a", "alias", 200, "inside"},
		{"secret", "secret", 200, "outside"},
		{"secret", "", 200, "outside"},
		{"root/ok", "", 403, ""},
		{"root/pipe", "", 403, ""},
		{"root/in/a?x", "", 400, ""},
		{"root/%00", "root", 400, ""},
		{"none/a", "none", 404, ""},
	} {
		within := ""
		if c.root != "" {
			within = "file://" + filepath.Join(dir, c.root)
		}
		resp, body := ask(t, "GET", "file://"+dir+"/"+c.path, within)
		if resp.StatusCode != c.want || resp.StatusCode == 200 && body != c.body {
			t.Errorf("%s within %q: got %s, %q, want %d, %q", c.path, c.root, resp.Status, body, c.want, c.body)
		}
	}
	if resp, _ := ask(t, "POST", "file://"+dir+"/secret", ""); resp.StatusCode != 405 {
		t.Errorf("POST: got %s, want 405", resp.Status)
	}
	if resp, _ := ask(t, "GET", "file://elsewhere/secret", ""); resp.StatusCode != 400 {
		t.Errorf("another host: got %s, want 400", resp.Status)
	}
}

// TestUnreadable: trouble is an error or 403, never 404, after which objects
// would be deleted.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "closed/a"), "x")
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "closed"), 0o755)
	for _, p := range []string{"/closed/", "/closed/a"} {
		if resp, _ := ask(t, "GET", "file://"+dir+p, ""); resp.StatusCode != 403 {
			t.Errorf("%s: got %s, want 403", p, resp.Status)
		}
	}
}

func TestWeb(t *testing.T) {
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		io.Copy(w, strings.NewReader("page"))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	tr := New(Options{})
	defer tr.CloseIdleConnections()
	for range 20 {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/", nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != "page" {
			t.Fatalf("got %q, %v", b, err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("got %d connections for 20 requests, want 1", n)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/moved", nil)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 302 {
		t.Errorf("a redirect: got %s, want it handed on", resp.Status)
	}
	req, _ = http.NewRequestWithContext(t.Context(), "GET", "wais://site/", bytes.NewReader(nil))
	if _, err := tr.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "unknown scheme") {
		t.Errorf("wais: got %v, want an unknown scheme", err)
	}
}

// TestSilent: a server that takes the connection and says nothing is given up.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String()+"/", nil)
	_, err = New(Options{Header: 50 * time.Millisecond}).RoundTrip(req)
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a b%20\xff/?#")
	f.Fuzz(func(t *testing.T, name string) {
		req, err := http.NewRequest("GET", "file:///"+Escape(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(req.URL.Path, "/"); got != strings.TrimPrefix(name, "/") && "/"+got != name {
			if strings.TrimLeft(got, "/") != strings.TrimLeft(name, "/") {
				t.Errorf("%q: got %q back", name, got)
			}
		}
	})
}
