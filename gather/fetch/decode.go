package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	accepted = "gzip, br, zstd"
	maxCodes = 3        // codings of one body, one over the other
	ratioMin = 10 << 20 // bytes that a body may be decoded to whatever it came from
	window   = 8 << 20  // of zstd at most (RFC 9659)
)

// decoders undo the coding of bodies. They are costly to make, and kept.
type decoders struct {
	ratio             int64
	gzip, zstd, brotl sync.Pool
}

func newDecoders(ratio int64) *decoders { return &decoders{ratio: ratio} }

// ask says in a request what can be undone, unless it asks for something itself.
func (d *decoders) ask(h http.Header) {
	if h.Get("Accept-Encoding") == "" && h.Get("Range") == "" {
		h.Set("Accept-Encoding", accepted)
	}
}

// decode gives an answer the body that was coded. A coding that is not known is
// left, with its header.
func (d *decoders) decode(resp *http.Response) {
	codes := codings(resp.Header)
	if len(codes) == 0 || resp.Body == http.NoBody || resp.ContentLength == 0 ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusPartialContent ||
		resp.Request != nil && resp.Request.Method == http.MethodHead {
		return
	}
	slices.Reverse(codes) // the last one was put on last
	resp.Body = d.undo(resp.Body, codes...)
	resp.ContentLength = -1
	resp.Uncompressed = true
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
}

// undo returns the body with its codings undone, in the order given.
func (d *decoders) undo(body io.ReadCloser, codes ...string) *decoded {
	b := &decoded{body: body, d: d, codes: codes}
	b.received.r = body
	b.in = bufio.NewReaderSize(&b.received, 4<<10)
	return b
}

// codings are the codings of a body in the order they were put on, nil if it is
// not coded or one of them is not known.
func codings(h http.Header) (codes []string) {
	for _, v := range h.Values("Content-Encoding") {
		for c := range strings.SplitSeq(v, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "gzip", "x-gzip":
				codes = append(codes, "gzip")
			case "br", "zstd":
				codes = append(codes, c)
			case "", "identity":
			default:
				return nil
			}
			if len(codes) > maxCodes {
				return nil
			}
		}
	}
	return codes
}

// A decoded is a body whose coding is undone as it is read.
type decoded struct {
	d    *decoders
	body io.ReadCloser

	// mu guards what follows: a decoder must not go back while it is in use.
	mu       sync.Mutex
	received count
	in       *bufio.Reader
	codes    []string
	r        io.Reader // nil before the first read
	back     []func()  // gives the decoders back
	out      int64
	err      error
}

type count struct {
	r io.Reader
	n int64
}

func (c *count) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Read counts bytes as they come out, which no header can belie.
func (b *decoded) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.r == nil {
		b.err = b.begin()
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.out += int64(n)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("decode %s: %w", b.codes[0], err)
	}
	if b.out > ratioMin && b.out/b.d.ratio > b.received.n {
		err = fmt.Errorf("a body of more than %d times the bytes received", b.d.ratio)
	}
	b.err = err
	return n, err
}

func (b *decoded) begin() error {
	b.r = b.in
	for _, code := range b.codes {
		r, err := b.open(code, b.r)
		if err != nil {
			return fmt.Errorf("decode %s: %w", code, err)
		}
		b.r = r
	}
	return nil
}

// open undoes one coding. What says it is gzip and does not begin so is what it
// is without it: servers are known to say so of files that they serve as they are.
func (b *decoded) open(code string, r io.Reader) (io.Reader, error) {
	if code == "gzip" {
		br, ok := r.(*bufio.Reader)
		if !ok {
			br = bufio.NewReaderSize(r, 512)
		}
		r = br
		if start, err := br.Peek(2); err == nil && string(start) != "\x1f\x8b" || len(start) < 2 && errors.Is(err, io.EOF) {
			return br, nil
		}
	}
	switch code {
	case "gzip":
		return b.gunzip(r)
	case "zstd":
		return b.unzstd(r)
	}
	return b.unbrotli(r)
}

func (b *decoded) gunzip(r io.Reader) (io.Reader, error) {
	z, ok := b.d.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	b.back = append(b.back, func() { b.d.gzip.Put(z) })
	return z, nil
}

func (b *decoded) unbrotli(r io.Reader) (io.Reader, error) {
	z, ok := b.d.brotl.Get().(*brotli.Reader)
	if !ok {
		z = brotli.NewReader(nil)
	}
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	b.back = append(b.back, func() { b.d.brotl.Put(z) })
	return z, nil
}

func (b *decoded) unzstd(r io.Reader) (io.Reader, error) {
	z, ok := b.d.zstd.Get().(*zstd.Decoder)
	if !ok {
		var err error
		if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window)); err != nil {
			return nil, err
		}
	}
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	b.back = append(b.back, func() {
		z.Reset(nil) // lets go of the body
		b.d.zstd.Put(z)
	})
	return z, nil
}

func (b *decoded) Close() error {
	err := b.body.Close() // ends a Read that waits
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.back {
		f()
	}
	b.back = nil
	if b.err == nil {
		b.err = errors.New("read of a closed body")
	}
	return err
}
