// Package posting codes posting lists: the documents that have a term, how
// often each has it, and where.
//
// A list is two runs of bytes, one of documents and frequencies, one of
// positions, which an Encoder makes and a Reader reads in place. What else
// there is to know of a list, its Kind and its number of documents, the caller
// keeps, as a rule in a dictionary beside the places of both runs. A list of
// one document is better kept there whole: AppendOne.
//
// The package knows neither terms nor files nor scores.
package posting

import (
	"encoding/binary"
	"errors"
)

// End is what Next and Advance give after the last document; it is no document.
const End = ^uint32(0)

// BlockSize is the most documents of a block.
const BlockSize = 128

// ErrDamaged is the class of errors about bytes that no Encoder made.
var ErrDamaged = errors.New("posting list is damaged")

// A Kind says what a list holds. Lists of one kind go into one list.
type Kind uint8

const (
	Docs      Kind = iota // documents
	Freqs                 // and how often each has the term
	Positions             // and where
)

// An Impact is a frequency and a norm, the class of a document's length. Of a
// set of impacts and any document they are about, one has at least the
// frequency and at most the norm of the document.
type Impact struct {
	Freq uint32
	Norm byte
}

// AppendOne appends the list of one document to b: how often it has the term
// unless k is Docs, and where, as in Encoder.Add, if k is Positions.
func AppendOne(b []byte, k Kind, doc, freq uint32, gaps []uint32) []byte {
	if k != Positions {
		return appendSmall(b, k, doc, freq)
	}
	b = appendSmall(b, k, doc, uint32(len(gaps)))
	for _, g := range gaps {
		b = binary.AppendUvarint(b, uint64(g))
	}
	return b
}

// LenOne is the length of what AppendOne put at the beginning of b, at most
// that of b.
func LenOne(k Kind, b []byte) (n int) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return len(b)
	}
	freq := uint64(1)
	if k != Docs && v&1 == 0 {
		var m int
		if freq, m = binary.Uvarint(b[n:]); m <= 0 {
			return len(b)
		}
		n += m
	}
	if k != Positions {
		return n
	}
	for ; freq > 0 && n < len(b); n++ {
		if b[n] < 0x80 {
			freq--
		}
	}
	return n
}

// appendSmall appends a document of a list that is too short to be packed;
// gap is its distance to the one before, less 1.
func appendSmall(b []byte, k Kind, gap, freq uint32) []byte {
	switch {
	case k == Docs:
		return binary.AppendUvarint(b, uint64(gap))
	case freq == 1:
		return binary.AppendUvarint(b, uint64(gap)<<1|1)
	}
	b = binary.AppendUvarint(b, uint64(gap)<<1)
	return binary.AppendUvarint(b, uint64(freq))
}
