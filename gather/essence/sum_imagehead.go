package essence

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// A header is what a picture's header says of its form.
type header struct {
	format        string
	width, height int
	depth         int // bits of a pixel
	frames        int
}

// imageHeader reads the header of a picture, and the comments that stand near
// it, by the magic of its format.
func imageHeader(d *document, b *bin) header {
	start := b.at(0, 64)
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return pngHeader(d, b)
	case bytes.HasPrefix(start, []byte("\xff\xd8")):
		return jpegHeader(d, b)
	case bytes.HasPrefix(start, []byte("GIF8")):
		return gifHeader(d, b)
	case bytes.HasPrefix(start, []byte("BM")):
		return bmpHeader(b)
	case bytes.HasPrefix(start, []byte("II*\x00")), bytes.HasPrefix(start, []byte("MM\x00*")):
		return tiffHeader(b)
	case bytes.HasPrefix(start, []byte("RIFF")) && b.has(8, "WEBP"):
		return webpHeader(b)
	case b.has(4, "ftyp"):
		return heifHeader(b)
	case bytes.HasPrefix(start, []byte("\x00\x00\x01\x00")), bytes.HasPrefix(start, []byte("\x00\x00\x02\x00")):
		return iconHeader(b)
	case bytes.HasPrefix(start, []byte("8BPS")):
		return header{format: "PSD", width: int(b.be32(18)), height: int(b.be32(14)), depth: b.be16(12) * b.be16(22)}
	case bytes.HasPrefix(start, []byte("gimp xcf")):
		return header{format: "XCF", width: int(b.be32(14)), height: int(b.be32(18))}
	case bytes.HasPrefix(start, []byte("\x0a")) && len(start) > 3 && start[2] == 1 && start[1] <= 5:
		return header{format: "PCX", width: b.le16(8) - b.le16(4) + 1, height: b.le16(10) - b.le16(6) + 1, depth: b.u8(3) * b.u8(65)}
	case bytes.HasPrefix(start, []byte("\x00\x00\x00\x0cjP  ")):
		return jp2Header(b)
	case bytes.HasPrefix(start, []byte("AT&TFORM")):
		return header{format: "DjVu", width: b.be16(24), height: b.be16(26)}
	case bytes.HasPrefix(start, []byte("qoif")):
		return header{format: "QOI", width: int(b.be32(4)), height: int(b.be32(8)), depth: 8 * b.u8(12)}
	case bytes.HasPrefix(start, []byte("\x59\xa6\x6a\x95")):
		return header{format: "Sun raster", width: int(b.be32(4)), height: int(b.be32(8)), depth: int(b.be32(12))}
	case bytes.HasPrefix(start, []byte("\x01\xda")):
		return header{format: "SGI", width: b.be16(6), height: b.be16(8), depth: 8 * b.u8(3) * b.be16(10)}
	case len(start) > 1 && start[0] == 'P' && start[1] >= '1' && start[1] <= '7':
		return pnmHeader(d, b)
	}
	return textImage(d, b)
}

// pngHeader reads IHDR and the texts ([PNG] 11.3.3), which say with a keyword
// what they are of.
func pngHeader(d *document, b *bin) header {
	h := header{format: "PNG", width: int(b.be32(16)), height: int(b.be32(20))}
	h.depth = b.u8(24) * []int{1, 0, 3, 1, 2, 0, 4, 0}[b.u8(25)&7]
	at := int64(8)
	for range 10000 {
		n := b.be32(at)
		switch typ := string(b.at(at+4, 4)); typ {
		case "tEXt", "zTXt", "iTXt":
			key, text, _ := bytes.Cut(b.at(at+8, int(min(n, maxField))), []byte{0})
			d.pngText(string(key), pngText(typ, text))
		case "acTL":
			h.frames = int(b.be32(at + 8))
		case "tIME":
			d.modified = isoTime(strings.Join([]string{strconv.Itoa(b.be16(at + 8)), two(b.u8(at + 10)), two(b.u8(at + 11))}, "-") +
				"T" + strings.Join([]string{two(b.u8(at + 12)), two(b.u8(at + 13)), two(b.u8(at + 14))}, ":") + "Z")
		case "IEND", "":
			return h
		}
		at += 12 + n
	}
	return h
}

func two(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// pngText is what follows the keyword: Latin 1, the same compressed, or UTF-8
// with a language before it.
func pngText(typ string, b []byte) string {
	packed := typ == "zTXt"
	switch {
	case packed && len(b) > 0:
		b = b[1:]
	case typ == "iTXt" && len(b) > 2:
		packed = b[0] == 1
		_, b, _ = bytes.Cut(b[2:], []byte{0})
		_, b, _ = bytes.Cut(b, []byte{0})
	}
	if packed {
		z, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return ""
		}
		defer z.Close()
		b, _ = io.ReadAll(io.LimitReader(z, maxField)) // of what is damaged the beginning
	}
	if typ == "iTXt" {
		return string(bytes.ToValidUTF8(b, nil))
	}
	return latin1(b)
}

