package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	iofs "io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// A DB is the durable memory of a crawl: one bbolt file with the buckets
//
//	meta   name -> value: "format", checked first; "visit" and its "counts"
//	doc    URL -> what is known of the document
//	queue  origin NUL order -> flags, URL: what is still to be fetched
//	host   origin -> robots.txt and the time of the next request
//
// A document that is being fetched is still in the queue. It leaves it in the
// transaction that writes its record and its links, which comes after the
// Handler has it: so there is nothing to repair after a crash, and at worst a
// document is fetched twice.
//
// For file trees only the root is in the queue. What its folders hold is
// compared with doc, folder by folder, which costs less than remembering the
// folders would.
type DB struct {
	db *bbolt.DB
	lg *slog.Logger

	mu    sync.Mutex
	visit *visit // the one that runs, or nil
}

// format is the first thing in a frontier. History: 1, first.
const format = "harvest frontier 1"

var (
	metaBucket  = []byte("meta")
	docBucket   = []byte("doc")
	queueBucket = []byte("queue")
	hostBucket  = []byte("host")
)

// OpenDB opens the frontier kept in a file, or begins one.
func OpenDB(path string, lg *slog.Logger) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o644, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("frontier %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{metaBucket, docBucket, queueBucket, hostBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		m := tx.Bucket(metaBucket)
		switch have := m.Get([]byte("format")); {
		case have == nil:
			return m.Put([]byte("format"), []byte(format))
		case string(have) != format:
			return fmt.Errorf("format '%s', not '%s'", clip(string(have)), format)
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("frontier %s: %w", path, err)
	}
	return &DB{db: db, lg: lg}, nil
}

// Close closes the frontier, once no visit runs.
func (f *DB) Close() error { return f.db.Close() }

// State is where a document stands.
type State uint8

const (
	_        State = iota
	New            // in the queue, never fetched
	Stored         // fetched and kept
	Broken         // never had, for failures
	Away           // moved elsewhere
	Vanished       // gone
	Barred         // excluded
)

var states = [...]string{"", "new", "stored", "failed", "moved", "gone", "excluded"}

func (s State) String() string { return states[s] }

// A ServerID names a server, a DocID a document, in the order in which they were
// met, from 1. Neither is used again.
type (
	ServerID uint32
	DocID    uint32
)

// A Doc is what is known of a document.
type Doc struct {
	ID        DocID
	Server    ServerID
	URL       string
	State     State
	Root      uint64 // of RootID, 0 when it was asked for by its URL
	Depth     int
	Hops      int // redirects that led here
	Visit     uint64
	Checked   time.Time // when its server last answered for it
	Handed    time.Time // when the Handler last had it
	Size      int64
	Status    int
	Fails     int
	Print     uint64
	MD5       [16]byte
	ETag      string
	Modified  string // Last-Modified as the server wrote it
	Why       string
	Parent    DocID // the page or folder in which it was met first, 0 for none
	InLinks   int   // links to it from documents of other servers
	Submitted int   // how often it was submitted

	queued []byte // its key in the queue, nil when it is not there
}

// Queued reports whether the document is to be fetched.
func (d *Doc) Queued() bool { return len(d.queued) > 0 }

// RootID is how documents refer to their root.
func RootID(url string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(url))
	return max(h.Sum64(), 1)
}

func (d *Doc) append(b []byte) []byte {
	b = append(b, 1, byte(d.State)) // version of the record
	for _, n := range []uint64{d.Root, uint64(d.Depth), uint64(d.Hops), d.Visit, unix(d.Checked), unix(d.Handed),
		uint64(d.Size), uint64(d.Status), uint64(d.Fails), d.Print} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, d.MD5[:]...)
	for _, s := range []string{d.ETag, d.Modified, d.Why, string(d.queued)} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

var errRecord = errors.New("damaged record")

