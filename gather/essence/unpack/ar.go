package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
)

// An Ar reads an archive of ar(1), such as a *.a or a *.deb: a line of magic, then
// for each member 60 bytes of text and its content, filled up to an even length.
// Long names stand in a table (GNU) or before the content (BSD).
type Ar struct {
	r     *bufio.Reader
	left  int64 // bytes of the member
	pad   int64
	table string

	Symbols []string // of the archive's own table, once it was read
}

// NewAr reads the magic.
func NewAr(r io.Reader) (*Ar, error) {
	a := &Ar{r: bufio.NewReader(r)}
	var magic [8]byte
	if _, err := io.ReadFull(a.r, magic[:]); err != nil {
		return nil, cut(err)
	}
	if string(magic[:]) != "!<arch>\n" {
		return nil, damaged("no magic of ar")
	}
	return a, nil
}

// Next goes to the next member; io.EOF is the end.
func (a *Ar) Next() (*Header, error) {
	for {
		if err := skip(a.r, a.left+a.pad); err != nil {
			return nil, err
		}
		a.left, a.pad = 0, 0
		var b [60]byte
		if _, err := io.ReadFull(a.r, b[:]); err != nil {
			return nil, err // io.EOF between members is the end
		}
		if b == [60]byte{} { // bsdtar fills blocks up
			return nil, io.EOF
		}
		h, err := a.header(string(b[:]))
		if err != nil || h != nil {
			return h, err
		}
	}
}

// header makes sense of a member's head; of one that is the archive's own it
// returns nil.
func (a *Ar) header(b string) (*Header, error) {
	name := strings.TrimRight(b[:16], " ")
	size, err := strconv.ParseInt(strings.TrimSpace(b[48:58]), 10, 64)
	if err != nil || size < 0 || b[58:] != "`\n" {
		return nil, damaged("header of ar")
	}
	sec, _ := strconv.ParseInt(strings.TrimSpace(b[16:28]), 10, 64)
	a.left, a.pad = size, size&1
	switch {
	case name == "/" || name == "/SYM64/":
		return nil, a.symbols(size, name == "/")
	case strings.HasPrefix(name, "__.SYMDEF"):
		return nil, nil
	case name == "//":
		if size > 1<<20 {
			return nil, damaged("a table of names of %d bytes", size)
		}
		t := make([]byte, 0, 512)
		for a.left > 0 {
			c, err := a.r.ReadByte()
			if err != nil {
				return nil, cut(err)
			}
			t, a.left = append(t, c), a.left-1
		}
		a.table = string(t)
		return nil, nil
	case strings.HasPrefix(name, "#1/"):
		n, err := strconv.ParseInt(name[3:], 10, 64)
		if err != nil || n < 0 || n > min(size, maxLongName) {
			return nil, damaged("name of ar")
		}
		long := make([]byte, n)
		if _, err := io.ReadFull(a.r, long); err != nil {
			return nil, cut(err)
		}
		name = strings.TrimRight(string(long), "\x00")
		a.left -= n
	case len(name) > 1 && name[0] == '/':
		if name, err = a.longName(name[1:]); err != nil {
			return nil, err
		}
	default:
		name = strings.TrimSuffix(name, "/")
	}
	return &Header{Name: name, Size: a.left, Packed: a.left, Modified: unix(sec), Regular: true}, nil
}

// maxArSymbols is how much of a table of symbols is read.
const maxArSymbols = 1 << 20

// symbols reads the table of symbols: their number, where the member of each
// stands, and their names. What is past the bound is skipped later.
func (a *Ar) symbols(size int64, short bool) error {
	b := make([]byte, 0, 4096)
	for a.left > 0 && len(b) < maxArSymbols {
		c, err := a.r.ReadByte()
		if err != nil {
			return cut(err)
		}
		b, a.left = append(b, c), a.left-1
	}
	wide := 8
	if short {
		wide = 4
	}
	if len(b) < wide {
		return nil
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if !short {
		n = binary.BigEndian.Uint64(b)
	}
	if n > uint64(size)/uint64(wide) {
		return damaged("%d symbols in %d bytes", n, size)
	}
	names := b[min(uint64(len(b)), (n+1)*uint64(wide)):]
	for ; n > 0 && len(names) > 0; n-- {
		name, rest, ok := bytes.Cut(names, []byte{0})
		if !ok {
			break
		}
		a.Symbols, names = append(a.Symbols, string(name)), rest
	}
	return nil
}

func (a *Ar) longName(at string) (string, error) {
	i, err := strconv.Atoi(at)
	if err != nil || i < 0 || i >= len(a.table) {
		return "", damaged("name of ar")
	}
	name, _, _ := strings.Cut(a.table[i:], "\n")
	name = strings.TrimSuffix(name, "/")
	return name[:min(len(name), maxLongName)], nil
}

// Read reads of the member.
func (a *Ar) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.r.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if a.left > 0 {
		err = cut(err)
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}
