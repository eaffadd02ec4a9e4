package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	iofs "io/fs"
	"iter"
	"math"
	"time"

	"go.etcd.io/bbolt"
)

// A ServerID names a server, a DocID a document, in the order in which they were
// met, from 1. Neither is used again.
type (
	ServerID uint32
	DocID    uint32
)

// State is where a document stands.
type State uint8

const (
	_        State = iota
	New            // never fetched
	Stored         // fetched and kept
	Broken         // never had, for failures
	Away           // moved elsewhere
	Vanished       // gone
	Barred         // excluded
	Heard          // linked to, and of a server that counts, but by no page of its root
	Folder         // not a document but a list of some: a folder, a menu, a group
)

var states = [...]string{"", "new", "stored", "failed", "moved", "gone", "excluded", "linked", "folder"}

func (s State) String() string { return states[s] }

// A Doc is what is known of a document.
type Doc struct {
	ID        DocID
	Server    ServerID
	URL       string
	State     State
	Root      uint64 // of RootID, 0 when it was asked for by its URL
	Depth     int
	Hops      int   // redirects that led here
	Parent    DocID // the page or folder in which it was met first, 0 for none
	Submitted int   // how often strangers asked for it
	InLinks   int   // documents of other servers that refer to it
	Inbound   int   // documents that do, of any

	Visit    uint64    // that dealt with it last
	Checked  time.Time // when its server last answered for it
	Handed   time.Time // when the Handler last had it
	Changed  time.Time // when the Handler last found it other than before; zero: not known
	Missing  time.Time // since when its server says that it is not there, though it is stored
	Size     int64
	Status   int
	Fails    int
	Print    uint64
	MD5      [16]byte
	ETag     string
	Modified string // Last-Modified as the server wrote it
	Why      string
	Life     time.Duration // of Page.Life and Page.Refresh when it was handed on last
	Refresh  time.Duration

	queued []byte // its order in the queue, nil when it is not there
}

// Queued reports whether the document is to be fetched out of its order.
func (d *Doc) Queued() bool { return len(d.queued) > 0 }

// Alias reports whether the document is another's: the address of a redirect, or
// a copy that names its original. Its only link leads there.
func (d *Doc) Alias() bool { return d.State == Away }

// RootID is how documents refer to their root.
func RootID(url string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(url))
	return max(h.Sum64(), 1)
}

// docVersion begins each record of a document.
const docVersion = 2

// Of a document that was never fetched the record ends after its path. Life and
// Refresh end the record of one that has some of its own.
const (
	wasTried = 1 << iota
	hasLife
)