// decodeDoc reads a record; nothing of d refers to b.
func decodeDoc(url string, b []byte) (d Doc, err error) {
	if len(b) < 2 || b[0] != 1 || int(b[1]) >= len(states) {
		return d, fmt.Errorf("document %s: %w", url, errRecord)
	}
	d.URL, d.State = url, State(b[1])
	d.ID, d.Server = DocID(thinID(url)), ServerID(thinID(Origin(url)))
	b = b[2:]
	var n [10]uint64
	for i := range n {
		v, used := binary.Uvarint(b)
		if used <= 0 {
			return d, fmt.Errorf("document %s: %w", url, errRecord)
		}
		n[i], b = v, b[used:]
	}
	d.Root, d.Depth, d.Hops, d.Visit = n[0], int(n[1]), int(n[2]), n[3]
	d.Checked, d.Handed = fromUnix(n[4]), fromUnix(n[5])
	d.Size, d.Status, d.Fails, d.Print = int64(n[6]), int(n[7]), int(n[8]), n[9]
	if len(b) < 16 {
		return d, fmt.Errorf("document %s: %w", url, errRecord)
	}
	copy(d.MD5[:], b)
	b = b[16:]
	var s [4]string
	for i := range s {
		v, used := binary.Uvarint(b)
		if used <= 0 || v > uint64(len(b)-used) {
			return d, fmt.Errorf("document %s: %w", url, errRecord)
		}
		s[i], b = string(b[used:used+int(v)]), b[used+int(v):]
	}
	d.ETag, d.Modified, d.Why = s[0], s[1], s[2]
	if s[3] != "" {
		d.queued = []byte(s[3])
	}
	return d, nil
}

func unix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.Unix())
}

func fromUnix(n uint64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(int64(n), 0).UTC()
}

// getDoc reads one record. A damaged one is as good as none: it is fetched anew.
func getDoc(tx *bbolt.Tx, url string) (Doc, bool) {
	b := tx.Bucket(docBucket).Get([]byte(url))
	if b == nil {
		return Doc{URL: url}, false
	}
	d, err := decodeDoc(url, b)
	if err != nil {
		return Doc{URL: url}, false
	}
	return d, true
}

func putDoc(tx *bbolt.Tx, d *Doc) error {
	return tx.Bucket(docBucket).Put([]byte(d.URL), d.append(make([]byte, 0, 160)))
}

// Flags of an entry of the queue.
const (
	byHand  = 1 << iota // asked for by its URL: no links are followed
	anyhow              // whatever is known of it
	seedURL             // a root or leaf
)

// enqueue puts a document into the queue, or leaves it where it is, and writes
// its record.
func enqueue(tx *bbolt.Tx, d *Doc, order Search, flags byte) error {
	q := tx.Bucket(queueBucket)
	if d.queued != nil && flags&(byHand|anyhow) != 0 { // with other flags, at the front
		if err := q.Delete(d.queued); err != nil {
			return err
		}
		d.queued = nil
	}
	if d.queued == nil {
		seq, err := q.NextSequence()
		if err != nil {
			return err
		}
		depth := uint32(d.Depth)
		if flags != 0 {
			depth = 0
		} else if order == Depth {
			depth, seq = ^depth, ^seq
		}
		key := append([]byte(Origin(d.URL)), 0)
		key = binary.BigEndian.AppendUint32(key, depth)
		d.queued = binary.BigEndian.AppendUint64(key, seq)
		if err := q.Put(d.queued, append([]byte{flags}, d.URL...)); err != nil {
			return err
		}
	}
	return putDoc(tx, d)
}

func dequeue(tx *bbolt.Tx, d *Doc) error {
	if d.queued == nil {
		return nil
	}
	err := tx.Bucket(queueBucket).Delete(d.queued)
	d.queued = nil
	return err
}

// A Visited is what is known of the last visit.
type Visited struct {
	Number  uint64
	Open    bool // it was cut off, or runs
	Queued  bool // it takes only what is queued
	Force   bool
	Started time.Time
	Ended   time.Time // of the last that came to its end

	seeded bool
}

func (s *Visited) append(b []byte) []byte {
	var bits uint64
	for i, on := range []bool{s.Open, s.Queued, s.Force, s.seeded} {
		if on {
			bits |= 1 << i
		}
	}
	for _, n := range []uint64{s.Number, bits, unix(s.Started), unix(s.Ended)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func getVisited(tx *bbolt.Tx) (s Visited) {
	b := tx.Bucket(metaBucket).Get([]byte("visit"))
	if len(b) != 32 {
		return s
	}
	bits := binary.BigEndian.Uint64(b[8:])
	return Visited{
		Number: binary.BigEndian.Uint64(b),
		Open:   bits&1 != 0, Queued: bits&2 != 0, Force: bits&4 != 0, seeded: bits&8 != 0,
		Started: fromUnix(binary.BigEndian.Uint64(b[16:])),
		Ended:   fromUnix(binary.BigEndian.Uint64(b[24:])),
	}
}

func putVisited(tx *bbolt.Tx, s *Visited) error {
	return tx.Bucket(metaBucket).Put([]byte("visit"), s.append(nil))
}

// Visited tells of the last visit.
func (f *DB) Visited() (s Visited, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		s = getVisited(tx)
		return nil
	})
	return s, err
}

