package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
)

// Copies yields the documents stored whose bytes had the same MD5 as those of
// another, together and ascending, MD5 by MD5. The slices are the caller's.
func (f *DB) Copies(ctx context.Context) iter.Seq2[[]DocID, error] {
	return func(yield func([]DocID, error) bool) {
		var md5 [16]byte
		var same []DocID    // of the MD5 that is being read
		var ready [][]DocID // to be yielded between transactions
		going := true
		tell := func() bool {
			for _, ids := range ready {
				if going = going && yield(ids, nil); !going {
					return false
				}
			}
			ready = ready[:0]
			return true
		}
		err := f.scan(ctx, sumBucket, nil, func(_ *bbolt.Tx, k, _ []byte) error {
			if len(k) != 20 {
				return fmt.Errorf("sum: %w", errRecord)
			}
			if [16]byte(k) != md5 {
				if len(same) > 1 {
					ready, same = append(ready, same), nil
				}
				md5, same = [16]byte(k), same[:0]
			}
			same = append(same, DocID(binary.BigEndian.Uint32(k[16:])))
			return nil
		}, tell)
		if err == nil && going && len(same) > 1 {
			ready = append(ready, same)
			tell()
		}
		if err != nil && going {
			yield(nil, err)
		}
	}
}
