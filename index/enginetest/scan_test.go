package enginetest

import (
	"cmp"
	"context"
	"fmt"
	iofs "io/fs"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"harvest/index"
	"harvest/index/match"
	"harvest/index/query"
)

// The suite passes on an engine that is nothing but the model: what it asks of
// others can be done.
func TestScan(t *testing.T) {
	kept := make(map[string]*scan)
	Run(t, func(dir string, _ index.Source) (index.Engine, error) {
		e := &scan{model: newModel()}
		if old := kept[dir]; old != nil {
			e.model, e.mark = old.model, old.mark
		}
		kept[dir] = e
		return e, nil
	}, Options{Unranked: true})
}

// A scan is an index.Engine that goes through all documents.
type scan struct {
	lock sync.RWMutex
	*model
	mark   string
	closed bool
}

func (s *scan) ready(ctx context.Context) error {
	if s.closed {
		return os.ErrClosed
	}
	return ctx.Err()
}

func (s *scan) Apply(ctx context.Context, puts iter.Seq2[*index.Doc, error], deletes []index.ID, mark string) error {
	var docs []index.Doc
	for d, err := range puts {
		if err != nil {
			return err
		}
		docs = append(docs, *d)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	for _, id := range deletes {
		s.remove(id)
	}
	for _, d := range docs {
		s.put(d)
	}
	s.mark = mark
	return nil
}

func (s *scan) Mark() string {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.mark
}

func (s *scan) Search(ctx context.Context, q query.Node, opt index.Options) (r index.Results, err error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	if err := s.ready(ctx); err != nil {
		return r, err
	}
	if !valid(q, false, false) {
		return r, fmt.Errorf("query: %w", iofs.ErrInvalid)
	}
	hits := s.find(q, opt)
	r.Total = len(hits)
	hits = hits[min(opt.Offset, len(hits)):]
	if opt.Limit > 0 {
		hits = hits[:min(opt.Limit, len(hits))]
	}
	for _, d := range hits {
		r.Hits = append(r.Hits, index.Hit{ID: d.ID})
	}
	return r, nil
}

// valid tells whether a tree is one that means something.
func valid(q query.Node, attr, near bool) bool {
	all := func(nodes []query.Node, near bool) bool {
		return !slices.ContainsFunc(nodes, func(n query.Node) bool { return !valid(n, attr, near) })
	}
	switch q := q.(type) {
	case query.Word, query.Phrase, query.Wild:
		return true
	case query.Regexp:
		_, err := regexp.Compile(q.Expr)
		return err == nil && !(near && q.Text)
	case query.Fuzzy:
		pairs := strings.Count(q.Text, "<") == strings.Count(q.Text, ">")
		return q.Errors >= 0 && q.Errors <= match.MaxErrors && pairs && !(near && q.Phrase)
	case query.Or:
		return all(q, near)
	case query.And:
		return !near && all(q, false)
	case query.Bag:
		return !near && all(q, false)
	case query.Near:
		return !near && q.Distance > 0 && q.Distance <= query.MaxDistance && all(q.Nodes, true)
	case query.Not:
		return !near && valid(q.Node, attr, false)
	case query.Attr:
		return !near && !attr && valid(q.Value, true, false)
	case query.Compare:
		return !near && attr && slices.Contains([]string{"=", "<", "<=", ">", ">="}, q.Op)
	case query.Range:
		return !near && attr && q != query.Range{}
	case query.All:
		return !near
	}
	return false
}

// distinct are the documents of each value of each attribute.
func (s *scan) distinct() map[string]map[string]map[index.ID]bool {
	out := make(map[string]map[string]map[index.ID]bool)
	for _, d := range s.docs {
		for _, v := range d.values {
			text := read(v.text).text
			if out[v.attr] == nil {
				out[v.attr] = make(map[string]map[index.ID]bool)
			}
			if out[v.attr][text] == nil {
				out[v.attr][text] = make(map[index.ID]bool)
			}
			out[v.attr][text][d.ID] = true
		}
	}
	return out
}

func (s *scan) Attributes(ctx context.Context) (out []index.Attribute, err error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	for name, values := range s.distinct() {
		docs := make(map[index.ID]bool)
		for _, with := range values {
			for id := range with {
				docs[id] = true
			}
		}
		out = append(out, index.Attribute{Name: name, Docs: len(docs), Distinct: len(values)})
	}
	slices.SortFunc(out, func(a, b index.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return out, s.ready(ctx)
}

func (s *scan) Values(ctx context.Context, attr, after string, yield func(index.Value) bool) error {
	s.lock.RLock()
	defer s.lock.RUnlock()
	var out []index.Value
	for text, docs := range s.distinct()[index.Attr(attr)] {
		if text > after && len(text) <= index.MaxKey {
			out = append(out, index.Value{Text: text, Docs: len(docs)})
		}
	}
	slices.SortFunc(out, func(a, b index.Value) int { return strings.Compare(a.Text, b.Text) })
	for _, v := range out {
		if !yield(v) {
			break
		}
	}
	return s.ready(ctx)
}

func (s *scan) Suggest(ctx context.Context, text string, n int) (out []index.Suggestion, err error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	counts := make(map[string]map[index.ID]bool)
	for _, d := range s.docs {
		for _, v := range d.values {
			for _, w := range v.words {
				if counts[w.text] == nil {
					counts[w.text] = make(map[index.ID]bool)
				}
				counts[w.text][d.ID] = true
			}
		}
	}
	for w, docs := range counts {
		if k := distance(letters(fold(text)), []rune(w), match.Costs{}, exactly, false); k <= 2 {
			out = append(out, index.Suggestion{Word: w, Errors: k, Docs: len(docs)})
		}
	}
	slices.SortFunc(out, func(a, b index.Suggestion) int {
		return cmp.Or(cmp.Compare(a.Errors, b.Errors), cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Word, b.Word))
	})
	return out[:min(n, len(out))], s.ready(ctx)
}

func (s *scan) Check(ctx context.Context) error { return s.ready(ctx) }

func (s *scan) Stats() index.Stats {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return index.Stats{Docs: len(s.docs)}
}

func (s *scan) Close() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	return nil
}
