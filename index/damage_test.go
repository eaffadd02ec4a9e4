package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harvest/index/dict"
	"harvest/index/posting"
	"harvest/index/segfile"
	"harvest/index/segfiletest"
)

// read reads all of a segment in every way there is.
func (s *segment) readAll() error {
	if err := s.ready(); err != nil {
		return err
	}
	for d := range s.docs {
		if found, ok := s.names.Find(s.id(d)); !ok || found >= s.docs {
			return s.Corrupt("document %d is not found", d)
		}
		s.length(d)
		s.norm(d)
	}
	s.names.Doubles()
	keys, err := s.keys()
	if err != nil {
		return err
	}
	for _, d := range []*dict.Dict{s.terms(), keys} {
		for c := d.Cursor(); c.Next(); {
			if err := s.readTerm(c.Term(), c.Value()); err != nil {
				return err
			}
		}
	}
	for f := range s.fields {
		c, err := s.column(f)
		if err != nil {
			return err
		}
		for d := range s.docs {
			if ord, ok := c.ord(d); ok {
				keys.At(ord, nil)
			}
		}
	}
	return nil
}

// readTerm reads the lists of a term.
func (s *segment) readTerm(term, value []byte) error {
	var t termInfo
	var r posting.Reader
	s.lookup(term, &t)
	if !s.decode(value, &t) {
		return s.Corrupt("%q", term)
	}
	for i := range t.lists {
		if err := s.open(&t.lists[i], &r, true); err != nil {
			return err
		}
		for d := r.Next(); d != posting.End; d = r.Next() {
			s.norm(d)
			r.Freq()
			r.Positions(nil)
		}
		if err := r.Err(); err != nil {
			return s.Corrupt("%v", err)
		}
	}
	return nil
}

// someIndex makes an index of several segments, one of them merged, with
// documents gone.
func someIndex(t testing.TB, dir string) map[ID]Doc {
	t.Helper()
	r := random{rand.New(rand.NewPCG(1, 2))}
	e, err := openEngine(dir, Settings{Workers: 1})
	must(t, err)
	docs := make(map[ID]Doc)
	apply := func(n int, deletes ...ID) {
		var puts []Doc
		for range n {
			d := r.doc(r.id(100))
			puts = append(puts, d)
		}
		must(t, e.Apply(context.Background(), Docs(puts), deletes, "mark"))
		for _, id := range deletes {
			delete(docs, id)
		}
		for _, d := range puts {
			docs[d.ID] = d
		}
	}
	apply(150)
	apply(12)
	apply(5, slices.SortedFunc(maps.Keys(docs), func(a, b ID) int { return bytes.Compare(a[:], b[:]) })[:3]...)
	must(t, e.Close())
	return docs
}

// contents are the names and contents of a directory's.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	all := make(map[string][]byte)
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		all[f.Name()] = b
	}
	return all
}

// look opens an index and reads all of it, and gives the error of either. Who
// reads without a check must get along as well.
func look(dir string) error {
	e, err := openEngine(dir, Settings{Workers: 1})
	if err != nil {
		return err
	}
	defer e.Close()
	err = e.Check(context.Background())
	v := e.cur.Load()
	for i := range v.parts {
		if other := v.parts[i].readAll(); other != nil && !errors.Is(other, ErrCorrupt) {
			return fmt.Errorf("read: %w", other)
		}
	}
	return err
}

// TestDamage changes an index in all sorts of places and wants every change to
// be found, with the name of the file.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	someIndex(t, dir)
	whole := contents(t, dir)
	if len(whole) < 4 {
		t.Fatalf("got files %v, want a manifest and three segments", slices.Collect(maps.Keys(whole)))
	}
	r := newRandom(t)
	try := func(name, what string, b []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, b, 0o666))
		err := look(dir)
		if class := errors.Is(err, ErrCorrupt) || name == segfile.ManifestName && errors.Is(err, ErrSettings); !class || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, %s: got %v, want %v and the name", name, what, err, ErrCorrupt)
		}
		must(t, os.WriteFile(path, whole[name], 0o666))
	}
	for name, b := range whole {
		for _, d := range damages(name, b, r) {
			try(name, d.what, d.bytes)
		}
		must(t, os.Remove(filepath.Join(dir, name)))
		if err := look(dir); name != segfile.ManifestName && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s is not there: got %v, want %v", name, err, ErrCorrupt)
		}
		for name, b := range whole {
			must(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
		}
	}
	names := slices.Sorted(maps.Keys(whole))
	try(names[1], "another segment", whole[names[2]])
	if err := look(dir); err != nil {
		t.Errorf("whole again: got %v", err)
	}
}

