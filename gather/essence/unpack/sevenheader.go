package unpack

import (
	"encoding/binary"
	"fmt"
	"slices"
)

func (f *sevenFolder) size() int64 {
	for i := range f.sizes {
		if !slices.ContainsFunc(f.bonds, func(b [2]int) bool { return b[1] == i }) {
			return f.sizes[i]
		}
	}
	return 0
}

// sevenBytes is what is left of a header. What asks for more than there is ends
// in a panic of sevenShort, which Seven.header makes an error of.
type sevenBytes struct{ b []byte }

type sevenShort string

func (p *sevenBytes) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		panic(sevenShort("it ends early"))
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *sevenBytes) byte() byte { return p.take(1)[0] }

// number reads a number: as many bits as are set at the start of the first byte
// tell how many bytes follow.
func (p *sevenBytes) number() uint64 {
	first := p.byte()
	v, mask := uint64(0), byte(0x80)
	for i := range 8 {
		if first&mask == 0 {
			return v | uint64(first&(mask-1))<<(8*i)
		}
		v |= uint64(p.byte()) << (8 * i)
		mask >>= 1
	}
	return v
}

// count is a number of things each of which takes a byte or more of the header.
func (p *sevenBytes) count() int { return p.upTo(uint64(len(p.b))) }

func (p *sevenBytes) upTo(most uint64) int {
	n := p.number()
	if n > most {
		panic(sevenShort(fmt.Sprintf("%d things", n)))
	}
	return int(n)
}

func (p *sevenBytes) size64() int64 {
	n := p.number()
	if n > 1<<62 {
		panic(sevenShort("a size"))
	}
	return int64(n)
}

func (p *sevenBytes) want(id uint64) {
	if got := p.number(); got != id {
		panic(sevenShort(fmt.Sprintf("%#x, not %#x", got, id)))
	}
}

// bits reads n bits; all is said by a byte before them, if there may be one.
func (p *sevenBytes) bits(n int, all bool) []bool {
	bits := make([]bool, n)
	if all && p.byte() != 0 {
		for i := range bits {
			bits[i] = true
		}
		return bits
	}
	b := p.take(uint64(n+7) / 8)
	for i := range bits {
		bits[i] = b[i/8]&(0x80>>(i%8)) != 0
	}
	return bits
}

func (p *sevenBytes) digests(n int) []*uint32 {
	sums := make([]*uint32, n)
	for i, has := range p.bits(n, true) {
		if has {
			v := binary.LittleEndian.Uint32(p.take(4))
			sums[i] = &v
		}
	}
	return sums
}

// streams reads what is packed where, and how.
func (p *sevenBytes) streams() (folders []*sevenFolder) {
	var packs []int64
	at := int64(0)
	for {
		switch id := p.number(); id {
		case 0x00:
			return folders
		case 0x06:
			at = p.size64()
			packs = p.packs()
		case 0x07:
			folders = p.unpacked()
			for _, f := range folders {
				if len(f.packed) > len(packs) {
					panic(sevenShort("too few packed streams"))
				}
				f.at, f.packs = at, packs[:len(f.packed)]
				packs = packs[len(f.packed):]
				for _, n := range f.packs {
					if at += n; at < 0 {
						panic(sevenShort("a size"))
					}
				}
				f.subs, f.sums = []int64{f.size()}, []*uint32{f.crc}
			}
		case 0x08:
			p.substreams(folders)
		default:
			panic(sevenShort(fmt.Sprintf("%#x among streams", id)))
		}
	}
}

func (p *sevenBytes) packs() []int64 {
	n := p.count()
	packs := make([]int64, n)
	for {
		switch id := p.number(); id {
		case 0x00:
			return packs
		case 0x09:
			for i := range packs {
				packs[i] = p.size64()
			}
		case 0x0a:
			p.digests(n)
		default:
			panic(sevenShort(fmt.Sprintf("%#x among packed streams", id)))
		}
	}
}

func (p *sevenBytes) unpacked() []*sevenFolder {
	p.want(0x0b)
	folders := make([]*sevenFolder, p.count())
	if p.byte() != 0 {
		panic(sevenShort("folders elsewhere"))
	}
	for i := range folders {
		folders[i] = p.folder()
	}
	p.want(0x0c)
	for _, f := range folders {
		for i := range f.sizes {
			f.sizes[i] = p.size64()
		}
	}
	switch id := p.number(); id {
	case 0x00:
		return folders
	case 0x0a:
		for i, sum := range p.digests(len(folders)) {
			folders[i].crc = sum
		}
	default:
		panic(sevenShort(fmt.Sprintf("%#x among folders", id)))
	}
	p.want(0x00)
	return folders
}

