package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harvest/index/dict"
	"harvest/index/posting"
)

// read reads all of a segment in every way there is.
func (s *segment) readAll() error {
	if err := s.ready(); err != nil {
		return err
	}
	for d := range s.docs {
		if found, ok := s.find(s.id(d)); !ok || found >= s.docs {
			return corrupt(s.path, "document %d is not found", d)
		}
		s.length(d)
		s.norm(d)
	}
	s.doubles()
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
		return corrupt(s.path, "%q", term)
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
			return corrupt(s.path, "%v", err)
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
		if class := errors.Is(err, ErrCorrupt) || name == manifestName && errors.Is(err, ErrSettings); !class || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, %s: got %v, want %v and the name", name, what, err, ErrCorrupt)
		}
		must(t, os.WriteFile(path, whole[name], 0o666))
	}
	for name, b := range whole {
		for _, d := range damages(t, name, filepath.Join(dir, name), b, r) {
			try(name, d.what, d.bytes)
		}
		must(t, os.Remove(filepath.Join(dir, name)))
		if err := look(dir); name != manifestName && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name)) {
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
func damages(t *testing.T, name, path string, b []byte, r random) (out []damaged) {
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
	if name == manifestName {
		for at := range b {
			flip("manifest", at)
		}
		return out
	}
	s, err := openSegment(path, 0)
	must(t, err)
	parts := map[string]extent{"magic": {0, 16}}
	for sec, x := range s.sections {
		parts[section(sec).String()] = x
	}
	end := s.sections[secSums].at + s.sections[secSums].size
	parts["table"] = extent{end, uint64(len(b)) - end}
	for what, x := range parts {
		if x.size == 0 {
			continue
		}
		for _, at := range []uint64{x.at, x.at + x.size/2, x.at + x.size - 1} {
			flip(what, int(at))
		}
		c := slices.Clone(b)
		if clear(c[x.at : x.at+x.size]); !bytes.Equal(b, c) {
			out = append(out, damaged{what + " zeroed", c})
		}
		out = append(out, damaged{what + " cut away", slices.Concat(b[:x.at], b[x.at+x.size:])}, damaged{what + " cut", b[:x.at+x.size/2]})
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
		if name == manifestName {
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

// seal gives a segment the sums that its bytes have, so that what reads them
// must take them as they are.
func seal(b []byte) bool {
	n := len(b)
	if n < len(segmentMagic)+tailSize+4 {
		return false
	}
	copy(b, segmentMagic)
	copy(b[n-len(segmentEnd):], segmentEnd)
	le := binary.LittleEndian
	size := uint64(le.Uint32(b[n-tailSize:]))
	if size+uint64(tailSize+len(segmentMagic)+4) > uint64(n) {
		return false
	}
	body := n - tailSize - int(size)
	le.PutUint32(b[n-tailSize+4:], crc32.Checksum(b[body:n-tailSize], castagnoli()))
	var t table
	if !t.read(b[body:n-tailSize]) || !t.holds(uint64(body)) {
		return true
	}
	x := t.sections[secSums]
	if x.at+x.size+4 != uint64(body) {
		return true
	}
	sums := b[x.at : x.at+x.size]
	i := 0
	for sec := range secSums {
		all := b[t.sections[sec].at:][:t.sections[sec].size]
		for c := range slices.Chunk(all, chunkSize) {
			le.PutUint32(sums[4*i:], crc32.Checksum(c, castagnoli()))
			i++
		}
	}
	le.PutUint32(b[body-4:], crc32.Checksum(sums, castagnoli()))
	return true
}

// sealedManifest is b with the checksum that it has.
func sealedManifest(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	b = slices.Clone(b)
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli()))
	return b
}
