package near

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"harvest/gather/dup"
	"harvest/index"
	"harvest/index/enginetest"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *Index {
	t.Helper()
	x, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { x.Close() })
	return x
}

func sketch(text string) dup.Sketch {
	var k dup.Sketcher
	k.Add(text)
	return k.Sketch()
}

// words is a text of n words that is the same for one seed.
func words(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%x", r.Uint32()>>8)
	}
	return out
}

// edited is a text of which a part of the words are others.
func edited(text []string, r *rand.Rand, part float64) []string {
	text = slices.Clone(text)
	for range int(part * float64(len(text))) {
		text[r.IntN(len(text))] = fmt.Sprintf("new%x", r.Uint64())
	}
	return text
}

// runs are the runs of three words of a text.
func runs(words []string) map[string]bool {
	set := make(map[string]bool)
	for i := range max(len(words)-2, 0) {
		set[strings.Join(words[i:i+3], " ")] = true
	}
	return set
}

// resemblance is that of two texts, by all their runs.
func resemblance(a, b map[string]bool) float64 {
	both := 0
	for r := range a {
		if b[r] {
			both++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}

// adapter has the suites of engines apply to an Index: the bytes of a document
// are those of all its values.
type adapter struct{ *Index }

func docOf(d *index.Doc) Doc {
	var k dup.Sketcher
	size := 0
	for _, f := range d.Fields {
		k.Add(f.Text)
		size += len(f.Text)
	}
	return Doc{ID: d.ID, Bytes: Bytes{[16]byte{1, byte(size % 7)}, uint64(size)}, Sketch: k.Sketch()}
}

func (a adapter) Apply(_ context.Context, puts iter.Seq2[*index.Doc, error], deletes []index.ID, mark string) error {
	var list []Doc
	for d, err := range puts {
		if err != nil {
			return err
		}
		list = append(list, docOf(d))
	}
	ids := make([]ID, len(deletes))
	for i, id := range deletes {
		ids[i] = ID(id)
	}
	if err := a.Index.Apply(list, ids, mark); err != nil {
		return err
	}
	if _, err := a.Merge(ctx); err != nil && !noRoom(err) {
		return err // a merge without room leaves what is there, and what was applied
	}
	return nil
}

func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG) }

func openAdapter(dir string, _ index.Source) (adapter, error) {
	x, err := Open(dir)
	return adapter{x}, err
}

// agrees compares what is kept with the history, unless another step began
// meanwhile.
func agrees(t *testing.T, a adapter, h *enginetest.History) {
	step := enginetest.Step(a.Mark())
	want := h.Docs(step)
	got, sums := 0, make(map[Bytes]int)
	for id, d := range want {
		g, ok, err := a.Get(ID(id))
		if err != nil || enginetest.Step(a.Mark()) != step {
			return
		}
		if w := docOf(&d); !ok || g != w {
			t.Errorf("step %d: document %x: got %v, %v, want %v", step, id[:3], ok, g.Bytes, w.Bytes)
		}
		got++
		sums[docOf(&d).Bytes]++
	}
	err := a.EachCopies(ctx, func(of Bytes, ids []ID) bool {
		if sums[of] != len(ids) && enginetest.Step(a.Mark()) == step {
			t.Errorf("step %d: got %d copies, want %d", step, len(ids), sums[of])
		}
		delete(sums, of)
		return true
	})
	for of, n := range sums {
		if n > 1 && err == nil && enginetest.Step(a.Mark()) == step {
			t.Errorf("step %d: %v: got no copies, want %d", step, of, n)
		}
	}
	if n := a.Stats().Docs; n != got && enginetest.Step(a.Mark()) == step {
		t.Errorf("step %d: got %d documents, want %d", step, n, got)
	}
}

func TestKill(t *testing.T) { enginetest.Kill(t, openAdapter, agrees) }

func fault() enginetest.Fault[adapter] {
	return enginetest.Fault[adapter]{Open: openAdapter, Read: agrees}
}

func TestFullDisk(t *testing.T) { fault().FullDisk(t) }

func TestFailingWrite(t *testing.T) { fault().FailingWrite(t) }

