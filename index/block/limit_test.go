package block_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/block"
	"harvest/index/query"
)

// texts is a source of documents with the numbers 0 and up.
type texts []string

func (s texts) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := int(id[0])<<8 | int(id[1])
		if !yield(i, []index.Field{{Name: "body", Text: s[n]}}) {
			return nil
		}
	}
	return nil
}

func (s texts) docs() (out []index.Doc) {
	for i, text := range s {
		out = append(out, index.Doc{ID: index.ID{byte(i >> 8), byte(i)}, Fields: []index.Field{{Name: "body", Text: text}}})
	}
	return out
}

// thousand is documents of which every third has the phrase "red fish".
func thousand() (s texts) {
	for i := range 1000 {
		text := "fish red"
		if i%3 == 0 {
			text = "red fish"
		}
		s = append(s, fmt.Sprintf("%s word%d %s", text, i%10, strings.Repeat("x ", 50)))
	}
	return s
}

func opened(t *testing.T, src texts) index.Engine {
	t.Helper()
	e, err := block.OpenCoarse(t.TempDir(), index.Settings{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.Apply(t.Context(), index.Docs(src.docs()), nil, "m"); err != nil {
		t.Fatal(err)
	}
	return e
}

func ask(t *testing.T, e index.Engine, text string, opt index.Options) index.Results {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Search(t.Context(), q, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Pages are parts of the whole, and text is read for them only as far as they
// go.
func TestPages(t *testing.T) {
	e := opened(t, thousand())
	all := ask(t, e, `"red fish"`, index.Options{})
	if all.Total != 334 || len(all.Hits) != 334 || all.AtLeast {
		t.Fatalf("got %d hits of %d, at least %v, want all of 334", len(all.Hits), all.Total, all.AtLeast)
	}
	for _, offset := range []int{0, 7, 330} {
		r := ask(t, e, `"red fish"`, index.Options{Offset: offset, Limit: 10})
		want := all.Hits[offset:min(offset+10, 334)]
		if !slices.EqualFunc(r.Hits, want, func(a, b index.Hit) bool { return a.ID == b.ID }) {
			t.Errorf("from %d: got %v, want %v", offset, r.Hits, want)
		}
		if offset < 300 && (!r.AtLeast || r.Total >= 334) {
			t.Errorf("from %d: got total %d, at least %v, want less than all to be read", offset, r.Total, r.AtLeast)
		}
	}
	if r := ask(t, e, `"red fish"`, index.Options{Limit: 10, Count: true}); r.Total != 334 || r.AtLeast || len(r.Hits) != 10 {
		t.Errorf("counted: got %d hits of %d, at least %v, want 10 of 334", len(r.Hits), r.Total, r.AtLeast)
	}
}

func TestLimits(t *testing.T) {
	e := opened(t, thousand())
	r := ask(t, e, `"red fish"`, index.Options{Limits: index.Limits{Bytes: 5000}})
	if r.Cut != "5000 bytes of text" || !r.AtLeast || r.Total == 0 || r.Total >= 334 {
		t.Errorf("got total %d, at least %v, cut %q, want some, cut by 5000 bytes of text", r.Total, r.AtLeast, r.Cut)
	}
	r = ask(t, e, "word*", index.Options{Limits: index.Limits{Terms: 3}})
	if r.Cut != "3 words of a pattern" || !r.AtLeast || r.Total != 300 {
		t.Errorf("got total %d, at least %v, cut %q, want 300, cut by 3 words", r.Total, r.AtLeast, r.Cut)
	}
}

// A search ends with its context while it reads, and with its source.
func TestCancelReading(t *testing.T) {
	docs := thousand()
	e, err := block.OpenCoarse(t.TempDir(), index.Settings{Source: broken{docs}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Apply(t.Context(), index.Docs(docs.docs()), nil, "m"); err != nil {
		t.Fatal(err)
	}
	q := query.Phrase{Text: "red fish"}
	if _, err := e.Search(t.Context(), q, index.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Search(ctx, q, index.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

var errBroken = errors.New("the store is gone")

type broken struct{ texts }

func (broken) Text(context.Context, []index.ID, func(int, []index.Field) bool) error {
	return errBroken
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	src := thousand()
	e, err := block.Open(dir, index.Settings{Source: src}, block.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(t.Context(), index.Docs(src.docs()[:3]), nil, "m"); err != nil {
		t.Fatal(err)
	}
	e.Close()
	if _, err := block.Open(dir, index.Settings{Source: src}, block.Small); !errors.Is(err, index.ErrSettings) {
		t.Errorf("another grain: got %v, want %v", err, index.ErrSettings)
	}
	if _, err := block.Open(dir, index.Settings{Source: src, NoNumbers: true}, block.Tiny); !errors.Is(err, index.ErrSettings) {
		t.Errorf("without numbers: got %v, want %v", err, index.ErrSettings)
	}
	// What version 1 wrote of an empty index of grain tiny with the mark m.
	if err := os.WriteFile(filepath.Join(dir, "MANIFEST"), []byte("harvest block manifest 1\n\x00\x00\x01m\x00\x00\xa5T\xa6\x8f"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := block.Open(dir, index.Settings{Source: src}, block.Tiny); !errors.Is(err, index.ErrSettings) {
		t.Errorf("version 1: got %v, want %v", err, index.ErrSettings)
	}
}

// TestSort orders by value, those without one last.
func TestSort(t *testing.T) {
	src := texts{"b", "a", "c", "10", "9"}
	e := opened(t, src)
	for _, tt := range []struct {
		reverse bool
		want    string
	}{{false, "4 3 1 0 2"}, {true, "2 0 1 3 4"}} {
		r := ask(t, e, "*", index.Options{Rank: index.RankValue, Sort: "body", Reverse: tt.reverse})
		var got []string
		for _, h := range r.Hits {
			got = append(got, fmt.Sprint(h.ID[1]))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("reverse %v: got %s, want %s", tt.reverse, s, tt.want)
		}
	}
}

// TestHashed finds words that share classes.
func TestHashed(t *testing.T) {
	var src texts
	for i := range 600 {
		src = append(src, fmt.Sprintf("sum 0x%08x of %d_%08d", i*77777, i, i))
	}
	e := opened(t, src)
	for text, want := range map[string]int{
		"0x00012fd1": 1, "0x00012fd2": 0, "0x0001*": 1, "/0x0+12fd[0-9]/": 1, "0x00012fd3~1": 1, "5_00000005": 1, "deadbee1": 0, "sum*": 600,
	} {
		if r := ask(t, e, text, index.Options{}); r.Total != want {
			t.Errorf("%s: got %d, want %d", text, r.Total, want)
		}
	}
}
