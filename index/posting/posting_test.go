package posting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// A posting and a list of them as a test has it.
type posting struct {
	doc  uint32
	gaps []uint32
}

func (p posting) positions() (out []uint32) {
	var at uint32
	for _, g := range p.gaps {
		at += g
		out = append(out, at)
	}
	return out
}

type list []posting

// coded is a list as it is kept.
type coded struct {
	kind      Kind
	docs, pos []byte
	count     int
	limit     uint32
}

func (c coded) reset(r *Reader) { r.Reset(c.kind, c.docs, c.pos, c.count, c.limit) }

func (l list) limit() uint32 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].doc + 1
}

func (l list) addTo(e *Encoder, k Kind) {
	for _, p := range l {
		if k == Positions {
			e.Add(p.doc, p.gaps)
		} else {
			e.AddFreq(p.doc, uint32(len(p.gaps)))
		}
	}
}

// end takes what e made.
func end(e *Encoder, k Kind, limit uint32, pos []byte) coded {
	c := coded{kind: k, count: e.Count(), limit: limit}
	c.docs = slices.Clone(e.Finish())
	c.pos = append(pos, e.TakePositions()...)
	return c
}

func (l list) encode(k Kind, norms []byte) coded {
	var e Encoder
	e.Reset(k, norms)
	l.addTo(&e, k)
	return end(&e, k, l.limit(), nil)
}

func source(t testing.TB) *rand.Rand {
	a, b := rand.Uint64(), rand.Uint64()
	t.Logf("seed %d %d", a, b)
	return rand.New(rand.NewPCG(a, b))
}

// sizes of lists worth a look.
func sizes() []int {
	return []int{0, 1, 2, 7, 8, 9, 32, 33, 63, 64, 127, 128, 129, 255, 256, 257, 1000, 4096, 5000}
}

// randomList has n documents about gap apart.
func randomList(rnd *rand.Rand, n, gap int) list {
	l := make(list, n)
	next := uint32(rnd.IntN(gap + 1))
	often := 1 + rnd.IntN(6)
	for i := range l {
		l[i].doc = next
		next += 1 + uint32(rnd.IntN(gap+1))
		if rnd.IntN(50) == 0 {
			next += uint32(rnd.IntN(30 * (gap + 1)))
		}
		k := 1
		switch rnd.IntN(often) {
		case 0:
		case 1:
			k += rnd.IntN(3)
		default:
			k += rnd.IntN(20)
		}
		if rnd.IntN(300) == 0 {
			k = 1 + rnd.IntN(1000)
		}
		for range k {
			g := rnd.IntN(100)
			if rnd.IntN(20) == 0 {
				g = rnd.IntN(100_000)
			}
			l[i].gaps = append(l[i].gaps, uint32(g))
		}
	}
	return l
}

func randomNorms(rnd *rand.Rand, n uint32) []byte {
	norms := make([]byte, n)
	for i := range norms {
		norms[i] = byte(rnd.IntN(256))
	}
	return norms
}

// want compares where r stands with p.
func (p posting) want(t *testing.T, r *Reader, k Kind, where string) {
	t.Helper()
	if r.Doc() != p.doc {
		t.Fatalf("%s: got document %d, want %d (%v)", where, r.Doc(), p.doc, r.Err())
	}
	freq := uint32(len(p.gaps))
	if k == Docs {
		freq = 1
	}
	if got := r.Freq(); got != freq {
		t.Fatalf("%s: document %d: got frequency %d, want %d", where, p.doc, got, freq)
	}
	var want []uint32
	if k == Positions {
		want = p.positions()
	}
	if got := r.Positions([]uint32{7}); got[0] != 7 || !slices.Equal(got[1:], want) {
		t.Fatalf("%s: document %d: got positions %v, want %v", where, p.doc, got, want)
	}
}