// TestRandom compares what is found with what all documents say, while they
// come, change and go, and segments are merged.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	x := open(t, dir)
	model := make(map[ID]Doc)
	texts := make(map[ID][]string)
	var bases [][]string
	for i := range 12 {
		bases = append(bases, words(seed+uint64(i), 20+r.IntN(300)))
	}
	for round := range 60 {
		var puts []Doc
		var deletes []ID
		for range r.IntN(12) {
			id := ID{byte(r.IntN(150))}
			if r.IntN(4) == 0 {
				deletes = append(deletes, id)
				delete(model, id)
			}
		}
		for range r.IntN(25) {
			id := ID{byte(r.IntN(150))}
			text := edited(bases[r.IntN(len(bases))], r, []float64{0, 0.01, 0.05, 0.2}[r.IntN(4)])
			d := Doc{ID: id, Bytes: Bytes{[16]byte{byte(r.IntN(40))}, uint64(r.IntN(2))}, Sketch: sketch(strings.Join(text, " "))}
			puts = append(puts, d)
			model[id], texts[id] = d, text
		}
		must(t, x.Apply(puts, deletes, fmt.Sprint(round)))
		for more := r.IntN(3) == 0; more; {
			var err error
			more, err = x.Merge(ctx)
			must(t, err)
		}
		if r.IntN(8) == 0 {
			must(t, x.Close())
			x = open(t, dir)
		}
		if x.Mark() != fmt.Sprint(round) || x.Stats().Docs != len(model) {
			t.Fatalf("round %d: got mark %s and %d documents, want %d", round, x.Mark(), x.Stats().Docs, len(model))
		}
		compare(t, x, model, round)
	}
	must(t, x.Check(ctx))
}

