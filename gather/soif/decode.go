package soif

import (
	"errors"
	"fmt"
	"io"
)

// Limits bound what is decoded. A field of zero means its default. Nothing is
// ever allocated because a byte count claims it: memory grows with the bytes
// that are there, and stays within about twice Object.
type Limits struct {
	Object int64 // bytes of one object as encoded, 64 MiB
	Value  int64 // bytes of one value, 64 MiB
	Attrs  int64 // attributes of one object, 65,536
	Name   int64 // bytes of an attribute's name or a template type, 256
	URL    int64 // bytes of a URL, 16,384
	Depth  int64 // levels of Embed<n>- in a name, 32
}

// An Error says where decoding or a check met trouble, and with what. Its class,
// for errors.Is, is io.ErrUnexpectedEOF when the input ends inside an object,
// syscall.EFBIG when a limit is passed, and fs.ErrInvalid otherwise.
type Error struct {
	Line   int64  // counted from 1
	Offset int64  // bytes from the start of the input
	Object string // URL of the object, or @TYPE while that is not known, or ""
	Attr   string // name of the attribute, or ""
	Text   string // the trouble
	Class  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Trouble())
}

// Trouble is the error without its place: the object, the attribute, the text.
func (e *Error) Trouble() string {
	s := e.Text
	if e.Attr != "" {
		s = e.Attr + ": " + s
	}
	if e.Object != "" {
		s = e.Object + ": " + s
	}
	return s
}

func (e *Error) Unwrap() error { return e.Class }

var errSkeleton = errors.New("soif: being written")

// Parse decodes the object at the start of b, after any white space. The values
// alias b. n is the number of bytes taken, with the newline that ends the
// object. Without an object it returns io.EOF; other errors are an *Error whose
// place is counted from the start of b.
func Parse(b []byte, lim Limits) (o Object, n int, err error) {
	return Object{}, 0, errSkeleton
}

// A Decoder reads objects from a stream. It keeps one buffer, which grows to
// hold the largest object and no more than Limits allow. It is not safe for
// concurrent use.
type Decoder struct{ r io.Reader }

// NewDecoder returns a Decoder that reads from r, ahead of what it returns.
func NewDecoder(r io.Reader, lim Limits) *Decoder { return &Decoder{r: r} }

// Next decodes the next object into o, reusing o.Attrs. The values are valid
// until the next call. It returns io.EOF at the end of the stream, an *Error for
// input that is not SOIF, or the reader's error. After an error every call
// returns it again, until Resync.
func (d *Decoder) Next(o *Object) error { return errSkeleton }

// Resync goes on after an *Error: it skips to the next line that begins an
// object and returns nil, or io.EOF if there is none.
func (d *Decoder) Resync() error { return errSkeleton }

// Pos returns where the object that Next returned last begins.
func (d *Decoder) Pos() (line, offset int64) { return 0, 0 }

// Check is o.Check for the object that Next returned last, with the line and
// byte offset of the object or attribute: each trouble is an *Error.
func (d *Decoder) Check(o *Object) error { return errSkeleton }
