package block

// stemmed bounds the words that have the stem of word.
func (e *evaluator) stemmed(word, attr string) bound {
	f := e.find(attr)
	stem := e.s.opt.Stem
	err := e.p.stems.Each(e.ctx, e.p.terms.dict, stem, marked, stem(word), func(term, _ []byte, ord int) bool {
		f.addAt(string(term), ord)
		return e.err == nil
	})
	switch {
	case e.ctx.Err() != nil:
		e.fail(e.ctx.Err())
	case err != nil:
		e.fail(e.p.Corrupt("%v", err))
	}
	b := f.bound(false)
	if hashed([]byte(word)) { // numbers are their own stems
		e.widen(&b, e.term(word, attr))
	}
	return b
}
