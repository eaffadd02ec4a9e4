package store

import (
	"fmt"
	"testing"

	"harvest/gather/soif"
)

func TestFilter(t *testing.T) {
	var none *filter
	if none.lacks(OID{}) {
		t.Error("no filter: got certain, want not")
	}
	f := newFilter(0)
	n := 0
	for ; f.room > 0; n++ {
		f.add(ID(fmt.Sprint(n), "g"))
	}
	vain := 0
	for i := range n {
		if f.lacks(ID(fmt.Sprint(i), "g")) {
			t.Fatalf("key %d of %d: got lacking, want there", i, n)
		}
		if !f.lacks(ID(fmt.Sprint(i), "other")) {
			vain++
		}
	}
	if n < filterKeys || vain*50 > n {
		t.Errorf("full with %d keys: found %d of as many others, want less than one in 50", n, vain)
	}
}

// TestKnown makes a store know what it has, and looks for each object in every
// state: from before the filter, after it, deleted, and after it was full.
func TestKnown(t *testing.T) {
	s := open(t, t.TempDir(), Options{Pending: 8, NoSync: true})
	defer shut(t, s)
	url := func(i int) string { return fmt.Sprintf("http://h/%d", i) }
	check := func(n int, gone bool) {
		t.Helper()
		for i := range n {
			r, ok, err := s.state(ID(url(i), "g"))
			if err != nil || !ok || r.gone != (gone && i%2 == 0) {
				t.Fatalf("object %d of %d: got %v %v %v", i, n, ok, r.gone, err)
			}
		}
		if r, ok, err := s.state(ID("http://h/none", "g")); ok || err != nil {
			t.Fatalf("none: got %v %v", r, err)
		}
	}
	load := func(from, to int) {
		t.Helper()
		var all []Change
		for i := from; i < to; i++ {
			all = append(all, update(url(i), "1"))
		}
		apply(t, s, all...)
	}
	entered := func(want bool) {
		t.Helper()
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		s.mu.RLock()
		defer s.mu.RUnlock()
		if got := s.filter != nil; got != want {
			t.Fatalf("knows what it has: got %v, want %v", got, want)
		}
	}
	load(0, 4)
	entered(false) // few may be all that come
	load(4, 40)
	entered(true)
	check(40, false)
	var gone []Change
	for i := 0; i < 40; i += 2 {
		gone = append(gone, Change{Op: soif.Delete, OID: ID(url(i), "g")})
	}
	apply(t, s, gone...)
	entered(true)
	check(40, true)
	s.mu.Lock()
	s.filter.room = 3
	s.mu.Unlock()
	load(40, 44)
	entered(false) // full
	load(44, 80)
	entered(true)
	for i := range 80 {
		_, err := s.Stat(ID(url(i), "g"))
		if gone := i < 40 && i%2 == 0; (err != nil) != gone {
			t.Errorf("object %d: got %v, want deleted %v", i, err, gone)
		}
	}
}
