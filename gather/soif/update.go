package soif

import (
	"bytes"
	"fmt"
	"io"
	iofs "io/fs"
)

// An Op is what happened to an object.
type Op uint8

// The operations of an update stream.
const (
	Update  Op = iota + 1 // the object is new or changed, and stands here whole
	Delete                // the object is gone
	Refresh               // the object is unchanged and lives on
)

// String returns the name of the frame: UPDATE, DELETE, REFRESH.
func (op Op) String() string {
	switch op {
	case Update:
		return "UPDATE"
	case Delete:
		return "DELETE"
	case Refresh:
		return "REFRESH"
	}
	return fmt.Sprintf("Op(%d)", uint8(op))
}

// frameOp returns the Op of the frame called typ, 0 if there is no such frame.
func frameOp(typ string) Op {
	if len(typ) != len("UPDATE") && len(typ) != len("REFRESH") {
		return 0
	}
	for op := Update; op <= Refresh; op++ {
		if equalName(typ, op.String()) {
			return op
		}
	}
	return 0
}

// The last record of an update stream is an object of template type CURSOR,
// without URL, whose attribute Cursor is the next cursor. It stands outside of
// the frames: readers older than it look for frames there and skip the rest, and
// for those that take any object it lacks the Update-Time that would let them
// keep it.
const (
	cursorType = "CURSOR"
	cursorAttr = "Cursor"
)

// IsUpdate reports whether a stream that begins with head, white space first or
// not, is one of updates: it begins with a frame or the record of a cursor.
func IsUpdate(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '@' {
		return false
	}
	n := 1
	for n < len(head) && nameByte[head[n]] {
		n++
	}
	typ, rest := string(head[1:n]), bytes.TrimLeft(head[n:], " \t\r\n")
	return (typ == cursorType || frameOp(typ) != 0) && len(rest) > 0 && rest[0] == '{'
}

// A Change is one object of an update stream. For Delete and Refresh the object
// carries what identifies it, and for Refresh its new Update-Time and
// Time-to-Live.
type Change struct {
	Op     Op
	Object Object
}

// ErrNoCursor is the class of the error that UpdateReader.Next returns at the end
// of a stream in which every frame is closed but that does not end with a cursor,
// as those of the first Harvest did not. It wraps io.ErrUnexpectedEOF.
var ErrNoCursor = fmt.Errorf("no cursor: %w", io.ErrUnexpectedEOF)

// An UpdateReader reads a stream of changes. It is not safe for concurrent use.
type UpdateReader struct {
	d      *Decoder
	op     Op   // of the frame we are in, or 0
	lost   bool // Resync may have skipped the end of a frame
	cursor string
}

// NewUpdateReader returns an UpdateReader that reads from r, ahead of what it
// returns.
func NewUpdateReader(r io.Reader, lim Limits) *UpdateReader {
	return &UpdateReader{d: NewDecoder(r, lim)}
}

// Next decodes the next change into c, as Decoder.Next does. It returns io.EOF
// after the record that carries the next cursor, and looks at nothing behind it.
// When the stream ends without one the error wraps io.ErrUnexpectedEOF: what
// came before may be used, but the next collection has to begin where this one
// began. ErrNoCursor tells a stream that was never meant to have one from one
// that was cut.
func (u *UpdateReader) Next(c *Change) error {
	d := u.d
	for d.err == nil {
		d.err = u.step(c)
		if d.err == nil && c.Op != 0 {
			return nil
		}
	}
	return d.err
}

// step reads an object, the begin of a frame or its end, and sets c.Op only for
// an object.
func (u *UpdateReader) step(c *Change) error {
	d := u.d
	c.Op = 0
	ch, err := d.gap()
	switch {
	case err == io.EOF && u.op != 0:
		d.back = d.base + int64(d.pos)
		return d.fault(0, "@"+u.op.String(), "", "input ends before the closing } of the frame", io.ErrUnexpectedEOF)
	case err == io.EOF:
		d.back = d.base + int64(d.pos)
		return d.fault(0, "", "", "update stream without a cursor at its end", ErrNoCursor)
	case err != nil:
		return err
	case ch == '}' && u.op != 0:
		d.pos++
		u.op, u.lost = 0, false
		return nil
	case ch != '@':
		return d.stray()
	}
	if err := d.open(&c.Object); err != nil {
		return err
	}
	if op := frameOp(c.Object.Type); op != 0 {
		return u.enter(op)
	}
	if err := d.body(&c.Object); err != nil {
		return err
	}
	if u.op != 0 && !(u.lost && c.Object.Type == cursorType) {
		c.Op = u.op
		return nil
	}
	d.back = d.base + int64(d.pos)
	if c.Object.Type != cursorType {
		return d.fault(0, c.Object.id(), "", "object outside of a frame", iofs.ErrInvalid)
	}
	cursor := c.Object.Text(cursorAttr)
	if cursor == "" {
		return d.fault(0, "@"+cursorType, cursorAttr, "missing or empty", iofs.ErrInvalid)
	}
	u.cursor = cursor
	return io.EOF
}

