package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"harvest/gather/soif"
)

// # Segments
//
// The objects are in files called NNNNNNNN.seg (eight hex digits, the segment's
// number), written only at their end. All numbers are little-endian.
//
//	segment  = header frame…
//	header   = magic[8] version[4] kind[4] number[4] epoch[4] n[4] crc[4] replaced[4]×n
//	frame    = "HvFr" crc[4] length[4] metalen[4] rawlen[4] count[4]
//	           group[8] base[8] time[8] flags[4] meta[metalen] body
//	meta     = change×count
//	change   = op[1] oid[16] seq body updated ttl size [urllen url]    (varints)
//
// A frame's crc is the CRC-32C of all that follows it, length is that of the whole
// frame, and body is one zstd frame of rawlen bytes: the changes' objects in the
// order of meta, each as it was given to Apply, with nothing between them. So the
// bodies of a segment, one after the other, are a .soif.zst file. A frame of
// deletions has no body.
//
// Base is the number of the frame's first change; in a change, seq is the number
// less base, body how many less the number of the last change but refreshes is,
// updated the Update-Time in Unix seconds (of a deletion: its own time), ttl the
// seconds to live, size the length of the object. Only deletions have a URL.
//
// Group is the number of the first change of the group that was synced with one
// wait for the disk, and the last frame of a group has flag 1. Frames after the
// last such flag were never acknowledged: Open cuts them off. A frame whose crc is
// wrong while a later group follows was acknowledged: that is damage, which is
// reported and skipped, and the store gets a new epoch.
//
// A segment of kind 2 was written by Compact, in place of the segments whose
// numbers are in its header. It is made aside and renamed when it is whole.
//
// Measured with 2 KB objects of English text, which is what the numbers 32 KiB
// and default level were chosen by (share of the raw bytes; time to decode one
// frame, which is what reading one object costs):
//
//	frame     alone  16 KiB  32 KiB  64 KiB  128 KiB
//	fastest   0.478   0.399   0.381   0.366    0.351
//	default   0.458   0.383   0.365   0.348    0.333
//	decode     8 µs   28 µs   44 µs   83 µs   148 µs
//
// Header and meta take 31 bytes an object more.
const (
	segMagic = "hvstore\n"

	// segVersion is the version of segments that are written. History:
	//
	//	1  November 2026: as above
	segVersion = 1

	segHeader   = 32
	frameMagic  = 'H' | 'v'<<8 | 'F'<<16 | 'r'<<24
	frameHeader = 52
	flagLast    = 1

	kindLog       = 1
	kindCompacted = 2

	// maxObject is the largest object that is stored, the default limit of
	// package soif.
	maxObject = 64 << 20
	maxURL    = 16 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is the class of errors about bytes on disk that are not what was
// written there.
var ErrDamaged = errors.New("damaged")

// errShort is a frame that goes on past the end of the bytes.
var errShort = fmt.Errorf("frame is cut short: %w", ErrDamaged)

// A loc is where an object is: the frame at an offset in a segment, and which of
// its changes.
type loc struct{ seg, off, slot uint32 }

// A meta is a change as a frame has it.
type meta struct {
	op      soif.Op
	oid     OID
	seq     uint64
	body    uint64 // number of the last change that was no refresh
	updated int64
	ttl     int64
	size    int
	url     string
}

// A frame is one decoded frame. Its raw bytes are those of the bodies.
type frame struct {
	length int
	metas  []meta
	group  uint64
	time   int64
	last   bool
	meta   int // bytes
	rawLen int
	packed []byte // the zstd frame, aliases the input
	raw    []byte // once unpacked
	starts []int  // where each change's object starts in raw, and its end
}

// appendFrame appends the frame of some changes and their packed bodies.
func appendFrame(dst []byte, metas []meta, rawLen int, packed []byte, group uint64, now int64, last bool) []byte {
	at := len(dst)
	var h [frameHeader]byte
	dst = append(dst, h[:]...)
	base := metas[0].seq
	for _, m := range metas {
		base = min(base, m.seq)
	}
	for _, m := range metas {
		dst = append(dst, byte(m.op))
		dst = append(dst, m.oid[:]...)
		dst = binary.AppendUvarint(dst, m.seq-base)
		dst = binary.AppendUvarint(dst, m.seq-m.body)
		dst = binary.AppendVarint(dst, m.updated)
		dst = binary.AppendUvarint(dst, uint64(m.ttl))
		dst = binary.AppendUvarint(dst, uint64(m.size))
		if m.op == soif.Delete {
			dst = binary.AppendUvarint(dst, uint64(len(m.url)))
			dst = append(dst, m.url...)
		}
	}
	metaLen := len(dst) - at - frameHeader
	dst = append(dst, packed...)
	b := dst[at:]
	le := binary.LittleEndian
	le.PutUint32(b[0:], frameMagic)
	le.PutUint32(b[8:], uint32(len(b)))
	le.PutUint32(b[12:], uint32(metaLen))
	le.PutUint32(b[16:], uint32(rawLen))
	le.PutUint32(b[20:], uint32(len(metas)))
	le.PutUint64(b[24:], group)
	le.PutUint64(b[32:], base)
	le.PutUint64(b[40:], uint64(now))
	if last {
		le.PutUint32(b[48:], flagLast)
	}
	le.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return dst
}

// frameLen returns the length of the frame that starts b, from its header.
func frameLen(b []byte) (int, error) {
	if len(b) < frameHeader {
		return 0, errShort
	}
	if binary.LittleEndian.Uint32(b) != frameMagic {
		return 0, fmt.Errorf("no frame: %w", ErrDamaged)
	}
	n := int64(binary.LittleEndian.Uint32(b[8:]))
	if n < frameHeader {
		return 0, fmt.Errorf("frame of %d bytes: %w", n, ErrDamaged)
	}
	return int(n), nil
}

// parseFrame decodes the frame that starts b, but for its body. It allocates no
// more than a fixed multiple of the bytes that are there.
func parseFrame(b []byte) (f *frame, err error) {
	n, err := frameLen(b)
	if err != nil {
		return nil, err
	}
	if n > len(b) {
		return nil, errShort
	}
	b = b[:n]
	le := binary.LittleEndian
	if le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return nil, fmt.Errorf("checksum: %w", ErrDamaged)
	}
	metaLen, rawLen, count := int64(le.Uint32(b[12:])), int64(le.Uint32(b[16:])), int64(le.Uint32(b[20:]))
	if metaLen > int64(n-frameHeader) || count == 0 || count*21 > metaLen || rawLen > 2*maxObject {
		return nil, fmt.Errorf("frame header: %w", ErrDamaged)
	}
	f = &frame{
		length: n,
		group:  le.Uint64(b[24:]),
		time:   int64(le.Uint64(b[40:])),
		last:   le.Uint32(b[48:])&flagLast != 0,
		meta:   int(metaLen),
		rawLen: int(rawLen),
		packed: b[frameHeader+metaLen:],
		metas:  make([]meta, count),
		starts: make([]int, count+1),
	}
	p := parser{b: b[frameHeader : frameHeader+metaLen]}
	base := le.Uint64(b[32:])
	for i := range f.metas {
		m := &f.metas[i]
		m.op = soif.Op(p.byte())
		copy(m.oid[:], p.bytes(16))
		m.seq = base + p.uvarint()
		m.body = m.seq - p.uvarint()
		m.updated = p.varint()
		m.ttl = int64(p.uvarint())
		size := p.uvarint()
		if size > uint64(f.rawLen-f.starts[i]) {
			p.bad = true
			size = 0
		}
		m.size = int(size)
		if m.op == soif.Delete {
			m.url = string(p.bytes(p.uvarint()))
		}
		if m.op < soif.Update || m.op > soif.Refresh || m.body > m.seq {
			p.bad = true
		}
		f.starts[i+1] = f.starts[i] + m.size
	}
	if p.bad || len(p.b) > 0 || f.starts[count] != f.rawLen {
		return nil, fmt.Errorf("frame meta: %w", ErrDamaged)
	}
	return f, nil
}

