package essence

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"
)

// mp3Header reads the first frame of MPEG audio, past the tag that may stand
// before it. With a bit rate that varies that frame tells the number of frames.
func mp3Header(b *bin) recording {
	x := recording{}
	at := int64(0)
	for b.has(at, "ID3") {
		v := b.be32(at + 6)
		at += 10 + v>>24&0x7f<<21 + v>>16&0x7f<<14 + v>>8&0x7f<<7 + v&0x7f
	}
	start := b.at(at, maxField)
	i := 0
	for ; i+4 < len(start); i++ {
		if start[i] == 0xff && start[i+1]&0xe0 == 0xe0 && mp3Rate(start[i+1], start[i+2]) > 0 {
			break
		}
	}
	if i+4 >= len(start) {
		return x
	}
	h := start[i:]
	x.bitrate = mp3Rate(h[1], h[2])
	version := h[1] >> 3 & 3 // 3 is MPEG 1, 2 is MPEG 2, 0 is 2.5
	layer := 4 - int(h[1]>>1&3)
	x.format = []string{"", "MP1", "MP2", "MP3"}[layer&3]
	x.rate = []int{44100, 48000, 32000, 0}[h[2]>>2&3] >> []int{2, 0, 1, 0}[version]
	x.channels = 2
	if h[3]>>6 == 3 {
		x.channels = 1
	}
	samples := 1152
	if layer == 1 {
		samples = 384
	} else if layer == 3 && version != 3 {
		samples = 576
	}
	size := float64(b.size - at - int64(i))
	if b.has(b.size-128, "TAG") {
		size -= 128
	}
	x.seconds = size * 8 / float64(x.bitrate)
	for _, mark := range []string{"Xing", "Info", "VBRI"} {
		k := bytes.Index(h[:min(len(h), 200)], []byte(mark))
		if k < 0 || k+18 > len(h) || x.rate == 0 {
			continue
		}
		frames := binary.BigEndian.Uint32(h[k+8:])
		if mark == "VBRI" {
			frames = binary.BigEndian.Uint32(h[k+14:])
		} else if h[k+7]&1 == 0 {
			continue
		}
		x.seconds = float64(frames) * float64(samples) / float64(x.rate)
		if x.seconds > 0 {
			x.bitrate = int(size * 8 / x.seconds)
		}
	}
	return x
}

// mp3Rate is the bit rate that a frame's header tells, 0 if it is none.
func mp3Rate(b1, b2 byte) int {
	version, layer, index := b1>>3&3, 4-int(b1>>1&3), int(b2>>4)
	if version == 1 || layer == 4 || index == 0 || index == 15 || b2>>2&3 == 3 {
		return 0
	}
	kbit := [5][16]int{
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	}
	row := layer - 1
	if version != 3 {
		row = 3
		if layer > 1 {
			row = 4
		}
	}
	return kbit[row][index] * 1000
}

// mpegHeader reads the first sequence header of MPEG 1 and 2.
func mpegHeader(b *bin) recording {
	x := recording{format: "MPEG"}
	start := b.at(0, maxField)
	if i := bytes.Index(start, []byte("\x00\x00\x01\xb3")); i >= 0 && i+8 <= len(start) {
		v := binary.BigEndian.Uint32(start[i+4:])
		x.width, x.height = int(v>>20), int(v>>8&0xfff)
		x.frames = []float64{0, 23.976, 24, 25, 29.97, 30, 50, 59.94, 60, 0, 0, 0, 0, 0, 0, 0}[v&15]
		x.codecs = []string{"mpegvideo"}
	}
	return x
}

// mp4Epoch is what times of ISO base media count from.
var mp4Epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)

// mp4Header walks the boxes of MP4, QuickTime and the like.
func mp4Header(d *document, b *bin) recording {
	x := recording{format: "MP4"}
	if b.has(8, "qt  ") || !b.has(4, "ftyp") {
		x.format = "QuickTime"
	} else if b.has(8, "M4A") || b.has(8, "M4B") {
		x.format = "M4A"
	}
	x.boxes(d, b, 0, b.size, 0)
	return x
}

