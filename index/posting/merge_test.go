package posting

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMerge puts lists of random sizes one behind the other, with and without
// some of their documents, twice over, as segments are merged again.
func TestMerge(t *testing.T) {
	rnd := source(t)
	for range 20 {
		for _, k := range []Kind{Docs, Freqs, Positions} {
			level := []part{}
			for range 2 + rnd.IntN(5) {
				level = append(level, newPart(rnd, k))
			}
			half := len(level) / 2
			a, b := merged(t, rnd, k, level[:half]), merged(t, rnd, k, level[half:])
			merged(t, rnd, k, []part{a, b})
		}
	}
}

// A part is a list beside others, as one segment has it.
type part struct {
	list
	coded
	norms []byte
}

func newPart(rnd *rand.Rand, k Kind) part {
	all := sizes()
	l := randomList(rnd, all[rnd.IntN(len(all)-3)], rnd.IntN(20))
	limit := l.limit() + uint32(rnd.IntN(10))
	norms := randomNorms(rnd, limit)
	c := l.encode(k, norms)
	c.limit = limit
	return part{l, c, norms}
}

// merged merges parts, leaving out none, few or many documents of each, and
// checks the outcome.
func merged(t *testing.T, rnd *rand.Rand, k Kind, parts []part) (out part) {
	t.Helper()
	numbers, next := make([][]uint32, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		number := make([]uint32, p.coded.limit)
		every := []int{0, 3, 500, 3000}[rnd.IntN(4)]
		for d := range number {
			if number[d] = End; every == 0 || rnd.IntN(every) > 0 {
				number[d] = uint32(len(out.norms))
				out.norms = append(out.norms, p.norms[d])
			}
		}
		for _, x := range p.list {
			if d := number[x.doc]; d != End {
				out.list = append(out.list, posting{d, x.gaps})
			}
		}
		if next[i] = len(out.norms); every > 0 {
			numbers[i] = number
		}
	}
	var e Encoder
	var r Reader
	e.Reset(k, out.norms)
	shift := uint32(0)
	for i, p := range parts {
		p.coded.reset(&r)
		if err := e.Merge(&r, numbers[i], shift); err != nil {
			t.Fatal(err)
		}
		shift = uint32(next[i])
	}
	out.coded = end(&e, k, uint32(len(out.norms)), nil)
	out.list.check(t, rnd, &r, out.coded, out.norms)
	return out
}

// TestMergeCopies wants whole blocks to be copied: byte for byte the second
// half of the outcome is the list that was put there.
func TestMergeCopies(t *testing.T) {
	rnd := source(t)
	l := randomList(rnd, 128*20, 30)
	c := l.encode(Positions, randomNorms(rnd, l.limit()))
	var r Reader
	c.reset(&r)
	if r.starts == 0 {
		t.Fatal("the list has no table")
	}
	body := slices.Clone(r.run)
	var e Encoder
	e.Reset(Positions, nil)
	for range 3 {
		c.reset(&r)
		if err := e.Merge(&r, nil, e.next); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(e.body); got != string(slices.Concat(body, body, body)) {
		t.Error("the blocks are not those of the lists")
	}
	if got := string(e.pos); got != string(slices.Concat(c.pos, c.pos, c.pos)) {
		t.Error("the positions are not those of the lists")
	}
}

// TestMergeAgain merges many short lists, one after the other: blocks must not
// stay short.
func TestMergeAgain(t *testing.T) {
	rnd := source(t)
	var whole coded
	whole.kind = Freqs
	var r Reader
	for range 300 {
		l := randomList(rnd, 1+rnd.IntN(300), 30)
		c := l.encode(Freqs, nil)
		var e Encoder
		e.Reset(Freqs, nil)
		for _, c := range []coded{whole, c} {
			c.reset(&r)
			if err := e.Merge(&r, nil, e.next); err != nil {
				t.Fatal(err)
			}
		}
		whole = end(&e, Freqs, e.next, nil)
	}
	whole.reset(&r)
	if fill := whole.count / r.blocks; fill < 3*BlockSize/4 {
		t.Errorf("got %d documents a block, want at least %d", fill, 3*BlockSize/4)
	}
}
