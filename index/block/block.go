// Package block is the index of Glimpse: a dictionary of all words, and for
// each word not where it stands but roughly where, so that the whole takes two
// or three parts in a hundred of the text. What the index alone cannot decide
// is decided on the text, which Settings.Source gives again. Answers are
// exact: each part of a query is evaluated to documents that match for sure
// and documents that may, NOT exchanges the two, and only the documents between
// them are read. Search says in Results.Plan what it looked up and read.
//
// segment.go describes the files.
package block

import "fmt"

// A Grain is how finely the index addresses text.
type Grain int

const (
	Tiny   Grain = iota // rare words by document, common ones by group of documents
	Small               // all words by document
	Medium              // by document and stretch of it
)

func (g Grain) String() string {
	switch g {
	case Tiny:
		return "tiny"
	case Small:
		return "small"
	case Medium:
		return "medium"
	}
	return fmt.Sprintf("grain %d", int(g))
}

// ParseGrain reads what String gives.
func ParseGrain(name string) (Grain, bool) {
	for g := Tiny; g <= Medium; g++ {
		if g.String() == name {
			return g, true
		}
	}
	return 0, false
}
