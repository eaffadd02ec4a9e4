package block_test

import (
	"context"
	"fmt"
	"testing"

	"harvest/index"
	"harvest/index/block"
	"harvest/index/enginetest"
	"harvest/index/query"
)

// TestNoWords applies documents without words, or without anything, so that
// segments of nothing else are written and merged.
func TestNoWords(t *testing.T) {
	for _, grain := range []block.Grain{block.Tiny, block.Small, block.Medium} {
		e, err := opener(grain)(t.TempDir(), enginetest.NewHistory(1))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for i := range 40 {
			d := index.Doc{ID: index.ID{byte(i)}}
			if i%3 == 0 {
				d.Fields = []index.Field{{Name: "a", Text: ""}}
			}
			if err := e.Apply(t.Context(), index.Docs([]index.Doc{d}), nil, fmt.Sprint(i)); err != nil {
				t.Fatalf("%v: %v", grain, err)
			}
		}
		if err := e.Check(t.Context()); err != nil || e.Stats().Docs != 40 {
			t.Errorf("%v: got %d documents, %v, want 40", grain, e.Stats().Docs, err)
		}
	}
}

// TestManyWords has every number of words around the one that fills a group
// of lists, and so has one for which no list comes after it.
func TestManyWords(t *testing.T) {
	text := ""
	for i := range 1000 {
		text += fmt.Sprintf("w%d ", i)
	}
	for i := range 50 {
		text += fmt.Sprintf("v%d ", i)
		e, err := opener(block.Small)(t.TempDir(), enginetest.NewHistory(1))
		if err != nil {
			t.Fatal(err)
		}
		d := index.Doc{ID: index.ID{1}, Fields: []index.Field{{Name: "a", Text: text}}}
		if err := e.Apply(t.Context(), index.Docs([]index.Doc{d}), nil, ""); err != nil {
			t.Errorf("%d words: %v", 1001+i, err)
		}
		e.Close()
	}
}

// textOf is a source of one document.
type textOf []index.Field

func (f textOf) Text(_ context.Context, ids []index.ID, yield func(int, []index.Field) bool) error {
	for i := range ids {
		if !yield(i, f) {
			break
		}
	}
	return nil
}

// TestMarks takes the marks of terms that are no words for no character of them.
func TestMarks(t *testing.T) {
	fields := textOf{{Name: "a", Text: "本, foo-bar"}}
	for _, grain := range []block.Grain{block.Tiny, block.Small, block.Medium} {
		e, err := block.Open(t.TempDir(), index.Settings{Source: fields}, grain)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Apply(t.Context(), index.Docs([]index.Doc{{ID: index.ID{1}, Fields: fields}}), nil, ""); err != nil {
			t.Fatal(err)
		}
		for pattern, want := range map[string]int{"?本*": 0, "本*": 1, "?oo*": 1} {
			r, err := e.Search(t.Context(), query.Wild{Pattern: pattern}, index.Options{})
			if err != nil || len(r.Hits) != want {
				t.Errorf("%v: %s: got %d documents, %v, want %d", grain, pattern, len(r.Hits), err, want)
			}
		}
	}
}
