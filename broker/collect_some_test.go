package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
	"testing"

	"harvest/fs"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A source with a filter gives only what that matches, and what it matched once
// and does no more is gone; with another filter all is read again.
func TestFilteredSource(t *testing.T) {
	for _, key := range []string{"filter", "query"} {
		for _, packed := range []string{"no", "yes"} {
			t.Run(key+"/compressed="+packed, func(t *testing.T) { testFiltered(t, key, packed) })
		}
	}
}

func testFiltered(t *testing.T, key, packed string) {
	w := newWorld(t)
	g := w.gatherer("g")
	for i := range 10 {
		apply(t, g, update(object(fmt.Sprint("http://s/", i), fmt.Sprint("Page ", i), []string{"an apple", "a pear tree"}[i%2])))
	}
	a := w.broker(t.TempDir(), "source path=g")
	must(t, a.Collect(ctx, "g"))
	w.trees["a"] = fs.IO(ctx, a.Files())
	asked := &asking{FS: w.trees["a"]}
	w.trees["a"] = asked
	dir := t.TempDir()
	b := w.broker(dir, fmt.Sprintf("source path=a %s='tree and pear' compressed=%s", key, packed))
	collect := func() { must(t, b.Collect(ctx, "a")) }
	collect()
	finds(t, b, "page", "http://s/1", "http://s/3", "http://s/5", "http://s/7", "http://s/9")
	for name, zst := range map[string]bool{"no": false, "yes": true} {
		if got := strings.HasSuffix(asked.last, ".zst"); packed == name && got != zst {
			t.Errorf("compressed=%s: got %s", packed, asked.last)
		}
	}

	apply(t, g, update(object("http://s/1", "Page 1", "no fruit")), update(object("http://s/2", "Page 2", "a tree, a pear")),
		store.Change{Op: soif.Delete, OID: oid("http://s/3")}, update(object("http://s/4", "Page 4", "an apple still")))
	must(t, a.Collect(ctx, "g"))
	collect()
	finds(t, b, "page", "http://s/2", "http://s/5", "http://s/7", "http://s/9")
	if !strings.HasSuffix(strings.TrimSuffix(asked.last, ".zst"), a.cursorBefore(4)) {
		t.Errorf("got %s, want only what changed", asked.last)
	}
	if key == "query" && !strings.HasPrefix(asked.last, "q/tree and pear/since/") {
		t.Errorf("got %s, want it asked with the query", asked.last)
	}

	must(t, b.setConfig(ctx, fmt.Sprintf("source path=a %s=apple", key)))
	collect()
	finds(t, b, "page", "http://s/0", "http://s/4", "http://s/6", "http://s/8")
	must(t, b.setConfig(ctx, "source path=a"))
	collect()
	if got := b.store.Count(); got != 9 {
		t.Errorf("without: got %d objects, want 9", got)
	}
}

// cursorBefore is the end of the name of since before the last n changes.
func (b *Broker) cursorBefore(n uint64) string {
	c := b.store.Cursor()
	c.Seq -= n
	return "/" + c.String()
}

// asking notes what is opened of since.
type asking struct {
	iofs.FS
	last string
}

func (a *asking) Open(name string) (iofs.File, error) {
	if strings.Contains(name, "since/") {
		a.last = name
	}
	return a.FS.Open(name)
}

// A stream that never ends is cut off, and named.
func TestEndlessSource(t *testing.T) {
	w := newWorld(t)
	w.trees["endless"] = endless{}
	b := w.broker(t.TempDir(), "source path=endless limit=1M")
	err := b.Collect(ctx, "endless")
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "endless") || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("got %v, want that it is more than 1M", err)
	}
	if got := b.lastEvents(); !strings.Contains(got, "event=failed source=endless") {
		t.Errorf("events: got %s", got)
	}
}

// endless is a tree whose since/0 has no end.
type endless struct{}

func (endless) Open(name string) (iofs.File, error) {
	if name != "since/0" {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: iofs.ErrNotExist}
	}
	return fs.IO(context.Background(), fs.Static(fs.ID("e"), map[string]fs.Node{"0": fs.Text(fs.ID("0"), func() string {
		var b bytes.Buffer
		u := soif.NewUpdateWriter(&b)
		for i := range 20_000 {
			if err := u.Write(soif.Update, object(fmt.Sprint("http://e/", i), "Endless", "and so on").Append(nil)); err != nil {
				panic(err)
			}
		}
		return b.String()
	})})).Open("0")
}

// A zstd stream that is none is an error that names the source.
func TestPackedNonsense(t *testing.T) {
	w := newWorld(t)
	w.trees["n"] = fs.IO(ctx, fs.Static(fs.ID("n"), map[string]fs.Node{"since": fs.Static(fs.ID("since"), map[string]fs.Node{
		"0.zst": fs.Text(fs.ID("0"), func() string { return "no zstd at all" }),
	})}))
	b := w.broker(t.TempDir(), "source path=n compressed=yes")
	if err := b.Collect(ctx, "n"); err == nil || !strings.Contains(err.Error(), "source n") {
		t.Errorf("got %v", err)
	}
}

func TestSourceConfig(t *testing.T) {
	for text, want := range map[string]string{
		"source path=a filter='(b'":                       "line 1, column 15: source: filter: column",
		"source path=a query='b~'":                        "how many errors",
		"source path=a query=" + strings.Repeat("x", 300): "it could be a filter",
		"source path=a full=maybe":                        "line 1, column 15",
		"source path=a limit=lots":                        "line 1, column 15",
		"source path=a full=yes full=yes":                 "repeated key 'full'",
	} {
		if _, err := parseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
	for path, packed := range map[string]bool{"gather/x": false, "tcp!host!5640/gather/x": true, "/mnt/x": false} {
		c, err := parseConfig("source path=" + path)
		must(t, err)
		if c.sources[0].packed != packed {
			t.Errorf("%s: got compressed %v", path, !packed)
		}
	}
}
