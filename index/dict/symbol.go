package dict

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A symbol is a piece of a term that has a code: up to 8 bytes, and whether
// the term ends there.
type symbol struct {
	text uint64 // the first byte lowest, those past n zero
	n    uint8
	end  bool
}

const (
	longest    = 8    // bytes of a symbol
	maxSymbols = 4096 // of a chunk
	maxBits    = 13   // of a symbol's code
	symbolCost = 40   // bits to write one
)

func mask(text uint64, n int) uint64 {
	if n >= 8 {
		return text
	}
	return text & (1<<(8*n) - 1)
}

// then is s followed by t, if that is not too long.
func (s symbol) then(t symbol) (symbol, bool) {
	if s.end || s.n+t.n > longest {
		return s, false
	}
	return symbol{s.text | t.text<<(8*s.n), s.n + t.n, t.end}, true // shifted by 64 only if t.text is 0
}

// A tally is a hash table from symbols to numbers.
type tally struct {
	slots []tallied
	used  []int32 // slots in use, in the order they came
}

type tallied struct {
	symbol
	n int32 // 0: free
}

func newTally(room int) *tally {
	size := 64
	for size < 2*room {
		size *= 2
	}
	return &tally{slots: make([]tallied, size)}
}

func (t *tally) reset() {
	for _, i := range t.used {
		t.slots[i] = tallied{}
	}
	t.used = t.used[:0]
}

func (t *tally) find(s symbol) int {
	h := (s.text + uint64(s.n)<<57) * 0x9e3779b97f4a7c15
	if s.end {
		h = ^h
	}
	i := int((h ^ h>>29) >> 20)
	for ; ; i++ {
		i &= len(t.slots) - 1
		if e := &t.slots[i]; e.n == 0 || e.symbol == s {
			return i
		}
	}
}

func (t *tally) add(s symbol, n int32) {
	i := t.find(s)
	if t.slots[i].n == 0 {
		t.slots[i].symbol = s
		t.used = append(t.used, int32(i))
	}
	t.slots[i].n += n
}

// A speller cuts suffixes into symbols.
type speller struct {
	symbols []symbol
	number  *tally         // of each symbol in symbols, and 1
	most    [1 << 16]uint8 // the longest symbol that begins with two bytes
}

func newSpeller(symbols []symbol) *speller {
	s := &speller{symbols: symbols, number: newTally(len(symbols))}
	for i, y := range symbols {
		s.number.add(y, int32(i+1))
		k := y.text & 0xffff
		s.most[k] = max(s.most[k], y.n)
	}
	return s
}

// spell calls use with each symbol of a suffix of n bytes at the front of r,
// which is followed by 8 bytes of anything.
func (s *speller) spell(r []byte, n int, use func(i int)) {
	for i := 0; ; {
		y := s.longest(mask(binary.LittleEndian.Uint64(r[i:]), n-i), n-i)
		use(y)
		if s.symbols[y].end {
			return
		}
		i += int(s.symbols[y].n)
	}
}

// longest gives the longest symbol that text begins with, of which rest bytes
// are left in the term. There is one: each byte used, and the end, have theirs.
func (s *speller) longest(text uint64, rest int) int {
	for n := min(max(int(s.most[text&0xffff]), 1), rest); ; n-- {
		t := mask(text, n)
		if n == rest {
			if k := s.number.slots[s.number.find(symbol{t, uint8(n), true})].n; k > 0 {
				return int(k - 1)
			}
		}
		if n == 0 {
			panic("a byte without its symbol")
		}
		if k := s.number.slots[s.number.find(symbol{t, uint8(n), false})].n; k > 0 {
			return int(k - 1)
		}
	}
}

