package unpack

import (
	"bufio"
	"io"
)

// An lzhForm is a way of LZ77 with Huffman codes that Yoshizaki's ar002 began: that
// of lha's -lh4- to -lh7-, of arj's methods 1 to 3 and of zoo's method 2. They
// differ in how far back a match may lie, and in how that is written.
//
// A block has the number of its codes in 16 bits, the lengths of the codes for
// lengths, the lengths of the codes for characters and matches (in those codes), the
// lengths of the codes for distances, and its codes.
type lzhForm struct {
	window    int // bytes, not more than 64 KiB
	distances int // codes for distances
	bits      int // of their number
}

var (
	lzh4 = lzhForm{1 << 12, 14, 4}
	lzh5 = lzhForm{1 << 13, 14, 4}
	lzh6 = lzhForm{1 << 15, 16, 5}
	lzh7 = lzhForm{1 << 16, 17, 5}
	lzhA = lzhForm{26624, 17, 5} // of arj
)

const (
	lzhCodes  = 510 // characters, and matches of 3 to 256
	lzhLens   = 19
	lzhMatch  = 3  // the shortest
	lzhLength = 16 // of a code at most, in bits
)

// An lzh is a stream of that kind.
type lzh struct {
	form lzhForm
	in   bits
	left int64 // bytes that are still to come

	block int // codes left in it
	chars huffman
	dists huffman

	window
}

func newLZH(r io.Reader, form lzhForm, size int64) io.Reader {
	return &lzh{form: form, in: bits{r: bufio.NewReader(r)}, left: size, window: newWindow(form.window)}
}

// A window is what has come last, for matches in it, and one that is being copied.
type window struct {
	past []byte // a ring
	at   int
	back int // of the match
	run  int // bytes of it left
}

func newWindow(size int) window { return window{past: make([]byte, size)} }

func (w *window) put(b byte) byte {
	w.past[w.at] = b
	if w.at++; w.at == len(w.past) {
		w.at = 0
	}
	return b
}

func (w *window) copied() byte {
	from := w.at - w.back
	if from < 0 {
		from += len(w.past)
	}
	w.run--
	return w.put(w.past[from])
}

// Read gives what is told of a match first.
func (z *lzh) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if z.left <= 0 {
			return n, io.EOF
		}
		if z.run == 0 {
			b, match, err := z.code()
			if err != nil {
				return n, err
			}
			if !match {
				p[n] = z.put(b)
				n, z.left = n+1, z.left-1
				continue
			}
		}
		p[n] = z.copied()
		n, z.left = n+1, z.left-1
	}
	return n, nil
}

// code reads a character, or begins a match.
func (z *lzh) code() (b byte, match bool, err error) {
	if z.block == 0 {
		if err := z.begin(); err != nil {
			return 0, false, err
		}
	}
	z.block--
	c, err := z.chars.read(&z.in)
	if err != nil || c < 256 {
		return byte(c), false, err
	}
	d, err := z.dists.read(&z.in)
	if err != nil {
		return 0, false, err
	}
	if d > 1 {
		d = 1<<(d-1) | z.in.take(d-1)
	}
	if z.in.err != nil {
		return 0, false, z.in.err
	}
	if d >= len(z.past) {
		return 0, false, damaged("a match from before the window")
	}
	z.back, z.run = d+1, c-256+lzhMatch
	return 0, true, nil
}

// begin reads the head of a block.
func (z *lzh) begin() error {
	if z.block = z.in.take(16); z.block == 0 {
		if z.in.err != nil {
			return z.in.err
		}
		return damaged("an empty block")
	}
	var lens huffman
	if err := z.lengths(&lens, lzhLens, 5, 3); err != nil {
		return err
	}
	if err := z.charLengths(&lens); err != nil {
		return err
	}
	return z.lengths(&z.dists, z.form.distances, z.form.bits, -1)
}

// lengths reads the lengths of codes, and the number of those before. After the
// one with number gap two bits say how many are not there.
func (z *lzh) lengths(to *huffman, most, bits, gap int) error {
	n := z.in.take(bits)
	if n == 0 {
		symbol := z.in.take(bits)
		if z.in.err != nil {
			return z.in.err
		}
		return to.only(symbol, most)
	}
	var all [lzhLens]uint8
	if n > most {
		return damaged("%d codes where %d are possible", n, most)
	}
	for i := 0; i < n; {
		length := z.in.take(3)
		for length >= 7 && length <= lzhLength && z.in.take(1) == 1 {
			length++
		}
		if length > lzhLength {
			return damaged("a code of more than %d bits", lzhLength)
		}
		all[i] = uint8(length)
		if i++; i == gap {
			i = min(i+z.in.take(2), most)
		}
	}
	if z.in.err != nil {
		return z.in.err
	}
	return to.make(all[:most])
}

