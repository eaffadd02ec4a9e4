package dup

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A Sketch stands for the words of a document, as a Signature does, and more
// exactly: half a byte in each of 256 bins. Its first Rows bins are its first
// tree, the next its second, and so on: what package broker/near looks up.
//
// What two sketches agree in estimates the resemblance of the documents, as
// Broder defined it (On the resemblance and containment of documents, 1997): of
// all runs of three words that one of them has or both, the part that both
// have. To keep few bits of each least hash is Li and König's (b-Bit minwise
// hashing, 2010), to have all of them from one hash of each run Li, Owen and
// Zhang's (One permutation hashing, 2012), to fill empty bins from any other
// Shrivastava's (Optimal densification, 2017).
//
// Words are letters and digits, ASCII letters in lower case; in scripts that
// are written without blanks each character is a word.
type Sketch [sketchBins / 2]byte

const (
	sketchBins = 256
	// Rows is how many bins of a sketch are a tree, Trees how many trees there are.
	Rows  = 8
	Trees = sketchBins / Rows

	chance = 1.0 / 16 // that bins of half a byte agree for no reason
)

// None tells that the document has no words.
func (s *Sketch) None() bool { return *s == Sketch{} }

// Tree is what tree i of a sketch is sorted by, the first bin in the highest
// bits.
func (s *Sketch) Tree(i int) uint32 { return binary.BigEndian.Uint32(s[i*Rows/2:]) }

// Resemblance estimates that of two documents, from 0 to 1. Documents without
// words resemble none.
func Resemblance(a, b *Sketch) float64 {
	if a.None() || b.None() {
		return 0
	}
	const low = 0x1111111111111111
	other := 0
	for i := 0; i < len(a); i += 8 {
		x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:])
		x |= x >> 2
		other += bits.OnesCount64((x | x>>1) & low)
	}
	return max(0, (float64(sketchBins-other)/sketchBins-chance)/(1-chance))
}

// Bound is the estimate from which on documents are taken for ones that resemble
// each other by t: 0.95 of those that do by exactly that much have an estimate
// above it, and nearly all of those that do by more.
func Bound(t float64) float64 {
	return t - 1.645*math.Sqrt((1-t)*(t+chance/(1-chance))/sketchBins)
}

// A Sketcher makes sketches, one after the other: Add the texts of a document,
// then take its Sketch. The zero Sketcher is ready.
type Sketcher struct {
	shingler
	least [sketchBins]uint64 // and one more; 0: none
	any   bool
}

// Add takes a text of the document. No run goes from one text into another.
func (s *Sketcher) Add(text string) {
	for i := 0; i < len(text); {
		c := wordBytes[text[i]]
		if c == 0 {
			i++
			continue
		}
		if n := ideogram(text[i:]); n > 0 {
			s.word(uint64(text[i])<<16 | uint64(text[i+1])<<8 | uint64(text[i+2]))
			i += n
			continue
		}
		h := uint64(fnvOffset)
		for ; i < len(text); i++ {
			if c = wordBytes[text[i]]; c == 0 || c >= 0xe0 && ideogram(text[i:]) > 0 {
				break
			}
			h = (h ^ uint64(c)) * fnvPrime
		}
		s.word(h)
	}
	if run, ok := s.short(); ok {
		s.put(run)
	}
	s.shingler = shingler{}
}

// ideogram is how many bytes a character takes that text begins with and that
// is a word of its own: Thai to Tibetan, kana, Chinese, Hangul. 0: it is none.
func ideogram(text string) int {
	if len(text) < 3 || text[0] < 0xe0 || text[0] == 0xe0 && text[1] < 0xb8 || text[0] > 0xe0 && text[0] < 0xe3 || text[0] > 0xed ||
		text[1]&0xc0 != 0x80 || text[2]&0xc0 != 0x80 {
		return 0
	}
	return 3
}

func (s *Sketcher) word(h uint64) {
	if run, ok := s.add(h); ok {
		s.put(run)
	}
}

// put keeps the least hash of a bin, one more than it is so that 0 is none.
func (s *Sketcher) put(run uint64) {
	s.any = true
	m, h := &s.least[run>>56], run<<8>>8+1
	if *m == 0 || h < *m {
		*m = h
	}
}

// Sketch gives that of the texts added, and begins anew.
func (s *Sketcher) Sketch() (out Sketch) {
	if !s.any {
		return out
	}
	for i := range sketchBins {
		m := s.from(i)
		v := byte(mix(m^uint64(i)*0x9e3779b97f4a7c15) >> 60)
		out[i/2] |= v << (4 - 4*(i%2))
	}
	if out.None() { // all bins are 0: it happens to nobody, and must not mean that there are no words
		out[0] = 1
	}
	s.least, s.any = [sketchBins]uint64{}, false
	return out
}

// from is the least hash of a bin, or that of another in place of an empty one.
func (s *Sketcher) from(i int) uint64 {
	if m := s.least[i]; m != 0 {
		return m
	}
	for _, j := range elsewhere[i] {
		if m := s.least[j]; m != 0 {
			return m
		}
	}
	for j := i + 1; ; j++ {
		if m := s.least[j%sketchBins]; m != 0 {
			return m
		}
	}
}

// elsewhere are the bins that an empty one is filled from, in any order that is
// the same for all documents.
var elsewhere = func() (t [sketchBins][64]byte) {
	for i := range t {
		for j := range t[i] {
			t[i][j] = byte(mix(uint64(i<<8|j)+1) >> 32)
		}
	}
	return t
}()
