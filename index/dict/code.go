package dict

import (
	"fmt"
	"math/bits"
	"slices"
)

// A code is a prefix code's word for something, its first bit lowest.
type code struct {
	bits uint16
	n    uint8
}

var errCode = fmt.Errorf("code: %w", ErrCorrupt)

// lengths gives lengths of at most limit bits for what was seen so often:
// Huffman's, those too long cut and others made longer until all fit. Not
// seen is 0 bits, nothing.
func lengths(seen []uint32, limit int) []uint8 {
	out := make([]uint8, len(seen))
	var order []int // by how often, rarest first
	for i, n := range seen {
		if n > 0 {
			order = append(order, i)
		}
	}
	if len(order) < 2 {
		for _, i := range order {
			out[i] = 1
		}
		return out
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(int64(seen[a]) - int64(seen[b])) })
	depth := huffman(seen, order)
	sum := 0 // of 2^-length, in 2^-limit
	for i, s := range order {
		out[s] = uint8(min(depth[i], limit))
		sum += 1 << (limit - int(out[s]))
	}
	for sum > 1<<limit { // the rarest of those that can be longer
		for _, s := range order {
			if int(out[s]) < limit && sum > 1<<limit {
				out[s]++
				sum -= 1 << (limit - int(out[s]))
			}
		}
	}
	for i := len(order) - 1; i >= 0; i-- { // what is left, to the most frequent
		if s := order[i]; out[s] > 1 && sum+1<<(limit-int(out[s])) <= 1<<limit {
			sum += 1 << (limit - int(out[s]))
			out[s]--
		}
	}
	return out
}

// huffman gives the depths in Huffman's tree of leaves in ascending order.
func huffman(seen []uint32, order []int) []int {
	n := len(order)
	weight := make([]uint64, 0, n-1) // of inner nodes, in the order they are made
	up := make([]int, 2*n-1)         // the inner node above each leaf, then each inner node
	leaf, inner := 0, 0
	take := func(to int) uint64 {
		if inner == len(weight) || leaf < n && uint64(seen[order[leaf]]) <= weight[inner] {
			up[leaf] = to
			leaf++
			return uint64(seen[order[leaf-1]])
		}
		up[n+inner] = to
		inner++
		return weight[inner-1]
	}
	for i := range n - 1 {
		weight = append(weight, take(i)+take(i))
	}
	depth := make([]int, 2*n-1)
	for i := 2*n - 3; i >= 0; i-- {
		depth[i] = depth[n+up[i]] + 1
	}
	return depth[:n]
}

// assign gives words to lengths, the shorter first, then by number. It says
// false if there are more than fit.
func assign(lengths []uint8, use func(i int, c code)) bool {
	var count [16]uint32
	for _, n := range lengths {
		count[n&15]++
	}
	var next [17]uint32
	for n := 1; n < 16; n++ {
		next[n+1] = (next[n] + count[n]) << 1
		if count[n] > 0 && next[n]+count[n] > 1<<n {
			return false
		}
	}
	for i, n := range lengths {
		if n > 0 {
			use(i, code{uint16(bits.Reverse32(next[n]) >> (32 - n)), n})
			next[n]++
		}
	}
	return true
}

// An entry of a decoding table: the word's length in its low 4 bits, above
// them what it stands for; 0 where no word leads.
type entry uint32

// fill makes the decoding table of lengths: as long as the longest says, a
// power of two of at most 1<<limit.
func fill(lengths []uint8, limit int) ([]entry, bool) {
	most := 0
	for _, n := range lengths {
		most = max(most, int(n))
	}
	if most > limit {
		return nil, false
	}
	t := make([]entry, 1<<most)
	ok := assign(lengths, func(i int, c code) {
		e := entry(i)<<4 | entry(c.n)
		for k := int(c.bits); k < len(t); k += 1 << c.n {
			t[k] = e
		}
	})
	return t, ok
}

// pack writes lengths of at most 14 bits, two a byte; 15 and a byte is a run
// of 2..257 without a word.
func pack(b []byte, lengths []uint8) []byte {
	var half []uint8
	for i := 0; i < len(lengths); {
		run := 0
		for i+run < len(lengths) && lengths[i+run] == 0 && run < 257 {
			run++
		}
		if run < 2 {
			half = append(half, lengths[i])
			i++
			continue
		}
		half = append(half, 15, uint8(run-2)&15, uint8(run-2)>>4)
		i += run
	}
	if len(half)%2 == 1 {
		half = append(half, 0)
	}
	for i := 0; i < len(half); i += 2 {
		b = append(b, half[i]|half[i+1]<<4)
	}
	return b
}

// unpack reads n lengths, and gives what is left of b.
func unpack(b []byte, n int) (lengths []uint8, rest []byte, err error) {
	if n > 257*len(b) {
		return nil, nil, errCode
	}
	lengths = make([]uint8, n)
	at := 0
	half := func() uint8 {
		v := uint8(15)
		if at/2 < len(b) {
			v = b[at/2] >> (at % 2 * 4) & 15
		}
		at++
		return v
	}
	for i := 0; i < n; {
		v := half()
		if v < 15 {
			lengths[i] = v
			i++
			continue
		}
		i += int(half()) + int(half())<<4 + 2
		if i > n {
			return nil, nil, errCode
		}
	}
	if at = (at + 1) / 2; at > len(b) {
		return nil, nil, errCode
	}
	return lengths, b[at:], nil
}
