package block

// Words next to one another stand in one stretch or in two that follow. At
// medium the lists say in which stretches words are, so most documents that
// have the words of a phrase but not together need not be read.

// adjoining leaves the documents in may of which some stretch has the first
// word, and each other stands in it or the next. That one may be of the next
// document.
func (e *evaluator) adjoining(t *terms, may set) {
	l := &e.p.segment.layout
	if l.starts == nil || len(t.parts) > stretchWords || may.empty() {
		return
	}
	first, other := newSet(l.stretches()), newSet(l.stretches())
	for i, w := range t.parts {
		to := other
		if i == 0 {
			to = first
		}
		to.clear()
		if t.begins(i) {
			e.stretchesFrom(w, to)
		} else {
			e.stretches(w, to)
		}
		if i > 0 {
			other.orBefore()
			first.and(other)
		}
	}
	docs := e.empty()
	for from := uint32(0); from < l.stretches(); {
		next := l.stretches()
		first.eachFrom(from, func(s uint32) bool {
			doc := under(l.starts, s)
			docs.add(doc)
			next = l.starts[doc+1]
			return false
		})
		from = next
	}
	may.and(docs)
	e.drop(docs)
}

// stretches adds those that have a word.
func (e *evaluator) stretches(word string, to set) {
	if _, ord, ok := e.p.terms.dict.Get(address([]byte(word), &e.key)); ok {
		e.stretchesAt(word, ord, to)
	}
}

// stretchesFrom adds those that have a word which begins with prefix.
func (e *evaluator) stretchesFrom(prefix string, to set) {
	err := e.p.terms.dict.Prefix([]byte(prefix), func(term, _ []byte, ord int) bool {
		e.stretchesAt(string(term), ord, to)
		return e.err == nil
	})
	if err != nil {
		e.fail(e.p.Corrupt("%v", err))
	}
}

func (e *evaluator) stretchesAt(term string, ord int, to set) {
	if !e.words.list(ord, &e.li) {
		e.fail(e.p.Corrupt("list of %q", term))
		return
	}
	for _, s := range e.li.places {
		to.add(s)
	}
}

// orBefore adds to a set what comes one before something in it.
func (s set) orBefore() {
	for i, w := range s {
		if w >>= 1; i+1 < len(s) {
			w |= s[i+1] << 63
		}
		s[i] |= w
	}
}
