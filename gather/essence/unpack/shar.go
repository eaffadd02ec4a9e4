package unpack

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A Shar reads a shell archive, of which no line is run: each here-document that
// sed or cat puts in a file is a member, as is one that goes to uudecode, as the
// text it is.
type Shar struct {
	r      *bufio.Reader
	prefix []byte // that each line begins with
	end    string // line that ends the member
	in     bool
	whole  bool // at the start of a line
	left   []byte
	n      int
	err    error
}

// NewShar begins at the start of a script.
func NewShar(r io.Reader) *Shar { return &Shar{r: bufio.NewReaderSize(r, 32<<10)} }

// IsShar reports whether a beginning is that of a shell archive.
func IsShar(head []byte) bool {
	head = head[:min(len(head), 16<<10)]
	return sharMark.Match(head) && hereDoc.Match(head)
}

var (
	sharMark = regexp.MustCompile(`(?m)^#.*(?i:shell archive|\bshar\b)`)
	hereDoc  = regexp.MustCompile(`(?m)^[ \t]*(?:if[ \t]+)?(?:sed|cat|/bin/cat|/bin/sed|gres)\b[^\n]*<<-?[ \t]*\\?['"]?[A-Za-z_%!@#][^\s'";|&>]*['"]?`)
	hereEnd  = regexp.MustCompile(`<<-?[ \t]*(?:\\?([^\s'";|&<>]+)|'([^']+)'|"([^"]+)")`)
	sedCut   = regexp.MustCompile(`s(.)\^([^\s'"]{1,8}?)(.)`)
	toFile   = regexp.MustCompile(`(?:^|[^>&0-9])>[ \t]*(?:'([^']+)'|"([^"]+)"|([^\s'"&|;<>]+))`)
)

// Next goes to the next member; io.EOF is the end.
func (s *Shar) Next() (*Header, error) {
	if s.in {
		if _, err := io.Copy(io.Discard, s); err != nil {
			return nil, err
		}
	}
	for {
		line, err := s.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && len(line) == 0 {
			return nil, err
		}
		if h := s.begin(line); h != nil {
			return h, nil
		}
	}
}

// begin looks whether a line begins a member.
func (s *Shar) begin(line []byte) *Header {
	if !hereDoc.Match(line) {
		return nil
	}
	end := hereEnd.FindSubmatch(line)
	if end == nil {
		return nil
	}
	text := bytes.Replace(line, end[0], nil, 1)
	name := ""
	if f := toFile.FindSubmatch(text); f != nil {
		name = string(f[1]) + string(f[2]) + string(f[3])
	} else if !bytes.Contains(text, []byte("uudecode")) {
		return nil
	}
	s.n++
	if name == "" || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "$") {
		name = "part" + strconv.Itoa(s.n) + ".uu"
	}
	s.prefix = nil
	if c := sedCut.FindSubmatch(text); c != nil && bytes.Contains(text, []byte("sed")) && string(c[1]) == string(c[3]) {
		s.prefix = bytes.Clone(c[2])
	}
	s.end = string(end[1]) + string(end[2]) + string(end[3])
	s.in, s.whole, s.left, s.err = true, true, nil, nil
	return &Header{Name: name, Size: -1, Packed: -1, Regular: true}
}

// Read reads of the member.
func (s *Shar) Read(p []byte) (int, error) {
	for len(s.left) == 0 && s.in && s.err == nil {
		s.line()
	}
	if len(s.left) == 0 {
		if s.err == nil {
			s.err = io.EOF
		}
		return 0, s.err
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// line reads the next line of the member, or a part of one that is very long.
func (s *Shar) line() {
	b, err := s.r.ReadSlice('\n')
	if len(b) == 0 && err != nil {
		s.in, s.err = false, cut(err)
		return
	}
	start := s.whole
	s.whole = err != bufio.ErrBufferFull
	if start && strings.TrimRight(string(b), "\r\n") == s.end {
		s.in, s.err = false, io.EOF
		return
	}
	if start {
		b = bytes.TrimPrefix(b, s.prefix)
	}
	s.left = b
}
