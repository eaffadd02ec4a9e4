package segfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// IDs are those of a segment's documents, with the documents in their order.
type IDs struct {
	ids   []byte // 16 each
	order []byte // 4 each
}

// NewIDs takes 16 bytes a document and the documents in the order of these, 4
// bytes each, little endian. Who has them from a file sees to it that all are
// below the number of documents.
func NewIDs(ids, order []byte) *IDs { return &IDs{ids, order} }

// Order gives the documents in the order of their IDs, equal ones in their own.
func Order(ids []byte) []byte {
	docs := make([]uint32, len(ids)/16)
	for i := range docs {
		docs[i] = uint32(i)
	}
	slices.SortFunc(docs, func(a, b uint32) int {
		return cmp.Or(bytes.Compare(ids[16*a:16*a+16], ids[16*b:16*b+16]), cmp.Compare(a, b))
	})
	order := make([]byte, 0, 4*len(docs))
	for _, d := range docs {
		order = binary.LittleEndian.AppendUint32(order, d)
	}
	return order
}

// Len is the number of documents.
func (x *IDs) Len() int { return len(x.ids) / 16 }

// ID is that of a document.
func (x *IDs) ID(doc uint32) [16]byte { return [16]byte(x.ids[16*uint64(doc):]) }

// At is the document whose ID is the i-th in order.
func (x *IDs) At(i int) uint32 { return binary.LittleEndian.Uint32(x.order[4*i:]) }

func (x *IDs) bytes(i int) []byte { return x.ids[16*uint64(x.At(i)):][:16] }

// Find is the last document with an ID.
func (x *IDs) Find(id [16]byte) (uint32, bool) {
	i := sort.Search(x.Len(), func(i int) bool { return bytes.Compare(x.bytes(i), id[:]) > 0 }) - 1
	if i < 0 {
		return 0, false
	}
	d := x.At(i)
	return d, x.ID(d) == id
}

// Doubles are the documents whose ID comes again later.
func (x *IDs) Doubles() (docs []uint32) {
	for i := 1; i < x.Len(); i++ {
		if bytes.Equal(x.bytes(i-1), x.bytes(i)) {
			docs = append(docs, x.At(i-1))
		}
	}
	return docs
}

// Displaced are the documents that have the ID of one of by's.
func (x *IDs) Displaced(by *IDs) (docs []uint32) {
	if by.Len() < x.Len()/16 {
		for d := range uint32(by.Len()) {
			if old, ok := x.Find(by.ID(d)); ok {
				docs = append(docs, old)
			}
		}
		return docs
	}
	for i, j := 0, 0; i < x.Len() && j < by.Len(); {
		switch c := bytes.Compare(x.bytes(i), by.bytes(j)); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			docs = append(docs, x.At(i))
			i++
		}
	}
	return docs
}

// Lost are the documents of merged, a segment made of x less those that was
// has, that are gone since: now has them, or x is no more, which all says.
func (x *IDs) Lost(was, now *Tombstones, all bool, merged *IDs) (docs []uint32) {
	for d := range uint32(x.Len()) {
		if was.Has(d) || !all && !now.Has(d) {
			continue
		}
		if m, ok := merged.Find(x.ID(d)); ok {
			docs = append(docs, m)
		}
	}
	return docs
}