// putCounts keeps what a visit has done, and how long that took.
func putCounts(tx *bbolt.Tx, c *Counts, took time.Duration) error {
	b := binary.AppendVarint(nil, int64(took))
	for _, n := range c.all() {
		b = binary.AppendVarint(b, n.Load())
	}
	return tx.Bucket(metaBucket).Put([]byte("counts"), b)
}

// Counted fills in what the last visit had done when it ended or was cut off,
// and tells how long that took. Where nothing is known c is left alone.
func (f *DB) Counted(c *Counts) (took time.Duration, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket).Get([]byte("counts"))
		all := c.all()
		var n []int64
		for len(b) > 0 && len(n) <= len(all) {
			v, used := binary.Varint(b)
			if used <= 0 {
				return nil // damaged: as good as none
			}
			n, b = append(n, v), b[used:]
		}
		if len(n) != 1+len(all) {
			return nil
		}
		took = time.Duration(n[0])
		for i, v := range n[1:] {
			all[i].Store(v)
		}
		return nil
	})
	return took, err
}

// Add queues canonical URLs to be fetched whatever is known of them, by the
// visit that runs or by the next. A document that belongs to no root stays until
// it is forgotten.
func (f *DB) Add(ctx context.Context, urls ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fresh []string
	err := f.db.Update(func(tx *bbolt.Tx) error {
		fresh = nil
		for _, u := range urls {
			d, known := getDoc(tx, u)
			if !known {
				d.State = New
			}
			if !d.Queued() {
				fresh = append(fresh, u)
			}
			if err := enqueue(tx, &d, Breadth, byHand|anyhow); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && f.visit != nil {
		f.visit.added(fresh)
	}
	return err
}

// Forget drops what is known of a document. If a visit finds it again, it is a
// new one. An unknown one is an error that wraps iofs.ErrNotExist.
func (f *DB) Forget(ctx context.Context, url string) error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		d, known := getDoc(tx, url)
		if !known {
			return fmt.Errorf("%s: %w", url, iofs.ErrNotExist)
		}
		if d.Queued() { // by now, or soon, in the hands of a visit that counts on it
			return fmt.Errorf("%s: in the queue: %w", url, syscall.EBUSY)
		}
		return tx.Bucket(docBucket).Delete([]byte(url))
	})
}

// Lookup returns what is known of a document, an error that wraps iofs.ErrNotExist
// when it is nothing.
func (f *DB) Lookup(url string) (d Doc, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		var known bool
		if d, known = getDoc(tx, url); !known {
			return fmt.Errorf("%s: %w", url, iofs.ErrNotExist)
		}
		return nil
	})
	return d, err
}

// scanStep is how many records one transaction of a scan reads.
const scanStep = 500

