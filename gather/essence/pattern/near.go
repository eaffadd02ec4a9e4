package pattern

import (
	"slices"
	"unicode/utf8"
)

// near tells where in a text an expression may begin to match: where one of the
// words that all its matches begin with stands. Nil is anywhere.
type near struct {
	places *places
	words  []int32
	at     []int32 // of each word: the first place not passed
}

// places are those of some words in a text, of each word in a chain.
type places struct {
	words  []string // of the set
	wanted bits
	asked  []int32 // the words that are wanted
	first  []int32 // of each word: index in place, or -1
	last   []int32
	place  []place
}

type place struct{ end, next int32 }

// Below minNear expressions that are to be tried, and over nearPerByte places a
// byte, it is not worth knowing places.
const (
	minNear     = 4
	nearPerByte = 4
)

func newPlaces(words []string) *places {
	return &places{words: words, wanted: newBits(len(words)), first: make([]int32, len(words)), last: make([]int32, len(words))}
}

// want asks for the places of words.
func (p *places) want(words []int32) {
	for _, w := range words {
		if !p.wanted.has(w) {
			p.wanted.set(w)
			p.asked = append(p.asked, w)
			p.first[w] = -1
		}
	}
}

// find looks for what was asked for; false is that there is too much of it.
func (p *places) find(a *automaton, text []byte) bool {
	budget := nearPerByte * len(text)
	a.scan(text, func(s uint32, end int) {
		for s = a.shown[s]; s != 0 && budget > 0; s = a.shown[a.fail[s]] {
			budget--
			w := a.word[s]
			if !p.wanted.has(w) {
				continue
			}
			n := int32(len(p.place))
			p.place = append(p.place, place{int32(end), -1})
			if p.first[w] < 0 {
				p.first[w] = n
			} else {
				p.place[p.last[w]].next = n
			}
			p.last[w] = n
		}
	})
	return budget > 0
}

// forget makes room for another text.
func (p *places) forget() {
	for _, w := range p.asked {
		p.wanted[w>>6] = 0
	}
	p.asked, p.place = p.asked[:0], p.place[:0]
}

// of gives n for an expression that begins with one of words.
func (p *places) of(n *near, words []int32) *near {
	n.places, n.words, n.at = p, words, n.at[:0]
	for _, w := range words {
		n.at = append(n.at, p.first[w])
	}
	return n
}

// after gives the first place from i on where a match may begin, len(text) if there
// is none, and up to where it is not worth asking again.
func (n *near) after(text []byte, i int) (at, end int) {
	if n == nil {
		return i, len(text)
	}
	at, end = len(text), len(text)
	place := n.places.place
	for k, w := range n.words {
		h := n.at[k]
		for h >= 0 && int(place[h].end) <= i {
			h = place[h].next
		}
		if n.at[k] = h; h < 0 {
			continue
		}
		if b := max(i, begin(text, int(place[h].end), n.places.words[w])); b < at {
			at, end = b, int(place[h].end)
		}
	}
	return at, end
}

// begin gives the first place at which a text that reads as word, and ends at
// end, may begin.
func begin(text []byte, end int, word string) int {
	for len(word) > 0 {
		r, size := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-size]
		if r != ' ' {
			_, size = utf8.DecodeLastRune(text[:end])
			end -= size
			continue
		}
		for end > 0 {
			r, size := utf8.DecodeLastRune(text[:end])
			if isWord(r) {
				break
			}
			end -= size
		}
	}
	return end
}

// plan sorts out which of the patterns whose words are there are to be tried, and
// finds out where.
func (s *Set) plan(h *Hits, text []byte) (known bool) {
	h.pending = append(h.pending, s.blind...)
	h.pending = slices.DeleteFunc(h.pending, func(i int32) bool { return h.found.has(i) || !s.may(h, i) })
	if len(h.pending) < minNear {
		return false
	}
	for _, i := range h.pending {
		h.places.want(s.exprs[i].begin)
	}
	return h.places.find(s.auto, text)
}
