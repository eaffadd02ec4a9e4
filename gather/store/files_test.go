package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/soif"
)

func testTree(s *Store, bus *fs.Bus) fs.Dir {
	id := func(parts ...string) uint64 { return fs.ID(append([]string{"test"}, parts...)...) }
	return fs.Static(id("dir"), s.Files(id, bus, nil))
}

// filled makes a store whose tree has something of each kind.
func filled(t *testing.T) *Store {
	s := opened(t, Options{NoSync: true, Frame: 1000})
	for _, url := range []string{
		"http://site/", "http://site/doc", "http://site/doc/", "http://site/doc/a?b=/c", "http://site/doc.soif/x",
		"https://go.dev/doc/effective_go", "news:comp.os.plan9", "file:///usr/share/doc/x", "http://site/" + strings.Repeat("long", 80),
	} {
		apply(t, s, update(url, strings.Repeat("text of "+url, 5)))
	}
	for i := range 600 { // more than one chunk
		apply(t, s, update(fmt.Sprintf("http://many/%d", i), "x"))
	}
	twin := update("http://site/doc", "from another gatherer")
	twin.OID = ID("http://site/doc", "other")
	apply(t, s, twin, Change{Op: soif.Delete, OID: ID("http://many/7", "g")})
	return s
}

func TestTree(t *testing.T) {
	s := filled(t)
	after := s.Cursor()
	apply(t, s, update("http://site/late", "x"))
	fstest.Dir(t, testTree(s, nil), fstest.Options{Hidden: []string{
		"since/" + after.String(), "since/" + after.String() + ".zst", "since/0.zst", "since/2001-01-01T00:00:00Z",
	}})
}

