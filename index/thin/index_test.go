package thin_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"harvest/index"
	"harvest/index/query"
	"harvest/index/thin"
)

var ctx = context.Background()

func TestEngine(t *testing.T) {
	runSuite(t, func(dir string) (index.Engine, error) { return thin.Open(dir, index.Settings{}) })
}

func open(t testing.TB, dir string) index.Engine {
	t.Helper()
	e, err := thin.Open(dir, index.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, text string) query.Node {
	t.Helper()
	q, err := query.Parse(text)
	must(t, err)
	return q
}

// The formula in search.go, worked out by hand: 3 documents, 2 with the word,
// 12 words in all; document 1 has it once in a title of weight 3 and twice in
// the body, and is 5 words long.
func TestScore(t *testing.T) {
	e := open(t, t.TempDir())
	must(t, e.Apply(ctx, index.Docs([]index.Doc{
		{ID: index.ID{1}, Fields: []index.Field{{Name: "title", Text: "fuse"}, {Name: "body", Text: "fuse and a fuse"}}},
		{ID: index.ID{2}, Fields: []index.Field{{Name: "body", Text: "fuse it"}}},
		{ID: index.ID{3}, Fields: []index.Field{{Name: "body", Text: "one two three four five"}}},
	}), nil, "m"))
	opt := index.Options{Weight: func(a string) float64 {
		if a == "title" {
			return 3
		}
		return 1
	}}
	r, err := e.Search(ctx, parse(t, "fuse"), opt)
	must(t, err)
	idf := math.Log(1 + 1.5/2.5)
	want := idf * 5 * 2.2 / (5 + 1.2*(0.4+0.6*5/4.0))
	if r.Hits[0].ID[0] != 1 || math.Abs(r.Hits[0].Score-want) > 1e-12 {
		t.Errorf("got %v, want document 1 with %v", r.Hits, want)
	}
}

func TestLines(t *testing.T) {
	fields := []index.Field{
		{Name: "Title", Text: "Plan 9\nfuse"},
		{Name: "MD5", Text: "plan"},
		{Name: "Body", Text: "one plan\n9 fuse plan\n\n  fuse two fuse  \nplan x 9"},
	}
	opt := index.Options{Weight: func(a string) float64 {
		if a == "md5" {
			return 0
		}
		return 1
	}}
	for _, tt := range []struct{ query, want string }{
		{"fuse", "Title:fuse|Body:9 fuse plan|Body:fuse two fuse"},
		{`"plan 9"`, "Title:Plan 9|Body:one plan"},
		{`"fuse two fuse"`, "Body:fuse two fuse"},
		{"title : plan not fuse", "Title:Plan 9"},
		{"md5 : plan", "MD5:plan"},
		{"two or (title : fuse)", "Title:fuse|Body:fuse two fuse"},
		{"zzz", ""},
	} {
		var got []string
		index.Lines(parse(t, tt.query), opt, fields, 80, func(l index.Line) bool {
			got = append(got, l.Attr+":"+l.Text)
			return true
		})
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, s, tt.want)
		}
	}
	long := []index.Field{{Name: "a", Text: strings.Repeat("é word ", 1000) + "fuse " + strings.Repeat("word ", 1000)}}
	index.Lines(parse(t, "fuse"), opt, long, 80, func(l index.Line) bool {
		if len(l.Text) > 80 || !strings.Contains(l.Text, "fuse") {
			t.Errorf("long line: got %q, want 80 bytes around fuse", l.Text)
		}
		return true
	})
}

// A word without letters, as only a tree made by hand can have, matches nothing.
func TestNoWords(t *testing.T) {
	e := open(t, t.TempDir())
	fields := []index.Field{{Name: "a", Text: "x"}}
	must(t, e.Apply(ctx, index.Docs([]index.Doc{{ID: index.ID{1}, Fields: fields}}), nil, "m"))
	q := query.Or{query.Word{Text: "+"}, query.Phrase{}}
	r, err := e.Search(ctx, q, index.Options{Why: true})
	if err != nil || r.Total != 0 {
		t.Errorf("got %v, %v, want no hits", r, err)
	}
	index.Lines(q, index.Options{}, fields, 80, func(l index.Line) bool {
		t.Errorf("got line %v, want none", l)
		return true
	})
}