// unpack decodes the body of f.
func (f *frame) unpack(d *zstd.Decoder) error {
	if f.rawLen == 0 || f.raw != nil {
		return nil
	}
	raw, err := d.DecodeAll(f.packed, make([]byte, 0, min(f.rawLen, 1<<20+16*len(f.packed))))
	if err == nil && len(raw) != f.rawLen {
		err = fmt.Errorf("%d bytes for %d", len(raw), f.rawLen)
	}
	if err != nil {
		return fmt.Errorf("frame body: %w (%w)", ErrDamaged, err)
	}
	f.raw = raw
	return nil
}

// object returns the encoded object of a change. It aliases f.raw.
func (f *frame) object(slot int) []byte { return f.raw[f.starts[slot]:f.starts[slot+1]] }

// A parser takes numbers off the front of bytes. After the first that is not
// there it is bad and gives zeros.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.b, p.bad = nil, true
		return nil
	}
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func (p *parser) byte() byte {
	if v := p.bytes(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.b, p.bad = nil, true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.b, p.bad = nil, true
		return 0
	}
	p.b = p.b[n:]
	return v
}

// A segment is an open segment file. It is closed when its last user, the store
// being one, has let go of it.
type segment struct {
	id       uint32
	kind     uint32
	epoch    uint32
	replaced []uint32
	path     string
	f        *os.File
	size     int64 // where the next frame goes; only the writer looks
	users    atomic.Int32
}