// scan yields the pairs of a bucket whose keys sort after one, in their order,
// in short transactions. The bytes are copies.
func (f *DB) scan(ctx context.Context, bucket, after []byte) iter.Seq2[[2][]byte, error] {
	return func(yield func([2][]byte, error) bool) {
		for {
			var part [][2][]byte
			err := f.db.View(func(tx *bbolt.Tx) error {
				c := tx.Bucket(bucket).Cursor()
				k, v := c.Seek(after)
				if k != nil && len(after) > 0 && bytes.Equal(k, after) {
					k, v = c.Next()
				}
				for ; k != nil && len(part) < scanStep; k, v = c.Next() {
					part = append(part, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
				}
				return ctx.Err()
			})
			if err != nil {
				yield([2][]byte{}, err)
				return
			}
			for _, kv := range part {
				if !yield(kv, nil) {
					return
				}
			}
			if len(part) < scanStep {
				return
			}
			after = part[len(part)-1][0]
		}
	}
}

// Documents yields what is known of the documents whose URLs sort after one, in
// that order.
func (f *DB) Documents(ctx context.Context, after string) iter.Seq2[Doc, error] {
	return func(yield func(Doc, error) bool) {
		for kv, err := range f.scan(ctx, docBucket, []byte(after)) {
			var d Doc
			if err == nil {
				d, err = decodeDoc(string(kv[0]), kv[1])
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Queue yields the URLs in the queue, server by server, the next one first.
func (f *DB) Queue(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for kv, err := range f.scan(ctx, queueBucket, nil) {
			if err == nil && len(kv[1]) < 2 {
				err = errRecord
			}
			if err != nil {
				yield("", err)
				return
			}
			if !yield(string(kv[1][1:]), nil) {
				return
			}
		}
	}
}

// A Server is what is known of a server.
type Server struct {
	ID     ServerID
	Origin string
	Robots int       // status of its robots.txt: 200, 404, ...; 0 when it could not be had
	Until  time.Time // robots.txt is asked for again after this
	Next   time.Time // no request before this
	Delay  time.Duration

	Address   string // of the machine, as the last connection had it, or ""
	Documents int    // known of it
	Failures  int    // in a row: it could not be reached, or was busy
	Why       string // it is left alone, or ""

	text string
}

func (h *Server) append(b []byte) []byte {
	next := h.Next
	if !next.IsZero() {
		next = next.Add(time.Second - time.Nanosecond) // rounded up: rather late than early
	}
	for _, n := range []uint64{1, uint64(h.Robots), unix(h.Until), unix(next), uint64(h.Delay)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return append(b, h.text...)
}

func decodeHost(origin string, b []byte) (h Server, err error) {
	if len(b) < 40 || binary.BigEndian.Uint64(b) != 1 {
		return h, fmt.Errorf("host %s: %w", origin, errRecord)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Server{ServerID(thinID(origin)), origin, int(n(1)), fromUnix(n(2)), fromUnix(n(3)), time.Duration(n(4)), "", 0, 0, "", string(b[40:])}, nil
}

func (f *DB) getHost(origin string) (h Server) {
	f.db.View(func(tx *bbolt.Tx) error { // a damaged record is as good as none
		h, _ = decodeHost(origin, tx.Bucket(hostBucket).Get([]byte(origin)))
		return nil
	})
	h.Origin = origin
	return h
}

func (f *DB) putHost(h Server) error {
	return f.db.Batch(func(tx *bbolt.Tx) error {
		return tx.Bucket(hostBucket).Put([]byte(h.Origin), h.append(nil))
	})
}

// Servers yields the servers known, in the order of their origins.
func (f *DB) Servers(ctx context.Context) iter.Seq2[Server, error] {
	return func(yield func(Server, error) bool) {
		for kv, err := range f.scan(ctx, hostBucket, nil) {
			var h Server
			if err == nil {
				h, err = decodeHost(string(kv[0]), kv[1])
			}
			if !yield(h, err) {
				return
			}
		}
	}
}

// thinID stands for an identifier while URLs are the keys.
func thinID(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return max(h.Sum32(), 1)
}

// Doc returns a document by its ID, an error that wraps iofs.ErrNotExist when
// there is none.
func (f *DB) Doc(id DocID) (Doc, error) {
	for d, err := range f.Documents(context.Background(), "") {
		if err != nil || d.ID == id {
			return d, err
		}
	}
	return Doc{}, fmt.Errorf("document %d: %w", id, iofs.ErrNotExist)
}

// A Link is what one document refers to: documents that are known.
type Link struct {
	From DocID
	To   []DocID // ascending
}

// Links yields the links of all documents that have any, in the order of From.
func (f *DB) Links(ctx context.Context) iter.Seq2[Link, error] {
	return func(func(Link, error) bool) {}
}

// Out returns the documents that one refers to, ascending.
func (f *DB) Out(id DocID) ([]DocID, error) { return nil, nil }

// In yields the documents that refer to one, ascending. It reads all links.
func (f *DB) In(ctx context.Context, id DocID) iter.Seq2[DocID, error] {
	return func(yield func(DocID, error) bool) {
		for l, err := range f.Links(ctx) {
			if _, ok := slices.BinarySearch(l.To, id); err != nil || ok {
				if !yield(l.From, err) {
					return
				}
			}
		}
	}
}

// Same returns the documents stored whose bytes had this MD5, ascending.
func (f *DB) Same(md5 [16]byte) ([]DocID, error) {
	var same []DocID
	for d, err := range f.Documents(context.Background(), "") {
		if err != nil {
			return nil, err
		}
		if d.State == Stored && d.MD5 == md5 {
			same = append(same, d.ID)
		}
	}
	return same, nil
}

// Submit queues canonical URLs as Add does, counts that they were submitted, and
// notes that they came from outside.
func (f *DB) Submit(ctx context.Context, urls ...string) error { return f.Add(ctx, urls...) }
