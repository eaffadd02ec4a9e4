package essence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dhowden/tag"

	"harvest/gather/soif"
)

// A recording is what the headers of sound and film say.
type recording struct {
	format        string
	seconds       float64
	bitrate       int // a second
	rate          int // samples a second
	channels      int
	width, height int
	frames        float64 // a second
	codecs        []string
}

// sumAudio summarizes sound: tags, duration and form.
func sumAudio(w *worker, o *soif.Object, c *content, _ []byte) {
	w.sumRecording(o, c, func(d *document, b *bin) recording {
		if !b.has(0, "MThd") && !b.has(0, "RIFF") && !b.has(0, "FORM") && !b.has(0, ".snd") && !b.has(4, "ftyp") {
			w.audioTags(c, d, io.NewSectionReader(b.r, 0, b.size))
		}
		return audioHeader(d, b)
	})
}

// sumVideo summarizes film: tags, duration and form.
func sumVideo(w *worker, o *soif.Object, c *content, _ []byte) {
	w.sumRecording(o, c, audioHeader)
}

func (w *worker) sumRecording(o *soif.Object, c *content, read func(*document, *bin) recording) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	d := w.document()
	d.name = c.name
	x := read(d, &bin{r: r, size: size})
	d.extra("Media-Format", x.format)
	if x.seconds > 0 && x.seconds < 1e8 {
		d.extra("Duration", (time.Duration(x.seconds*1000) * time.Millisecond).Round(10*time.Millisecond).String())
		if x.bitrate == 0 {
			x.bitrate = int(float64(size) * 8 / x.seconds)
		}
	}
	for _, a := range []struct {
		name string
		n    int
	}{{"Bitrate", x.bitrate}, {"Sample-Rate", x.rate}, {"Channels", x.channels}} {
		if a.n > 0 {
			d.extra(a.name, strconv.Itoa(a.n))
		}
	}
	if x.width > 0 && x.height > 0 {
		d.extra("Dimensions", fmt.Sprintf("%dx%d", x.width, x.height))
	}
	if x.frames > 0 && x.frames < 1000 {
		d.extra("Frame-Rate", strconv.FormatFloat(x.frames, 'g', 5, 64))
	}
	d.extra("Codecs", strings.Join(x.codecs, " "))
	d.put(w, o, c)
}

// audioTags reads ID3 and the comments of Vorbis.
func (w *worker) audioTags(c *content, d *document, r io.ReadSeeker) {
	defer func() {
		if p := recover(); p != nil {
			w.limit(c, fmt.Sprintf("tags: %v", p))
		}
	}()
	m, err := tag.ReadFrom(r)
	if err != nil {
		if !errors.Is(err, tag.ErrNoTagsFound) {
			w.step(c, "summarize", "cut", "tags: "+err.Error())
		}
		return
	}
	d.title, d.author = m.Title(), m.Artist()
	if d.author == "" {
		d.author = m.AlbumArtist()
	}
	if y := m.Year(); y > 0 {
		d.date = strconv.Itoa(y)
	}
	d.comment(m.Comment())
	d.add([]byte(m.Lyrics()))
	d.extra("Album", m.Album())
	d.extra("Composer", m.Composer())
	d.extra("Genre", m.Genre())
	if n, of := m.Track(); n > 0 && of > 0 {
		d.extra("Track", fmt.Sprintf("%d/%d", n, of))
	} else if n > 0 {
		d.extra("Track", strconv.Itoa(n))
	}
	for _, key := range []string{"copyright", "TCOP", "organization", "TPUB", "language", "TLAN"} {
		v, ok := m.Raw()[key].(string)
		switch {
		case !ok || v == "":
		case key == "copyright" || key == "TCOP":
			d.extra("Rights", v)
		case key == "language" || key == "TLAN":
			d.language = v
		default:
			d.publisher = v
		}
	}
}

