// Package store keeps SOIF objects: by OID, by URL, and in the order of their
// changes. It is what a Gatherer, a Broker and a Replica keep and export, and
// Files is the tree they export it as.
//
// A change that Apply has acknowledged is synced to disk. Every change has a
// number, and Changes gives what changed after one, the latest state of each
// object, at a cost that does not depend on how much else is stored. Digest
// compares two collections without reading them.
//
// The package stores and finds; it does not fetch, interpret or search. The
// format on disk is described in segment.go (the objects) and index.go (the
// index, which can be deleted: Open makes it anew from the objects).
package store

import (
	"time"

	"harvest/gather/soif"
)

// An Entry is what the store knows of an object without reading it.
type Entry struct {
	OID     OID
	URL     string
	Type    string // the Type attribute, "" without one
	Size    int64  // bytes of the encoded object
	Seq     uint64 // number of the last change, refreshes included
	Body    uint64 // number of the last change that was not a refresh
	Updated time.Time
	TTL     time.Duration // 0 lives for ever
	Hash    [16]byte      // first bytes of the SHA-256 of the encoded object

	at    loc    // where it was when the entry was made
	atSeq uint64 // the change that is there, if it is not Seq
}

// Expires returns when the object's time to live ends; the zero Time is never.
func (e *Entry) Expires() time.Time {
	if e.TTL <= 0 {
		return time.Time{}
	}
	return e.Updated.Add(e.TTL)
}

// A Change is one thing to do to the store.
//
// Update stores Body, one encoded SOIF object, under OID. When Updated or TTL
// are zero they are taken from the object's Update-Time and Time-to-Live.
// Delete removes the object; one that is not there is no error and no change.
// Refresh gives the stored object a new Update-Time and, unless it is zero, a
// new Time-to-Live; one that is not there is an error that wraps fs.ErrNotExist.
// URL is only needed where there is no Body, and then only as a comment.
type Change struct {
	Op      soif.Op
	OID     OID
	URL     string
	Body    []byte
	Updated time.Time
	TTL     time.Duration
}

// A Record is the latest change of one object. Of a deleted object the Entry
// holds OID, URL, Seq, and in Updated the time of the deletion.
type Record struct {
	Op    soif.Op
	Entry Entry
}

// A Name is a child of a folder of the tree of URLs: a folder, or an object.
type Name struct {
	Name  string // as listed, `effective_go.soif`
	Dir   bool
	Entry Entry // of an object
}

// Stats are figures about a store.
type Stats struct {
	Objects    int64  // objects stored
	Bytes      int64  // their encoded size
	Disk       int64  // bytes of all files
	Dead       int64  // encoded size of what was replaced or deleted and not yet compacted
	Frames     int64  // frames in all segments
	Segments   int64  // segment files
	Tombstones int64  // deletions remembered
	Pending    int64  // changes not yet indexed
	Seq        uint64 // number of the last change
	Epoch      uint32
}
