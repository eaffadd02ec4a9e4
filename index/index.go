// Package index finds documents by their words. It defines what a broker
// hands to an engine and gets back (Doc, Options, Results, Engine), and holds
// one small engine: Open.
//
// The engine keeps, for each attribute, its words with the documents and
// positions they stand at, in immutable segments; segment.go describes the
// file, manifest.go what makes a set of them one index. All of it is derived:
// whoever owns the documents can delete the directory and apply them again.
//
// What it does not do: stems, errors in spelling, patterns, upper and lower
// case, stop words, blocks. Engines that do go behind the same interface and
// pass the same suite, index/enginetest.
package index

import (
	"context"
	"encoding/hex"
	"errors"

	"harvest/index/query"
)

// An ID names a document. The engine only compares IDs.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// A Field is one value of one attribute. Names are compared in lower case.
type Field struct {
	Name string
	Text string
}

// A Doc is what is found: the values of its attributes. A name may come more
// than once; a phrase never runs from one value into another.
type Doc struct {
	ID     ID
	Fields []Field
}

// Options of a search. The zero value asks for every hit, in every attribute.
type Options struct {
	// Weight says how much a word counts in an attribute. Where it gives 0,
	// a query that does not name the attribute does not look. Nil gives 1.
	Weight func(attribute string) float64

	Offset int // hits to leave out at the front
	Limit  int // hits to give after those; 0: all
	Why    bool
}

// Weigh is o.Weight, or 1.
func (o Options) Weigh(attribute string) float64 {
	if o.Weight == nil {
		return 1
	}
	return o.Weight(attribute)
}

// Results of a search.
type Results struct {
	Total int      // documents that match, whatever Offset and Limit
	Hits  []Hit    // best first; equal scores by ID
	Plan  []string // what the engine did, for people: a step a line
}

// A Hit is a document that matches.
type Hit struct {
	ID    ID
	Score float64
	Why   []Part // if it was asked for; Score is the sum of theirs
}

// A Part of a score: what one word or phrase of the query gave.
type Part struct {
	Query  string  // the word or phrase, with its attribute if it names one
	Attr   string  // the attribute it stands in; "" sums up all of them
	Count  int     // how often it stands there
	Weight float64 // of the attribute
	Docs   int     // documents in the index that have the word or phrase
	Score  float64 // 0 but in the line that sums up
}

// An Attribute is one that documents have.
type Attribute struct {
	Name     string
	Docs     int // documents with it
	Distinct int // different values
}

// Stats of an engine.
type Stats struct {
	Docs     int
	Deleted  int   // documents whose space a merge will give back
	Segments int   // files or whatever it merges
	Bytes    int64 // on disk
	Text     int64 // words in the documents, counted with repetition
}

// An Engine is an index in a directory of its own. Its methods may be called
// concurrently; a search sees all of an Apply or nothing of it.
type Engine interface {
	// Apply removes the documents named in deletes, then adds puts, each in
	// place of the one with its ID, the last if an ID comes twice, and sets
	// the mark. All of it is durable and searchable when it returns nil, and
	// nothing of it when it does not. It needs memory of a few times the
	// text of puts.
	Apply(ctx context.Context, puts []Doc, deletes []ID, mark string) error

	// Mark is what the last Apply said, "" for a new index.
	Mark() string

	// Search finds the documents that q matches.
	Search(ctx context.Context, q query.Node, opt Options) (Results, error)

	// Attributes lists the attributes of all documents by name.
	Attributes(ctx context.Context) ([]Attribute, error)

	Stats() Stats
	Close() error
}

// ErrCorrupt is the class of an error about files that do not hold what was
// written. The way out is to delete the directory and apply all documents.
var ErrCorrupt = errors.New("index is corrupt")
