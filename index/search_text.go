package index

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"harvest/index/match"
	"harvest/index/query"
)

// What the index cannot tell, upper and lower case, patterns of text, phrases
// without positions, is decided on the text of the documents that may match.

// Documents whose text is asked for at a time: few, since the best may do.
const textBatch = 64

// page is how many hits are to be verified, the best first; 0: all.
func (s *searcher) page() int {
	if s.opt.Count || s.opt.External != nil || s.opt.Feedback > 0 || s.opt.Rank == RankValue || s.opt.Rank == RankVector {
		return 0
	}
	return s.wanted()
}

// verify keeps the hits that match, in order, until it has as many as are
// wanted or, if that is 0, all.
func (s *searcher) verify(q query.Node, hits []candidate, want int) []candidate {
	m, err := s.matcher(q)
	if err != nil {
		s.fail(fmt.Errorf("index: %w", err))
		return nil
	}
	out := hits[:0]
	for len(hits) > 0 && s.alive() && (want == 0 || len(out) < want) {
		n := min(textBatch, len(hits))
		ok := s.decide(m, hits[:n])
		for i, h := range hits[:n] {
			if ok[i] {
				out = append(out, h)
			}
		}
		hits = hits[n:]
		if s.overBytes() {
			break
		}
	}
	s.total, s.least = len(out), len(hits) > 0
	return out
}

// verifyBag verifies all hits, and those too that seem to have all words.
func (s *searcher) verifyBag(q query.Node, hits []candidate) []candidate {
	hits = s.verify(q, hits, 0)
	total, least := s.total, s.least
	n := 0
	for n < len(hits) && hits[n].whole {
		n++
	}
	whole := s.verify(query.And(s.words), slices.Clone(hits[:n]), 0)
	known := make(map[uint64]bool, len(whole))
	for i := range whole {
		known[whole[i].key()] = true
	}
	for i := range hits[:n] {
		if h := &hits[i]; !known[h.key()] {
			h.whole = false
			h.score -= s.tiered
		}
	}
	slices.SortFunc(hits, compareFound)
	s.total, s.least = total, least
	return hits
}

func (s *searcher) matcher(q query.Node) (*Matcher, error) {
	m, err := Compile(q, s.opt)
	if err == nil && s.set.NoNumbers {
		m.WithoutNumbers()
	}
	return m, err
}

// overBytes tells whether as much text was read as may be.
func (s *searcher) overBytes() bool {
	if limit := s.opt.Limits.Bytes; limit > 0 && s.count.bytes > limit {
		s.limited = fmt.Sprintf("%d bytes of text", limit)
		return true
	}
	return false
}

// decide tells which documents match.
func (s *searcher) decide(m *Matcher, hits []candidate) []bool {
	ok := make([]bool, len(hits))
	s.texts(hits, func(i int, fields []Field) { ok[i] = m.Match(fields) })
	return ok
}

// texts reads the texts of documents.
func (s *searcher) texts(hits []candidate, take func(i int, fields []Field)) {
	if s.set.Source == nil {
		s.fail(fmt.Errorf("index: no source of text: %w", errors.ErrUnsupported))
		return
	}
	ids := make([]ID, len(hits))
	for i := range hits {
		ids[i] = hits[i].id
	}
	err := s.set.Source.Text(s.ctx, ids, func(i int, fields []Field) bool {
		s.count.verified++
		for j := range fields {
			s.count.bytes += int64(len(fields[j].Text))
		}
		take(i, fields)
		return s.alive()
	})
	if err != nil {
		s.fail(fmt.Errorf("index: text: %w", err))
	}
}

// candidates are the documents that a pattern of text may match: those with
// words that hold what each match must hold.
func (s *searcher) candidates(n *node) docIter {
	pieces := s.pieces(n.text)
	if len(pieces) == 0 {
		return s.run.everything()
	}
	d := s.run.terms()
	s.lists = s.lists[:0]
	take := func(_, value []byte, _ int) bool {
		if s.run.decode(value, &s.info) {
			for _, l := range s.info.lists {
				if s.weight(l.field, n.attr) > 0 {
					s.lists = append(s.lists, l)
				}
			}
		}
		return len(s.lists)%256 != 0 || s.alive()
	}
	err := d.Contains(s.cache, pieces, take)
	for _, ord := range s.cutWords() { // which may hold it where they are cut
		if _, value, ok := d.At(int(ord), nil); ok {
			take(nil, value, 0)
		}
	}
	if err != nil {
		s.fail(s.run.Corrupt("%v", err))
	}
	return s.anyOf(s.lists)
}

