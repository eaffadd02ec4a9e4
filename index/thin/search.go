package thin

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"harvest/index"
	iofs "io/fs"
	"math"
	"runtime"
	"slices"
	"time"

	"harvest/index/query"
)

// How a document is scored. Each word or phrase of the query that is not under
// a not gives, to a document that matches the query and where it stands,
//
//	idf * tf*(k1+1) / (tf + k1*(1 - b + b*length/mean))
//	idf = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// where tf is the sum over attributes of the attribute's weight times how often
// it stands there, length and mean are counted in words over all attributes,
// N is the number of documents and n of those that have it: BM25 with the
// attributes' counts weighed before they saturate. The score is the sum, whatever
// the operators between them. A word of several parts (net/http) is scored as
// the phrase it is searched as.
const (
	bm25K1 = 1.2
	bm25B  = 0.6
)

// A match is a document of one part, and for a word its weighed count there.
type match struct {
	doc uint32
	tf  float64
}

// A leaf is a word or phrase of the query with the attribute it is asked of.
type leaf struct {
	attr  string // "" for any that has a weight
	words []string
	form  string
	not   bool // under a not: matches, does not score

	docs    int
	matches [][]match // by part, in order of document
	stands  [][]stand // the same by attribute, if why is asked for
	took    time.Duration
}

// A stand is one attribute's share of a leaf's matches.
type stand struct {
	attr   string
	weight float64
	counts []match
}

type searcher struct {
	*view
	opt    index.Options
	leaves []*leaf
	err    error // of plan
}