type damaged struct {
	what  string
	bytes []byte
}

// damages are those that a file is tried with: of a segment each section
// flipped, cut and zeroed, and bytes anywhere.
func damages(name string, b []byte, r random) (out []damaged) {
	flip := func(what string, at int) {
		c := slices.Clone(b)
		c[at] ^= 1 << r.IntN(8)
		out = append(out, damaged{fmt.Sprintf("%s: byte %d flipped", what, at), c})
	}
	for range 20 {
		flip("somewhere", r.IntN(len(b)))
	}
	for _, n := range []int{0, 1, len(b) / 2, len(b) - 1} {
		out = append(out, damaged{fmt.Sprintf("cut to %d", n), b[:n]})
	}
	out = append(out, damaged{"longer", append(slices.Clone(b), 0)})
	if name == segfile.ManifestName {
		for at := range b {
			flip("manifest", at)
		}
		return out
	}
	parts := segfiletest.Extents(b, layout())
	for what, x := range parts {
		if x.From == x.To {
			continue
		}
		mid := (x.From + x.To) / 2
		for _, at := range []int{x.From, mid, x.To - 1} {
			flip(what, at)
		}
		c := slices.Clone(b)
		if clear(c[x.From:x.To]); !bytes.Equal(b, c) {
			out = append(out, damaged{what + " zeroed", c})
		}
		out = append(out, damaged{what + " cut away", slices.Concat(b[:x.From], b[x.To:])}, damaged{what + " cut", b[:mid]})
	}
	return out
}

// TestApplyToDamage applies and merges where a segment is damaged: that is an
// error or does not matter, and what is there is not replaced by less.
func TestApplyToDamage(t *testing.T) {
	r := newRandom(t)
	dir := t.TempDir()
	someIndex(t, dir)
	whole := contents(t, dir)
	for name, b := range whole {
		if name == segfile.ManifestName {
			continue
		}
		for range 5 {
			for name, b := range whole {
				must(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
			}
			c := slices.Clone(b)
			at := r.IntN(len(c))
			c[at] ^= 0x10
			must(t, os.WriteFile(filepath.Join(dir, name), c, 0o666))
			e, err := openEngine(dir, Settings{Workers: 1})
			if errors.Is(err, ErrCorrupt) {
				continue
			}
			must(t, err)
			for i := range 10 {
				id := ID{byte(i)}
				err := e.Apply(context.Background(), Docs([]Doc{r.doc(id), r.doc(ID{1, 2, byte(i)})}), nil, "later")
				if err != nil && !errors.Is(err, ErrCorrupt) {
					t.Errorf("byte %d of %s: got %v, want %v or nothing", at, name, err, ErrCorrupt)
				}
			}
			must(t, e.Close())
			now, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && !bytes.Equal(now, c) {
				t.Errorf("%s was written to", name)
			}
			if err := look(dir); !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d of %s, after more was applied: got %v, want %v", at, name, err, ErrCorrupt)
			}
		}
		for old := range contents(t, dir) {
			must(t, os.Remove(filepath.Join(dir, old)))
		}
	}
}

// A merge that meets a damaged segment says so to who listens, and one that goes
// well that it did.
func TestMergedHears(t *testing.T) {
	dir := t.TempDir()
	heard := make(chan error, 10)
	open := func() *engine {
		t.Helper()
		e, err := openEngine(dir, Settings{Workers: 1, Merged: func(err error) { heard <- err }})
		must(t, err)
		return e
	}
	e := open()
	add := func(n int) {
		t.Helper()
		for i := range n {
			var docs []Doc
			for k := range 20 {
				docs = append(docs, Doc{ID: ID{byte(n), byte(i), byte(k)}, Fields: []Field{{"body", "words of all"}}})
			}
			must(t, e.Apply(context.Background(), Docs(docs), nil, "m"))
		}
	}
	add(8)
	if err := <-heard; err != nil {
		t.Errorf("got %v, want nothing of a good merge", err)
	}
	add(3)
	must(t, e.Close())
	for name, b := range contents(t, dir) {
		if name != segfile.ManifestName {
			x := segfiletest.Extents(b, layout())["postings"]
			b[x.From] ^= 1
			must(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
		}
	}
	e = open()
	defer func() { e.Close() }()
	add(7)
	if err := <-heard; !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want %v", err, ErrCorrupt)
	}
}
