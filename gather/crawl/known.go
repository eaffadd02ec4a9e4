package crawl

import (
	"math/bits"
	"sync"
)

// known answers which document a URL is, for every URL there is a record of,
// without the database: a set of 64-bit hashes with a number to each, in some
// 15 bytes a URL. Nearly all questions of a crawl are about URLs it has met, so
// that a filter which only says no would not do.
//
// The tables are open-addressed, and split by the hash into parts that grow one
// at a time and by a quarter, so that growing never holds all of it twice. They
// are not on Go's heap, whose collector would let the process grow to double
// their size.
type known struct {
	seed uint64

	mu   sync.RWMutex
	part [256]part
}

type part struct {
	keys []uint64 // 0 is free
	vals []DocID  // 0 is forgotten
	used int      // keys that are not 0
}

// hash is that of a URL. It is keyed, so that nobody can make up a URL that
// passes for another's.
func (k *known) hash(url string) uint64 {
	const m1, m2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	h := k.seed
	for len(url) >= 8 {
		h = mum(word(url)^m1, h^m2)
		url = url[8:]
	}
	var last uint64
	for i := 0; i < len(url); i++ {
		last |= uint64(url[i]) << (8 * i)
	}
	h = mum(last^m1, h^m2^uint64(len(url)))
	return max(mum(h^m2, k.seed|1), 1)
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func mum(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// get returns the document whose URL has a hash, 0 when there is none.
func (k *known) get(hash uint64) DocID {
	k.mu.RLock()
	defer k.mu.RUnlock()
	p := &k.part[hash>>56]
	if i := p.find(hash); i >= 0 && p.keys[i] == hash {
		return p.vals[i]
	}
	return 0
}

// set says which document a hash stands for, 0 for none.
func (k *known) set(hash uint64, id DocID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &k.part[hash>>56]
	i := p.find(hash)
	if i >= 0 && p.keys[i] == hash {
		p.vals[i] = id
		return
	}
	if id == 0 {
		return
	}
	if (p.used+1)*8 > len(p.keys)*7 {
		p.grow(max(64, len(p.keys)+len(p.keys)/4))
		i = p.find(hash)
	}
	p.keys[i], p.vals[i] = hash, id
	p.used++
}

// find returns where a hash is, or is to go; less than 0 when there is no table.
func (p *part) find(hash uint64) int {
	if len(p.keys) == 0 {
		return -1
	}
	hi, _ := bits.Mul64(hash<<8, uint64(len(p.keys)))
	for i := int(hi); ; {
		if p.keys[i] == hash || p.keys[i] == 0 {
			return i
		}
		if i++; i == len(p.keys) {
			i = 0
		}
	}
}

// grow makes room for n keys, less those that are forgotten.
func (p *part) grow(n int) {
	old := *p
	p.keys, p.vals, p.used = newTable[uint64](n), newTable[DocID](n), 0
	for i, hash := range old.keys {
		if hash != 0 && old.vals[i] != 0 {
			j := p.find(hash)
			p.keys[j], p.vals[j] = hash, old.vals[i]
			p.used++
		}
	}
	old.free()
}

func (p *part) free() {
	freeTable(p.keys)
	freeTable(p.vals)
	*p = part{}
}

// reserve makes room for n hashes, before there are any.
func (k *known) reserve(n int) {
	for i := range k.part {
		k.part[i].grow(max(64, n/len(k.part)*6/5+n/len(k.part)/100))
	}
}

func (k *known) free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.part {
		k.part[i].free()
	}
}

// bitset is a set of documents.
type bitset []uint64

func (b bitset) has(id DocID) bool { return int(id>>6) < len(b) && b[id>>6]&(1<<(id&63)) != 0 }

func (b *bitset) add(id DocID) {
	for int(id>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[id>>6] |= 1 << (id & 63)
}
