package posting

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzReader reads anything as a list, in every way. It must end, in order and
// below the limit, or with an error. The bytes are cut to their capacity, so
// that a read beyond them panics.
func FuzzReader(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2)) // the same in each process
	for _, n := range []int{1, 3, 8, 100, 128, 129, 700} {
		l := randomList(rnd, n, 20)
		for _, k := range []Kind{Docs, Freqs, Positions} {
			c := l.encode(k, nil)
			f.Add(byte(k), c.docs, c.pos, c.count, l.limit())
		}
	}
	var r Reader
	var e Encoder
	f.Fuzz(func(t *testing.T, kind byte, docs, pos []byte, count int, limit uint32) {
		c := coded{Kind(kind % 3), docs[:len(docs):len(docs)], pos[:len(pos):len(pos)], count, limit}
		walk(t, &r, c)
		leap(t, &r, c)
		c.reset(&r)
		e.Reset(c.kind, nil)
		if err := e.Merge(&r, nil, 0); err == nil {
			end(&e, c.kind, limit, nil)
		}
		if n := r.ResetOne(c.kind, docs, limit); n > len(docs) || n != LenOne(c.kind, docs) {
			t.Fatalf("one: got length %d of %d", n, len(docs))
		}
		if d := r.Next(); d != End && d >= limit {
			t.Fatalf("one: got document %d of %d", d, limit)
		}
		r.Positions(nil)
	})
}

// TestDamage does what FuzzReader does with a byte changed, or the bytes cut
// off, or a smaller limit. Of a list that is cut it wants an error.
func TestDamage(t *testing.T) {
	rnd := source(t)
	var r Reader
	var e Encoder
	read := func(c coded) {
		walk(t, &r, c)
		leap(t, &r, c)
		c.reset(&r)
		e.Reset(c.kind, nil)
		if e.Merge(&r, nil, 0) == nil {
			e.Finish()
		}
	}
	for _, n := range []int{1, 5, 50, 200, 1200} {
		for _, k := range []Kind{Docs, Freqs, Positions} {
			c := randomList(rnd, n, 1<<rnd.IntN(20)).encode(k, nil)
			c.limit += 5
			for range 300 {
				bad := c
				bad.docs, bad.pos = damage(rnd, c.docs), damage(rnd, c.pos)
				if rnd.IntN(3) == 0 {
					bad.limit = rnd.Uint32N(c.limit)
				}
				read(bad)
			}
			bad := c
			bad.docs = c.docs[: len(c.docs)-1 : len(c.docs)-1]
			if walk(t, &r, bad); !errors.Is(r.Err(), ErrDamaged) {
				t.Errorf("%d documents of kind %d, cut: got %v, want %v", n, k, r.Err(), ErrDamaged)
			}
		}
	}
}

// damage gives b with a few bytes different, or shorter.
func damage(rnd *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	if len(b) == 0 {
		return b
	}
	switch rnd.IntN(4) {
	case 0:
		b = b[:rnd.IntN(len(b))]
	case 1:
		at := rnd.IntN(min(len(b), 200)) // in the table
		b[at] = byte(rnd.Uint32())
	default:
		for range 1 + rnd.IntN(3) {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
	}
	return b[:len(b):len(b)]
}

// TestOutOfOrder wants blocks that overlap to be found, also by a merge that
// copies the first.
func TestOutOfOrder(t *testing.T) {
	var e Encoder
	e.Reset(Docs, nil)
	for d := range uint32(2 * BlockSize) {
		e.AddFreq(3*d, 1)
	}
	c := end(&e, Docs, 1<<20, nil)
	var r Reader
	c.reset(&r)
	c.docs[len(c.docs)-len(r.run)-len(r.begins)-4] -= 64 // the second block's last
	c.reset(&r)
	e.Reset(Docs, nil)
	if err := e.Merge(&r, nil, 0); !errors.Is(err, ErrDamaged) && e.Count() == 2*BlockSize {
		c = end(&e, Docs, 1<<20, nil)
	}
	if walk(t, &r, c); !errors.Is(r.Err(), ErrDamaged) {
		t.Errorf("got %v, want %v", r.Err(), ErrDamaged)
	}
}

// walk reads all of c.
func walk(t *testing.T, r *Reader, c coded) {
	c.reset(r)
	checkImpacts(t, r, 0)
	next, read := uint32(0), 0
	var buf []uint32
	for d := r.Next(); d != End; d = r.Next() {
		if d < next || d >= c.limit {
			t.Fatalf("got document %d after %d of %d", d, next, c.limit)
		}
		next = d + 1
		r.Freq()
		buf = r.Positions(buf[:0])
		// each byte can stand for as many as a vector has
		if read += len(buf); read > (len(c.pos)+1)*BlockSize {
			t.Fatalf("got %d positions from %d bytes", read, len(c.pos))
		}
	}
	if r.Next() != End {
		t.Fatal("goes on after the end")
	}
}

// leap reads some of c.
func leap(t *testing.T, r *Reader, c coded) {
	c.reset(r)
	next := uint32(0)
	for target, step := uint32(0), uint32(1); target < c.limit; step = step*5/4 + 1 {
		checkImpacts(t, r, target)
		d := r.Advance(target)
		if d == End {
			break
		}
		if d < next || d < target || d >= c.limit {
			t.Fatalf("got document %d after %d from %d of %d", d, next, target, c.limit)
		}
		next = d
		if step%2 == 0 {
			r.Freq()
		}
		if step%3 == 0 {
			r.Positions(nil)
		}
		if d > ^uint32(0)-step {
			break
		}
		target = d + step
	}
}

func checkImpacts(t *testing.T, r *Reader, target uint32) {
	if last, impacts := r.Shallow(target); last != End && len(impacts) == 0 {
		t.Fatalf("%d: no impacts up to %d", target, last)
	}
	r.MaxImpacts()
}

// TestComeRound has gaps that go below 0 and come round to where they were.
func TestComeRound(t *testing.T) {
	gaps := []uint32{0, 0, 0, 0, 0, 1<<31 - 1, 1<<31 - 1}
	docs := appendVector([]byte{200, 1}, gaps) // last document 100
	docs = appendVector(docs, make([]uint32, 8))
	var r Reader
	if walk(t, &r, coded{Freqs, docs, nil, 8, 1 << 31}); !errors.Is(r.Err(), ErrDamaged) {
		t.Errorf("got %v, want %v", r.Err(), ErrDamaged)
	}
}