func (d *document) pngText(key, text string) {
	switch key {
	case "Title":
		d.title = text
	case "Author":
		d.author = text
	case "Description":
		d.description = text
	case "Copyright":
		d.extra("Rights", text)
	case "Software":
		d.generator = text
	case "Source":
		d.extra("Source", text)
	case "Creation Time", "date:create":
		d.created = isoTime(text)
	case "date:modify":
		d.modified = isoTime(text)
	case "Comment":
		d.comment(text)
	case "XML:com.adobe.xmp", "Raw profile type exif", "Raw profile type iptc":
	default:
		if !strings.Contains(key, ":") && len(text) < 1<<10 {
			d.comment(key + ": " + text)
		}
	}
}

// jpegHeader walks the segments to the frame's.
func jpegHeader(d *document, b *bin) header {
	h := header{format: "JPEG"}
	at := int64(2)
	for range 10000 {
		if b.u8(at) != 0xff {
			return h
		}
		m := b.u8(at + 1)
		switch {
		case m == 0xff: // a fill byte
			at++
			continue
		case m == 0xd9 || m == 0xda:
			return h
		case m == 0xfe:
			d.comment(string(decode(b.at(at+4, b.be16(at+2)-2), "")))
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc:
			h.height, h.width, h.depth = b.be16(at+5), b.be16(at+7), b.u8(at+4)*b.u8(at+9)
		}
		at += 2 + int64(max(b.be16(at+2), 2))
	}
	return h
}

// gifHeader counts frames and reads comments.
func gifHeader(d *document, b *bin) header {
	h := header{format: "GIF", width: b.le16(6), height: b.le16(8), depth: b.u8(10)&7 + 1}
	at := int64(13) + table3(b.u8(10))
	for range 100000 {
		switch b.u8(at) {
		case 0x2c:
			h.frames++
			at = subBlocks(b, at+11+table3(b.u8(at+9)), nil)
		case 0x21:
			var text []byte
			if b.u8(at+1) == 0xfe {
				at = subBlocks(b, at+2, &text)
				d.comment(string(decode(text, "")))
			} else {
				at = subBlocks(b, at+2, nil)
			}
		default:
			return h
		}
	}
	return h
}

// table3 is the size of a GIF's table of colours.
func table3(flags int) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// subBlocks moves past blocks that begin with their length, and keeps them.
func subBlocks(b *bin, at int64, keep *[]byte) int64 {
	for at < b.size {
		n := b.u8(at)
		if n == 0 {
			return at + 1
		}
		if keep != nil && len(*keep) < maxField {
			*keep = append(*keep, b.at(at+1, n)...)
		}
		at += int64(n) + 1
	}
	return at
}

func bmpHeader(b *bin) header {
	if b.le32(14) == 12 {
		return header{format: "BMP", width: b.le16(18), height: b.le16(20), depth: b.le16(24)}
	}
	height := int(int32(b.le32(22)))
	return header{format: "BMP", width: int(b.le32(18)), height: max(height, -height), depth: b.le16(28)}
}

// tiffHeader reads the size in the first directory, and counts those that follow.
func tiffHeader(b *bin) header {
	h := header{format: "TIFF"}
	u16, u32 := b.le16, b.le32
	if b.has(0, "MM") {
		u16, u32 = b.be16, b.be32
	}
	bits, samples := 1, 1
	at := u32(4)
	for h.frames = 0; at > 0 && at < b.size && h.frames < 1000; h.frames++ {
		n := u16(at)
		for i := range n {
			e := at + 2 + 12*int64(i)
			v := int(u32(e + 8))
			if u16(e+2) == 3 {
				v = u16(e + 8)
			}
			switch tag := u16(e); {
			case h.frames > 0:
			case tag == 256:
				h.width = v
			case tag == 257:
				h.height = v
			case tag == 258 && u32(e+4) > 2:
				bits = u16(int64(v))
			case tag == 258:
				bits = v
			case tag == 277:
				samples = v
			}
			if h.frames > 0 {
				break
			}
		}
		at = u32(at + 2 + 12*int64(n))
	}
	h.depth = min(bits, 64) * min(samples, 64)
	return h
}

