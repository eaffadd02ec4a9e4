package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"harvest/broker/provider"
	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
	"harvest/index"
)

// How much is stored at a time, and with one wait for the disk.
const (
	batchObjects = 5000
	batchBytes   = 8 << 20
)

// A collection is one reading of one source.
type collection struct {
	b      *Broker
	path   string
	conf   sourceConfig
	match  *index.Matcher // of its filter; nil: all
	at     place
	ttl    time.Duration
	tree   iofs.FS
	whole  bool                   // from the start: what is not in it is gone
	seen   map[store.OID]struct{} // if whole
	batch  []store.Change
	bytes  int
	under  chan storing // of the batch that is being stored while the next is read; or nil
	counts counts
	newest time.Time // see timeCursor
	from   []string  // the source's origins
}

// A storing is what came of a batch.
type storing struct {
	counts counts
	err    error
}

// counts are of one collection, or of all of a source's since the start.
type counts struct {
	updates, deletes, refreshes, bad int
	filtered                         int // updates that were not wanted
}

func (c *counts) add(d counts) {
	c.updates += d.updates
	c.deletes += d.deletes
	c.refreshes += d.refreshes
	c.bad += d.bad
	c.filtered += d.filtered
}

func (c counts) pairs() []ndb.Pair {
	pairs := []ndb.Pair{ndb.Of("updates", c.updates), ndb.Of("deletes", c.deletes), ndb.Of("refreshes", c.refreshes), ndb.Of("bad", c.bad)}
	if c.filtered > 0 {
		pairs = append(pairs, ndb.Of("filtered", c.filtered))
	}
	return pairs
}

// read reads what is new at the source and stores it. The place moves on only
// when the stream was whole and all of it is stored.
func (c *collection) read(ctx context.Context) error {
	tree, closer, err := c.b.open(ctx, c.path)
	if err != nil {
		return err
	}
	defer closer.Close()
	c.tree = tree
	if c.from, err = c.origins(); err != nil {
		return err
	}
	if err := c.filter(); err != nil {
		return err
	}
	f, err := c.since()
	if err != nil {
		return err
	}
	defer f.Close()
	if c.whole {
		c.seen = make(map[store.OID]struct{})
	}
	r, done, err := c.unpacked(f)
	if err != nil {
		return err
	}
	defer done()
	next, err := c.stream(ctx, &atMost{r, c.conf.most, c.conf.most})
	if err == nil {
		err = c.flush(ctx)
	}
	if err = errors.Join(err, c.stored()); err != nil {
		return err
	}
	if c.whole && c.counts.bad == 0 {
		if err := c.sweep(ctx); err != nil {
			return err
		}
	}
	c.at.cursor, c.at.last = next, time.Now()
	return c.b.registry.advance(c.path, c.at)
}

// since opens the stream of changes. A source that cannot go on from the
// cursor, or is a copy that has nothing but the whole, is read from the start.
func (c *collection) since() (iofs.File, error) {
	c.whole = c.at.cursor == "0"
	f, err := c.openSince(c.at.cursor)
	if err == nil || c.whole || !startAgain(err) {
		return f, err
	}
	whole, err0 := c.openSince("0")
	if err0 != nil {
		return nil, err
	}
	c.whole = true
	c.b.event("restart", ndb.Of("source", c.path), ndb.Of("cursor", c.at.cursor), ndb.Of("err", err))
	return whole, nil
}

// filter makes what decides which objects are taken. What the source was asked
// for before was something else: then all is read again.
func (c *collection) filter() (err error) {
	if c.at.print != c.conf.print() || c.conf.full {
		c.at.cursor, c.at.print = "0", c.conf.print()
	}
	if c.conf.filter == nil {
		return nil
	}
	h := c.b.hold()
	defer h.release()
	how, err := c.b.views.manner(h.files)
	if err != nil {
		return err
	}
	c.match, err = index.Compile(c.conf.filter, how.Options)
	if err == nil && how.NoNumbers {
		c.match.WithoutNumbers()
	}
	return err
}

// openSince opens the stream of changes after a cursor, of those objects that the
// query finds.
func (c *collection) openSince(cursor string) (iofs.File, error) {
	name := "since/" + cursor
	if c.conf.query != nil {
		name = "q/" + escape(c.conf.query.String()) + "/" + name
	}
	if !c.conf.packed {
		return c.tree.Open(name)
	}
	for _, suffix := range []string{".zst", ".gz"} { // Gatherers of the first Harvest have gz only
		f, err := c.tree.Open(name + suffix)
		if !errors.Is(err, iofs.ErrNotExist) {
			return f, err
		}
	}
	return c.tree.Open(name) // as a copy of a tree has it
}