func (x *recording) boxes(d *document, b *bin, at, end int64, depth int) {
	for at, box := range b.boxes(at, end) {
		body, stop := at+box.head, at+box.size
		switch box.name {
		case "moov", "trak", "mdia", "minf", "stbl", "udta", "ilst":
			if depth < 8 {
				x.boxes(d, b, body, stop, depth+1)
			}
		case "meta":
			if !b.has(body+4, "hdlr") { // of ISO it begins with a version
				body += 4
			}
			if depth < 8 {
				x.boxes(d, b, body, stop, depth+1)
			}
		case "mvhd":
			x.movie(d, b, body)
		case "tkhd":
			if w, h := int(b.be32(stop-8)>>16), int(b.be32(stop-4)>>16); w > x.width {
				x.width, x.height = w, h
			}
		case "stsd":
			if format := strings.TrimSpace(clean(string(b.at(body+12, 4)))); format != "" && len(x.codecs) < 20 {
				x.codecs = append(x.codecs, format)
			}
			if b.has(body+12, "mp4a") || b.has(body+12, "alac") {
				x.channels, x.rate = b.be16(body+32), int(b.be32(body+40)>>16)
			}
		default:
			if depth >= 2 && box.size < maxField {
				x.tag(d, b, box.name, body, stop)
			}
		}
	}
}

// movie reads the header of a film: when it was made, and how long it is.
func (x *recording) movie(d *document, b *bin, at int64) {
	made, scale, units := b.be32(at+4), b.be32(at+12), float64(b.be32(at+16))
	if b.u8(at) == 1 {
		made, scale, units = int64(min(b.be64(at+4), 1<<40)), b.be32(at+20), float64(b.be64(at+24))
	}
	if made > 2082844800 { // 1970: less is not set
		d.created = iso(mp4Epoch.Add(time.Duration(min(made, 1<<33))*time.Second), true)
	}
	if scale > 0 {
		x.seconds = units / float64(scale)
	}
}

// tag reads a tag: a data box of iTunes, or a text of QuickTime with its length
// and language before it.
func (x *recording) tag(d *document, b *bin, name string, body, stop int64) {
	key := lowASCII(name)
	if b.has(body+4, "data") {
		if b.be32(body+8) == 1 {
			d.mediaTag(key, string(bytes.ToValidUTF8(b.at(body+16, int(stop-body-16)), nil)))
		} else if name == "trkn" {
			d.extra("Track", strconv.Itoa(b.be16(body+18)))
		}
		return
	}
	if strings.HasPrefix(key, "\xa9") {
		d.mediaTag(key, string(decode(b.at(body+4, min(b.be16(body), int(stop-body-4))), "")))
	}
}

// lowASCII is a name of four bytes in lower case, which need not be UTF-8.
func lowASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// asfHeader reads WMA and WMV: objects by GUID.
func asfHeader(d *document, b *bin) recording {
	x := recording{format: "ASF"}
	at := int64(30)
	for range min(b.le32(24), 1000) {
		size := int64(min(b.le64(at+16), 1<<40))
		if size < 24 {
			break
		}
		switch {
		case b.has(at, "\x33\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"): // Content Description
			text := at + 34
			for i, key := range []string{"title", "artist", "copyright", "description"} {
				n := b.le16(at + 24 + 2*int64(i))
				d.mediaTag(key, wideText(b.at(text, n)))
				text += int64(n)
			}
		case b.has(at, "\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65"): // File Properties
			x.seconds = float64(b.le64(at+64))/1e7 - float64(b.le64(at+80))/1e3
			x.bitrate = int(b.le32(at + 100))
		case b.has(at, "\x91\x07\xdc\xb7\xb7\xa9\xcf\x11\x8e\xe6\x00\xc0\x0c\x20\x53\x65"): // Stream Properties
			if b.has(at+24, "\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b") {
				x.width, x.height = int(b.le32(at+78)), int(b.le32(at+82))
			} else {
				x.channels, x.rate = b.le16(at+80), int(b.le32(at+82))
			}
		}
		at += size
	}
	return x
}

