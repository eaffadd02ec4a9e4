package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"go.etcd.io/bbolt"
)

// A Link is what one document refers to: documents that are known.
type Link struct {
	From DocID
	To   []DocID // ascending
}

// appendLinks adds the record of the links of a document: the first as its
// distance from the document, each other as that from the one before.
func appendLinks(b []byte, from DocID, to []DocID) []byte {
	last := int64(from)
	for i, id := range to {
		if i == 0 {
			b = binary.AppendVarint(b, int64(id)-last)
		} else {
			b = binary.AppendUvarint(b, uint64(int64(id)-last-1))
		}
		last = int64(id)
	}
	return b
}

func decodeLinks(from DocID, b []byte) ([]DocID, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d, used := binary.Varint(b)
	last := int64(from) + d
	to := make([]DocID, 0, min(len(b), maxRefs))
	for used > 0 && last > 0 && last < 1<<32 {
		to = append(to, DocID(last))
		if b = b[used:]; len(b) == 0 {
			return to, nil
		}
		var n uint64
		if n, used = binary.Uvarint(b); n >= 1<<32 {
			break
		}
		last += int64(n) + 1
	}
	return nil, fmt.Errorf("links of %d: %w", from, errRecord)
}

// Links yields the links of all documents that have any, in the order of From.
func (f *DB) Links(ctx context.Context) iter.Seq2[Link, error] {
	return scanned(ctx, f, linkBucket, nil, func(_ *bbolt.Tx, k, v []byte) (Link, error) {
		if len(k) != 4 {
			return Link{}, fmt.Errorf("link: %w", errRecord)
		}
		from := DocID(binary.BigEndian.Uint32(k))
		to, err := decodeLinks(from, v)
		return Link{from, to}, err
	})
}

// Out returns the documents that one refers to, ascending.
func (f *DB) Out(id DocID) (to []DocID, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		to, err = decodeLinks(id, tx.Bucket(linkBucket).Get(docKey(id)))
		return err
	})
	return to, err
}

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
