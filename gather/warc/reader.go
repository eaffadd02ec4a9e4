package warc

import (
	"bytes"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
)

// Bounds of a record's header.
const (
	maxHeader = 256 << 10
	maxFields = 1000
)

// A Place is where a record begins: in the file, and within the member that
// begins there.
type Place struct{ Member, Inside int64 }

// A Record is one record of a file. Its block is read from it, until the next is
// asked for.
type Record struct {
	Version string // "1.1"
	Header  Header
	Length  int64 // of the block
	Place   Place

	in   *input
	left int64
}

// Read reads the block. A file that ends before it does is
// io.ErrUnexpectedEOF.
func (r *Record) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.in.Read(p)
	r.left -= int64(n)
	if err == io.EOF {
		err = r.in.at("block", io.ErrUnexpectedEOF)
	}
	return n, err
}

// A Reader reads the records of a file in their order. It is not safe for
// concurrent use.
type Reader struct {
	in  input
	rec *Record
	err error
}

// NewReader returns a Reader of a file of any of the kinds the package knows.
func NewReader(r io.Reader) (*Reader, error) { return newReader(r, 0) }

func newReader(r io.Reader, at int64) (*Reader, error) {
	m, err := newMembers(r, at)
	if err != nil {
		return nil, err
	}
	return &Reader{in: input{m: m}}, nil
}

// Close frees what the Reader holds. It does not close the file.
func (r *Reader) Close() { r.in.m.close() }

// Next returns the next record, io.EOF after the last. What was not read of the
// one before is passed over. After an error it gives the same again.
func (r *Reader) Next() (*Record, error) {
	if r.err == nil {
		r.rec, r.err = r.next()
	}
	return r.rec, r.err
}

func (r *Reader) next() (*Record, error) {
	if r.rec != nil {
		if _, err := io.Copy(io.Discard, r.rec); err != nil {
			return nil, err
		}
	}
	if err := r.gap(); err != nil {
		return nil, err
	}
	rec := &Record{in: &r.in, Place: r.in.place()}
	line, err := r.in.line(64)
	if err != nil {
		return nil, r.in.at("version", cutShort(err))
	}
	version, ok := strings.CutPrefix(string(line), "WARC/")
	if !ok || !known[version] {
		return nil, r.in.at(fmt.Sprintf("%.20q is no version of a record", line), iofs.ErrInvalid)
	}
	rec.Version = version
	if rec.Header, err = r.in.header(); err != nil {
		return nil, r.in.at("header", cutShort(err))
	}
	if rec.Length, err = rec.Header.length(); err != nil {
		return nil, r.in.at("header", err)
	}
	rec.left = rec.Length
	return rec, nil
}

// known are the versions that are read: the drafts' records look the same.
var known = map[string]bool{"0.17": true, "0.18": true, "1.0": true, "1.1": true}

// gap passes over the empty lines between records. There ought to be two.
func (r *Reader) gap() error {
	for {
		c, err := r.in.peek()
		if err != nil {
			return r.in.plainly(err)
		}
		if c != '\r' && c != '\n' {
			return nil
		}
		r.in.r++
	}
}

// An input reads lines and blocks of members, and knows where it is.
type input struct {
	m    *members
	buf  []byte
	r, w int
	from Place // of buf[0]
}

// place is where the next byte stands. At the end of a member it is still that
// member's.
func (in *input) place() Place { return Place{in.from.Member, in.from.Inside + int64(in.r)} }

// at adds where to an error.
func (in *input) at(what string, err error) error {
	return fmt.Errorf("warc: offset %d: %s: %w", in.m.start, what, err)
}

// plainly leaves the end of the file as it is and tells where all else was met.
func (in *input) plainly(err error) error {
	if err == io.EOF {
		return err
	}
	return in.at("data", err)
}

// fill reads more when all has been taken: bytes of one member only.
func (in *input) fill() error {
	if in.r < in.w {
		return nil
	}
	if in.buf == nil {
		in.buf = make([]byte, 32<<10)
	}
	n, err := in.m.Read(in.buf)
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	in.r, in.w = 0, n
	in.from = Place{in.m.start, in.m.inside - int64(n)}
	return nil
}

func (in *input) peek() (byte, error) {
	if err := in.fill(); err != nil {
		return 0, err
	}
	return in.buf[in.r], nil
}

func (in *input) Read(p []byte) (int, error) {
	if in.r == in.w && len(p) >= len(in.buf) && in.buf != nil {
		n, err := in.m.Read(p) // without a copy
		in.from = Place{in.m.start, in.m.inside}
		in.r, in.w = 0, 0
		if n > 0 {
			err = nil
		}
		return n, err
	}
	if err := in.fill(); err != nil {
		return 0, err
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// line reads a line of at most max bytes and returns it without its end.
func (in *input) line(max int) ([]byte, error) {
	var line []byte
	for {
		if err := in.fill(); err != nil {
			return nil, err
		}
		some := in.buf[in.r:in.w]
		i := bytes.IndexByte(some, '\n')
		if i >= 0 {
			some = some[:i+1]
		}
		in.r += len(some)
		if len(line)+len(some) > max {
			return nil, fmt.Errorf("a line of more than %d bytes: %w", max, iofs.ErrInvalid)
		}
		line = append(line, some...)
		if i >= 0 {
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
}

// header reads the fields up to the empty line. A line that begins with a blank
// goes on with the field before, as the first standard allowed.
func (in *input) header() (Header, error) {
	var h Header
	left := maxHeader
	for {
		line, err := in.line(left)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return h, nil
		}
		left -= len(line)
		if line[0] == ' ' || line[0] == '\t' {
			if len(h) == 0 {
				return nil, fmt.Errorf("it begins with a blank: %w", iofs.ErrInvalid)
			}
			f := &h[len(h)-1]
			f.Value += " " + string(bytes.TrimSpace(line))
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || len(h) == maxFields {
			return nil, fmt.Errorf("%.40q is no field: %w", line, iofs.ErrInvalid)
		}
		h = append(h, Field{string(bytes.TrimSpace(name)), string(bytes.TrimSpace(value))})
	}
}
