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

import "errors"

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

// An Encoder makes lists, one after the other. The zero value must be Reset.
type Encoder struct{}

// Reset begins a list. norms[d] is the norm of document d, for the impacts; it
// is only read. Without norms all are taken to be 0.
func (e *Encoder) Reset(k Kind, norms []byte) { panic("posting: not yet") }

// Add adds a document, whose number is above that of the one before, with its
// positions: the first, then of each how far it is from the one before. There
// is at least one. The slice is not kept.
func (e *Encoder) Add(doc uint32, gaps []uint32) { panic("posting: not yet") }

// AddFreq adds a document to a list that has no positions; freq is at least 1.
func (e *Encoder) AddFreq(doc, freq uint32) { panic("posting: not yet") }

// Merge adds what r has from here on, a list of the same kind just Reset. The
// document d becomes number[d], or is left out if that is End; the numbers
// that are not End ascend. If number is nil, d becomes d + shift. Blocks of
// which all documents stay are copied as they are.
func (e *Encoder) Merge(r *Reader, number []uint32, shift uint32) error { panic("posting: not yet") }

// Count is the number of documents added since Reset.
func (e *Encoder) Count() int { panic("posting: not yet") }

// TakePositions gives the positions coded since it was last called, which are
// the next bytes of the second run. They are valid until the next call to e.
// Who cannot hold those of a long list calls it now and then.
func (e *Encoder) TakePositions() []byte { panic("posting: not yet") }

// Finish ends the list and gives the first run, valid until the next Reset.
// TakePositions has the rest of the second then.
func (e *Encoder) Finish() (docs []byte) { panic("posting: not yet") }

// AppendOne appends the list of one document, that of Add, to b. A list
// without positions has gaps of which only the number counts; Docs has none.
func AppendOne(b []byte, k Kind, doc uint32, freq uint32, gaps []uint32) []byte {
	panic("posting: not yet")
}

// A Reader goes through a list. The zero value must be Reset. Nothing here
// allocates but Positions, which grows dst. A Reader is some 2 KB; do not copy one in use.
type Reader struct{}

// Reset begins a list of count documents, all of them below limit. The Reader
// reads the bytes in place, never past their ends.
func (r *Reader) Reset(k Kind, docs, positions []byte, count int, limit uint32) {
	panic("posting: not yet")
}

// ResetOne begins the list that AppendOne put at the beginning of b, and gives
// its length in b.
func (r *Reader) ResetOne(k Kind, b []byte, limit uint32) (n int) { panic("posting: not yet") }

// Next goes to the next document and gives its number; at first to the first.
func (r *Reader) Next() uint32 { panic("posting: not yet") }

// Advance goes to the first document that is not below target and not before
// the one at hand, and gives its number. It may stay where it is.
func (r *Reader) Advance(target uint32) uint32 { panic("posting: not yet") }

// Doc is what the last Next or Advance gave.
func (r *Reader) Doc() uint32 { panic("posting: not yet") }

// Freq is how often Doc has the term, 1 in a list of kind Docs.
func (r *Reader) Freq() uint32 { panic("posting: not yet") }

// Positions appends the positions of Doc, ascending, to dst. Only its own are decoded.
func (r *Reader) Positions(dst []uint32) []uint32 { panic("posting: not yet") }

// Shallow tells about the block that Advance(target) would look into, without
// going there: its last document and its impacts, valid until the next call.
// After the last block it gives End and none. target does not go back below Doc.
func (r *Reader) Shallow(target uint32) (last uint32, impacts []Impact) { panic("posting: not yet") }

// ShallowWide is Shallow for a stretch of 32 blocks.
func (r *Reader) ShallowWide(target uint32) (last uint32, impacts []Impact) {
	panic("posting: not yet")
}

// MaxImpacts are those of the whole list, valid until the next Reset.
func (r *Reader) MaxImpacts() []Impact { panic("posting: not yet") }

// Block is the rest of the block at hand from Doc on, with its frequencies, nil
// for kind Docs. Both are valid until the Reader moves and not to be written to.
func (r *Reader) Block() (docs, freqs []uint32) { panic("posting: not yet") }

// NextBlock goes to the first document of the next block, as Next does.
func (r *Reader) NextBlock() uint32 { panic("posting: not yet") }

// Count is the number of documents of the list.
func (r *Reader) Count() int { panic("posting: not yet") }

// Err tells why the list ended early, wrapping ErrDamaged.
func (r *Reader) Err() error { panic("posting: not yet") }