// Elements of Matroska that are read ([RFC 9559] 5.1). Those that hold others are
// walked into.
const (
	mkSegment, mkInfo, mkTracks, mkTrack, mkVideo, mkAudio     = 0x18538067, 0x1549a966, 0x1654ae6b, 0xae, 0xe0, 0xe1
	mkTags, mkTag, mkSimple, mkTagName, mkTagText              = 0x1254c367, 0x7373, 0x67c8, 0x45a3, 0x4487
	mkTitle, mkDuration, mkScale, mkDate, mkApp, mkCodec       = 0x7ba9, 0x4489, 0x2ad7b1, 0x4461, 0x5741, 0x86
	mkWidth, mkHeight, mkChannels, mkRate, mkLanguage, mkDoc   = 0xb0, 0xba, 0x9f, 0xb5, 0x22b59c, 0x4282
	mkHead, mkChapters, mkEdition, mkAtom, mkDisplay, mkString = 0x1a45dfa3, 0x1043a770, 0x45b9, 0xb6, 0x80, 0x85
	mkCluster                                                  = 0x1f43b675
)

// matroskaHeader reads Matroska and WebM.
func matroskaHeader(d *document, b *bin) recording {
	x := recording{format: "Matroska"}
	m := matroska{x: &x, d: d, b: b, scale: 1e6}
	m.walk(0, b.size, 0)
	x.seconds = m.units * m.scale / 1e9
	return x
}

type matroska struct {
	x            *recording
	d            *document
	b            *bin
	scale, units float64
	tag          string
	n            int
}

func (m *matroska) walk(at, end int64, depth int) {
	for at < end && m.n < 100000 {
		m.n++
		id, at2 := m.vint(at, false)
		size, body := m.vint(at2, true)
		if body == at2 || at2 == at {
			return
		}
		stop := end
		if size >= 0 && size < end-body {
			stop = body + size
		}
		switch id {
		case mkSegment, mkInfo, mkTracks, mkTrack, mkVideo, mkAudio, mkTags, mkTag, mkSimple, mkHead, mkChapters, mkEdition, mkAtom, mkDisplay:
			if depth < 10 {
				m.walk(body, stop, depth+1)
			}
		case mkCluster:
			if size < 0 { // to where nobody knows
				return
			}
		default:
			m.element(id, body, int(min(stop-body, maxField)))
		}
		at = stop
	}
}

// vint reads an identifier, or a size without its mark; of a size that is not
// known -1.
func (m *matroska) vint(at int64, size bool) (v, end int64) {
	first := m.b.u8(at)
	n := 1
	for mask := 0x80; mask > 0 && first&mask == 0; mask >>= 1 {
		n++
	}
	if n > 8 || at+int64(n) > m.b.size {
		return 0, at
	}
	u := m.b.be64(at) >> (64 - 8*n)
	if size {
		u &= 1<<(7*n) - 1
		if u == 1<<(7*n)-1 {
			return -1, at + int64(n)
		}
	}
	return int64(u), at + int64(n)
}

func (m *matroska) element(id, at int64, n int) {
	text := func() string { return strings.TrimRight(string(bytes.ToValidUTF8(m.b.at(at, n), nil)), "\x00") }
	d, x := m.d, m.x
	switch id {
	case mkDoc:
		if text() == "webm" {
			x.format = "WebM"
		}
	case mkTitle:
		d.title = text()
	case mkApp:
		d.generator = text()
	case mkDuration:
		m.units = m.float(at, n)
	case mkScale:
		m.scale = float64(m.uint(at, n))
	case mkDate:
		ns := int64(m.b.be64(at))
		if ns != 0 {
			d.created = iso(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ns)), true)
		}
	case mkCodec:
		if len(x.codecs) < 20 {
			x.codecs = append(x.codecs, text())
		}
	case mkWidth:
		x.width = max(x.width, m.uint(at, n))
	case mkHeight:
		x.height = max(x.height, m.uint(at, n))
	case mkChannels:
		x.channels = m.uint(at, n)
	case mkRate:
		x.rate = int(m.float(at, n))
	case mkLanguage:
		if l := text(); l != "und" && d.language == "" {
			d.language = l
		}
	case mkString: // a chapter's name
		d.heading(text())
	case mkTagName:
		m.tag = strings.ToLower(text())
	case mkTagText:
		d.mediaTag(m.tag, text())
	}
}

func (m *matroska) uint(at int64, n int) int {
	v := 0
	for _, c := range m.b.at(at, min(n, 7)) {
		v = v<<8 | int(c)
	}
	return v
}

func (m *matroska) float(at int64, n int) float64 {
	if n == 4 {
		return float64(math.Float32frombits(uint32(m.b.be32(at))))
	}
	return math.Float64frombits(m.b.be64(at))
}