func (u *UpdateReader) enter(op Op) error {
	if u.op != 0 && !u.lost {
		text := fmt.Sprintf("frame inside of a %s frame", u.op)
		u.op = op
		return u.d.fault(0, "@"+op.String(), "", text, iofs.ErrInvalid)
	}
	u.op, u.lost = op, false
	return nil
}

// Cursor returns the next cursor once Next has returned io.EOF, "" before.
func (u *UpdateReader) Cursor() string { return u.cursor }

// Pos is Decoder.Pos for the change that Next returned last.
func (u *UpdateReader) Pos() (line, offset int64) { return u.d.Pos() }

// Resync is Decoder.Resync; the begin of a frame counts as that of an object.
func (u *UpdateReader) Resync() error {
	u.lost = true
	return u.d.Resync()
}

// An UpdateWriter writes a stream of changes. It buffers: a stream is whole when
// Close has returned nil. It is not safe for concurrent use.
type UpdateWriter struct {
	w   io.Writer
	op  Op // of the frame that is open, or 0
	buf []byte
	err error
}

// NewUpdateWriter returns an UpdateWriter that writes to w.
func NewUpdateWriter(w io.Writer) *UpdateWriter { return &UpdateWriter{w: w} }

const writeAt = 32 << 10 // bytes gathered before a write

// Write adds one change. Encoded is one whole object, as Append gives it, and is
// not kept. Changes of the same kind that follow one another share a frame.
// After an error every call returns it again.
func (u *UpdateWriter) Write(op Op, encoded []byte) error {
	body := bytes.TrimRight(encoded, " \t\r\n")
	switch {
	case u.err != nil:
		return u.err
	case op < Update || op > Refresh:
		return fmt.Errorf("update stream: %s: %w", op, iofs.ErrInvalid)
	case len(body) == 0 || body[0] != '@' || body[len(body)-1] != '}':
		return fmt.Errorf("update stream: %.32q is not an encoded object: %w", encoded, iofs.ErrInvalid)
	}
	if op != u.op {
		u.leave()
		u.buf = append(append(append(u.buf, '@'), op.String()...), " {\n"...)
		u.op = op
	}
	u.buf = append(append(u.buf, body...), '\n')
	if len(u.buf) >= writeAt {
		u.flush()
	}
	return u.err
}

// Flush closes the frame that is open and writes what is buffered. A stream that
// ends with it and without Close has no cursor.
func (u *UpdateWriter) Flush() error {
	if u.err == nil {
		u.leave()
		u.flush()
	}
	return u.err
}

// Close ends the stream with the record that carries the next cursor, which may
// not be empty. It does not close the underlying writer. Without Close the
// stream is told from a whole one by its end.
func (u *UpdateWriter) Close(cursor string) error {
	if u.err != nil {
		return u.err
	}
	if cursor == "" {
		return fmt.Errorf("update stream: empty cursor: %w", iofs.ErrInvalid)
	}
	u.leave()
	o := Object{Type: cursorType, Attrs: []Attr{{cursorAttr, []byte(cursor)}}}
	u.buf = o.Append(u.buf)
	u.flush()
	if u.err == nil {
		u.err = fmt.Errorf("update stream: %w", iofs.ErrClosed)
		return nil
	}
	return u.err
}

func (u *UpdateWriter) leave() {
	if u.op != 0 {
		u.buf = append(u.buf, "}\n"...)
		u.op = 0
	}
}

func (u *UpdateWriter) flush() {
	_, u.err = u.w.Write(u.buf)
	u.buf = u.buf[:0]
}
