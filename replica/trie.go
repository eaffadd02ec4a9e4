package replica

import (
	"crypto/sha256"
	"fmt"
	iofs "io/fs"
	"math/bits"
)

// # Digests
//
// The digest of a writer's records is a Merkle tree over the OIDs with nodes for
// prefixes of 0, 2 and 4 hex digits, 256 children each:
//
//	leaf(aabb) = SHA-256("harvest replica 1 leaf\n" record…)
//	node(p)    = SHA-256("harvest replica 1 node\n" present[32] child…)
//
// A leaf has the records whose OIDs begin so, in order; present has a bit for each
// child that is not empty, the highest of the first byte for 00, and only those
// follow. The root of what is empty is 32 zero bytes.
//
// What is hashed is what the files under sum/ hold, so who reads them from the root
// down knows of each whether it belongs under the head that was signed.
const (
	leafMagic = "harvest replica 1 leaf\n"
	nodeMagic = "harvest replica 1 node\n"
	maxNode   = 32 + 256*32
)

type digest = [32]byte

func hashLeaf(records []byte) (d digest) {
	if len(records) == 0 {
		return d
	}
	h := sha256.New()
	h.Write([]byte(leafMagic))
	h.Write(records)
	h.Sum(d[:0])
	return d
}

func hashNode(node []byte) (d digest) {
	if len(node) <= 32 {
		return d
	}
	h := sha256.New()
	h.Write([]byte(nodeMagic))
	h.Write(node)
	h.Sum(d[:0])
	return d
}

// children are the digests of a node's children; those that are not there are zero.
type children [256]digest

// pack gives the node as it is hashed and sent.
func (c *children) pack() []byte {
	b := make([]byte, 32, maxNode)
	for i := range c {
		if c[i] != (digest{}) {
			b[i/8] |= 0x80 >> (i % 8)
			b = append(b, c[i][:]...)
		}
	}
	return b
}

// unpackNode reads what pack gives, and nothing else. No bytes are an empty node.
func unpackNode(b []byte) (*children, error) {
	c := new(children)
	if len(b) == 0 {
		return c, nil
	}
	if len(b) < 32 {
		return nil, fmt.Errorf("node: %d bytes: %w", len(b), iofs.ErrInvalid)
	}
	n := 0
	for _, x := range b[:32] {
		n += bits.OnesCount8(x)
	}
	if len(b) != 32+32*n {
		return nil, fmt.Errorf("node of %d children: %d bytes: %w", n, len(b), iofs.ErrInvalid)
	}
	rest := b[32:]
	for i := range c {
		if b[i/8]&(0x80>>(i%8)) != 0 {
			if c[i] = digest(rest); c[i] == (digest{}) {
				return nil, fmt.Errorf("node: child %02x is empty: %w", i, iofs.ErrInvalid)
			}
			rest = rest[32:]
		}
	}
	return c, nil
}

// A trie is the digests of a writer's records. It never changes: with makes another,
// which shares what is the same.
type trie struct {
	sum  digest
	subs [256]*sub // nil: empty
}

// A sub is the digests of the leaves below a prefix of one byte, packed as a node.
type sub struct {
	sum  digest
	node []byte
}

func (t *trie) leaves(a byte) *children {
	if t.subs[a] == nil {
		return new(children)
	}
	c, err := unpackNode(t.subs[a].node)
	if err != nil {
		panic(err) // it was packed here
	}
	return c
}

// top is the children of the root.
func (t *trie) top() *children {
	c := new(children)
	for i, s := range t.subs {
		if s != nil {
			c[i] = s.sum
		}
	}
	return c
}

// with is the trie with other digests of some leaves.
func (t *trie) with(leaves map[[2]byte]digest) *trie {
	n := &trie{subs: t.subs}
	touched := make(map[byte]*children)
	for p, d := range leaves {
		c := touched[p[0]]
		if c == nil {
			c = t.leaves(p[0])
			touched[p[0]] = c
		}
		c[p[1]] = d
	}
	for a, c := range touched {
		node := c.pack()
		n.subs[a] = nil
		if len(node) > 32 {
			n.subs[a] = &sub{hashNode(node), node}
		}
	}
	n.sum = hashNode(n.top().pack())
	return n
}
