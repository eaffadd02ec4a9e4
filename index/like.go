package index

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"harvest/index/query"
)

// Documents like a document, and what the best hits have in common, are found
// by their words that are frequent in them and rare elsewhere.
const (
	likeWords    = 20  // words that are added
	likeShare    = 0.3 // of the weight of the whole query, for feedback
	likeCounted  = 1 << 16
	similarWords = 30
)

// A like is a word with what speaks for it.
type like struct {
	word   string
	weight float64
}

// A profile gathers the words of documents.
type profile struct {
	s      *searcher
	weight map[string]float64 // sums of share of the document's words
	count  map[string]int     // in the document at hand
}

func (s *searcher) profile() *profile {
	return &profile{s: s, weight: make(map[string]float64), count: make(map[string]int)}
}

// add takes the words of a document in the attributes that have a weight; what
// it says counts by factor.
func (p *profile) add(fields []Field, factor float64) {
	clear(p.count)
	total := 0
	for i := range fields {
		if p.s.opt.Weigh(Attr(fields[i].Name)) <= 0 {
			continue
		}
		Words(fields[i].Text, func(w *Word) bool {
			total++
			if !w.Whole && len(p.count) < likeCounted && !p.s.stopped(w.Text) {
				p.count[string(w.Text)]++
			}
			return true
		})
	}
	for w, n := range p.count {
		if p.s.opt.Stem != nil {
			w = p.s.opt.Stem(w)
		}
		p.weight[w] += factor * float64(n) / float64(total)
	}
}

func (s *searcher) stopped(word []byte) bool { return s.opt.Stop != nil && s.opt.Stop(string(word)) }

// best are the n words that say most, with weights that sum up to 1.
func (p *profile) best(n int) []like {
	list := make([]like, 0, len(p.weight))
	for w, x := range p.weight {
		docs := p.s.docsWith(w)
		if docs == 0 {
			continue
		}
		list = append(list, like{w, x * idf(p.s.view.docs, docs)})
		if len(list)%256 == 0 && !p.s.alive() {
			return nil
		}
	}
	slices.SortFunc(list, func(a, b like) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.word, b.word))
	})
	list = list[:min(n, len(list))]
	sum := 0.0
	for _, l := range list {
		sum += l.weight
	}
	for i := range list {
		list[i].weight /= max(sum, 1e-300)
	}
	return list
}

// likeOperand is what a word of a profile stands for.
func (s *searcher) likeOperand(word string) *elem {
	if s.opt.Stem != nil {
		return s.stem(word)
	}
	return s.elem([]byte(word))
}

func (s *searcher) docsWith(word string) int {
	n := s.elems.n
	e := s.likeOperand(word)
	s.elems.n = n
	return min(e.n, s.view.docs)
}

// feedback adds words of the best hits to the leaves that score; those that
// are there already weigh more.
func (s *searcher) feedback(hits []candidate) {
	hits = hits[:min(s.opt.Feedback, len(hits))]
	if len(hits) == 0 {
		return
	}
	best := hits[0].score
	p := s.profile()
	s.texts(hits, func(i int, fields []Field) {
		if best > 0 {
			p.add(fields, hits[i].score/best)
		}
	})
	n := 0
	for _, l := range s.leaves {
		if !l.not {
			n++
		}
	}
	for _, l := range p.best(likeWords) {
		s.moreWord(l, likeShare/(1-likeShare)*float64(n))
	}
}

// moreWord adds a word that scores; no document has to have it.
func (s *searcher) moreWord(w like, factor float64) *clause {
	l := s.addMore(query.Word{Text: w.word}, "", s.likeOperand(w.word), factor*w.weight)
	l.why = "of the best hits"
	return l
}

// Similar finds documents with the words that say most of fields, the most
// alike first. A document with these fields is among them.
func (e *engine) Similar(ctx context.Context, fields []Field, opt Options) (Results, error) {
	v, err := e.view()
	if err != nil {
		return Results{}, err
	}
	defer runtime.KeepAlive(v)
	s := e.searcher(ctx, v, opt)
	p := s.profile()
	p.add(fields, 1)
	root := s.node(opOr)
	for _, l := range p.best(similarWords) {
		n := s.node(opLeaf)
		n.leaf = s.moreWord(l, similarWords)
		root.kids = append(root.kids, n)
	}
	r := s.answer(nil, root)
	if err := e.release(s); err != nil {
		return Results{}, err
	}
	return r, nil
}
