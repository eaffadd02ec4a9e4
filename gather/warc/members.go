package warc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// members makes one stream of the compressed parts of a file and knows where
// each begins: that is what lets a record be found again without reading what
// stands before it. A file that is not compressed is one member.
type members struct {
	in     *counter
	kind   packing
	gz     *gzip.Reader
	zst    *zstd.Decoder
	frame  *frame
	dict   []byte // of a zstd file, from its first frame
	open   bool
	start  int64 // where the member begins in the file
	inside int64 // bytes of it that were given
}

type packing byte

const (
	plain packing = iota
	gzipped
	zstandard
)

// Bounds of what a hostile file can make a reader hold.
const (
	maxWindow = 32 << 20 // of a zstd frame
	maxDict   = 8 << 20
)

// newMembers reads from r; at says where in the file r begins.
func newMembers(r io.Reader, at int64) (*members, error) {
	m := &members{in: &counter{r: bufio.NewReaderSize(r, 64<<10), n: at}}
	head, err := m.in.r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		m.kind = gzipped
	case len(head) == 4 && (isFrame(head) || isSkippable(head)):
		m.kind = zstandard
	}
	return m, nil
}

// Read gives bytes of one member only; io.EOF is the end of the file.
func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if !m.open {
			if err := m.next(); err != nil {
				return 0, err
			}
		}
		n, err = m.read(p)
		m.inside += int64(n)
		if err == io.EOF && m.kind != plain {
			m.open, err = false, nil
		}
	}
	return n, err
}

func (m *members) read(p []byte) (int, error) {
	switch m.kind {
	case gzipped:
		return m.gz.Read(p)
	case zstandard:
		return m.zst.Read(p)
	}
	return m.in.Read(p)
}

// next opens the member that begins here.
func (m *members) next() (err error) {
	m.start, m.inside = m.in.n, 0
	if _, err := m.in.r.Peek(1); err != nil {
		return err
	}
	switch m.kind {
	case gzipped:
		err = m.nextGzip()
	case zstandard:
		err = m.nextZstd()
	}
	m.open = err == nil
	return err
}

func (m *members) nextGzip() (err error) {
	if m.gz == nil {
		m.gz, err = gzip.NewReader(m.in)
	} else {
		err = m.gz.Reset(m.in)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // bytes, but no member
	}
	if err == nil {
		m.gz.Multistream(false)
	}
	return err
}

// nextZstd opens the next frame, the dictionary that may come first and frames
// that are to be skipped left behind.
func (m *members) nextZstd() error {
	for {
		head, err := m.in.r.Peek(4)
		if err != nil {
			return cutShort(err)
		}
		if isFrame(head) {
			break
		}
		if !isSkippable(head) {
			return fmt.Errorf("no zstd frame: %w", iofs.ErrInvalid)
		}
		if err := m.skip(head[0] == dictMagic && m.start == 0); err != nil {
			return err
		}
		m.start = m.in.n
		if _, err := m.in.r.Peek(1); err != nil {
			return err
		}
	}
	if m.zst == nil {
		opts := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)}
		if m.dict != nil {
			opts = append(opts, zstd.WithDecoderDicts(m.dict))
		}
		d, err := zstd.NewReader(nil, opts...)
		if err != nil {
			return fmt.Errorf("zstd dictionary: %w: %w", iofs.ErrInvalid, err)
		}
		m.zst = d
	}
	m.frame = &frame{in: m.in, head: true}
	return m.zst.Reset(m.frame)
}

// dictMagic begins the frame with the dictionary of a .warc.zst file.
const dictMagic = 0x5d

func isFrame(b []byte) bool { return binary.LittleEndian.Uint32(b) == 0xfd2fb528 }

func isSkippable(b []byte) bool { return binary.LittleEndian.Uint32(b)&^0xf == 0x184d2a50 }

// skip passes over a skippable frame, and keeps what is in it if it is the
// dictionary, which may be compressed itself.
func (m *members) skip(keep bool) error {
	var head [8]byte
	if _, err := io.ReadFull(m.in, head[:]); err != nil {
		return cutShort(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[4:]))
	body := io.LimitReader(m.in, size)
	if !keep || size > maxDict {
		n, err := io.Copy(io.Discard, body)
		if err == nil && n < size {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	b, err := io.ReadAll(body)
	if err == nil && int64(len(b)) < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && len(b) >= 4 && isFrame(b) {
		b, err = unpackDict(b)
	}
	m.dict = b
	return err
}

func unpackDict(b []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDict), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}

// close frees what the members hold; the file is its owner's.
func (m *members) close() {
	if m.zst != nil {
		m.zst.Close()
	}
}

// A counter counts the bytes taken. It has ReadByte, so that decompressors take
// no more than they need and the next member begins where n says.
type counter struct {
	r *bufio.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// A frame gives the bytes of one zstd frame and then io.EOF. The decoder reads
// ahead of what it gives, so it is shown no more than the frame.
type frame struct {
	in   *counter
	head bool   // the header is to come
	sum  bool   // a checksum follows the blocks
	last bool   // the blocks have ended
	part []byte // of what was read and not given
	buf  []byte
	err  error
}

func (f *frame) Read(p []byte) (int, error) {
	for len(f.part) == 0 && f.err == nil {
		f.err = f.more()
	}
	if len(f.part) == 0 {
		return 0, f.err
	}
	n := copy(p, f.part)
	f.part = f.part[n:]
	return n, nil
}

func (f *frame) more() error {
	switch {
	case f.head:
		f.head = false
		return f.header()
	case !f.last:
		return f.block()
	case f.sum:
		f.sum = false
		return f.take(0, 4)
	}
	return io.EOF
}

// take reads n bytes behind the first have of buf.
func (f *frame) take(have, n int) error {
	if cap(f.buf) < have+n {
		f.buf = append(make([]byte, 0, have+n), f.buf[:have]...)
	}
	f.buf = f.buf[:have+n]
	_, err := io.ReadFull(f.in, f.buf[have:])
	f.part = f.buf
	if err != nil {
		f.part = nil
		return cutShort(err)
	}
	return nil
}

func (f *frame) header() error {
	if err := f.take(0, 5); err != nil {
		return err
	}
	d := f.buf[4]
	single := d&0x20 != 0
	f.sum = d&0x04 != 0
	n := [4]int{0, 1, 2, 4}[d&3] + [4]int{0, 2, 4, 8}[d>>6]
	if !single {
		n++ // the window's size
	} else if d>>6 == 0 {
		n++ // the content's, in a byte
	}
	return f.take(5, n)
}

func (f *frame) block() error {
	if err := f.take(0, 3); err != nil {
		return err
	}
	h := int(f.buf[0]) | int(f.buf[1])<<8 | int(f.buf[2])<<16
	f.last = h&1 != 0
	size := h >> 3
	switch kind := h >> 1 & 3; {
	case kind == 1: // one byte, repeated
		size = 1
	case kind == 3 || size > 128<<10:
		return fmt.Errorf("zstd block: %w", iofs.ErrInvalid)
	}
	return f.take(3, size)
}

// cutShort is the error of what ends where it must not.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