func TestTreeReads(t *testing.T) {
	s := filled(t)
	root := testTree(s, nil)
	fsys := fs.IO(ctx, root)
	read := func(name string) string {
		t.Helper()
		b, err := iofs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	url := "https://go.dev/doc/effective_go"
	oid := ID(url, "g")
	want := string(update(url, strings.Repeat("text of "+url, 5)).Body)
	byURL, byOID := "url/https/go.dev/doc/effective_go.soif", "objects/"+oid.String()[:2]+"/"+oid.String()+".soif"
	for _, name := range []string{byURL, byOID} {
		if got := read(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	a, err := fs.Walk(ctx, root, byURL)
	b, err2 := fs.Walk(ctx, root, byOID)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if a.Stat() != b.Stat() || a.Stat().Size != int64(len(want)) {
		t.Errorf("stat by url %+v, by oid %+v, want the same and size %d", a.Stat(), b.Stat(), len(want))
	}
	if n := len(strings.Split(strings.TrimSpace(read("objects/digest")), "\n")); n != 256 {
		t.Errorf("objects/digest: got %d lines, want 256", n)
	}
	_, e, err := s.Get(oid)
	if line := fmt.Sprintf("%s\t%x\n", oid, e.Hash); err != nil || !strings.Contains(read("objects/"+oid.String()[:2]+"/digest"), line) {
		t.Errorf("objects/%s/digest: no line %q", oid.String()[:2], line)
	}
	if d, _ := s.Digest(""); read("digest") != fmt.Sprintf("%x\t%d\n", d.Sum, s.Count()) {
		t.Errorf("digest: got %q", read("digest"))
	}
	if got := read("soif"); int64(len(got)) != s.totals.bytes || strings.Count(got, "\n@FILE {")+1 != int(s.Count()) {
		t.Errorf("soif: got %d bytes, want %d", len(got), s.totals.bytes)
	}
	for _, name := range []string{"since/yesterday", "since/1.2", "objects/3", "objects/zz", "objects/3f/x.soif", "url/http/nowhere", "url/http/site/nothing.soif"} {
		if _, err := iofs.Stat(fsys, name); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: got %v, want not exist", name, err)
		}
	}
	if _, err := iofs.Stat(fsys, fmt.Sprintf("since/%08x.1", s.epoch+1)); !errors.Is(err, ErrCursor) || fs.Errno(err) != syscall.ENOENT {
		t.Errorf("cursor of another epoch: got %v, want ErrCursor and ENOENT", err)
	}
}

// TestPacked reads the compressed files at once and in pieces, with all frames
// ready and not.
func TestPacked(t *testing.T) {
	s := filled(t)
	root := testTree(s, nil)
	fsys := fs.IO(ctx, root)
	unpack := func(name string) []byte {
		t.Helper()
		b, err := iofs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		raw, err := d.DecodeAll(b, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := fs.Walk(ctx, root, name)
		if err != nil {
			t.Fatal(err)
		}
		h, err := n.(fs.File).Open(ctx, fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		for off := len(b); off > 0; { // backwards, in pieces
			from := max(0, off-777)
			p := make([]byte, off-from)
			if n, err := io.ReadFull(section{h, int64(from)}.reader(), p); err != nil || !bytes.Equal(p, b[from:off]) {
				t.Fatalf("%s: at %d: got %d bytes %v, other than in one piece", name, from, n, err)
			}
			off = from
		}
		return raw
	}
	check := func(when string, ready bool) {
		t.Helper()
		sn, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if got := sn.Ready() >= 0; got != ready {
			t.Errorf("%s: ready: got %v, want %v", when, got, ready)
		}
		if err := sn.Close(); err != nil {
			t.Fatal(err)
		}
		plain, err := iofs.ReadFile(fsys, "soif")
		if got := unpack("soif.zst"); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: soif.zst: got %d bytes, soif has %d %v", when, len(got), len(plain), err)
		}
		since, err := iofs.ReadFile(fsys, "since/0")
		if got := unpack("since/0.zst"); err != nil || !bytes.Equal(got, since) || !bytes.Contains(since, plain) {
			t.Errorf("%s: since/0.zst: got %d bytes, since/0 has %d %v", when, len(got), len(since), err)
		}
	}
	check("with a deletion", true) // its frame had nothing else
	apply(t, s, update("http://site/doc", "new"), update("http://many/300", "new"), update("http://many/301", "new"))
	apply(t, s, Change{Op: soif.Delete, OID: ID("http://many/301", "g")})
	check("with half a frame dead", false)
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	check("compacted", true)
	empty := opened(t, Options{NoSync: true})
	s, root = empty, testTree(empty, nil)
	fsys = fs.IO(ctx, root)
	check("empty", true)
}

type section struct {
	h   fs.Handle
	off int64
}

func (s section) reader() io.Reader { return &s }

func (s *section) Read(p []byte) (int, error) {
	n, err := s.h.ReadAt(ctx, p, s.off)
	s.off += int64(n)
	return n, err
}

// TestOpenObject holds a file open, or only its node, while the object changes.
func TestOpenObject(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	c := update("http://h/a", "first")
	apply(t, s, c)
	root := testTree(s, nil)
	name := "url/http/h/a.soif"
	old, err := fs.Walk(ctx, root, name)
	if err != nil {
		t.Fatal(err)
	}
	get := func(n fs.Node) (string, error) {
		h, err := n.(fs.File).Open(ctx, fs.Read)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		b, err := io.ReadAll(section{h, 0}.reader())
		return string(b), err
	}
	apply(t, s, update("http://h/a", "second, and longer"))
	if got, err := get(old); err != nil || got != string(c.Body) {
		t.Errorf("node from before the change: got %q %v, want %q", got, err, c.Body)
	}
	now, err := fs.Walk(ctx, root, name)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := old.Stat(), now.Stat(); a.Path != b.Path || a.Vers == b.Vers || a.Size == b.Size {
		t.Errorf("stat before %+v and after %+v: want the same path, another version and size", a, b)
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := get(now); err != nil || !strings.Contains(got, "second") {
		t.Errorf("after a compaction: got %q %v, want the second", got, err)
	}
	s.frames = frameCache{}
	if got, err := get(old); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("old node after a compaction: got %q %v, want ESTALE", got, err)
	}
}

func TestBus(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	bus := new(fs.Bus)
	root := testTree(s, bus)
	events := bus.Subscribe(100)
	defer events.Close()
	heard := func() (all []fs.Event) {
		for {
			select {
			case e := <-events.C:
				all = append(all, e)
			default:
				return all
			}
		}
	}
	path := func(name string) uint64 {
		n, err := fs.Walk(ctx, root, name)
		if err != nil {
			t.Fatal(err)
		}
		return n.Stat().Path
	}
	apply(t, s, update("http://h/a/b", "1"))
	oid := ID("http://h/a/b", "g").String()
	got := heard()
	for _, want := range []fs.Event{
		{Path: path("url/http/h/a/b.soif")}, {Path: path("url/http/h/a"), Name: "b.soif"}, {Path: path("url/http/h"), Name: "a"}, {Path: path("url"), Name: "http"},
		{Path: path("objects/" + oid[:2])}, {Path: path("objects/" + oid[:2]), Name: oid + ".soif"}, {Path: path("objects")}, {Path: path("soif")},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("new object: no event %+v", want)
		}
	}
	file := path("url/http/h/a/b.soif")
	apply(t, s, update("http://h/a/b", "2"))
	got = heard()
	if !slices.Contains(got, fs.Event{Path: file}) || slices.ContainsFunc(got, func(e fs.Event) bool { return e.Name != "" }) {
		t.Errorf("changed object: got %+v, want its path and no names", got)
	}
	apply(t, s, Change{Op: soif.Delete, OID: ID("http://h/a/b", "g")})
	if got = heard(); !slices.Contains(got, fs.Event{Path: path("url"), Name: "http"}) {
		t.Errorf("deleted object: got %+v, want http to go from url", got)
	}
}

func TestAttributes(t *testing.T) {
	s := opened(t, Options{NoSync: true})
	apply(t, s, update("http://h/a", "1"))
	n, err := fs.Walk(ctx, testTree(s, nil), "url/http/h/a.soif")
	if err != nil {
		t.Fatal(err)
	}
	all, err := n.(fs.Attributer).Attributes(ctx)
	if want := (fs.Attribute{Name: "url", Value: "http://h/a"}); err != nil || !slices.Contains(all, want) {
		t.Errorf("attributes: got %v %v, want %v among them", all, err, want)
	}
}

// TestListing asks for what follows names that are there and names that are not.
func TestListing(t *testing.T) {
	s := filled(t)
	root := testTree(s, nil)
	for _, dir := range []string{"objects", "objects/3f", "objects/d1", "objects/dd", "objects/e0", "url", "url/http/site", "url/http/many", "since"} {
		n, err := fs.Walk(ctx, root, dir)
		if err != nil {
			t.Fatal(err)
		}
		list := func(after string) (names []string) {
			for e, err := range n.(fs.Dir).List(ctx, after) {
				if err != nil {
					t.Fatalf("%s after %q: %v", dir, after, err)
				}
				names = append(names, e.Name)
			}
			return names
		}
		all := list("")
		marks := append(slices.Clone(all[:min(20, len(all))]), "0", "3", "3f", "3f0", "d", "dd", "digesta", "dig", "e", "zz", "~", "@", "A", "/", "3f0g", "3f.", "é")
		for i, name := range all {
			if len(all) > 100 && i%50 != 0 {
				continue // each costs a list of the rest
			}
			marks = append(marks, name, strings.TrimSuffix(name, ".soif"), name+"x", name[:len(name)/2])
		}
		for _, after := range marks {
			i, found := slices.BinarySearch(all, after)
			if found {
				i++
			}
			if got := list(after); !slices.Equal(got, all[i:]) {
				t.Fatalf("%s after %q: got %d names, want %d of %d", dir, after, len(got), len(all[i:]), len(all))
			}
		}
	}
}
