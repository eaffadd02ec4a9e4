package block

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type list struct {
		lo, hi uint32
		a      []uint32
	}
	var lists []list
	var w bitWriter
	for range 2000 {
		l := list{lo: rng.Uint32N(10)}
		l.hi = l.lo + rng.Uint32N(1<<rng.IntN(20)+1)
		if rng.IntN(50) == 0 {
			l.lo, l.hi = 0, ^uint32(0)
		}
		some := make(map[uint32]bool)
		for range rng.IntN(100) {
			some[l.lo+uint32(rng.Uint64N(uint64(l.hi)-uint64(l.lo)+1))] = true
		}
		for v := range some {
			l.a = append(l.a, v)
		}
		slices.Sort(l.a)
		lists = append(lists, l)
		w.gamma(uint64(len(l.a) + 1))
		w.numbers(l.a, l.lo, l.hi)
	}
	w.align()
	r := bitReader{b: w.b}
	for _, l := range lists {
		got := make([]uint32, r.gamma()-1)
		r.numbers(got, l.lo, l.hi)
		if !slices.Equal(got, l.a) {
			t.Fatalf("from %d to %d: got %v, want %v", l.lo, l.hi, got, l.a)
		}
	}
	if r.over() || r.at+8 <= 8*uint64(len(w.b)) {
		t.Errorf("got bit %d behind the last number, want one of the last byte of %d", r.at, len(w.b))
	}
}

// Any bits read as ascending numbers in their bounds.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255}, uint32(3), uint32(9))
	f.Fuzz(func(t *testing.T, b []byte, n, hi uint32) {
		n = min(n%1000, hi)
		r := bitReader{b: b}
		a := make([]uint32, n)
		r.numbers(a, 0, hi)
		for i, v := range a {
			if v > hi || i > 0 && v <= a[i-1] {
				t.Fatalf("got %v of 0 to %d", a, hi)
			}
		}
	})
}

func TestSetRange(t *testing.T) {
	for from := range uint32(140) {
		for to := range uint32(140) {
			s, want := newSet(140), newSet(140)
			s.addRange(from, to)
			for d := from; d < to; d++ {
				want.add(d)
			}
			if !slices.Equal(s, want) {
				t.Fatalf("from %d to %d: got %x, want %x", from, to, s, want)
			}
		}
	}
}
