package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	iofs "io/fs"
	"sync"
)

// # Digests
//
// The digest of a set of objects is a Merkle tree over the OIDs, with nodes for
// prefixes of 0, 2 and 4 hex digits:
//
//	leaf(pppp) = SHA-256("harvest digest 1 leaf\n" (OID hash)…)
//	node(p)    = SHA-256("harvest digest 1 node\n" child(p00) … child(pff))
//
// A leaf's objects are in the order of their OIDs, 16 bytes of OID and 16 of hash
// each, the hash being the first half of the SHA-256 of the encoded object. A node
// has the 32 bytes of each of its 256 children. Without objects a leaf or node is
// 32 zero bytes. So the digest depends on nothing but the set, and of two sets
// that differ in one object, three digests differ.
//
// They are kept in memory, 2.1 MB when all are known, and made when asked for: a
// change costs the next question one leaf (some 15 objects of a million), a node
// of 256 leaves and the root. The first question after Open costs a pass over all
// objects.
const (
	leafMagic = "harvest digest 1 leaf\n"
	nodeMagic = "harvest digest 1 node\n"
)

// A Digest stands for the objects whose OIDs begin with a prefix: two stores have
// the same one if and only if they have the same objects with the same contents
// there, whatever their histories.
type Digest struct {
	Prefix string
	Sum    [32]byte
	Count  int64
}

// digests are the digests that are known. The mutex is held while one is made,
// and an index transaction with it: a change that is entered meanwhile waits to
// say so until the old digest is in place, and then removes it.
type digests struct {
	mu   sync.Mutex
	root *node
	subs [256]*subDigests
}

type subDigests struct {
	node   *node
	leaves [256]node
	known  [256]bool
}

type node struct {
	sum   [32]byte
	count int64
}

// changed forgets the digests of what a table changed.
func (d *digests) changed(t *table) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for oid := range t.rows {
		d.root = nil
		if sub := d.subs[oid[0]]; sub != nil {
			sub.node = nil
			sub.known[oid[1]] = false
		}
	}
}

// Digest returns the Merkle digest of the objects whose OIDs begin with prefix,
// of 0, 2 or 4 hex digits.
func (s *Store) Digest(prefix string) (Digest, error) {
	b, err := hex.DecodeString(prefix)
	if err != nil || len(b) > 2 || !isHex(prefix) {
		return Digest{}, fmt.Errorf("digest %.40q: not 0, 2 or 4 hex digits: %w", prefix, iofs.ErrInvalid)
	}
	if err := s.flush(); err != nil {
		return Digest{}, err
	}
	s.digests.mu.Lock()
	defer s.digests.mu.Unlock()
	var n *node
	switch len(b) {
	case 0:
		n, err = s.rootDigest()
	case 1:
		n, err = s.subDigest(b[0])
	default:
		if _, err = s.subDigest(b[0]); err == nil {
			n = &s.digests.subs[b[0]].leaves[b[1]]
		}
	}
	if err != nil {
		return Digest{}, err
	}
	return Digest{prefix, n.sum, n.count}, nil
}

// Digests returns the digests of the 256 children of a prefix of 0 or 2 digits.
func (s *Store) Digests(ctx context.Context, prefix string) ([]Digest, error) {
	if len(prefix) > 2 {
		return nil, fmt.Errorf("digests %.40q: not 0 or 2 hex digits: %w", prefix, iofs.ErrInvalid)
	}
	all := make([]Digest, 256)
	for i := range all {
		d, err := s.Digest(fmt.Sprintf("%s%02x", prefix, i))
		if err != nil {
			return nil, err
		}
		if all[i] = d; ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return all, nil
}

func (s *Store) rootDigest() (*node, error) {
	if s.digests.root != nil {
		return s.digests.root, nil
	}
	h := sha256.New()
	h.Write([]byte(nodeMagic))
	n := new(node)
	for i := range 256 {
		sub, err := s.subDigest(byte(i))
		if err != nil {
			return nil, err
		}
		h.Write(sub.sum[:])
		n.count += sub.count
	}
	if n.count > 0 {
		h.Sum(n.sum[:0])
	}
	s.digests.root = n
	return n, nil
}

// subDigest returns the digest of a folder, and makes its leaves that are not
// known.
func (s *Store) subDigest(first byte) (*node, error) {
	d := s.digests.subs[first]
	if d == nil {
		d = new(subDigests)
		s.digests.subs[first] = d
	}
	if d.node != nil {
		return d.node, nil
	}
	if err := s.view(func(v view) error { return d.make(v.buckets, first) }); err != nil {
		return nil, err
	}
	s.looks.Add(forgetEvery) // some hundred pages
	h := sha256.New()
	h.Write([]byte(nodeMagic))
	n := new(node)
	for i := range d.leaves {
		h.Write(d.leaves[i].sum[:])
		n.count += d.leaves[i].count
	}
	if n.count > 0 {
		h.Sum(n.sum[:0])
	}
	d.node = n
	return n, nil
}

// make makes the leaves that are not known, runs of them in one pass.
func (d *subDigests) make(b buckets, first byte) error {
	c := b.obj.Cursor()
	for i := 0; i < 256; i++ {
		if d.known[i] {
			continue
		}
		k, v := c.Seek([]byte{first, byte(i)})
		for ; i < 256 && !d.known[i]; i++ {
			h := sha256.New()
			h.Write([]byte(leafMagic))
			leaf := node{}
			for ; len(k) == len(OID{}) && k[0] == first && k[1] == byte(i); k, v = c.Next() {
				r, err := parseRow(OID(k), v)
				if err != nil {
					return err
				}
				h.Write(k)
				h.Write(r.Hash[:])
				leaf.count++
			}
			if leaf.count > 0 {
				h.Sum(leaf.sum[:0])
			}
			d.leaves[i], d.known[i] = leaf, true
		}
	}
	return nil
}