// check reads c in every way and compares it with l.
func (l list) check(t *testing.T, rnd *rand.Rand, r *Reader, c coded, norms []byte) {
	t.Helper()
	if c.count != len(l) {
		t.Fatalf("got %d documents, want %d", c.count, len(l))
	}
	c.reset(r)
	for i, p := range l {
		r.Next()
		p.want(t, r, c.kind, fmt.Sprintf("Next %d", i))
	}
	for range 2 {
		if d := r.Next(); d != End || r.Doc() != End || r.Err() != nil {
			t.Fatalf("after the last: got %d, %d, %v, want the end", d, r.Doc(), r.Err())
		}
	}
	l.checkBlocks(t, r, c)
	for _, stride := range []int{1, 4, 60, 1000} {
		l.checkAdvance(t, rnd, r, c, stride, norms)
	}
}

func (l list) checkBlocks(t *testing.T, r *Reader, c coded) {
	t.Helper()
	c.reset(r)
	i := 0
	for d := r.NextBlock(); d != End; d = r.NextBlock() {
		docs, freqs := r.Block()
		if len(docs) == 0 || len(docs) != len(freqs) {
			t.Fatalf("Block %d: got %d documents and %d frequencies", i, len(docs), len(freqs))
		}
		for k := range docs {
			p := l[i]
			if c.kind == Docs {
				p.gaps = []uint32{1}
			}
			if docs[k] != p.doc || int(freqs[k]) != len(p.gaps) {
				t.Fatalf("Block: got document %d %d times, want %d %d times", docs[k], freqs[k], p.doc, len(p.gaps))
			}
			i++
		}
	}
	if i != len(l) || r.Err() != nil {
		t.Fatalf("blocks: got %d documents, want %d (%v)", i, len(l), r.Err())
	}
}

// from is the first of l not below target.
func (l list) from(target uint32) int {
	return sort.Search(len(l), func(i int) bool { return l[i].doc >= target })
}

func (l list) checkAdvance(t *testing.T, rnd *rand.Rand, r *Reader, c coded, stride int, norms []byte) {
	t.Helper()
	c.reset(r)
	var target uint32
	for {
		i := l.from(target)
		if rnd.IntN(stride) > 20 || rnd.IntN(len(l)/10+1) == 0 {
			l.checkShallow(t, r, c, target, norms)
		}
		if got := r.Advance(target); i == len(l) {
			if got != End || r.Err() != nil {
				t.Fatalf("Advance(%d): got %d, %v, want the end", target, got, r.Err())
			}
			return
		}
		if rnd.IntN(3) > 0 {
			l[i].want(t, r, c.kind, fmt.Sprintf("Advance(%d)", target))
		}
		if rnd.IntN(4) == 0 {
			r.Advance(target / 2) // stays
			l[i].want(t, r, c.kind, "stay")
		}
		if i+1 < len(l) && rnd.IntN(3) == 0 {
			i++
			r.Next()
			l[i].want(t, r, c.kind, "Next after Advance")
		}
		j := i + 1 + rnd.IntN(stride)
		if target = l[i].doc + 1; j < len(l) {
			target = l[j].doc - uint32(rnd.IntN(int(l[j].doc-l[j-1].doc)))
		} else if rnd.IntN(2) == 0 {
			target = c.limit
		}
	}
}

// checkShallow wants impacts that hold for all they are about.
func (l list) checkShallow(t *testing.T, r *Reader, c coded, target uint32, norms []byte) {
	t.Helper()
	doc := r.Doc()
	last, impacts := r.Shallow(target)
	switch i := l.from(target); {
	case i == len(l):
		if last != End || len(impacts) != 0 {
			t.Fatalf("Shallow(%d): got %d, %v, want the end", target, last, impacts)
		}
	case last < l[i].doc:
		t.Fatalf("Shallow(%d): got last %d, want at least %d", target, last, l[i].doc)
	default:
		for ; i < len(l) && l[i].doc <= last; i++ {
			l[i].covered(t, "Shallow", c.kind, impacts, norms)
		}
	}
	for _, p := range l[min(len(l), 50):min(len(l), 60)] {
		p.covered(t, "MaxImpacts", c.kind, r.MaxImpacts(), norms)
	}
	if r.Doc() != doc {
		t.Fatalf("Shallow(%d) moved from %d to %d", target, doc, r.Doc())
	}
}

