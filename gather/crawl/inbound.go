package crawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// # Links that lead to documents and servers
//
// How many documents refer to one, and how many servers to another, is counted as
// links are written, in the same transaction, so that nobody has to read all of
// them to know. Every link that stands in the bucket link counts, but those of a
// document to itself, and those to documents whose server is not known. Of one
// that was forgotten while others refer to it, lost keeps the server.

// A ref is how much there is of links to something.
type ref struct {
	others int // of a document: those from documents of other servers; of a server: other servers that have any
	all    int // of a document: from any other; of a server: links from documents of others
}

// refStep is how many refs are in one record.
const refStep = 128

func refKey(n uint32) []byte { return docKey(DocID(n / refStep)) }

// decodeRefs reads a record. What is not there, or damaged, is zero.
func decodeRefs(b []byte) (refs [refStep]ref) {
	r := &reader{b: b}
	for i := 0; i < refStep && len(r.b) > 0; i++ {
		refs[i] = ref{int(r.uint() & (1<<31 - 1)), int(r.uint() & (1<<31 - 1))}
	}
	return refs
}

// appendRefs adds a record, without the zeros at its end.
func appendRefs(b []byte, refs *[refStep]ref) []byte {
	n := refStep
	for n > 0 && refs[n-1] == (ref{}) {
		n--
	}
	for _, r := range refs[:n] {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(max(r.others, 0))), uint64(max(r.all, 0)))
	}
	return b
}

// getRef reads the refs of one document or server.
func getRef(b *bbolt.Bucket, n uint32) (got ref) {
	r := &reader{b: b.Get(refKey(n))}
	for range n % refStep {
		r.uint()
		r.uint()
	}
	if r.bad {
		return ref{}
	}
	return ref{int(r.uint() & (1<<31 - 1)), int(r.uint() & (1<<31 - 1))}
}

// A refReader reads the refs of documents in the order of their IDs.
type refReader struct {
	tx   *bbolt.Tx
	key  uint32 // of the record in hand
	refs [refStep]ref
}

func (r *refReader) get(tx *bbolt.Tx, n uint32) ref {
	if key := n / refStep; r.tx != tx || r.key != key {
		r.tx, r.key, r.refs = tx, key, decodeRefs(tx.Bucket(inBucket).Get(refKey(n)))
	}
	return r.refs[n%refStep]
}

// A tie is a server with links to another.
type tie struct{ to, from ServerID }

func tieKey(t tie) []byte {
	return binary.BigEndian.AppendUint32(docKey(DocID(t.to)), uint32(t.from)/refStep)
}

// decodeTies reads a record: of some servers, how many links they have to one. A
// damaged one is as good as what stands before the damage.
func decodeTies(b []byte) map[byte]int {
	links := make(map[byte]int, len(b)/2)
	r := &reader{b: b}
	for len(r.b) > 0 {
		from, n := r.uint(), r.uint()
		if r.bad || from >= refStep || n > 1<<31 {
			break
		}
		links[byte(from)] = int(n)
	}
	return links
}

func appendTies(b []byte, links map[byte]int) []byte {
	for _, from := range slices.Sorted(maps.Keys(links)) {
		if links[from] > 0 {
			b = binary.AppendUvarint(append(b, from), uint64(links[from]))
		}
	}
	return b
}

// recount notes that a document refers to some, and no more to others. Both are
// ascending.
func (b *batch) recount(d *Doc, was, to []DocID) {
	for len(was) > 0 || len(to) > 0 {
		switch {
		case len(to) == 0 || len(was) > 0 && was[0] < to[0]:
			b.count(d, was[0], -1)
			was = was[1:]
		case len(was) == 0 || to[0] < was[0]:
			b.count(d, to[0], 1)
			to = to[1:]
		default:
			was, to = was[1:], to[1:]
		}
	}
}

// count notes n links, more or less, from one document to another.
func (b *batch) count(d *Doc, id DocID, n int) {
	s, ok := b.serverOf(id)
	if !ok || id == d.ID {
		return
	}
	r := b.in[id]
	r.all += n
	if s != d.Server {
		r.others += n
		b.ties[tie{s, d.Server}] += n
	}
	b.in[id] = r
}

// serverOf finds the server of a document, also of one that was forgotten.
func (b *batch) serverOf(id DocID) (ServerID, bool) {
	if s, ok := b.server[id]; ok {
		return s, s != 0
	}
	var s ServerID
	if v := b.doc.Get(docKey(id)); len(v) >= 4 && v[0] == docVersion {
		n, _ := binary.Uvarint(v[3:])
		s = ServerID(n)
	} else if v := b.tx.Bucket(lostBucket).Get(docKey(id)); len(v) == 4 {
		s = ServerID(binary.BigEndian.Uint32(v))
	}
	b.server[id] = s
	return s, s != 0
}

// lose keeps the server of a document that is being forgotten, for those who
// refer to it.
func (b *batch) lose(d *Doc) error {
	if _, ok := b.in[d.ID]; !ok && getRef(b.tx.Bucket(inBucket), uint32(d.ID)).all == 0 {
		return nil
	}
	return b.tx.Bucket(lostBucket).Put(docKey(d.ID), docKey(DocID(d.Server)))
}

