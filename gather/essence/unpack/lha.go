package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// An LHA reads an archive of lha: members one after another, each with a header of
// one of four levels. Read are stored members and -lh4- to -lh7-; those of LHarc
// and LArc before them (-lh1-, -lz5- …) are told of.
type LHA struct {
	r    *bufio.Reader
	data io.LimitedReader // what a member takes
	m    io.Reader
}

// NewLHA reads nothing yet.
func NewLHA(r io.Reader) *LHA { return &LHA{r: bufio.NewReader(r), m: eof{}} }

// eof is a member without content.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// failing is a member that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// maxLHAHeader bounds a header with what extends it.
const maxLHAHeader = 64 << 10

// An lhaHeader is what is made of a header.
type lhaHeader struct {
	Header
	method string
	dir    string
	crc    uint16
}

// Next goes to the next member; io.EOF is the end.
func (a *LHA) Next() (*Header, error) {
	if err := skip(&a.data, a.data.N); err != nil {
		return nil, err
	}
	b, err := a.r.Peek(21)
	if len(b) == 0 && err == io.EOF || len(b) > 0 && b[0] == 0 && !(len(b) > 20 && b[20] == 2 && b[2] == '-') {
		return nil, io.EOF
	}
	if err != nil {
		return nil, cut(err)
	}
	if b[2] != '-' || b[6] != '-' {
		return nil, damaged("header of lha")
	}
	h := &lhaHeader{method: string(b[2:7])}
	h.Packed, h.Size = int64(binary.LittleEndian.Uint32(b[7:])), int64(binary.LittleEndian.Uint32(b[11:]))
	stamp := binary.LittleEndian.Uint32(b[15:])
	switch level := b[20]; level {
	case 0, 1:
		h.Modified = dosTime(uint16(stamp>>16), uint16(stamp))
		err = a.old(h, level)
	case 2:
		h.Modified = unix(int64(stamp))
		err = a.level2(h)
	default:
		err = unread("a header of level %d", level)
	}
	if err != nil {
		return nil, err
	}
	a.data = io.LimitedReader{R: a.r, N: h.Packed}
	a.member(h)
	return &h.Header, nil
}

// old reads a header of level 0 or 1.
func (a *LHA) old(h *lhaHeader, level byte) error {
	first, _ := a.r.Peek(1)
	b := make([]byte, int(first[0])+2)
	if _, err := io.ReadFull(a.r, b); err != nil {
		return cut(err)
	}
	if len(b) < 22 || 22+int(b[21])+2 > len(b) {
		return damaged("header of lha")
	}
	var sum byte
	for _, c := range b[2:] {
		sum += c
	}
	if sum != b[1] {
		return damaged("header of lha: its sum is another")
	}
	end := 22 + int(b[21])
	h.Name = string(b[22:end])
	h.crc = binary.LittleEndian.Uint16(b[end:])
	if level == 0 {
		return nil
	}
	if len(b) < end+5 {
		return damaged("header of lha")
	}
	size, err := a.extended(h, int(binary.LittleEndian.Uint16(b[len(b)-2:])), maxLHAHeader)
	if h.Packed -= int64(size); err == nil && h.Packed < 0 {
		err = damaged("header of lha")
	}
	return err
}

// level2 reads a header of level 2.
func (a *LHA) level2(h *lhaHeader) error {
	var b [26]byte
	if _, err := io.ReadFull(a.r, b[:]); err != nil {
		return cut(err)
	}
	size := int(binary.LittleEndian.Uint16(b[:]))
	h.crc = binary.LittleEndian.Uint16(b[21:])
	if size < len(b) {
		return damaged("header of lha")
	}
	took, err := a.extended(h, int(binary.LittleEndian.Uint16(b[24:])), size-len(b))
	if err != nil {
		return err
	}
	return skip(a.r, int64(size-len(b)-took)) // a byte, where its size would end in 0
}

// extended reads what extends a header: each part ends with the size of the next.
func (a *LHA) extended(h *lhaHeader, next, room int) (took int, err error) {
	for next != 0 {
		if next < 3 || took+next > room {
			return took, damaged("header of lha")
		}
		b := make([]byte, next)
		if _, err := io.ReadFull(a.r, b); err != nil {
			return took, cut(err)
		}
		took += next
		next = int(binary.LittleEndian.Uint16(b[len(b)-2:]))
		switch body := b[1 : len(b)-2]; b[0] {
		case 1:
			h.Name = string(body)
		case 2:
			h.dir = string(bytes.ReplaceAll(body, []byte{0xff}, []byte{'/'}))
		case 0x54:
			if len(body) >= 4 {
				h.Modified = unix(int64(binary.LittleEndian.Uint32(body)))
			}
		}
	}
	return took, nil
}

// member opens what follows a header.
func (a *LHA) member(h *lhaHeader) {
	if h.dir != "" && !strings.HasSuffix(h.dir, "/") {
		h.dir += "/"
	}
	h.Name, _, _ = strings.Cut(h.Name, "\x00") // what follows is a symbol of Unix
	h.Name = pcName(h.dir + h.Name)
	h.Regular = h.method != "-lhd-"
	forms := map[string]lzhForm{"-lh4-": lzh4, "-lh5-": lzh5, "-lh6-": lzh6, "-lh7-": lzh7}
	form, packed := forms[h.method]
	switch {
	case !h.Regular:
		a.m = eof{}
	case packed:
		a.m = sum16(newLZH(&a.data, form, h.Size), h.Size, h.crc)
	case h.method == "-lh0-" || h.method == "-lz4-":
		a.m = sum16(&a.data, min(h.Size, h.Packed), h.crc)
	default:
		h.Err = unread("of method %s", strings.ToValidUTF8(h.method, "?"))
		a.m = failing{h.Err}
	}
}

// Read reads of the member.
func (a *LHA) Read(p []byte) (int, error) { return a.m.Read(p) }

// pcName is a name of a PC: with / between its parts, in UTF-8.
func pcName(name string) string { return zipName([]byte(name[:min(len(name), maxLongName)]), 0) }