// Every byte of every file is vouched for.
func TestCorrupt(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	for i := range byte(3) {
		must(t, e.Apply(ctx, index.Docs([]index.Doc{{ID: index.ID{i}, Fields: []index.Field{{Name: "a", Text: "x y z"}}}}), nil, "m"))
	}
	must(t, e.Apply(ctx, index.Docs([]index.Doc{{ID: index.ID{7}}, {ID: index.ID{8}}}), nil, "m"))
	must(t, e.Apply(ctx, nil, []index.ID{{7}}, "m"))
	e.Close()
	files, err := filepath.Glob(dir + "/*")
	must(t, err)
	if len(files) != 5 {
		t.Fatalf("got files %v, want a manifest and 4 segments", files)
	}
	for _, f := range files {
		good, err := os.ReadFile(f)
		must(t, err)
		for i := range good {
			bad := slices.Clone(good)
			bad[i] ^= 0x10
			must(t, os.WriteFile(f, bad, 0o666))
			if e, err := thin.Open(dir, index.Settings{}); !errors.Is(err, index.ErrCorrupt) {
				t.Fatalf("%s, byte %d changed: got %v, %v, want %v", filepath.Base(f), i, e, err, index.ErrCorrupt)
			}
		}
		must(t, os.WriteFile(f, good[:len(good)/2], 0o666))
		if _, err := thin.Open(dir, index.Settings{}); !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("%s cut: got %v, want %v", filepath.Base(f), err, index.ErrCorrupt)
		}
		os.Remove(f)
		if _, err := thin.Open(dir, index.Settings{}); err == nil && !strings.HasSuffix(f, "MANIFEST") {
			t.Errorf("%s gone: got no error", filepath.Base(f))
		}
		must(t, os.WriteFile(f, good, 0o666))
		if strings.HasSuffix(f, "MANIFEST") { // without it the rest was swept
			break
		}
	}
}

// A disk that takes no more leaves the index as it was, and usable.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	must(t, e.Apply(ctx, index.Docs([]index.Doc{{ID: index.ID{1}, Fields: []index.Field{{Name: "a", Text: "first"}}}}), nil, "1"))
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "word%d ", i)
	}
	big := []index.Doc{{ID: index.ID{2}, Fields: []index.Field{{Name: "a", Text: b.String()}}}}

	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: was.Max}))
	err := e.Apply(ctx, index.Docs(big), []index.ID{{1}}, "2")
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("got %v, want %v", err, syscall.EFBIG)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 2 || e.Mark() != "1" {
		t.Errorf("got files %v and mark %s, want the two there were and 1", files, e.Mark())
	}
	if r, err := e.Search(ctx, parse(t, "first"), index.Options{}); err != nil || r.Total != 1 {
		t.Errorf("got %v, %v, want one hit", r, err)
	}
	must(t, e.Apply(ctx, index.Docs(big), []index.ID{{1}}, "2"))
	if r, err := e.Search(ctx, parse(t, "word19999 not first"), index.Options{}); err != nil || r.Total != 1 {
		t.Errorf("got %v, %v, want one hit", r, err)
	}
}

// batch is what TestKill's child applies as mark n: documents n*10 … n*10+9
// new, one of every earlier batch replaced or deleted.
func batch(n int) (puts []index.Doc, deletes []index.ID) {
	for i := range 10 {
		puts = append(puts, numbered(n*10+i, n))
	}
	for old := range n {
		if (n+old)%3 == 0 {
			puts = append(puts, numbered(old*10, n))
		} else {
			deletes = append(deletes, numbered(old*10+n%10, 0).ID)
		}
	}
	return puts, deletes
}