// unpacked gives the stream in a file that may be compressed, and what to call
// when it was read.
func (c *collection) unpacked(f iofs.File) (io.Reader, func(), error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	switch path.Ext(st.Name()) {
	case ".zst":
	case ".gz":
		z, err := gzip.NewReader(f)
		return z, func() {}, err
	default:
		return f, func() {}, nil
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// atMost is a stream that may have no more than so many bytes: one that never
// ends would fill the disk.
type atMost struct {
	r          io.Reader
	left, most int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.r.Read(p[:min(int64(len(p)), a.left+1)])
	if a.left -= int64(n); a.left < 0 {
		return n, fmt.Errorf("more than limit=%d bytes: %w", a.most, syscall.EFBIG)
	}
	return n, err
}

// startAgain tells that a cursor may be of no use any more. A remote has only
// the class of its error, a mount only an errno, and for what is neither absent
// nor denied that is EIO: if it is the disk there, since/0 fails as well.
func startAgain(err error) bool {
	for _, class := range []error{store.ErrCursor, iofs.ErrNotExist, iofs.ErrInvalid, syscall.EINVAL, syscall.ESTALE, syscall.EIO} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// stream takes the changes of r and gives the cursor at its end. What is not
// SOIF is named and skipped.
func (c *collection) stream(ctx context.Context, r io.Reader) (cursor string, err error) {
	u := soif.NewUpdateReader(r, soif.Limits{})
	var ch soif.Change
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		err := u.Next(&ch)
		var bad *soif.Error
		switch {
		case err == io.EOF:
			return u.Cursor(), nil
		case errors.Is(err, soif.ErrNoCursor) && strings.HasPrefix(c.path, provider.Scheme):
			return c.timeCursor(), nil
		case errors.As(err, &bad) && !errors.Is(err, io.ErrUnexpectedEOF):
			c.complain(bad.Line, err)
			if err := u.Resync(); err == io.EOF {
				return "", fmt.Errorf("since/%s: nothing follows the bad object in line %d: %w", c.at.cursor, bad.Line, io.ErrUnexpectedEOF)
			} else if err != nil {
				return "", err
			}
			continue
		case err != nil:
			return "", fmt.Errorf("since/%s: %w", c.at.cursor, err)
		}
		if err := c.take(ctx, &ch); err != nil {
			return "", err
		}
	}
}

// timeCursor goes on from a stream of the first Harvest, which had no cursors: a
// time, the last that an object has by the clock of the Gatherer, which this
// machine's may not agree with. What is of that second is read again.
func (c *collection) timeCursor() string {
	if c.newest.IsZero() {
		return c.at.cursor
	}
	return strconv.FormatInt(c.newest.Unix(), 10)
}

// noteTime notes when an object was made, for timeCursor. What is of a time to
// come would hide what comes before it.
func (c *collection) noteTime(o *soif.Object) {
	if !strings.HasPrefix(c.path, provider.Scheme) {
		return
	}
	if t := unixTime(o.Text("Update-Time")); t.After(c.newest) && t.Before(time.Now().Add(time.Hour)) {
		c.newest = t
	}
}

func (c *collection) complain(line int64, err error) {
	c.counts.bad++
	c.b.bad(c.path, line, err)
}

// oidOf is the name the source has given the object: what the object says, or
// what a Gatherer makes of the URL and who it is.
func oidOf(o *soif.Object) (store.OID, error) {
	if text, ok := o.Get("Object-ID"); ok {
		return store.ParseOID(string(text))
	}
	if o.URL == "" {
		return store.OID{}, fmt.Errorf("object without a URL: %w", iofs.ErrInvalid)
	}
	return store.ID(o.URL, o.Text("Gatherer-Name")+"@"+o.Text("Gatherer-Host")), nil
}

// take adds one change to the batch.
func (c *collection) take(ctx context.Context, ch *soif.Change) error {
	oid, err := oidOf(&ch.Object)
	if err != nil {
		c.complain(0, err)
		return nil
	}
	s := store.Change{Op: ch.Op, OID: oid, URL: ch.Object.URL}
	if s.Op == soif.Update && !c.wanted(oid, &ch.Object) {
		c.counts.filtered++
		s.Op = soif.Delete // it may have been wanted before
	}
	switch s.Op {
	case soif.Update:
		s.Body = ch.Object.Append(nil)
		c.noteTime(&ch.Object)
		if _, ok := ch.Object.Get("Time-to-Live"); !ok {
			s.TTL = c.ttl
		}
		if c.seen != nil {
			c.seen[oid] = struct{}{}
		}
	case soif.Delete:
		if id, err := c.b.registry.owner(oid); err != nil || id != c.at.id {
			return err // another source gave it since, and still has it
		}
	case soif.Refresh:
		ok, err := c.refresh(&s, &ch.Object)
		if err != nil || !ok {
			return err
		}
	}
	c.batch = append(c.batch, s)
	c.bytes += len(s.Body)
	if len(c.batch) >= batchObjects || c.bytes >= batchBytes {
		return c.flush(ctx)
	}
	return nil
}

// wanted tells whether an object is to be taken.
func (c *collection) wanted(oid store.OID, o *soif.Object) bool {
	return c.match == nil || c.match.Match(document(oid, o).Fields)
}

// refresh prolongs an object. One that is not here, because it expired before
// the word came, is read from the source's tree.
func (c *collection) refresh(s *store.Change, o *soif.Object) (ok bool, err error) {
	s.Updated, s.TTL = unixTime(o.Text("Update-Time")), seconds(o.Text("Time-to-Live"))
	_, err = c.b.store.Stat(s.OID)
	if !errors.Is(err, iofs.ErrNotExist) {
		return err == nil, err
	}
	if c.conf.filter != nil || c.conf.query != nil {
		return false, nil // it need not be here
	}
	name := s.OID.String()
	body, err := iofs.ReadFile(c.tree, "objects/"+name[:2]+"/"+name+".soif")
	if err != nil {
		c.complain(0, fmt.Errorf("refresh of an object that is not here: %w", err))
		return false, nil
	}
	s.Op, s.Body, s.Updated, s.TTL = soif.Update, body, time.Time{}, 0
	return true, nil
}

func unixTime(text string) time.Time {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0)
	}
	t, _ := time.Parse(time.RFC3339, text)
	return t
}