func segName(id uint32) string { return fmt.Sprintf("%08x.seg", id) }

// createSegment makes a segment file, not yet synced. Those of Compact get a
// temporary name.
func createSegment(dir string, id, kind, epoch uint32, replaced []uint32) (*segment, error) {
	name := segName(id)
	if kind == kindCompacted {
		name += ".tmp"
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, err
	}
	h := make([]byte, segHeader, segHeader+4*len(replaced))
	copy(h, segMagic)
	le := binary.LittleEndian
	le.PutUint32(h[8:], segVersion)
	le.PutUint32(h[12:], kind)
	le.PutUint32(h[16:], id)
	le.PutUint32(h[20:], epoch)
	le.PutUint32(h[24:], uint32(len(replaced)))
	for _, r := range replaced {
		h = le.AppendUint32(h, r)
	}
	le.PutUint32(h[28:], headerSum(h))
	if _, err := f.WriteAt(h, 0); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	s := &segment{id: id, kind: kind, epoch: epoch, replaced: replaced, path: f.Name(), f: f, size: int64(len(h))}
	s.users.Store(1)
	return s, nil
}

// headerSum is the checksum of a segment's header: of all but its own four bytes.
func headerSum(h []byte) uint32 {
	return crc32.Update(crc32.Checksum(h[:28], castagnoli), castagnoli, h[segHeader:])
}

// openSegment opens a segment file for reading and, if it is the last one, for
// writing on.
func openSegment(path string) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &segment{path: path, f: f}
	s.users.Store(1)
	if err := s.readHeader(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func (s *segment) readHeader() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	h := make([]byte, segHeader)
	if _, err := s.f.ReadAt(h, 0); err == io.EOF {
		return fmt.Errorf("segment header: %w", errShort)
	} else if err != nil {
		return err
	}
	le := binary.LittleEndian
	if string(h[:8]) != segMagic {
		return fmt.Errorf("not a segment: %w", ErrDamaged)
	}
	if v := le.Uint32(h[8:]); v != segVersion {
		return fmt.Errorf("segment of version %d, this program reads %d", v, segVersion)
	}
	n := int64(le.Uint32(h[24:]))
	if segHeader+4*n > info.Size() {
		return fmt.Errorf("segment header: %w", errShort)
	}
	h = append(h, make([]byte, 4*n)...)
	if _, err := s.f.ReadAt(h[segHeader:], segHeader); err != nil && n > 0 {
		return err
	}
	if le.Uint32(h[28:]) != headerSum(h) {
		return fmt.Errorf("segment header: checksum: %w", ErrDamaged)
	}
	s.kind, s.id, s.epoch = le.Uint32(h[12:]), le.Uint32(h[16:]), le.Uint32(h[20:])
	for b := h[segHeader:]; len(b) > 0; b = b[4:] {
		s.replaced = append(s.replaced, le.Uint32(b))
	}
	s.size = info.Size()
	return nil
}

