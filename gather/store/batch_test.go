package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"harvest/gather/soif"
)

// TestBodies reads many objects at once, in any order, some of them changed,
// moved, twice in the list or gone.
func TestBodies(t *testing.T) {
	s := opened(t, Options{Segment: 64 << 10, Frame: 8 << 10})
	r := rand.New(rand.NewPCG(1, 2))
	want := make(map[OID][]byte)
	var oids []OID
	for round := range 3 {
		for i := range 200 {
			c := update(fmt.Sprintf("http://h/%d", i), fmt.Sprint(round, r.Perm(r.IntN(500))))
			if round == 0 {
				oids = append(oids, c.OID)
			}
			if round == 0 || r.IntN(3) == 0 {
				apply(t, s, c)
				want[c.OID] = c.Body
			}
		}
	}
	for _, oid := range oids[:50] {
		apply(t, s, Change{Op: soif.Delete, OID: oid})
		delete(want, oid)
	}
	ask := append([]OID{ID("http://none", "g"), oids[100]}, oids...)
	r.Shuffle(len(ask), func(i, j int) { ask[i], ask[j] = ask[j], ask[i] })
	check := func(when string) {
		t.Helper()
		seen := make(map[int]bool)
		err := s.Bodies(ctx, ask, func(i int, body []byte, err error) bool {
			if err != nil || !bytes.Equal(body, want[ask[i]]) || seen[i] {
				t.Errorf("%s: %d: got %d bytes, %v, want %d", when, i, len(body), err, len(want[ask[i]]))
			}
			seen[i] = true
			return true
		})
		if err != nil || len(seen) != len(want)+1 {
			t.Errorf("%s: got %d objects, %v, want %d", when, len(seen), err, len(want)+1)
		}
	}
	check("in memory")
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	n := 0
	if err := s.Bodies(ctx, ask, func(int, []byte, error) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("stopped: got %d objects, %v, want 3", n, err)
	}
}

// TestBodiesWhileCompacting reads while objects move.
func TestBodiesWhileCompacting(t *testing.T) {
	s := opened(t, Options{Segment: 16 << 10, Frame: 4 << 10})
	var oids []OID
	for i := range 300 {
		c := update(fmt.Sprintf("http://h/%d", i), fmt.Sprint(i))
		apply(t, s, c)
		if i%2 == 0 {
			apply(t, s, Change{Op: soif.Delete, OID: c.OID})
		} else {
			oids = append(oids, c.OID)
		}
	}
	n := 0
	err := s.Bodies(ctx, oids, func(_ int, _ []byte, err error) bool {
		if n++; n == 1 {
			err = errors.Join(err, s.Compact(ctx))
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
	if err != nil || n != len(oids) {
		t.Errorf("got %d objects, %v, want %d", n, err, len(oids))
	}
}
