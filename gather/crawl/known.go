package crawl

import (
	"math/bits"
	"sync"
)

// known answers which document a URL is, for every URL there is a record of,
// without the database: a set of hashes with a number to each, in some 12 bytes
// a URL. Nearly all questions of a crawl are about URLs it has met, so that a
// filter which only says no would not do.
//
// The tables are open-addressed, and split by the first byte of the hash into
// parts that grow one at a time and by an eighth, so that growing never holds all
// of it twice and little of it is empty. They keep the last six bytes of it: with
// the part those are 56 bits, by which among 50 million URLs a pair is taken for
// one in one crawl of sixty. They are not on Go's heap, whose collector would let
// the process grow to double their size.
type known struct {
	seed uint64

	mu   sync.RWMutex
	part [256]part
}

type part struct {
	low  []uint32 // of the hash, four bytes
	high []uint16 // and two; both 0 is free
	vals []DocID  // 0 is forgotten
	used int      // entries that are not free
}

// A key is what a part keeps of a hash.
type key struct {
	low  uint32
	high uint16
}

// keyOf returns that of a hash, which is not what stands for a free place.
func keyOf(hash uint64) key {
	k := key{uint32(hash), uint16(hash >> 32)}
	if k == (key{}) {
		k.low = 1
	}
	return k
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
	if i := p.find(keyOf(hash)); i >= 0 {
		return p.vals[i] // 0 where it is free
	}
	return 0
}

// set says which document a hash stands for, 0 for none.
func (k *known) set(hash uint64, id DocID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, at := &k.part[hash>>56], keyOf(hash)
	i := p.find(at)
	if i >= 0 && p.at(i) == at {
		p.vals[i] = id
		return
	}
	if id == 0 {
		return
	}
	if (p.used+1)*8 > len(p.vals)*7 {
		p.grow(max(64, len(p.vals)+len(p.vals)/8))
		i = p.find(at)
	}
	p.put(i, at, id)
}

func (p *part) at(i int) key { return key{p.low[i], p.high[i]} }

// put takes a place that is free.
func (p *part) put(i int, at key, id DocID) {
	p.low[i], p.high[i], p.vals[i] = at.low, at.high, id
	p.used++
}

// find returns where a key is, or is to go; less than 0 when there is no table.
func (p *part) find(at key) int {
	if len(p.low) == 0 {
		return -1
	}
	hi, _ := bits.Mul64(uint64(at.high)<<48|uint64(at.low)<<16, uint64(len(p.low)))
	for i := int(hi); ; {
		if low := p.low[i]; (low == at.low || low == 0) && (p.at(i) == at || p.at(i) == key{}) {
			return i
		}
		if i++; i == len(p.low) {
			i = 0
		}
	}
}

// grow makes room for n keys, less those that are forgotten.
func (p *part) grow(n int) {
	old := *p
	p.low, p.high, p.vals, p.used = newTable[uint32](n), newTable[uint16](n), newTable[DocID](n), 0
	for i, id := range old.vals {
		if id != 0 {
			at := old.at(i)
			p.put(p.find(at), at, id)
		}
	}
	old.free()
}

func (p *part) free() {
	freeTable(p.low)
	freeTable(p.high)
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