func compare(t *testing.T, x *Index, model map[ID]Doc, round int) {
	t.Helper()
	for id, d := range model {
		if got, ok, err := x.Get(id); err != nil || !ok || got != d {
			t.Fatalf("round %d: document %d: got %v, %v", round, id[0], ok, err)
		}
		var want []ID
		near := make(map[ID]bool)
		for other, o := range model {
			if d.Bytes == o.Bytes && d.Bytes != (Bytes{}) {
				want = append(want, other)
			}
			if dup.Resemblance(&d.Sketch, &o.Sketch) >= dup.Bound(0.8) {
				near[other] = true
			}
		}
		slices.SortFunc(want, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		if got, err := x.Copies(d.Bytes); err != nil || !slices.Equal(got, want) {
			t.Fatalf("round %d: copies of %d: got %d, %v, want %d", round, id[0], len(got), err, len(want))
		}
		got, err := x.Near(ctx, &d.Sketch, 0.8)
		must(t, err)
		if !slices.IsSortedFunc(got, func(a, b Match) int { return cmp.Compare(b.By, a.By) }) {
			t.Fatalf("round %d: got %v, want the most alike first", round, got)
		}
		for _, m := range got {
			if !near[m.ID] {
				t.Fatalf("round %d: %d: got %d, which is not near", round, id[0], m.ID[0])
			}
			delete(near, m.ID)
		}
		for missed := range near { // one in a thousand is in no tree with it
			if o := model[missed]; dup.Resemblance(&d.Sketch, &o.Sketch) > 0.9 {
				t.Fatalf("round %d: %d: got no %d, which is near", round, id[0], missed[0])
			}
		}
	}
}

// made is a corpus of which it is known what is near what: texts, and edited
// ones of each.
type made struct {
	texts [][]string
	docs  []Doc
	of    []int // the text that each is edited of
}

func corpus(seed uint64, families int) (m made) {
	r := rand.New(rand.NewPCG(seed, 9))
	form := words(seed+1<<40, 60) // that a third of them have
	for f := range families {
		base := words(seed+uint64(f), 100+r.IntN(400))
		if f%3 == 0 {
			base = append(base, form...)
		}
		for _, part := range []float64{0, 0.005, 0.02, 0.035, 0.05, 0.07, 0.15, 0.4} {
			text := edited(base, r, part)
			m.texts = append(m.texts, text)
			m.of = append(m.of, f)
			m.docs = append(m.docs, Doc{ID: ID{byte(f), byte(f >> 8), byte(len(m.docs)), byte(len(m.docs) >> 8)}, Sketch: sketch(strings.Join(text, " "))})
		}
	}
	return m
}

// resemblances are those of documents that were edited from one text.
func (m *made) resemblances() map[[2]int]float64 {
	all := make([]map[string]bool, len(m.texts))
	for i := range m.texts {
		all[i] = runs(m.texts[i])
	}
	out := make(map[[2]int]float64)
	for i := range all {
		for j := range all {
			if i != j && m.of[i] == m.of[j] {
				out[[2]int{i, j}] = resemblance(all[i], all[j])
			}
		}
	}
	return out
}

// TestRecall: of pairs that resemble each other by 80 % or more nearly all are
// found, whatever the threshold, and of those found few resemble each other by
// much less.
func TestRecall(t *testing.T) {
	m := corpus(5, 120)
	x := open(t, t.TempDir())
	for i, some := range slices.Collect(slices.Chunk(m.docs, 300)) {
		must(t, x.Apply(some, nil, fmt.Sprint(i)))
	}
	is := m.resemblances()
	for _, at := range []float64{0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} {
		pairs, found, near, wrong, far := 0, 0, 0, 0, 0
		for i, d := range m.docs {
			got, err := x.Near(ctx, &d.Sketch, at)
			must(t, err)
			have := make(map[ID]bool)
			for _, g := range got {
				have[g.ID] = true
			}
			for j := range m.docs {
				if i == j || m.of[i] != m.of[j] {
					if have[m.docs[j].ID] && m.of[i] != m.of[j] {
						far++
					}
					continue
				}
				is := is[[2]int{i, j}]
				hit := have[m.docs[j].ID]
				switch {
				case is >= at:
					pairs++
					if hit {
						found++
					}
				case hit && is >= at-0.1:
					near++
				case hit:
					wrong++
				}
			}
		}
		recall := float64(found) / float64(pairs)
		t.Logf("at %.2f: %d pairs, recall %.4f; found besides %d that resemble each other by at most 0.1 less, %d by less than that, %d of other texts", at, pairs, recall, near, wrong, far)
		if recall < 0.97 {
			t.Errorf("at %.2f: got recall %.4f, want 0.97", at, recall)
		}
		if at >= 0.5 && (wrong+far)*100 > found {
			t.Errorf("at %.2f: got %d and %d wrong for %d right", at, wrong, far, found)
		}
	}
}

// TestGroups: groups are those that all pairs make.
func TestGroups(t *testing.T) {
	m := corpus(7, 60)
	x := open(t, t.TempDir())
	for i, some := range slices.Collect(slices.Chunk(m.docs, 100)) {
		must(t, x.Apply(some, nil, fmt.Sprint(i)))
	}
	gone := m.docs[3].ID
	must(t, x.Apply(nil, []ID{gone}, "gone"))
	for _, at := range []float64{0.5, 0.8, 0.95} {
		groups, err := x.Groups(ctx, at)
		must(t, err)
		group := make(map[ID]int)
		for i, g := range groups {
			if len(g) < 2 {
				t.Errorf("at %.2f: got a group of %d", at, len(g))
			}
			for _, id := range g {
				if group[id] != 0 || id == gone {
					t.Errorf("at %.2f: %x is in two groups, or gone", at, id[:4])
				}
				group[id] = i + 1
			}
		}
		apart, pairs := 0, 0
		for i, a := range m.docs {
			for j, b := range m.docs[:i] {
				if a.ID == gone || b.ID == gone {
					continue
				}
				same := group[a.ID] != 0 && group[a.ID] == group[b.ID]
				if m.of[i] != m.of[j] {
					if same {
						t.Errorf("at %.2f: texts %d and %d are in one group", at, m.of[i], m.of[j])
					}
					continue
				}
				if dup.Resemblance(&a.Sketch, &b.Sketch) >= dup.Bound(at) {
					if pairs++; !same {
						apart++
					}
				}
			}
		}
		t.Logf("at %.2f: %d groups, %d of %d pairs apart", at, len(groups), apart, pairs)
		if pairs == 0 || apart*100 > pairs {
			t.Errorf("at %.2f: got %d of %d pairs apart", at, apart, pairs)
		}
	}
}

// TestCrowd: ten thousand of one page, and of one form, do not hide others.
func TestCrowd(t *testing.T) {
	x := open(t, t.TempDir())
	r := rand.New(rand.NewPCG(1, 1))
	form := words(1, 100)
	same := sketch(strings.Join(form, " "))
	var list []Doc
	for i := range 5000 {
		list = append(list, Doc{ID: ID{1, byte(i), byte(i >> 8)}, Sketch: same})
		text := append(words(uint64(100+i), 20), form...) // 0.7 alike
		list = append(list, Doc{ID: ID{2, byte(i), byte(i >> 8)}, Sketch: sketch(strings.Join(text, " "))})
	}
	base := append(words(99, 60), form...)
	list = append(list, Doc{ID: ID{3}, Sketch: sketch(strings.Join(base, " "))})
	must(t, x.Apply(list, nil, ""))
	s := sketch(strings.Join(edited(base, r, 0.02), " "))
	got, err := x.Near(ctx, &s, 0.8)
	if err != nil || len(got) == 0 || got[0].ID != (ID{3}) {
		t.Errorf("got %d, %v, want the one it was made of first", len(got), err)
	}
	if got, err = x.Near(ctx, &same, 0.8); err != nil || len(got) < crowd || got[0].By != 1 {
		t.Errorf("got %d, %v, want a crowd", len(got), err)
	}
}

func TestRows(t *testing.T) {
	for at, want := range map[float64]int{1: 8, 0.9: 8, 0.8: 8, 0.7: 6, 0.6: 4, 0.5: 3, 0.25: 1} {
		if got := rowsFor(at); got != want {
			t.Errorf("%v: got %d rows, want %d", at, got, want)
		}
	}
}

func TestRadix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]uint64, 10_000)
	for i := range list {
		list[i] = uint64(r.Uint32()%5000*800_000)<<32 | uint64(i)
	}
	want := slices.Sorted(slices.Values(list))
	if got, _ := radix(list, make([]uint64, len(list))); !slices.Equal(got, want) {
		t.Error("got another order")
	}
}
