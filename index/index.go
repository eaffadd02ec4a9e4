// Package index finds documents by their words. It defines what a broker
// hands to an engine and gets back (Doc, Options, Results, Engine), says what
// words are (Words, Fold) and what values are (Keys), decides whole queries on a
// document's text (Compile), and holds the ranked engine: Open.
//
// That engine keeps the words of all attributes with the documents and
// positions they stand at, and the values, in immutable segments, which
// inverters (invert.go) make of batches of documents and merge.go makes of
// other segments. segment.go describes the file, manifest.go what makes a set of
// them one index; a search goes over the segments of one view, which never
// changes. All of it is derived: whoever owns the documents can delete the
// directory and apply them again. What an index alone cannot decide (text
// patterns, case, phrases without positions) is decided on the text that
// Settings.Source gives.
//
// What it does not do: keep the text, or share a directory between processes.
// Package index/block has Glimpse's engine, which is a tenth of the size; both
// pass the suite of index/enginetest.
package index

import (
	"context"
	"encoding/hex"
	"iter"
	"log/slog"

	"harvest/index/match"
	"harvest/index/query"
	"harvest/index/segfile"
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

// Settings of an engine. The zero value is an index with positions that
// keeps the values of all attributes.
type Settings struct {
	NoPositions bool // smaller; phrases and near are then decided on the text
	NoNumbers   bool // words of digits alone are left out

	// Memory bounds what building and merging take beside the documents in
	// hand, in bytes; 0: 128 MB. Workers bounds how many processors building
	// takes; 0: all.
	Memory  int64
	Workers int

	// Keys tells the attributes whose whole values are kept: for comparisons,
	// Values and order. Nil: all. Values of more than MaxKey bytes are not.
	Keys func(attribute string) bool

	// Source gives the text of documents again, for what an index alone
	// cannot decide. Nil: queries that need it are refused.
	Source Source

	Log *slog.Logger // of what goes on in the background; nil: nothing

	// Merged hears, in the background, how merging ended, each time: nil, or
	// why there are more segments than there should be. Nil: nobody does.
	Merged func(err error)
}

// MaxKey is the longest value that has a key, in bytes.
const MaxKey = 256

// A Source gives documents' text again.
type Source interface {
	// Text calls yield for the documents with their places in ids, in any
	// order, until yield returns false. A document that is gone is left
	// out. The fields are yield's until it returns.
	Text(ctx context.Context, ids []ID, yield func(i int, fields []Field) bool) error
}

// Rank is how hits are ordered. Equals follow one another by ID.
type Rank int

const (
	RankBM25   Rank = iota // by what their words say; a query without operators: those with all words first
	RankVector             // by the vector space formula of WebCrawler's first system
	RankNone               // by nothing: as the index has them
	RankValue              // by the value of the attribute Options.Sort
)

// Options of a search. The zero value asks for every hit, in every attribute.
type Options struct {
	// Weight says how much a word counts in an attribute. Where it gives 0,
	// a query that does not name the attribute does not look. Nil gives 1.
	Weight func(attribute string) float64

	Offset int  // hits to leave out at the front
	Limit  int  // hits to give after those; 0: all
	Count  bool // have Total exact though Limit would do with less

	Case   bool        // words are to stand as they are written
	Errors int         // in spelling, that every word of the query allows
	Costs  match.Costs // of the kinds of errors; 0: 1

	Rank    Rank
	Sort    string // attribute, for RankValue
	Reverse bool   // largest value first

	// Stop tells the words that a query without operators goes without,
	// unless it has no other. Stem, if it is not nil, has words that it maps
	// to the same stem found for one another.
	Stop func(word string) bool
	Stem func(word string) string

	External External // weights from outside, or nil
	Among    *Among   // what words are rare among, or nil: this index
	Feedback int      // this many of the best hits name more words to look for

	Limits Limits
	Why    bool  // take the scores apart
	Plan   bool  // say what was done
	Buf    []Hit // memory for Results.Hits, or nil
}

// External weighs documents by something else than their words: links, age.
type External interface {
	Weight(id ID) float64 // from 0 to 1
}

// Limits of what a search may take; 0: the engine's own.
type Limits struct {
	Terms int   // words a pattern may stand for
	Bytes int64 // of text read and searched through
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
	Total   int      // documents that match, whatever Offset and Limit
	AtLeast bool     // there are Total or more
	Cut     string   // the limit that left some hits unfound, or ""
	Hits    []Hit    // in order of rank
	Plan    []string // what the engine did, for people: a step a line
}

// A Hit is a document that matches.
type Hit struct {
	ID    ID
	Score float64
	Why   []Part // if it was asked for; Score is the sum of theirs
}

// A Part of a score: what one word, phrase or pattern of the query gave, or
// something else. Lines about its attributes come before the one that sums up.
type Part struct {
	Query  string  // the word or phrase, with its attribute if it names one
	Attr   string  // the attribute it stands in; "" sums up all of them
	Count  int     // how often it stands there
	Weight float64 // of the attribute
	Docs   int     // documents that have the word; of a phrase, its rarest word
	IDF    float64 // what that makes of it
	Words  int     // of the document
	Score  float64 // 0 but in the line that sums up
}

// An Attribute is one that documents have.
type Attribute struct {
	Name     string
	Docs     int // documents with it
	Distinct int // different values, of those that have keys
}

// A Value is one that an attribute has, as a key: folded, white space collapsed.
type Value struct {
	Text string
	Docs int // documents with it
}

// A Suggestion is a word of the index that is near another in spelling.
type Suggestion struct {
	Word   string
	Errors int
	Docs   int // documents with it
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
	// nothing of it when it does not; an error that puts gives is returned.
	// It keeps nothing of a Doc after the next is asked for.
	Apply(ctx context.Context, puts iter.Seq2[*Doc, error], deletes []ID, mark string) error

	// Mark is what the last Apply said, "" for a new index.
	Mark() string

	// Search finds the documents that q matches.
	Search(ctx context.Context, q query.Node, opt Options) (Results, error)

	// Attributes lists the attributes of all documents by name.
	Attributes(ctx context.Context) ([]Attribute, error)

	// Values calls yield for the values of an attribute in order, beginning
	// behind after, until it returns false.
	Values(ctx context.Context, attribute, after string, yield func(Value) bool) error

	// Suggest gives at most n words near in spelling, the best first.
	Suggest(ctx context.Context, word string, n int) ([]Suggestion, error)

	// Check reads all files and names what is damaged, as an ErrCorrupt.
	Check(ctx context.Context) error

	Stats() Stats
	Close() error
}

// A Merger is an Engine that merges its segments by itself, a few at a time, and can
// be told to make one of all.
type Merger interface {
	// MergeAll returns when that is done. Searches and Applies go on meanwhile;
	// what is applied is not in that segment.
	MergeAll(ctx context.Context) error
}

// Docs is a sequence of documents for Apply.
func Docs(docs []Doc) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		for i := range docs {
			if !yield(&docs[i], nil) {
				return
			}
		}
	}
}

// ErrCorrupt is the class of an error about files that do not hold what was
// written. The way out is to delete the directory and apply all documents.
var ErrCorrupt = segfile.ErrCorrupt

// ErrSettings is the class of an error about an index that was made with other
// settings. The way out is the same.
var ErrSettings = segfile.ErrSettings
