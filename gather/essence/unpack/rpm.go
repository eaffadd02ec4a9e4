package unpack

import (
	"bufio"
	"encoding/binary"
	"io"
	"strings"
)

// An RPM is a package of rpm(8): a lead of 96 bytes that nobody reads any more, a
// signature, a header of tags, and then an archive of cpio, compressed.
type RPM struct {
	Name, Version, Release, Summary, Description, Group, License, URL string
	Compressor                                                        string // gzip, xz, zstd, …
	Payload                                                           io.Reader
}

// NewRPM reads up to the payload.
func NewRPM(r io.Reader) (*RPM, error) {
	b := bufio.NewReader(r)
	lead := make([]byte, 96)
	if _, err := io.ReadFull(b, lead); err != nil {
		return nil, cut(err)
	}
	if string(lead[:4]) != "\xed\xab\xee\xdb" {
		return nil, damaged("no magic of rpm")
	}
	_, n, err := rpmTags(b)
	if err == nil {
		err = skip(b, fillUp(n, 8))
	}
	if err != nil {
		return nil, err
	}
	tags, _, err := rpmTags(b)
	if err != nil {
		return nil, err
	}
	return &RPM{
		Name: tags[1000], Version: tags[1001], Release: tags[1002], Summary: tags[1004], Description: tags[1005],
		License: tags[1014], Group: tags[1016], URL: tags[1020], Compressor: tags[1125], Payload: b,
	}, nil
}

// maxRPM bounds the header.
const maxRPM = 32 << 20

// rpmTags reads a header: its texts, the first of each tag, and its length.
func rpmTags(r io.Reader) (map[uint32]string, int64, error) {
	var h [16]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, 0, cut(err)
	}
	count, size := binary.BigEndian.Uint32(h[8:]), binary.BigEndian.Uint32(h[12:])
	if string(h[:3]) != "\x8e\xad\xe8" || count > maxRPM/16 || size > maxRPM {
		return nil, 0, damaged("header of rpm")
	}
	n := int64(count)*16 + int64(size)
	var text strings.Builder
	if _, err := io.CopyN(&text, r, n); err != nil {
		return nil, 0, cut(err)
	}
	index, data := text.String()[:count*16], text.String()[count*16:]
	tags := make(map[uint32]string)
	for ; len(index) > 0; index = index[16:] {
		word := func(i int) uint32 { return binary.BigEndian.Uint32([]byte(index[4*i : 4*i+4])) }
		tag, kind, at := word(0), word(1), word(2)
		if (kind == 6 || kind == 9) && tag < 1200 && uint64(at) < uint64(len(data)) {
			tags[tag], _, _ = strings.Cut(data[at:], "\x00")
		}
	}
	return tags, 16 + n, nil
}
