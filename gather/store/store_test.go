package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
)

var ctx = context.Background()

// quiet drops the log of stores whose damage is the test's doing.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// testLog makes what a store logs part of the test's output.
func testLog(t testing.TB) *slog.Logger {
	return textLog(t.Output())
}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func open(t testing.TB, dir string, opt Options) *Store {
	t.Helper()
	s, err := Open(dir, testLog(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shut(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// opened opens a store for a test and closes it at its end.
func opened(t testing.TB, opt Options) *Store {
	t.Helper()
	s := open(t, t.TempDir(), opt)
	t.Cleanup(func() { shut(t, s) })
	return s
}

func apply(t testing.TB, s *Store, changes ...Change) uint64 {
	t.Helper()
	seq, err := s.Apply(ctx, changes)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// object makes an encoded object.
func object(url, text string, updated int64) []byte {
	o := soif.Object{Type: "FILE", URL: url}
	o.Add("Title", []byte("about "+url))
	o.Add("Type", []byte("Text"))
	o.Add("Update-Time", fmt.Append(nil, updated))
	o.Add("Full-Text", []byte(text))
	return o.Append(nil)
}

func update(url, text string) Change {
	return Change{Op: soif.Update, OID: ID(url, "g"), Body: object(url, text, 784649664)}
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	url := "http://site/intro.html"
	c := update(url, "hello")
	c.TTL = time.Hour
	if seq := apply(t, s, c); seq != 1 {
		t.Errorf("seq: got %d, want 1", seq)
	}
	want := Entry{OID: c.OID, URL: url, Type: "Text", Size: int64(len(c.Body)), Seq: 1, Body: 1,
		Updated: time.Unix(784649664, 0).UTC(), TTL: time.Hour}
	check := func(when string) {
		t.Helper()
		b, e, err := s.Get(c.OID)
		want.Hash, want.at = e.Hash, e.at
		if err != nil || !bytes.Equal(b, c.Body) || e != want {
			t.Fatalf("%s: got %q %+v %v, want %q %+v", when, b, e, err, c.Body, want)
		}
		if e, err := s.StatURL(url); err != nil || e != want {
			t.Errorf("%s: by url: got %+v %v, want %+v", when, e, err, want)
		}
	}
	check("in memory")
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	check("in the index")
	shut(t, s)
	s = open(t, dir, Options{})
	check("after a restart")
	apply(t, s, Change{Op: soif.Delete, OID: c.OID})
	for _, when := range []string{"in memory", "in the index"} {
		if _, _, err := s.Get(c.OID); !errors.Is(err, iofs.ErrNotExist) || !strings.HasPrefix(err.Error(), "object "+c.OID.String()) {
			t.Errorf("deleted, %s: got %v, want object …: file does not exist", when, err)
		}
		if _, err := s.StatURL(url); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("deleted, %s, by url: got %v, want not exist", when, err)
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
}

func TestApplyRefuses(t *testing.T) {
	s := opened(t, Options{})
	apply(t, s, update("http://h/a", "1"))
	before := s.Cursor()
	for name, bad := range map[string]Change{
		"no SOIF":          {Op: soif.Update, OID: ID("x", "g"), Body: []byte("hello")},
		"two objects":      {Op: soif.Update, OID: ID("x", "g"), Body: append(object("x", "1", 1), object("y", "2", 2)...)},
		"half an object":   {Op: soif.Update, OID: ID("x", "g"), Body: object("x", "1", 1)[:30]},
		"unknown op":       {Op: 9, OID: ID("x", "g")},
		"refresh of none":  {Op: soif.Refresh, OID: ID("x", "g")},
		"nothing at all":   {Op: soif.Update, OID: ID("x", "g")},
		"object too large": {Op: soif.Update, OID: ID("x", "g"), Body: make([]byte, maxObject+1)},
	} {
		_, err := s.Apply(ctx, []Change{update("http://h/b", "2"), {Op: soif.Delete, OID: ID("http://h/a", "g")}, bad})
		if err == nil || !strings.HasPrefix(err.Error(), "object "+bad.OID.String()) {
			t.Errorf("%s: got %v, want an error that names the object", name, err)
		}
	}
	if now := s.Cursor(); now != before || s.Count() != 1 {
		t.Errorf("refused changes left %v and %d objects, want %v and 1", now, s.Count(), before)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Apply(done, []Change{update("http://h/b", "2")}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v, want canceled", err)
	}
}

// A model is what a store ought to hold.
type model struct {
	seq     uint64
	objects map[OID]Change
	changed map[OID]uint64 // last change, of deleted ones too
	written map[OID]uint64 // last change that was no refresh
}

func newModel() *model {
	return &model{objects: make(map[OID]Change), changed: make(map[OID]uint64), written: make(map[OID]uint64)}
}

// mutate applies some random changes to both.
func (m *model) mutate(t *testing.T, r *rand.Rand, s *Store, urls int) {
	t.Helper()
	var batch []Change
	for range 1 + r.IntN(20) {
		url := fmt.Sprintf("http://h%d/%d/%d", r.IntN(3), r.IntN(5), r.IntN(urls))
		oid := ID(url, "g")
		old, had := m.objects[oid]
		switch n := r.IntN(10); {
		case n < 6:
			c := Change{Op: soif.Update, OID: oid, Updated: time.Unix(int64(1000+r.IntN(1000)), 0).UTC()}
			c.TTL = time.Duration(r.IntN(3)) * time.Minute
			c.Body = object(url, strings.Repeat("text ", r.IntN(200))+fmt.Sprint(r.IntN(1e6)), c.Updated.Unix())
			batch = append(batch, c)
			m.seq++
			m.objects[oid], m.changed[oid], m.written[oid] = c, m.seq, m.seq
		case n < 8 && had:
			c := Change{Op: soif.Refresh, OID: oid, Updated: old.Updated.Add(time.Duration(1+r.IntN(9)) * time.Second)}
			batch = append(batch, c)
			m.seq++
			o, _, err := soif.Parse(old.Body, soif.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			o.Set("Update-Time", fmt.Append(nil, c.Updated.Unix()))
			old.Body, old.Updated = o.Append(nil), c.Updated
			m.objects[oid], m.changed[oid] = old, m.seq
		default:
			batch = append(batch, Change{Op: soif.Delete, OID: oid})
			if had {
				m.seq++
				delete(m.objects, oid)
				m.changed[oid] = m.seq
			}
		}
	}
	if seq := apply(t, s, batch...); seq != m.seq {
		t.Fatalf("seq: got %d, want %d", seq, m.seq)
	}
}

// check compares all that a store tells with the model.
func (m *model) check(t *testing.T, s *Store, after uint64) {
	t.Helper()
	m.checkChanges(t, s, after) // first, for what follows empties the tables
	var bytesWant int64
	var oids []OID
	for oid, c := range m.objects {
		oids = append(oids, oid)
		bytesWant += int64(len(c.Body))
		b, e, err := s.Get(oid)
		if err != nil || !bytes.Equal(b, c.Body) || e.Seq != m.changed[oid] || e.Body != m.written[oid] || !e.Updated.Equal(c.Updated) || e.TTL != c.TTL {
			t.Fatalf("object %s: got %q %+v %v, want %q, change %d", oid, b, e, err, c.Body, m.changed[oid])
		}
	}
	m.checkEntries(t, s)
	slices.SortFunc(oids, func(a, b OID) int { return bytes.Compare(a[:], b[:]) })
	var scanned []OID
	for e, err := range s.Scan(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		scanned = append(scanned, e.OID)
	}
	if !slices.Equal(scanned, oids) {
		t.Fatalf("scan: got %d objects, want %d", len(scanned), len(oids))
	}
	st, err := s.Stats()
	if err != nil || st.Objects != int64(len(oids)) || st.Bytes != bytesWant || st.Tombstones != int64(len(m.changed)-len(oids)) {
		t.Fatalf("stats: got %+v %v, want %d objects of %d bytes, %d tombstones", st, err, len(oids), bytesWant, len(m.changed)-len(oids))
	}
	m.checkChanges(t, s, after)
	m.checkStream(t, s)
	checkDigest(t, s)
	m.checkNames(t, s)
}

// checkEntries asks for all objects there ever were at once, some twice, and for one
// that never was.
func (m *model) checkEntries(t *testing.T, s *Store) {
	t.Helper()
	oids := []OID{{1}}
	for oid := range m.changed {
		oids = append(oids, oid)
	}
	oids = append(oids, oids[:len(oids)/2]...)
	held := make([]bool, len(oids))
	err := s.Entries(ctx, oids, func(i int, e *Entry) bool {
		if one, err := s.Stat(oids[i]); err != nil || one != *e {
			t.Fatalf("object %s: got %+v, want %+v, %v", oids[i], *e, one, err)
		}
		held[i] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := s.Entries(ctx, oids, func(int, *Entry) bool { n++; return false }); err != nil || n > 1 {
		t.Fatalf("got %d after the first was enough, %v", n, err)
	}
	for i, oid := range oids {
		if _, want := m.objects[oid]; held[i] != want {
			t.Fatalf("object %s: got %t, want %t", oid, held[i], want)
		}
	}
}

func (m *model) checkChanges(t *testing.T, s *Store, after uint64) {
	t.Helper()
	want := make(map[uint64]string)
	for oid, seq := range m.changed {
		_, there := m.objects[oid]
		switch {
		case seq <= after:
		case !there && after > 0:
			want[seq] = "DELETE " + oid.String()
		case there && m.written[oid] <= after && after > 0:
			want[seq] = "REFRESH " + oid.String()
		case there:
			want[seq] = "UPDATE " + oid.String()
		}
	}
	got := make(map[uint64]string)
	last := uint64(0)
	for rec, err := range s.Changes(ctx, Cursor{s.Cursor().Epoch, after}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Entry.Seq <= last {
			t.Fatalf("change %d after %d", rec.Entry.Seq, last)
		}
		last = rec.Entry.Seq
		got[last] = rec.Op.String() + " " + rec.Entry.OID.String()
	}
	if !maps.Equal(got, want) {
		for seq := range s.Cursor().Seq + 1 {
			if got[seq] != want[seq] {
				t.Errorf("change %d: got %q, want %q", seq, got[seq], want[seq])
			}
		}
		t.Fatalf("changes after %d: got %d, want %d", after, len(got), len(want))
	}
}

// checkStream reads the whole collection, plain, compressed and as changes.
func (m *model) checkStream(t *testing.T, s *Store) {
	t.Helper()
	var plain, packed, since bytes.Buffer
	if err := errors.Join(s.WriteSOIF(ctx, &plain), s.WriteZstd(ctx, &packed), s.WriteSince(ctx, &since, Cursor{})); err != nil {
		t.Fatal(err)
	}
	zr, err := zstd.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	unpacked, err := io.ReadAll(zr)
	if err != nil || !bytes.Equal(unpacked, plain.Bytes()) {
		t.Fatalf("soif.zst: got %d bytes %v, want the %d of soif", len(unpacked), err, plain.Len())
	}
	checkGzip(t, s, since.Bytes())
	checkWhole(t, s, since.Bytes())
	want := make(map[string]string)
	for _, c := range m.objects {
		o, _, _ := soif.Parse(c.Body, soif.Limits{})
		want[o.URL] = string(c.Body)
	}
	got := make(map[string]string)
	d := soif.NewDecoder(&plain, soif.Limits{})
	var o soif.Object
	for err = d.Next(&o); err == nil; err = d.Next(&o) {
		got[o.URL] = string(o.Append(nil))
	}
	if err != io.EOF || !maps.Equal(got, want) {
		t.Fatalf("soif: got %d objects %v, want %d", len(got), err, len(want))
	}
	clear(got)
	u := soif.NewUpdateReader(&since, soif.Limits{})
	var c soif.Change
	for err = u.Next(&c); err == nil; err = u.Next(&c) {
		if c.Op != soif.Update {
			t.Fatalf("since/0 has a %v", c.Op)
		}
		got[c.Object.URL] = string(c.Object.Append(nil))
	}
	if err != io.EOF || !maps.Equal(got, want) || u.Cursor() != s.Cursor().String() {
		t.Fatalf("since/0: got %d objects %v and cursor %s, want %d and %s", len(got), err, u.Cursor(), len(want), s.Cursor())
	}
}

func (m *model) checkNames(t *testing.T, s *Store) {
	t.Helper()
	var want []string
	for _, c := range m.objects {
		o, _, _ := soif.Parse(c.Body, soif.Limits{})
		want = append(want, strings.ReplaceAll(o.URL, "://", "/")+".soif")
	}
	slices.Sort(want)
	got := names(t, s, "")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("names: got %d, want %d", len(got), len(want))
	}
}

// names lists the objects below a folder by walking the tree.
func names(t testing.TB, s *Store, dir string) (all []string) {
	t.Helper()
	last := ""
	for n, err := range s.Names(ctx, dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		if n.Name <= last {
			t.Fatalf("%s: %q after %q", dir, n.Name, last)
		}
		last = n.Name
		path := strings.TrimPrefix(dir+"/"+n.Name, "/")
		if n.Dir {
			all = append(all, names(t, s, path)...)
			continue
		}
		r, err := s.Resolve(path)
		if err != nil || r.Entry != n.Entry {
			t.Fatalf("resolve %s: got %+v %v, want %+v", path, r, err, n)
		}
		all = append(all, path)
	}
	return all
}

// checkDigest compares the digests, which are kept, with new ones.
func checkDigest(t testing.TB, s *Store) {
	t.Helper()
	kept, err := s.Digest("")
	if err != nil {
		t.Fatal(err)
	}
	s.digests.mu.Lock()
	s.digests.root, s.digests.subs = nil, [256]*subDigests{}
	s.digests.mu.Unlock()
	if made, err := s.Digest(""); err != nil || made != kept || kept.Count != s.Count() {
		t.Fatalf("digest: got %x of %d %v, made anew %x of %d", kept.Sum, kept.Count, err, made.Sum, made.Count)
	}
}

func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	opt := Options{NoSync: true, Frame: 2000, Segment: 30000, Pending: 50}
	s := open(t, dir, opt)
	m := newModel()
	rounds := 200
	if raceEnabled || testing.Short() {
		rounds = 80
		t.Logf("%d of 200 rounds", rounds)
	}
	for i := range rounds {
		m.mutate(t, r, s, 60)
		switch r.IntN(20) {
		case 0:
			if err := s.flush(); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := s.Compact(ctx); err != nil {
				t.Fatal(err)
			}
		case 2:
			shut(t, s)
			if r.IntN(3) == 0 {
				if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
					t.Fatal(err)
				}
			}
			s = open(t, dir, opt)
		}
		if i%20 == 0 {
			m.check(t, s, uint64(r.Int64N(int64(m.seq)+1)))
		}
	}
	m.check(t, s, 0)
	shut(t, s)
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opt)
	m.check(t, s, 0)
	shut(t, s)
}

func TestSecondOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if _, err := Open(dir, quiet(), Options{}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("second open: got %v, want EBUSY", err)
	}
	shut(t, s)
	shut(t, open(t, dir, Options{}))
}
