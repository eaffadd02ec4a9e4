package essence

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"

	"harvest/gather/essence/unpack"
	"harvest/gather/soif"
)

// A format is a way to put files into one, or to write one in fewer bytes. Of
// open and decode it has one; what they return second gives back what they took.
type format struct {
	name   string // in the table, in traces and in what is told of damage
	is     func(c *content) bool
	open   func(w *worker, c *content, in *counter) (archive, func(), error)
	decode func(w *worker, c *content, in io.Reader) (io.Reader, func(), error)
	suffix string // of names, and what stands for it: `.gz .tgz=.tar`
}

// formats are those in the program, the more telling first.
var formats = append(encodings[:len(encodings):len(encodings)], archives...)

var encodings = []format{
	{name: "gzip", is: starts("\x1f\x8b\x08"), decode: openGzip, suffix: ".gz .gzip .tgz=.tar .svgz=.svg .taz=.tar"},
	{name: "bzip2", is: starts("BZh"), decode: openBzip2, suffix: ".bz2 .bz .tbz2=.tar .tbz=.tar .tb2=.tar"},
	{name: "xz", is: starts("\xfd7zXZ\x00"), decode: openXZ, suffix: ".xz .txz=.tar"},
	{name: "zstd", is: isZstd, decode: openZstd, suffix: ".zst .zstd .tzst=.tar"},
	{name: "lz4", is: starts("\x04\x22\x4d\x18", "\x02\x21\x4c\x18"), decode: openLZ4, suffix: ".lz4"},
	{name: "lzip", is: starts("LZIP\x01"), decode: openLzip, suffix: ".lz .tlz=.tar"},
	{name: "compress", is: starts("\x1f\x9d"), decode: openZ, suffix: ".Z .taz=.tar"},
	{name: "lzma", is: typed("LzmaCompressed"), decode: openLZMA, suffix: ".lzma .tlz=.tar"},
	{name: "brotli", is: typed("BrotliCompressed"), decode: openBrotli, suffix: ".br"},
	{name: "zlib", is: typed("ZlibCompressed"), decode: openZlib, suffix: ".zlib"},
}

var archives = []format{
	{name: "tar", is: typed("Tar"), open: openTar},
	{name: "zip", is: isZip, open: openZip},
	{name: "7z", is: starts("7z\xbc\xaf\x27\x1c"), open: openSeven},
	{name: "rar", is: starts("Rar!\x1a\x07"), open: openRar},
	{name: "ar", is: starts("!<arch>\n"), open: openAr},
	{name: "arj", is: starts("\x60\xea"), open: openARJ},
	{name: "lha", is: isLHA, open: openLHA},
	{name: "zoo", is: func(c *content) bool { return len(c.head) > 24 && string(c.head[20:24]) == "\xdc\xa7\xc4\xfd" }, open: openZoo},
	{name: "cab", is: starts("MSCF\x00\x00\x00\x00"), open: openCab},
	{name: "cpio", is: starts("070701", "070702", "070707", "\xc7\x71", "\x71\xc7"), open: openCpio},
	{name: "pdf", is: typed("Pdf"), open: openPDF},
	{name: "rpm", is: starts("\xed\xab\xee\xdb"), open: openRPM},
	{name: "iso9660", is: isISO, open: openISO},
	{name: "shar", is: func(c *content) bool { return c.typ == "ShellArchive" && unpack.IsShar(c.head) }, open: openShar},
	{name: "binhex", is: func(c *content) bool { return c.typ == "MacCompressed" && unpack.IsBinHex(c.head) }, open: openBinHex},
	{name: "macbinary", is: func(c *content) bool { return unpack.IsMacBinary(c.head) }, open: openMacBinary},
	{name: "mbox", is: func(c *content) bool { return mailLike(c) && unpack.IsMbox(c.head) }, open: openMbox},
	{name: "mail", is: func(c *content) bool { return mailLike(c) && unpack.IsMultipart(c.head) }, open: openMail},
	{name: "uuencode", is: func(c *content) bool { return textLike(c) && unpack.IsUU(c.head) }, open: openUU},
}