func seconds(text string) time.Duration {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	d, _ := time.ParseDuration(text)
	return max(d, 0)
}

// flush has the batch stored, when the one before it is: what comes after it is
// read meanwhile.
func (c *collection) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	if err := c.stored(); err != nil {
		return err
	}
	batch, under := c.batch, make(chan storing, 1)
	c.batch, c.bytes, c.under = make([]store.Change, 0, len(batch)), 0, under
	go func() { // stored waits for it, and read for that
		var o storing
		o.err = c.b.put(ctx, c.at.id, func() (err error) {
			o.counts, err = c.store(ctx, batch)
			return err
		}, batch)
		under <- o
	}()
	return nil
}

// stored waits for the batch that is being stored.
func (c *collection) stored() error {
	if c.under == nil {
		return nil
	}
	o := <-c.under
	c.under = nil
	c.counts.add(o.counts)
	return o.err
}

// store stores a batch. What the store refuses is named and left out.
func (c *collection) store(ctx context.Context, batch []store.Change) (n counts, err error) {
	if _, err = c.b.store.Apply(ctx, batch); err == nil {
		for i := range batch {
			n.of(batch[i].Op)
		}
		c.b.tellChanges(c.path, batch)
		return n, nil
	}
	if !refused(err) {
		return n, err
	}
	for i := range batch {
		_, err := c.b.store.Apply(ctx, batch[i:i+1])
		switch {
		case err == nil:
			n.of(batch[i].Op)
			c.b.tellChanges(c.path, batch[i:i+1])
		case refused(err):
			n.bad++
			c.b.bad(c.path, 0, err)
		default:
			return n, err
		}
	}
	return n, nil
}

// refused tells that an error is about a change, not about the store.
func refused(err error) bool {
	return errors.Is(err, iofs.ErrInvalid) || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.EFBIG)
}

func (c *counts) of(op soif.Op) {
	switch op {
	case soif.Update:
		c.updates++
	case soif.Delete:
		c.deletes++
	case soif.Refresh:
		c.refreshes++
	}
}

// sweep deletes what the source once gave and no longer has. A stream with a
// bad object in it sweeps nothing: that object may be one that is here.
func (c *collection) sweep(ctx context.Context) error {
	err := c.b.registry.each(func(e entry) error {
		if _, ok := c.seen[e.oid]; ok || e.id != c.at.id {
			return nil
		}
		c.batch = append(c.batch, store.Change{Op: soif.Delete, OID: e.oid})
		if len(c.batch) >= batchObjects {
			return c.flush(ctx)
		}
		return ctx.Err()
	})
	if err == nil {
		err = c.flush(ctx)
	}
	return errors.Join(err, c.stored())
}
