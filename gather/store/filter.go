package store

import (
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// A filter is a Bloom filter of the OIDs that the index has, of objects and
// tombstones: what it does not hold need not be looked up, which for an object
// that is new is three walks down a tree. It is made when many new objects come,
// by one pass over the keys, and made anew, larger, when it is full.
type filter struct {
	bits []uint64 // a power of two of them
	room int      // keys until it is full
}

const (
	filterKeys   = 1 << 16 // room of the smallest
	filterBits   = 10      // at least, a key: then one in a hundred is found in vain
	filterProbes = 6
)

func newFilter(keys int) *filter {
	f := &filter{room: filterKeys}
	for f.room < 2*keys {
		f.room *= 2
	}
	f.bits = make([]uint64, 16*f.room/64)
	f.room = len(f.bits) * 64 / filterBits
	return f
}

// place returns the bit of a probe. OIDs are parts of hashes already.
func (f *filter) place(oid *OID, probe uint64) (word, bit uint64) {
	at := binary.LittleEndian.Uint64(oid[:]) + probe*(binary.LittleEndian.Uint64(oid[8:])|1)
	return at >> 6 & uint64(len(f.bits)-1), 1 << (at & 63)
}

func (f *filter) add(oid OID) {
	for i := range uint64(filterProbes) {
		word, bit := f.place(&oid, i)
		f.bits[word] |= bit
	}
	f.room--
}

// lacks reports whether the index certainly has no such OID. A nil filter is
// never certain.
func (f *filter) lacks(oid OID) bool {
	if f == nil {
		return false
	}
	for i := range uint64(filterProbes) {
		if word, bit := f.place(&oid, i); f.bits[word]&bit == 0 {
			return true
		}
	}
	return false
}

// know adds what a table brings to the filter. The caller holds indexMu, and
// readers look at the table until this has returned. If the table was full and
// most of it new, there is likely more to come, and a filter is made.
func (s *Store) know(t *table, fresh int) error {
	s.mu.Lock()
	if f := s.filter; f != nil {
		for oid := range t.rows {
			f.add(oid)
		}
		if f.room < 0 {
			s.filter = nil
		}
	}
	wanted := s.filter == nil && len(t.rows) >= s.opt.Pending && 2*fresh > len(t.rows)
	n := s.totals.objects + s.totals.tombs
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	f := newFilter(int(n))
	for _, name := range []string{"obj", "tomb"} {
		if err := s.eachKey(name, f.add); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter = f
	return nil
}

// eachKey calls f for the keys of a bucket, in short transactions.
func (s *Store) eachKey(bucket string, f func(OID)) error {
	var at []byte
	for more := true; more; {
		err := s.db.View(func(tx *bbolt.Tx) error {
			more = false
			n := 0
			c := tx.Bucket([]byte(bucket)).Cursor()
			for k, _ := c.Seek(at); len(k) == len(OID{}); k, _ = c.Next() {
				if n++; n > 16*chunk {
					at, more = append(at[:0], k...), true
					break
				}
				f(OID(k))
			}
			s.forget(tx)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
