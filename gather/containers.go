package gather

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"

	"harvest/gather/store"
)

// containers are the documents that have, or had, objects of what is in them, by
// their OIDs. The file holds 16 bytes a document; it is added to and never made
// shorter. Of what a kill has left of a record at its end nothing is known.
type containers struct {
	mu  sync.RWMutex // guards all
	all map[store.OID]struct{}
}

func (c *containers) load(path string) error {
	c.all = make(map[store.OID]struct{})
	f, err := os.Open(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		var oid store.OID
		switch _, err := io.ReadFull(f, oid[:]); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		c.all[oid] = struct{}{}
	}
}

// has reports whether a document may have members.
func (c *containers) has(oid store.OID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.all[oid]
	return ok
}

// add notes documents that are to have members: once it returns, no kill makes it
// unknown.
func (c *containers) add(path string, fresh []store.OID) (err error) {
	if len(fresh) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var b []byte
	for _, oid := range fresh {
		b = append(b, oid[:]...)
	}
	if _, err := f.WriteAt(b, int64(len(c.all)*len(store.OID{}))); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	first := len(c.all) == 0
	for _, oid := range fresh {
		c.all[oid] = struct{}{}
	}
	if first {
		return syncDir(filepath.Dir(path))
	}
	return nil
}