// audioHeader reads the header of sound or film, by the magic of its format.
func audioHeader(d *document, b *bin) recording {
	switch {
	case b.has(0, "fLaC"):
		return flacHeader(b)
	case b.has(0, "OggS"):
		return oggHeader(d, b)
	case b.has(0, "RIFF"), b.has(0, "RF64"):
		return riffHeader(d, b)
	case b.has(0, "FORM"):
		return aiffHeader(d, b)
	case b.has(0, ".snd"):
		return auHeader(d, b)
	case b.has(0, "MThd"):
		return midiHeader(d, b)
	case b.has(4, "ftyp"), b.has(4, "moov"), b.has(4, "mdat"), b.has(4, "wide"):
		return mp4Header(d, b)
	case b.has(0, "\x1aE\xdf\xa3"):
		return matroskaHeader(d, b)
	case b.has(0, "FLV\x01"):
		return recording{format: "FLV"}
	case b.has(0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11"):
		return asfHeader(d, b)
	case b.has(0, "\x00\x00\x01\xba"), b.has(0, "\x00\x00\x01\xb3"):
		return mpegHeader(b)
	}
	return mp3Header(b)
}

func flacHeader(b *bin) recording {
	x := recording{format: "FLAC"}
	v := b.be64(18)
	x.rate, x.channels = int(v>>44), int(v>>41&7)+1
	if n := v & (1<<36 - 1); x.rate > 0 {
		x.seconds = float64(n) / float64(x.rate)
	}
	return x
}

// oggHeader reads the first page, which tells the codec, and the last, which
// tells where it ends.
func oggHeader(d *document, b *bin) recording {
	x := recording{format: "Ogg"}
	packet := int64(27 + b.u8(26))
	var ticks float64
	for page, at := 0, int64(0); page < 8 && b.has(at, "OggS"); page++ { // streams begin all before any goes on
		body := at + 27 + int64(b.u8(at+26))
		switch {
		case b.has(body, "\x01vorbis"):
			x.channels, x.rate = b.u8(body+11), int(b.le32(body+12))
			x.codecs, ticks = append(x.codecs, "vorbis"), float64(x.rate)
		case b.has(body, "OpusHead"):
			x.channels, x.rate = b.u8(body+9), int(b.le32(body+12))
			x.codecs, ticks = append(x.codecs, "opus"), 48000
		case b.has(body, "Speex   "):
			x.rate, x.channels = int(b.le32(body+36)), int(b.le32(body+48))
			x.codecs, ticks = append(x.codecs, "speex"), float64(x.rate)
		case b.has(body, "\x80theora"):
			x.width, x.height = b.be16(body+10)<<4, b.be16(body+12)<<4
			x.codecs = append(x.codecs, "theora")
			if den := b.be32(body + 26); den > 0 {
				x.frames = float64(b.be32(body+22)) / float64(den)
			}
		case b.has(body, "\x81theora") && d.title == "":
			vorbisComments(d, b.at(body+7, maxField))
		case b.has(body, "\x7fFLAC"):
			x.codecs = append(x.codecs, "flac")
		}
		for _, n := range b.at(at+27, b.u8(at+26)) {
			body += int64(n)
		}
		at = body
	}
	end := b.at(max(b.size-maxField, 0), maxField)
	if i := bytes.LastIndex(end, []byte("OggS")); i >= 0 && ticks > 0 && packet > 0 && len(end) >= i+14 {
		x.seconds = float64(le(end).u32(i+6)) + float64(le(end).u32(i+10))*(1<<32)
		x.seconds /= ticks
	}
	return x
}

// vorbisComments reads comments: a name, =, and a text each.
func vorbisComments(d *document, p []byte) {
	b := le(p)
	at := 4 + b.u32(0)
	n := b.u32(at)
	at += 4
	for range min(n, 1000) {
		size := b.u32(at)
		key, val, _ := strings.Cut(string(bytes.ToValidUTF8(b.cut(at+4, size), nil)), "=")
		d.mediaTag(strings.ToLower(key), val)
		if at += 4 + size; at >= len(b) {
			return
		}
	}
}

// mediaTag keeps a tag by the name that any of several formats has for it.
func (d *document) mediaTag(key, val string) {
	if val = strings.TrimSpace(strings.Trim(val, "\x00")); val == "" {
		return
	}
	switch key {
	case "title", "inam", "\xa9nam", "name":
		d.title = val
	case "artist", "iart", "\xa9art", "auth", "author", "director", "\xa9dir":
		if d.author == "" {
			d.author = val
		}
	case "album", "iprd", "\xa9alb":
		d.extra("Album", val)
	case "date", "icrd", "\xa9day", "date_released", "date_recorded", "year":
		d.date = isoTime(val)
	case "genre", "ignr", "\xa9gen":
		d.extra("Genre", val)
	case "composer", "\xa9wrt":
		d.extra("Composer", val)
	case "copyright", "icop", "cprt", "(c) ":
		d.extra("Rights", val)
	case "description", "desc", "ldes", "summary", "synopsis", "subject", "isbj":
		d.description = val
	case "comment", "icmt", "\xa9cmt", "anno":
		d.comment(val)
	case "keywords", "ikey", "keyw":
		d.keywords = append(d.keywords, val)
	case "encoder", "isft", "\xa9too", "encoding_tool":
		d.generator = val
	case "language":
		d.language = val
	case "publisher", "organization", "tvnn":
		d.publisher = val
	case "\xa9lyr", "lyrics":
		d.add([]byte(val + "\n"))
	case "tvsh", "show":
		d.extra("Series", val)
	}
}

// riffHeader reads WAV and AVI: chunks, some of which hold others.
func riffHeader(d *document, b *bin) recording {
	x := recording{format: map[string]string{"WAVE": "WAV", "AVI ": "AVI", "RMID": "MIDI"}[string(b.at(8, 4))]}
	bytesSecond := 0
	var walk func(at, end int64, depth int)
	walk = func(at, end int64, depth int) {
		for n := 0; at+8 <= end && n < 10000; n++ {
			size := b.le32(at + 4)
			switch id := string(b.at(at, 4)); id {
			case "LIST":
				if kind := string(b.at(at+8, 4)); depth < 4 && kind != "movi" {
					walk(at+12, min(at+8+size, end), depth+1)
				}
			case "fmt ":
				x.channels, x.rate, bytesSecond = b.le16(at+10), int(b.le32(at+12)), int(b.le32(at+16))
			case "data":
				if bytesSecond > 0 {
					x.seconds = float64(min(size, b.size)) / float64(bytesSecond)
				}
			case "avih":
				if us := b.le32(at + 8); us > 0 {
					x.frames, x.seconds = 1e6/float64(us), float64(us)*float64(b.le32(at+24))/1e6
				}
				x.width, x.height = int(b.le32(at+40)), int(b.le32(at+44))
			case "strh":
				x.codecs = append(x.codecs, strings.TrimSpace(strings.Trim(clean(string(b.at(at+12, 4))), "?")))
			default:
				if depth > 0 && size < maxField {
					d.mediaTag(strings.ToLower(id), string(decode(bytes.TrimRight(b.at(at+8, int(size)), "\x00"), "")))
				}
			}
			at += 8 + size + size&1
		}
	}
	walk(12, b.size, 0)
	return x
}

// aiffHeader reads AIFF, whose rate is a float of 80 bits.
func aiffHeader(d *document, b *bin) recording {
	x := recording{format: "AIFF"}
	at := int64(12)
	for n := 0; at+8 <= b.size && n < 10000; n++ {
		size := b.be32(at + 4)
		switch id := string(b.at(at, 4)); id {
		case "COMM":
			x.channels = b.be16(at + 8)
			exp, mant := b.be16(at+16)&0x7fff, b.be64(at+18)
			if shift := 16383 + 63 - exp; shift >= 0 && shift < 64 {
				x.rate = int(mant >> shift)
			}
			if x.rate > 0 {
				x.seconds = float64(b.be32(at+10)) / float64(x.rate)
			}
		case "NAME", "AUTH", "ANNO", "(c) ":
			d.mediaTag(strings.ToLower(id), string(decode(b.at(at+8, int(min(size, maxField))), "")))
		}
		at += 8 + size + size&1
	}
	return x
}

func auHeader(d *document, b *bin) recording {
	x := recording{format: "AU", rate: int(b.be32(16)), channels: int(b.be32(20))}
	start, size := b.be32(4), b.be32(8)
	if start > 24 {
		d.comment(strings.Trim(string(decode(b.at(24, int(min(start-24, maxField))), "")), "\x00 "))
	}
	wide := map[int64]int{1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}[b.be32(12)]
	if size = min(size, b.size-start); size > 0 && wide*x.rate*x.channels > 0 {
		x.seconds = float64(size) / float64(wide*x.rate*x.channels)
	}
	return x
}

// midiHeader reads the texts of MIDI: the first track's name is the title, the
// others are headings, and words that are sung are text.
func midiHeader(d *document, b *bin) recording {
	x := recording{format: "MIDI"}
	d.extra("Tracks", strconv.Itoa(b.be16(10)))
	at := 8 + b.be32(4)
	for n := 0; at+8 <= b.size && n < 1000; n++ {
		size := b.be32(at + 4)
		if b.has(at, "MTrk") {
			midiTrack(d, &bin{r: io.NewSectionReader(b.r, at+8, size), size: min(size, b.size-at-8)})
		}
		at += 8 + size
	}
	return x
}

func midiTrack(d *document, b *bin) {
	p := make([]byte, min(b.size, 1<<20))
	n, _ := b.r.ReadAt(p, 0)
	p = p[:n]
	var status byte
	for i := 0; i < len(p); {
		_, i = varint7(p, i) // the time
		if i >= len(p) {
			return
		}
		if p[i] >= 0x80 {
			status = p[i]
			i++
		}
		switch {
		case status == 0xff && i < len(p):
			kind := p[i]
			size, at := varint7(p, i+1)
			i = min(at+size, len(p))
			if text := decode(p[min(at, i):i], ""); kind >= 1 && kind <= 7 {
				d.midiText(kind, strings.TrimRight(string(text), "\x00\r\n"))
			}
		case status == 0xf0 || status == 0xf7:
			size, at := varint7(p, i)
			i = at + size
		case status&0xf0 == 0xc0 || status&0xf0 == 0xd0:
			i++
		default:
			i += 2
		}
	}
}

func (d *document) midiText(kind byte, text string) {
	switch kind {
	case 2:
		d.extra("Rights", text)
	case 3:
		if d.title == "" {
			d.title = text
		} else {
			d.heading(text)
		}
	case 5: // a syllable; / and \ begin lines of karaoke
		if strings.HasPrefix(text, "/") || strings.HasPrefix(text, `\`) {
			d.gap(1)
			text = text[1:]
		}
		d.add([]byte(text))
	case 1, 6:
		d.comment(text)
	}
}

// varint7 reads a number of seven bits a byte, and where it ends.
func varint7(p []byte, i int) (n, end int) {
	for k := 0; k < 4 && i < len(p); k++ {
		b := p[i]
		i++
		n = n<<7 | int(b&0x7f)
		if b < 0x80 {
			break
		}
	}
	return n, i
}
