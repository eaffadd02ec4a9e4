package crawl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// oldFormat is that of the frontier.db which a database replaces: its bucket
// doc was by URL, its queue held URLs, and its servers were in host.
const oldFormat = "harvest frontier 1"

// convert takes over what a frontier.db knows: documents with their validators,
// MD5 and times, servers with their robots.txt and pace, the queue of what was
// asked for by its URL, the last visit and its counts.
func (f *DB) convert(path string) error {
	old, err := bbolt.Open(path, 0o644, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return err
	}
	defer old.Close()
	return old.View(func(tx *bbolt.Tx) error {
		m := tx.Bucket([]byte("meta"))
		for _, name := range []string{"meta", "doc", "queue", "host"} {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("there is no %s: %w", name, errRecord)
			}
		}
		if have := m.Get([]byte("format")); string(have) != oldFormat {
			return fmt.Errorf("format '%s', not '%s'", clip(string(have)), oldFormat)
		}
		if err := f.convertServers(tx.Bucket([]byte("host"))); err != nil {
			return err
		}
		if err := f.convertDocs(tx.Bucket([]byte("doc")), tx.Bucket([]byte("queue"))); err != nil {
			return err
		}
		return f.update(func(b *batch) error {
			var errs []error
			for _, name := range []string{"visit", "counts"} {
				if v := m.Get([]byte(name)); v != nil {
					errs = append(errs, b.tx.Bucket(metaBucket).Put([]byte(name), v))
				}
			}
			return errors.Join(errs...)
		})
	})
}

func (f *DB) convertServers(hosts *bbolt.Bucket) error {
	return f.update(func(b *batch) error {
		return hosts.ForEach(func(k, v []byte) error {
			if len(v) < 40 || binary.BigEndian.Uint64(v) != 1 {
				return nil // damaged: its robots.txt is asked for again
			}
			n := func(i int) uint64 { return binary.BigEndian.Uint64(v[8*i:]) }
			f.mu.Lock()
			s := f.change(f.server(string(k)))
			s.Robots, s.Until, s.Next, s.Delay = int(n(1)), fromUnix(n(2)), fromUnix(n(3)), time.Duration(n(4))
			id := s.ID
			f.mu.Unlock()
			return b.tx.Bucket(robotsBucket).Put(docKey(DocID(id)), v[40:])
		})
	})
}

// convertDocs enters the documents in the order of their URLs, some in each
// transaction.
func (f *DB) convertDocs(docs, queue *bbolt.Bucket) error {
	flags := make(map[string]byte)
	err := queue.ForEach(func(_, v []byte) error {
		if len(v) > 1 && v[0] != 0 {
			flags[string(v[1:])] = v[0]
		}
		return nil
	})
	if err != nil {
		return err
	}
	c := docs.Cursor()
	for k, v := c.First(); k != nil; {
		err := f.update(func(b *batch) error {
			for n := 0; k != nil && n < 10*scanStep; k, v = c.Next() {
				n++
				d, err := decodeOldDoc(string(k), v)
				if err != nil {
					continue // as good as none: it is found again
				}
				if err := b.convert(&d, flags[d.URL]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) convert(d *Doc, flags byte) error {
	md5 := d.MD5
	if err := b.enter(d); err != nil {
		return err
	}
	if d.State == Stored {
		if err := b.sum(d, md5); err != nil {
			return err
		}
	}
	if d.Root == 0 && !polite(d.URL) {
		if err := b.tx.Bucket(handBucket).Put(docKey(d.ID), nil); err != nil {
			return err
		}
	}
	if d.Root != 0 && d.State != Vanished {
		b.f.mu.Lock()
		r := b.f.root(d.Root)
		r.docs++
		r.dirty, b.roots = true, true
		b.f.mu.Unlock()
	}
	if flags&(byHand|anyhow) != 0 {
		return b.enqueue(d, Breadth, flags&(byHand|anyhow))
	}
	return b.put(d)
}

// decodeOldDoc reads a record of the old format.
func decodeOldDoc(url string, b []byte) (d Doc, err error) {
	if len(b) < 2 || b[0] != 1 || b[1] == 0 || State(b[1]) > Barred || Origin(url) == "" {
		return d, errRecord
	}
	d.URL, d.State = url, State(b[1])
	r := &reader{b: bytes.Clone(b[2:])}
	d.Root, d.Depth, d.Hops, d.Visit = r.uint(), int(r.uint()), int(r.uint()), r.uint()
	d.Checked, d.Handed = fromUnix(r.uint()), fromUnix(r.uint())
	d.Size, d.Status, d.Fails, d.Print = int64(r.uint()), int(r.uint()), int(r.uint()), r.uint()
	copy(d.MD5[:], r.bytes(16))
	d.ETag, d.Modified, d.Why = r.string(), r.string(), r.string()
	r.string() // its place in the queue
	if r.bad || len(r.b) != 0 {
		return Doc{}, errRecord
	}
	return d, nil
}