// learn finds symbols that make suffixes short. Each round spells a sample
// with those of the round before, and takes from them and from every two
// that stand together the ones that save most bits.
func learn(sample [][]byte, letters []symbol, worth float64) []symbol {
	symbols := letters
	size := 0
	for _, s := range sample {
		size += len(s)
	}
	seen := newTally(size/2 + 1024)
	var alone [256]float64 // what a byte costs alone
	for round := range 5 {
		s := newSpeller(symbols)
		seen.reset()
		total := 0
		for _, text := range sample {
			last := symbol{end: true}
			s.spell(text, len(text)-8, func(i int) {
				y := symbols[i]
				seen.add(y, 1)
				if pair, ok := last.then(y); ok && len(seen.used) < len(seen.slots)/2 {
					seen.add(pair, 1)
				}
				last = y
				total++
			})
		}
		if round == 0 {
			for _, y := range letters {
				n := seen.slots[seen.find(y)].n
				alone[byte(y.text)] = math.Log2(float64(total) / float64(max(n, 1)))
			}
		}
		symbols = append(slices.Clip(letters), seen.best(total, maxSymbols-len(letters), &alone, worth)...)
	}
	return symbols
}

// best gives up to n symbols that save most, of those that save at least
// worth bits.
func (t *tally) best(total, n int, alone *[256]float64, worth float64) []symbol {
	type gain struct {
		symbol
		bits float64
	}
	var all []gain
	for _, i := range t.used {
		e := &t.slots[i]
		if e.n < 2 || e.symbol.n == 0 || e.symbol.n == 1 && !e.end {
			continue
		}
		one := -math.Log2(float64(total) / float64(e.n))
		for k := range e.symbol.n {
			one += alone[byte(e.text>>(8*k))]
		}
		if e.end {
			one += 2
		}
		if g := one * float64(e.n); g > worth {
			all = append(all, gain{e.symbol, g})
		}
	}
	slices.SortFunc(all, func(a, b gain) int {
		switch {
		case a.bits != b.bits:
			return cmp(b.bits, a.bits)
		case a.text != b.text:
			return cmp(a.text, b.text)
		case a.n != b.n:
			return int(a.n) - int(b.n)
		case a.end:
			return 1
		}
		return -1
	})
	all = all[:min(n, len(all))]
	out := make([]symbol, len(all))
	for i, g := range all {
		out[i] = g.symbol
	}
	return out
}

func cmp[T uint64 | float64](a, b T) int {
	if a < b {
		return -1
	}
	return 1
}

// compare orders symbols as they are written: by length, those that do not
// end a term first, then by their bytes.
func (s symbol) compare(t symbol) int {
	switch {
	case s.n != t.n:
		return int(s.n) - int(t.n)
	case s.end != t.end && t.end:
		return -1
	case s.end != t.end:
		return 1
	case s.text == t.text:
		return 0
	}
	return cmp(bits.ReverseBytes64(s.text), bits.ReverseBytes64(t.text))
}

// packSymbols writes symbols in their order: for each length and end how many
// there are, and what each is greater by than the one before, its bytes read
// as a number.
func packSymbols(b []byte, symbols []symbol) []byte {
	for n := range uint8(longest + 1) {
		for _, end := range []bool{false, true} {
			i := 0
			for i < len(symbols) && symbols[i].n == n && symbols[i].end == end {
				i++
			}
			b = binary.AppendUvarint(b, uint64(i))
			last := uint64(0)
			for _, y := range symbols[:i] {
				v := bits.ReverseBytes64(y.text) >> (64 - 8*n)
				b = binary.AppendUvarint(b, v-last)
				last = v
			}
			symbols = symbols[i:]
		}
	}
	return b
}

// unpackSymbols reads them, and gives what is left of b.
func unpackSymbols(b []byte) (symbols []symbol, rest []byte, err error) {
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, n = errCode, len(b)
		}
		b = b[n:]
		return v
	}
	for i := range 2 * (longest + 1) {
		n := uint8(i / 2)
		count := number()
		if count > uint64(len(b)) || len(symbols)+int(count) > maxSymbols {
			return nil, nil, errCode
		}
		v := uint64(0)
		for range count {
			v += number()
			symbols = append(symbols, symbol{bits.ReverseBytes64(v << (64 - 8*n)), n, i%2 == 1})
		}
	}
	return symbols, b, err
}
