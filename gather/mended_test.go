package gather

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestExplainOneLine: a write of two lines is refused, not taken for one URL.
func TestExplainOneLine(t *testing.T) {
	g, err := Open(t.TempDir(), "test", slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := pour(t, g, "explain", "http://a/\nhttp://u:geheim@b/\n", 1000); err == nil || !strings.Contains(err.Error(), "more than one line") {
		t.Errorf("got %v", err)
	}
	r := runner{Gatherer: g, t: t}
	if got := r.read("err"); strings.Contains(got, "geheim") || !strings.Contains(got, "more than one line") {
		t.Errorf("err: got %s", got)
	}
	if err := pour(t, g, "explain", "http://a/\n", 1000); err != nil {
		t.Error(err)
	}
	if err := pour(t, g, "submit", "http://u:ge heim@[bad/\n", 1000); err == nil || strings.Contains(err.Error(), "heim") {
		t.Errorf("submit: got %v", err)
	}
	if got := r.read("err"); strings.Contains(got, "heim@") || !strings.Contains(got, "...@[bad/") {
		t.Errorf("err: got %s", got)
	}
}

// TestNoCaches: where no caches are, a configuration that goes by one is refused
// when it is written.
func TestNoCaches(t *testing.T) {
	open := func(opt Options) *Gatherer {
		g, err := Open(t.TempDir(), "test", slog.New(slog.DiscardHandler), opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		return g
	}
	const text = "proxy=cache/main\nroot url=http://a.test/\n"
	if err := open(Options{}).setConfig(t.Context(), text); err == nil || !strings.Contains(err.Error(), "no caches are in this process") {
		t.Errorf("without caches: got %v", err)
	}
	caches := func(string) (http.RoundTripper, error) { return http.DefaultTransport, nil }
	if err := open(Options{Proxy: caches}).setConfig(t.Context(), text); err != nil {
		t.Errorf("with caches: got %v", err)
	}
}

// TestHostsLeave: the server of a root that was taken out leaves the table of
// servers with the last of its documents.
func TestHostsLeave(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<p>A page %s", r.URL) })
	a, b := httptest.NewServer(page), httptest.NewServer(page)
	defer a.Close()
	defer b.Close()
	r := run(t, t.TempDir(), "root delay=0s url="+a.URL+"\nroot delay=0s url="+b.URL+"\n")
	r.must("run")
	r.settle()
	if got := r.read("hosts"); !strings.Contains(got, a.URL) || !strings.Contains(got, b.URL) {
		t.Fatalf("got %s", got)
	}
	if err := r.setConfig(t.Context(), "root delay=0s url="+a.URL+"\n"); err != nil {
		t.Fatal(err)
	}
	r.must("run")
	r.settle()
	if got := r.read("hosts"); !strings.Contains(got, a.URL) || strings.Contains(got, b.URL) {
		t.Errorf("got %s, want only %s", got, a.URL)
	}
	r.must("fetch " + b.URL + "/x")
	r.settle()
	if got := r.read("events"); !strings.Contains(got, "event=asked url="+b.URL+"/x\n") {
		t.Errorf("events: got %s, want that it was asked for", got)
	}
}