// charLengths reads the lengths of codes for characters and matches.
func (z *lzh) charLengths(lens *huffman) error {
	n := z.in.take(9)
	if n == 0 {
		symbol := z.in.take(9)
		if z.in.err != nil {
			return z.in.err
		}
		return z.chars.only(symbol, lzhCodes)
	}
	if n > lzhCodes {
		return damaged("%d codes where %d are possible", n, lzhCodes)
	}
	var all [lzhCodes]uint8
	for i := 0; i < n; {
		c, err := lens.read(&z.in)
		if err != nil {
			return err
		}
		switch c {
		case 0:
			i++
		case 1:
			i += 3 + z.in.take(4)
		case 2:
			i += 20 + z.in.take(9)
		default:
			all[i] = uint8(c - 2)
			i++
		}
	}
	if z.in.err != nil {
		return z.in.err
	}
	return z.chars.make(all[:])
}

// bits are read from the highest of each byte on. Past the end there are zeros, and
// soon an error.
type bits struct {
	r    io.ByteReader
	hold uint32
	n    int
	past int
	err  error
}

// take reads n bits, 16 at most.
func (b *bits) take(n int) int {
	for b.n < n {
		c, err := b.r.ReadByte()
		if err != nil {
			if b.past++; err != io.EOF || b.past > 2 {
				b.err = cut(err)
				return 0
			}
		}
		b.hold, b.n = b.hold<<8|uint32(c), b.n+8
	}
	b.n -= n
	return int(b.hold >> b.n & (1<<n - 1))
}

// A huffman is a canonical code: of a length those of lower symbols come first.
type huffman struct {
	one    bool // there is one symbol, written in no bits
	symbol []uint16
	count  [lzhLength + 1]uint16
}

// only makes the code of one symbol.
func (h *huffman) only(symbol, most int) error {
	if symbol >= most {
		return damaged("a code for %d where %d are possible", symbol, most)
	}
	h.one, h.symbol = true, append(h.symbol[:0], uint16(symbol))
	return nil
}

// make makes the code of which the lengths are known.
func (h *huffman) make(lengths []uint8) error {
	h.one, h.count = false, [lzhLength + 1]uint16{}
	for _, n := range lengths {
		h.count[n]++
	}
	h.count[0] = 0
	var at [lzhLength + 2]int
	room := 1
	for n := 1; n <= lzhLength; n++ {
		at[n+1] = at[n] + int(h.count[n])
		if room = 2*room - int(h.count[n]); room < 0 {
			return damaged("more codes than there are")
		}
	}
	if cap(h.symbol) < len(lengths) {
		h.symbol = make([]uint16, len(lengths))
	}
	h.symbol = h.symbol[:at[lzhLength+1]]
	for i, n := range lengths {
		if n > 0 {
			h.symbol[at[n]] = uint16(i)
			at[n]++
		}
	}
	return nil
}

// read reads a symbol.
func (h *huffman) read(b *bits) (int, error) {
	if h.one {
		return int(h.symbol[0]), nil
	}
	code, first, at := 0, 0, 0
	for n := 1; n <= lzhLength; n++ {
		code |= b.take(1)
		if b.err != nil {
			return 0, b.err
		}
		count := int(h.count[n])
		if code-first < count {
			return int(h.symbol[at+code-first]), nil
		}
		at, first, code = at+count, (first+count)<<1, code<<1
	}
	return 0, damaged("a code that stands for nothing")
}

// arcSum is the sum of lha and zoo.
type arcSum uint16

func (c *arcSum) write(p []byte) {
	v := uint16(*c)
	for _, b := range p {
		v ^= uint16(b)
		for range 8 {
			v = v>>1 ^ 0xa001&-(v&1)
		}
	}
	*c = arcSum(v)
}

// A checked member is one whose length and sum are known.
type checked struct {
	r    io.Reader
	left int64
	sum  func(p []byte) bool // adds, and tells whether that makes the sum
	ok   bool
}

func (c *checked) Read(p []byte) (int, error) {
	if c.left == 0 {
		if !c.ok {
			return 0, damaged("its sum is another")
		}
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.ok = c.sum(p[:n])
	if err == io.EOF {
		if err = nil; c.left > 0 && n == 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// sum16 is for a member of a known sum.
func sum16(r io.Reader, size int64, want uint16) *checked {
	var c arcSum
	return &checked{r: r, left: size, ok: size == 0, sum: func(p []byte) bool { c.write(p); return uint16(c) == want }}
}
