package essence

import (
	"strings"
	"sync"
)

// A lexicon has the words that tell a language, or that tell little of a text,
// by the hash that terms have of them: each word of each text is looked for in it.
type lexicon struct {
	slot    [1 << 15]uint16 // of words, by hash; 0 is free
	words   []lexiconWord   // the first is none
	longest int             // bytes
}

// A lexiconWord is what is known of a word.
type lexiconWord struct {
	word   string
	hash   uint32
	of     tongue // the languages it is common in
	common uint8  // its weight in commonWords, 0 if it is not there
}

// lexical is the lexicon.
var lexical = sync.OnceValue(func() *lexicon {
	l := &lexicon{words: make([]lexiconWord, 1, 8192)}
	for i, s := range stopWords {
		for w := range strings.FieldsSeq(s.words) {
			l.enter(w).of |= 1 << i
		}
	}
	for _, c := range commonWords {
		for w := range strings.FieldsSeq(c.words) {
			l.enter(w).common = c.weight
		}
	}
	return l
})

// enter gives a word's place.
func (l *lexicon) enter(w string) *lexiconWord {
	h := hashWord(w)
	if k := l.find(h, []byte(w)); k != nil {
		return k
	}
	l.words = append(l.words, lexiconWord{word: w, hash: h})
	l.longest = max(l.longest, len(w))
	i := int(spreadHash(h)) % len(l.slot)
	for l.slot[i] != 0 {
		i = (i + 1) % len(l.slot)
	}
	l.slot[i] = uint16(len(l.words) - 1)
	return &l.words[len(l.words)-1]
}

// find returns what is known of a word, nil if that is nothing.
func (l *lexicon) find(hash uint32, word []byte) *lexiconWord {
	if len(word) > l.longest {
		return nil
	}
	for i := int(spreadHash(hash)) % len(l.slot); l.slot[i] != 0; i = (i + 1) % len(l.slot) {
		if w := &l.words[l.slot[i]]; w.hash == hash && w.word == string(word) {
			return w
		}
	}
	return nil
}

const (
	hashStart = 2166136261 // FNV-1a
	hashPrime = 16777619
)

// hashWord is the hash of a word in lower case.
func hashWord(w string) (h uint32) {
	h = hashStart
	for i := range len(w) {
		h = (h ^ uint32(w[i])) * hashPrime
	}
	return h
}

// spreadHash brings all of a hash to its lower bits.
func spreadHash(h uint32) uint32 { return h ^ h>>15 }
