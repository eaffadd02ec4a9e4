package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"harvest/index"
	"harvest/index/query"
)

func (s suite) replace(t *testing.T) {
	dir := t.TempDir()
	p := s.start(t, dir, s.model())
	check := func(query, want string) {
		t.Helper()
		if got := p.set(query, index.Options{}); got != want {
			t.Errorf("%s: got documents %q, want %q", query, got, want)
		}
	}
	if p.Mark() != "" {
		t.Errorf("new: got mark %q, want none", p.Mark())
	}
	check("*", "")
	p.apply([]index.Doc{doc(1, "a", "old"), doc(2, "a", "old"), doc(3, "a", "old")}, nil, "1")
	p.apply([]index.Doc{doc(1, "a", "new"), doc(1, "a", "newer")}, []index.ID{{2}, {9}}, "2")
	check("old", "3")
	check("new", "")
	check("newer", "1")
	check("not old", "1")
	check("a = newer", "1")
	check("a = old", "3")
	p.apply([]index.Doc{doc(2, "a", "back")}, []index.ID{{2}, {3}}, "3")
	check("not zzz", "1 2")
	p.Close()
	p = s.start(t, dir, p.model)
	if p.Mark() != "3" {
		t.Errorf("opened again: got mark %q, want 3", p.Mark())
	}
	check("*", "1 2")
	check("back", "2")
	if err := p.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
	p.apply(nil, []index.ID{{1}, {2}}, "4")
	check("*", "")
	check("not zzz", "")
	if n := p.Stats().Docs; n != 0 {
		t.Errorf("got %d documents after the last was deleted, want 0", n)
	}
	p.apply(nil, nil, "5")
}

// refused is an Apply whose documents end in an error: nothing of it happens.
func (s suite) refused(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{doc(1, "a", "x")}, nil, "m")
	broken := errors.New("the source broke")
	err := p.Apply(ctx, func(yield func(*index.Doc, error) bool) {
		d := doc(2, "a", "x")
		if yield(&d, nil) {
			yield(nil, broken)
		}
	}, []index.ID{{1}}, "n")
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if got := p.set("x", index.Options{}); got != "1" || p.Mark() != "m" || p.Stats().Docs != 1 {
		t.Errorf("got documents %q of %d and mark %q, want 1 of 1 and m", got, p.Stats().Docs, p.Mark())
	}
}

func (s suite) cancel(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{doc(1, "a", "x")}, nil, "m")
	gone, cancel := context.WithCancel(ctx)
	err := p.Apply(gone, func(yield func(*index.Doc, error) bool) {
		d := doc(2, "a", "x")
		cancel()
		yield(&d, nil)
	}, nil, "n")
	_, searched := p.Search(gone, query.Word{Text: "x"}, index.Options{})
	_, attributes := p.Attributes(gone)
	_, suggested := p.Suggest(gone, "x", 3)
	for what, err := range map[string]error{
		"apply": err, "search": searched, "attributes": attributes, "suggest": suggested, "check": p.Check(gone),
		"values": p.Values(gone, "a", "", func(index.Value) bool { return true }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", what, err, context.Canceled)
		}
	}
	if got := p.set("x", index.Options{}); got != "1" || p.Mark() != "m" {
		t.Errorf("after a cancelled apply: got documents %q and mark %q, want 1 and m", got, p.Mark())
	}
}

func (s suite) close(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{doc(1, "a", "x")}, nil, "m")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	_, searched := p.Search(ctx, query.Word{Text: "x"}, index.Options{})
	_, attributes := p.Attributes(ctx)
	_, suggested := p.Suggest(ctx, "x", 3)
	for what, err := range map[string]error{
		"apply": p.Apply(ctx, index.Docs(nil), nil, "n"), "search": searched, "attributes": attributes, "suggest": suggested, "check": p.Check(ctx),
		"values": p.Values(ctx, "a", "", func(index.Value) bool { return true }),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got %v, want %v", what, err, os.ErrClosed)
		}
	}
}

// concurrent puts generations of the same documents while others search: each
// search sees one generation, whole.
func (s suite) concurrent(t *testing.T) {
	const docs, generations = 20, 12
	p := s.fresh(t)
	generation := func(g int) (out []index.Doc) {
		for i := range byte(docs) {
			out = append(out, doc(i, "gen", fmt.Sprintf("g%d", g), "body", "always"))
		}
		return out
	}
	p.apply(generation(0), nil, "0")
	done, stop := context.WithCancel(ctx)
	var searchers sync.WaitGroup
	for range 3 {
		searchers.Go(func() {
			for done.Err() == nil {
				if err := oneGeneration(p, docs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if m, ok := p.Engine.(index.Merger); ok {
		searchers.Go(func() {
			for done.Err() == nil {
				if err := m.MergeAll(ctx); err != nil && !errors.Is(err, syscall.EBUSY) {
					t.Error(err)
					return
				}
			}
		})
	}
	for g := range generations {
		if err := p.Apply(ctx, index.Docs(generation(g+1)), nil, fmt.Sprint(g+1)); err != nil {
			t.Error(err)
		}
	}
	stop()
	searchers.Wait()
	p.mergeAll()
	if err := oneGeneration(p, docs); err != nil {
		t.Error(err)
	}
	if p.Mark() != fmt.Sprint(generations) {
		t.Errorf("got mark %s, want %d", p.Mark(), generations)
	}
}

// mergeAll makes one segment of all, if the engine can, which it refuses while it
// merges by itself.
func (p *pair) mergeAll() {
	m, ok := p.Engine.(index.Merger)
	if !ok {
		return
	}
	err := m.MergeAll(ctx)
	for ; errors.Is(err, syscall.EBUSY); err = m.MergeAll(ctx) {
		runtime.Gosched()
	}
	if st := p.Stats(); err != nil || st.Segments != 1 || st.Deleted != 0 {
		p.t.Errorf("merged: got %d segments, %d documents deleted, %v, want 1 and none", st.Segments, st.Deleted, err)
	}
}

func oneGeneration(p *pair, docs int) error {
	// g1 is gone when g2 is there: of one search's answers neither is a part.
	r, err := p.Search(ctx, query.Word{Text: "always"}, index.Options{})
	if err != nil || r.Total != docs {
		return fmt.Errorf("got %d documents, %v, want %d", r.Total, err, docs)
	}
	r, err = p.Search(ctx, query.Attr{Name: "gen", Value: query.Regexp{Expr: "g[0-9]*[02468]"}}, index.Options{})
	if err != nil || r.Total != docs && r.Total != 0 {
		return fmt.Errorf("got %d documents of even generations, %v, want all or none", r.Total, err)
	}
	_, err = p.Attributes(ctx)
	return err
}
