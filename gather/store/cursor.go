package store

import (
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"
)

// ErrCursor is the class of cursors that cannot be gone on from: they belong to
// another epoch of the store, lie in its future, or are so old that deletions
// since have been forgotten. The reader has to begin again at `0`, and drop what
// it does not find there. It wraps fs.ErrNotExist, which is what is left of it when
// it comes from a remote tree: there is no such file of changes.
var ErrCursor error = cursorError{}

type cursorError struct{}

func (cursorError) Error() string { return "start again from 0" }
func (cursorError) Unwrap() error { return iofs.ErrNotExist }

// A Cursor is a place in the order of changes. The zero Cursor is before
// everything. The epoch is drawn when a store is made, and again when it may
// have lost changes that it had acknowledged.
type Cursor struct {
	Epoch uint32
	Seq   uint64
}

// String returns the cursor as it stands in file names: `0`, or the epoch as
// eight hex digits, a point and the number of the last change.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return "0"
	}
	return fmt.Sprintf("%08x.%d", c.Epoch, c.Seq)
}

// splitCursor reads what String gives or a time. Only one of the results is
// set; `0` sets neither.
func splitCursor(text string) (c Cursor, t time.Time, err error) {
	if text == "0" {
		return Cursor{}, time.Time{}, nil
	}
	if epoch, seq, ok := strings.Cut(text, "."); ok && len(epoch) == 8 && isHex(epoch) {
		e, _ := strconv.ParseUint(epoch, 16, 32)
		n, err := strconv.ParseUint(seq, 10, 64)
		if err == nil && seq == strconv.FormatUint(n, 10) {
			return Cursor{uint32(e), n}, time.Time{}, nil
		}
	} else if t, err := time.Parse(time.RFC3339, text); err == nil {
		return Cursor{}, t, nil
	}
	return Cursor{}, time.Time{}, fmt.Errorf("cursor %.60q: neither a cursor nor a time: %w", text, iofs.ErrInvalid)
}
