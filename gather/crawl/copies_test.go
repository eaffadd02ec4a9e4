package crawl

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// TestCopies: groups are whole wherever a transaction ends, and come once.
func TestCopies(t *testing.T) {
	f := openDB(t, filepath.Join(t.TempDir(), "crawl.db"))
	r := rand.New(rand.NewPCG(5, 6))
	groups := make(map[[16]byte][]DocID)
	for id := DocID(1); id <= 6*scanStep; id++ {
		var md5 [16]byte
		switch n := r.IntN(10); {
		case n == 0: // a few large groups
			binary.BigEndian.PutUint64(md5[:], 1<<63+uint64(r.IntN(2)))
		case n < 5:
			binary.BigEndian.PutUint64(md5[:], uint64(r.IntN(500)))
		default:
			binary.BigEndian.PutUint64(md5[:], r.Uint64())
		}
		groups[md5] = append(groups[md5], id)
	}
	err := f.db.Update(func(tx *bbolt.Tx) error {
		for md5, ids := range groups {
			for _, id := range ids {
				if err := tx.Bucket(sumBucket).Put(append(md5[:], docKey(id)...), nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]bool)
	for _, ids := range groups {
		if len(ids) > 1 {
			want[fmt.Sprint(ids)] = true
		}
	}
	n := 0
	for ids, err := range f.Copies(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !want[fmt.Sprint(ids)] || !slices.IsSorted(ids) {
			t.Fatalf("got %v, which is no group, or came before", ids)
		}
		delete(want, fmt.Sprint(ids))
	}
	if len(want) > 0 {
		t.Errorf("got %d groups, and not %d others", n, len(want))
	}
	for range f.Copies(t.Context()) {
		break // and no more is yielded
	}
}