func (p *sevenBytes) folder() *sevenFolder {
	f := new(sevenFolder)
	ins, outs := 0, 0
	for range p.upTo(32) {
		flags := p.byte()
		c := sevenCoder{id: string(p.take(uint64(flags & 15))), in: 1, out: 1}
		if flags&0x10 != 0 {
			c.in, c.out = p.upTo(32), p.upTo(32)
		}
		if flags&0x20 != 0 {
			c.props = p.take(p.number())
		}
		ins, outs = ins+c.in, outs+c.out
		f.coders = append(f.coders, c)
	}
	if outs == 0 || ins < outs-1 {
		panic(sevenShort("a folder of nothing"))
	}
	f.sizes = make([]int64, outs)
	for range outs - 1 {
		f.bonds = append(f.bonds, [2]int{p.upTo(uint64(ins)), p.upTo(uint64(outs))})
	}
	n := ins - len(f.bonds)
	if n == 1 {
		for i := range ins {
			if !slices.ContainsFunc(f.bonds, func(b [2]int) bool { return b[0] == i }) {
				f.packed = []int{i}
				break
			}
		}
		return f
	}
	for range n {
		f.packed = append(f.packed, p.upTo(uint64(ins)))
	}
	return f
}

// substreams reads how the output of each folder is divided.
func (p *sevenBytes) substreams(folders []*sevenFolder) {
	id := p.number()
	if id == 0x0d {
		total := uint64(0)
		for _, f := range folders {
			n := p.upTo(maxSevenHeader / 4)
			if total += uint64(n); total > maxSevenHeader/4 {
				panic(sevenShort("too many members"))
			}
			f.subs, f.sums = make([]int64, n), make([]*uint32, n)
			if n == 1 {
				f.sums[0] = f.crc
			}
		}
		id = p.number()
	}
	for _, f := range folders {
		left := f.size()
		for i := range f.subs {
			if i == len(f.subs)-1 {
				f.subs[i] = left
			} else if id == 0x09 {
				f.subs[i] = p.size64()
			}
			if left -= f.subs[i]; left < 0 {
				panic(sevenShort("members longer than their folder"))
			}
		}
	}
	if id == 0x09 {
		id = p.number()
	}
	if id == 0x0a {
		p.substreamSums(folders)
		id = p.number()
	}
	if id != 0 {
		panic(sevenShort(fmt.Sprintf("%#x among members", id)))
	}
}

func (p *sevenBytes) substreamSums(folders []*sevenFolder) {
	n := 0
	known := func(f *sevenFolder) bool { return len(f.subs) == 1 && f.crc != nil }
	for _, f := range folders {
		if !known(f) {
			n += len(f.subs)
		}
	}
	sums := p.digests(n)
	for _, f := range folders {
		if !known(f) {
			sums = sums[copy(f.sums, sums[:len(f.subs)]):]
		}
	}
}

// main reads the header proper.
func (s *Seven) main(p *sevenBytes) {
	for {
		switch id := p.number(); id {
		case 0x00:
			return
		case 0x02:
			for p.number() != 0 {
				p.take(p.number())
			}
		case 0x03:
			p.streams()
		case 0x04:
			s.folders = p.streams()
		case 0x05:
			s.files = p.files()
		default:
			panic(sevenShort(fmt.Sprintf("%#x", id)))
		}
	}
}

func (p *sevenBytes) files() (f sevenFiles) {
	f.n = p.count()
	for {
		id := p.number()
		if id == 0 {
			return f
		}
		b := &sevenBytes{p.take(p.number())}
		switch id {
		case 0x0e:
			f.empty = b.bits(f.n, false)
		case 0x0f:
			n := 0
			for _, e := range f.empty {
				if e {
					n++
				}
			}
			f.emptyFile = b.bits(n, false)
		case 0x11:
			if b.byte() == 0 {
				f.names = b.b
			}
		case 0x14:
			f.hasModified = b.bits(f.n, true)
			if b.byte() == 0 {
				f.modified = b.b
			}
		case 0x15:
			f.hasAttribute = b.bits(f.n, true)
			if b.byte() == 0 {
				f.attributes = b.b
			}
		}
	}
}
