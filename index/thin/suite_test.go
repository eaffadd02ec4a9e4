package thin_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/index"
	"harvest/index/query"
)

// Run tests the engine that open gives for a directory, which it may have
// opened and closed before. The seed of what is random is printed; the
// environment variable SEED sets it, ROUNDS how much of it there is.
func runSuite(t *testing.T, open func(dir string) (index.Engine, error)) {
	s := suite{open}
	t.Run("random", s.random)
	t.Run("words", s.words)
	t.Run("replace", s.replace)
	t.Run("values", s.values)
	t.Run("weights", s.weights)
	t.Run("page", s.page)
	t.Run("attributes", s.attributes)
	t.Run("cancel", s.cancel)
	t.Run("close", s.close)
}

type suite struct {
	open func(dir string) (index.Engine, error)
}

func (s suite) start(t *testing.T, dir string) index.Engine {
	t.Helper()
	e, err := s.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func apply(t *testing.T, e index.Engine, puts []index.Doc, deletes []index.ID, mark string) {
	t.Helper()
	if err := e.Apply(context.Background(), index.Docs(puts), deletes, mark); err != nil {
		t.Fatal(err)
	}
	if e.Mark() != mark {
		t.Fatalf("got mark %q, want %q", e.Mark(), mark)
	}
}

func search(t *testing.T, e index.Engine, text string, opt index.Options) index.Results {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Search(context.Background(), q, opt)
	if err != nil {
		t.Fatalf("search %s: %v", text, err)
	}
	return r
}

// doc makes a document of name, text pairs; its ID begins with the number.
func doc(n byte, pairs ...string) index.Doc {
	d := index.Doc{ID: index.ID{n}}
	for i := 0; i < len(pairs); i += 2 {
		d.Fields = append(d.Fields, index.Field{Name: pairs[i], Text: pairs[i+1]})
	}
	return d
}

// found is the numbers of the documents that match, in order of number.
func found(t *testing.T, e index.Engine, text string, opt index.Options) string {
	t.Helper()
	var out []string
	for _, h := range search(t, e, text, opt).Hits {
		out = append(out, strconv.Itoa(int(h.ID[0])))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (s suite) words(t *testing.T) {
	e := s.start(t, t.TempDir())
	long := strings.Repeat("abcdefgh", 20)
	apply(t, e, []index.Doc{
		doc(1, "Title", "Plan 9 from Bell Labs", "Body", "net/http and x86_64, c++"),
		doc(2, "title", "GRÖSSE der Felder", "body", "plan for 9"),
		doc(3, "body", "日本語 text\nbell\tlabs", "Body", long),
		doc(4, "body", "e\u0301tude \xff\xfe 3\u00bd don't"),
	}, nil, "m")
	for _, tt := range []struct{ query, want string }{
		{"plan", "1 2"},
		{"PLAN 9", "1 2"},
		{`"plan 9"`, "1"},
		{`title : plan`, "1"},
		{`TITLE : größe`, ""},
		{`title : grösse`, "2"},
		{`body : (plan or bell)`, "2 3"},
		{`"bell labs"`, "1 3"},
		{"net/http", "1"},
		{"http/net", ""},
		{"x86_64 x86", "1"},
		{"c++", "1"},
		{"日本", "3"},
		{"日語", ""},
		{"本 not bell", ""},
		{"not plan", "3 4"},
		{"not not plan", "1 2"},
		{"not title : (not plan)", "1"},
		{"title : (not plan)", "2 3 4"},
		{"e\u0301tude", "4"},
		{"don't", "4"},
		{"3\u00bd", "4"},
		{long, "3"},
		{"nothing : plan", ""},
		{"nothing", ""},
		{"not nothing", "1 2 3 4"},
	} {
		if got := found(t, e, tt.query, index.Options{}); got != tt.want {
			t.Errorf("%s: got documents %q, want %q", tt.query, got, tt.want)
		}
	}
}

func (s suite) replace(t *testing.T) {
	dir := t.TempDir()
	e := s.start(t, dir)
	check := func(query, want string) {
		t.Helper()
		if got := found(t, e, query, index.Options{}); got != want {
			t.Errorf("%s: got documents %q, want %q", query, got, want)
		}
	}
	apply(t, e, []index.Doc{doc(1, "a", "old"), doc(2, "a", "old"), doc(3, "a", "old")}, nil, "1")
	apply(t, e, []index.Doc{doc(1, "a", "new"), doc(1, "a", "newer")}, []index.ID{{2}, {9}}, "2")
	check("old", "3")
	check("new", "")
	check("newer", "1")
	check("not old", "1")
	apply(t, e, []index.Doc{doc(2, "a", "back")}, []index.ID{{2}, {3}}, "3")
	check("not zzz", "1 2")
	e.Close()
	e = s.start(t, dir)
	if e.Mark() != "3" {
		t.Errorf("opened again: got mark %q, want 3", e.Mark())
	}
	check("not zzz", "1 2")
	check("back", "2")
	apply(t, e, nil, []index.ID{{1}, {2}}, "4")
	check("not zzz", "")
	if n := e.Stats().Docs; n != 0 {
		t.Errorf("got %d documents after the last was deleted, want 0", n)
	}
}

// A phrase stays within one value.
func (s suite) values(t *testing.T) {
	e := s.start(t, t.TempDir())
	apply(t, e, []index.Doc{
		doc(1, "author", "Rob Pike", "author", "Ken Thompson"),
		doc(2, "author", "Pike Ken"),
		doc(3, "author", "Rob Pike", "editor", "Ken"),
	}, nil, "m")
	for _, tt := range []struct{ query, want string }{
		{`"pike ken"`, "2"},
		{`author : (rob thompson)`, "1"},
		{`author : (pike ken)`, "1 2"},
		{`"ken thompson"`, "1"},
	} {
		if got := found(t, e, tt.query, index.Options{}); got != tt.want {
			t.Errorf("%s: got documents %q, want %q", tt.query, got, tt.want)
		}
	}
}

func (s suite) weights(t *testing.T) {
	e := s.start(t, t.TempDir())
	apply(t, e, []index.Doc{
		doc(1, "title", "x", "body", "fuse y z"),
		doc(2, "title", "fuse", "body", "x y z"),
		doc(3, "md5", "fuse", "body", "x y z"),
	}, nil, "m")
	opt := index.Options{Weight: func(a string) float64 { return map[string]float64{"title": 4, "body": 1}[a] }, Why: true}
	r := search(t, e, "fuse", opt)
	if len(r.Hits) != 2 || r.Hits[0].ID[0] != 2 || r.Hits[1].ID[0] != 1 {
		t.Errorf("got %v, want 2 before 1", r.Hits)
	}
	if got := found(t, e, "md5 : fuse", opt); got != "3" {
		t.Errorf("attribute of no weight, named: got documents %q, want 3", got)
	}
	twice := search(t, e, "fuse or fuse and not title : (not fuse) or FUSE", opt)
	if len(twice.Hits) != 2 || twice.Hits[0].Score != r.Hits[0].Score {
		t.Errorf("the same word again: got %v, want it to count once, as in %v", twice.Hits, r.Hits)
	}
	parts := r.Hits[0].Why
	if len(parts) != 2 || parts[0].Attr != "title" || parts[0].Count != 1 || parts[0].Weight != 4 || parts[1].Score != r.Hits[0].Score {
		t.Errorf("got why %+v, want title once and the sum %v", parts, r.Hits[0].Score)
	}
}

func (s suite) page(t *testing.T) {
	e := s.start(t, t.TempDir())
	var docs []index.Doc
	for i := range byte(50) {
		docs = append(docs, doc(i, "a", strings.Repeat("x ", int(i)%7+1)+"y"))
	}
	apply(t, e, docs, nil, "m")
	all := search(t, e, "x", index.Options{})
	if all.Total != 50 || len(all.Hits) != 50 {
		t.Fatalf("got %d hits of %d, want 50 of 50", len(all.Hits), all.Total)
	}
	var joined []index.Hit
	for at := 0; at < 60; at += 7 {
		r := search(t, e, "x", index.Options{Offset: at, Limit: 7})
		if r.Total != 50 {
			t.Errorf("page at %d: got total %d, want 50", at, r.Total)
		}
		joined = append(joined, r.Hits...)
	}
	same := slices.EqualFunc(all.Hits, joined, func(a, b index.Hit) bool { return a.ID == b.ID && a.Score == b.Score })
	if !same {
		t.Errorf("got pages %v, want them to join to %v", joined, all.Hits)
	}
}

func (s suite) attributes(t *testing.T) {
	dir := t.TempDir()
	e := s.start(t, dir)
	apply(t, e, []index.Doc{
		doc(1, "Type", "html", "Author", "a", "author", "b", "Author", "a"),
		doc(2, "type", "html", "author", "c"),
		doc(3, "type", "text", "empty", ""),
		doc(4, "type", "pdf", "gone", "x"),
	}, nil, "m")
	apply(t, e, []index.Doc{doc(5, "type", "text", "author", "a")}, []index.ID{{4}}, "n")
	want := []index.Attribute{{Name: "author", Docs: 3, Distinct: 3}, {Name: "empty", Docs: 1, Distinct: 1}, {Name: "type", Docs: 4, Distinct: 2}}
	got, err := e.Attributes(context.Background())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func (s suite) cancel(t *testing.T) {
	e := s.start(t, t.TempDir())
	apply(t, e, []index.Doc{doc(1, "a", "x")}, nil, "m")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Apply(ctx, index.Docs([]index.Doc{doc(2, "a", "x")}), nil, "n"); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: got %v, want %v", err, context.Canceled)
	}
	if _, err := e.Search(ctx, query.Word{Text: "x"}, index.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: got %v, want %v", err, context.Canceled)
	}
	if got := found(t, e, "x", index.Options{}); got != "1" || e.Mark() != "m" {
		t.Errorf("after a cancelled apply: got documents %q and mark %q, want 1 and m", got, e.Mark())
	}
}

func (s suite) close(t *testing.T) {
	e := s.start(t, t.TempDir())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(context.Background(), nil, nil, "m"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("apply: got %v, want %v", err, os.ErrClosed)
	}
	if _, err := e.Search(context.Background(), query.Word{Text: "x"}, index.Options{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("search: got %v, want %v", err, os.ErrClosed)
	}
}

// model is what the engine should hold: words by attribute and value.
type model struct {
	rng  *rand.Rand
	docs map[index.ID][]value
}

type value struct {
	name  string
	words []string
}

var (
	vocabulary = strings.Fields("a b c d e f g h plan fuse mount bind größe été 9 x86 soif cache")
	names      = []string{"title", "body", "keywords", "author"}
	separators = []string{" ", "\n", ", ", "_", "-", "\x00", " \xff ", "…"}
)

func (m *model) word() string {
	n := len(vocabulary) // the first are the common ones
	return vocabulary[min(m.rng.IntN(n), m.rng.IntN(n))]
}

func (m *model) pick(list []string) string { return list[m.rng.IntN(len(list))] }

func (m *model) id() index.ID { return index.ID{byte(m.rng.IntN(150))} }

func (m *model) document() (index.Doc, []value) {
	d := index.Doc{ID: m.id()}
	var vs []value
	for range m.rng.IntN(6) {
		v := value{name: m.pick(names)}
		var b strings.Builder
		for range m.rng.IntN(20) {
			w := m.word()
			v.words = append(v.words, w)
			if m.rng.IntN(3) == 0 {
				w = strings.ToUpper(w)
			}
			b.WriteString(m.pick(separators) + w)
		}
		vs = append(vs, v)
		d.Fields = append(d.Fields, index.Field{Name: strings.ToUpper(v.name[:1]) + v.name[1:], Text: b.String()})
	}
	return d, vs
}

func (m *model) query(depth int, attr bool) query.Node {
	if depth == 0 {
		return m.leaf()
	}
	switch k := m.rng.IntN(8); {
	case k < 2:
		return query.And{m.query(depth-1, attr), m.query(depth-1, attr)}
	case k < 4:
		return query.Or{m.query(depth-1, attr), m.query(depth-1, attr), m.query(depth-1, attr)}
	case k < 5:
		return query.Not{Node: m.query(depth-1, attr)}
	case k < 6 && !attr:
		return query.Attr{Name: m.pick(names), Value: m.query(depth-1, true)}
	}
	return m.leaf()
}

func (m *model) leaf() query.Node {
	if m.rng.IntN(2) == 0 {
		return query.Word{Text: m.word()}
	}
	ws := []string{m.word()}
	for range m.rng.IntN(3) {
		ws = append(ws, m.word())
	}
	if m.rng.IntN(3) == 0 {
		return query.Word{Text: strings.Join(ws, "/")}
	}
	return query.Phrase{Text: strings.Join(ws, " ")}
}

// match is the scan.
func match(q query.Node, attr string, vs []value) bool {
	switch q := q.(type) {
	case query.And:
		return !slices.ContainsFunc(q, func(n query.Node) bool { return !match(n, attr, vs) })
	case query.Or:
		return slices.ContainsFunc(q, func(n query.Node) bool { return match(n, attr, vs) })
	case query.Not:
		return !match(q.Node, attr, vs)
	case query.Attr:
		return match(q.Value, q.Name, vs)
	case query.Word:
		return contains(strings.Split(q.Text, "/"), attr, vs)
	case query.Phrase:
		return contains(strings.Fields(q.Text), attr, vs)
	}
	panic(fmt.Sprintf("query node %T", q))
}

func contains(ws []string, attr string, vs []value) bool {
	for _, v := range vs {
		for i := 0; i+len(ws) <= len(v.words); i++ {
			if (attr == "" || attr == v.name) && slices.Equal(v.words[i:i+len(ws)], ws) {
				return true
			}
		}
	}
	return false
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// random applies random documents and deletes, opens the index again now and
// then, and asks random queries in between.
func (s suite) random(t *testing.T) {
	seed := uint64(number("SEED", int(time.Now().UnixNano()&math.MaxInt32)))
	rounds := number("ROUNDS", 60)
	t.Logf("SEED=%d ROUNDS=%d", seed, rounds)
	m := &model{rand.New(rand.NewPCG(seed, 0)), make(map[index.ID][]value)}
	dir := t.TempDir()
	e := s.start(t, dir)
	for round := range rounds {
		var (
			puts    []index.Doc
			deletes []index.ID
		)
		for range m.rng.IntN(12) {
			deletes = append(deletes, m.id())
			delete(m.docs, deletes[len(deletes)-1])
		}
		for range m.rng.IntN(20) {
			d, vs := m.document()
			puts = append(puts, d)
			m.docs[d.ID] = vs
		}
		apply(t, e, puts, deletes, strconv.Itoa(round))
		if m.rng.IntN(8) == 0 {
			e.Close()
			e = s.start(t, dir)
		}
		for range 20 {
			m.compare(t, e, m.query(m.rng.IntN(4), false))
		}
		if n := e.Stats().Docs; n != len(m.docs) {
			t.Fatalf("round %d: got %d documents, want %d", round, n, len(m.docs))
		}
	}
}

func (m *model) compare(t *testing.T, e index.Engine, q query.Node) {
	t.Helper()
	var want []index.ID
	for id, vs := range m.docs {
		if match(q, "", vs) {
			want = append(want, id)
		}
	}
	byID := func(a, b index.ID) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(want, byID)
	r, err := e.Search(context.Background(), q, index.Options{Why: true})
	if err != nil {
		t.Fatalf("search %s: %v", q, err)
	}
	ordered := slices.IsSortedFunc(r.Hits, func(a, b index.Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return byID(a.ID, b.ID)
	})
	if !ordered {
		t.Errorf("%s: got %v, want best first, then by ID", q, r.Hits)
	}
	var got []index.ID
	for _, h := range r.Hits {
		got = append(got, h.ID)
		sum := 0.0
		for _, p := range h.Why {
			sum += p.Score
		}
		if math.Abs(sum-h.Score) > 1e-9 {
			t.Errorf("%s: document %s: got parts %+v, want them to sum up to %v", q, h.ID, h.Why, h.Score)
		}
	}
	slices.SortFunc(got, byID)
	if !slices.Equal(got, want) || r.Total != len(want) {
		t.Fatalf("%s: got %d documents %v, want %v", q, r.Total, got, want)
	}
}
