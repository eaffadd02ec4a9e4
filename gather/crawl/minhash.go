package crawl

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
// shape, with all digits taken for the same. Of markup, what stands between tags
// counts, but no scripts and styles.
func Sign(doc []byte, markup bool) (text, shape Signature) {
	s := newSigner()
	if markup {
		s.html(doc)
	} else {
		s.text(doc)
	}
	s.end()
	return s.words.signature(), s.shapes.signature()
}

// A signer takes the words of a document one byte at a time.
type signer struct {
	word, form uint64 // hashes of the word so far, and of its shape
	digits     bool   // the last byte was a digit
	in         bool   // a word has begun
	words      sketch
	shapes     sketch
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

func (s *signer) text(b []byte) {
	for _, c := range b {
		class := wordBytes[c]
		if class == 0 {
			s.end()
			continue
		}
		if !s.in {
			s.in, s.digits, s.word, s.form = true, false, fnvOffset, fnvOffset
		}
		s.word = (s.word ^ uint64(class)) * fnvPrime
		digit := c-'0' <= 9
		switch {
		case !digit:
			s.form = (s.form ^ uint64(class)) * fnvPrime
		case !s.digits:
			s.form = (s.form ^ '#') * fnvPrime
		}
		s.digits = digit
	}
}

// end ends a word.
func (s *signer) end() {
	if s.in {
		s.in = false
		s.words.add(s.word)
		s.shapes.add(s.form)
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

// A sketch is what is kept of runs of three words: the least hash in each bin.
type sketch struct {
	min  [bins]uint64
	a, b uint64 // the two words before
	n    int
}

var emptyBins = func() (e [bins]uint64) {
	for i := range e {
		e[i] = ^uint64(0)
	}
	return e
}()

func (k *sketch) add(w uint64) {
	k.n++
	if k.n >= 3 {
		k.put(mix(k.a*3 ^ bits.RotateLeft64(k.b, 21) ^ bits.RotateLeft64(w, 42)))
	}
	k.a, k.b = k.b, w
}

func (k *sketch) put(h uint64) {
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
func (k *sketch) signature() (s Signature) {
	if k.n > 0 && k.n < 3 { // one or two words are a run
		k.put(mix(k.a*3 ^ bits.RotateLeft64(k.b, 21)))
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
