package fstest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "site.txtar")
	archive := "-- index.html --\n<p>home\n-- a/index.html --\n<p>a\n-- a/b.txt --\ntext\n-- moved --\nHTTP/1.1 301 Moved\nLocation: /a/\n\n-- busy --\nHTTP/1.1 503 Busy\nRetry-After: 9\n\nlater\n"
	if err := os.WriteFile(name, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	site, err := NewSite(name)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(site)
	defer srv.Close()
	get := func(path, etag string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	tests := []struct {
		path, etag  string
		status      int
		body, field string // a header field as Name: value
	}{
		{"/", "", 200, "<p>home\n", "Content-Type: text/html; charset=utf-8"},
		{"/index.html", "", 200, "<p>home\n", ""},
		{"/a", "", 301, "", "Location: /a/"},
		{"/a/", "", 200, "<p>a\n", "Last-Modified: Thu, 02 Jan 2020 03:04:05 GMT"},
		{"/a/b.txt", "", 200, "text\n", "Content-Type: text/plain; charset=utf-8"},
		{"/a/c.txt", "", 404, "404 page not found\n", ""},
		{"/moved", "", 301, "", "Location: /a/"},
		{"/busy", "", 503, "later\n", "Retry-After: 9"},
	}
	for _, tt := range tests {
		res, body := get(tt.path, tt.etag)
		if res.StatusCode != tt.status || tt.body != "" && body != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.path, res.StatusCode, body, tt.status, tt.body)
		}
		if k, v, ok := strings.Cut(tt.field, ": "); ok && res.Header.Get(k) != v {
			t.Errorf("%s: got %s %q, want %q", tt.path, k, res.Header.Get(k), v)
		}
	}
	res, _ := get("/a/b.txt", "")
	if res, _ := get("/a/b.txt", res.Header.Get("ETag")); res.StatusCode != 304 {
		t.Errorf("with its own ETag: got %d, want 304", res.StatusCode)
	}
	if res, _ := get("/", res.Header.Get("ETag")); res.StatusCode != 200 {
		t.Errorf("with another's ETag: got %d, want 200", res.StatusCode)
	}
	log := site.Requests()
	if len(log) != len(tests)+3 || !slices.Contains(log, "GET /a/b.txt 304") {
		t.Errorf("requests: got %q", log)
	}
	if err := os.WriteFile(name, []byte("no files"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSite(name); err == nil {
		t.Error("an archive without files: got no error")
	}
}
