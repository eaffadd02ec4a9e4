package unpack

// LZMA: a range coder over adaptive bits, literals in the context of the byte
// before, matches of 2 to 273 bytes at distances up to the size of the
// dictionary. What is decoded goes to the dictionary first, which grows with
// what is decoded: a header that claims 4 GiB costs nothing.

const (
	lzmaStates = 12
	lzmaTop    = 1 << 24
	probInit   = 1 << 10
)

type prob = uint16

// A lengthCoder decodes the lengths of matches.
type lengthCoder struct {
	choice, choice2 prob
	low, mid        [16][8]prob
	high            [256]prob
}

func (l *lengthCoder) init() {
	l.choice, l.choice2 = probInit, probInit
	for i := range l.low {
		fill(l.low[i][:])
		fill(l.mid[i][:])
	}
	fill(l.high[:])
}

func fill(p []prob) {
	for i := range p {
		p[i] = probInit
	}
}

// An lzma decodes one stream of LZMA.
type lzma struct {
	src       *source
	rng, code uint32

	lc, lp, pb uint
	lit        []prob
	isMatch    [lzmaStates << 4]prob
	isRep      [lzmaStates]prob
	isRepG0    [lzmaStates]prob
	isRepG1    [lzmaStates]prob
	isRepG2    [lzmaStates]prob
	isRep0Long [lzmaStates << 4]prob
	slot       [4][64]prob
	special    [128]prob
	align      [16]prob
	length     lengthCoder
	repLength  lengthCoder

	state uint32
	reps  [4]uint32
	run   int // bytes of a match that are still to be copied

	dict  []byte
	limit int   // its size at most
	pos   int   // next byte to be written
	total int64 // bytes written in all
	ended bool  // by the mark
}

// newLZMA makes a decoder of streams with these properties.
func newLZMA(src *source, limit int64) *lzma {
	return &lzma{src: src, limit: int(max(limit, 1<<12))}
}

// props sets the properties that a byte holds.
func (d *lzma) props(b byte) error {
	if b >= 9*5*5 {
		return damaged("properties of LZMA")
	}
	d.lc, d.lp, d.pb = uint(b%9), uint(b/9%5), uint(b/45)
	if n := 0x300 << (d.lc + d.lp); cap(d.lit) >= n {
		d.lit = d.lit[:n]
	} else {
		d.lit = make([]prob, n)
	}
	return nil
}

// reset begins a stream, with the dictionary as it is.
func (d *lzma) reset() {
	for _, p := range [][]prob{d.lit, d.isMatch[:], d.isRep[:], d.isRepG0[:], d.isRepG1[:], d.isRepG2[:], d.isRep0Long[:], d.special[:], d.align[:]} {
		fill(p)
	}
	for i := range d.slot {
		fill(d.slot[i][:])
	}
	d.length.init()
	d.repLength.init()
	d.state, d.reps, d.run, d.ended = 0, [4]uint32{}, 0, false
}

// start reads what the range coder begins with.
func (d *lzma) start() error {
	if d.src.byte() != 0 {
		return damaged("start of LZMA")
	}
	d.rng, d.code = 0xffffffff, 0
	for range 4 {
		d.code = d.code<<8 | uint32(d.src.byte())
	}
	if d.src.past > 0 {
		return cut(d.src.err)
	}
	return nil
}

func (d *lzma) bit(p *prob) uint32 {
	bound := (d.rng >> 11) * uint32(*p)
	var b uint32
	if d.code < bound {
		d.rng = bound
		*p += (1<<11 - *p) >> 5
	} else {
		d.rng -= bound
		d.code -= bound
		*p -= *p >> 5
		b = 1
	}
	if d.rng < lzmaTop {
		d.rng <<= 8
		d.code = d.code<<8 | uint32(d.src.byte())
	}
	return b
}

func (d *lzma) direct(n uint32) uint32 {
	v := uint32(0)
	for ; n > 0; n-- {
		d.rng >>= 1
		d.code -= d.rng
		t := 0 - d.code>>31
		d.code += d.rng & t
		if d.rng < lzmaTop {
			d.rng <<= 8
			d.code = d.code<<8 | uint32(d.src.byte())
		}
		v = v<<1 + t + 1
	}
	return v
}

func (d *lzma) tree(p []prob, bits uint) uint32 {
	m := uint32(1)
	for range bits {
		m = m<<1 | d.bit(&p[m])
	}
	return m - 1<<bits
}

