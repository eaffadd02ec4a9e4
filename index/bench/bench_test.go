package bench_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"harvest/index"
	"harvest/index/bench"
	"harvest/index/query"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// corpus lays the documents of the garden as files.
func corpus(t *testing.T) *bench.Corpus {
	t.Helper()
	s, err := bench.Garden()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "b"), 0o777))
	for i, d := range s.Docs {
		must(t, os.WriteFile(filepath.Join(dir, []string{"a", "b/"}[i%2]+d.ID), []byte("\n"+strings.Replace(d.Text, ". ", "\n", 1)), 0o666))
	}
	c, err := bench.OpenCorpus(dir)
	must(t, err)
	return c
}

func TestCorpus(t *testing.T) {
	c := corpus(t)
	if !slices.IsSorted(c.Names) || len(c.Names) != 32 || c.Names[0] != "a1" {
		t.Fatalf("got names %q, want 32 in order", c.Names)
	}
	var ids []index.ID
	var size int64
	last := 0
	for d, err := range c.Docs(ctx, func(n int) { last = n }) {
		must(t, err)
		ids = append(ids, d.ID)
		size += int64(len(d.Fields[1].Text))
	}
	if size != c.Bytes || last != 32 {
		t.Errorf("got %d bytes of %d documents, want %d of 32", size, last, c.Bytes)
	}
	must(t, os.Remove(filepath.Join(c.Dir, c.Names[1])))
	var got []int
	must(t, c.Text(ctx, []index.ID{ids[0], ids[1], {1}, ids[2]}, func(i int, f []index.Field) bool {
		got = append(got, i)
		if name, ok := c.Name(ids[0]); i == 0 && (!ok || name != "a1" || f[0].Text != "Watering young trees" || !strings.HasPrefix(f[1].Text, "\nWatering young trees\nA young")) {
			t.Errorf("got document %q with fields %q", name, f)
		}
		return len(got) < 2
	}))
	if !slices.Equal(got, []int{0, 3}) {
		t.Errorf("got documents %v, want those that are there: 0 and 3", got)
	}
	for _, err := range c.Docs(ctx, nil) {
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("got %v, want %v", err, iofs.ErrNotExist)
		}
	}
}

func TestReadQueries(t *testing.T) {
	text := "# comment\n\nc1\tcommon\ttree\nn1\tnot\ta\tb\nb1\tbool\ta\tb\tc\td\nx1\tregex\ta+\tother\nf1\tfuzzy2\ttere\nt1\tattr\tbees\nranked1\tranked\ta b\n"
	got, err := bench.ReadQueries(strings.NewReader(text))
	must(t, err)
	var forms []string
	for _, q := range got {
		n, err := q.Node()
		must(t, err)
		forms = append(forms, q.Class+": "+n.String())
	}
	want := []string{"common: tree", "not: a and not b", "bool: (a or b) and c and not d", "regex: /a+/", "fuzzy2: tere~2", "attr: title : bees", "ranked: a or b", "bag: a b"}
	if !slices.Equal(forms, want) {
		t.Errorf("got %q, want %q", forms, want)
	}
	for _, bad := range []string{"c1\tcommon", "c1 common x", "c1\tcommon\t", "n1\tnot\ta", "x\tnone\ta"} {
		if _, err := bench.ReadQueries(strings.NewReader(bad)); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%q: got %v, want %v", bad, err, iofs.ErrInvalid)
		}
	}
}

// Choose finds queries of each class, the same ones each time, that the query
// language can say.
func TestChoose(t *testing.T) {
	c := corpus(t)
	got, err := bench.Choose(ctx, c, 4)
	must(t, err)
	again, err := bench.Choose(ctx, c, 4)
	must(t, err)
	if !reflect.DeepEqual(got, again) {
		t.Errorf("got %v, then %v, want the same", got, again)
	}
	counts := make(map[string]int)
	for _, q := range got {
		counts[q.Class]++
		n, err := q.Node()
		must(t, err)
		back, err := query.Parse(n.String())
		if err != nil || back.String() != n.String() {
			t.Errorf("%v: got %v, %v back, want %s", q, back, err, n)
		}
	}
	for _, class := range bench.Classes() {
		want := 4
		switch class {
		case "bool":
			want = 2
		case "ranked", "bag":
			want = 1 // titles of so many words are rare there
		}
		if counts[class] < want || counts[class] > 4 {
			t.Errorf("%s: got %d queries, want %d or more", class, counts[class], want)
		}
	}
	if _, err := bench.Choose(ctx, &bench.Corpus{}, 4); err != nil {
		t.Errorf("nothing to choose from: got %v", err)
	}
}

// The measures, against sums done by hand.
func TestMeasures(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	for _, tt := range []struct {
		ranked   []bool
		relevant int
		ndcg, ap float64
	}{
		{nil, 2, 0, 0},
		{[]bool{true}, 1, 1, 1},
		{[]bool{false, true}, 1, 1 / math.Log2(3), 0.5},
		{[]bool{true, false, true}, 2, 1.5 / (1 + 1/math.Log2(3)), (1 + 2.0/3) / 2},
		{[]bool{false, false, false, false, false, false, false, false, false, false, true}, 1, 0, 1.0 / 11},
	} {
		if got := bench.NDCG(tt.ranked, tt.relevant); !near(got, tt.ndcg) {
			t.Errorf("%v of %d: got nDCG %v, want %v", tt.ranked, tt.relevant, got, tt.ndcg)
		}
		if got := bench.AveragePrecision(tt.ranked, tt.relevant); !near(got, tt.ap) {
			t.Errorf("%v of %d: got precision %v, want %v", tt.ranked, tt.relevant, got, tt.ap)
		}
	}
}

func TestReadSet(t *testing.T) {
	files := fstest.MapFS{
		"docs.tsv":    {Data: []byte("d1\tone two\nd2\ttwo\n")},
		"queries.tsv": {Data: []byte("q1\ttwo\n")},
		"qrels.tsv":   {Data: []byte("q1\td1\n")},
	}
	s, err := bench.ReadSet(files, "x")
	must(t, err)
	n := 0
	for d, err := range s.All() {
		must(t, err)
		must(t, s.Text(ctx, []index.ID{{1}, d.ID}, func(i int, f []index.Field) bool {
			if n++; i != 1 || !slices.Equal(f, d.Fields) {
				t.Errorf("got fields %v as %d, want %v as 1", f, i, d.Fields)
			}
			return true
		}))
	}
	if n != 2 {
		t.Errorf("got %d documents, want 2", n)
	}
	files["qrels.tsv"].Data = []byte("q1 d1\n")
	if _, err := bench.ReadSet(files, "x"); !errors.Is(err, iofs.ErrInvalid) || !strings.Contains(err.Error(), "x: qrels.tsv: line 1") {
		t.Errorf("got %v, want line 1 of x/qrels.tsv named", err)
	}
	delete(files, "docs.tsv")
	if _, err := bench.ReadSet(files, "x"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, iofs.ErrNotExist)
	}
}