// writeRefs writes what has been counted.
func (b *batch) writeRefs() error {
	if err := b.writeTies(); err != nil {
		return err
	}
	in := make(map[uint32]ref, len(b.in))
	for id, r := range b.in {
		in[uint32(id)] = r
	}
	lost := b.tx.Bucket(lostBucket)
	return addRefs(b.tx.Bucket(inBucket), in, func(id uint32) error { return lost.Delete(docKey(DocID(id))) })
}

// writeTies writes which servers have links to which, and how many have to each.
func (b *batch) writeTies() error {
	ties := b.tx.Bucket(tieBucket)
	ties.FillPercent = 0.9
	all := slices.SortedFunc(maps.Keys(b.ties), func(x, y tie) int { return cmp.Or(cmp.Compare(x.to, y.to), cmp.Compare(x.from, y.from)) })
	linked := make(map[uint32]ref)
	for len(all) > 0 {
		key := tieKey(all[0])
		links := decodeTies(ties.Get(key))
		for len(all) > 0 && bytes.Equal(tieKey(all[0]), key) {
			t := all[0]
			from := byte(t.from % refStep)
			r, was := linked[uint32(t.to)], links[from]
			links[from] = max(was+b.ties[t], 0)
			r.all += links[from] - was
			r.others += min(links[from], 1) - min(was, 1)
			linked[uint32(t.to)] = r
			all = all[1:]
		}
		v := appendTies(nil, links)
		err := error(nil)
		if len(v) == 0 {
			err = ties.Delete(key)
		} else {
			err = ties.Put(key, v)
		}
		if err != nil {
			return err
		}
	}
	return addRefs(b.tx.Bucket(linkedBucket), linked, func(uint32) error { return nil })
}

// addRefs adds to refs. Of what comes to none, none is told.
func addRefs(b *bbolt.Bucket, add map[uint32]ref, none func(n uint32) error) error {
	all := slices.Sorted(maps.Keys(add))
	for len(all) > 0 {
		key := refKey(all[0])
		old := b.Get(key)
		refs := decodeRefs(old)
		for first := all[0] / refStep; len(all) > 0 && all[0]/refStep == first; all = all[1:] {
			r, n := &refs[all[0]%refStep], add[all[0]]
			r.others, r.all = max(r.others+n.others, 0), max(r.all+n.all, 0)
			if r.all == 0 {
				if err := none(all[0]); err != nil {
					return err
				}
			}
		}
		v := appendRefs(make([]byte, 0, max(len(old)+32, 2*refStep)), &refs)
		if bytes.Equal(v, old) {
			continue
		}
		if err := b.Put(key, v); err != nil {
			return err
		}
	}
	return nil
}

// A Linked is a server that others have links to.
type Linked struct {
	Server ServerID
	From   int // servers that have
	Links  int // of theirs to its documents
}

// Linked yields the servers that others have links to, in the order of their IDs.
func (f *DB) Linked(ctx context.Context) iter.Seq2[Linked, error] {
	return func(yield func(Linked, error) bool) {
		records := scanned(ctx, f, linkedBucket, nil, func(_ *bbolt.Tx, k, v []byte) (part []Linked, err error) {
			if len(k) != 4 {
				return nil, fmt.Errorf("linked: %w", errRecord)
			}
			first := ServerID(binary.BigEndian.Uint32(k) * refStep)
			for i, r := range decodeRefs(v) {
				if r.others > 0 {
					part = append(part, Linked{first + ServerID(i), r.others, r.all})
				}
			}
			return part, nil
		})
		for part, err := range records {
			if err != nil {
				yield(Linked{}, err)
				return
			}
			for _, l := range part {
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// countStep is how many links are counted in one transaction.
const countStep = 1 << 18

// countLinks counts the links of a database of a format that did not.
func (f *DB) countLinks() error {
	err := f.update(func(b *batch) error {
		for _, name := range [][]byte{inBucket, tieBucket, linkedBucket, lostBucket} {
			if b.tx.Bucket(name) != nil {
				if err := b.tx.DeleteBucket(name); err != nil {
					return err
				}
			}
			if err := anew(b.tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	for from := []byte{}; from != nil && err == nil; {
		err = f.update(func(b *batch) error {
			c := b.tx.Bucket(linkBucket).Cursor()
			k, v := c.Seek(from)
			for n := 0; k != nil && n < countStep; k, v = c.Next() {
				if len(k) != 4 {
					return fmt.Errorf("link: %w", errRecord)
				}
				d := Doc{ID: DocID(binary.BigEndian.Uint32(k))}
				to, err := decodeLinks(d.ID, v)
				n += len(to) + 1
				var ok bool
				if d.Server, ok = b.serverOf(d.ID); ok && err == nil { // else as good as none, as when they are written anew
					b.recount(&d, nil, to)
				}
			}
			from = bytes.Clone(k)
			return nil
		})
		if err == nil {
			err = forget(f.db)
		}
	}
	return err
}