// Search finds each word's documents, scores them, and joins them as the tree
// says; its cost is that of the words' postings, and 16 bytes a match.
func (e *engine) Search(ctx context.Context, q query.Node, opt index.Options) (index.Results, error) {
	v, err := e.view()
	if err != nil {
		return index.Results{}, err
	}
	defer runtime.KeepAlive(v) // and so of the maps
	s := &searcher{view: v, opt: opt}
	tree := s.plan(q, "", false)
	if s.err != nil {
		return index.Results{}, s.err
	}
	for _, l := range s.leaves {
		begin := time.Now()
		for _, p := range v.parts {
			if err := ctx.Err(); err != nil {
				return index.Results{}, err
			}
			m := s.matches(p, l)
			l.docs += len(m)
			l.matches = append(l.matches, m)
		}
		l.took = time.Since(begin)
	}
	var hits []found
	for i, p := range v.parts {
		if err := ctx.Err(); err != nil {
			return index.Results{}, err
		}
		hits = append(hits, s.score(i, tree.eval(i, p))...)
	}
	slices.SortFunc(hits, func(a, b found) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	return s.results(hits), nil
}

type found struct {
	id    index.ID
	score float64
	part  int
	doc   uint32
}

func (s *searcher) results(hits []found) index.Results {
	r := index.Results{Total: len(hits)}
	hits = hits[min(max(s.opt.Offset, 0), len(hits)):]
	if s.opt.Limit > 0 && len(hits) > s.opt.Limit {
		hits = hits[:s.opt.Limit]
	}
	r.Hits = make([]index.Hit, len(hits))
	for i, h := range hits {
		r.Hits[i] = index.Hit{ID: h.id, Score: h.score}
		if s.opt.Why {
			r.Hits[i].Why = s.why(h)
		}
	}
	for _, l := range s.leaves {
		r.Plan = append(r.Plan, fmt.Sprintf("%s: words %d documents %d in %v", l.form, len(l.words), l.docs, l.took.Round(time.Microsecond)))
	}
	r.Plan = append(r.Plan, fmt.Sprintf("joined: documents %d of %d in %d segments", r.Total, s.docs, len(s.parts)))
	return r
}

// An op is a node of the query, ready to run over one part at a time.
type op interface{ eval(i int, p part) []match }

type (
	both    []op
	either  []op
	neither struct{ op }
)

func (s *searcher) plan(q query.Node, attr string, not bool) op {
	switch q := q.(type) {
	case query.Attr:
		return s.plan(q.Value, index.Attr(q.Name), not)
	case query.And:
		var out both
		for _, n := range q {
			out = append(out, s.plan(n, attr, not))
		}
		return out
	case query.Or:
		var out either
		for _, n := range q {
			out = append(out, s.plan(n, attr, not))
		}
		return out
	case query.Bag:
		return s.plan(query.Or(q), attr, not)
	case query.Not:
		return neither{s.plan(q.Node, attr, true)}
	case query.All:
		if attr == "" {
			return neither{either{}}
		}
	case query.Word:
		return s.leaf(q, q.Text, attr, not)
	case query.Phrase:
		return s.leaf(q, q.Text, attr, not)
	}
	s.err = fmt.Errorf("query %s: this engine does not do it: %w", q, iofs.ErrInvalid)
	return either{}
}

func (s *searcher) leaf(n query.Node, text, attr string, not bool) op {
	l := newLeaf(n, text, attr, not)
	for _, same := range s.leaves { // asked twice it is looked up, and counts, once
		if same.attr == l.attr && same.not == l.not && slices.Equal(same.words, l.words) {
			return same
		}
	}
	s.leaves = append(s.leaves, l)
	return l
}

func newLeaf(n query.Node, text, attr string, not bool) *leaf {
	l := &leaf{attr: attr, words: terms(text), form: n.String(), not: not}
	if attr != "" {
		l.form = query.Attr{Name: attr, Value: n}.String()
	}
	return l
}

// weight is that of an attribute for the leaf; one that is named counts.
func (l *leaf) weight(opt index.Options, attr string) float64 {
	if l.attr != "" && l.attr != attr {
		return 0
	}
	w := max(opt.Weigh(attr), 0)
	if w == 0 && l.attr != "" {
		w = 1
	}
	return w
}

func (l *leaf) eval(i int, _ part) []match { return l.matches[i] }

// score makes hits of the documents of part i that match.
func (s *searcher) score(i int, docs []match) []found {
	p := s.parts[i]
	out := make([]found, len(docs))
	for j, m := range docs {
		out[j] = found{id: p.id(m.doc), part: i, doc: m.doc}
	}
	for _, l := range s.leaves {
		if l.not {
			continue
		}
		idf := idf(s.docs, l.docs)
		list := l.matches[i]
		for j := range out {
			for len(list) > 0 && list[0].doc < out[j].doc {
				list = list[1:]
			}
			if len(list) > 0 && list[0].doc == out[j].doc {
				out[j].score += saturate(idf, list[0].tf, s.length(p, out[j].doc))
			}
		}
	}
	return out
}

// length is that of a document in terms of the mean.
func (s *searcher) length(p part, doc uint32) float64 {
	return float64(p.length(doc)) / max(float64(s.text)/float64(s.docs), 1)
}

func idf(all, n int) float64 {
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

func saturate(idf, tf, length float64) float64 {
	return idf * tf * (bm25K1 + 1) / (tf + bm25K1*(1-bm25B+bm25B*length))
}

// matches are the documents of p where the leaf stands, with weighed counts.
func (s *searcher) matches(p part, l *leaf) (out []match) {
	var stands []stand
	for _, f := range p.fields {
		w := l.weight(s.opt, f.name)
		if w == 0 {
			continue
		}
		var here []match
		occurrences(p, f, l.words, func(doc uint32, count int) {
			here = append(here, match{doc, w * float64(count)})
		})
		out = union(out, here)
		if s.opt.Why && len(here) > 0 {
			stands = append(stands, stand{f.name, w, slices.Clone(here)})
		}
	}
	l.stands = append(l.stands, stands)
	return out
}

// occurrences gives the documents left in p where the words stand one after
// another in the attribute, and how often.
func occurrences(p part, f field, words []string, yield func(doc uint32, count int)) {
	if len(words) == 0 { // a tree that Parse did not make
		return
	}
	lists := make([]postingReader, len(words))
	for i, w := range words {
		t, ok := p.lookup(f, w)
		if !ok {
			return
		}
		lists[i] = t.postings()
	}
	first := &lists[0]
	var a, b []uint32
next:
	for first.next() {
		for i := range lists[1:] {
			l := &lists[1+i]
			for l.doc == ^uint32(0) || l.doc < first.doc {
				if !l.next() {
					return
				}
			}
			if l.doc > first.doc {
				continue next
			}
		}
		if p.gone.has(first.doc) {
			continue
		}
		count := first.count
		if len(lists) > 1 {
			a = first.at(a[:0])
			for i := range lists[1:] {
				b = lists[1+i].at(b[:0])
				a = follow(a, b, uint32(i+1))
			}
			count = len(a)
		}
		if count > 0 {
			yield(first.doc, count)
		}
	}
}

// follow keeps the positions of a that b has n further on.
func follow(a, b []uint32, n uint32) []uint32 {
	out := a[:0]
	for _, pos := range a {
		for len(b) > 0 && b[0] < pos+n {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == pos+n {
			out = append(out, pos)
		}
	}
	return out
}

func union(a, b []match) []match {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	out := make([]match, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].doc < b[0].doc:
			out, a = append(out, a[0]), a[1:]
		case a[0].doc > b[0].doc:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, match{a[0].doc, a[0].tf + b[0].tf}), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func intersect(a, b []match) []match {
	out := make([]match, 0, min(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].doc < b[0].doc:
			a = a[1:]
		case a[0].doc > b[0].doc:
			b = b[1:]
		default:
			out, a, b = append(out, match{a[0].doc, a[0].tf + b[0].tf}), a[1:], b[1:]
		}
	}
	return out
}

func (o both) eval(i int, p part) []match {
	out := o[0].eval(i, p)
	for _, n := range o[1:] {
		if len(out) == 0 {
			return nil
		}
		out = intersect(out, n.eval(i, p))
	}
	return out
}

func (o either) eval(i int, p part) []match {
	var out []match
	for _, n := range o {
		out = union(out, n.eval(i, p))
	}
	return out
}

func (o neither) eval(i int, p part) (out []match) {
	not := o.op.eval(i, p)
	for d := range p.NDocs {
		if len(not) > 0 && not[0].doc == d {
			not = not[1:]
		} else if !p.gone.has(d) {
			out = append(out, match{doc: d})
		}
	}
	return out
}

// why takes the score of a hit apart.
func (s *searcher) why(h found) (out []index.Part) {
	for _, l := range s.leaves {
		m, ok := at(l.matches[h.part], h.doc)
		if l.not || !ok {
			continue
		}
		total := index.Part{Query: l.form, Docs: l.docs, Score: saturate(idf(s.docs, l.docs), m.tf, s.length(s.parts[h.part], h.doc))}
		for _, st := range l.stands[h.part] {
			if m, ok := at(st.counts, h.doc); ok {
				n := int(math.Round(m.tf / st.weight))
				out = append(out, index.Part{Query: l.form, Attr: st.attr, Count: n, Weight: st.weight, Docs: l.docs})
				total.Count += n
			}
		}
		out = append(out, total)
	}
	return out
}

func at(list []match, doc uint32) (match, bool) {
	i, ok := slices.BinarySearchFunc(list, doc, func(m match, d uint32) int { return cmp.Compare(m.doc, d) })
	if !ok {
		return match{}, false
	}
	return list[i], true
}