func (d *lzma) reverse(p []prob, bits uint) uint32 {
	m, v := uint32(1), uint32(0)
	for i := range bits {
		b := d.bit(&p[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

func (l *lengthCoder) decode(d *lzma, at uint32) uint32 {
	if d.bit(&l.choice) == 0 {
		return d.tree(l.low[at][:], 3)
	}
	if d.bit(&l.choice2) == 0 {
		return 8 + d.tree(l.mid[at][:], 3)
	}
	return 16 + d.tree(l.high[:], 8)
}

func (d *lzma) distance(length uint32) uint32 {
	s := d.tree(d.slot[min(length, 3)][:], 6)
	if s < 4 {
		return s
	}
	n := uint(s>>1 - 1)
	dist := (2 | s&1) << n
	if s < 14 {
		return dist + d.reverse(d.special[dist-s:], n)
	}
	return dist + d.direct(uint32(n-4))<<4 + d.reverse(d.align[:], 4)
}

// back is the byte at a distance before the next; 0 is the one just written.
func (d *lzma) back(dist uint32) byte {
	i := d.pos - 1 - int(dist)
	if i < 0 {
		i += len(d.dict)
	}
	return d.dict[i]
}

// room makes the dictionary larger, or begins it again. The space to write to is
// up to its end.
func (d *lzma) room() {
	if d.pos < len(d.dict) {
		return
	}
	if len(d.dict) >= d.limit {
		d.pos = 0
		return
	}
	bigger := make([]byte, min(max(2*len(d.dict), 64<<10), d.limit))
	copy(bigger, d.dict)
	d.dict = bigger
}

// decode writes up to n bytes to the dictionary and returns them.
func (d *lzma) decode(n int) ([]byte, error) {
	d.room()
	from := d.pos
	end := min(len(d.dict), d.pos+n)
	for d.pos < end && !d.ended {
		if d.run > 0 {
			d.copyMatch(end)
			continue
		}
		if err := d.symbol(); err != nil {
			return d.dict[from:d.pos], err
		}
	}
	return d.dict[from:d.pos], nil
}

// copyMatch copies as much of a match as there is room for.
func (d *lzma) copyMatch(end int) {
	dist := int(d.reps[0]) + 1
	n := min(d.run, end-d.pos)
	d.run -= n
	d.total += int64(n)
	at := d.pos - dist
	if at < 0 {
		at += len(d.dict)
	}
	for range n {
		d.dict[d.pos] = d.dict[at]
		d.pos++
		if at++; at == len(d.dict) {
			at = 0
		}
	}
}

// symbol decodes a literal, or the length and distance of a match.
func (d *lzma) symbol() error {
	if d.src.past > 0 {
		return cut(d.src.err)
	}
	at := uint32(d.total) & (1<<d.pb - 1)
	if d.bit(&d.isMatch[d.state<<4+at]) == 0 {
		return d.literal()
	}
	if d.bit(&d.isRep[d.state]) == 0 {
		d.reps[3], d.reps[2], d.reps[1] = d.reps[2], d.reps[1], d.reps[0]
		length := d.length.decode(d, at)
		d.state = after(d.state, 7, 10)
		if d.reps[0] = d.distance(length); d.reps[0] == 0xffffffff {
			d.ended = true
			return nil
		}
		d.run = int(length) + 2
		return d.reaches()
	}
	return d.repeat(at)
}

// repeat decodes a match at one of the last four distances.
func (d *lzma) repeat(at uint32) error {
	r := &d.reps
	switch {
	case d.bit(&d.isRepG0[d.state]) == 0:
		if d.bit(&d.isRep0Long[d.state<<4+at]) == 0 {
			d.state, d.run = after(d.state, 9, 11), 1
			return d.reaches()
		}
	case d.bit(&d.isRepG1[d.state]) == 0:
		r[0], r[1] = r[1], r[0]
	case d.bit(&d.isRepG2[d.state]) == 0:
		r[0], r[1], r[2] = r[2], r[0], r[1]
	default:
		r[0], r[1], r[2], r[3] = r[3], r[0], r[1], r[2]
	}
	d.run = int(d.repLength.decode(d, at)) + 2
	d.state = after(d.state, 8, 11)
	return d.reaches()
}

// literal decodes one byte, in the context of the one before and, after a match,
// of the one that would have gone on with it.
func (d *lzma) literal() error {
	before := byte(0)
	if d.total > 0 {
		before = d.back(0)
	}
	at := uint(d.total)&(1<<d.lp-1)<<d.lc + uint(before)>>(8-d.lc)
	p := d.lit[0x300*at:][:0x300]
	sym := uint32(1)
	if d.state >= 7 {
		if err := d.reaches(); err != nil {
			return err
		}
		for m := uint32(d.back(d.reps[0])); sym < 0x100; m <<= 1 {
			want := m >> 7 & 1
			b := d.bit(&p[(1+want)<<8+sym])
			sym = sym<<1 | b
			if b != want {
				break
			}
		}
	}
	for sym < 0x100 {
		sym = sym<<1 | d.bit(&p[sym])
	}
	d.dict[d.pos] = byte(sym)
	d.pos++
	d.total++
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
	return nil
}

// after is the state after a match, by whether a literal was before it.
func after(state, literal, match uint32) uint32 {
	if state < 7 {
		return literal
	}
	return match
}

// reaches tells whether a match lies within what was decoded.
func (d *lzma) reaches() error {
	if int64(d.reps[0]) >= d.total || int64(d.reps[0]) >= int64(len(d.dict)) {
		return damaged("a match %d bytes back", int64(d.reps[0])+1)
	}
	return nil
}
