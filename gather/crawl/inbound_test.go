package crawl

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// verifyLinks compares the counts of links with the links.
func verifyLinks(t testing.TB, f *DB, docs map[DocID]Doc) {
	t.Helper()
	servers := make(map[DocID]ServerID)
	for id, d := range docs {
		servers[id] = d.Server
	}
	lost := make(map[DocID]bool)
	err := f.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(lostBucket).ForEach(func(k, v []byte) error {
			id := DocID(binary.BigEndian.Uint32(k))
			servers[id], lost[id] = ServerID(binary.BigEndian.Uint32(v)), true
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	in, links, ties := make(map[DocID]ref), make(map[ServerID]int), make(map[tie]bool)
	var references []Reference
	for l, err := range f.Links(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range l.To {
			if from, to := docs[l.From].URL, docs[id].URL; from != "" && to != "" {
				references = append(references, Reference{from, to})
			}
			from, to := servers[l.From], servers[id]
			if to == 0 || l.From == id {
				continue
			}
			r := in[id]
			r.all++
			if from != to {
				r.others++
				links[to]++
				ties[tie{to, from}] = true
			}
			in[id] = r
		}
	}
	for id, d := range docs {
		if got := (ref{d.InLinks, d.Inbound}); got != in[id] {
			t.Errorf("%s: got %v links, want %v", d.URL, got, in[id])
		}
	}
	for id := range lost {
		if in[id].all == 0 {
			t.Errorf("document %d is forgotten, nothing refers to it, and its server is kept", id)
		}
	}
	want := make(map[ServerID]Linked)
	for t := range ties {
		l := want[t.to]
		want[t.to] = Linked{t.to, l.From + 1, links[t.to]}
	}
	n := 0
	for l, err := range f.Linked(t.Context()) {
		if err != nil || l != want[l.Server] {
			t.Errorf("got %v, %v, want %v", l, err, want[l.Server])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("got %d servers that others have links to, want %d", n, len(want))
	}
	var got []Reference
	for r, err := range f.References(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if !slices.Equal(got, references) {
		t.Errorf("got %d references, want %d: %.300v, %.300v", len(got), len(references), got, references)
	}
}

// TestLinkCounts changes pages and forgets documents at random, and compares the
// counts with the links each time.
func TestLinkCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
	url := func() string { return fmt.Sprintf("http://h%d/%d", r.IntN(200), r.IntN(8)) }
	w := &web{pages: make(map[string]string)}
	var start strings.Builder
	for h := range 200 {
		fmt.Fprintf(&start, "<a href=http://h%d/%d>", h, r.IntN(8))
	}
	w.pages["http://start/"] = start.String()
	p := Plan{Roots: []Root{{URL: "http://start/", Depth: -1, Hosts: 500}}, Limits: Limits{Servers: 1}}
	for range 4 {
		for range 300 {
			var b strings.Builder
			for range r.IntN(30) {
				fmt.Fprintf(&b, "<a href=%s>", url())
			}
			w.pages[url()] = b.String()
		}
		visitOnce(t, f, p, w, newKeeper())
		verify(t, f)
		for range 40 {
			if err := f.Forget(t.Context(), url()); err != nil && !strings.Contains(err.Error(), "not exist") {
				t.Fatal(err)
			}
		}
		verify(t, f)
		if t.Failed() {
			return
		}
	}
}

// unpacked writes a stored database where it may be changed.
func unpacked(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	path := filepath.Join(t.TempDir(), "crawl.db")
	if err = errors.Join(err, os.WriteFile(path, b, 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFormat2: a database of the format before this has its links counted when it
// is opened, also when that was cut off before.
func TestFormat2(t *testing.T) {
	for _, cut := range []bool{false, true} {
		path := unpacked(t, "testdata/crawl2.db.gz")
		if cut {
			db, err := bbolt.Open(path, 0o644, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bbolt.Tx) error { // as far as countLinks may have come
				ties, err := tx.CreateBucket(tieBucket)
				_, err2 := tx.CreateBucket(lostBucket)
				return errors.Join(err, err2, ties.Put(tieKey(tie{1, 2}), []byte{2, 77}), tx.Bucket(inBucket).Put(refKey(3), []byte{9, 9, 9, 9}))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		}
		f := openDB(t, path)
		verify(t, f)
		if d, err := f.Lookup("http://h0/0"); err != nil || d.InLinks == 0 || d.Inbound < d.InLinks || d.Submitted != 1 || !d.Queued() {
			t.Errorf("got %+v, %v", d, err)
		}
		linked := 0
		for _, err := range f.Linked(t.Context()) {
			if linked++; err != nil {
				t.Error(err)
			}
		}
		if linked == 0 {
			t.Error("no server is linked to")
		}
		p := Plan{Roots: []Root{{URL: "http://h1/0", Depth: -1, Hosts: 9}}}
		k := newKeeper()
		for d, err := range f.Documents(t.Context(), "") {
			if d.State == Stored && err == nil {
				k.kept[d.URL] = "as it was"
			}
		}
		visitOnce(t, f, p, &web{pages: map[string]string{"http://h1/0": "x"}}, k)
		f.Close()
		f = openDB(t, path)
		verify(t, f)
		err := f.db.View(func(tx *bbolt.Tx) error {
			if got := tx.Bucket(metaBucket).Get([]byte("format")); string(got) != format {
				t.Errorf("got format %q, want %q", got, format)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestManyReferences: those of a page with more links than are read at once.
func TestManyReferences(t *testing.T) {
	f := openDB(t, filepath.Join(t.TempDir(), "f.db"))
	var b strings.Builder
	for i := range 3 * referStep {
		fmt.Fprintf(&b, "<a href=/%d>", i)
	}
	w := roundTrip(func(r *http.Request) (*http.Response, error) {
		text := ""
		if r.URL.Path == "/" {
			text = b.String()
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
	})
	visitOnce(t, f, Plan{Roots: []Root{{URL: "http://a/", Depth: 1}}}, w, newKeeper())
	verify(t, f)
}

// FuzzRefs: damaged records are read without a panic, and what is written is
// read as it was.
func FuzzRefs(f *testing.F) {
	f.Add([]byte{1, 2, 0, 5, 200, 1, 3}, []byte{1, 5, 127, 9})
	f.Fuzz(func(t *testing.T, in, ties []byte) {
		refs := decodeRefs(in)
		if got := decodeRefs(appendRefs(nil, &refs)); got != refs {
			t.Errorf("got %v, want %v", got, refs)
		}
		links := decodeTies(ties)
		maps.DeleteFunc(links, func(_ byte, n int) bool { return n == 0 })
		if got := decodeTies(appendTies(nil, links)); !maps.Equal(got, links) {
			t.Errorf("got %v, want %v", got, links)
		}
	})
}
