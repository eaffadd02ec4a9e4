package http1

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// A Body reads the body of a message: io.EOF comes at its end and not before, so
// that what was cut off is known to be. The connection can be used for another
// message once Body has returned io.EOF, unless the length was UntilClose.
type Body struct {
	r     *bufio.Reader
	left  int64 // of the body, or of this chunk
	kind  int64 // Chunked, UntilClose or 0
	first bool  // no chunk was read
	lax   bool
	err   error
}

// NewBody reads a body of length, which may be Chunked or UntilClose. With strict,
// chunks are taken as the grammar has them, as those of clients have to be.
func NewBody(r *bufio.Reader, length int64, strict bool) *Body {
	if length < 0 {
		return &Body{r: r, kind: length, first: true, lax: !strict}
	}
	return &Body{r: r, left: length}
}

func (b *Body) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	switch {
	case b.kind == UntilClose:
		n, err = b.r.Read(p)
		b.err = err
		return n, err
	case b.kind == Chunked && b.left == 0:
		if b.err = b.next(); b.err != nil {
			return 0, b.err
		}
	case b.left == 0:
		b.err = io.EOF
		return 0, io.EOF
	}
	n, err = b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == nil && b.left == 0 && b.kind != Chunked {
		err = io.EOF
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.err = err
	return n, err
}

// next reads the line before a chunk, and at the last one what follows it.
func (b *Body) next() error {
	h := head{r: b.r, lim: Limits{}.orDefault(), lax: b.lax}
	h.left = h.lim.Head
	if !b.first {
		if end, err := h.line(400); err != nil {
			return noEOF(err)
		} else if len(end) > 0 {
			return refuse(400, "more in a chunk than its size")
		}
	}
	b.first = false
	line, err := h.line(400)
	if err != nil {
		return noEOF(err)
	}
	size, ext, extended := strings.Cut(string(line), ";")
	if b.lax {
		size = strings.TrimRight(size, " \t")
	}
	if b.left, err = chunkSize(size); err != nil {
		return err
	}
	if extended && !b.lax && strings.ContainsFunc(ext, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return refuse(400, "a control byte in the extension of a chunk")
	}
	if b.left > 0 {
		return nil
	}
	// Fields behind the last chunk have no place in what is stored or sent on.
	if _, err := h.fields(nil); err != nil {
		return noEOF(err)
	}
	return io.EOF
}

// chunkSize reads a size in hexadecimal digits.
func chunkSize(s string) (int64, error) {
	if s == "" || len(s) > 15 {
		return 0, refuse(400, "size of a chunk '%.40s'", s)
	}
	n, err := strconv.ParseUint(s, 16, 63)
	if err != nil || strings.ContainsAny(s, "+-_xX") {
		return 0, refuse(400, "size of a chunk '%.40s'", s)
	}
	return int64(n), nil
}

// Drained reads what is left of a body up to max bytes, and reports whether that
// was its end, so that the connection can be used again.
func (b *Body) Drained(max int64) bool {
	if b.kind == UntilClose {
		return false
	}
	_, err := io.CopyN(io.Discard, b, max)
	if err == nil {
		var one [1]byte
		_, err = b.Read(one[:])
	}
	return errors.Is(err, io.EOF)
}

// A ChunkWriter writes a body in chunks, one a Write. Close writes the end.
type ChunkWriter struct{ W io.Writer }

func (c ChunkWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // which would be the end
	}
	var line [20]byte
	if _, err := c.W.Write(append(strconv.AppendInt(line[:0], int64(len(p)), 16), '\r', '\n')); err != nil {
		return 0, err
	}
	n, err := c.W.Write(p)
	if err != nil {
		return n, err
	}
	_, err = io.WriteString(c.W, "\r\n")
	return n, err
}

// Close writes the last chunk.
func (c ChunkWriter) Close() error {
	_, err := io.WriteString(c.W, "0\r\n\r\n")
	return err
}

// AppendResponse appends the head of a response.
func AppendResponse(dst []byte, p *Response) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(p.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, p.Reason...)
	dst = append(dst, '\r', '\n')
	return appendFields(dst, p.Header)
}

// AppendRequest appends the head of a request.
func AppendRequest(dst []byte, q *Request) []byte {
	dst = append(dst, q.Method...)
	dst = append(dst, ' ')
	dst = append(dst, q.Target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	return appendFields(dst, q.Header)
}

func appendFields(dst []byte, h Header) []byte {
	for _, f := range h {
		dst = append(dst, f.Name...)
		dst = append(dst, ':', ' ')
		dst = append(dst, f.Value...)
		dst = append(dst, '\r', '\n')
	}
	return append(dst, '\r', '\n')
}
