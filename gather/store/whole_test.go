package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
)

// WriteSOIF writes the collection as it is at the call as one stream of SOIF.
func (s *Store) WriteSOIF(ctx context.Context, w io.Writer) error {
	return s.withSnapshot(func(sn *Snapshot) error { return sn.Write(ctx, w) })
}

// WriteZstd is WriteSOIF in zstd frames, which are copied as they are stored.
func (s *Store) WriteZstd(ctx context.Context, w io.Writer) error {
	return s.withSnapshot(func(sn *Snapshot) error { return sn.WriteZstd(ctx, w) })
}

// StatURL returns the entry of the object with a URL. Where several gatherers
// have it, the one with the least OID.
func (s *Store) StatURL(url string) (Entry, error) {
	var found Entry
	absent := fmt.Errorf("url %.200q: %w", url, iofs.ErrNotExist)
	if err := s.flush(); err != nil {
		return found, err
	}
	return found, s.view(func(v view) error {
		key := urlKey(url)
		if oid := v.url.Get([]byte(key)); oid != nil {
			if r, ok := v.find(OID(oid)); ok && r.URL == url {
				found = r.Entry
				return nil
			}
		}
		prefix := []byte(strings.TrimSuffix(key, objectSuffix) + "~")
		c := v.url.Cursor()
		for k, oid := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, oid = c.Next() {
			if stem, _, ok := splitTwin(string(k)); !ok || len(stem) != len(prefix)-1 {
				continue
			}
			if r, ok := v.find(OID(oid)); ok && r.URL == url {
				found = r.Entry
				return nil
			}
		}
		return absent
	})
}
