package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/fnv"

	"go.etcd.io/bbolt"
)

// Notes are texts that a Handler has had kept with documents. Most are those of
// many documents: such a text is kept once, under its hash, and its documents
// have the hash. What is longer than sharedNote is kept with its document. A text
// that no document has any more stays; there are few.
const sharedNote = 512

// note keeps a document's note; "" drops it.
func (b *batch) note(id DocID, text string) error {
	n, key := b.tx.Bucket(noteBucket), docKey(id)
	was := n.Get(key)
	if text == "" {
		if was == nil {
			return nil
		}
		return n.Delete(key)
	}
	value := append([]byte{0}, text...)
	if len(text) <= sharedNote {
		h := fnv.New64a()
		h.Write([]byte(text))
		value = binary.BigEndian.AppendUint64([]byte{1}, h.Sum64())
	}
	if bytes.Equal(was, value) {
		return nil
	}
	if value[0] == 1 {
		if shared := n.Get(value); shared == nil {
			if err := n.Put(value, []byte(text)); err != nil {
				return err
			}
		} else if string(shared) != text { // two texts of one hash
			value = append([]byte{0}, text...)
		}
	}
	return n.Put(key, value)
}

// Note returns what a Handler has had kept with a document, "" if that is
// nothing, and an error that wraps iofs.ErrNotExist when it is not known.
func (f *DB) Note(url string) (text string, err error) {
	d, err := f.Lookup(url)
	if err != nil {
		return "", err
	}
	return text, f.db.View(func(tx *bbolt.Tx) error {
		n := tx.Bucket(noteBucket)
		v := n.Get(docKey(d.ID))
		switch {
		case len(v) == 9 && v[0] == 1:
			text = string(n.Get(v))
		case len(v) > 0 && v[0] == 0:
			text = string(v[1:])
		}
		return nil
	})
}

// Notes calls each with every note, and how many documents have it.
func (f *DB) Notes(ctx context.Context, each func(text string, n int)) error {
	shared := make(map[string]int)
	err := f.scan(ctx, noteBucket, nil, func(_ *bbolt.Tx, k, v []byte) error {
		switch {
		case len(k) != 4:
		case len(v) == 9 && v[0] == 1:
			shared[string(v)]++
		case len(v) > 0:
			each(string(v[1:]), 1)
		}
		return nil
	}, func() bool { return true })
	if err != nil {
		return err
	}
	return f.db.View(func(tx *bbolt.Tx) error {
		for key, n := range shared {
			each(string(tx.Bucket(noteBucket).Get([]byte(key))), n)
		}
		return nil
	})
}
