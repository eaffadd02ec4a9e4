package fetch

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A message is where one lies in a mailbox and what it is called.
type message struct {
	at, size int64 // of what follows its From line, quoted as it is
	sum      uint32
	id       string
	date     time.Time // zero: unknown
	subject  string
}

func (m *message) tag() string { return fact{m.size, int64(m.sum)}.etag() }

// A splitter reads a mailbox:
//
//	From me@example.org Tue Jan  5 12:00:00 2021
//	Message-ID: <1@example.org>
//	Subject: one
//
//	A line that began with From has a > before it in the mailbox.
//
//	From you at example.org  Wed Jan  6 08:00:00 2021
//
// A message begins with a line of that form, at the start or after an empty line:
// with From, a sender, and a time and a year. Lines that begin with From and are
// not of it are text; there are mailboxes that do not mark them.
type splitter struct {
	in   *bufio.Reader
	at   int64
	list []message
	m    *message // being read; nil before the first

	header []byte    // of m, as far as it is kept
	body   bool      // the header has ended
	crc    uint32    // of m
	sum    hash.Hash // of m; nil: it has an id
}

const maxHeaderKept = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// splitMailbox reads a mailbox to its end and returns its messages in the order
// of their ids, of which no two are the same. What is not a mailbox is
// errNoMailbox; an empty file is one.
func splitMailbox(r io.Reader) ([]message, error) {
	s := &splitter{in: bufio.NewReaderSize(r, 64<<10)}
	start, blank := true, true // of a line; the line before was empty
	for {
		line, err := s.in.ReadSlice('\n')
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if start && blank && isFrom(line) {
			s.end(s.at)
			if len(s.list) >= maxMessages {
				return nil, fmt.Errorf("more than %d messages: %w", maxMessages, syscall.EFBIG)
			}
			s.begin(s.at + int64(len(line)))
		} else if len(line) > 0 {
			if s.m == nil {
				return nil, errNoMailbox
			}
			s.line(line, start)
		}
		s.at += int64(len(line))
		if start {
			blank = string(line) == "\n" || string(line) == "\r\n"
		}
		start = err == nil
		if !start && blank {
			blank = false
		}
		if err == io.EOF {
			s.end(s.at)
			return s.name(), nil
		}
	}
}

// begin begins a message.
func (s *splitter) begin(at int64) {
	s.list = append(s.list, message{at: at})
	s.m = &s.list[len(s.list)-1]
	s.header, s.body, s.crc, s.sum = s.header[:0], false, 0, nil
}

// line takes a line of the message, or a piece of one.
func (s *splitter) line(line []byte, start bool) {
	s.crc = crc32.Update(s.crc, castagnoli, line)
	switch {
	case s.body:
		if s.sum != nil {
			s.sum.Write(line)
		}
	case start && len(bytes.TrimRight(line, "\r\n")) == 0:
		s.body = true
		s.read()
	case len(s.header)+len(line) <= maxHeaderKept:
		s.header = append(s.header, line...)
	}
}

// read reads the header.
func (s *splitter) read() {
	h := s.header
	if date, err := mail.ParseDate(field(h, "Date")); err == nil {
		s.m.date = date.UTC()
	}
	s.m.subject = clipText(subject(field(h, "Subject")), 256)
	if s.m.id = messageName(field(h, "Message-ID")); s.m.id == "" {
		s.sum = md5.New()
		s.sum.Write(unmarked(h))
	}
}

// end ends the message at an offset. The empty line before the next one is none
// of its own.
func (s *splitter) end(at int64) {
	if s.m == nil {
		return
	}
	if !s.body {
		s.read()
	}
	if s.sum != nil {
		s.m.id = "md5-" + hex.EncodeToString(s.sum.Sum(nil))
	}
	s.m.size, s.m.sum = max(at-s.m.at, 0), s.crc
}

// name sorts the messages and tells those with the same id apart, by how many of
// it came before.
func (s *splitter) name() []message {
	slices.SortStableFunc(s.list, func(a, b message) int { return cmp.Compare(a.id, b.id) })
	n := 0
	base := ""
	for i := range s.list {
		if m := &s.list[i]; m.id != base {
			base, n = m.id, 1
		} else {
			n++
			m.id += "~" + strconv.Itoa(n)
		}
	}
	slices.SortFunc(s.list, func(a, b message) int { return cmp.Compare(a.id, b.id) })
	return s.list
}

// field is the first field of a name, unfolded.
func field(header []byte, name string) string {
	for rest := header; len(rest) > 0; {
		line, tail, _ := bytes.Cut(rest, []byte("\n"))
		rest = tail
		if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
			continue
		}
		out := append([]byte(nil), line[len(name)+1:]...)
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') && len(out) < 1<<10 {
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			out = append(out, line...)
		}
		return strings.TrimSpace(string(out))
	}
	return ""
}

// unmarked is a header without what readers of mail write into it.
func unmarked(header []byte) []byte {
	out := make([]byte, 0, len(header))
	for line := range bytes.Lines(header) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch strings.ToLower(string(name)) {
		case "status", "x-status", "x-keywords", "x-uid", "x-imap", "x-imapbase", "content-length", "lines":
		default:
			out = append(out, line...)
		}
	}
	return out
}

// messageName makes a name of a Message-ID: what is between its brackets if that
// is plain, or else a sum of it.
func messageName(id string) string {
	if i := strings.IndexByte(id, '<'); i >= 0 {
		id = id[i+1:]
	}
	if i := strings.IndexByte(id, '>'); i >= 0 {
		id = id[:i]
	}
	if id = strings.TrimSpace(id); id == "" {
		return ""
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; len(id) > 128 || c == '~' || c == '/' || !plain(c) || id[0] == '.' || strings.HasPrefix(id, "md5-") {
			sum := md5.Sum([]byte(id))
			return "id-" + hex.EncodeToString(sum[:])
		}
	}
	return id
}

// isFrom reports whether a line begins a message.
func isFrom(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("From "))
	if !ok || len(rest) > 1<<10 {
		return false
	}
	clock, year := false, false
	for f := range bytes.FieldsSeq(rest) {
		switch {
		case len(f) >= 4 && isDigit(f[0]) && bytes.IndexByte(f, ':') > 0 && isDigit(f[len(f)-1]):
			clock = true
		case len(f) == 4 && (f[0] == '1' || f[0] == '2') && isDigit(f[1]) && isDigit(f[2]) && isDigit(f[3]):
			year = true
		}
	}
	return clock && year
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
