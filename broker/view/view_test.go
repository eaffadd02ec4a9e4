package view

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"harvest/index"
)

func open(t testing.TB, path string) *Views {
	t.Helper()
	v, err := Open(path, Manner{}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func id(n int) index.ID { return index.ID{15: byte(n), 14: byte(n >> 8), 0: byte(n * 7)} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A model is what views have to be: who matches what, and what was done by hand.
type model struct {
	docs    map[index.ID][]index.Field
	queries map[string]string
	hand    map[string]map[index.ID]Op
}

func newModel() *model {
	return &model{make(map[index.ID][]index.Field), make(map[string]string), make(map[string]map[index.ID]Op)}
}

func (m *model) matches(t testing.TB, name string, doc index.ID) bool {
	text := m.queries[name]
	if text == "" {
		return false
	}
	c, err := index.Compile(parse(t, text), index.Options{})
	must(t, err)
	return c.Match(m.docs[doc])
}

// members are those that a view has to have.
func (m *model) members(t testing.TB, name string) (list []index.ID) {
	var inside []index.ID
	i := strings.LastIndexByte(name, '/')
	if i >= 0 {
		inside = m.members(t, name[:i])
	}
	for doc := range m.docs {
		hand := m.hand[name][doc]
		in := hand == Joined || hand != Left && m.matches(t, name, doc)
		if in && (i < 0 || slices.Contains(inside, doc)) {
			list = append(list, doc)
		}
	}
	return sorted(list)
}

func sorted(list []index.ID) []index.ID {
	slices.SortFunc(list, func(a, b index.ID) int { return slices.Compare(a[:], b[:]) })
	return list
}

// fill answers the queries of views as an index would.
func (m *model) fill(t testing.TB, v *Views, views []View, told func([]Event)) {
	t.Helper()
	for _, w := range views {
		var docs []index.ID
		for doc := range m.docs {
			if m.matches(t, w.Name, doc) {
				docs = append(docs, doc)
			}
		}
		must(t, v.Fill(context.Background(), w.Name, docs, told))
	}
}

// A follower knows a view by its events and by its log alone.
type follower struct {
	byEvents, byLog map[index.ID]bool
	seq             uint64
}

func (f *follower) read(t testing.TB, v *Views, name string) {
	for {
		list, err := v.Since(name, f.seq, 3)
		must(t, err)
		if len(list) == 0 {
			return
		}
		for _, r := range list {
			f.seq = r.Seq
			if r.Op == Left {
				delete(f.byLog, r.ID)
			} else {
				f.byLog[r.ID] = true
			}
		}
	}
}

// Whatever is done, views are what the model says, by every way to know them, and
// so after they are opened again.
func TestViewsFollow(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	path := filepath.Join(t.TempDir(), "views.db")
	v, err := Open(path, Manner{}, "", nil)
	must(t, err)
	defer func() { v.Close() }()
	m := newModel()
	names := []string{"a", "b", "a/c", "a/c/d", "e"}
	follow := make(map[string]*follower)
	for _, n := range names {
		_, err := v.Make(n, "owner")
		must(t, err)
		m.hand[n] = make(map[index.ID]Op)
		follow[n] = &follower{make(map[index.ID]bool), make(map[index.ID]bool), 0}
	}
	told := func(events []Event) {
		for _, e := range events {
			had := follow[e.View].byEvents[e.ID]
			if had != (e.Op != Joined) {
				t.Errorf("view %s: %x %v, and it was %v", e.View, e.ID, e.Op, had)
			}
			follow[e.View].byEvents[e.ID] = e.Op != Left
		}
	}
	random := func() index.ID { return id(r.IntN(40)) }
	for step := range 100 {
		switch name := names[r.IntN(len(names))]; r.IntN(8) {
		case 0:
			m.queries[name] = parse(t, randomQuery(r, r.IntN(3))).String()
			fill, err := v.SetQuery(name, parse(t, m.queries[name]))
			must(t, err)
			if r.IntN(3) > 0 {
				m.fill(t, v, fill, told)
			}
		case 1:
			doc, op := random(), []Op{Joined, Left, 0}[r.IntN(3)]
			if m.docs[doc] == nil {
				break
			}
			m.hand[name][doc] = op
			events, err := v.Edit(name, op, Change{doc, m.docs[doc]})
			must(t, err)
			told(events)
		case 2:
			must(t, v.Close())
			v, err = Open(path, Manner{}, "", nil)
			must(t, err)
			if mark, err := v.Mark(); err != nil || mark != fmt.Sprint(step-1) && mark != "" && step == 0 {
				t.Errorf("got mark %q %v", mark, err)
			}
		default:
			changes := make(map[index.ID]Change)
			for range r.IntN(6) {
				doc := random()
				ch := Change{ID: doc}
				delete(m.docs, doc)
				if r.IntN(4) > 0 {
					ch.Fields = fields("title", randomText(r), "text", randomText(r), "size", fmt.Sprint(r.IntN(100)))
					m.docs[doc] = ch.Fields
				}
				changes[doc] = ch
			}
			for range 1 + r.IntN(2) { // once more does no harm
				events, err := v.Apply(fmt.Sprint(step), slices.Collect(maps.Values(changes)))
				must(t, err)
				told(events)
			}
		}
		m.fill(t, v, v.Unfilled(), told)
		for _, n := range names {
			check(t, v, m, n, follow[n])
		}
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
}

func check(t *testing.T, v *Views, m *model, name string, f *follower) {
	t.Helper()
	want := m.members(t, name)
	w, err := v.Get(name)
	must(t, err)
	after, err := v.After(name, index.ID{}, 1000)
	must(t, err)
	newest, err := v.Newest(name)
	must(t, err)
	f.read(t, v, name)
	for how, got := range map[string][]index.ID{
		"After": after, "Newest": sorted(newest), "events": keys(f.byEvents), "Since": keys(f.byLog),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("view %s by %s: got %x, want %x", name, how, got, want)
		}
	}
	if w.Members != len(want) || w.Seq != f.seq {
		t.Errorf("view %s: got %d members, last change %d, want %d, %d", name, w.Members, w.Seq, len(want), f.seq)
	}
	for n := range 40 {
		if has, err := v.Has(name, id(n)); err != nil || has != slices.Contains(want, id(n)) {
			t.Errorf("view %s: got %v %v of %x", name, has, err, id(n))
		}
	}
}

func keys(m map[index.ID]bool) (list []index.ID) {
	for k, yes := range m {
		if yes {
			list = append(list, k)
		}
	}
	return sorted(list)
}

func TestNames(t *testing.T) {
	v := open(t, filepath.Join(t.TempDir(), "views.db"))
	if _, err := v.Make("x/y", ""); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want no such view as x", err)
	}
	for _, n := range []string{"x", "x/y", "xx"} {
		_, err := v.Make(n, "me")
		must(t, err)
	}
	if _, err := v.Make("x", ""); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	if err := v.Remove("x"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("got %v, want that y is in it", err)
	}
	var names []string
	for _, w := range append(v.Inside(""), v.Inside("x")...) {
		names = append(names, w.Name)
	}
	if want := []string{"x", "xx", "x/y"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	must(t, v.Remove("x/y"))
	must(t, v.Remove("x"))
	if _, err := v.SetQuery("x", parse(t, "a")); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want that it is gone", err)
	}
}

// A view that is removed leaves nothing, also when it is not removed to the end.
func TestRemoveLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "views.db")
	v, err := Open(path, Manner{}, "", nil)
	must(t, err)
	for _, n := range []string{"a", "b"} {
		_, err := v.Make(n, "")
		must(t, err)
		_, err = v.SetQuery(n, parse(t, "fuse"))
		must(t, err)
	}
	_, err = v.Apply("1", []Change{{id(1), fields("text", "fuse")}, {id(2), fields("text", "fuse")}})
	must(t, err)
	_, err = v.Edit("a", Left, Change{id(1), fields("text", "fuse")})
	must(t, err)
	must(t, v.Remove("a"))
	must(t, v.Close())
	v = open(t, path)
	_, err = v.Apply("2", []Change{{ID: id(1)}})
	must(t, err)
	if err := v.db.View(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{bucketCounts, bucketMembers, bucketLeft, bucketLog, bucketEdits} {
			n := 0
			tx.Bucket(bucket).ForEach(func(k, _ []byte) error { n++; return nil })
			if want := map[string]int{"counts": 1, "members": 1, "left": 1, "log": 2}[string(bucket)]; n != want {
				t.Errorf("%s: got %d entries, want %d", bucket, n, want)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A log forgets who left, and says so.
func TestLogForgets(t *testing.T) {
	v := open(t, filepath.Join(t.TempDir(), "views.db"))
	_, err := v.Make("a", "")
	must(t, err)
	_, err = v.SetQuery("a", parse(t, "fuse"))
	must(t, err)
	apply := func(mark string, from, to int, text string) {
		var changes []Change
		for n := from; n < to; n++ {
			ch := Change{ID: index.ID{0: byte(n >> 16), 1: byte(n >> 8), 2: byte(n)}}
			if text != "" {
				ch.Fields = fields("text", text)
			}
			changes = append(changes, ch)
		}
		_, err := v.Apply(mark, changes)
		must(t, err)
	}
	apply("1", 0, manyLeft+10, "fuse")
	w, err := v.Get("a")
	must(t, err)
	apply("2", 0, manyLeft+5, "")
	if _, err := v.Since("a", w.Seq, 1); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want that it is forgotten", err)
	}
	if _, err := v.Since("a", 1<<40, 1); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want that it never was", err)
	}
	list, err := v.Since("a", 0, 100)
	if err != nil || len(list) != 5 {
		t.Errorf("got %d %v, want the 5 that are left", len(list), err)
	}
	now, err := v.Get("a")
	must(t, err)
	if _, err := v.Since("a", now.Seq, 1); err != nil {
		t.Errorf("the last: %v", err)
	}
	var left int
	must(t, v.db.View(func(tx *bbolt.Tx) error { left = int(getCounts(tx, w.ID).left); return nil }))
	if left != manyLeft/2 {
		t.Errorf("got %d that left, want %d", left, manyLeft/2)
	}
}

func TestOtherVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "views.db")
	v, err := Open(path, Manner{}, "", nil)
	must(t, err)
	must(t, v.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyVersion, []byte{9}) }))
	must(t, v.Close())
	if _, err := Open(path, Manner{}, "", nil); !errors.Is(err, iofs.ErrInvalid) || !strings.Contains(err.Error(), "version") {
		t.Errorf("got %v, want a word on its version", err)
	}
}
