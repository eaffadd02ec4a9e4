package block

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestInverter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	want := make(map[string][]uint32)
	v := newInverter()
	unit := uint32(0)
	for range 60_000 {
		unit += rng.Uint32N(3) * rng.Uint32N(1<<rng.IntN(14))
		term := fmt.Sprint("t", rng.Uint32N(1<<rng.IntN(13)))
		v.add([]byte(term), unit)
		if l := want[term]; len(l) == 0 || l[len(l)-1] != unit {
			want[term] = append(l, unit)
		}
	}
	last := ""
	for _, n := range v.sorted() {
		e := &v.entries[n]
		term := string(v.text(e))
		if term <= last {
			t.Fatalf("got term %q after %q", term, last)
		}
		last = term
		if got := v.units(e, nil); !slices.Equal(got, want[term]) || int(e.count) != len(got) {
			t.Fatalf("term %s: got %d units %v, want %v", term, e.count, got, want[term])
		}
		delete(want, term)
	}
	if len(want) > 0 {
		t.Errorf("got no entry for %d terms", len(want))
	}
}
