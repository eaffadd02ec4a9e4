// Package enginetest is the suite that every index.Engine passes: it compares
// an engine with a scan of the same documents. The scan, in model.go and
// leaf.go, is written to be read: where a manual leaves a question open, it is
// what the language means. Of the engines' own code it uses only how text is
// cut into words and folded.
package enginetest

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/query"
)

// Options say what an engine does not do.
type Options struct {
	Unranked    bool // hits come in its own order, whatever Rank says, and scores say little
	NoPositions bool // how often a phrase stands, and how close words do, is not in scores
	NoNumbers   bool // words of digits alone are left out
}

// Run tests the engine that open gives for a directory, which it may have
// opened and closed before, and a source of the documents applied to it. The
// seed of what is random is printed; the environment variable SEED sets it,
// ROUNDS how much of it there is.
func Run(t *testing.T, open func(dir string, src index.Source) (index.Engine, error), opt Options) {
	s := suite{open, opt}
	for _, tt := range []struct {
		name string
		test func(*testing.T)
	}{
		{"golden", s.golden},
		{"random", s.random},
		{"replace", s.replace},
		{"page", s.page},
		{"rank", s.rank},
		{"tiers", s.tiers},
		{"vector", s.vector},
		{"sort", s.sort},
		{"weights", s.weights},
		{"values", s.values},
		{"suggest", s.suggest},
		{"best", s.best},
		{"invalid", s.invalid},
		{"refused", s.refused},
		{"cancel", s.cancel},
		{"concurrent", s.concurrent},
		{"close", s.close},
	} {
		t.Run(tt.name, tt.test)
	}
}

type suite struct {
	open func(dir string, src index.Source) (index.Engine, error)
	opt  Options
}

// A pair is an engine and the model of it.
type pair struct {
	index.Engine
	*model
	t *testing.T
}

var ctx = context.Background()

func (s suite) start(t *testing.T, dir string, m *model) *pair {
	t.Helper()
	e, err := s.open(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{e, m, t}
	t.Cleanup(func() { p.Close() })
	return p
}

func (s suite) model() *model {
	m := newModel()
	m.noNumbers = s.opt.NoNumbers
	return m
}

func (s suite) fresh(t *testing.T) *pair {
	t.Helper()
	return s.start(t, t.TempDir(), s.model())
}

// apply changes both.
func (p *pair) apply(puts []index.Doc, deletes []index.ID, mark string) {
	p.t.Helper()
	for _, id := range deletes {
		p.remove(id)
	}
	for _, d := range puts {
		p.put(d)
	}
	if err := p.Apply(ctx, index.Docs(puts), deletes, mark); err != nil {
		p.t.Fatal(err)
	}
	if p.Mark() != mark {
		p.t.Fatalf("got mark %q, want %q", p.Mark(), mark)
	}
}

func (p *pair) search(text string, opt index.Options) index.Results {
	p.t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	r, err := p.Search(ctx, q, opt)
	if err != nil {
		p.t.Fatalf("search %s: %v", text, err)
	}
	return r
}

// ids are the first bytes of IDs in order.
func ids(hits []index.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, strconv.Itoa(int(h.ID[0])))
	}
	return strings.Join(out, " ")
}

// set are the documents that a query finds, by number.
func (p *pair) set(text string, opt index.Options) string {
	p.t.Helper()
	hits := p.search(text, opt).Hits
	slices.SortFunc(hits, byID)
	return ids(hits)
}

func byID(a, b index.Hit) int { return slices.Compare(a.ID[:], b.ID[:]) }

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