// pieces are strings of which a document that matches holds one, each in one
// word of the index; none if there is no telling.
func (s *searcher) pieces(q query.Node) []string {
	p, err := textPattern(q, s.opt)
	if err != nil {
		s.fail(fmt.Errorf("index: %w", err))
	}
	if p == nil {
		return nil
	}
	var out []string
	for _, lit := range p.Required() {
		run := longestRun(lit, s.set.NoNumbers)
		if len(run) < 2 {
			return nil
		}
		out = append(out, run)
	}
	return out
}

// textPattern is a pattern for the strings it must hold.
func textPattern(q query.Node, opt Options) (*match.Pattern, error) {
	switch q := q.(type) {
	case query.Regexp:
		return match.Compile(q.Expr, match.Options{Syntax: match.Regexp, Lines: q.Text, Case: opt.Case})
	case query.Wild:
		return match.Compile(foldPattern(q.Pattern), match.Options{Syntax: match.Wild})
	case query.Fuzzy:
		if q.Errors < 0 || q.Errors > match.MaxErrors {
			return nil, fmt.Errorf("%v: %d errors: %w", q, q.Errors, iofs.ErrInvalid)
		}
		return match.Compile(q.Text, match.Options{Errors: q.Errors, Costs: opt.Costs, Lines: q.Phrase, Parts: true, Case: opt.Case})
	}
	return nil, nil
}

// settled puts a number into best matches: the fewest errors with which any
// document matches where it is asked for.
func (s *searcher) settled(q query.Node) query.Node {
	if !best(q) {
		return q
	}
	return query.Map(q, func(q query.Node, attr string) query.Node {
		if f, ok := q.(query.Fuzzy); ok && f.Best {
			return s.fewest(f, Attr(attr))
		}
		return nil
	})
}

// best tells whether there is a best match in q.
func best(q query.Node) (found bool) {
	query.Walk(q, func(q query.Node, _ string, _ bool) bool {
		f, ok := q.(query.Fuzzy)
		found = found || ok && f.Best
		return !found
	})
	return found
}

// fewest is a best match with the errors it takes.
func (s *searcher) fewest(q query.Fuzzy, attr string) query.Node {
	q.Best = false
	chars := utf8.RuneCountInString(strings.NewReplacer("<", "", ">", "").Replace(q.Text))
	most := min(match.MaxErrors, max(1, chars/2))
	opt := Options{Weight: s.opt.Weight, Case: s.opt.Case, Costs: s.opt.Costs, Limits: s.opt.Limits, Rank: RankNone, Limit: 1}
	var in query.Node
	for q.Errors = 0; q.Errors <= most && s.alive(); q.Errors++ {
		if in = q; attr != "" {
			in = query.Attr{Name: attr, Value: q}
		}
		r, err := s.engine.search(s.ctx, s.view, in, opt)
		if err != nil {
			s.fail(err)
			break
		}
		if r.Total > 0 {
			return q
		}
	}
	return query.Or{}
}

// longestRun is the longest run of ASCII letters and digits of a literal, in
// lower case: wherever the literal stands, one word has all of it. A run of
// digits does not count if numbers are no words.
func longestRun(lit string, noNumbers bool) (best string) {
	for len(lit) > 0 {
		n, letters := 0, false
		for n < len(lit) && class[lit[n]] >= '0' {
			letters = letters || class[lit[n]] >= 'a'
			n++
		}
		if n > len(best) && n <= MaxWord/2 && (letters || !noNumbers) {
			best = lit[:n]
		}
		lit = lit[max(n, 1):]
	}
	return string(Fold(nil, best))
}

// cutWords are the ordinals of the words of the part that may go on in the text.
func (s *searcher) cutWords() []uint32 {
	a := &s.run.aside
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return a.long
	}
	var long []uint32
	c := s.run.terms().Cursor()
	for c.Next() {
		if len(c.Term()) > MaxWord-4 {
			long = append(long, uint32(c.Ord()))
		}
		if c.Ord()%4096 == 0 && !s.alive() {
			return nil
		}
	}
	if err := c.Err(); err != nil {
		s.fail(s.run.Corrupt("%v", err))
		return nil
	}
	a.long, a.known = long, true
	return long
}