func formatNamed(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

func formatNames() (all []string) {
	for i := range formats {
		all = append(all, formats[i].name)
	}
	return all
}

// starts tells a format by its first bytes.
func starts(magic ...string) func(*content) bool {
	return func(c *content) bool {
		for _, m := range magic {
			if bytes.HasPrefix(c.head, []byte(m)) {
				return true
			}
		}
		return false
	}
}

// typed tells a format by what recognition made of it.
func typed(name string) func(*content) bool {
	return func(c *content) bool { return c.typ == name || c.form == name }
}

func mailLike(c *content) bool {
	return c.typ == "Mail" || c.typ == "News" || c.typ == "MHTML" || c.form == "Mail"
}

// textLike are types of text that something uuencoded may stand in.
func textLike(c *content) bool {
	switch c.typ {
	case "Text", "README", "FAQ", "Mail", "News", "Uuencoded", "ShellScript", "FormattedText":
		return true
	}
	return false
}

func isZstd(c *content) bool {
	return len(c.head) > 4 && (string(c.head[:4]) == "\x28\xb5\x2f\xfd" || c.typ == "ZstdCompressed" && string(c.head[1:4]) == "\x2a\x4d\x18")
}

// isZip tells an archive, also the volumes of one: the first has a mark of its own,
// the last has the index and begins in the middle of a member.
func isZip(c *content) bool {
	return starts("PK\x03\x04", "PK\x05\x06", "PK00PK\x03\x04", "PK\x07\x08PK\x03\x04")(c) ||
		c.typ == "PCCompressed" && len(c.name) > 4 && strings.EqualFold(c.name[len(c.name)-4:], ".zip")
}

// isLHA tells an archive by the method of its first member.
func isLHA(c *content) bool {
	return len(c.head) > 21 && c.head[2] == '-' && c.head[3] == 'l' && (c.head[4] == 'h' || c.head[4] == 'z') && c.head[6] == '-' && c.head[20] <= 3
}

func isISO(c *content) bool { return unpack.IsISO(bytes.NewReader(c.head)) }

// inner is the name of what is compressed in a content.
func (f *format) inner(c *content) string {
	for s := range strings.FieldsSeq(f.suffix) {
		from, to, _ := strings.Cut(s, "=")
		if n := len(c.name) - len(from); n > 0 && strings.EqualFold(c.name[n:], from) {
			return c.name[:n] + to
		}
	}
	return c.name
}

func keepNothing() {}

func openGzip(_ *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(in)
	return z, keepNothing, err
}

func openZlib(_ *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	z, err := zlib.NewReader(in)
	return z, keepNothing, err
}

func openBzip2(w *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	done, err := w.reserve(6 << 20)
	return bzip2.NewReader(in), done, err
}

func openBrotli(w *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	done, err := w.reserve(17 << 20)
	return brotli.NewReader(in), done, err
}

func openLZ4(w *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	done, err := w.reserve(17 << 20)
	return lz4.NewReader(in), done, err
}

func openZ(_ *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	z, err := unpack.NewZ(in)
	return z, keepNothing, err
}

// openXZ reads with a dictionary of the size that the first block's header has;
// a later one may not want more.
func openXZ(w *worker, c *content, in io.Reader) (io.Reader, func(), error) {
	dict := xzDict(c.head)
	done, err := w.reserve(dict)
	if err != nil {
		return nil, nil, err
	}
	z, err := xz.NewReader(in, uint32(dict))
	return z, done, err
}

// xzDict is the size of the dictionary that a stream of xz asks for first; 64 MiB
// where it cannot be told.
func xzDict(b []byte) int64 {
	const unknown = 64 << 20
	if len(b) < 24 || b[12] == 0 {
		return unknown
	}
	h := b[12:min(len(b), 12+(int(b[12])+1)*4)]
	at := 2
	number := func() (v uint64) {
		n := 0
		if v, n = binary.Uvarint(h[min(at, len(h)):]); n <= 0 {
			at = len(h)
		}
		at += max(n, 0)
		return v
	}
	for _, has := range []byte{0x40, 0x80} {
		if h[1]&has != 0 {
			number()
		}
	}
	for range h[1]&3 + 1 {
		id, n := number(), number()
		if id == 0x21 && n == 1 && at < len(h) && h[at] <= 40 {
			return max(int64(2|h[at]&1)<<(h[at]/2+11), 1<<12)
		}
		at += int(min(n, 1<<10))
	}
	return unknown
}

// openZstd reads with a window of the size that the first frame has.
func openZstd(w *worker, c *content, in io.Reader) (io.Reader, func(), error) {
	var h zstd.Header
	window := int64(8 << 20)
	if err := h.Decode(c.head); err == nil && !h.Skippable {
		window = int64(min(max(h.WindowSize, 1<<20), 1<<40))
		if h.SingleSegment {
			window = int64(min(max(h.FrameContentSize, 1<<20), 1<<40))
		}
	}
	done, err := w.reserve(2 * window) // it keeps what was and what comes
	if err != nil {
		return nil, nil, err
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(window)), zstd.WithDecoderMaxMemory(1<<40))
	if err != nil {
		done()
		return nil, nil, err
	}
	return z, func() { z.Close(); done() }, nil
}

