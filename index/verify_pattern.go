package index

import (
	"strings"
	"unicode/utf8"

	"harvest/index/match"
)

// A pattern is tried on every word, or those around a piece it must hold.
type pattern struct {
	match  func(word []byte) (errors int, ok bool)
	pieces []piece // one of which each word holds that is ASCII
	some   bool    // that are known
	as     role    // of characters that may make up for a piece
	near   bool    // it must have a place: no compound
	word   *misspelt
}

type piece struct {
	*match.Searcher
	simple bool // of ASCII letters and digits
}

// A misspelt rules out most words that are not within some errors of one by
// their ASCII letters and digits alone.
type misspelt struct {
	strange [256]uint8 // 1 for those that are not in the word
	errors  int        // how many strange ones there may be
	longest int        // how many there may be at all
}

func (m *Matcher) misspelt(word string, errors int) *misspelt {
	w := &misspelt{errors: errors, longest: utf8.RuneCountInString(word) + errors}
	for c := range w.strange {
		folded := byte(c)
		if alnum(folded) && !m.opt.Case {
			folded = class[c]
		}
		if strings.IndexByte(word, folded) < 0 {
			w.strange[c] = 1
		}
	}
	return w
}

func (m *Matcher) pattern(expr string, opt match.Options, near bool) (leaf, error) {
	compiled, err := match.Compile(expr, opt)
	if err != nil {
		return nil, err
	}
	p := &pattern{match: compiled.Match, near: near}
	if word, ok := compiled.Word(); ok {
		p.word = m.misspelt(word, compiled.Errors())
	}
	for _, s := range compiled.Required() {
		p.some = true
		switch {
		case !isASCII(s):
			p.as = wordy
		case !simple(s):
			p.as = max(p.as, joining)
		}
		if isASCII(s) {
			p.pieces = append(p.pieces, piece{match.NewSearcher(s, !m.opt.Case), simple(s)})
		}
	}
	return p, nil
}

func (p *pattern) cost() int {
	if p.some {
		return costWords
	}
	return costPattern
}

func (p *pattern) in(m *Matcher, v *value) bool {
	switch {
	case !p.some && p.word != nil:
		return p.inRuns(m, v)
	case !p.some:
		return p.among(m, m.allWords(v))
	}
	for _, f := range p.pieces {
		for at := 0; ; {
			start, _, ok := f.FindString(v.text, at)
			if !ok {
				break
			}
			if f.simple {
				known, is, to := p.run(m, v.text, start)
				if is {
					return true
				}
				if known {
					at = to
					continue
				}
			}
			begin, end := stretch(v.text, start)
			if at = end; p.inStretch(m, v.text, begin, end) {
				return true
			}
		}
	}
	return !v.isASCII() && p.among(m, m.oddWords(v, p.as))
}

// inRuns is in for a misspelt word without pieces.
func (p *pattern) inRuns(m *Matcher, v *value) bool {
	for at := 0; at < len(v.text); {
		if !alnum(v.text[at]) {
			at++
			continue
		}
		known, is, end := p.run(m, v.text, at)
		if !known {
			begin := 0
			begin, end = stretch(v.text, at)
			is = p.inStretch(m, v.text, begin, end)
		}
		if is {
			return true
		}
		at = end
	}
	return !v.isASCII() && p.among(m, m.oddWords(v, wordy))
}

func (p *pattern) inStretch(m *Matcher, text string, begin, end int) bool {
	m.some.reset()
	m.cut(&m.some, text[begin:end], begin)
	return p.among(m, &m.some)
}

// run tries the word that a place within ASCII letters and digits is part of.
// It is not known if they are not the whole of it and it may be like the one
// sought.
func (p *pattern) run(m *Matcher, text string, at int) (known, is bool, end int) {
	begin, end := at, at
	for begin > 0 && alnum(text[begin-1]) {
		begin--
	}
	strange := 0
	if p.word != nil {
		for end = begin; end < len(text) && alnum(text[end]); end++ {
			strange += int(p.word.strange[text[end]])
		}
		if strange > p.word.errors || end-begin > p.word.longest {
			return true, false, end
		}
	} else {
		for end < len(text) && alnum(text[end]) {
			end++
		}
	}
	if end-begin > MaxWord || begin > 0 && joins(text, begin-1) || end < len(text) && joins(text, end) {
		return false, false, end
	}
	word := append(m.buf[:0], text[begin:end]...)
	m.buf = word
	if !m.opt.Case {
		for i, c := range word {
			word[i] = class[c]
		}
	}
	if !m.numbers && isNumber(word) {
		return true, false, end
	}
	_, is = p.match(word)
	return true, is, end
}

func (p *pattern) among(m *Matcher, t *tokens) bool {
	return p.each(m, t, func(span) bool { return true })
}

func (p *pattern) spans(m *Matcher, v *value, dst []span) []span {
	p.each(m, m.allWords(v), func(s span) bool {
		dst = append(dst, s)
		return false
	})
	return dst
}

// each calls yield for the words that match until it returns true.
func (p *pattern) each(m *Matcher, t *tokens, yield func(span) bool) bool {
	lists := [2][]token{t.parts, t.wholes}
	if p.near {
		lists[1] = nil
	}
	for _, list := range lists {
		for i := range list {
			k := &list[i]
			word := t.text(k)
			if !m.numbers && isNumber(word) {
				continue
			}
			if errors, ok := p.match(word); ok {
				s := k.span()
				s.errors = errors
				if yield(s) {
					return true
				}
			}
		}
	}
	return false
}