func (p posting) covered(t *testing.T, name string, k Kind, impacts []Impact, norms []byte) {
	t.Helper()
	freq, norm := uint32(len(p.gaps)), byte(255)
	if k == Docs {
		freq = 1
	}
	if norms != nil {
		norm = norms[p.doc]
	}
	for _, im := range impacts {
		if im.Freq >= freq && im.Norm <= norm {
			return
		}
	}
	t.Fatalf("%s: document %d, frequency %d, norm %d is beyond %v", name, p.doc, freq, norm, impacts)
}

// TestExample reads the example of reader.go.
func TestExample(t *testing.T) {
	l := list{{4, []uint32{20}}, {9, []uint32{3, 14}}, {200, []uint32{21}}}
	c := l.encode(Positions, nil)
	if got := fmt.Sprintf("% x    % x", c.docs, c.pos); got != "09 08 02 fd 02    14 03 0e 15" {
		t.Errorf("got %s", got)
	}
}

func TestLists(t *testing.T) {
	rnd := source(t)
	var r Reader // one for all: nothing of a list may stay
	for _, n := range sizes() {
		for _, gap := range []int{0, 30, 400_000} {
			l := randomList(rnd, n, gap)
			var norms []byte
			if l.limit() < 1<<20 {
				norms = randomNorms(rnd, l.limit())
			}
			for _, k := range []Kind{Docs, Freqs, Positions} {
				l.check(t, rnd, &r, l.encode(k, norms), norms)
			}
		}
	}
}

