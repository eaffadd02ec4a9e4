package replica

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"harvest/gather/store"
)

// walk goes down the writer's digests where they differ from those here. Each node is
// under its parent, and the root under the head, or it is not believed; so is what is
// not there: a record that is not under the head is gone.
func (j *job) walk() {
	j.p.walks++
	j.walked = true
	j.ask("sum/"+j.w.String()+"/node", maxNode, weightSmall, func(b []byte, err error) error {
		if err != nil && !absent(err) {
			return err
		}
		if err != nil && j.head.Digest != (digest{}) || err == nil && hashNode(b) != j.head.Digest {
			return j.doubt(lief("sum/%s/node is not what the head %s signs", j.w, j.head.Version))
		}
		theirs, err := unpackNode(b)
		if err != nil {
			return lief("sum/%s/node: %v", j.w, err)
		}
		ours := j.base.trie.top()
		for a := range theirs {
			if theirs[a] != ours[a] {
				if err := j.folder(byte(a), theirs[a]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// folder walks what is below one byte.
func (j *job) folder(a byte, want digest) error {
	if want == (digest{}) {
		return j.differ([]byte{a}, nil)
	}
	path := fmt.Sprintf("sum/%s/%02x/", j.w, a)
	j.ask(path+"node", maxNode, weightSmall, func(b []byte, err error) error {
		if err != nil && !absent(err) {
			return err
		}
		if err != nil || hashNode(b) != want {
			return j.doubt(lief("%snode is not what the node above it says", path))
		}
		theirs, err := unpackNode(b)
		if err != nil {
			return lief("%snode: %v", path, err)
		}
		return j.leaves(a, path, theirs)
	})
	return nil
}

// leaves reads the leaves below one byte that differ: one by one when they are few.
func (j *job) leaves(a byte, path string, theirs *children) error {
	ours := j.base.trie.leaves(a)
	var differ []byte
	for b := range theirs {
		if theirs[b] != ours[b] {
			differ = append(differ, byte(b))
		}
	}
	if len(differ) > fewLeaves {
		j.allLeaves(a, path, theirs, differ)
		return nil
	}
	for _, b := range differ {
		if theirs[b] == (digest{}) {
			if err := j.differ([]byte{a, b}, nil); err != nil {
				return err
			}
			continue
		}
		name := fmt.Sprintf("%s%02x", path, b)
		j.ask(name, maxLeaf, weightSmall, func(data []byte, err error) error {
			if absent(err) { // a copy of a tree has no leaves by themselves
				j.allLeaves(a, path, theirs, []byte{b})
				return nil
			}
			if err != nil {
				return err
			}
			return j.leaf(name, []byte{a, b}, data, theirs[b])
		})
	}
	return nil
}

// Bounds of the files of records.
const (
	maxLeaf    = 4 << 20
	maxRecords = 64 << 20
)

// allLeaves reads all leaves below one byte at once.
func (j *job) allLeaves(a byte, path string, theirs *children, differ []byte) {
	name := path + "records"
	j.ask(name, maxRecords, weightFolder, func(data []byte, err error) error {
		if err != nil && !absent(err) {
			return err
		}
		if err != nil {
			return j.doubt(lief("%s is not there", name))
		}
		all, err := cutLeaves(a, data)
		if err != nil {
			return j.doubt(asLie(err))
		}
		var changes []Record
		for _, b := range differ {
			if hashLeaf(all[b]) != theirs[b] {
				return j.doubt(lief("%s: leaf %02x is not what the node says", name, b))
			}
			some, err := j.changes([]byte{a, b}, all[b])
			if err != nil {
				return err
			}
			changes = append(changes, some...)
		}
		return j.take(changes, &a)
	})
}

// cutLeaves parts the records below one byte by the next.
func cutLeaves(a byte, data []byte) (all [256][]byte, err error) {
	if len(data)%recordSize != 0 {
		return all, lief("records of %02x: %d bytes", a, len(data))
	}
	for len(data) > 0 {
		b, n := data[1], 0
		for n < len(data) && data[n] == a && data[n+1] == b {
			n += recordSize
		}
		if n == 0 || all[b] != nil {
			return all, lief("records of %02x: out of order", a)
		}
		all[b], data = data[:n], data[n:]
	}
	return all, nil
}

// leaf takes the records of one leaf.
func (j *job) leaf(name string, prefix, data []byte, want digest) error {
	if hashLeaf(data) != want {
		return j.doubt(lief("%s is not what the node above it says", name))
	}
	return j.differ(prefix, data)
}

// differ takes what is under a prefix to be just these records.
func (j *job) differ(prefix, data []byte) error {
	changes, err := j.changes(prefix, data)
	j.pending = append(j.pending, changes...)
	return err
}

// changes gives what makes the records under a prefix those of the data, which is
// known to be the writer's. What is not among them is gone since some version: that
// of the head will do.
func (j *job) changes(prefix, data []byte) (list []Record, err error) {
	theirs, err := parseRecords(prefix, data)
	if err != nil {
		return nil, err // so the writer has signed nonsense
	}
	ours := make(map[store.OID]Record)
	err = j.p.m.db.View(func(tx *bbolt.Tx) error {
		return tableOf(tx, j.w).each(prefix, func(r *Record) error {
			ours[r.OID] = *r
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for _, r := range theirs {
		if o, ok := ours[r.OID]; !ok || o != r {
			list = append(list, r)
		}
		delete(ours, r.OID)
	}
	for oid := range ours {
		list = append(list, Record{OID: oid, Version: j.head.Version})
	}
	slices.SortFunc(list, func(a, b Record) int { return bytes.Compare(a.OID[:], b.OID[:]) })
	return list, nil
}

func compareWriters(a, b Writer) int { return bytes.Compare(a[:], b[:]) }
