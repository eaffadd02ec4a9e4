package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"harvest/fs/ndb"
	"harvest/gather/soif"
	"harvest/gather/store"
)

// A source is where this writer has its objects from: a Gatherer, a Broker, or
// another group's tree. Its files since/CURSOR are read.
type source struct {
	r     *Replica
	path  string
	turn  chan struct{} // held by whoever reads it
	every time.Duration // guarded by the Replica's mu

	mu      sync.Mutex // guards what follows
	last    time.Time
	err     error
	updates int
	deletes int
	bad     int
}

// follow reads the source every so often until ctx ends.
func (s *source) follow(ctx context.Context) {
	fails := 0
	for ctx.Err() == nil {
		s.r.mu.Lock()
		wait := s.every
		s.r.mu.Unlock()
		if err := s.sync(ctx); err != nil {
			wait = max(wait, min(firstRetry<<min(fails, 20), lastRetry))
			fails++
		} else {
			fails = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// sync reads what is new at the source and publishes it.
func (s *source) sync(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c := collection{s: s, seen: make(map[store.OID]struct{})}
	err := c.read(ctx)
	if ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && (s.err == nil || s.err.Error() != err.Error()) {
		s.r.told("failed", ndb.Of("source", s.path), ndb.Of("err", err))
	}
	s.last, s.err = time.Now(), err
	s.updates += c.updates
	s.deletes += c.deletes
	s.bad += c.bad
	if c.updates+c.deletes+c.bad > 0 {
		s.r.told("published", ndb.Of("source", s.path), ndb.Of("updates", c.updates), ndb.Of("deletes", c.deletes), ndb.Of("bad", c.bad))
	}
	return err
}

// maxBatchBytes is how much is published at a time.
const maxBatchBytes = 32 << 20

// A collection is one reading of a source.
type collection struct {
	s                     *source
	tree                  iofs.FS
	whole                 bool
	seen                  map[store.OID]struct{} // if whole
	batch                 []publication
	bytes                 int
	updates, deletes, bad int
}

func (c *collection) read(ctx context.Context) error {
	r := c.s.r
	tree, closer, err := r.open(ctx, c.s.path)
	if err != nil {
		return err
	}
	defer closer.Close()
	c.tree = tree
	cursor := r.place(c.s.path)
	c.whole = cursor == "0"
	f, err := tree.Open("since/" + cursor)
	if err != nil && !c.whole && startAgain(err) {
		c.whole = true
		f, err = tree.Open("since/0")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	next, err := c.stream(ctx, f)
	if err == nil {
		err = c.flush(ctx)
	}
	if err == nil && c.whole && c.bad == 0 {
		err = c.sweep(ctx)
	}
	if err != nil || next == cursor {
		return err
	}
	return r.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("place")).Put([]byte(c.s.path), []byte(next)) })
}

// place gives the cursor to go on from.
func (r *Replica) place(path string) (cursor string) {
	cursor = "0"
	r.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte("place")).Get([]byte(path)); v != nil {
			cursor = string(v)
		}
		return nil
	})
	return cursor
}

// startAgain tells that a cursor may be of no use any more. A remote has only the
// class of its error, a mount only an errno.
func startAgain(err error) bool {
	return errors.Is(err, syscall.EIO) || absent(err)
}

func (c *collection) stream(ctx context.Context, f io.Reader) (cursor string, err error) {
	u := soif.NewUpdateReader(f, soif.Limits{})
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
		case errors.As(err, &bad) && !errors.Is(err, io.ErrUnexpectedEOF):
			c.bad++
			if err := u.Resync(); err != nil {
				return "", errors.Join(bad, err)
			}
			continue
		case err != nil:
			return "", err
		}
		if err := c.take(ctx, &ch); err != nil {
			return "", err
		}
	}
}

// oidOf is the name the source has given the object: what the object says, or what a
// Gatherer makes of the URL and who it is.
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
		c.bad++
		return nil
	}
	p := publication{oid: oid}
	switch ch.Op {
	case soif.Delete:
		if c.s.r.from(oid) != c.s.path {
			return nil // another source gave it since
		}
	case soif.Refresh:
		// The object has another Update-Time now, and so is another.
		name := oid.String()
		b, err := read(c.tree, "objects/"+name[:2]+"/"+name+".soif", MaxObject+1)
		if absent(err) {
			return nil // gone since, as the next stream will tell
		}
		if err != nil {
			return err
		}
		o, _, err := soif.Parse(b, soif.Limits{})
		if err != nil {
			c.bad++
			return nil
		}
		p.set(&o)
	default:
		p.set(&ch.Object)
	}
	if len(p.body) > MaxObject {
		c.bad++
		return nil
	}
	if p.body != nil && c.whole {
		c.seen[oid] = struct{}{}
	}
	c.batch = append(c.batch, p)
	if c.bytes += len(p.body); len(c.batch) >= maxPublish || c.bytes > maxBatchBytes {
		return c.flush(ctx)
	}
	return nil
}

func (p *publication) set(o *soif.Object) {
	p.body = o.Append(nil)
	if n, err := strconv.ParseInt(o.Text("Update-Time"), 10, 64); err == nil {
		p.updated = time.Unix(n, 0)
	} else if t, err := time.Parse(time.RFC3339, o.Text("Update-Time")); err == nil {
		p.updated = t
	}
	if n, err := strconv.ParseInt(o.Text("Time-to-Live"), 10, 32); err == nil {
		p.ttl = time.Duration(n) * time.Second
	} else if d, err := time.ParseDuration(o.Text("Time-to-Live")); err == nil {
		p.ttl = d
	}
}

// from gives the source that an object was had from last.
func (r *Replica) from(oid store.OID) (path string) {
	r.db.View(func(tx *bbolt.Tx) error {
		path = string(tx.Bucket([]byte("from")).Get(oid[:]))
		return nil
	})
	return path
}

// flush publishes the batch.
func (c *collection) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	r := c.s.r
	if _, err := r.mirror.publish(ctx, c.batch, time.Now()); err != nil {
		return err
	}
	err := r.db.Update(func(tx *bbolt.Tx) (err error) {
		b := tx.Bucket([]byte("from"))
		for _, p := range c.batch {
			if p.body == nil {
				err = errors.Join(err, b.Delete(p.oid[:]))
			} else {
				err = errors.Join(err, b.Put(p.oid[:], []byte(c.s.path)))
			}
		}
		return err
	})
	for _, p := range c.batch {
		if p.body == nil {
			c.deletes++
		} else {
			c.updates++
		}
	}
	c.batch, c.bytes = nil, 0
	return err
}

// sweep takes back what the source once gave and no longer has.
func (c *collection) sweep(ctx context.Context) error {
	err := c.s.r.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("from")).ForEach(func(k, v []byte) error {
			if _, ok := c.seen[store.OID(k)]; !ok && string(v) == c.s.path {
				c.batch = append(c.batch, publication{oid: store.OID(k)})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.flush(ctx)
}
