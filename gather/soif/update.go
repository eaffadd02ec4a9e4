package soif

import "io"

// An Op is what happened to an object.
type Op uint8

// The operations of an update stream.
const (
	Update  Op = iota + 1 // the object is new or changed, and stands here whole
	Delete                // the object is gone
	Refresh               // the object is unchanged and lives on
)

// String returns the name of the frame: UPDATE, DELETE, REFRESH.
func (op Op) String() string { return "" }

// A Change is one object of an update stream. For Delete and Refresh the object
// carries what identifies it, and for Refresh its new Update-Time and
// Time-to-Live.
type Change struct {
	Op     Op
	Object Object
}

// An UpdateReader reads a stream of changes.
type UpdateReader struct{ d *Decoder }

// NewUpdateReader returns an UpdateReader that reads from r, ahead of what it
// returns.
func NewUpdateReader(r io.Reader, lim Limits) *UpdateReader {
	return &UpdateReader{d: NewDecoder(r, lim)}
}

// Next decodes the next change into c, as Decoder.Next does. It returns io.EOF
// after the record that carries the next cursor. When the stream ends without
// one the error wraps io.ErrUnexpectedEOF: what came before may be used, but the
// next collection has to begin where this one began.
func (u *UpdateReader) Next(c *Change) error { return errSkeleton }

// Cursor returns the next cursor once Next has returned io.EOF, "" before.
func (u *UpdateReader) Cursor() string { return "" }

// Resync is Decoder.Resync; a frame's begin counts as an object's.
func (u *UpdateReader) Resync() error { return u.d.Resync() }

// An UpdateWriter writes a stream of changes. It buffers: a stream is whole when
// Close has returned nil.
type UpdateWriter struct{ w io.Writer }

// NewUpdateWriter returns an UpdateWriter that writes to w.
func NewUpdateWriter(w io.Writer) *UpdateWriter { return &UpdateWriter{w: w} }

// Write adds one change. Encoded is one whole object, as Append gives it.
// Changes of the same kind that follow one another share a frame.
func (u *UpdateWriter) Write(op Op, encoded []byte) error { return errSkeleton }

// Close ends the stream with the record that carries the next cursor. It does
// not close the underlying writer.
func (u *UpdateWriter) Close(cursor string) error { return errSkeleton }