func openLZMA(w *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	n, done := w.share()
	z, err := unpack.NewLZMA(in, n)
	return z, done, err
}

func openLzip(w *worker, _ *content, in io.Reader) (io.Reader, func(), error) {
	n, done := w.share()
	z, err := unpack.NewLzip(in, n)
	return z, done, err
}

// A tarArchive is one of archive/tar, which knows all forms there are.
type tarArchive struct{ *tar.Reader }

func openTar(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return tarArchive{tar.NewReader(in)}, keepNothing, nil
}

func (t tarArchive) Next() (*unpack.Header, error) {
	h, err := t.Reader.Next()
	if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
		return nil, err
	}
	return &unpack.Header{Name: h.Name, Size: h.Size, Packed: -1, Modified: h.ModTime,
		Regular: h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse}, nil
}

// whole opens a format whose index stands at its end.
func openWhole[A archive](open func(r io.ReaderAt, size, memory int64) (A, error)) func(*worker, *content, *counter) (archive, func(), error) {
	return func(w *worker, c *content, in *counter) (archive, func(), error) {
		r, size, err := w.whole(c)
		if err != nil {
			return nil, nil, err
		}
		in.n = 0
		n, done := w.share()
		a, err := open(&timedAt{w, r, in, size}, size, n)
		if err != nil {
			done()
			return nil, nil, err
		}
		return a, done, nil
	}
}

var (
	openZip   = openWhole(unpack.NewZip)
	openSeven = openWhole(unpack.NewSeven)
	openZoo   = openWhole(unpack.NewZoo)
	openCab   = openWhole(unpack.NewCab)
	openISO   = openWhole(func(r io.ReaderAt, size, _ int64) (*unpack.ISO, error) { return unpack.NewISO(r, size) })
)

func openAr(_ *worker, _ *content, in *counter) (archive, func(), error) {
	a, err := unpack.NewAr(in)
	return arArchive{a}, keepNothing, err
}

// An arArchive tells what its own table of symbols has.
type arArchive struct{ *unpack.Ar }

// Notes adds the symbols to the archive's object.
func (a arArchive) Notes(w *worker, o *soif.Object, _ *content) {
	var text strings.Builder
	for _, s := range a.Symbols {
		if text.Len() > symbolRoom*w.lim.Attr {
			break
		}
		text.WriteString(s + "\n")
	}
	if text.Len() > 0 {
		add(o, "Symbols", string(cutText([]byte(strings.TrimSuffix(text.String(), "\n")), symbolRoom*w.lim.Attr)))
	}
}

// openARJ and openLHA need what the windows of their codes take.
func openARJ(w *worker, _ *content, in *counter) (archive, func(), error) {
	done, err := w.reserve(64 << 10)
	if err != nil {
		return nil, nil, err
	}
	a, err := unpack.NewARJ(in)
	return a, done, err
}

func openLHA(w *worker, _ *content, in *counter) (archive, func(), error) {
	done, err := w.reserve(64 << 10)
	return unpack.NewLHA(in), done, err
}

func openCpio(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return unpack.NewCpio(in), keepNothing, nil
}

func openShar(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return unpack.NewShar(in), keepNothing, nil
}

func openUU(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return unpack.NewUU(in), keepNothing, nil
}

func openMbox(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return unpack.NewMbox(in), keepNothing, nil
}

func openMail(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return unpack.NewMail(in), keepNothing, nil
}

// A oneMember is an archive of one member.
type oneMember struct {
	h    *unpack.Header
	r    io.Reader
	done bool
}

func (s *oneMember) Next() (*unpack.Header, error) {
	if s.done {
		return nil, io.EOF
	}
	s.done = true
	return s.h, nil
}

func (s *oneMember) Read(p []byte) (int, error) { return s.r.Read(p) }

func openBinHex(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return macFile(unpack.NewBinHex(in))
}

func openMacBinary(_ *worker, _ *content, in *counter) (archive, func(), error) {
	return macFile(unpack.NewMacBinary(in))
}

func macFile(m *unpack.MacFile, err error) (archive, func(), error) {
	if err != nil {
		return nil, nil, err
	}
	return &oneMember{h: &m.Header, r: m}, keepNothing, nil
}