func webpHeader(b *bin) header {
	h := header{format: "WebP"}
	switch string(b.at(12, 4)) {
	case "VP8 ":
		h.width, h.height = b.le16(26)&0x3fff, b.le16(28)&0x3fff
	case "VP8L":
		v := b.le32(21)
		h.width, h.height = int(v&0x3fff)+1, int(v>>14&0x3fff)+1
	case "VP8X":
		h.width, h.height = int(b.le32(24)&0xffffff)+1, int(b.le32(27)&0xffffff)+1
	}
	return h
}

// heifHeader looks for the largest ispe, the size of a picture or of a part.
func heifHeader(b *bin) header {
	h := header{format: "HEIF"}
	if brands := b.at(8, 64); bytes.Contains(brands, []byte("avif")) {
		h.format = "AVIF"
	}
	for at, box := range b.boxes(0, b.size) {
		if box.name != "meta" {
			continue
		}
		meta := b.at(at+box.head, int(min(box.size, maxField)))
		for {
			i := bytes.Index(meta, []byte("ispe"))
			if i < 0 || len(meta) < i+16 {
				break
			}
			m := &bin{r: bytes.NewReader(meta[i:]), size: int64(len(meta) - i)}
			if wide, high := int(m.be32(8)), int(m.be32(12)); wide*high > h.width*h.height && wide < 1<<20 && high < 1<<20 {
				h.width, h.height = wide, high
			}
			meta = meta[i+4:]
		}
	}
	return h
}

// iconHeader takes the largest of the icons in a file.
func iconHeader(b *bin) header {
	h := header{format: "ICO", frames: b.le16(4)}
	if b.le16(2) == 2 {
		h.format = "CUR"
	}
	for i := range min(h.frames, 1000) {
		e := 6 + 16*int64(i)
		wide, high := (b.u8(e)+255)%256+1, (b.u8(e+1)+255)%256+1
		if wide*high > h.width*h.height {
			h.width, h.height = wide, high
		}
	}
	return h
}

func jp2Header(b *bin) header {
	h := header{format: "JPEG 2000"}
	for at, box := range b.boxes(0, b.size) {
		if box.name == "jp2h" {
			h.height, h.width = int(b.be32(at+16)), int(b.be32(at+20))
		}
	}
	return h
}

var (
	xpmSize = expression(`"\s*(\d{1,6})\s+(\d{1,6})\s+(\d{1,6})\s+\d`)
	xbmSize = expression(`(?s)#define\s+(\w*)width\s+(\d{1,6}).*?#define\s+\w*height\s+(\d{1,6})`)
	xpmName = expression(`static\s+(?:const\s+)?(?:unsigned\s+)?char\s*\*?\s*(?:const\s+)?(\w+)`)
)

// textImage reads pictures that are C: XPM and XBM.
func textImage(d *document, b *bin) header {
	text := b.at(0, maxField)
	for m := range bytes.SplitSeq(text, []byte("/*")) {
		if c, _, ok := bytes.Cut(m, []byte("*/")); ok && letters(c, 4) && !bytes.Contains(c, []byte(";")) {
			if s := strings.TrimSpace(string(c)); s != "XPM" && s != "pixels" && s != "colors" && !strings.HasPrefix(s, "columns rows") {
				d.comment(s)
			}
		}
	}
	if m := xpmName().FindSubmatch(text); m != nil {
		d.title = strings.TrimSuffix(strings.TrimSuffix(string(m[1]), "_xpm"), "_bits")
	}
	if m := xbmSize().FindSubmatch(text); m != nil {
		return header{format: "XBM", width: atoi(m[2]), height: atoi(m[3]), depth: 1}
	}
	if m := xpmSize().FindSubmatch(text); m != nil {
		return header{format: "XPM", width: atoi(m[1]), height: atoi(m[2])}
	}
	return header{}
}

func atoi(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// pnmHeader reads numbers, with comments between them.
func pnmHeader(d *document, b *bin) header {
	text := b.at(0, 4<<10)
	h := header{format: map[byte]string{'1': "PBM", '2': "PGM", '3': "PPM", '4': "PBM", '5': "PGM", '6': "PPM", '7': "PAM"}[text[1]]}
	var n []int
	for line := range bytes.Lines(text[2:]) {
		line, note, ok := bytes.Cut(line, []byte("#"))
		if ok {
			d.comment(string(note))
		}
		for f := range bytes.FieldsSeq(line) {
			if f = bytes.TrimLeft(f, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); len(f) > 0 {
				v, err := strconv.Atoi(string(f))
				if err != nil {
					return header{format: h.format}
				}
				n = append(n, v)
			}
		}
		if len(n) >= 2 {
			h.width, h.height = n[0], n[1]
			return h
		}
	}
	return h
}
