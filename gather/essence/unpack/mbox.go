package unpack

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Mbox reads a mailbox: a message begins with a line `From SENDER DATE` at the
// start or after an empty line. In a message `>From ` stands for `From `, with as
// many > as were added.
type Mbox struct {
	r     *bufio.Reader
	n     int
	blank bool // the last line was empty
	line  []byte
	held  bool // an empty line that may end the message
	whole bool // at the start of a line
	err   error
	begun bool
}

// NewMbox begins at the start of a mailbox.
func NewMbox(r io.Reader) *Mbox {
	return &Mbox{r: bufio.NewReaderSize(r, 32<<10), blank: true, whole: true}
}

// IsMbox reports whether a beginning is that of a mailbox.
func IsMbox(head []byte) bool {
	line, rest, _ := bytes.Cut(head[:min(len(head), 4<<10)], []byte("\n"))
	if !isFrom(line) {
		return false
	}
	name, _, ok := bytes.Cut(rest[:min(len(rest), 200)], []byte(":"))
	return ok && len(name) > 0 && !bytes.ContainsAny(name, " \t\n") || bytes.HasPrefix(name, []byte(">From "))
}

// isFrom tells the line that begins a message: it ends in a year, perhaps with a
// zone behind.
func isFrom(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("From ")) {
		return false
	}
	f := strings.Fields(string(line[:min(len(line), 300)]))
	for _, w := range f[max(len(f)-3, 1):] {
		if year, err := strconv.Atoi(w); err == nil && year > 1960 && year < 2200 {
			return len(f) >= 6
		}
	}
	return false
}

// fromDate is when the line says that the message came.
func fromDate(line string) time.Time {
	f := strings.Fields(line)
	for i := range f {
		if i+5 <= len(f) {
			if t, err := time.Parse("Mon Jan 2 15:04:05 2006", strings.Join(f[i:i+5], " ")); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}

// Next goes to the next message; io.EOF is the end. Messages are called by their
// numbers, which stay as they are when a mailbox grows.
func (m *Mbox) Next() (*Header, error) {
	for m.begun && m.err == nil {
		m.next()
	}
	m.line, m.err = nil, nil
	for {
		b, err := m.r.ReadSlice('\n')
		if len(b) == 0 && err != nil {
			return nil, err
		}
		if isFrom(b) {
			m.n++
			m.begun, m.blank, m.held, m.whole = true, false, false, true
			return &Header{Name: strconv.Itoa(m.n) + ".eml", Size: -1, Packed: -1, Regular: true, Modified: fromDate(string(b))}, nil
		}
	}
}

// next reads the next line of the message, or a part of a long one. An empty line
// is held back until it is known that the message goes on behind it.
func (m *Mbox) next() {
	if m.whole && m.blank {
		if b, _ := m.r.Peek(300); isFrom(firstLine(b)) {
			m.err, m.begun = io.EOF, false
			return
		}
	}
	if m.held {
		m.held = false
		m.line = []byte("\n")
		m.blank = false
		if _, err := m.r.Peek(1); err != nil {
			m.line, m.err, m.begun = nil, io.EOF, false
		}
		return
	}
	b, err := m.r.ReadSlice('\n')
	if len(b) == 0 && err != nil {
		m.err, m.begun = err, false
		return
	}
	start := m.whole
	m.whole = err != bufio.ErrBufferFull
	m.blank = start && len(bytes.TrimRight(b, "\r\n")) == 0
	if m.blank {
		m.held, m.line = true, nil
		return
	}
	if start && b[0] == '>' && bytes.HasPrefix(bytes.TrimLeft(b, ">"), []byte("From ")) {
		b = b[1:]
	}
	m.line = b
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// Read reads of the message.
func (m *Mbox) Read(p []byte) (int, error) {
	for len(m.line) == 0 && m.err == nil && m.begun {
		m.next()
	}
	if len(m.line) == 0 {
		if m.err == nil {
			m.err = io.EOF
		}
		return 0, m.err
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	return n, nil
}