func TestExtremes(t *testing.T) {
	rnd := source(t)
	var r Reader
	big := ^uint32(0)
	far := make(list, 300)
	for i := range far {
		far[i] = posting{uint32(i) * 14_000_000, []uint32{0, big}}
	}
	for name, l := range map[string]list{
		"one last":   {{End - 1, []uint32{big}}},
		"two":        {{0, []uint32{0}}, {End - 1, []uint32{big, 0, 0}}},
		"eight far":  {{0, []uint32{1}}, {1, []uint32{1}}, {2, []uint32{1}}, {3, []uint32{1}}, {4, []uint32{1}}, {5, []uint32{1}}, {6, []uint32{1}}, {End - 1, []uint32{9}}},
		"far":        far,
		"same place": {{3, []uint32{5, 0, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, k := range []Kind{Docs, Freqs, Positions} {
				l.check(t, rnd, &r, l.encode(k, nil), nil)
			}
		})
	}
	for _, freq := range []uint32{1, 2, 1 << 31, End} {
		var e Encoder
		e.Reset(Freqs, nil)
		for d := range uint32(200) {
			e.AddFreq(d, freq)
		}
		end(&e, Freqs, 200, nil).reset(&r)
		for d := range uint32(200) {
			if r.Next() != d || r.Freq() != freq {
				t.Fatalf("got %d in %d, want %d in %d (%v)", r.Freq(), r.Doc(), freq, d, r.Err())
			}
		}
	}
}

// TestRising has the greater frequencies the further on, so that impacts of
// other blocks do not do.
func TestRising(t *testing.T) {
	l := make(list, 50*BlockSize+9)
	norms := make([]byte, 2*len(l))
	for i := range l {
		l[i] = posting{2 * uint32(i), make([]uint32, 1+i/64)}
		norms[l[i].doc] = byte(255 - i/32)
	}
	var r Reader
	c := l.encode(Freqs, norms)
	for i := 0; i < len(l); i += 50 {
		c.reset(&r)
		r.Advance(l[i].doc)
		l.checkShallow(t, &r, c, l[i].doc, norms)
	}
}

// TestAdvanceToLast goes from the first document to the last of each block.
func TestAdvanceToLast(t *testing.T) {
	l := randomList(source(t), 50*BlockSize, 3)
	var r Reader
	c := l.encode(Docs, nil)
	for i := BlockSize - 1; i < len(l); i += BlockSize {
		c.reset(&r)
		r.Next()
		if got := r.Advance(l[i].doc); got != l[i].doc {
			t.Errorf("got %d, want %d", got, l[i].doc)
		}
	}
}

func TestOne(t *testing.T) {
	rnd := source(t)
	var r Reader
	for range 1000 {
		l := randomList(rnd, 1, 1<<uint(rnd.IntN(30)))
		for _, k := range []Kind{Docs, Freqs, Positions} {
			b := AppendOne([]byte("before"), k, l[0].doc, uint32(len(l[0].gaps)), l[0].gaps)[6:]
			if n := r.ResetOne(k, append(b, "after"...), l.limit()); n != len(b) || n != LenOne(k, b) {
				t.Fatalf("kind %d: got length %d, want %d", k, n, len(b))
			}
			r.Next()
			l[0].want(t, &r, k, "one")
			if r.Next() != End {
				t.Fatalf("got a second document, %d", r.Doc())
			}
		}
	}
}

func TestFreqCodes(t *testing.T) {
	last := byte(0)
	for f := uint64(1); f < 1<<32; f += 1 + f/1000 {
		c := freqCode(uint32(f))
		if got := codeFreq(c); c < last || uint64(got) < f || uint64(got) > f+f/2 && c < 255 {
			t.Fatalf("%d: got code %d after %d, which is %d", f, c, last, got)
		}
		last = c
	}
	if got := codeFreq(freqCode(End)); got != End {
		t.Errorf("got %d, want %d", got, End)
	}
}

// TestFront wants exactly the impacts that no other implies.
func TestFront(t *testing.T) {
	rnd := source(t)
	for range 2000 {
		var all []Impact
		var f front
		for range 1 + rnd.IntN(30) {
			im := Impact{1 + uint32(rnd.IntN(9)), byte(rnd.IntN(9))}
			all = append(all, im)
			f = f.add(im)
		}
		implied := func(a, b Impact) bool { return b.Freq >= a.Freq && b.Norm <= a.Norm }
		var want front
		for _, a := range all {
			if !slices.ContainsFunc(all, func(b Impact) bool { return a != b && implied(a, b) }) && !slices.Contains(want, a) {
				want = append(want, a)
			}
		}
		slices.SortFunc(want, func(a, b Impact) int { return int(a.Freq) - int(b.Freq) })
		if !slices.Equal(f, want) {
			t.Fatalf("%v: got %v, want %v", all, f, want)
		}
		few := slices.Clone(f).reduce(2)
		for _, a := range all {
			if len(few) > 2 || !slices.ContainsFunc(few, func(b Impact) bool { return implied(a, b) }) {
				t.Fatalf("%v of %v does not cover %v", few, f, a)
			}
		}
	}
}

// TestTakePositions takes them now and then, and then the encoder holds few.
func TestTakePositions(t *testing.T) {
	rnd := source(t)
	l := randomList(rnd, 6000, 5)
	var e Encoder
	e.Reset(Positions, nil)
	var pos []byte
	most := 0
	for rest := l; len(rest) > 0; {
		k := min(len(rest), rnd.IntN(300))
		rest[:k].addTo(&e, Positions)
		most = max(most, len(e.pos))
		pos = append(pos, e.TakePositions()...)
		rest = rest[k:]
	}
	var r Reader
	c := end(&e, Positions, l.limit(), pos)
	l.check(t, rnd, &r, c, nil)
	if most > len(c.pos)/4 {
		t.Errorf("the encoder held %d bytes of %d", most, len(c.pos))
	}
}
