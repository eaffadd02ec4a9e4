package index

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// why takes the scores of a page's hits apart. It asks the lists again, for
// these documents only.
func (s *searcher) why(page []candidate, hits []Hit) {
	order := make([]int, len(page))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(page[a].key(), page[b].key()) })
	part := int32(-1)
	for _, i := range order {
		h := &page[i]
		if !s.alive() {
			return
		}
		if h.part != part && s.scoring {
			part = h.part
			s.run.begin(&s.view.parts[part], int(part))
			s.rest()
		}
		hits[i].Why = s.parts(h)
	}
}

// parts are those of one score. Their sum is the score.
func (s *searcher) parts(h *candidate) (out []Part) {
	norms := s.run.norms()
	words := 0
	if s.scoring {
		words = int(s.run.length(h.doc))
	}
	for _, l := range s.leaves {
		if l.not || !s.scoring {
			continue
		}
		sum := Part{Query: l.form(), Docs: l.op.docs(s.view.docs), IDF: l.idf * l.boost, Words: words}
		for i := range s.run.scorers {
			sc := &s.run.scorers[i]
			if sc.leaf != l {
				continue
			}
			n := sc.freq(h.doc)
			if n == 0 {
				continue
			}
			p := Part{Query: sum.Query, Attr: s.run.fields[sc.field].name, Count: int(n), Weight: sc.weight, Docs: sum.Docs}
			if s.opt.Rank == RankVector {
				p.Weight = 1
				sum.Score += float64(n) / float64(max(words, 1)) * l.idf * s.scaled
			} else {
				sum.Score += s.scale.score(sc.factor, n, norms[h.doc]) * s.scaled
			}
			sum.Count += int(n)
			out = append(out, p)
		}
		if sum.Count > 0 {
			out = append(out, sum)
		}
	}
	more := func(what string, score float64) {
		if score != 0 {
			out = append(out, Part{Query: what, Score: score})
		}
	}
	if sum := sumOf(out); s.opt.Rank == RankVector && sum > h.score {
		more("no more than the most", h.score-sum)
	}
	more("words near each other", h.near*s.scaled)
	if h.whole {
		more("all words", s.tiered*s.scaled)
	}
	if s.mix > 0 {
		more(fmt.Sprintf("from outside, a=%.3f", s.mix), h.outside)
	}
	return out
}

func sumOf(parts []Part) (sum float64) {
	for i := range parts {
		sum += parts[i].Score
	}
	return sum
}

// step notes what was done since the last, for plan.
func (s *searcher) step(what string) {
	if s.opt.Plan {
		s.steps = append(s.steps, fmt.Sprintf("%s in %v", what, time.Since(s.began).Round(time.Microsecond)))
		s.began = time.Now()
	}
}

// plan tells what was looked up and done.
func (s *searcher) plan() (out []string) {
	for _, l := range s.leaves {
		line := fmt.Sprintf("%s: documents %d", l.form(), l.op.docs(s.view.docs))
		if e, ok := l.op.(*elem); ok && e.pat != nil {
			line += fmt.Sprintf(", words %d", e.terms)
		}
		switch {
		case l.not:
			line += ", not to be there"
		case l.extra:
			line += ", " + l.why + ": it only scores"
		case l.vague:
			line += ", decided on the text"
		}
		out = append(out, line)
	}
	out = append(out, s.steps...)
	c := &s.count
	if c.verified > 0 {
		out = append(out, fmt.Sprintf("text: documents %d, bytes %d", c.verified, c.bytes))
	}
	matches := fmt.Sprintf("matches: documents %d", s.total)
	if s.least {
		matches += " or more"
	}
	out = append(out, matches, fmt.Sprintf("scored: documents %d, stretches %d, passed over %d", c.scored, c.windows+c.bounds, c.skipped))
	out = append(out, fmt.Sprintf("index: documents %d, segments %d", s.view.docs, len(s.view.parts)))
	if s.limited != "" {
		out = append(out, "limit: "+s.limited)
	}
	return out
}
