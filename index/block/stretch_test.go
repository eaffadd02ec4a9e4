package block_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/block"
	"harvest/index/query"
)

// TestStretches looks for phrases across the ends of stretches in documents
// that have the words elsewhere too, and wants those with them near to be read
// and most others not.
func TestStretches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	texts := fieldsOf{}
	e, err := opener(block.Medium)(t.TempDir(), texts)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const documents, words = 60, 1400
	var docs []index.Doc
	want := 0
	for i := range documents {
		text := make([]string, words)
		for k := range text {
			text[k] = fmt.Sprintf("w%d", r.IntN(5000))
		}
		text[0], text[700], text[words-1] = "green", "blue", "red" // not together
		if i%3 == 0 {
			copy(text[250+i/3:], []string{"red", "green", "blue"}) // around the end of the first
			want++
		}
		d := index.Doc{ID: index.ID{byte(i)}, Fields: []index.Field{{Name: "a", Text: "a short one"}, {Name: "b", Text: strings.Join(text, " ")}}}
		docs = append(docs, d)
		texts[d.ID] = d.Fields
	}
	if err := e.Apply(t.Context(), index.Docs(docs), nil, ""); err != nil {
		t.Fatal(err)
	}
	res, err := e.Search(t.Context(), query.Phrase{Text: "red green blue"}, index.Options{Rank: index.RankNone, Plan: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Total != want {
		t.Errorf("got %d documents, want %d", res.Total, want)
	}
	if plan := strings.Join(res.Plan, "\n"); !strings.Contains(plan, fmt.Sprintf("possible %d\n", want)) {
		t.Errorf("plan: got %s, want possible %d", plan, want)
	}
}

// fieldsOf is a Source.
type fieldsOf map[index.ID][]index.Field

func (s fieldsOf) Text(_ context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	for i, id := range ids {
		if f, ok := s[id]; ok && !yield(i, f) {
			break
		}
	}
	return nil
}
