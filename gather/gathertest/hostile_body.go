package gathertest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Big is how long a long page says it is.
const Big = 10 << 30

// bodyTricks send more, slower or other than was said.
func bodyTricks() []Trick {
	return []Trick{
		{"big", "a page of 10 GB", false, false, big},
		{"unending", "a page without end", false, false, unending},
		{"drip", "a page at ten bytes a second", false, false, drip},
		{"silent", "no answer at all", false, false, func(h *Hostile, _ http.ResponseWriter, r *http.Request) { h.hang(r) }},
		{"gzip", "a few MB of gzip that are 10 GB", false, false, coded("gzip", gzipBomb)},
		{"zstd", "zstd that is 128 KB for every four bytes", false, false, coded("zstd", zstdBomb)},
		{"br", "brotli that does not end", false, false, coded("br", brotliBomb)},
		{"gzips", "gzip within gzip, ten times by its header", false, false, coded(strings.TrimSuffix(strings.Repeat("gzip, ", 10), ", "), gzipBomb)},
		{"notgzip", "text that says it is gzip", false, false, coded("gzip", func(w io.Writer) { io.WriteString(w, strings.Repeat("plain ", 1000)) })},
		{"gzipfile", "a file of gzip that is 10 GB", false, false, gzipFile},
		{"notmodified", "304 to whoever did not ask", false, false, func(_ *Hostile, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }},
		{"partial", "a part, to whoever asked for all", false, false, partial},
		{"binary", "bytes that say they are a page", false, false, binaryPage},
	}
}

// big says how long it is, and means it.
func big(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Length", fmt.Sprint(int64(Big)))
	text := []byte(strings.Repeat("<p>Words upon words of a page that is rather long. ", 1000))
	for n := 0; n+len(text) <= Big; n += len(text) {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

func unending(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	text := []byte(strings.Repeat("and so on ", 5000))
	for {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

func drip(h *Hostile, w http.ResponseWriter, r *http.Request) {
	html(w, "Slow", "")
	for h.pause(r, 100*time.Millisecond) {
		if _, err := io.WriteString(w, "a"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// coded sends a body in some Content-Encoding.
func coded(coding string, body func(io.Writer)) func(*Hostile, http.ResponseWriter, *http.Request) {
	return func(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", coding)
		body(w)
	}
}

// gzipBomb writes 10 GB of zeros. What a MB comes to is byte-aligned by a
// flush, so that it is the same every time, and is made once.
func gzipBomb(w io.Writer) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return
	}
	zeros := make([]byte, 1<<20)
	z.Write(zeros)
	z.Flush()
	head := b.Len()
	z.Write(zeros)
	z.Flush()
	w.Write(b.Bytes()[:head])
	for range Big / len(zeros) {
		if _, err := w.Write(b.Bytes()[head:]); err != nil {
			return
		}
	}
}

// zstdBomb writes a frame whose every block is one byte 128 KB times (RFC 8878).
func zstdBomb(w io.Writer) {
	w.Write([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x38}) // no size, a window of 128 KB
	block := make([]byte, 0, 4<<10)
	for len(block)+4 <= cap(block) {
		block = binary.LittleEndian.AppendUint32(block, 'a'<<24|128<<10<<3|1<<1)
	}
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// brotliBomb writes blocks of 16 MB, each of which is the byte before it, copied
// (RFC 7932). The first is that byte as it stands.
func brotliBomb(w io.Writer) {
	var b bits
	b.add(0, 1)  // a window of 64 KB
	b.add(0, 1)  // not the last block
	b.add(0, 2)  // four nibbles of length
	b.add(0, 16) // one byte
	b.add(1, 1)  // uncompressed
	b.add(0, -b.n&7)
	b.add('a', 8)
	w.Write(b.out)
	b = bits{}
	for range 8 * 64 { // ends at a byte
		b.add(0, 1)           // not the last
		b.add(2, 2)           // six nibbles of length
		b.add(1<<24-1, 24)    // 16 MB
		b.add(0, 1)           // compressed
		b.add(0, 3)           // one type of block each
		b.add(0, 6)           // distances without extras
		b.add(0, 2)           // a context mode
		b.add(0, 2)           // one tree each
		b.add(1, 4)           // literals: a code of one symbol
		b.add('a', 8)         // which is this
		b.add(1, 4)           // commands: one symbol
		b.add(384+7, 10)      // insert nothing, copy by the longest code
		b.add(1, 4)           // distances: one symbol
		b.add(16, 6)          // 1 or 2, by a bit
		b.add(1<<24-2118, 24) // how much is copied
		b.add(0, 1)           // from 1 back
	}
	for {
		if _, err := w.Write(b.out); err != nil {
			return
		}
	}
}

// bits are written from the lowest of a byte on.
type bits struct {
	out []byte
	n   int
}

func (b *bits) add(v, n int) {
	for ; n > 0; n-- {
		if b.n&7 == 0 {
			b.out = append(b.out, 0)
		}
		b.out[len(b.out)-1] |= byte(v&1) << (b.n & 7)
		v >>= 1
		b.n++
	}
}

// gzipFile sends a bomb as a file, not as an encoding.
func gzipFile(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/gzip")
	gzipBomb(w)
}

func partial(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Range", "bytes 1000-1019/50000")
	w.WriteHeader(http.StatusPartialContent)
	io.WriteString(w, "<p>a part of a page.")
}

func binaryPage(_ *Hostile, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=frob")
	x := uint32(1)
	b := make([]byte, 1<<20)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	w.Write(b)
}
