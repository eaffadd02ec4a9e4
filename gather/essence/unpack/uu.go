package unpack

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"strings"
)

// A UU finds what uuencode(1) wrote in a text, of which there may be several
// among other things: lines from `begin MODE NAME` to `end`, or from
// `begin-base64 MODE NAME` to `====`.
type UU struct {
	r      *bufio.Reader
	base64 bool
	in     bool // in a member
	out    []byte
	err    error
}

// NewUU begins at the start of a text.
func NewUU(r io.Reader) *UU { return &UU{r: bufio.NewReaderSize(r, 4096)} }

// IsUU reports whether a text has a line that begins something encoded.
func IsUU(text []byte) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte("begin"))
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || text[at-1] == '\n' {
			line, _, _ := bytes.Cut(text[at:min(len(text), at+300)], []byte("\n"))
			if _, _, ok := uuBegin(string(line)); ok {
				return true
			}
		}
		at += len("begin")
	}
}

// uuBegin takes a line that begins a member apart.
func uuBegin(line string) (name string, b64, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "begin")
	if !ok {
		return "", false, false
	}
	if rest, b64 = strings.CutPrefix(rest, "-base64"); !strings.HasPrefix(rest, " ") {
		return "", false, false
	}
	mode, name, ok := strings.Cut(rest[1:], " ")
	if !ok || len(mode) < 3 || len(mode) > 6 || strings.Trim(mode, "01234567") != "" || name == "" {
		return "", false, false
	}
	return name, b64, true
}

// line reads a line; of one that is longer than any of ours the rest is another.
func (u *UU) line() ([]byte, error) {
	b, err := u.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull || err == io.EOF && len(b) > 0 {
		err = nil
	}
	return b, err
}

// Next goes to the next member; io.EOF is the end.
func (u *UU) Next() (*Header, error) {
	for u.in {
		u.out = nil
		u.decode()
	}
	u.out, u.err = nil, nil
	for {
		b, err := u.line()
		if err != nil {
			return nil, err
		}
		if len(b) < 5 || string(b[:5]) != "begin" {
			continue
		}
		if name, b64, ok := uuBegin(string(b)); ok {
			u.in, u.base64 = true, b64
			return &Header{Name: name, Size: -1, Packed: -1, Regular: true}, nil
		}
	}
}

// decode decodes a line.
func (u *UU) decode() {
	b, err := u.line()
	if err != nil {
		u.in, u.err = false, cut(err)
		return
	}
	b = bytes.TrimRight(b, "\r\n")
	if u.base64 {
		if bytes.HasPrefix(b, []byte("====")) {
			u.in, u.err = false, io.EOF
			return
		}
		b = bytes.TrimSpace(b)
		n, err := base64.StdEncoding.Decode(b, b)
		if u.out = b[:n]; err != nil {
			u.in, u.err = false, damaged("a line that is no base64")
		}
		return
	}
	if string(b) == "end" {
		u.in, u.err = false, io.EOF
		return
	}
	u.out = uuLine(b)
	if u.out == nil && len(b) > 1 {
		u.in, u.err = false, damaged("a line that is not encoded")
	}
}

// uuLine decodes a line in place: its length, then four characters for every
// three bytes; blanks at its end may have been lost. It is nil for what is none.
func uuLine(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	n := int(b[0]-' ') & 63
	want := (n + 2) / 3 * 4
	if b[0] < ' ' || b[0] > '`' || len(b) > want+3 { // some add a sum
		return nil
	}
	out := make([]byte, 0, want)
	for i := 1; i <= want; i += 4 {
		v := 0
		for j := range 4 {
			c := byte(' ')
			if i+j < len(b) {
				c = b[i+j]
			}
			if c < ' ' || c > '`' {
				return nil
			}
			v = v<<6 | int(c-' ')&63
		}
		out = append(out, byte(v>>16), byte(v>>8), byte(v))
	}
	return out[:n]
}

// Read reads of the member.
func (u *UU) Read(p []byte) (int, error) {
	for len(u.out) == 0 && u.in {
		u.decode()
	}
	if len(u.out) == 0 {
		if u.err == nil {
			u.err = io.EOF
		}
		return 0, u.err
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// WithoutUU returns a text without what is uuencoded in it. The text is not
// changed; it is returned itself where there is nothing to take away.
func WithoutUU(text []byte) []byte {
	if !IsUU(text) {
		return text
	}
	kept := make([]byte, 0, len(text)/2)
	in, b64 := false, false
	for line := range bytes.Lines(text) {
		bare := bytes.TrimRight(line, "\r\n")
		switch {
		case !in:
			if _, b64, in = uuBegin(string(line[:min(len(line), 300)])); !in {
				kept = append(kept, line...)
			}
		case b64 && bytes.HasPrefix(bare, []byte("====")), !b64 && string(bare) == "end":
			in = false
		case b64 && bytes.ContainsAny(bare, " \t"), !b64 && len(bare) > 1 && uuLine(bare) == nil: // it was cut short
			in = false
			kept = append(kept, line...)
		}
	}
	return kept
}
