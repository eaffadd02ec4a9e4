package gather

import (
	"context"
	"errors"
	iofs "io/fs"
	"log/slog"
	"strings"
	"testing"
)

// A root that somebody else gathers is refused, with who, unless it is forced or
// was there.
func TestOnceOnly(t *testing.T) {
	dir, known := t.TempDir(), false
	g, err := Open(dir, "web", slog.New(slog.DiscardHandler), Options{Covered: func(_ context.Context, own, url string) (string, error) {
		if own != "web" {
			t.Errorf("got %s, want its own name", own)
		}
		if known && strings.HasPrefix(url, "http://x.org/") {
			return "9p://far/gather/x gathers http://x.org/", nil
		}
		return "", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	set := func(text string) error { return g.setConfig(t.Context(), text) }
	if err := set("root url=http://x.org/old/"); err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"root url=http://x.org/old/ depth=3":       true, // it was there
		"root url=http://x.org/new/":               false,
		"leaf url=http://x.org/a.html":             false,
		"root url=http://x.org/new/ force=yes":     true,
		"leaf url=http://x.org/a.html force=yes":   true,
		"root url=http://y.org/":                   true,
		"root url=http://x.org/another/ force=may": false,
	} {
		known = false
		if err := set("root url=http://x.org/old/"); err != nil {
			t.Fatal(err)
		}
		known = true
		if err := set(text); (err == nil) != ok {
			t.Errorf("%s: got %v", text, err)
		}
		if err := set(text); !ok && text == "root url=http://x.org/new/" && (!errors.Is(err, iofs.ErrExist) || !strings.Contains(err.Error(), "9p://far/gather/x gathers http://x.org/ already; write force=yes")) {
			t.Errorf("got %v, want who gathers it", err)
		}
	}
}
