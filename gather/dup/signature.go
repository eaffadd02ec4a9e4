package dup

import "math/bits"

// A Signature stands for the words of a document: those of documents that say
// nearly the same agree in nearly all of its bytes. It is a one-permutation
// minhash of the document's runs of three words, in 64 bins of which a byte is
// kept. The zero Signature is that of a document without words.
type Signature [bins]byte

const bins = 64

// Similar estimates how much of what two documents say is the same: the part of
// their runs of three words that both have, from 0 to 1. Documents without words
// are similar to none.
func Similar(a, b *Signature) float64 {
	if *a == (Signature{}) || *b == (Signature{}) {
		return 0
	}
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	const chance = 1.0 / 256 // that two bytes agree for no reason
	return max(0, (float64(same)/bins-chance)/(1-chance))
}

// Sign makes the signatures of a document: of its words as they are, and of its
// shape, with all digits taken for the same, and all names of months and days. Of markup, what stands between tags
// counts, but no scripts and styles.
func Sign(doc []byte, markup bool) (text, shape Signature) {
	s := newSigner()
	s.read(doc, markup)
	return s.words.signature(), s.shapes.signature()
}

// Shape is the second of what Sign makes, in three quarters of its time.
func Shape(doc []byte, markup bool) Signature {
	s := newSigner()
	s.shape = true
	s.read(doc, markup)
	return s.shapes.signature()
}

func (s *signer) read(doc []byte, markup bool) {
	if markup {
		s.html(doc)
	} else {
		s.text(doc)
	}
	s.end()
}

// A signer takes the words of a document, in pieces: a word may be cut where
// markup was.
type signer struct {
	word, form uint64 // hashes of the word so far, and of its shape
	last       byte   // of the word so far
	run        uint64 // hash of the letters in a row that it ends with,
	before     uint64 // and its shape before them
	in         bool   // a word has begun
	shape      bool   // nobody asks for words
	words      leasts
	shapes     leasts
	plain      int // words in a row without a digit: their shape is they themselves
}

func newSigner() *signer {
	s := new(signer)
	s.words.min, s.shapes.min = emptyBins, emptyBins
	return s
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// text takes a piece. Most words have no digit, and are hashed once for both.
func (s *signer) text(b []byte) {
	for i := 0; i < len(b); {
		if wordBytes[b[i]] == 0 {
			s.end()
			for i++; i < len(b) && wordBytes[b[i]] == 0; i++ {
			}
			continue
		}
		if !s.in {
			s.in, s.last, s.word, s.form, s.run, s.before = true, 0, fnvOffset, fnvOffset, 0, fnvOffset
		}
		if s.word == s.form {
			h := s.word
			for i < len(b) && letterBytes[b[i]] != 0 {
				h = (h ^ uint64(letterBytes[b[i]])) * fnvPrime
				i++
			}
			s.word, s.form, s.run = h, h, h
		}
		for ; i < len(b) && wordBytes[b[i]] != 0; i++ {
			s.mixed(wordBytes[b[i]])
		}
	}
}

// mixed takes a byte of a word with digits in it.
func (s *signer) mixed(c byte) {
	s.word = (s.word ^ uint64(c)) * fnvPrime
	switch {
	case c-'0' > 9:
		if s.last-'0' <= 9 {
			s.run, s.before = fnvOffset, s.form
		}
		s.run = (s.run ^ uint64(c)) * fnvPrime
		s.form = (s.form ^ uint64(c)) * fnvPrime
	case s.last-'0' > 9:
		s.undate()
		s.form = (s.form ^ '#') * fnvPrime
	}
	s.last = c
}

// undate takes the name of a month or day out of the shape of a word with digits,
// when its letters end: 21nov2026.
func (s *signer) undate() {
	if isDateName(s.run) {
		s.form = s.before
	}
}

// end ends a word.
func (s *signer) end() {
	if !s.in {
		return
	}
	s.in = false
	switch {
	case s.word != s.form && s.last-'0' > 9:
		s.undate()
	case s.word == s.form && isDateName(s.word):
		s.form = (s.before ^ '#') * fnvPrime // as a number
	}
	if s.shape {
		if g, ok := s.shapes.add(s.form); ok {
			s.shapes.put(g)
		}
		return
	}
	if s.word != s.form {
		s.plain = -1
	}
	s.plain++
	h, ok := s.words.add(s.word)
	g := h
	if s.plain < 3 {
		g, ok = s.shapes.add(s.form)
	} else {
		s.shapes.skip(s.form)
	}
	if ok {
		s.words.put(h)
		s.shapes.put(g)
	}
}

// wordBytes are the bytes of words, letters in lower case; all of UTF-8 beyond
// ASCII count as letters.
var wordBytes = func() (t [256]byte) {
	for i := range t {
		c := byte(i)
		switch {
		case 'A' <= c && c <= 'Z':
			t[i] = c | 0x20
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= 0x80:
			t[i] = c
		}
	}
	return t
}()

// letterBytes are those of words that are no digits.
var letterBytes = func() [256]byte {
	t := wordBytes
	for c := '0'; c <= '9'; c++ {
		t[c] = 0
	}
	return t
}()

// A shingler makes the runs of three words of a text, word by word.
type shingler struct {
	a, b uint64 // the two words before
	n    int
}

// add takes a word and gives the hash of the run that it ends, if it ends one.
func (k *shingler) add(w uint64) (run uint64, ok bool) {
	run = mix(k.a*3 ^ bits.RotateLeft64(k.b, 21) ^ bits.RotateLeft64(w, 42))
	k.skip(w)
	return run, k.n >= 3
}

// skip takes a word whose run has been hashed elsewhere.
func (k *shingler) skip(w uint64) {
	k.n++
	k.a, k.b = k.b, w
}

// short is the run of a text that has but one or two words.
func (k *shingler) short() (run uint64, ok bool) {
	return mix(k.a*3 ^ bits.RotateLeft64(k.b, 21)), k.n > 0 && k.n < 3
}

// A leasts is what is kept of runs: the least hash in each bin.
type leasts struct {
	shingler
	min [bins]uint64
}

var emptyBins = func() (e [bins]uint64) {
	for i := range e {
		e[i] = ^uint64(0)
	}
	return e
}()

func (k *leasts) put(h uint64) {
	i := h >> 58
	k.min[i] = min(k.min[i], h<<6>>6|1<<58)
}

// mix spreads a hash over all its bits.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// signature fills the bins that nothing fell in from the next that is not
// empty, each in its own way, so that short documents can be compared as well.
func (k *leasts) signature() (s Signature) {
	if run, ok := k.short(); ok {
		k.put(run)
	}
	for i := range s {
		for j := range bins {
			if m := k.min[(i+j)%bins]; m != emptyBins[0] {
				s[i] = byte(mix(m+uint64(j)*0x9e3779b97f4a7c15) >> 32)
				break
			}
		}
	}
	return s
}
