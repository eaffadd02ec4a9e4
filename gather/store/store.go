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
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
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

// Options are how a store is kept. The zero value is right for nearly all.
type Options struct {
	NoSync  bool          // do not sync: only for what can be made again
	Frame   int           // bytes of SOIF in a full frame, 32 KiB
	Segment int64         // bytes of a segment file, 128 MiB
	Pending int           // changes held in memory before they are indexed, 8192
	Horizon time.Duration // how long deletions are remembered, 720h
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

var errSkeleton = errors.New("store: being written")

// A Store is a collection of objects in a directory. All methods may be called
// concurrently.
type Store struct {
	lg *slog.Logger
}

// Open opens the store in dir and makes it if it is not there. Only one process
// can have it open; a second gets an error that wraps EBUSY.
func Open(dir string, lg *slog.Logger, opt Options) (*Store, error) { return nil, errSkeleton }

// Close indexes what is pending and closes the files. No other method may be
// running; snapshots that are still open go on to work.
func (s *Store) Close() error { return errSkeleton }

// Apply makes the changes, in order and all or none, and returns the number of
// the last one. When it returns nil they are on disk. Concurrent callers share
// the wait for the disk. A change that cannot be made (an object that is no
// SOIF, a refresh of what is not there) refuses the whole call.
func (s *Store) Apply(ctx context.Context, changes []Change) (seq uint64, err error) {
	return 0, errSkeleton
}

// Get returns the encoded object, in memory of the caller's, and its entry. One
// that is not there wraps fs.ErrNotExist, one whose frame is damaged ErrDamaged.
func (s *Store) Get(oid OID) ([]byte, Entry, error) { return nil, Entry{}, errSkeleton }

// Stat returns the entry of an object.
func (s *Store) Stat(oid OID) (Entry, error) { return Entry{}, errSkeleton }

// StatURL returns the entry of the object with a URL. Where several gatherers
// have it, the one with the least OID.
func (s *Store) StatURL(url string) (Entry, error) { return Entry{}, errSkeleton }

// Scan yields the objects whose OIDs begin with the hex digits of prefix and
// follow those of after, in order. Objects that come or go meanwhile may be
// there or not. It ends after the first error.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, errSkeleton) }
}

// Names yields the children of a folder of the tree of URLs that follow the
// name after, in order of their names. A folder costs one seek however much is
// below it. dir is "" or slash-separated names, such as `https/go.dev/doc`.
func (s *Store) Names(ctx context.Context, dir, after string) iter.Seq2[Name, error] {
	return func(yield func(Name, error) bool) { yield(Name{}, errSkeleton) }
}

// Resolve looks a path of the tree of URLs up.
func (s *Store) Resolve(path string) (Name, error) { return Name{}, errSkeleton }

// Changes yields the latest change of each object that changed after the
// cursor, in order. The zero Cursor is before everything and yields no
// deletions. Cursors that ParseCursor refuses are refused here too.
func (s *Store) Changes(ctx context.Context, after Cursor) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { yield(Record{}, errSkeleton) }
}

// Cursor returns the cursor of this moment: after it there are no changes yet.
func (s *Store) Cursor() Cursor { return Cursor{} }

// ParseCursor reads a cursor: `0`, what Cursor.String gave, or a time.
func (s *Store) ParseCursor(text string) (Cursor, error) { return Cursor{}, errSkeleton }

// WriteSince writes the changes after a cursor as an update stream: deletions,
// refreshes, updates, and the cursor to go on from.
func (s *Store) WriteSince(ctx context.Context, w io.Writer, after Cursor) error {
	return errSkeleton
}

// WriteSOIF writes the collection as it is at the call as one stream of SOIF.
func (s *Store) WriteSOIF(ctx context.Context, w io.Writer) error { return errSkeleton }

// WriteZstd is WriteSOIF in zstd frames, which are copied as they are stored.
func (s *Store) WriteZstd(ctx context.Context, w io.Writer) error { return errSkeleton }

// Wait returns the number of the last change as soon as it is more than after.
func (s *Store) Wait(ctx context.Context, after uint64) (uint64, error) { return 0, errSkeleton }

// Digest returns the Merkle digest of the objects whose OIDs begin with prefix,
// of 0, 2 or 4 hex digits.
func (s *Store) Digest(prefix string) (Digest, error) { return Digest{}, errSkeleton }

// Count returns the number of objects.
func (s *Store) Count() int64 { return 0 }

// Stats returns figures as of now.
func (s *Store) Stats() (Stats, error) { return Stats{}, errSkeleton }

// Expire deletes the objects whose time to live ended before now, and returns
// how many.
func (s *Store) Expire(ctx context.Context, now time.Time) (n int, err error) {
	return 0, errSkeleton
}

// Compact gives back the space of what was replaced and deleted, joins small
// frames, and forgets deletions past Options.Horizon. The store serves reads and
// changes meanwhile.
func (s *Store) Compact(ctx context.Context) error { return errSkeleton }
