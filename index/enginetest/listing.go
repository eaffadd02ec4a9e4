package enginetest

import (
	"errors"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/query"
)

// values lists attributes and their values, after changes too.
func (s suite) values(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{
		doc(1, "Type", "html", "Author", "a", "author", "b", "Author", "a"),
		doc(2, "type", "HTML", "author", "c  d"),
		doc(3, "type", "text", "empty", ""),
		doc(4, "type", "pdf", "gone", "x"),
		doc(5, "type", "10", "long", strings.Repeat("long ", 100)),
	}, nil, "m")
	p.apply([]index.Doc{doc(6, "type", "text", "author", "a"), doc(5, "type", "9")}, []index.ID{{4}}, "n")
	got, err := p.Attributes(ctx)
	want := []index.Attribute{{Name: "author", Docs: 3, Distinct: 3}, {Name: "empty", Docs: 1, Distinct: 1}, {Name: "type", Docs: 5, Distinct: 3}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got attributes %v, %v, want %v", got, err, want)
	}
	for _, tt := range []struct {
		attr, after string
		want        []index.Value
	}{
		{"type", "", []index.Value{{Text: "9", Docs: 1}, {Text: "html", Docs: 2}, {Text: "text", Docs: 2}}},
		{"Type", "html", []index.Value{{Text: "text", Docs: 2}}},
		{"type", "i", []index.Value{{Text: "text", Docs: 2}}},
		{"author", "", []index.Value{{Text: "a", Docs: 2}, {Text: "b", Docs: 1}, {Text: "c d", Docs: 1}}},
		{"gone", "", nil},
		{"nothing", "", nil},
	} {
		if got := p.valuesOf(tt.attr, tt.after, 100); !slices.Equal(got, tt.want) {
			t.Errorf("values of %s after %q: got %v, want %v", tt.attr, tt.after, got, tt.want)
		}
	}
	if got := p.valuesOf("type", "", 1); len(got) != 1 {
		t.Errorf("got %d values, want to stop at 1", len(got))
	}
}

func (p *pair) valuesOf(attr, after string, n int) (out []index.Value) {
	p.t.Helper()
	err := p.Values(ctx, attr, after, func(v index.Value) bool {
		out = append(out, v)
		return len(out) < n
	})
	if err != nil {
		p.t.Errorf("values of %s: %v", attr, err)
	}
	return out
}

func (s suite) suggest(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{
		doc(1, "body", "kernel kernels colonel"),
		doc(2, "body", "kernel kernal"),
		doc(3, "body", "kernel kernals"),
		doc(4, "body", "kernals fuse"),
	}, nil, "m")
	got, err := p.Suggest(ctx, "Kernle", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || got[0] != (index.Suggestion{Word: "kernel", Errors: 1, Docs: 3}) {
		t.Errorf("got %v, want kernel with 1 error and 3 documents first", got)
	}
	docs := map[string]int{"kernel": 3, "kernels": 1, "kernal": 1, "kernals": 2, "colonel": 1, "fuse": 1}
	for i, s := range got {
		if n := distance(letters("kernle"), []rune(s.Word), index.Options{}.Costs, exactly, false); s.Errors != n || s.Docs != docs[s.Word] {
			t.Errorf("got %+v, want %d errors and %d documents", s, n, docs[s.Word])
		}
		if i > 0 && s.Errors < got[i-1].Errors {
			t.Errorf("got %v, want the fewest errors first", got)
		}
	}
	if got, err := p.Suggest(ctx, "kernxl", 1); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v, want 1 word", got, err)
	}
}

// best has the fewest errors found for what asks for them, and for nothing else.
func (s suite) best(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{doc(1, "body", "kernel"), doc(2, "body", "kernal"), doc(3, "body", "fuse"), doc(4, "body", "fuze")}, nil, "m")
	for _, tt := range []struct{ text, want string }{
		{"kernel~1 or fusz~", "1 2 3"},
		{"kernel~ or fusx~1", "1 3"},
		{"kernel~", "1"},
	} {
		if got := p.set(tt.text, index.Options{}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

// invalid are trees that Parse does not make.
func (s suite) invalid(t *testing.T) {
	p := s.fresh(t)
	p.apply([]index.Doc{doc(1, "a", "x y")}, nil, "m")
	w := query.Word{Text: "x"}
	for _, q := range []query.Node{
		nil,
		query.And{w, nil},
		query.Not{},
		query.Attr{Name: "a"},
		query.Compare{Op: "=", Value: "x"},
		query.Range{Low: "a"},
		query.Attr{Name: "a", Value: query.Compare{Op: "~", Value: "x"}},
		query.Attr{Name: "a", Value: query.Range{}},
		query.Near{Nodes: []query.Node{w, query.And{w, w}}, Distance: 1},
		query.Near{Nodes: []query.Node{w, w}, Distance: 0},
		query.Near{Nodes: []query.Node{w, w}, Distance: 100},
		query.Near{Nodes: []query.Node{w, query.Regexp{Expr: "x", Text: true}}, Distance: 1},
		query.Regexp{Expr: "("},
		query.Regexp{Expr: "(", Text: true},
		query.Fuzzy{Text: "kernelkernel", Errors: 9},
		query.Fuzzy{Text: "kernelkernel", Errors: -1},
		query.Fuzzy{Text: "ker<nel", Errors: 1},
	} {
		if r, err := p.Search(ctx, q, index.Options{}); !errors.Is(err, iofs.ErrInvalid) {
			t.Errorf("%#v: got %d documents, %v, want an error of class %v", q, r.Total, err, iofs.ErrInvalid)
		}
	}
	for _, q := range []query.Node{ // unusual, but good
		query.And{}, query.Not{Node: query.Or{}}, query.And{w}, query.Bag{w},
		query.And{query.Bag{w, query.Word{Text: "z"}}, query.Word{Text: "y"}},
		query.Not{Node: query.Word{Text: "+"}}, query.Not{Node: query.Phrase{}},
	} {
		if r, err := p.Search(ctx, q, index.Options{}); err != nil || r.Total != 1 {
			t.Errorf("%s: got %d documents, %v, want 1", q, r.Total, err)
		}
	}
}
