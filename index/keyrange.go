package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	iofs "io/fs"
	"math"

	"harvest/index/query"
)

// A KeyRange is the keys of values (Keys) that a comparison asks for, for
// engines that keep them in order.
type KeyRange struct{ keyRange }

// NewKeyRange is the range of a query.Compare or query.Range; of anything else
// it is an error of class iofs.ErrInvalid.
func NewKeyRange(q query.Node) (KeyRange, error) {
	switch q := q.(type) {
	case query.Compare:
		switch q.Op {
		case "=", "<", "<=", ">", ">=":
			return KeyRange{newCompare(q.Op, q.Value)}, nil
		}
	case query.Range:
		if q.Low+q.High != "" {
			return KeyRange{newRange(q.Low, q.High)}, nil
		}
	}
	return KeyRange{}, fmt.Errorf("query %v: %w", q, iofs.ErrInvalid)
}

// First is not above any key of the range.
func (r *KeyRange) First() []byte { return r.low }

// Has tells whether a key is in the range.
func (r *KeyRange) Has(key []byte) bool { return r.has(key) }

// Past tells whether a key is above all of the range.
func (r *KeyRange) Past(key []byte) bool {
	if r.high == nil {
		return len(key) > 0 && key[0] > r.kind
	}
	return bytes.Compare(key, r.high) > 0
}

// Bounds reads the ends of a range as NewKeyRange does: the kind of keys that are
// compared, and between which numbers, or which seconds since 1970, they lie;
// what is open is infinite. Of texts there are no bounds.
func Bounds(low, high string) (kind byte, from, to float64) {
	r := newRange(low, high)
	from, to = math.Inf(-1), math.Inf(1)
	read := func(key []byte) float64 {
		if r.kind == KeyNumber {
			return keyNumber(key)
		}
		return float64(int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63))
	}
	if r.kind == KeyText {
		return r.kind, from, to
	}
	if len(r.low) > 1 {
		from = read(r.low)
	}
	if len(r.high) > 1 {
		to = read(r.high)
	}
	return r.kind, from, to
}

// Last is not below any key of the range; where the range is open, it is below
// the keys of the next kind.
func (r *KeyRange) Last() []byte {
	if r.high == nil {
		return []byte{r.kind + 1}
	}
	return r.high
}