func numbered(i, n int) index.Doc {
	return index.Doc{ID: index.ID{byte(i >> 8), byte(i)}, Fields: []index.Field{
		{Name: "number", Text: strconv.Itoa(i)}, {Name: "batch", Text: strconv.Itoa(n)},
	}}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("INDEX_CHILD"); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child goes on applying batches until it is killed.
func child(dir string) {
	e, err := thin.Open(dir, index.Settings{})
	for n := 0; err == nil; {
		if e.Mark() != "" {
			n, _ = strconv.Atoi(e.Mark())
			n++
		}
		puts, deletes := batch(n)
		if err = e.Apply(ctx, index.Docs(puts), deletes, strconv.Itoa(n)); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// TestKill kills a process that applies, again and again, and after each time
// finds the index at some batch no older than the last it acknowledged, with
// exactly the documents of that batch and those before it.
func TestKill(t *testing.T) {
	kills := 15
	if n, err := strconv.Atoi(os.Getenv("KILLS")); err == nil {
		kills = n
	}
	t.Logf("KILLS=%d", kills)
	dir := t.TempDir()
	for kill := range kills {
		acked := killed(t, dir, kill%5)
		e := open(t, dir)
		mark, err := strconv.Atoi(e.Mark())
		if err != nil || mark < acked {
			t.Fatalf("got mark %q, want %d or later", e.Mark(), acked)
		}
		want := make(map[index.ID]int)
		for n := range mark + 1 {
			puts, deletes := batch(n)
			for _, id := range deletes {
				delete(want, id)
			}
			for _, d := range puts {
				want[d.ID] = n
			}
		}
		got := make(map[index.ID]int)
		for n := range mark + 1 {
			r, err := e.Search(ctx, parse(t, fmt.Sprintf("batch : %d", n)), index.Options{})
			must(t, err)
			for _, h := range r.Hits {
				if old, twice := got[h.ID]; twice {
					t.Fatalf("document %s: got it in batch %d and %d", h.ID, old, n)
				}
				got[h.ID] = n
			}
		}
		if len(got) != len(want) || len(got) != e.Stats().Docs {
			t.Fatalf("mark %d: got %d documents and stats %+v, want %d", mark, len(got), e.Stats(), len(want))
		}
		for id, n := range want {
			if got[id] != n {
				t.Fatalf("mark %d, document %s: got batch %d, want %d", mark, id, got[id], n)
			}
		}
		e.Close()
	}
}

// killed runs a child, kills it some writes after it acknowledged a few
// batches, and gives the last it acknowledged.
func killed(t *testing.T, dir string, batches int) (last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INDEX_CHILD="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for i := 0; i <= batches; i++ {
		if _, err := fmt.Fscan(out, &last); err != nil {
			t.Fatal(err)
		}
	}
	for range last * 7919 % 100000 { // some part of the next batch
		syscall.Getppid()
	}
	must(t, cmd.Process.Kill())
	for {
		if _, err := fmt.Fscan(out, &last); err != nil {
			break
		}
	}
	cmd.Wait()
	return last
}

func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	e := open(f, dir)
	must(f, e.Apply(ctx, index.Docs([]index.Doc{{ID: index.ID{1}}, {ID: index.ID{2}}}), nil, "m"))
	must(f, e.Apply(ctx, nil, []index.ID{{2}}, "m"))
	b, err := os.ReadFile(dir + "/MANIFEST")
	must(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := thin.DecodeManifest(b)
		if err != nil && !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("got %v, want %v", err, index.ErrCorrupt)
		}
		if n := thin.ManifestNumbers(m); n > len(b) {
			t.Errorf("got %d numbers of %d bytes", n, len(b))
		}
	})
}

// A word of a document is found by itself: what Words gives, it gives again.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"Plan 9", "net/http x86_64", "GRÖSSE İ ß Σς", "日本語 text", "e\u0301\xff\u0301", strings.Repeat("ab", 40) + strings.Repeat("é", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		thin.Words(text, func(w []byte, start, end int) bool {
			if start < at || end <= start || end > len(text) || len(w) == 0 || len(w) >= thin.MaxWord+4 {
				t.Fatalf("got word %q at %d to %d after %d of %q", w, start, end, at, text)
			}
			at = end
			word := string(w)
			n := 0
			thin.Words(word, func(again []byte, _, _ int) bool {
				if n++; string(again) != word {
					t.Fatalf("word %q of %q: got %q of it", word, text, again)
				}
				return true
			})
			if n != 1 {
				t.Fatalf("word %q of %q: got %d words of it, want one", word, text, n)
			}
			return true
		})
		q := query.Phrase{Text: text}
		index.Lines(q, index.Options{}, []index.Field{{Name: "a", Text: text}}, 50, func(l index.Line) bool {
			if len(l.Text) > 50 {
				t.Fatalf("got a line of %d bytes, want 50 at most", len(l.Text))
			}
			return true
		})
	})
}