// append adds the record of a document. root is the number that stands for its
// root, path what follows the server's origin in its URL.
func (d *Doc) append(b []byte, root int, path string) []byte {
	tried := d.Visit != 0 || d.State != New || d.Submitted != 0 || d.queued != nil || d.Hops != 0
	var set byte
	if tried {
		set = wasTried
	}
	if tried && (d.Life != 0 || d.Refresh != 0) {
		set |= hasLife
	}
	b = append(b, docVersion, byte(d.State), set)
	for _, n := range []uint64{uint64(d.Server), uint64(root), uint64(d.Depth), uint64(d.Parent)} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendString(b, path)
	if !tried {
		return b
	}
	for _, n := range []uint64{uint64(d.Hops), uint64(d.Submitted), d.Visit, unix(d.Checked), unix(d.Handed), unix(d.Changed), unix(d.Missing),
		uint64(d.Size + 1), uint64(d.Status), uint64(d.Fails)} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, d.Print)
	b = append(b, d.MD5[:]...)
	for _, s := range []string{d.ETag, d.Modified, d.Why, string(d.queued)} {
		b = appendString(b, s)
	}
	if set&hasLife != 0 {
		b = binary.AppendUvarint(b, uint64(d.Life/time.Second))
		b = binary.AppendUvarint(b, uint64(d.Refresh/time.Second))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// A reader takes a record apart. Past the first thing that is not there, all is
// zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	n, used := binary.Uvarint(r.b)
	if used <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[used:]
	return n
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// seconds is a time of up to 68 years.
func (r *reader) seconds() time.Duration {
	n := r.uint()
	r.bad = r.bad || n > math.MaxInt32
	return time.Duration(n) * time.Second
}

func (r *reader) string() string { return string(r.bytes(r.uint())) }

func (r *reader) fixed() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// decodeDoc reads a record; nothing of d refers to b. The URL is the path only.
func decodeDoc(b []byte) (d Doc, root int, err error) {
	if len(b) < 3 || b[0] != docVersion || b[1] == 0 || int(b[1]) >= len(states) || b[2] > wasTried|hasLife || b[2] == hasLife {
		return d, 0, errRecord
	}
	d.State = State(b[1])
	r := &reader{b: b[3:]}
	d.Server, root = ServerID(r.uint()), int(r.uint())
	d.Depth, d.Parent = int(r.uint()), DocID(r.uint())
	d.URL = r.string()
	if b[2]&wasTried != 0 {
		d.Hops, d.Submitted, d.Visit = int(r.uint()), int(r.uint()), r.uint()
		d.Checked, d.Handed = fromUnix(r.uint()), fromUnix(r.uint())
		d.Changed, d.Missing = fromUnix(r.uint()), fromUnix(r.uint())
		d.Size, d.Status, d.Fails, d.Print = int64(r.uint())-1, int(r.uint()), int(r.uint()), r.fixed()
		copy(d.MD5[:], r.bytes(16))
		d.ETag, d.Modified, d.Why = r.string(), r.string(), r.string()
		if q := r.string(); q != "" {
			d.queued = []byte(q)
		}
		if b[2]&hasLife != 0 {
			d.Life, d.Refresh = r.seconds(), r.seconds()
		}
	}
	if r.bad || len(r.b) != 0 {
		return Doc{}, 0, errRecord
	}
	return d, root, nil
}

// decode reads a record with what memory knows of it. mu is held.
func (f *DB) decode(k, v []byte) (Doc, error) {
	d, root, err := decodeDoc(v)
	if err == nil && (len(k) != 4 || int(d.Server) > len(f.servers) || d.Server == 0 || root > len(f.rootIDs)) {
		err = errRecord
	}
	if err != nil {
		return Doc{}, fmt.Errorf("document %x: %w", k, err)
	}
	d.ID = DocID(binary.BigEndian.Uint32(k))
	d.URL = f.servers[d.Server-1].Origin + d.URL
	if root > 0 {
		d.Root = f.rootIDs[root-1]
	}
	return d, nil
}

func docKey(id DocID) []byte { return binary.BigEndian.AppendUint32(make([]byte, 0, 4), uint32(id)) }

// read reads the record of a document. A damaged one is as good as none: it is
// fetched anew.
func (f *DB) read(tx *bbolt.Tx, id DocID) (Doc, bool) {
	key := docKey(id)
	v := tx.Bucket(docBucket).Get(key)
	if v == nil {
		return Doc{}, false
	}
	f.mu.Lock()
	d, err := f.decode(key, v)
	f.mu.Unlock()
	return d, err == nil
}

// lookup finds a document by its URL.
func (f *DB) lookup(tx *bbolt.Tx, url string) (Doc, bool) {
	id := f.known.get(f.known.hash(url))
	if id == 0 {
		return Doc{}, false
	}
	d, ok := f.read(tx, id)
	return d, ok && d.URL == url
}

// Knows reports whether there may be something known of a document, without a
// look at the database. When it is false there is nothing.
func (f *DB) Knows(url string) bool { return f.known.get(f.known.hash(url)) != 0 }

// Lookup returns what is known of a document, an error that wraps
// iofs.ErrNotExist when it is nothing.
func (f *DB) Lookup(url string) (Doc, error) {
	id := f.known.get(f.known.hash(url))
	if id == 0 {
		return Doc{}, fmt.Errorf("%s: %w", url, iofs.ErrNotExist)
	}
	d, err := f.Doc(id)
	if err != nil || d.URL != url {
		return Doc{}, fmt.Errorf("%s: %w", url, iofs.ErrNotExist)
	}
	return d, nil
}

// Doc returns a document by its ID, an error that wraps iofs.ErrNotExist when
// there is none.
func (f *DB) Doc(id DocID) (d Doc, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		var ok bool
		if d, ok = f.read(tx, id); !ok {
			return fmt.Errorf("document %d: %w", id, iofs.ErrNotExist)
		}
		r := getRef(tx.Bucket(inBucket), uint32(id))
		d.InLinks, d.Inbound = r.others, r.all
		return nil
	})
	return d, err
}

// Documents yields what is known of all documents, in the order of their IDs, or
// of those after the one that has a URL.
func (f *DB) Documents(ctx context.Context, after string) iter.Seq2[Doc, error] {
	from := DocID(0)
	if after != "" {
		d, err := f.Lookup(after)
		if err != nil {
			return func(yield func(Doc, error) bool) { yield(Doc{}, err) }
		}
		from = d.ID + 1
	}
	var in refReader
	return scanned(ctx, f, docBucket, docKey(from), func(tx *bbolt.Tx, k, v []byte) (Doc, error) {
		f.mu.Lock()
		d, err := f.decode(k, v)
		f.mu.Unlock()
		if err == nil {
			r := in.get(tx, uint32(d.ID))
			d.InLinks, d.Inbound = r.others, r.all
		}
		return d, err
	})
}

// Same returns the documents stored whose bytes had this MD5, ascending.
func (f *DB) Same(md5 [16]byte) (same []DocID, err error) {
	return same, f.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(sumBucket).Cursor()
		for k, _ := c.Seek(md5[:]); len(k) == 20 && [16]byte(k) == md5; k, _ = c.Next() {
			same = append(same, DocID(binary.BigEndian.Uint32(k[16:])))
		}
		return nil
	})
}
