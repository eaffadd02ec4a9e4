package index

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"harvest/index/posting"
)

// The vector space formula of WebCrawler's first system: the sum, over the words
// of the query, of tf * (1 - log n/log N), but not more than maxVector, divided
// by the best document's. tf is how often the word stands in the document, in
// the attributes it is looked for in, divided by the words of the document; n
// and N are as in the other formula. What the limit was is not known: 1 is what
// a document can reach that is nothing but one rare word.
const maxVector = 1

func vectorWeight(all, n int) float64 {
	if all <= 1 {
		return 1
	}
	return 1 - math.Log(float64(max(n, 1)))/math.Log(float64(all))
}

// vector is the sum for a document.
func (s *searcher) vector(d uint32) (sum float64) {
	words := float64(max(s.run.length(d), 1))
	for i := range s.run.scorers {
		sc := &s.run.scorers[i]
		sum += float64(sc.freq(d)) / words * sc.leaf.idf
	}
	return min(sum, maxVector)
}

// normalize divides scores by the best.
func (s *searcher) normalize(hits []candidate) {
	if len(hits) == 0 || hits[0].score == 0 {
		return
	}
	s.scaled = 1 / hits[0].score
	for i := range hits {
		hits[i].score *= s.scaled
	}
	slices.SortFunc(hits, compareFound) // some have become equal
}

// byValue orders hits by the first value of the attribute Options.Sort: numbers
// before dates before text, documents without one last.
func (s *searcher) byValue(hits []candidate) []candidate {
	var runs []valued
	for len(hits) > 0 {
		n := 0
		for n < len(hits) && hits[n].part == hits[0].part {
			n++
		}
		r := valued{hits: hits[:n:n], part: &s.view.parts[hits[0].part], reverse: s.opt.Reverse}
		if err := r.sort(Attr(s.opt.Sort)); err != nil {
			s.fail(err)
			return nil
		}
		runs = append(runs, r)
		hits = hits[n:]
	}
	var out []candidate
	for want := s.wanted(); want == 0 || len(out) < want; {
		best := -1
		for i := range runs {
			if len(runs[i].hits) > 0 && (best < 0 || runs[i].before(&runs[best])) {
				best = i
			}
		}
		if best < 0 || !s.alive() {
			break
		}
		out = append(out, runs[best].hits[0])
		runs[best].next()
	}
	return out
}

// A valued is the hits of one part in order of value.
type valued struct {
	part    *part
	reverse bool
	hits    []candidate
	ords    []int  // of the values, none below 0
	key     []byte // the first hit's value, nil if it has none
}

func (v *valued) sort(attr string) error {
	v.ords = make([]int, len(v.hits))
	col, ok := column{}, false
	if f, has := v.part.field(attr); has {
		c, err := v.part.column(f)
		if err != nil {
			return err
		}
		col, ok = c, true
	}
	type pair struct {
		candidate
		ord int
	}
	pairs := make([]pair, len(v.hits))
	for i, h := range v.hits {
		pairs[i] = pair{h, -1}
		if ord, has := col.ord(h.doc); ok && has {
			pairs[i].ord = ord
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.ord != b.ord {
			switch {
			case a.ord < 0:
				return 1
			case b.ord < 0:
				return -1
			case v.reverse:
				return cmp.Compare(b.ord, a.ord)
			}
			return cmp.Compare(a.ord, b.ord)
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	for i, p := range pairs {
		v.hits[i], v.ords[i] = p.candidate, p.ord
	}
	return v.load()
}

// load looks up the first hit's value.
func (v *valued) load() error {
	v.key = v.key[:0]
	if len(v.hits) == 0 || v.ords[0] < 0 {
		v.key = nil
		return nil
	}
	d, err := v.part.keys()
	if err != nil {
		return err
	}
	key, _, _ := d.At(v.ords[0], nil)
	if i := bytes.IndexByte(key, 0); i >= 0 {
		v.key = key[i+1:]
	}
	return nil
}

func (v *valued) next() error {
	same := len(v.ords) > 1 && v.ords[0] == v.ords[1]
	v.hits, v.ords = v.hits[1:], v.ords[1:]
	if same {
		return nil
	}
	return v.load()
}

// before tells whether the first hit of v comes before that of w.
func (v *valued) before(w *valued) bool {
	if v.key == nil || w.key == nil {
		if (v.key == nil) != (w.key == nil) {
			return v.key != nil
		}
		return bytes.Compare(v.hits[0].id[:], w.hits[0].id[:]) < 0
	}
	c := bytes.Compare(v.key, w.key)
	if v.reverse {
		c = -c
	}
	return c < 0 || c == 0 && bytes.Compare(v.hits[0].id[:], w.hits[0].id[:]) < 0
}

// unordered takes documents that match as they come, no more than are wanted.
func (s *searcher) unordered(root *node) []candidate {
	s.top.reset(0)
	enough := s.wanted()
	if s.opt.Rank != RankNone || s.opt.Count || s.vague {
		enough = 0
	}
	for i := range s.view.parts {
		s.run.begin(&s.view.parts[i], i)
		it := s.iter(root, true, true)
		for d, n := it.Doc(), 0; d != posting.End && s.err == nil; d = it.Next() {
			if n++; n%256 == 0 && !s.alive() {
				break
			}
			if s.run.deleted(d) || !it.confirm() {
				continue
			}
			if s.total++; enough > 0 && s.total > enough {
				s.least = true
				return s.top.heap
			}
			s.keep(d, 0)
		}
		if err := s.run.err(); err != nil {
			s.fail(err)
		}
	}
	return s.top.heap
}
