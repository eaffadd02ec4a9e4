package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
)

// A Reference is one link, from a document that is known to another.
type Reference struct{ From, To string }

// references are read in transactions of so many at most.
const referStep = 4096

// referMapped is how much may be mapped while they are read: each is looked up.
const referMapped = 128 << 20

// References yields all links between documents that are known, in the order of
// the documents that they are in.
func (f *DB) References(ctx context.Context) iter.Seq2[Reference, error] {
	return func(yield func(Reference, error) bool) {
		r := &referring{f: f, urls: new([referStep]named), from: []byte{}}
		for r.from != nil {
			err := f.db.View(r.read)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Reference{}, err)
				return
			}
			for _, ref := range r.part {
				if !yield(ref, nil) {
					return
				}
			}
			if err := forgetPast(f.db, referMapped); err != nil {
				yield(Reference{}, err)
				return
			}
		}
	}
}

// A named document is one whose URL was looked up.
type named struct {
	id  DocID
	url string
}

// referring is how far References has come.
type referring struct {
	f    *DB
	from []byte // the key of the next record, nil at the end,
	past DocID  // and what of it has been yielded
	part []Reference
	urls *[referStep]named // the last that were looked up, by their IDs: pages of a site link to the same few again and again
}

// read reads the next part.
func (r *referring) read(tx *bbolt.Tx) error {
	r.part = r.part[:0]
	c := tx.Bucket(linkBucket).Cursor()
	k, v := c.Seek(r.from)
	if !bytes.Equal(k, r.from) {
		r.past = 0 // it was forgotten meanwhile
	}
	for ; k != nil; k, v = c.Next() {
		if len(k) != 4 {
			return fmt.Errorf("link: %w", errRecord)
		}
		from := DocID(binary.BigEndian.Uint32(k))
		to, err := decodeLinks(from, v)
		if err != nil {
			return err
		}
		url := r.url(tx, from)
		for _, id := range to {
			if url == "" || id <= r.past {
				continue
			}
			if len(r.part) == referStep {
				r.from = docKey(from)
				return nil
			}
			r.past = id
			if u := r.url(tx, id); u != "" {
				r.part = append(r.part, Reference{url, u})
			}
		}
		r.past = 0
	}
	r.from = nil
	return nil
}

// url is that of a document, "" when it was forgotten.
func (r *referring) url(tx *bbolt.Tx, id DocID) string {
	n := &r.urls[id%referStep]
	if n.id != id {
		*n = named{id, r.f.urlOf(tx, id)}
	}
	return n.url
}

// urlOf reads no more of a document than its URL, "" when there is none.
func (f *DB) urlOf(tx *bbolt.Tx, id DocID) string {
	b := tx.Bucket(docBucket).Get(docKey(id))
	if len(b) < 3 || b[0] != docVersion {
		return ""
	}
	r := &reader{b: b[3:]}
	server := r.uint()
	for range 3 { // its root, its depth, what led to it
		r.uint()
	}
	path := r.bytes(r.uint())
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.bad || server == 0 || server > uint64(len(f.servers)) {
		return ""
	}
	return f.servers[server-1].Origin + string(path)
}
