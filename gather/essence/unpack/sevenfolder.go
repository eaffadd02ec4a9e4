package unpack

import (
	"compress/bzip2"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/flate"
)

// A sevenFolder is a chain of decoders with one output.
type sevenFolder struct {
	coders []sevenCoder
	bonds  [][2]int // input, output
	packed []int    // inputs that the packed streams go to
	sizes  []int64  // of the outputs
	at     int64    // where its packed streams begin
	packs  []int64  // their sizes
	crc    *uint32
	subs   []int64 // sizes of its members
	sums   []*uint32
}

type sevenCoder struct {
	id      string
	in, out int
	props   []byte
}

// A sevenChain puts a folder's decoders together. Each of the streams that a decoder
// reads is packed in the archive, or what another gives.
type sevenChain struct {
	s      *Seven
	f      *sevenFolder
	memory int64
	used   []bool // coders: none is asked twice
}

// open puts a folder's decoders together.
func (s *Seven) open(f *sevenFolder) (io.Reader, error) {
	for _, c := range f.coders {
		if c.id == "\x06\xf1\x07\x01" {
			return nil, unread("encrypted")
		}
		if c.out != 1 || c.in != 1 && (c.in != 4 || c.id != bcj2ID) {
			return nil, unread("%s", c)
		}
	}
	for i := range f.sizes {
		if !slices.ContainsFunc(f.bonds, func(b [2]int) bool { return b[1] == i }) {
			c := &sevenChain{s: s, f: f, memory: s.memory, used: make([]bool, len(f.coders))}
			return c.output(i)
		}
	}
	return nil, damaged("a folder whose decoders go round")
}

// output is what a coder gives; each has one, so that its number is the coder's.
func (c *sevenChain) output(coder int) (io.Reader, error) {
	if coder >= len(c.used) || c.used[coder] {
		return nil, damaged("a folder whose decoders go round")
	}
	c.used[coder] = true
	first := 0
	for _, before := range c.f.coders[:coder] {
		first += before.in
	}
	var in []io.Reader
	for i := range c.f.coders[coder].in {
		r, err := c.input(first + i)
		if err != nil {
			return nil, err
		}
		in = append(in, r)
	}
	if len(in) == 4 {
		return newBCJ2(in[0], in[1], in[2], in[3]), nil
	}
	return c.f.coders[coder].open(in[0], c.f.sizes[coder], &c.memory)
}

// input is the stream of that number.
func (c *sevenChain) input(n int) (io.Reader, error) {
	if i := slices.IndexFunc(c.f.bonds, func(b [2]int) bool { return b[0] == n }); i >= 0 {
		return c.output(c.f.bonds[i][1])
	}
	i := slices.Index(c.f.packed, n)
	if i < 0 || i >= len(c.f.packs) {
		return nil, damaged("a folder without its streams")
	}
	at := c.f.at
	for _, before := range c.f.packs[:i] {
		at += before
	}
	if at > c.s.size-32-c.f.packs[i] {
		return nil, damaged("a folder past the archive")
	}
	return io.NewSectionReader(c.s.r, 32+at, c.f.packs[i]), nil
}

const bcj2ID = "\x03\x03\x01\x1b"

// String names the method, for what is not read.
func (c sevenCoder) String() string {
	name := map[string]string{"\x03\x04\x01": "PPMd, ", bcj2ID: "BCJ2, ", "\x03\x03\x02\x05": "a filter for PowerPC, ", "\x03\x03\x04\x01": "a filter for IA-64, ",
		"\x03\x03\x05\x01": "a filter for ARM, ", "\x03\x03\x07\x01": "a filter for Thumb, ", "\x03\x03\x08\x05": "a filter for SPARC, ", "\x0a": "a filter for ARM64, ",
		"\x04\xf7\x11\x02": "brotli, ", "\x04\xf7\x11\x04": "lz4, "}[c.id]
	return fmt.Sprintf("%smethod %x of 7z", name, c.id)
}

func (c *sevenCoder) open(in io.Reader, size int64, memory *int64) (io.Reader, error) {
	switch c.id {
	case "\x00":
		return in, nil
	case "\x21":
		if len(c.props) != 1 || c.props[0] > 40 {
			return nil, damaged("properties of LZMA2")
		}
		dict := min(int64(2|c.props[0]&1)<<(c.props[0]/2+11), max(size, 1<<12))
		z, err := newLZMA2(newSource(in), dict, *memory)
		*memory -= dict
		return z, err
	case "\x03\x01\x01":
		z, err := rawLZMA(newSource(in), c.props, size, *memory)
		if len(c.props) == 5 {
			*memory -= min(int64(binary.LittleEndian.Uint32(c.props[1:])), size)
		}
		return z, err
	case "\x04\x01\x08":
		return flate.NewReader(in), nil
	case "\x04\x01\x09":
		return newDeflate64(in), nil
	case "\x04\x02\x02":
		return bzip2.NewReader(in), nil
	case "\x04\xf7\x11\x01":
		return newZstd(in, *memory)
	case "\x03":
		if len(c.props) != 1 {
			return nil, damaged("properties of delta")
		}
		return &delta{r: in, n: int(c.props[0]) + 1}, nil
	case "\x03\x03\x01\x03", "\x04":
		return newX86(in), nil
	}
	return nil, unread("%s", c)
}
