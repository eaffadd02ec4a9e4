package essence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// inMemory is how much of a content is held in memory where all of it is wanted;
// what is longer goes to a file that has no name.
const inMemory = 8 << 20

// inMemoryAll is how much there may be of it, of a document and all that it is
// nested in.
const inMemoryAll = 48 << 20

// whole gives all of a content, at any offset, until the summary is made: for
// formats whose index stands at their end. What is left to read of the content
// is read. It is bounded by Limits.Out, as what is unnested is; a content past
// that is an error.
func (w *worker) whole(c *content) (io.ReaderAt, int64, error) {
	if c.full != nil {
		return c.full, c.size, nil
	}
	rest := c.rest
	if rest == nil {
		rest = bytes.NewReader(nil)
	}
	rest = io.LimitReader(rest, w.lim.Out+1)
	var start bytes.Buffer
	start.Write(c.head)
	n, err := io.CopyN(&start, rest, int64(max(min(inMemory, inMemoryAll-w.held)-len(c.head), 0)))
	size := int64(len(c.head)) + n
	if errors.Is(err, io.EOF) {
		w.held += start.Cap()
		c.held += start.Cap()
		c.full, c.size = bytes.NewReader(start.Bytes()), size
		return c.full, size, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.CreateTemp("", "harvest-")
	if err != nil {
		return nil, 0, err
	}
	w.opened = append(w.opened, f)
	if err := os.Remove(f.Name()); err != nil {
		return nil, 0, err
	}
	if _, err := f.Write(start.Bytes()); err != nil {
		return nil, 0, err
	}
	n, err = io.Copy(f, rest)
	if err != nil {
		return nil, 0, err
	}
	if size += n; size > w.lim.Out {
		return nil, 0, bomb{fmt.Sprintf("not taken whole: it is past %d bytes", w.lim.Out), false}
	}
	c.full, c.size = f, size
	return f, size, nil
}

// close gives back what whole has taken.
func (w *worker) close() {
	for _, f := range w.opened {
		f.Close()
	}
	w.opened = nil
}
