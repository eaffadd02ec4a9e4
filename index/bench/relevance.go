package bench

import (
	"bufio"
	"context"
	"embed"
	"fmt"
	iofs "io/fs"
	"iter"
	"math"
	"path"
	"slices"
	"strings"

	"harvest/index"
	"harvest/index/query"
)

// A Set is a judged collection: documents, queries, and the documents that
// people found relevant to each query. On disk it is three files of lines with
// a tab between: docs.tsv (id, text), queries.tsv (id, text) and qrels.tsv
// (query, relevant document).
type Set struct {
	Name    string
	Docs    []Text
	Queries []Text

	relevant map[string]map[string]bool // by query
	byID     map[index.ID]int
}

// A Text is a document or a query of a Set.
type Text struct{ ID, Text string }

//go:embed testdata/garden
var garden embed.FS

// Garden is a small Set made for this package, for where no other is there.
// Its figures say whether a change broke something, not how good an engine is.
func Garden() (*Set, error) {
	sub, err := iofs.Sub(garden, "testdata/garden")
	if err != nil {
		return nil, err
	}
	return ReadSet(sub, "garden")
}

// ReadSet reads a Set.
func ReadSet(dir iofs.FS, name string) (*Set, error) {
	s := &Set{Name: name, relevant: make(map[string]map[string]bool), byID: make(map[index.ID]int)}
	err := columns(dir, "docs.tsv", func(a, b string) {
		s.byID[ID(a)] = len(s.Docs)
		s.Docs = append(s.Docs, Text{a, b})
	})
	if err == nil {
		err = columns(dir, "queries.tsv", func(a, b string) { s.Queries = append(s.Queries, Text{a, b}) })
	}
	if err == nil {
		err = columns(dir, "qrels.tsv", func(a, b string) {
			if s.relevant[a] == nil {
				s.relevant[a] = make(map[string]bool)
			}
			s.relevant[a][b] = true
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func columns(dir iofs.FS, name string, take func(a, b string)) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for n := 1; s.Scan(); n++ {
		a, b, ok := strings.Cut(s.Text(), "\t")
		if !ok {
			return fmt.Errorf("%s: line %d: no tab in it: %w", path.Base(name), n, iofs.ErrInvalid)
		}
		take(a, b)
	}
	return s.Err()
}

// All gives the documents, of the one attribute body.
func (s *Set) All() iter.Seq2[*index.Doc, error] {
	return func(yield func(*index.Doc, error) bool) {
		for _, t := range s.Docs {
			if !yield(&index.Doc{ID: ID(t.ID), Fields: []index.Field{{Name: "body", Text: t.Text}}}, nil) {
				return
			}
		}
	}
}

// Text is index.Source.
func (s *Set) Text(ctx context.Context, ids []index.ID, yield func(i int, fields []index.Field) bool) error {
	for i, id := range ids {
		if n, ok := s.byID[id]; ok && !yield(i, []index.Field{{Name: "body", Text: s.Docs[n].Text}}) {
			return nil
		}
	}
	return ctx.Err()
}

// Relevance is how well an engine answered the judged queries of a Set: means
// over them, with a document either relevant or not.
type Relevance struct {
	Queries int     // that have a relevant document
	NDCG    float64 // of the first 10: normalised discounted cumulative gain
	MAP     float64 // mean average precision of the first 1000
}

// What the measures look at.
const (
	ndcgDepth = 10
	mapDepth  = 1000
)

// Measure asks every judged query: any of its words.
func (s *Set) Measure(ctx context.Context, e index.Engine, opt index.Options) (r Relevance, err error) {
	opt.Limit = mapDepth
	for _, q := range s.Queries {
		relevant := s.relevant[q.ID]
		if len(relevant) == 0 {
			continue
		}
		node := Words(q.Text)
		if node == nil {
			return r, fmt.Errorf("%s: query %s has no words: %w", s.Name, q.ID, iofs.ErrInvalid)
		}
		res, err := e.Search(ctx, node, opt)
		if err != nil {
			return r, fmt.Errorf("%s: query %s: %w", s.Name, q.ID, err)
		}
		ranked := make([]bool, len(res.Hits))
		for i, h := range res.Hits {
			if n, ok := s.byID[h.ID]; ok {
				ranked[i] = relevant[s.Docs[n].ID]
			}
		}
		r.Queries++
		r.NDCG += NDCG(ranked, len(relevant))
		r.MAP += AveragePrecision(ranked, len(relevant))
	}
	if r.Queries == 0 {
		return r, fmt.Errorf("%s: no query is judged: %w", s.Name, iofs.ErrInvalid)
	}
	r.NDCG /= float64(r.Queries)
	r.MAP /= float64(r.Queries)
	return r, nil
}

// Words is a query for any of the words of a text, nil if it has none.
func Words(text string) query.Node {
	var bag query.Bag
	index.Words(text, func(w *index.Word) bool {
		if !w.Whole {
			bag = append(bag, query.Word{Text: string(w.Text)})
		}
		return true
	})
	switch len(bag) {
	case 0:
		return nil
	case 1:
		return bag[0]
	}
	return bag
}

// NDCG is the normalised discounted cumulative gain of the first 10 of what
// was ranked, of which relevant are known to be relevant.
func NDCG(ranked []bool, relevant int) float64 {
	gain, best := 0.0, 0.0
	for i := range ndcgDepth {
		worth := 1 / math.Log2(float64(i)+2)
		if i < len(ranked) && ranked[i] {
			gain += worth
		}
		if i < relevant {
			best += worth
		}
	}
	return gain / best
}

// AveragePrecision is the mean, over all relevant documents, of the share of
// relevant ones down to each; 0 for one that was not found.
func AveragePrecision(ranked []bool, relevant int) float64 {
	found, sum := 0.0, 0.0
	for i, ok := range ranked {
		if ok {
			found++
			sum += found / float64(i+1)
		}
	}
	return sum / float64(relevant)
}

// English is the one setting that relevance is measured with: stems, and a
// query goes without the words that say little.
func English() (index.Options, error) {
	stem, err := index.Stemmer("english")
	if err != nil {
		return index.Options{}, err
	}
	stop := index.StopWords()
	return index.Options{Stem: stem, Stop: func(word string) bool {
		_, found := slices.BinarySearch(stop, word)
		return found
	}}, nil
}
