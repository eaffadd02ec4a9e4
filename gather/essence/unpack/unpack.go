// Package unpack reads archives and encodings that no library reads well:
// compress, lzma, lzip, ar, cpio, rpm, zip also when it is cut, 7z, ISO 9660,
// the archives of PCs (arj, lha, zoo, cabinets),
// uuencode, shell archives, BinHex, MacBinary and mailboxes.
//
// It only reads. Nothing is written anywhere, no shell archive is run, and what
// a header claims is never allocated: memory grows with the bytes that are
// there, within what the caller allows. What a reader cannot make sense of is
// an error that wraps ErrDamaged or ErrUnread, with what came before it given.
package unpack

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/text/encoding/charmap"
)

var (
	// ErrDamaged is the class of content that is not what its format demands.
	ErrDamaged = errors.New("damaged")
	// ErrUnread is the class of content that is well-formed and not for us:
	// encrypted, of another volume, of a method that is not known.
	ErrUnread = errors.New("not read")
)

func damaged(format string, arg ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, arg...), ErrDamaged)
}

func unread(format string, arg ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, arg...), ErrUnread)
}

// A Header describes a member of an archive, as the archive does.
type Header struct {
	Name     string // its path as it stands there, which is to be believed in nothing
	Size     int64  // as claimed; < 0 when it is not told
	Packed   int64  // bytes it takes in the archive; < 0 when that is not told
	Modified time.Time
	Regular  bool  // a file, and no folder, link or device
	Err      error // why it cannot be read, nil if it can
}

// maxLongName bounds the names that are read.
const maxLongName = 4096

// unix is a time from a header, zero when it says nothing.
func unix(sec int64) time.Time {
	if sec <= 0 || sec > 1<<35 {
		return time.Time{}
	}
	return time.Unix(sec, 0)
}

// cut is the end of input where more was promised.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// skip reads n bytes and drops them.
func skip(r io.Reader, n int64) error {
	m, err := io.CopyN(io.Discard, r, n)
	if m < n && err == nil {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return cut(err)
	}
	return nil
}

// A source is input by bytes, whose end is noted and looked at when it suits.
type source struct {
	r        io.Reader
	buf      []byte
	pos, end int
	err      error
	past     int // bytes that were asked for past the end
}

func newSource(r io.Reader) *source { return &source{r: r, buf: make([]byte, 32<<10)} }

// byte is the next byte, 0 past the end.
func (s *source) byte() byte {
	if s.pos == s.end && !s.fill() {
		s.past++
		return 0
	}
	b := s.buf[s.pos]
	s.pos++
	return b
}

// fill reads more; false means that err is set.
func (s *source) fill() bool {
	for s.err == nil && s.pos == s.end {
		s.pos = 0
		s.end, s.err = s.r.Read(s.buf)
	}
	return s.pos < s.end
}

func (s *source) Read(p []byte) (int, error) {
	if s.pos == s.end && !s.fill() {
		return 0, s.err
	}
	n := copy(p, s.buf[s.pos:s.end])
	s.pos += n
	return n, nil
}

// macName is a name in the characters of the Macintosh, whose colons are our
// slashes.
func macName(b []byte) string {
	if t, err := charmap.Macintosh.NewDecoder().Bytes(b); err == nil {
		b = t
	}
	return strings.ReplaceAll(strings.ReplaceAll(string(b), "/", "_"), ":", "/")
}

// Unread is an error of the class ErrUnread.
func Unread(why string) error { return unread("%s", why) }