// start returns where the first frame is.
func (s *segment) start() int64 { return segHeader + 4*int64(len(s.replaced)) }

// hold makes the caller a user of s, unless s is closed already.
func (s *segment) hold() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends what hold began.
func (s *segment) release() error {
	if s.users.Add(-1) == 0 {
		return s.f.Close()
	}
	return nil
}

// readAhead is how much is read before a frame's length is known: most frames
// whole.
const readAhead = 16 << 10

// read reads the frame at an offset, but for its body. The error names the
// segment and the offset.
func (s *segment) read(off int64) (*frame, error) {
	f, err := s.readFrame(off)
	if err != nil {
		return nil, s.at(off, err)
	}
	return f, nil
}

func (s *segment) at(off int64, err error) error {
	return fmt.Errorf("segment %08x: offset %d: %w", s.id, off, err)
}

func (s *segment) readFrame(off int64) (*frame, error) {
	b := make([]byte, readAhead)
	n, err := s.f.ReadAt(b, off)
	if err != nil && err != io.EOF {
		return nil, err
	}
	size, err := frameLen(b[:n])
	if err != nil {
		return nil, err
	}
	if size > n {
		info, err := s.f.Stat()
		if err != nil {
			return nil, err
		}
		if off+int64(size) > info.Size() {
			return nil, errShort
		}
		b = append(b[:n], make([]byte, size-n)...)
		if _, err := s.f.ReadAt(b[n:size], off+int64(n)); err != nil {
			return nil, err
		}
	}
	return parseFrame(b[:size])
}

// seek returns the offset of the first whole frame at or after off, or -1.
func (s *segment) seek(off int64) (int64, error) {
	const window = 1 << 20
	b := make([]byte, window)
	for off < s.size {
		n, err := s.f.ReadAt(b, off)
		if err != nil && err != io.EOF {
			return -1, err
		}
		for i := 0; i+4 <= n; i++ {
			if binary.LittleEndian.Uint32(b[i:]) != frameMagic {
				continue
			}
			if _, err := s.readFrame(off + int64(i)); err == nil {
				return off + int64(i), nil
			}
		}
		if n < window {
			break
		}
		off += window - 3
	}
	return -1, nil
}

// A brokenSegment is a file whose header cannot be read.
type brokenSegment struct {
	path string
	err  error
}

// segments opens the segment files of a directory, by number, and removes what
// a Compact that did not end has left.
func segments(dir string) (segs []*segment, broken []brokenSegment, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.seg*"))
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if filepath.Ext(name) == ".tmp" {
			if err := os.Remove(name); err != nil {
				return segs, broken, err
			}
			continue
		}
		if filepath.Ext(name) != ".seg" {
			continue
		}
		s, err := openSegment(name)
		switch {
		case errors.Is(err, ErrDamaged):
			broken = append(broken, brokenSegment{name, err})
		case err != nil:
			return segs, broken, err
		case filepath.Base(name) != segName(s.id):
			s.release()
			err := fmt.Errorf("%s: says it is segment %08x: %w", filepath.Base(name), s.id, ErrDamaged)
			broken = append(broken, brokenSegment{name, err})
		default:
			segs = append(segs, s)
		}
	}
	return segs, broken, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// seconds rounds a time to live up to what is stored.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return max(n, 0)
}

// duration is the reverse of seconds; what is too long for it is for ever, or
// nearly.
func duration(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Second))) * time.Second
}
